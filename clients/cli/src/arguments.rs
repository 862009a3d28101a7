//! Parsers of arguments.

use std::fs::File;
use std::io::{self, IsTerminal, Read, Take, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// Largest body, password or key that is read. The server accepts bodies up to 8 MiB, with images.
const MAXIMUM_BYTES: u64 = 16 << 20;
const INVALID_BODY: &str = "the body is invalid";

/// Returns the body of a request: the JSON of `--body`, with the properties of the other options. `not_blank` are the properties that
/// a change can leave out but not clear: the server rejects a null, which the parsed body no longer has.
///
/// # Errors
/// Returns an error if the JSON can't be read, is no object, lacks a property or has a null for one that can't be cleared.
pub fn parse_body<T: DeserializeOwned + Serialize>(
    source: Option<&PathBuf>,
    options: Map<String, Value>,
    not_blank: &[&str],
) -> anyhow::Result<T> {
    let body = match source {
        Some(source) => serde_json::from_str(&read_body(source).context("failed to read the body")?).context(INVALID_BODY)?,
        None => Value::Object(Map::new()),
    };
    let Value::Object(mut properties) = body else {
        bail!(r#"{INVALID_BODY}: it must be a JSON object, such as {{"name": "VIP"}}"#)
    };
    properties.extend(options);
    if let Some(name) = not_blank.iter().find(|name| properties.get(**name).is_some_and(Value::is_null)) {
        bail!("{INVALID_BODY}: {name} must not be null; leave it out to keep its value");
    }
    let given = Value::Object(properties);
    let parsed = serde_json::from_value(given.clone()).context(INVALID_BODY)?;
    let mut unknown = Vec::new();
    add_unknown(&given, &serde_json::to_value(&parsed)?, "", &mut unknown);
    if !unknown.is_empty() {
        // Standard error may be closed.
        let _ = writeln!(io::stderr(), "warning: unknown properties are not sent: {}", unknown.join(", "));
    }
    Ok(parsed)
}

/// Adds the names of the properties that a parsed value no longer has. A null or an empty list may be the same as an absent property.
fn add_unknown(given: &Value, parsed: &Value, prefix: &str, unknown: &mut Vec<String>) {
    match (given, parsed) {
        (Value::Object(given), Value::Object(parsed)) => {
            let has_value = |value: &Value| !value.is_null() && value.as_array().is_none_or(|list| !list.is_empty());
            for (name, value) in given.iter().filter(|(_, value)| has_value(value)) {
                let path = format!("{prefix}{name}");
                match parsed.get(name) {
                    Some(parsed) => add_unknown(value, parsed, &format!("{path}."), unknown),
                    None if !unknown.contains(&path) => unknown.push(path),
                    None => {}
                }
            }
        }
        (Value::Array(given), Value::Array(parsed)) => {
            given.iter().zip(parsed).for_each(|(given, parsed)| add_unknown(given, parsed, prefix, unknown));
        }
        _ => {}
    }
}

/// Reads a JSON body: `-` is standard input, `@FILE` a file, and anything else the body itself.
///
/// # Errors
/// Returns an error if the body can't be read.
fn read_body(source: &Path) -> io::Result<String> {
    match source.to_str() {
        Some("-") => io::read_to_string(io::stdin().take(MAXIMUM_BYTES)),
        Some(text) => match text.strip_prefix('@') {
            Some(file) => read_file(file, io::read_to_string),
            None => Ok(text.to_owned()),
        },
        None => Err(io::Error::new(io::ErrorKind::InvalidInput, "the body is not UTF-8")),
    }
}

/// Parses `KEY=NUMBER`.
///
/// # Errors
/// Returns an error if the text has another form.
pub fn parse_pair(text: &str) -> Result<(String, i64), String> {
    let (key, number) = text.rsplit_once('=').ok_or("it must have the form KEY=NUMBER")?;
    Ok((key.to_owned(), number.parse().map_err(|_| format!("{number} is not a whole number"))?))
}

/// Returns the address of a server without a slash at its end, so that a URI can be appended.
///
/// # Errors
/// Returns an error if it is not the address of a web server.
pub fn parse_address(text: &str) -> Result<String, String> {
    let is_web = text.starts_with("http://") || text.starts_with("https://");
    if is_web { Ok(text.trim_end_matches('/').to_owned()) } else { Err("it must begin with http:// or https://".to_owned()) }
}

/// Returns the identifier of a resource, which may be given by its URI.
///
/// # Errors
/// Returns an error if the identifier is empty, `.` or `..`: the request would be one for another resource.
pub fn parse_identifier(text: &str) -> Result<String, String> {
    let identifier = if text.starts_with('/') { text.rsplit('/').next().unwrap_or_default() } else { text };
    if ["", ".", ".."].contains(&identifier) {
        return Err("it must be the identifier of a resource or its URI".to_owned());
    }
    Ok(identifier.to_owned())
}

/// Reads a password from the terminal or from standard input (`-`), or from a file (`@FILE`).
///
/// # Errors
/// Returns an error if it can't be read, or is on the command line itself.
pub fn parse_password(source: &str) -> Result<String, String> {
    match source.strip_prefix('@') {
        Some(file) => read_secret_file(file).map_err(|error| error.to_string()),
        None if source == "-" => read_secret("Password").map_err(|error| error.to_string()),
        None => Err("other users of this machine can see the command line; use - or @FILE".to_owned()),
    }
}

/// Returns an image in base64: that of a file (`@FILE`), or the text itself, which may be a data URI or the image's own URI.
///
/// # Errors
/// Returns an error if the file can't be read.
pub fn parse_image(source: &str) -> Result<String, String> {
    let Some(file) = source.strip_prefix('@') else { return Ok(source.to_owned()) };
    let mut image = Vec::new();
    read_file(file, |mut content| content.read_to_end(&mut image)).map_err(|error| error.to_string())?;
    Ok(BASE64_STANDARD.encode(image))
}

/// Asks for a secret without showing it, or reads a line from standard input if that is not a terminal.
///
/// # Errors
/// Returns an error if nothing can be read.
pub fn read_secret(name: &str) -> io::Result<String> {
    if io::stdin().is_terminal() {
        return rpassword::prompt_password(format!("{name}: "));
    }
    let mut line = String::new();
    io::stdin().read_line(&mut line)?;
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}

/// Reads the first line of a file.
///
/// # Errors
/// Returns an error if the file can't be read.
pub fn read_secret_file(file: &str) -> io::Result<String> {
    Ok(read_file(file, io::read_to_string)?.lines().next().unwrap_or_default().to_owned())
}

/// Reads a file, whose name an error begins with.
fn read_file<T>(file: &str, read: impl FnOnce(Take<File>) -> io::Result<T>) -> io::Result<T> {
    let named = |error: io::Error| io::Error::new(error.kind(), format!("{file}: {error}"));
    read(File::open(file).map_err(named)?.take(MAXIMUM_BYTES)).map_err(named)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn pairs_and_identifiers_are_parsed() {
        assert_eq!(parse_pair("/sections/17637000000062=2"), Ok(("/sections/17637000000062".to_owned(), 2)));
        assert!(parse_pair("/sections/17637000000062").is_err() && parse_pair("a=two").is_err());
        assert_eq!(parse_identifier("/orders/17637000000081").as_deref(), Ok("17637000000081"));
        assert_eq!(parse_identifier("17637000000081").as_deref(), Ok("17637000000081"));
        for other in ["", "/orders/", ".", "..", "/accounts/17637000000002/sessions/.."] {
            assert!(parse_identifier(other).is_err(), "{other}");
        }
    }

    #[test]
    fn options_replace_properties_of_the_body() {
        let source = PathBuf::from(r#"{"device": "Gate 1", "scans": 2}"#);
        let parse = |source: Option<&PathBuf>, device: &str| {
            let options = Map::from_iter([("device".to_owned(), device.into())]);
            parse_body::<Value>(source, options, &["device", "name"]).map_err(|error| format!("{error:#}"))
        };

        assert_eq!(parse(Some(&source), "Gate 2"), Ok(json!({ "device": "Gate 2", "scans": 2 })));
        assert_eq!(parse(None, "Gate 2"), Ok(json!({ "device": "Gate 2" })));
        let replaced = PathBuf::from(r#"{"device": null}"#);
        assert_eq!(parse(Some(&replaced), "Gate 2"), Ok(json!({ "device": "Gate 2" })));
        let cleared = parse(Some(&PathBuf::from(r#"{"name": null}"#)), "Gate 2");
        assert_eq!(cleared, Err("the body is invalid: name must not be null; leave it out to keep its value".to_owned()));
        assert!(parse(Some(&PathBuf::from("{")), "x").is_err_and(|error| error.starts_with("the body is invalid: EOF")));
        for other in ["[1]", "null", r#""text""#] {
            let expected = r#"the body is invalid: it must be a JSON object, such as {"name": "VIP"}"#;
            assert_eq!(parse(Some(&PathBuf::from(other)), "x"), Err(expected.to_owned()));
        }
    }

    #[test]
    fn images_are_files_or_texts() {
        let folder = tempfile::tempdir().unwrap_or_else(|error| panic!("{error}"));
        let file = folder.path().join("banner.png");
        std::fs::write(&file, [0x89, b'P', b'N', b'G']).unwrap_or_else(|error| panic!("{error}"));

        assert_eq!(parse_image(&format!("@{}", file.display())).as_deref(), Ok("iVBORw=="));
        assert_eq!(parse_image("data:image/png;base64,iVBORw==").as_deref(), Ok("data:image/png;base64,iVBORw=="));
        assert_eq!(parse_image("").as_deref(), Ok(""));
        assert!(parse_image("@missing.png").is_err_and(|error| error.starts_with("missing.png: ")));
    }

    #[test]
    fn passwords_are_not_arguments() {
        assert!(parse_password("correct horse battery").is_err_and(|error| !error.contains("horse")));
    }
}
