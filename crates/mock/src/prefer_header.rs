//! `Prefer` header (RFC 7240), with which a client selects the mock's response.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::time::Duration;

use boxoffice_http::error::FieldError;
use boxoffice_openapi::Scope;
use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;

/// The header's name, and that of the argument in error responses.
pub const PREFER: &str = "Prefer";
/// Response header with the applied preferences (RFC 7240, section 3).
pub const PREFERENCE_APPLIED: HeaderName = HeaderName::from_static("preference-applied");

/// The longest delay that a client can request.
pub const MAX_DELAY: Duration = Duration::from_secs(60);

/// A client's preferences. Unknown ones are ignored.
#[derive(Debug, Default, PartialEq)]
pub struct PreferHeader {
    /// `code=409`: the status of the response.
    pub code: Option<u16>,
    /// `example=sold-out`: the example in the response.
    pub example: Option<String>,
    /// `dynamic=true`: data generated from the schema, even if there is an example.
    pub is_dynamic: bool,
    /// `delay=250`: the delay before the response, in milliseconds.
    pub delay: Option<Duration>,
    /// `scope=public`: the scope of the key.
    pub scope: Option<AssumedScope>,
    /// Errors about invalid preferences.
    pub errors: Vec<FieldError>,
}

/// The scope that a key has for this request.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum AssumedScope {
    /// A key of this scope.
    Of(Scope),
    /// None: the key is invalid.
    Unknown,
}

impl PreferHeader {
    /// Parses the preferences of a request; returns `None` if it has no such header.
    pub fn from_headers(headers: &HeaderMap) -> Option<Self> {
        let mut lines = headers.get_all(PREFER).iter().peekable();
        lines.peek()?;
        let mut pairs = Vec::new();
        let mut names = BTreeSet::new();
        let mut preferences = Self::default();
        for line in lines {
            match line.to_str().ok().and_then(parse_line) {
                Some(more) => pairs.extend(more),
                None => preferences.add_error("is not as RFC 7240 has it, such as `code=409, delay=250`".to_owned()),
            }
        }
        for (name, value) in pairs {
            // If a preference is repeated, the first one applies (RFC 7240, section 2).
            if names.insert(name.to_ascii_lowercase()) {
                preferences.set(&name.to_ascii_lowercase(), value);
            }
        }
        Some(preferences)
    }

    /// Returns whether they select a specific response.
    pub fn selects_response(&self) -> bool {
        self.code.is_some() || self.example.is_some() || self.is_dynamic
    }

    fn set(&mut self, name: &str, value: String) {
        match name {
            "code" => match value.parse().ok().filter(|code| (200..600).contains(code)) {
                Some(code) => self.code = Some(code),
                None => self.add_error(format!("has code={value}; a code is a status from 200 to 599")),
            },
            "example" => self.example = Some(value),
            "dynamic" => match value.as_str() {
                "true" | "" => self.is_dynamic = true,
                "false" => self.is_dynamic = false,
                _ => self.add_error(format!("has dynamic={value}; it is true or false")),
            },
            "delay" => match value.parse().ok().map(Duration::from_millis).filter(|delay| *delay <= MAX_DELAY) {
                Some(delay) => self.delay = Some(delay),
                None => {
                    let longest = MAX_DELAY.as_millis();
                    self.add_error(format!("has delay={value}; a delay is in milliseconds, from 0 to {longest}"));
                }
            },
            "scope" => match serde_json::from_value::<Scope>(Value::from(value.as_str())) {
                Ok(scope) => self.scope = Some(AssumedScope::Of(scope)),
                Err(_) if value == "none" => self.scope = Some(AssumedScope::Unknown),
                Err(_) => {
                    self.add_error(format!("has scope={value}; there are public, customer, administrator, redeemer and none"));
                }
            },
            _ => {}
        }
    }

    fn add_error(&mut self, detail: String) {
        self.errors.push(FieldError::invalid(PREFER, detail));
    }

    /// Returns the value of `Preference-Applied`; `None` if no preference was applied.
    pub fn applied(&self) -> Option<HeaderValue> {
        let mut applied = String::new();
        let mut append = |name: &str, value: &str| {
            let separator = if applied.is_empty() { "" } else { ", " };
            let is_token = !value.is_empty() && value.bytes().all(is_token);
            let _infallible = if is_token {
                write!(applied, "{separator}{name}={value}")
            } else {
                write!(applied, "{separator}{name}=\"{}\"", value.replace('\\', r"\\").replace('"', "\\\""))
            };
        };
        self.code.into_iter().for_each(|code| append("code", &code.to_string()));
        self.example.iter().for_each(|example| append("example", example));
        if self.is_dynamic {
            append("dynamic", "true");
        }
        self.delay.into_iter().for_each(|delay| append("delay", &delay.as_millis().to_string()));
        match self.scope {
            Some(AssumedScope::Of(scope)) => append("scope", &format!("{scope:?}").to_lowercase()),
            Some(AssumedScope::Unknown) | None => {}
        }
        HeaderValue::try_from(applied).ok().filter(|applied| !applied.is_empty())
    }
}

/// Parses the preferences of one line of the header. Parameters are skipped: no supported preference has any. Returns `None` if
/// the line is malformed.
fn parse_line(line: &str) -> Option<Vec<(String, String)>> {
    let mut pairs = Vec::new();
    let mut rest = line;
    loop {
        rest = rest.trim_start_matches([' ', '\t', ',']);
        if rest.is_empty() {
            return Some(pairs);
        }
        pairs.push(take_pair(&mut rest)?);
        while let Some(parameter) = rest.strip_prefix(';') {
            rest = trim_blanks(parameter);
            if !rest.is_empty() && !rest.starts_with([';', ',']) {
                take_pair(&mut rest)?;
            }
        }
        if !rest.is_empty() && !rest.starts_with(',') {
            return None;
        }
    }
}

/// Takes `name`, `name=value` or `name="value"` and the blanks after it. A missing value is empty.
fn take_pair(rest: &mut &str) -> Option<(String, String)> {
    let name = take_token(rest)?.to_owned();
    *rest = trim_blanks(rest);
    let Some(value) = rest.strip_prefix('=') else { return Some((name, String::new())) };
    *rest = trim_blanks(value);
    let value = match rest.strip_prefix('"') {
        Some(quoted) => {
            let (value, after) = unquote(quoted)?;
            *rest = after;
            value
        }
        None => take_token(rest)?.to_owned(),
    };
    *rest = trim_blanks(rest);
    Some((name, value))
}

fn trim_blanks(text: &str) -> &str {
    text.trim_start_matches([' ', '\t'])
}

/// Takes a token (RFC 9110, section 5.6.2).
fn take_token<'a>(rest: &mut &'a str) -> Option<&'a str> {
    let end = rest.bytes().position(|byte| !is_token(byte)).unwrap_or(rest.len());
    let (token, after) = rest.split_at(end);
    *rest = after;
    Some(token).filter(|token| !token.is_empty())
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// Returns the content of a quoted string (RFC 9110, section 5.6.4) and the text after it.
fn unquote(quoted: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut characters = quoted.char_indices();
    loop {
        match characters.next()? {
            (end, '"') => return Some((value, &quoted[end + 1..])),
            (_, '\\') => value.push(characters.next()?.1),
            (_, character) => value.push(character),
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;

    fn preferences(lines: &[&str]) -> PreferHeader {
        let headers = lines.iter().map(|line| (HeaderName::from_static("prefer"), line.parse().unwrap()));
        PreferHeader::from_headers(&headers.collect()).unwrap()
    }

    fn details(line: &str) -> String {
        preferences(&[line]).errors.into_iter().map(|error| error.detail).collect()
    }

    #[test]
    fn missing_header_has_no_preferences() {
        assert_eq!(PreferHeader::from_headers(&HeaderMap::new()), None);
    }

    #[test]
    fn parses_every_notation() {
        let expected = PreferHeader {
            code: Some(409),
            example: Some("sold out".to_owned()),
            is_dynamic: true,
            delay: Some(Duration::from_millis(250)),
            scope: Some(AssumedScope::Of(Scope::Public)),
            errors: Vec::new(),
        };
        for lines in [
            ["code=409, example=\"sold out\", dynamic=true, delay=250, scope=public"].as_slice(),
            &["code=409", "example=\"sold out\"", "dynamic", "delay=250", "scope=public"],
            &["CODE = 409;q=1 ; x ;, ,Example=\"sold\\ out\"", "respond-async, Dynamic=\"true\"", "delay=\"250\",scope=public"],
            &["code=409, code=404, code=\"x, y\"", "example=\"sold out\",example=other,dynamic,delay=250,scope=public,delay=9"],
        ] {
            assert_eq!(preferences(lines), expected, "{lines:?}");
        }
    }

    #[test]
    fn reports_malformed_and_invalid_preferences() {
        for line in ["code 409", "=409", "code=", "example=\"sold", "code=409; =1", "code=409 delay=1", "a=\u{7f}"] {
            let Ok(line) = line.parse::<HeaderValue>() else { continue };
            let headers = [(HeaderName::from_static("prefer"), line)].into_iter().collect();
            let errors = PreferHeader::from_headers(&headers).unwrap().errors;
            assert!(errors[0].detail.contains("RFC 7240"), "{headers:?}");
        }
        assert!(details("code=x").contains("code=x"));
        assert!(details("code=99").contains("from 200 to 599"));
        assert!(details("dynamic=maybe").contains("true or false"));
        assert!(details("delay=60001").contains("60000"));
        assert!(details("delay=-1").contains("delay=-1"));
        assert!(details("scope=other").contains("public, customer, administrator, redeemer and none"));
        assert_eq!(details("return=minimal, wait=10, foo; bar=\"a,b\""), "");
    }

    #[test]
    fn applied_preferences_are_listed() {
        let applied = |line| preferences(&[line]).applied().map(|applied| applied.to_str().unwrap().to_owned());
        assert_eq!(applied("respond-async"), None);
        assert_eq!(applied("dynamic=false"), None);
        assert_eq!(applied("scope=redeemer, DELAY=5").as_deref(), Some("delay=5, scope=redeemer"));
        assert_eq!(applied(r#"example="a \"b\"", code=409"#).as_deref(), Some(r#"code=409, example="a \"b\"""#));
    }
}
