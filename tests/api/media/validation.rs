//! Validation of uploaded images.

use std::io::Cursor;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use boxoffice::features::catalog::media::image::{Image, ImageProblem, MAX_BYTES, MAX_SIDE, media_type, parse};
use image::{GrayImage, ImageFormat, ImageReader, Luma};

/// The smallest lossy WebP: 1 × 1 pixel.
const WEBP: &str = "UklGRiIAAABXRUJQVlA4IBYAAAAwAQCdASoBAAEADsD+JaQAA3AAAAAA";
/// A grey JPEG of 1 × 1 pixel.
const JPEG: &str = "/9j/4AAQSkZJRgABAQEAYABgAAD/2wBDAAgGBgcGBQgHBwcJCQgKDBQNDAsLDBkSEw8UHRofHh0aHBwgJC4nICIsIxwcKDcpLDAxNDQ0Hyc5PTgyPC4\
    zNDL/wAALCAABAAEBAREA/8QAHwAAAQUBAQEBAQEAAAAAAAAAAAECAwQFBgcICQoL/8QAtRAAAgEDAwIEAwUFBAQAAAF9AQIDAAQRBRIhMUEGE1FhByJxFDKBkaEIIlKRocEV\
    UtHwJDNicoIJChYXGBkaJSYnKCkqNDU2Nzg5OkNERUZHSElKU1RVVldYWVpjZGVmZ2hpanN0dXZ3eHl6g4SFhoeIiYqSk5SVlpeYmZqio6Slpqeoqaqys7S1tre4ubrCw8TFxs\
    fIycrS09TV1tfY2drh4uPk5ebn6Onq8fLz9PX29/j5+v/aAAgBAQAAPwD3+v/Z";

fn png(width: u32, height: u32) -> Vec<u8> {
    let mut file = Cursor::new(Vec::new());
    GrayImage::from_pixel(width, height, Luma([200])).write_to(&mut file, ImageFormat::Png).unwrap();
    file.into_inner()
}

fn parse_bytes(bytes: &[u8]) -> Result<Image, ImageProblem> {
    parse(&BASE64_STANDARD.encode(bytes))
}

#[test]
fn detects_format_and_dimensions_from_content() {
    let image = parse_bytes(&png(30, 20)).unwrap();
    assert_eq!((media_type(&image.bytes), image.width, image.height), ("image/png", 30, 20));
    assert_eq!(image.bytes, png(30, 20));
    let image = parse(JPEG).unwrap();
    assert_eq!((media_type(&image.bytes), image.width, image.height), ("image/jpeg", 1, 1));
    let image = parse(WEBP).unwrap();
    assert_eq!((media_type(&image.bytes), image.width, image.height), ("image/webp", 1, 1));
}

#[test]
fn accepts_data_uris_line_breaks_and_missing_padding() {
    let plain = BASE64_STANDARD.encode(png(3, 3));
    let in_lines: Vec<_> = plain.as_bytes().chunks(20).map(|line| str::from_utf8(line).unwrap()).collect();
    for text in [
        format!("data:image/png;base64,{plain}"),
        format!("DATA:image/svg+xml;charset=utf-8;BASE64,{plain}"),
        format!("data:application/octet-stream;base64,{plain}"),
        format!("data:;base64,{plain}"),
        format!("\n{}\r\n", in_lines.join("\r\n")),
        plain.trim_end_matches('=').to_owned(),
    ] {
        assert_eq!(parse(&text).unwrap().bytes, png(3, 3), "{text}");
    }
}

#[test]
fn rejects_text_that_is_not_a_base64_image() {
    for text in ["*", "data:image/png,abc", "aGk=aGk="] {
        assert_eq!(parse(text), Err(ImageProblem::NotBase64), "{text}");
    }
    for text in ["", "aGVsbG8=", "data:image/png;base64,aGVsbG8=", "data:text/plain;base64,aGk="] {
        assert_eq!(parse(text), Err(ImageProblem::UnknownFormat), "{text}");
    }
}

#[test]
fn rejects_every_truncation() {
    for (name, text) in [("PNG", BASE64_STANDARD.encode(png(9, 9))), ("JPEG", JPEG.to_owned()), ("WebP", WEBP.to_owned())] {
        let image = parse(&text).unwrap();
        for length in 12..image.bytes.len() {
            assert_eq!(parse_bytes(&image.bytes[..length]), Err(ImageProblem::Broken(name)), "{length}");
        }
    }
}

#[test]
fn rejects_random_pixels_behind_valid_headers() {
    let mut damaged = png(90, 90);
    let data = damaged.windows(4).position(|window| window == b"IDAT").unwrap() + 4;
    damaged[data..data + 8].fill(0xAB);
    assert_eq!(parse_bytes(&damaged), Err(ImageProblem::Broken("PNG")));
}

#[test]
fn thumbnail_in_headers_is_not_the_end_of_a_jpeg() {
    let image = BASE64_STANDARD.decode(JPEG).unwrap();
    let mut with_thumbnail = image[..2].to_vec();
    with_thumbnail.extend([0xFF, 0xE1]);
    with_thumbnail.extend((image.len() as u16 + 2).to_be_bytes());
    with_thumbnail.extend(&image);
    with_thumbnail.extend(&image[2..]);
    assert!(parse_bytes(&with_thumbnail).is_ok());
    for missing in 1..20 {
        let cut = &with_thumbnail[..with_thumbnail.len() - missing];
        assert_eq!(parse_bytes(cut), Err(ImageProblem::Broken("JPEG")), "{missing}");
    }
}

#[test]
fn jpeg_ends_at_the_marker_after_its_scans() {
    let image = BASE64_STANDARD.decode(JPEG).unwrap();
    let end = image.len() - 2;
    // A comment with an end marker between the last scan and the end.
    let with_comment = [&image[..end], b"\xFF\xFE\0\x06\xFF\xD9\xFF\xD9", &image[end..], b"\xFF\xD8\xFF\xD9"].concat();
    assert_eq!(parse_bytes(&with_comment).unwrap(), parse_bytes(&image).unwrap());
}

#[test]
fn damaged_parts_of_metadata_never_panic() {
    let mut files = vec![png(9, 9), BASE64_STANDARD.decode(JPEG).unwrap(), BASE64_STANDARD.decode(WEBP).unwrap()];
    files[1].splice(2..2, *b"\xFF\xE1\0\x1CExif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0");
    for file in files {
        for at in 0..file.len() {
            for (length, filler) in [(2, 0xFF), (4, 0), (4, 0xFF), (8, 0x7F)] {
                let mut damaged = file.clone();
                damaged.splice(at..(at + length).min(file.len()), vec![filler; length]);
                drop(parse_bytes(&damaged));
            }
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

/// A scan of a JPEG with the components from 1 on: the component or components, the Huffman table, the coefficients (the first and the
/// last one) and their bits.
struct Scan(&'static [u8], u8, [u8; 3]);

/// All coefficients of baseline scans.
const BASELINE: [u8; 3] = [0, 63, 0];
/// The first coefficient of all blocks.
const MEAN: [u8; 3] = [0, 0, 0];

/// Returns a JPEG of these scans, all of whose bits are 0. Its frame has this marker.
fn jpeg(marker: u8, (width, height): (u16, u16), components: u8, scans: impl IntoIterator<Item = Scan>) -> Vec<u8> {
    let segment =
        |marker: u8, content: &[u8]| [&[0xFF, marker], (content.len() as u16 + 2).to_be_bytes().as_slice(), content].concat();
    // A Huffman table in which the bit 0 is a symbol.
    let table = |number: u8, symbol: u8| segment(0xC4, &[&[number, 1], [0; 15].as_slice(), &[symbol]].concat());
    let mut frame = [&[8], height.to_be_bytes().as_slice(), &width.to_be_bytes(), &[components]].concat();
    (1..=components).for_each(|component| frame.extend([component, 0x11, 0]));
    let mut file = [&b"\xFF\xD8"[..], &segment(0xDB, &[&[0], [1; 64].as_slice()].concat()), &segment(marker, &frame)].concat();
    // A block without coefficients, a coefficient of -1, and 16384 blocks without coefficients.
    [table(0x00, 0), table(0x10, 0x01), table(0x11, 0xE0)].iter().for_each(|table| file.extend(table));
    for Scan(components, table, coefficients) in scans {
        let mut header = vec![components.len() as u8];
        components.iter().for_each(|component| header.extend([*component, table]));
        file.extend(segment(0xDA, &[&header[..], &coefficients].concat()));
        let blocks = usize::from(width).div_ceil(8) * usize::from(height).div_ceil(8);
        // 15 bits for 16384 blocks, one bit for each block, or two.
        let bits = if table == 1 { blocks.div_ceil(16_384) * 15 } else { blocks * if coefficients == MEAN { 1 } else { 2 } };
        file.extend(vec![0; bits.div_ceil(8)]);
    }
    file.extend(b"\xFF\xD9");
    file
}

/// Returns the position of the frame with this marker in a JPEG.
fn frame_position(file: &[u8], marker: u8) -> usize {
    file.windows(2).position(|pair| pair == [0xFF, marker]).unwrap()
}

#[test]
fn limits_the_scans_of_a_jpeg() {
    // Each scan looks at all coefficients of all blocks, and finds nothing to do.
    let scans = |count: usize| {
        let first = [Scan(&[1], 0, MEAN), Scan(&[1], 0, [63, 63, 0])];
        first.into_iter().chain((2..count).map(|_| Scan(&[1], 1, [1, 62, 0x10])))
    };
    let gray = |size, count| parse_bytes(&jpeg(0xC2, size, 1, scans(count)));

    assert_eq!(gray((10_000, 4000), 21), Err(ImageProblem::Scans));
    assert_eq!(gray((10_000, 4000), 92), Err(ImageProblem::Scans));
    assert!(gray((800, 600), 20).is_ok() && gray((800, 600), 92).is_ok());
    for (size, count) in [((10_000, 3500), 23), ((10_000, 1), 101)] {
        let baseline = jpeg(0xC0, size, 3, (0..count).map(|_| Scan(&[1], 1, BASELINE)));
        assert_eq!(parse_bytes(&baseline), Err(ImageProblem::Scans), "{count}");
    }
    let text = "is a JPEG with too many pixels or scans: save it as a baseline JPEG with one scan";
    assert_eq!(ImageProblem::Scans.to_string(), text);
}

#[test]
fn limits_the_memory_for_the_scans_of_a_jpeg() {
    let progressive = |size, components| parse_bytes(&jpeg(0xC2, size, components, [Scan(&[1], 0, MEAN)]));

    // 2 bytes for each component of a pixel, and 3 for its colour.
    assert_eq!(progressive((10_000, 3600), 3), Err(ImageProblem::Scans));
    assert_eq!(progressive((10_000, 2950), 4), Err(ImageProblem::Scans));
    assert!(progressive((800, 600), 3).is_ok() && progressive((800, 600), 4).is_ok());
    let one_after_the_other = jpeg(0xC0, (10_000, 3600), 3, [Scan(&[1], 1, BASELINE)]);
    assert_eq!(parse_bytes(&one_after_the_other), Err(ImageProblem::Scans));
    let mut hidden = jpeg(0xC2, (10_000, 3600), 3, [Scan(&[1, 2, 3], 0, MEAN)]);
    // In a profile, before the frame.
    hidden.splice(2..2, *b"\xFF\xE2\0\x1BICC_PROFILE\0\xFF\xC0\0\x0B\x08\0\x08\0\x08\x01\x01\x11\0");
    assert_eq!(parse_bytes(&hidden), Err(ImageProblem::Scans));
}

#[test]
fn colours_at_a_lower_resolution_need_less_memory_for_scans() {
    let mut file = jpeg(0xC2, (10_000, 4000), 3, [Scan(&[1], 0, MEAN)]);
    let components = frame_position(&file, 0xC2) + 10;
    // The quantisation table is missing, so that a file within the limits isn't decoded, but is damaged.
    file[components + 2] = 3;
    assert_eq!(parse_bytes(&file), Err(ImageProblem::Scans));
    // Half the width, and half of both sides.
    for factors in [0x21, 0x22] {
        file[components + 1] = factors;
        assert_eq!(parse_bytes(&file), Err(ImageProblem::Broken("JPEG")), "{factors:x}");
    }
}

#[test]
fn limits_hold_for_the_stored_file() {
    let mut file = jpeg(0xC0, (8, 8), 1, [Scan(&[1], 0, BASELINE)]);
    let frame = frame_position(&file, 0xC0);
    // A marker that the decoder takes for one of a segment, and `strip` for one without content: a frame of 17,000 × 17,000 pixels, and
    // the header of a comment, whose content is the small frame.
    file.splice(frame..frame, *b"\xFF\xD0\0\x13\xFF\xC2\0\x0B\x08\x42\x68\x42\x68\x01\x01\x11\0\xFF\xFE\0\x0F");
    let uploaded = ImageReader::with_format(Cursor::new(&file), ImageFormat::Jpeg);
    assert_eq!(uploaded.into_dimensions().unwrap(), (8, 8));
    // Rejected for its size, which is read before it is decoded.
    assert_eq!(parse_bytes(&file), Err(ImageProblem::Dimensions { width: 17_000, height: 17_000 }));
}
