//! Validation of uploaded images. They are base64 in a request body, and their type is detected from the content, never from a
//! name or a declared type. Its metadata are removed, and the result is decoded completely once, so that only images that
//! browsers can show are stored.

use std::fmt;
use std::io::Cursor;

use base64::Engine;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use bytes::Bytes;
use image::metadata::Orientation;
use image::{ImageDecoder, ImageFormat, ImageReader, Limits};

use super::{jpeg, metadata};

/// Largest size of an image file, in bytes.
pub const MAX_BYTES: usize = 5 * 1024 * 1024;
/// Largest width and height of an image, in pixels.
pub const MAX_SIDE: u32 = 10_000;
/// Largest area of an image, in pixels.
pub const MAX_PIXELS: u64 = 40_000_000;
/// Largest memory for decoding an image, in bytes: four channels of 16 bits.
pub const MAX_MEMORY: u64 = MAX_PIXELS * 8;
/// Largest number of scans of a JPEG. In an image of few pixels, a scan takes longer than their number says.
pub const MAX_SCANS: u64 = 100;
/// Largest number of pixels in all scans of a JPEG together. Encoders make at most about 20 scans. The decoder needs up to a nanosecond
/// of a core for each pixel of a scan.
pub const MAX_SCANNED_PIXELS: u64 = MAX_PIXELS * 20;
/// The accepted formats, which every browser supports, and their names.
const FORMATS: [(ImageFormat, &str); 3] = [(ImageFormat::Png, "PNG"), (ImageFormat::Jpeg, "JPEG"), (ImageFormat::WebP, "WebP")];

/// A validated image: it can be decoded, its file is complete, and its size is within the limits.
///
/// `width` and `height` are those with which browsers show it: they turn a JPEG as its Exif data says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// The width in pixels.
    pub width: u32,
    /// The height in pixels.
    pub height: u32,
    /// The file without metadata.
    pub bytes: Bytes,
}

/// The reason why an image is rejected. Its text completes a sentence that starts with the name of the argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageProblem {
    /// The text is not base64, or a data URI of another type.
    NotBase64,
    /// The file is larger than [`MAX_BYTES`].
    TooManyBytes,
    /// The content is in none of the accepted formats.
    UnknownFormat,
    /// The content starts like the format with this name, but can't be decoded or has no end.
    Broken(&'static str),
    /// The width, height or area is out of bounds.
    Dimensions {
        /// The width in pixels.
        width: u32,
        /// The height in pixels.
        height: u32,
    },
    /// A JPEG with more than [`MAX_SCANS`], whose scans have more than [`MAX_SCANNED_PIXELS`] or need more than [`MAX_MEMORY`].
    Scans,
}

impl fmt::Display for ImageProblem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotBase64 => out.write_str("is not an image in base64, with or without `data:…;base64,` before it"),
            Self::TooManyBytes => write!(out, "is larger than {} MiB", MAX_BYTES / 1024 / 1024),
            Self::UnknownFormat => out.write_str("is no PNG, JPEG or WebP image"),
            Self::Broken(format) => write!(out, "is a {format} image that is damaged or incomplete"),
            Self::Dimensions { width, height } => write!(
                out,
                "is {width} × {height} pixels, but 1 to {MAX_SIDE} a side and {} million in all are allowed",
                MAX_PIXELS / 1_000_000
            ),
            Self::Scans => out.write_str("is a JPEG with too many pixels or scans: save it as a baseline JPEG with one scan"),
        }
    }
}

impl std::error::Error for ImageProblem {}

/// Returns the media type of an image file, detected from its first bytes.
pub fn media_type(bytes: &[u8]) -> &'static str {
    format(bytes).map_or("application/octet-stream", |(format, _)| format.to_mime_type())
}

fn format(bytes: &[u8]) -> Option<(ImageFormat, &'static str)> {
    let format = image::guess_format(bytes).ok()?;
    FORMATS.into_iter().find(|(accepted, _)| *accepted == format)
}

/// Parses and validates an image in base64 with the standard alphabet, with or without the prefix of a data URI. Decodes all of
/// its pixels, which can use a core for a second and [`MAX_MEMORY`].
///
/// Line breaks and missing padding are accepted, because many tools produce them.
pub fn parse(base64: &str) -> Result<Image, ImageProblem> {
    let bytes = Bytes::from(decode_base64(without_data_uri(base64.trim_ascii())?)?);
    let (format, name) = format(&bytes).ok_or(ImageProblem::UnknownFormat)?;
    let mut uploaded = reader(format, &bytes).into_decoder().map_err(|_| ImageProblem::Broken(name))?;
    let orientation = uploaded.orientation().unwrap_or(Orientation::NoTransforms);
    drop(uploaded);
    // Programs differ in what they read of a damaged image, so the stored file is checked and decoded.
    let bytes = metadata::strip(format, bytes, orientation).ok_or(ImageProblem::Broken(name))?;
    let stored = reader(format, &bytes).into_decoder().map_err(|_| ImageProblem::Broken(name))?;
    let (width, height) = stored.dimensions();
    let sides = 1..=MAX_SIDE;
    let pixels = u64::from(width) * u64::from(height);
    if !sides.contains(&width) || !sides.contains(&height) || pixels > MAX_PIXELS {
        return Err(ImageProblem::Dimensions { width, height });
    }
    if format == ImageFormat::Jpeg {
        let cost = jpeg::decoding_cost(&bytes, pixels);
        let memory = cost.buffered_bytes + pixels * u64::from(stored.color_type().channel_count());
        if cost.scans > MAX_SCANS || pixels * cost.scans > MAX_SCANNED_PIXELS || memory > MAX_MEMORY {
            return Err(ImageProblem::Scans);
        }
    }
    drop(stored);
    reader(format, &bytes).decode().map_err(|_| ImageProblem::Broken(name))?;
    let (width, height) = if is_turned(format, orientation) { (height, width) } else { (width, height) };
    Ok(Image { width, height, bytes })
}

/// Returns a reader of an image. Headers may be compressed, so reading them has the same limit as the pixels.
fn reader(format: ImageFormat, bytes: &Bytes) -> ImageReader<Cursor<&Bytes>> {
    let mut reader = ImageReader::with_format(Cursor::new(bytes), format);
    let mut limits = Limits::default();
    limits.max_alloc = Some(MAX_MEMORY);
    reader.limits(limits);
    reader
}

/// Returns whether all browsers turn the image by 90°. They do so for a JPEG of a camera that was held upright.
fn is_turned(format: ImageFormat, orientation: Orientation) -> bool {
    use Orientation::{Rotate90, Rotate90FlipH, Rotate270, Rotate270FlipH};
    format == ImageFormat::Jpeg && matches!(orientation, Rotate90 | Rotate90FlipH | Rotate270 | Rotate270FlipH)
}

/// Removes a prefix like `data:image/png;base64,`, case-insensitively and with any parameters. Its media type is ignored: programs guess
/// it from the name of a file.
fn without_data_uri(text: &str) -> Result<&str, ImageProblem> {
    // Base64 has no comma, so long texts without a prefix are not copied to lower case.
    let Some((head, data)) = text.split_once(',') else { return Ok(text) };
    let head = head.to_ascii_lowercase();
    if head.starts_with("data:") && head.ends_with(";base64") { Ok(data) } else { Err(ImageProblem::NotBase64) }
}

fn decode_base64(text: &str) -> Result<Vec<u8>, ImageProblem> {
    const LENIENT: GeneralPurpose = GeneralPurpose::new(
        &alphabet::STANDARD,
        GeneralPurposeConfig::new()
            .with_decode_padding_mode(DecodePaddingMode::Indifferent)
            .with_decode_allow_trailing_bits(true),
    );
    let bytes = if text.bytes().any(|byte| byte.is_ascii_whitespace()) {
        LENIENT.decode(text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect::<Vec<_>>())
    } else {
        LENIENT.decode(text)
    }
    .map_err(|_| ImageProblem::NotBase64)?;
    if bytes.len() > MAX_BYTES { Err(ImageProblem::TooManyBytes) } else { Ok(bytes) }
}
