//! The header `Prefer` (RFC 7240): how a caller chooses what the mock answers.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;

use boxoffice_openapi::Scope;
use boxoffice_http::error::FieldError;

/// The header's name, which is also that of the argument when a choice doesn't exist.
pub const PREFER: &str = "Prefer";
/// The header that tells which preferences were followed (RFC 7240, section 3).
pub const APPLIED: HeaderName = HeaderName::from_static("preference-applied");

/// The longest delay that can be asked for.
const LONGEST_DELAY: Duration = Duration::from_secs(60);

/// What a caller prefers. Preferences that the mock doesn't know are ignored.
#[derive(Debug, Default, PartialEq)]
pub struct PreferHeader {
    /// `code=409`: the status to answer with.
    pub code: Option<u16>,
    /// `example=sold-out`: the example to answer with.
    pub example: Option<String>,
    /// `dynamic=true`: data made from the schema, even where there is an example.
    pub is_dynamic: bool,
    /// `delay=250`: how long to wait before the answer, in milliseconds.
    pub delay: Option<Duration>,
    /// `scope=public`: what the key is to act as.
    pub role: Option<AssumedScope>,
    /// What couldn't be followed.
    pub problems: Vec<FieldError>,
}

/// What a key acts as.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum AssumedScope {
    /// A key of this scope.
    Of(Scope),
    /// A key that nobody knows.
    Unknown,
}

impl PreferHeader {
    /// The preferences of a request; `None` when it has no such header.
    pub fn of(headers: &HeaderMap) -> Option<Self> {
        let mut lines = headers.get_all(PREFER).iter().peekable();
        lines.peek()?;
        let mut found = Vec::new();
        let mut names = BTreeSet::new();
        let mut preferences = Self::default();
        for line in lines {
            match line.to_str().ok().and_then(read) {
                Some(more) => found.extend(more),
                None => preferences.complain("is not as RFC 7240 has it, such as `code=409, delay=250`".to_owned()),
            }
        }
        for (name, value) in found {
            // Where one is given twice, the first counts (RFC 7240, section 2).
            if names.insert(name.to_ascii_lowercase()) {
                preferences.set(&name.to_ascii_lowercase(), value);
            }
        }
        Some(preferences)
    }

    /// Whether they choose what is answered.
    pub fn choose(&self) -> bool {
        self.code.is_some() || self.example.is_some() || self.is_dynamic
    }

    fn set(&mut self, name: &str, value: String) {
        match name {
            "code" => match value.parse().ok().filter(|code| (200..600).contains(code)) {
                Some(code) => self.code = Some(code),
                None => self.complain(format!("has code={value}; a code is a status from 200 to 599")),
            },
            "example" => self.example = Some(value),
            "dynamic" => match value.as_str() {
                "true" | "" => self.is_dynamic = true,
                "false" => self.is_dynamic = false,
                _ => self.complain(format!("has dynamic={value}; it is true or false")),
            },
            "delay" => match value.parse().ok().map(Duration::from_millis).filter(|delay| *delay <= LONGEST_DELAY) {
                Some(delay) => self.delay = Some(delay),
                None => {
                    let longest = LONGEST_DELAY.as_millis();
                    self.complain(format!("has delay={value}; a delay is in milliseconds, from 0 to {longest}"));
                }
            },
            "scope" => match serde_json::from_value::<Scope>(Value::from(value.as_str())) {
                Ok(scope) => self.role = Some(AssumedScope::Of(scope)),
                Err(_) if value == "none" => self.role = Some(AssumedScope::Unknown),
                Err(_) => {
                    self.complain(format!("has scope={value}; there are public, customer, administrator, redeemer and none"));
                }
            },
            _ => {}
        }
    }

    fn complain(&mut self, detail: String) {
        self.problems.push(FieldError::invalid(PREFER, detail));
    }

    /// The preferences that were followed, as `Preference-Applied` tells them; `None` where there are none.
    pub fn applied(&self) -> Option<HeaderValue> {
        let mut applied = String::new();
        let mut tell = |name: &str, value: &str| {
            let separator = if applied.is_empty() { "" } else { ", " };
            let is_token = !value.is_empty() && value.bytes().all(is_token);
            let _infallible = if is_token {
                write!(applied, "{separator}{name}={value}")
            } else {
                write!(applied, "{separator}{name}=\"{}\"", value.replace('\\', r"\\").replace('"', "\\\""))
            };
        };
        self.code.into_iter().for_each(|code| tell("code", &code.to_string()));
        self.example.iter().for_each(|example| tell("example", example));
        if self.is_dynamic {
            tell("dynamic", "true");
        }
        self.delay.into_iter().for_each(|delay| tell("delay", &delay.as_millis().to_string()));
        match self.role {
            Some(AssumedScope::Of(scope)) => tell("scope", &format!("{scope:?}").to_lowercase()),
            Some(AssumedScope::Unknown) | None => {}
        }
        HeaderValue::try_from(applied).ok().filter(|applied| !applied.is_empty())
    }
}

/// The preferences of one line of the header, without their parameters, of which those known here have none. `None` where the
/// line is not as the RFC has it.
fn read(line: &str) -> Option<Vec<(String, String)>> {
    let mut found = Vec::new();
    let mut rest = line;
    loop {
        rest = rest.trim_start_matches([' ', '\t', ',']);
        if rest.is_empty() {
            return Some(found);
        }
        found.push(pair(&mut rest)?);
        while let Some(parameter) = rest.strip_prefix(';') {
            rest = trim(parameter);
            if !rest.is_empty() && !rest.starts_with([';', ',']) {
                pair(&mut rest)?;
            }
        }
        if !rest.is_empty() && !rest.starts_with(',') {
            return None;
        }
    }
}

/// `name`, `name=value` or `name="value"`, with the blanks after it. No value is an empty one.
fn pair(rest: &mut &str) -> Option<(String, String)> {
    let name = token(rest)?.to_owned();
    *rest = trim(rest);
    let Some(value) = rest.strip_prefix('=') else { return Some((name, String::new())) };
    *rest = trim(value);
    let value = match rest.strip_prefix('"') {
        Some(quoted) => {
            let (value, after) = unquote(quoted)?;
            *rest = after;
            value
        }
        None => token(rest)?.to_owned(),
    };
    *rest = trim(rest);
    Some((name, value))
}

fn trim(text: &str) -> &str {
    text.trim_start_matches([' ', '\t'])
}

/// Takes a token (RFC 9110, section 5.6.2).
fn token<'a>(rest: &mut &'a str) -> Option<&'a str> {
    let end = rest.bytes().position(|byte| !is_token(byte)).unwrap_or(rest.len());
    let (token, after) = rest.split_at(end);
    *rest = after;
    Some(token).filter(|token| !token.is_empty())
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// What a quoted string says (RFC 9110, section 5.6.4), and what comes after it.
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
        PreferHeader::of(&headers.collect()).unwrap()
    }

    fn details(line: &str) -> String {
        preferences(&[line]).problems.into_iter().map(|problem| problem.detail).collect()
    }

    #[test]
    fn without_the_header_nothing_is_preferred() {
        assert_eq!(PreferHeader::of(&HeaderMap::new()), None);
    }

    #[test]
    fn everything_is_read_in_whatever_way_it_is_written() {
        let expected = PreferHeader {
            code: Some(409),
            example: Some("sold out".to_owned()),
            is_dynamic: true,
            delay: Some(Duration::from_millis(250)),
            role: Some(AssumedScope::Of(Scope::Public)),
            problems: Vec::new(),
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
    fn what_is_no_preference_is_told() {
        for line in ["code 409", "=409", "code=", "example=\"sold", "code=409; =1", "code=409 delay=1", "a=\u{7f}"] {
            let Ok(line) = line.parse::<HeaderValue>() else { continue };
            let headers = [(HeaderName::from_static("prefer"), line)].into_iter().collect();
            let problems = PreferHeader::of(&headers).unwrap().problems;
            assert!(problems[0].detail.contains("RFC 7240"), "{headers:?}");
        }
        assert!(details("code=x").contains("code=x"));
        assert!(details("code=99").contains("from 200 to 599"));
        assert!(details("dynamic=maybe").contains("true or false"));
        assert!(details("delay=60001").contains("60000"));
        assert!(details("delay=-1").contains("delay=-1"));
        assert!(details("scope=nobody").contains("public, customer, administrator, redeemer and none"));
        assert_eq!(details("return=minimal, wait=10, foo; bar=\"a,b\""), "");
    }

    #[test]
    fn what_was_followed_is_told() {
        let applied = |line| preferences(&[line]).applied().map(|applied| applied.to_str().unwrap().to_owned());
        assert_eq!(applied("respond-async"), None);
        assert_eq!(applied("dynamic=false"), None);
        assert_eq!(applied("scope=redeemer, DELAY=5").as_deref(), Some("delay=5, scope=redeemer"));
        assert_eq!(applied(r#"example="a \"b\"", code=409"#).as_deref(), Some(r#"code=409, example="a \"b\"""#));
    }
}
