//! Removal of metadata from uploaded images.

use std::io::Cursor;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use image::metadata::Orientation;
use image::{ImageDecoder, ImageFormat, ImageReader, Rgb, RgbImage};
use serde_json::json;

use crate::support::{TestApp, test_on};

const WIDTH: u32 = 40;
const HEIGHT: u32 = 24;
/// Bytes that only metadata contains.
const SECRET: &[u8] = b"5.5571N 0.1963W";

fn encode(format: ImageFormat) -> Vec<u8> {
    let mut file = Cursor::new(Vec::new());
    let picture = RgbImage::from_fn(WIDTH, HEIGHT, |x, y| Rgb([(x * 6) as u8, (y * 10) as u8, 0x80]));
    picture.write_to(&mut file, format).unwrap();
    file.into_inner()
}

/// Returns Exif data with a camera, this orientation and a place.
fn exif(orientation: u8) -> Vec<u8> {
    let camera = b"\x0F\x01\x02\0\x10\0\0\0\x32\0\0\0";
    let orientation = [0x12, 1, 3, 0, 1, 0, 0, 0, orientation, 0, 0, 0];
    let places = b"\x25\x88\x04\0\x01\0\0\0\x42\0\0\0";
    let place = b"\x1B\0\x07\0\x10\0\0\0\x54\0\0\0";
    let secret = [SECRET, b"\0"].concat();
    let entries = [b"II*\0\x08\0\0\0\x03\0".as_slice(), camera, &orientation, places, &[0; 4]].concat();
    [&entries, &secret, b"\x01\0".as_slice(), place, &[0; 4], &secret].concat()
}

/// Returns Exif data with this orientation alone.
fn orientation_alone(orientation: u8) -> Vec<u8> {
    [b"MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0".as_slice(), &[orientation], &[0; 6]].concat()
}

fn segment(marker: u8, content: &[u8]) -> Vec<u8> {
    [&[0xFF, marker], (content.len() as u16 + 2).to_be_bytes().as_slice(), content].concat()
}

/// Returns a JPEG with these segments after the first one, which is that of JFIF.
fn jpeg(segments: &[Vec<u8>]) -> Vec<u8> {
    let file = encode(ImageFormat::Jpeg);
    assert_eq!(&file[..4], b"\xFF\xD8\xFF\xE0");
    [&file[..20], &segments.concat(), &file[20..]].concat()
}

fn jpeg_exif(data: &[u8]) -> Vec<u8> {
    segment(0xE1, &[b"Exif\0\0", data].concat())
}

fn chunk(kind: &[u8; 4], content: &[u8]) -> Vec<u8> {
    let checked = [kind, content].concat();
    [(content.len() as u32).to_be_bytes().as_slice(), &checked, &crc32fast::hash(&checked).to_be_bytes()].concat()
}

/// Returns a PNG with these chunks after its header.
fn png(chunks: &[Vec<u8>]) -> Vec<u8> {
    let file = encode(ImageFormat::Png);
    [&file[..33], &chunks.concat(), &file[33..]].concat()
}

fn webp_chunk(kind: &[u8; 4], content: &[u8]) -> Vec<u8> {
    let padding = vec![0; content.len() % 2];
    [kind, (content.len() as u32).to_le_bytes().as_slice(), content, &padding].concat()
}

/// Returns a WebP with these flags and chunks around its picture.
fn webp(flags: u8, before: &[Vec<u8>], picture: &[u8], after: &[Vec<u8>]) -> Vec<u8> {
    let header = [flags, 0, 0, 0, WIDTH as u8 - 1, 0, 0, HEIGHT as u8 - 1, 0, 0];
    let content = [b"WEBP", webp_chunk(b"VP8X", &header).as_slice(), &before.concat(), picture, &after.concat()].concat();
    webp_chunk(b"RIFF", &content)
}

/// Returns the orientation and the pixels of an image as they are stored.
fn decode(file: &[u8]) -> (Orientation, Vec<u8>) {
    let reader = ImageReader::new(Cursor::new(file)).with_guessed_format().unwrap();
    let mut decoder = reader.into_decoder().unwrap();
    let mut pixels = vec![0; decoder.total_bytes() as usize];
    let orientation = decoder.orientation().unwrap();
    decoder.read_image(&mut pixels).unwrap();
    (orientation, pixels)
}

/// Uploads a banner and returns it as it is served.
async fn upload(app: &TestApp, (key, uri, path): (&str, &str, &str), file: &[u8]) -> Vec<u8> {
    let changed = app.put(key, uri, json!({ "banner": BASE64_STANDARD.encode(file) })).await;
    assert_eq!(changed.status, 200, "{}", changed.body);
    app.fetch(path).await.bytes().await.unwrap().to_vec()
}

#[test_on(sqlite, postgres)]
async fn metadata_of_uploaded_images_is_removed(app: TestApp) {
    let (ama, event) = app.sign_up_host("ama", &[]).await;
    let (key, path) = (ama.key.as_str(), format!("/media/banner/{}", event.id));
    let profile = b"a profile".as_slice();
    let picture = encode(ImageFormat::WebP)[12..].to_vec();

    for orientation in [1, 3, 6] {
        let (data, kept) = (exif(orientation), (orientation != 1).then(|| orientation_alone(orientation)));
        let of_camera = jpeg(&[
            jpeg_exif(&data),
            segment(0xE1, &[b"http://ns.adobe.com/xap/1.0/\0", SECRET].concat()),
            segment(0xE2, &[b"ICC_PROFILE\0\x01\x01", profile].concat()),
            segment(0xE2, &[b"MPF\0", SECRET].concat()),
            segment(0xED, &[b"Photoshop 3.0\0", SECRET].concat()),
            segment(0xFE, SECRET),
        ]);
        let profile_segment = segment(0xE2, &[b"ICC_PROFILE\0\x01\x01", profile].concat());
        let jpeg_kept = jpeg(&kept.iter().map(|data| jpeg_exif(data)).chain([profile_segment]).collect::<Vec<_>>());

        let text = [b"Comment\0", SECRET].concat();
        let gamma = chunk(b"gAMA", &45455_u32.to_be_bytes());
        let with_texts = png(&[chunk(b"tEXt", &text), gamma.clone(), chunk(b"eXIf", &data), chunk(b"prIv", SECRET)]);
        let png_kept = png(&kept.iter().map(|data| chunk(b"eXIf", data)).chain([gamma]).collect::<Vec<_>>());

        let colours = [webp_chunk(b"ICCP", profile)];
        let with_xmp = webp(0x2C, &colours, &picture, &[webp_chunk(b"EXIF", &data), webp_chunk(b"XMP ", SECRET)]);
        let kept_chunk: Vec<_> = kept.iter().map(|data| webp_chunk(b"EXIF", data)).collect();
        let webp_kept = webp(if kept.is_some() { 0x28 } else { 0x20 }, &colours, &picture, &kept_chunk);

        for (file, expected) in [(of_camera, jpeg_kept), (with_texts, png_kept), (with_xmp, webp_kept)] {
            let with_rest = [file.as_slice(), b"\0\0ftypmp42", SECRET].concat();
            let served = upload(&app, (key, &event.uri, &path), &with_rest).await;
            let again = upload(&app, (key, &event.uri, &path), &served).await;

            assert!(served == expected, "{orientation}: {}", served.escape_ascii());
            assert!(again == served, "{orientation}");
            assert_eq!(decode(&served), decode(&file));
            assert_eq!(decode(&served).0.to_exif(), orientation);
            assert!(!served.windows(SECRET.len()).any(|part| part == SECRET));
        }
    }
}

/// Decoders ignore such bytes, or read them as segments.
#[test_on(sqlite, postgres)]
async fn bytes_between_segments_are_removed(app: TestApp) {
    let (ama, event) = app.sign_up_host("ama", &[]).await;
    let (key, path) = (ama.key.as_str(), format!("/media/banner/{}", event.id));
    let data = jpeg_exif(&exif(6));
    let kept = jpeg(&[jpeg_exif(&orientation_alone(6))]);
    let file = encode(ImageFormat::Jpeg);
    let (start, following) = file.split_at(20);

    for between in [SECRET.to_vec(), vec![0xFF; 5]] {
        let served = upload(&app, (key, &event.uri, &path), &jpeg(&[data.clone(), between.clone()])).await;

        assert!(served == kept, "{}: {}", between.escape_ascii(), served.escape_ascii());
    }

    // An unknown segment contains the marker and the length of the Exif data.
    let length = (data.len() as u16).to_be_bytes();
    let hidden = [b"\xFF\xD8\xFF\xFF\xE1\0\x02\xE0\xFF\x03\0\x06\xFF\xE1", length.as_slice(), &data[4..], following].concat();
    for file in [
        hidden,
        [&start[..2], &data[..6], &start[2..], following].concat(),
        jpeg(&[[b"\xFF\x00\xE1", &data[2..]].concat()]),
        jpeg(&[[b"\xFF\x01\xFF\xD0", SECRET].concat()]),
    ] {
        let changed = app.put(key, &event.uri, json!({ "banner": BASE64_STANDARD.encode(file) })).await;

        let served = app.fetch(&path).await.bytes().await.unwrap().to_vec();
        assert!([200, 400].contains(&changed.status), "{}", changed.body);
        assert!(!served.windows(SECRET.len()).any(|part| part == SECRET));
        assert_eq!(decode(&served).1.len(), (WIDTH * HEIGHT * 3) as usize);
    }
}

#[test_on(sqlite, postgres)]
async fn images_without_metadata_are_served_unchanged(app: TestApp) {
    let (ama, event) = app.sign_up_host("ama", &[]).await;
    let path = format!("/media/banner/{}", event.id);
    let picture = encode(ImageFormat::WebP)[12..].to_vec();
    let frame = [&[0; 6], [WIDTH as u8 - 1, 0, 0, HEIGHT as u8 - 1, 0, 0, 100, 0, 0, 0].as_slice(), &picture].concat();
    let animation = [webp_chunk(b"ANIM", &[0; 6]), webp_chunk(b"ANMF", &frame), webp_chunk(b"ANMF", &frame)];
    let mut animated_png = Vec::new();
    let mut encoder = png::Encoder::new(&mut animated_png, 1, 1);
    encoder.set_animated(2, 0).unwrap();
    let mut writer = encoder.write_header().unwrap();
    writer.write_image_data(&[0]).unwrap();
    writer.write_image_data(&[255]).unwrap();
    writer.finish().unwrap();

    for file in [
        encode(ImageFormat::Jpeg),
        encode(ImageFormat::Png),
        encode(ImageFormat::WebP),
        png(&[chunk(b"pHYs", &[0, 0, 11, 19, 0, 0, 11, 19, 1])]),
        webp(0, &[], &picture, &[]),
        webp(0x02, &animation, &[], &[]),
        animated_png,
    ] {
        let served = upload(&app, (&ama.key, &event.uri, &path), &file).await;

        assert!(served == file, "{}", served.escape_ascii());
    }
}
