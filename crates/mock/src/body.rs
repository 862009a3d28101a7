//! Encoding of JSON values as bodies of a media type.

use std::sync::LazyLock;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use boxoffice_openapi::response::{essence, is_json, is_text, media_type_parameter};
use boxoffice_openapi::{field_values, to_plain_string};
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

/// Media types of one JSON value on each line.
const JSON_LINES: [&str; 4] = ["application/x-ndjson", "application/ndjson", "application/jsonl", "application/x-jsonlines"];

/// Separates the parts of a multipart body, unless the document declares another boundary.
const BOUNDARY: &str = "mock-boundary-7d1f0c";

/// Returns a media type within a range of the document, such as `image/*`. That of a multipart body gets a boundary. Another one is returned
/// unchanged.
pub fn concrete_media_type(media_type: &str) -> String {
    match essence(media_type) {
        "*/*" | "application/*" | "application/*+json" => "application/json".to_owned(),
        "multipart/*" => format!("multipart/form-data; boundary={BOUNDARY}"),
        "image/*" => "image/png".to_owned(),
        multipart if multipart.starts_with("multipart/") && media_type_parameter(media_type, "boundary").is_none() => {
            format!("{multipart}; boundary={BOUNDARY}")
        }
        range if range.ends_with("/*") => range.replace('*', "plain"),
        _ => media_type.to_owned(),
    }
}

/// Encodes a value as a body of a media type. The document represents bodies other than JSON as strings: images and, if the
/// schema has a binary format, other binary bodies in base64; text as it is.
pub fn encode(media_type: &str, value: &Value, is_binary: bool) -> Bytes {
    let essence = essence(media_type).to_ascii_lowercase();
    match value {
        Value::Array(items) if JSON_LINES.contains(&essence.as_str()) => {
            items.iter().map(|item| format!("{item}\n")).collect::<String>().into()
        }
        Value::Object(_) if essence == "application/x-www-form-urlencoded" => {
            let fields = form_fields(value).map(|(name, value)| (name, to_plain_string(value)));
            form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish().into()
        }
        value if essence.starts_with("multipart/") => {
            encode_parts(media_type_parameter(media_type, "boundary").unwrap_or(BOUNDARY), value).into()
        }
        _ if essence == "text/event-stream" => encode_events(value).into(),
        _ if is_json(&essence) => value.to_string().into(),
        _ if pixel(&essence).is_some() => decode_image(&essence, value),
        Value::String(text) if !is_binary || is_text(&essence) => text.clone().into(),
        Value::String(text) => STANDARD.decode(text).map_or_else(|_| text.clone().into(), Bytes::from),
        _ => value.to_string().into(),
    }
}

/// Returns a multipart body: a text that has the boundary as it is, a part for each property of an object, or for each item of a list.
/// Objects are JSON.
fn encode_parts(boundary: &str, value: &Value) -> String {
    let part = |name: Option<&String>, value: &Value| {
        let disposition = name.map(|name| format!("\r\nContent-Disposition: form-data; name=\"{name}\"")).unwrap_or_default();
        let media_type = if value.is_object() { "\r\nContent-Type: application/json" } else { "" };
        format!("--{boundary}{disposition}{media_type}\r\n\r\n{}\r\n", to_plain_string(value))
    };
    let parts: String = match value {
        Value::String(text) if text.contains(&format!("--{boundary}--")) => return text.clone(),
        Value::Object(_) => form_fields(value).map(|(name, value)| part(Some(name), value)).collect(),
        value => field_values(value).iter().map(|item| part(None, item)).collect(),
    };
    format!("{parts}--{boundary}--\r\n")
}

/// Returns a stream of events (WHATWG HTML, section 9.2): a text that has fields as it is, and any other value as the data of an event. Of
/// a list, each item is an event; an object that has `data` is one with these fields.
fn encode_events(value: &Value) -> String {
    const FIELDS: [&str; 4] = ["event", "data", "id", "retry"];
    let lines = |name: &str, value: &Value| {
        let text = to_plain_string(value);
        text.split('\n').map(|line| format!("{name}: {}\n", line.trim_end_matches('\r'))).collect::<String>()
    };
    let has_field = |text: &str| FIELDS.iter().any(|name| text.lines().any(|line| line.starts_with(&format!("{name}:"))));
    match value {
        Value::Array(events) => events.iter().map(encode_events).collect(),
        Value::String(text) if has_field(text) => format!("{}\n\n", text.trim_end()),
        Value::Object(fields) if fields.contains_key("data") && fields.keys().all(|name| FIELDS.contains(&name.as_str())) => {
            fields.iter().filter(|(_, value)| !value.is_null()).map(|(name, value)| lines(name, value)).collect::<String>() + "\n"
        }
        value => lines("data", value) + "\n",
    }
}

/// Returns the fields of a form: a property that is a list has a field for each item.
fn form_fields(form: &Value) -> impl Iterator<Item = (&String, &Value)> {
    let properties = form.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null());
    properties.flat_map(|(name, value)| field_values(value).iter().map(move |value| (name, value)))
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
            ("application/*+json", "application/json"),
            ("multipart/*", "multipart/form-data; boundary=mock-boundary-7d1f0c"),
            ("multipart/mixed", "multipart/mixed; boundary=mock-boundary-7d1f0c"),
            ("multipart/mixed; boundary=x", "multipart/mixed; boundary=x"),
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
        assert_eq!(encode("application/x-ndjson", &json!([{ "a": 1 }, "b"]), false), b"{\"a\":1}\n\"b\"\n".as_slice());
        let form = json!({ "a": "x y", "b": [1, 2], "c": { "d": true }, "e": null });
        assert_eq!(encode("application/x-www-form-urlencoded", &form, false), b"a=x+y&b=1&b=2&c=%7B%22d%22%3Atrue%7D".as_slice());
        let encoded = |media_type, value| String::from_utf8(encode(media_type, &value, false).to_vec()).unwrap_or_default();
        let parts = encoded("multipart/mixed; boundary=x", json!({ "a": "x y", "b": [1, 2], "c": { "d": true }, "e": null }));
        let head = "--x\r\nContent-Disposition: form-data; name=";
        let json = "\r\nContent-Type: application/json";
        let b = format!("{head}\"b\"\r\n\r\n1\r\n{head}\"b\"\r\n\r\n2\r\n");
        assert_eq!(parts, format!("{head}\"a\"\r\n\r\nx y\r\n{b}{head}\"c\"{json}\r\n\r\n{{\"d\":true}}\r\n--x--\r\n"));
        let parts = encoded("multipart/mixed; boundary=x", json!(["a", { "b": 1 }]));
        assert_eq!(parts, format!("--x\r\n\r\na\r\n--x{json}\r\n\r\n{{\"b\":1}}\r\n--x--\r\n"));
        assert_eq!(encoded("multipart/mixed; boundary=x", json!("--x\r\n\r\na\r\n--x--")), "--x\r\n\r\na\r\n--x--");
    }
}
