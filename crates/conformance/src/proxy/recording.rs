//! Recording of valid requests and responses as examples in a copy of the document.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::LazyLock;

use anyhow::Context;
use boxoffice_openapi::response::{BodyContent, essence, matches_range};
use boxoffice_openapi::{MAX_REFERENCE_CHAIN, Operation, escape};
use http::header::CONTENT_TYPE;
use http::request::Parts;
use regex::Regex;
use serde_json::{Map, Value, json};

use crate::http_client::ReceivedResponse;

/// Maximum number of recorded examples of each declared body.
const MAX_EXAMPLES: usize = 5;
/// Maximum size of an example, in bytes.
const MAX_EXAMPLE_BYTES: usize = 64 * 1024;
/// Maximum size of all examples together, in bytes.
const MAX_BYTES: usize = 32 * 1024 * 1024;

/// Names of properties, parameters and headers whose values are secrets.
#[expect(clippy::unwrap_used, reason = "the pattern is constant")]
static SECRET_NAME: LazyLock<Regex> = LazyLock::new(|| {
    let names = "api-?key|access-?key|private-?key|secret|password|passwd|pwd|token|authorization|credentials?|cookie|session-?id|signature|otp|pin|cvc|cvv|iban|card-?number";
    Regex::new(&format!("^(?i:(?:.*[-_. ])?(?:key|{names})s?)$|(?i:password|secret|token|api-?key)$|[a-z]Key$")).unwrap()
});

/// Secrets within texts: parameters of URLs, and JSON web tokens.
#[expect(clippy::unwrap_used, reason = "the pattern is constant")]
static SECRET_IN_TEXT: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"(?i)[?&](?:key|api_?key|code|password|secret|signature|sig|token|access_token)=[^&#\s]+|\beyJ[\w-]{8,}\.[\w-]+\.[\w-]*",
    )
    .unwrap()
});

/// Collects examples.
pub struct Recording {
    file: PathBuf,
    /// The examples of each Media Type Object, by its JSON pointer.
    examples: BTreeMap<String, Vec<Value>>,
    /// The size of all examples.
    bytes: usize,
    /// Number of examples that were left out: they are too many, too large, or invalid without their secrets.
    left_out: usize,
}

impl Recording {
    /// Creates an empty recording.
    ///
    /// # Errors
    /// Fails if the file can't be written.
    pub fn new(file: PathBuf) -> anyhow::Result<Self> {
        let opened = fs::OpenOptions::new().create(true).append(true).open(&file);
        opened.with_context(|| format!("{} can't be written", file.display()))?;
        Ok(Self { file, examples: BTreeMap::new(), bytes: 0, left_out: 0 })
    }

    /// Adds the bodies of a valid response and, if it is a success, of its request. A response that is a secret is left out.
    pub fn add(&mut self, operation: &Operation, head: &Parts, body: &[u8], response: &ReceivedResponse) {
        let spec = operation.response_for(response.status);
        if let Some(spec) = spec.filter(|_| !operation.is_secret) {
            let media_type = response.header(CONTENT_TYPE).unwrap_or_default();
            self.add_body(&spec.pointer, &spec.contents, media_type, &response.body);
        }
        let media_type = head.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        if let Some(declared) = operation.body.as_ref().filter(|_| response.is_success()) {
            self.add_body(&format!("{}/requestBody", operation.pointer), &declared.contents, media_type, body);
        }
    }

    /// Adds a JSON body.
    fn add_body(&mut self, owner: &str, contents: &[BodyContent], media_type: &str, body: &[u8]) {
        let is_declared = |content: &&BodyContent| content.is_json() && matches_range(&content.media_type, essence(media_type));
        let Some(content) = contents.iter().find(is_declared) else { return };
        let Ok(mut value) = serde_json::from_slice::<Value>(body) else { return };
        mask_secrets(&mut value);
        let examples = self.examples.entry(format!("{owner}/content/{}", escape(&content.media_type))).or_default();
        if examples.contains(&value) {
            return;
        }
        let is_valid = content.schema.as_deref().is_none_or(|schema| schema.violations(&value).is_empty());
        let is_small = body.len() <= MAX_EXAMPLE_BYTES && self.bytes + body.len() <= MAX_BYTES;
        if !is_valid || !is_small || examples.len() >= MAX_EXAMPLES {
            self.left_out += 1;
            return;
        }
        self.bytes += body.len();
        examples.push(value);
    }

    /// Writes a copy of the document with the recorded examples before its own. Returns a note for the report.
    ///
    /// # Errors
    /// Fails if the file can't be written.
    pub fn write(self, document: &Value) -> anyhow::Result<Option<String>> {
        let mut document = document.clone();
        // The dialect of a parsed document is OpenAPI 3.0.
        if !document["openapi"].as_str().is_some_and(|version| version.starts_with("3.0")) {
            document["openapi"] = json!("3.0.3");
        }
        let mut count = 0;
        for (pointer, recorded) in self.examples.iter().filter(|(_, recorded)| !recorded.is_empty()) {
            let Some(Value::Object(content)) = inlined_at(&mut document, pointer) else { continue };
            count += recorded.len();
            let recorded = recorded.iter().enumerate();
            let mut examples: Map<_, _> =
                recorded.map(|(number, value)| (format!("recorded-{}", number + 1), json!({ "value": value }))).collect();
            if let Some(example) = content.shift_remove("example") {
                examples.insert("example".to_owned(), json!({ "value": example }));
            }
            if let Some(Value::Object(declared)) = content.shift_remove("examples") {
                examples.extend(declared);
            }
            content.insert("examples".to_owned(), examples.into());
        }
        let is_json = self.file.extension().is_some_and(|extension| extension == "json");
        let text = if is_json { serde_json::to_string_pretty(&document)? } else { serde_yaml_ng::to_string(&document)? };
        let file = self.file.display();
        fs::write(&self.file, text).with_context(|| format!("{file} can't be written"))?;
        let left_out = if self.left_out > 0 { format!(", {} left out", self.left_out) } else { String::new() };
        Ok(Some(format!("{count} examples are recorded in {file}{left_out}.")))
    }
}

/// Returns the value at a pointer. References on the way are replaced by copies of their targets.
fn inlined_at<'a>(document: &'a mut Value, pointer: &str) -> Option<&'a mut Value> {
    let mut steps = Vec::new();
    for step in pointer.split('/').skip(1) {
        steps.push(step);
        let at = format!("/{}", steps.join("/"));
        for _ in 0..MAX_REFERENCE_CHAIN {
            let Some(reference) = document.pointer(&at)?["$ref"].as_str() else { break };
            let target = reference.strip_prefix('#').unwrap_or(reference);
            let target = percent_encoding::percent_decode_str(target).decode_utf8_lossy();
            let target = document.pointer(&target)?.clone();
            *document.pointer_mut(&at)? = target;
        }
    }
    document.pointer_mut(pointer)
}

/// Returns whether a property, a parameter or a header of this name is a secret.
pub fn is_secret_name(name: &str) -> bool {
    SECRET_NAME.is_match(name)
}

/// Returns whether a property is a code that was sent to a person. Those of errors have no digits.
fn is_secret_code(name: &str, text: &str) -> bool {
    name.to_lowercase().ends_with("code") && text.bytes().filter(u8::is_ascii_digit).count() >= 4
}

/// Replaces the letters and digits of secrets, so that most remain valid: `x` for a small letter, `X` for a capital, `0` for a digit.
pub fn mask_secrets(value: &mut Value) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                match member {
                    member if is_secret_name(name) => mask_all(member),
                    Value::String(text) if is_secret_code(name, text) => *text = mask(text),
                    member => mask_secrets(member),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(mask_secrets),
        Value::String(text) if SECRET_IN_TEXT.is_match(text) => {
            *text = SECRET_IN_TEXT
                .replace_all(text, |found: &regex::Captures<'_>| {
                    let found = &found[0];
                    let start = found.find('=').map_or(0, |equals| equals + 1);
                    format!("{}{}", &found[..start], mask(&found[start..]))
                })
                .into_owned();
        }
        _ => {}
    }
}

/// Masks every text and number in a value.
fn mask_all(value: &mut Value) {
    match value {
        Value::Object(members) => members.values_mut().for_each(mask_all),
        Value::Array(items) => items.iter_mut().for_each(mask_all),
        Value::String(text) => *text = mask(text),
        Value::Number(number) => *number = 0.into(),
        Value::Bool(_) | Value::Null => {}
    }
}

/// Replaces the letters and digits of a text.
pub fn mask(text: &str) -> String {
    let masked = text.chars().map(|c| match c {
        c if c.is_ascii_digit() => '0',
        c if c.is_uppercase() => 'X',
        c if c.is_alphabetic() => 'x',
        c => c,
    });
    masked.collect()
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_masked() {
        let mut value = json!({
            "key": "AbC-123", "newPassword": "hunter2", "access_token": "t0k", "X-Api-Key": "k1", "apiKey": "k2",
            "nested": [{ "clientSecret": "s3", "code": "123456", "name": "Ama" }, { "code": "order.unknown" }],
            "banner": "/media/1?size=2&secret=abc1#x", "note": "a eyJhbGciOiJI.eyJzdWIi.abc1 b",
            "keyboard": "qwerty", "monkey": "Bobo", "country": "GH", "description": "the secret is out",
            "pin": 1234, "tokens": ["t0k", { "value": "v1", "isNew": true, "until": null }],
        });
        mask_secrets(&mut value);
        let expected = json!({
            "key": "XxX-000", "newPassword": "xxxxxx0", "access_token": "x0x", "X-Api-Key": "x0", "apiKey": "x0",
            "nested": [{ "clientSecret": "x0", "code": "000000", "name": "Ama" }, { "code": "order.unknown" }],
            "banner": "/media/1?size=2&secret=xxx0#x", "note": "a xxXxxXxxXxXX.xxXxxXXx.xxx0 b",
            "keyboard": "qwerty", "monkey": "Bobo", "country": "GH", "description": "the secret is out",
            "pin": 0, "tokens": ["x0x", { "value": "x0", "isNew": true, "until": null }],
        });
        assert_eq!(value, expected);
    }

    #[test]
    fn references_on_the_way_are_replaced_by_copies() {
        let mut document = json!({
            "paths": { "/a": { "get": { "responses": { "200": { "$ref": "#/components/responses/A" } } } } },
            "components": { "responses": { "A": { "content": { "application/json": { "example": 1 } } } } },
        });
        let found = inlined_at(&mut document, "/paths/~1a/get/responses/200/content/application~1json").unwrap();
        found["example"] = json!(2);
        assert_eq!(document["components"]["responses"]["A"]["content"]["application/json"]["example"], 1);
        assert_eq!(document["paths"]["/a"]["get"]["responses"]["200"]["content"]["application/json"]["example"], 2);
    }
}
