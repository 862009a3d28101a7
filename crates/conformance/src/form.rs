//! Bodies that are not JSON: forms, with or without files, texts and bytes.

use anyhow::bail;
use boxoffice_openapi::to_plain_string;
use serde_json::Value;

/// Separates the parts of a multipart body.
const BOUNDARY: &str = "compare-boundary-7d1f0c";

/// Encodes a value as a body of a media type. Returns the media type with its parameters, and the body.
///
/// # Errors
/// Fails if the media type is neither a form nor text nor bytes.
pub fn encode(media_type: &str, schema: &Value, value: &Value) -> anyhow::Result<(String, Vec<u8>)> {
    let essence = media_type.split(';').next().unwrap_or(media_type).trim().to_ascii_lowercase();
    Ok(match (essence.as_str(), value) {
        ("application/x-www-form-urlencoded", Value::Object(members)) => {
            let mut pairs = form_urlencoded::Serializer::new(String::new());
            for (name, member) in members.iter().filter(|(_, member)| !member.is_null()) {
                for text in texts(member) {
                    pairs.append_pair(name, &text);
                }
            }
            (essence, pairs.finish().into_bytes())
        }
        ("multipart/form-data", Value::Object(members)) => {
            let mut body = String::new();
            for (name, member) in members.iter().filter(|(_, member)| !member.is_null()) {
                let format = &schema["properties"][name]["format"];
                let file = if format == "binary" {
                    format!("; filename=\"{name}.bin\"\r\nContent-Type: application/octet-stream")
                } else {
                    String::new()
                };
                for text in texts(member) {
                    body += &format!("--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"{name}\"{file}\r\n\r\n{text}\r\n");
                }
            }
            (format!("multipart/form-data; boundary={BOUNDARY}"), (body + &format!("--{BOUNDARY}--\r\n")).into_bytes())
        }
        ("application/octet-stream", value) => (essence, to_plain_string(value).into_bytes()),
        (text, value) if text.starts_with("text/") => (media_type.to_owned(), to_plain_string(value).into_bytes()),
        _ => bail!("its body is {media_type}, which is neither JSON nor a form, text or bytes"),
    })
}

/// Returns the texts of a member: one for each item of an array.
fn texts(member: &Value) -> Vec<String> {
    match member {
        Value::Array(items) => items.iter().map(to_plain_string).collect(),
        member => vec![to_plain_string(member)],
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use serde_json::json;

    use super::encode;

    #[test]
    fn encodes_forms_as_declared() {
        let value = json!({ "name": "A & B", "tags": ["x", "y"], "file": "bytes", "absent": null });
        let schema = json!({ "properties": { "file": { "type": "string", "format": "binary" } } });

        let (_, form) = encode("application/x-www-form-urlencoded", &schema, &value).unwrap();
        let (media_type, parts) = encode("multipart/form-data", &schema, &value).unwrap();
        let parts = String::from_utf8(parts).unwrap();

        assert_eq!(String::from_utf8(form).unwrap(), "name=A+%26+B&tags=x&tags=y&file=bytes");
        assert!(media_type.starts_with("multipart/form-data; boundary="), "{media_type}");
        assert_eq!(parts.matches("Content-Disposition").count(), 4, "{parts}");
        assert!(
            parts.contains("name=\"file\"; filename=\"file.bin\"\r\nContent-Type: application/octet-stream\r\n\r\nbytes"),
            "{parts}"
        );
        assert!(encode("application/pdf", &schema, &value).is_err());
    }
}
