//! Bodies that are not JSON: forms, with or without files, texts and bytes.

use std::sync::Arc;

use anyhow::bail;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use boxoffice_openapi::response::{BodyContent, essence};
use boxoffice_openapi::{Operation, PNG_PIXEL, Parameter, ParameterLocation, Schema, field_values, resolve, to_plain_string};
use serde_json::{Value, json};

use super::http_client::Request;

/// Separates the parts of a multipart body.
const BOUNDARY: &str = "compare-boundary-7d1f0c";

/// Begins the head of each part of a form.
const DISPOSITION: &str = "Content-Disposition: form-data";

/// Encodes a value as a body of a media type. `encoding` has the Encoding Objects of the properties. Returns the media type with its
/// parameters, and the body.
///
/// # Errors
/// Fails if the media type is neither a form nor text nor bytes.
pub fn encode(content: &BodyContent, encoding: &Value, value: &Value) -> anyhow::Result<(String, Vec<u8>)> {
    let media_type = &content.media_type;
    let essence = media_type.split(';').next().unwrap_or(media_type).trim().to_ascii_lowercase();
    Ok(match (essence.as_str(), value) {
        ("application/x-www-form-urlencoded", Value::Object(members)) => {
            let mut pairs = form_urlencoded::Serializer::new(String::new());
            for (name, member) in members.iter().filter(|(_, member)| !member.is_null()) {
                pairs.extend_pairs(styled(content, encoding, value, name, member)?);
            }
            (essence, pairs.finish().into_bytes())
        }
        ("multipart/form-data", Value::Object(members)) => {
            let mut body = String::new();
            for (name, member) in members.iter().filter(|(_, member)| !member.is_null()) {
                let property = property(content, value, name);
                for item in field_values(member) {
                    let property = if member.is_array() { &property["items"] } else { property };
                    body += &part(name, property, &encoding[name], item);
                }
            }
            (format!("multipart/form-data; boundary={BOUNDARY}"), (body + &format!("--{BOUNDARY}--\r\n")).into_bytes())
        }
        ("image/png", Value::String(_)) => (essence, BASE64_STANDARD.decode(PNG_PIXEL)?),
        ("application/octet-stream", value) => (essence, to_plain_string(value).into_bytes()),
        (_, value) if is_bytes(content) && !essence.ends_with("xml") && !essence.contains('*') => {
            (essence, to_plain_string(value).into_bytes())
        }
        (text, value) if text.starts_with("text/") => (media_type.clone(), to_plain_string(value).into_bytes()),
        _ => bail!("its body is {media_type}, which is neither JSON nor a form, text or bytes"),
    })
}

/// Returns the Encoding Objects of the body of an operation, by the names of its properties.
pub fn encoding(document: &Value, operation: &Operation, content: &BodyContent) -> Value {
    let body = document.pointer(&format!("{}/requestBody", operation.pointer)).unwrap_or(&Value::Null);
    resolve(document, body)["content"][&content.media_type]["encoding"].clone()
}

/// A property of a form.
#[derive(Debug)]
pub struct FormField {
    /// The property as a parameter, which serializes its values.
    pub parameter: Parameter,
    encoding: Value,
}

impl FormField {
    /// Creates a property of a form. `encoding` is its Encoding Object. `None` if the media type is no form, or the encoding is invalid.
    pub fn new(media_type: &str, name: &str, is_required: bool, schema: Arc<Schema>, encoding: &Value) -> Option<Self> {
        let is_form = ["application/x-www-form-urlencoded", "multipart/form-data"].contains(&essence(media_type));
        let has_style = encoding.get("style").or_else(|| encoding.get("explode")).is_some();
        // Without a style, an object is JSON (OpenAPI 3.0, Encoding Object).
        let object = json!({ "contentType": "application/json" });
        let node = if !has_style && schema.resolved["type"] == "object" { &object } else { encoding };
        let parameter =
            Parameter::from_parts(name, ParameterLocation::Query, is_required, schema, node).ok().filter(|_| is_form)?;
        Some(Self { parameter, encoding: encoding.clone() })
    }

    /// Returns a copy of a request with another value of the property, or without it.
    pub fn set(&self, request: &Request, value: Option<&Value>) -> Request {
        let name = &self.parameter.name;
        let body = request.body.as_deref().unwrap_or_default();
        let is_multipart = body.starts_with(format!("--{BOUNDARY}").as_bytes());
        let changed = if is_multipart {
            let start = format!("--{BOUNDARY}\r\n");
            let end = format!("--{BOUNDARY}--\r\n");
            let text = String::from_utf8_lossy(body);
            let is_own = |part: &str| part.starts_with(&format!("{DISPOSITION}; name=\"{name}\""));
            let others = text.trim_end_matches(end.as_str()).split(&start).filter(|part| !part.is_empty() && !is_own(part));
            let mut parts: String = others.map(|part| format!("{start}{part}")).collect();
            for item in value.map(field_values).unwrap_or_default() {
                let schema = &self.parameter.schema.resolved;
                parts +=
                    &part(name, if value.is_some_and(Value::is_array) { &schema["items"] } else { schema }, &self.encoding, item);
            }
            (parts + &end).into_bytes()
        } else {
            let others = form_urlencoded::parse(body).filter(|(other, _)| !self.parameter.is_sent_as(other));
            let mut pairs = form_urlencoded::Serializer::new(String::new());
            pairs.extend_pairs(others).extend_pairs(value.map(|value| self.parameter.serialize(value)).unwrap_or_default());
            pairs.finish().into_bytes()
        };
        Request { body: Some(changed), ..request.clone() }
    }
}

/// Returns the schema of a property of a form: that of the alternative (`oneOf`, `anyOf`) to which the form belongs, or else any.
fn property<'c>(content: &'c BodyContent, form: &Value, name: &str) -> &'c Value {
    let Some(schema) = &content.schema else { return &Value::Null };
    let declared = schema.parts_for(form).into_iter().find_map(|(_, part)| part["properties"].get(name));
    let any = || schema.properties().into_iter().find(|(other, _)| *other == name).map(|(_, property)| property);
    declared.or_else(any).unwrap_or(&Value::Null)
}

/// Returns if a body is bytes.
fn is_bytes(content: &BodyContent) -> bool {
    content.schema.as_ref().is_none_or(|schema| schema.resolved["format"] == "binary" || schema.resolved == json!({}))
}

/// Returns the names and texts of a member of a URL-encoded form: in the declared style, or else one for each item of an array.
fn styled(
    content: &BodyContent,
    encoding: &Value,
    form: &Value,
    name: &str,
    member: &Value,
) -> anyhow::Result<Vec<(String, String)>> {
    let encoding = &encoding[name];
    let has_style = encoding.get("style").or_else(|| encoding.get("explode")).is_some();
    if let Some(schema) = content.schema.as_ref().filter(|_| has_style) {
        let property = Arc::new(schema.part(property(content, form, name)));
        return Ok(Parameter::from_parts(name, ParameterLocation::Query, false, property, encoding)?.serialize(member));
    }
    Ok(field_values(member).iter().map(|item| (name.to_owned(), to_plain_string(item))).collect())
}

/// Returns a part of a multipart form, with the declared or else the default media type (OpenAPI 3.0, Encoding Object).
fn part(name: &str, schema: &Value, encoding: &Value, value: &Value) -> String {
    let is_file = schema["format"] == "binary";
    let declared =
        encoding["contentType"].as_str().and_then(|types| types.split(',').map(str::trim).find(|kind| !kind.contains('*')));
    let default = match value {
        _ if is_file => Some("application/octet-stream"),
        Value::Object(_) => Some("application/json"),
        _ => None,
    };
    let file = if is_file { format!("; filename=\"{name}.bin\"") } else { String::new() };
    let media_type = declared.or(default).map(|kind| format!("\r\nContent-Type: {kind}")).unwrap_or_default();
    let text = to_plain_string(value);
    format!("--{BOUNDARY}\r\n{DISPOSITION}; name=\"{name}\"{file}{media_type}\r\n\r\n{text}\r\n")
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use boxoffice_openapi::Contract;

    use super::*;

    /// Encodes a value as a declared body.
    fn encode(media_type: &str, schema: &Value, encoding: Value, value: &Value) -> anyhow::Result<(String, String)> {
        let content = json!({ media_type: { "schema": schema, "encoding": encoding } });
        let operation = json!({ "requestBody": { "content": content }, "responses": { "204": {} } });
        let contract = Contract::new(json!({ "openapi": "3.0.3", "paths": { "/a": { "post": operation } } })).unwrap();
        let body = contract.operations().next().unwrap().body.as_ref().unwrap();
        let (media_type, body) = super::encode(&body.contents[0], &encoding, value)?;
        Ok((media_type, String::from_utf8(body).unwrap()))
    }

    #[test]
    fn encodes_forms_as_declared() {
        let value = json!({ "name": "A & B", "tags": ["x", "y"], "file": "bytes", "absent": null });
        let schema = json!({ "properties": { "file": { "type": "string", "format": "binary" } } });

        let (_, form) = encode("application/x-www-form-urlencoded", &schema, json!({}), &value).unwrap();
        let (media_type, parts) = encode("multipart/form-data", &schema, json!({}), &value).unwrap();

        assert_eq!(form, "name=A+%26+B&tags=x&tags=y&file=bytes");
        assert!(media_type.starts_with("multipart/form-data; boundary="), "{media_type}");
        assert_eq!(parts.matches("Content-Disposition").count(), 4, "{parts}");
        assert!(
            parts.contains("name=\"file\"; filename=\"file.bin\"\r\nContent-Type: application/octet-stream\r\n\r\nbytes"),
            "{parts}"
        );
        assert!(encode("application/pdf", &schema, json!({}), &value).is_err());
    }

    #[test]
    fn properties_of_forms_are_set_and_removed() {
        let schema = json!({ "properties": { "tags": { "type": "array", "items": { "type": "string" } } } });
        let value = json!({ "name": "A", "tags": ["x", "y"] });
        for (media_type, kept) in
            [("application/x-www-form-urlencoded", "name=A"), ("multipart/form-data", "name=\"name\"\r\n\r\nA\r\n")]
        {
            let (_, body) = encode(media_type, &schema, json!({}), &value).unwrap();
            let content = json!({ media_type: { "schema": schema } });
            let operation = json!({ "requestBody": { "content": content }, "responses": { "204": {} } });
            let contract = Contract::new(json!({ "openapi": "3.0.3", "paths": { "/a": { "post": operation } } })).unwrap();
            let content = &contract.operations().next().unwrap().body.as_ref().unwrap().contents[0];
            let declared = Arc::new(content.schema.as_ref().unwrap().part(&schema["properties"]["tags"]));
            let field = FormField::new(media_type, "tags", false, declared, &Value::Null).unwrap();
            let request = Request { body: Some(body.into_bytes()), ..Request::new("POST", "/a") };
            let set = |value| String::from_utf8(field.set(&request, value).body.unwrap()).unwrap();
            let (removed, changed) = (set(None), set(Some(&json!(["z"]))));
            assert!(removed.contains(kept) && !removed.contains("tags"), "{removed}");
            let (_, expected) = encode(media_type, &schema, json!({}), &json!({ "name": "A", "tags": ["z"] })).unwrap();
            assert_eq!(changed, expected);
        }
    }

    #[test]
    fn bytes_have_any_media_type() {
        let encode = |media_type: &str, schema: Value| encode(media_type, &schema, json!({}), &json!("bytes"));
        let binary = json!({ "type": "string", "format": "binary" });
        let expected = ("application/pdf".to_owned(), "bytes".to_owned());
        assert_eq!(encode("application/pdf", binary.clone()).unwrap(), expected);
        assert_eq!(encode("application/pdf", json!({})).unwrap(), expected);
        assert!(encode("application/*", binary).is_err());
        assert!(encode("application/xml", json!({})).is_err());
    }

    #[test]
    fn parts_have_declared_and_default_media_types() {
        let value = json!({ "image": "bytes", "address": { "zip": 1 }, "note": "x" });
        let schema =
            json!({ "properties": { "image": { "type": "string", "format": "binary" }, "address": { "type": "object" } } });
        let (_, parts) =
            encode("multipart/form-data", &schema, json!({ "image": { "contentType": "image/png" } }), &value).unwrap();
        assert!(parts.contains("filename=\"image.bin\"\r\nContent-Type: image/png\r\n\r\nbytes"), "{parts}");
        assert!(parts.contains("name=\"address\"\r\nContent-Type: application/json\r\n\r\n{\"zip\":1}"), "{parts}");
        assert!(parts.contains("name=\"note\"\r\n\r\nx"), "{parts}");
    }

    #[test]
    fn members_of_forms_have_the_declared_style() {
        let value = json!({ "tags": ["x", "y"], "address": { "zip": 1, "geo": { "lat": 0.5 }, "lines": ["a", { "b": null, "c": true }] } });
        let schema = json!({ "type": "object", "properties": {
            "tags": { "type": "array", "items": { "type": "string" } },
            "address": { "type": "object", "properties": { "zip": { "type": "integer" } } },
        } });
        let encoding = json!({ "tags": { "style": "form", "explode": false }, "address": { "style": "deepObject" } });
        let (_, form) = encode("application/x-www-form-urlencoded", &schema, encoding, &value).unwrap();
        let address = "address[zip]=1&address[geo][lat]=0.5&address[lines][0]=a&address[lines][1][c]=true";
        assert_eq!(form, format!("tags=x%2Cy&{}", address.replace('[', "%5B").replace(']', "%5D")));
    }
}
