//! Encoding of JSON values as bodies of a media type.

use std::sync::LazyLock;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use boxoffice_openapi::response::{essence, is_json};
use bytes::Bytes;
use serde_json::Value;

/// Images of one pixel by media type, in base64. They replace images for which the document has no example.
const PIXELS: [(&str, &str); 4] = [
    ("image/png", "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR42mNoAAAAggCB2kUIOwAAAABJRU5ErkJggg=="),
    (
        "image/jpeg",
        "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAP//////////////////////////////////////////////////////////////////////////////////////\
         wAALCAABAAEBAREA/8QAFAABAAAAAAAAAAAAAAAAAAAAA//EABQQAQAAAAAAAAAAAAAAAAAAAAD/2gAIAQEAAD8AN//Z",
    ),
    ("image/webp", "UklGRhoAAABXRUJQVlA4TA4AAAAvAAAAAAcQEf0PRET/Aw=="),
    ("image/gif", "R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"),
];

/// Returns a media type within a range of the document, such as `image/*`. A media type that is no range is returned unchanged.
pub fn concrete_media_type(media_type: &str) -> String {
    match essence(media_type) {
        "*/*" | "application/*" => "application/json".to_owned(),
        "image/*" => "image/png".to_owned(),
        range if range.ends_with("/*") => range.replace('*', "plain"),
        _ => media_type.to_owned(),
    }
}

/// Encodes a value as a body of a media type. The document represents bodies other than JSON as strings: images and, if the
/// schema has a binary format, other binary bodies in base64; text as it is.
pub fn encode(media_type: &str, value: &Value, is_binary: bool) -> Bytes {
    let essence = essence(media_type).to_ascii_lowercase();
    match value {
        _ if is_json(&essence) => value.to_string().into(),
        _ if pixel(&essence).is_some() => decode_image(&essence, value),
        Value::String(text) if !is_binary || is_text(&essence) => text.clone().into(),
        Value::String(text) => STANDARD.decode(text).map_or_else(|_| text.clone().into(), Bytes::from),
        _ => value.to_string().into(),
    }
}

/// Decodes an image from base64. Returns an image of one pixel if the value isn't an image of this media type.
fn decode_image(essence: &str, value: &Value) -> Bytes {
    let pixel = pixel(essence).unwrap_or_default();
    let decoded = value.as_str().and_then(|text| STANDARD.decode(text).ok()).map(Bytes::from);
    // Each of these formats begins with a fixed signature.
    decoded.filter(|decoded| decoded.get(..4) == pixel.get(..4)).unwrap_or(pixel)
}

/// Returns the image of one pixel of a media type.
fn pixel(essence: &str) -> Option<Bytes> {
    static DECODED: LazyLock<[Option<Bytes>; PIXELS.len()]> =
        LazyLock::new(|| PIXELS.map(|(_, image)| STANDARD.decode(image).ok().map(Bytes::from)));
    let index = PIXELS.iter().position(|(media_type, _)| *media_type == essence)?;
    DECODED[index].clone()
}

fn is_text(essence: &str) -> bool {
    essence.starts_with("text/") || ["xml", "yaml", "x-www-form-urlencoded"].iter().any(|end| essence.ends_with(end))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn media_range_becomes_a_type_within_it() {
        for (declared, expected) in [
            ("*/*", "application/json"),
            ("image/*", "image/png"),
            ("text/*", "text/plain"),
            ("text/html; charset=utf-8", "text/html; charset=utf-8"),
        ] {
            assert_eq!(concrete_media_type(declared), expected);
        }
    }

    #[test]
    fn image_has_its_media_type_for_any_value() {
        for (media_type, start) in [
            ("image/png", b"\x89PNG".as_slice()),
            ("image/jpeg", b"\xff\xd8\xff"),
            ("image/webp", b"RIFF"),
            ("image/gif", b"GIF8"),
        ] {
            for value in [json!("some text"), json!(null), json!("aGVsbG8=")] {
                assert!(encode(media_type, &value, true).starts_with(start), "{media_type} {value}");
            }
        }
        let larger = STANDARD.encode(b"\x89PNG and so on");
        assert_eq!(encode("image/png", &json!(larger), false), b"\x89PNG and so on".as_slice());
    }

    #[test]
    fn encodes_values_by_media_type() {
        assert_eq!(encode("application/problem+json", &json!("a"), false), b"\"a\"".as_slice());
        assert_eq!(encode("text/csv; charset=utf-8", &json!("YWJj"), true), b"YWJj".as_slice());
        assert_eq!(encode("application/pdf", &json!("YWJj"), true), b"abc".as_slice());
        assert_eq!(encode("application/javascript", &json!("test"), false), b"test".as_slice());
        assert_eq!(encode("application/xml", &json!("<a/>"), false), b"<a/>".as_slice());
    }
}
