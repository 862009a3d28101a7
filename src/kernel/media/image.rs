//! Images as they come in bodies: base64, told by their content and never by a name or a declared type.
//!
//! Pixels are not decoded. A picture of the largest size allowed takes a decoder up to half a second and 270 MB, which a small
//! file can ask for; the server itself never looks at a pixel. Instead the decoders that would do it read the headers, and
//! the file must be whole up to its end. What still passes, a picture whose headers are right and whose content
//! is noise, harms nobody but its owner.

use std::fmt;
use std::io::Cursor;

use base64::Engine;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use bytes::Bytes;
use zune_jpeg::JpegDecoder;
use zune_jpeg::zune_core::options::DecoderOptions;

/// The largest image taken, in bytes of its file.
pub const MAX_BYTES: usize = 5 * 1024 * 1024;
/// The longest side taken, in pixels.
pub const MAX_SIDE: u32 = 10_000;
/// The largest area taken, in pixels.
pub const MAX_PIXELS: u64 = 40_000_000;

/// An image that was checked: its file is whole, and its size is within the limits.
///
/// `width` and `height` are as stored: a rotation noted in a JPEG's Exif data is not applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// What the content says it is.
    pub kind: ImageFormat,
    /// In pixels.
    pub width: u32,
    /// In pixels.
    pub height: u32,
    /// The file, as it was sent.
    pub bytes: Bytes,
}

/// The kinds of image that every browser shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageFormat {
    /// Portable Network Graphics, animated ones too.
    Png,
    /// JPEG, baseline or progressive.
    Jpeg,
    /// WebP, lossy, lossless or animated.
    WebP,
}

impl ImageFormat {
    /// Tells the kind by the first bytes, without asking whether the rest is sound.
    pub fn of(bytes: &[u8]) -> Option<ImageFormat> {
        match bytes {
            [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1A, b'\n', ..] => Some(ImageFormat::Png),
            [0xFF, 0xD8, 0xFF, ..] => Some(ImageFormat::Jpeg),
            [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some(ImageFormat::WebP),
            _ => None,
        }
    }

    /// The value for `Content-Type`.
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

/// Why something is refused as an image. It reads as the end of a sentence that starts with the argument's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageProblem {
    /// The text is no base64, or a data URI of something else.
    NotBase64,
    /// The file has more than [`MAX_BYTES`].
    TooManyBytes,
    /// The content starts like none of the kinds.
    UnknownKind,
    /// The content starts like this kind, but its headers or its end are missing or make no sense.
    Broken(ImageFormat),
    /// A side or the area is out of bounds.
    Dimensions {
        /// In pixels.
        width: u32,
        /// In pixels.
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

/// Takes an image from a body: base64 in the standard alphabet, a data URI's head before it or not.
///
/// Line breaks and missing padding are common in what people's tools write, and are taken.
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

/// Cuts off `data:image/png;base64,`, in any case and with any parameters between. The type named there is not believed.
fn without_data_uri(text: &str) -> Result<&str, ImageProblem> {
    // A comma is in no base64, so that long texts without a head are not copied for lower case.
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

/// Walks the chunks to the last: there is image data, and no chunk that matters is damaged.
///
/// Checksums of the others (lower-case names) are left alone, as browsers do: some tools write them wrongly.
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
    // The format's own limit, so that what exceeds ours is told by its size, and not as damaged.
    let any_size = DecoderOptions::default().set_max_width(0xFFFF).set_max_height(0xFFFF);
    let mut decoder = JpegDecoder::new_with_options(&mut stream, any_size);
    decoder.decode_headers().ok()?;
    let (width, height) = decoder.dimensions()?;

    // The end marker can't occur in a scan's data. Only what follows the headers counts: a thumbnail in them has one too. It
    // need not be the last thing, as phones append films.
    let scans = bytes.get(usize::try_from(stream.position()).ok()?..)?;
    let is_whole = scans.windows(2).any(|pair| pair == [0xFF, 0xD9]);
    is_whole.then_some((u32::try_from(width).ok()?, u32::try_from(height).ok()?))
}

fn webp_dimensions(bytes: &[u8]) -> Option<(u32, u32)> {
    // The decoder believes the sizes in the headers until it reads the pixels, so the container is walked here first.
    if !is_complete_webp(bytes) {
        return None;
    }
    let decoder = image_webp::WebPDecoder::new(Cursor::new(bytes)).ok()?;
    Some(decoder.dimensions())
}

/// Walks the chunks: they fill exactly the length that the container names, and all of it is there.
fn is_complete_webp(bytes: &[u8]) -> bool {
    let Some(size) = bytes.get(4..8).and_then(|size| size.try_into().ok()).map(u32::from_le_bytes) else { return false };
    let Some(mut chunks) = bytes.get(12..(size as usize).saturating_add(8)) else { return false };
    while let Some((head, after)) = chunks.split_first_chunk::<8>() {
        let [.., a, b, c, d] = *head;
        let length = u32::from_le_bytes([a, b, c, d]) as usize;
        // Each chunk is padded to an even length; the last one's padding is forgotten by some tools.
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
    fn tells_kind_and_dimensions_by_content() {
        let image = parse_bytes(&png(30, 20)).unwrap();
        assert_eq!((image.kind, image.width, image.height), (ImageFormat::Png, 30, 20));
        assert_eq!(image.bytes, png(30, 20));
        let image = parse(JPEG).unwrap();
        assert_eq!((image.kind, image.width, image.height), (ImageFormat::Jpeg, 1, 1));
        let image = parse(WEBP).unwrap();
        assert_eq!((image.kind, image.width, image.height), (ImageFormat::WebP, 1, 1));
    }

    #[test]
    fn takes_data_uris_line_breaks_and_missing_padding() {
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
    fn refuses_what_is_no_base64_of_an_image() {
        for text in ["*", "data:text/plain;base64,aGk=", "data:image/png,abc", "aGk=aGk="] {
            assert_eq!(parse(text), Err(ImageProblem::NotBase64), "{text}");
        }
        for text in ["", "aGVsbG8=", "data:image/png;base64,aGVsbG8="] {
            assert_eq!(parse(text), Err(ImageProblem::UnknownKind), "{text}");
        }
    }

    #[test]
    fn refuses_every_truncation() {
        for text in [BASE64_STANDARD.encode(png(9, 9)), JPEG.to_owned(), WEBP.to_owned()] {
            let whole = parse(&text).unwrap();
            for length in 12..whole.bytes.len() {
                assert_eq!(parse_bytes(&whole.bytes[..length]), Err(ImageProblem::Broken(whole.kind)), "{length}");
            }
        }
    }

    #[test]
    fn refuses_magic_bytes_before_garbage_and_survives_any_damage() {
        for text in [BASE64_STANDARD.encode(png(9, 9)), JPEG.to_owned(), WEBP.to_owned()] {
            let whole = parse(&text).unwrap().bytes;
            let mut garbage = whole[..12].to_vec();
            garbage.extend([0xAB; 500]);
            assert!(matches!(parse_bytes(&garbage), Err(ImageProblem::Broken(_))));
            for at in 0..whole.len() {
                for value in [0, 0x7F, 0xFF] {
                    let mut damaged = whole.to_vec();
                    damaged[at] = value;
                    // It may pass where the damage is in the pixels; what matters is that it doesn't panic.
                    drop(parse_bytes(&damaged));
                }
            }
        }
    }

    #[test]
    fn holds_the_limits() {
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
