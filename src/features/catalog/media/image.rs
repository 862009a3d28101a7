//! Validation of uploaded images. They are base64 in a request body, and their type is detected from the content, never from a
//! name or a declared type.
//!
//! Pixels are not decoded, because the server never uses them, and even a small file can make a decoder spend half a second and
//! 270 MB on an image of the largest size. Instead the decoders read only the headers, and the file must be complete up to its
//! end. A file with correct headers and random content still passes, which does no harm to the server.

use std::fmt;
use std::io::Cursor;

use base64::Engine;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use bytes::Bytes;
use zune_jpeg::JpegDecoder;
use zune_jpeg::zune_core::options::DecoderOptions;

/// Largest size of an image file, in bytes.
pub const MAX_BYTES: usize = 5 * 1024 * 1024;
/// Largest width and height of an image, in pixels.
pub const MAX_SIDE: u32 = 10_000;
/// Largest area of an image, in pixels.
pub const MAX_PIXELS: u64 = 40_000_000;

/// A validated image: its file is complete, and its size is within the limits.
///
/// `width` and `height` ignore a rotation in the Exif data of a JPEG.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// The format, detected from the content.
    pub kind: ImageFormat,
    /// The width in pixels.
    pub width: u32,
    /// The height in pixels.
    pub height: u32,
    /// The file, unchanged.
    pub bytes: Bytes,
}

/// The accepted image formats, which every browser supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageFormat {
    /// PNG, also animated.
    Png,
    /// JPEG, baseline or progressive.
    Jpeg,
    /// WebP, lossy, lossless or animated.
    WebP,
}

impl ImageFormat {
    /// Detects the format from the first bytes. Doesn't validate the rest.
    pub fn of(bytes: &[u8]) -> Option<ImageFormat> {
        match bytes {
            [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1A, b'\n', ..] => Some(ImageFormat::Png),
            [0xFF, 0xD8, 0xFF, ..] => Some(ImageFormat::Jpeg),
            [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some(ImageFormat::WebP),
            _ => None,
        }
    }

    /// Returns the value of `Content-Type`.
    pub fn media_type(self) -> &'static str {
        match self {
            ImageFormat::Png => "image/png",
            ImageFormat::Jpeg => "image/jpeg",
            ImageFormat::WebP => "image/webp",
        }
    }
}

impl fmt::Display for ImageFormat {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            ImageFormat::Png => "PNG",
            ImageFormat::Jpeg => "JPEG",
            ImageFormat::WebP => "WebP",
        })
    }
}

/// The reason why an image is rejected. Its text completes a sentence that starts with the name of the argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageProblem {
    /// The text is not base64, or a data URI of another type.
    NotBase64,
    /// The file is larger than [`MAX_BYTES`].
    TooManyBytes,
    /// The content is in none of the accepted formats.
    UnknownKind,
    /// The content starts like this format, but its headers or its end are missing or invalid.
    Broken(ImageFormat),
    /// The width, height or area is out of bounds.
    Dimensions {
        /// The width in pixels.
        width: u32,
        /// The height in pixels.
        height: u32,
    },
}

impl fmt::Display for ImageProblem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotBase64 => out.write_str("is not an image in base64, with or without `data:image/…;base64,` before it"),
            Self::TooManyBytes => write!(out, "is larger than {} MiB", MAX_BYTES / 1024 / 1024),
            Self::UnknownKind => out.write_str("is no PNG, JPEG or WebP image"),
            Self::Broken(kind) => write!(out, "is a {kind} image that is damaged or incomplete"),
            Self::Dimensions { width, height } => write!(
                out,
                "is {width} × {height} pixels, but 1 to {MAX_SIDE} a side and {} million in all are allowed",
                MAX_PIXELS / 1_000_000
            ),
        }
    }
}

impl std::error::Error for ImageProblem {}

/// Parses and validates an image in base64 with the standard alphabet, with or without the prefix of a data URI.
///
/// Line breaks and missing padding are accepted, because many tools produce them.
pub fn parse(base64: &str) -> Result<Image, ImageProblem> {
    let bytes = decode(without_data_uri(base64.trim_ascii())?)?;
    let kind = ImageFormat::of(&bytes).ok_or(ImageProblem::UnknownKind)?;
    let (width, height) = match kind {
        ImageFormat::Png => png_dimensions(&bytes),
        ImageFormat::Jpeg => jpeg_dimensions(&bytes),
        ImageFormat::WebP => webp_dimensions(&bytes),
    }
    .ok_or(ImageProblem::Broken(kind))?;

    let sides = 1..=MAX_SIDE;
    let pixels = u64::from(width) * u64::from(height);
    if !sides.contains(&width) || !sides.contains(&height) || pixels > MAX_PIXELS {
        return Err(ImageProblem::Dimensions { width, height });
    }
    Ok(Image { kind, width, height, bytes: bytes.into() })
}

/// Removes a prefix like `data:image/png;base64,`, case-insensitively and with any parameters. Its media type is ignored.
fn without_data_uri(text: &str) -> Result<&str, ImageProblem> {
    // Base64 has no comma, so long texts without a prefix are not copied to lower case.
    let Some((head, data)) = text.split_once(',') else { return Ok(text) };
    let head = head.to_ascii_lowercase();
    if head.starts_with("data:image/") && head.ends_with(";base64") { Ok(data) } else { Err(ImageProblem::NotBase64) }
}

fn decode(text: &str) -> Result<Vec<u8>, ImageProblem> {
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

fn png_dimensions(bytes: &[u8]) -> Option<(u32, u32)> {
    let mut decoder = png::Decoder::new(Cursor::new(bytes));
    let header = decoder.read_header_info().ok()?;
    let dimensions = (header.width, header.height);
    is_complete_png(bytes).then_some(dimensions)
}

/// Returns whether the chunks are complete up to the last one, include image data, and have valid checksums.
///
/// Checksums of ancillary chunks (lower-case names) are ignored, as browsers do, because some tools write wrong ones.
fn is_complete_png(bytes: &[u8]) -> bool {
    let mut rest = bytes.get(8..).unwrap_or_default();
    let mut has_data = false;
    while let Some((length, after)) = rest.split_first_chunk::<4>() {
        let length = u32::from_be_bytes(*length) as usize;
        let Some((chunk, after)) = after.split_at_checked(length.saturating_add(4)) else { return false };
        let Some((checksum, after)) = after.split_first_chunk::<4>() else { return false };
        if chunk[0].is_ascii_uppercase() && crc32fast::hash(chunk) != u32::from_be_bytes(*checksum) {
            return false;
        }
        match &chunk[..4] {
            b"IDAT" => has_data = true,
            b"IEND" => return has_data,
            _ => {}
        }
        rest = after;
    }
    false
}

fn jpeg_dimensions(bytes: &[u8]) -> Option<(u32, u32)> {
    let mut stream = Cursor::new(bytes);
    // The limit of the format itself, so that an image above our limit is rejected for its size and not as damaged.
    let any_size = DecoderOptions::default().set_max_width(0xFFFF).set_max_height(0xFFFF);
    let mut decoder = JpegDecoder::new_with_options(&mut stream, any_size);
    decoder.decode_headers().ok()?;
    let (width, height) = decoder.dimensions()?;

    // The end marker can't occur in the data of a scan. The headers are skipped, because a thumbnail in them has an end marker
    // too. More data may follow the marker, because phones append videos.
    let scans = bytes.get(usize::try_from(stream.position()).ok()?..)?;
    let is_complete = scans.windows(2).any(|pair| pair == [0xFF, 0xD9]);
    is_complete.then_some((u32::try_from(width).ok()?, u32::try_from(height).ok()?))
}

fn webp_dimensions(bytes: &[u8]) -> Option<(u32, u32)> {
    // The decoder trusts the sizes in the headers until it reads the pixels, so the container is validated here first.
    if !is_complete_webp(bytes) {
        return None;
    }
    let decoder = image_webp::WebPDecoder::new(Cursor::new(bytes)).ok()?;
    Some(decoder.dimensions())
}

/// Returns whether the file is complete and its chunks fill exactly the length in the container's header.
fn is_complete_webp(bytes: &[u8]) -> bool {
    let Some(size) = bytes.get(4..8).and_then(|size| size.try_into().ok()).map(u32::from_le_bytes) else { return false };
    let Some(mut chunks) = bytes.get(12..(size as usize).saturating_add(8)) else { return false };
    while let Some((head, after)) = chunks.split_first_chunk::<8>() {
        let [.., a, b, c, d] = *head;
        let length = u32::from_le_bytes([a, b, c, d]) as usize;
        // Each chunk is padded to an even length. Some tools omit the padding of the last one.
        let Some(after) = after.get(length..) else { return false };
        chunks = after.get(length % 2..).unwrap_or_default();
    }
    chunks.is_empty()
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use base64::prelude::BASE64_STANDARD;

    use super::*;

    /// The smallest lossy WebP: 1 × 1 pixel.
    const WEBP: &str = "UklGRiIAAABXRUJQVlA4IBYAAAAwAQCdASoBAAEADsD+JaQAA3AAAAAA";
    /// A grey JPEG of 1 × 1 pixel.
    const JPEG: &str = "/9j/4AAQSkZJRgABAQEAYABgAAD/2wBDAAgGBgcGBQgHBwcJCQgKDBQNDAsLDBkSEw8UHRofHh0aHBwgJC4nICIsIxwcKDcpLDAxNDQ0Hyc5PTgyPC4\
        zNDL/wAALCAABAAEBAREA/8QAHwAAAQUBAQEBAQEAAAAAAAAAAAECAwQFBgcICQoL/8QAtRAAAgEDAwIEAwUFBAQAAAF9AQIDAAQRBRIhMUEGE1FhByJxFDKBkaEIIlKRocEV\
        UtHwJDNicoIJChYXGBkaJSYnKCkqNDU2Nzg5OkNERUZHSElKU1RVVldYWVpjZGVmZ2hpanN0dXZ3eHl6g4SFhoeIiYqSk5SVlpeYmZqio6Slpqeoqaqys7S1tre4ubrCw8TFxs\
        fIycrS09TV1tfY2drh4uPk5ebn6Onq8fLz9PX29/j5+v/aAAgBAQAAPwD3+v/Z";

    fn png(width: u32, height: u32) -> Vec<u8> {
        let mut file = Vec::new();
        let mut encoder = png::Encoder::new(&mut file, width, height);
        encoder.set_color(png::ColorType::Grayscale);
        let pixels = vec![200; (width * height) as usize];
        encoder.write_header().unwrap().write_image_data(&pixels).unwrap();
        file
    }

    fn parse_bytes(bytes: &[u8]) -> Result<Image, ImageProblem> {
        parse(&BASE64_STANDARD.encode(bytes))
    }

    #[test]
    fn detects_format_and_dimensions_from_content() {
        let image = parse_bytes(&png(30, 20)).unwrap();
        assert_eq!((image.kind, image.width, image.height), (ImageFormat::Png, 30, 20));
        assert_eq!(image.bytes, png(30, 20));
        let image = parse(JPEG).unwrap();
        assert_eq!((image.kind, image.width, image.height), (ImageFormat::Jpeg, 1, 1));
        let image = parse(WEBP).unwrap();
        assert_eq!((image.kind, image.width, image.height), (ImageFormat::WebP, 1, 1));
    }

    #[test]
    fn accepts_data_uris_line_breaks_and_missing_padding() {
        let plain = BASE64_STANDARD.encode(png(3, 3));
        let in_lines: Vec<_> = plain.as_bytes().chunks(20).map(|line| str::from_utf8(line).unwrap()).collect();
        for text in [
            format!("data:image/png;base64,{plain}"),
            format!("DATA:image/svg+xml;charset=utf-8;BASE64,{plain}"),
            format!("\n{}\r\n", in_lines.join("\r\n")),
            plain.trim_end_matches('=').to_owned(),
        ] {
            assert_eq!(parse(&text).unwrap().kind, ImageFormat::Png, "{text}");
        }
    }

    #[test]
    fn rejects_text_that_is_not_a_base64_image() {
        for text in ["*", "data:text/plain;base64,aGk=", "data:image/png,abc", "aGk=aGk="] {
            assert_eq!(parse(text), Err(ImageProblem::NotBase64), "{text}");
        }
        for text in ["", "aGVsbG8=", "data:image/png;base64,aGVsbG8="] {
            assert_eq!(parse(text), Err(ImageProblem::UnknownKind), "{text}");
        }
    }

    #[test]
    fn rejects_every_truncation() {
        for text in [BASE64_STANDARD.encode(png(9, 9)), JPEG.to_owned(), WEBP.to_owned()] {
            let image = parse(&text).unwrap();
            for length in 12..image.bytes.len() {
                assert_eq!(parse_bytes(&image.bytes[..length]), Err(ImageProblem::Broken(image.kind)), "{length}");
            }
        }
    }

    #[test]
    fn rejects_garbage_after_magic_bytes_and_never_panics() {
        for text in [BASE64_STANDARD.encode(png(9, 9)), JPEG.to_owned(), WEBP.to_owned()] {
            let file = parse(&text).unwrap().bytes;
            let mut garbage = file[..12].to_vec();
            garbage.extend([0xAB; 500]);
            assert!(matches!(parse_bytes(&garbage), Err(ImageProblem::Broken(_))));
            for at in 0..file.len() {
                for value in [0, 0x7F, 0xFF] {
                    let mut damaged = file.to_vec();
                    damaged[at] = value;
                    // Damaged pixels may pass. The parser must not panic.
                    drop(parse_bytes(&damaged));
                }
            }
        }
    }

    #[test]
    fn enforces_the_limits() {
        let mut large = png(2, 2);
        large.resize(MAX_BYTES, 0);
        assert!(parse_bytes(&large).is_ok());
        large.push(0);
        assert_eq!(parse_bytes(&large), Err(ImageProblem::TooManyBytes));

        assert!(parse_bytes(&png(MAX_SIDE, 1)).is_ok());
        let long = ImageProblem::Dimensions { width: 1, height: MAX_SIDE + 1 };
        assert_eq!(parse_bytes(&png(1, MAX_SIDE + 1)), Err(long));
        let wide = ImageProblem::Dimensions { width: 8000, height: 5001 };
        assert_eq!(parse_bytes(&png(8000, 5001)), Err(wide));
        assert_eq!(wide.to_string(), "is 8000 × 5001 pixels, but 1 to 10000 a side and 40 million in all are allowed");
    }
}
