//! Values as the bytes of a media type.

use std::sync::LazyLock;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde_json::Value;

use boxoffice_openapi::response::{essence, is_json};

/// Images of one pixel by media type, in base64: what stands for an image of which the document shows none.
const IMAGES: [(&str, &str); 4] = [
    ("image/png", "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR42mNoAAAAggCB2kUIOwAAAABJRU5ErkJggg=="),
    (
        "image/jpeg",
        "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAP//////////////////////////////////////////////////////////////////////////////////////\
         wAALCAABAAEBAREA/8QAFAABAAAAAAAAAAAAAAAAAAAAA//EABQQAQAAAAAAAAAAAAAAAAAAAAD/2gAIAQEAAD8AN//Z",
    ),
    ("image/webp", "UklGRhoAAABXRUJQVlA4TA4AAAAvAAAAAAcQEf0PRET/Aw=="),
    ("image/gif", "R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"),
];

/// A media type that a range of the document, such as `image/*`, may be answered in; one that is no range is itself.
pub fn concrete(media_type: &str) -> String {
    match essence(media_type) {
        "*/*" | "application/*" => "application/json".to_owned(),
        "image/*" => "image/png".to_owned(),
        range if range.ends_with("/*") => range.replace('*', "plain"),
        _ => media_type.to_owned(),
    }
}

/// A value as a body of a media type. What JSON can't say stands as a text in the document: images and other binary bodies in
/// base64, where its schema says that it is binary; other texts as they are.
pub fn bytes(media_type: &str, value: &Value, is_binary: bool) -> Bytes {
    let essence = essence(media_type).to_ascii_lowercase();
    match value {
        _ if is_json(&essence) => value.to_string().into(),
        _ if image(&essence).is_some() => image_of(&essence, value),
        Value::String(text) if !is_binary || is_text(&essence) => text.clone().into(),
        Value::String(text) => STANDARD.decode(text).map_or_else(|_| text.clone().into(), Bytes::from),
        _ => value.to_string().into(),
    }
}

/// The image that a value is in base64; one of a pixel, where it isn't an image of this kind.
fn image_of(essence: &str, value: &Value) -> Bytes {
    let pixel = image(essence).unwrap_or_default();
    let given = value.as_str().and_then(|text| STANDARD.decode(text).ok()).map(Bytes::from);
    // Each of these formats is known by its first bytes.
    given.filter(|given| given.get(..4) == pixel.get(..4)).unwrap_or(pixel)
}

/// The image of one pixel of a media type; `None` where there is none.
fn image(essence: &str) -> Option<Bytes> {
    static DECODED: LazyLock<[Option<Bytes>; IMAGES.len()]> =
        LazyLock::new(|| IMAGES.map(|(_, image)| STANDARD.decode(image).ok().map(Bytes::from)));
    let number = IMAGES.iter().position(|(media_type, _)| *media_type == essence)?;
    DECODED[number].clone()
}

fn is_text(essence: &str) -> bool {
    essence.starts_with("text/") || ["xml", "yaml", "x-www-form-urlencoded"].iter().any(|end| essence.ends_with(end))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_range_is_answered_in_a_type_of_it() {
        for (declared, answered) in [
            ("*/*", "application/json"),
            ("image/*", "image/png"),
            ("text/*", "text/plain"),
            ("text/html; charset=utf-8", "text/html; charset=utf-8"),
        ] {
            assert_eq!(concrete(declared), answered);
        }
    }

    #[test]
    fn an_image_is_of_its_kind_whatever_the_value_is() {
        for (media_type, start) in [
            ("image/png", b"\x89PNG".as_slice()),
            ("image/jpeg", b"\xff\xd8\xff"),
            ("image/webp", b"RIFF"),
            ("image/gif", b"GIF8"),
        ] {
            for value in [json!("some text"), json!(null), json!("aGVsbG8=")] {
                assert!(bytes(media_type, &value, true).starts_with(start), "{media_type} {value}");
            }
        }
        let larger = STANDARD.encode(b"\x89PNG and so on");
        assert_eq!(bytes("image/png", &json!(larger), false), b"\x89PNG and so on".as_slice());
    }

    #[test]
    fn a_value_is_written_as_its_media_type_has_it() {
        assert_eq!(bytes("application/problem+json", &json!("a"), false), b"\"a\"".as_slice());
        assert_eq!(bytes("text/csv; charset=utf-8", &json!("YWJj"), true), b"YWJj".as_slice());
        assert_eq!(bytes("application/pdf", &json!("YWJj"), true), b"abc".as_slice());
        assert_eq!(bytes("application/javascript", &json!("test"), false), b"test".as_slice());
        assert_eq!(bytes("application/xml", &json!("<a/>"), false), b"<a/>".as_slice());
    }
}
