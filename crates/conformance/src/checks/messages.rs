//! Checks of every response, whatever was asked: its JSON text, its errors, its caching, and the headers of all responses.

use std::cell::LazyCell;
use std::collections::BTreeSet;
use std::sync::LazyLock;

use boxoffice_openapi::paging::has_name;
use http::header::{AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE};
use regex::Regex;
use serde_json::Value;

use crate::http_client::{KEY_VARIABLE, ReceivedResponse, Request};
use crate::model::Check;
use crate::operation_run::OperationRun;

/// Internals of a server that must not be in an error, and their names.
#[expect(clippy::unwrap_used, reason = "the patterns are constant and every comparison compiles them")]
static INTERNALS: LazyLock<Vec<(&str, Regex)>> = LazyLock::new(|| {
    let patterns = [
        (
            "a stack trace",
            r"Traceback \(most recent call last\)|\n\s*at [\w.$<>]+\(|goroutine \d+ \[|panicked at|\.(rs|py|java|go|php|rb|cs|js|ts):\d+|NullPointerException|stack backtrace",
        ),
        (
            "a part of an SQL statement",
            // Words such as "select a size from the list" need capitals or a condition.
            r"\b(SELECT .+ FROM|INSERT INTO|DELETE FROM|UPDATE \w+ SET)\b|(?i:\b(select .+ from|delete from|update \w+ set)\b.+\bwhere\b.+=|\binsert into \w+ ?\(|constraint failed|SQLSTATE|syntax error at or near|ORA-\d{5})",
        ),
        ("a path of the server's files", r"(^|[\s'(])/(home|srv|usr|var|opt|root|etc|tmp)/[\w.-]+/|[A-Z]:\\\\?\w+\\"),
        ("a password hash", HASH),
    ];
    patterns.map(|(name, pattern)| (name, Regex::new(pattern).unwrap())).into()
});

/// A password hash in one of the usual formats.
const HASH: &str = r"\$argon2(id|i|d)\$|\$2[aby]\$\d\d\$|\$pbkdf2|\$scrypt\$|\$6\$rounds";

#[expect(clippy::unwrap_used, reason = "the pattern is constant and every comparison compiles it")]
static PASSWORD_HASH: LazyLock<Regex> = LazyLock::new(|| Regex::new(HASH).unwrap());

/// A text that is probably a key: 32 or more small letters and digits, some of each.
#[expect(clippy::unwrap_used, reason = "the pattern is constant and every comparison compiles it")]
static KEY: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\b[a-z0-9]{32,}\b").unwrap());

/// An identifier of a trace (W3C Trace Context).
#[expect(clippy::unwrap_used, reason = "the pattern is constant and every comparison compiles it")]
static TRACE: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\b[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}\b").unwrap());

/// Names of properties that identify a request.
const REQUEST_NAMES: [&str; 4] = ["traceid", "requestid", "correlationid", "instance"];

impl OperationRun<'_> {
    /// Checks a response apart from its schema.
    pub fn check_message(&mut self, request: &Request, response: &ReceivedResponse) {
        self.check_json_text(request, response);
        self.check_common_headers(request, response);
        if response.status >= 400 {
            self.check_error_text(request, response);
        } else {
            self.check_caching(request, response);
            let hash = PASSWORD_HASH
                .find(&String::from_utf8_lossy(&response.body))
                .map(|found| self.failure("a response contains a password hash", "no password hash", found.as_str()));
            self.record(Check::Leak, request, hash);
        }
    }

    /// Checks that a JSON body is UTF-8 without a byte order mark, and repeats no key (RFC 8259).
    fn check_json_text(&mut self, request: &Request, response: &ReceivedResponse) {
        let media_type = response.header(CONTENT_TYPE).unwrap_or_default();
        if response.body.is_empty() || !media_type.contains("json") || request.method == "HEAD" || response.coding().is_some() {
            return;
        }
        let summary = match std::str::from_utf8(&response.body) {
            Err(_) => Some("the JSON body is not UTF-8".to_owned()),
            Ok(text) if text.starts_with('\u{feff}') => Some("the JSON body begins with a byte order mark".to_owned()),
            Ok(text) => boxoffice_openapi::repeated_name(text).map(|key| format!("the JSON body repeats the key {key}")),
        };
        let failure = summary.map(|summary| {
            self.failure(summary, "UTF-8 without a byte order mark and repeated keys (RFC 8259)", response.describe())
        });
        self.record(Check::JsonText, request, failure);
    }

    /// Checks the headers that the document declares for every response (`x-response-headers`).
    fn check_common_headers(&mut self, request: &Request, response: &ReceivedResponse) {
        let contract = &self.comparison.contract;
        let declared = contract.document["x-response-headers"].as_object();
        let mut failures = Vec::new();
        for (name, rule) in declared.into_iter().flatten() {
            let value = response.header(name.as_str()).filter(|value| !value.is_empty());
            match value {
                None => failures.push(Some(self.failure(
                    format!("a response lacks the header {name}"),
                    name,
                    format!("{} {:?}", response.status, response.headers),
                ))),
                Some(value) if rule["unique"] == true && !self.comparison.is_first_use(name, value) => {
                    failures.push(Some(self.failure(
                        format!("two responses have the same {name}"),
                        "a different value for each response",
                        value,
                    )));
                }
                Some(_) => failures.push(None),
            }
        }
        for failure in failures {
            self.record(Check::CommonHeader, request, failure);
        }
    }

    /// Checks that an error has a text without internals of the server, and a code of the operation.
    fn check_error_text(&mut self, request: &Request, response: &ReceivedResponse) {
        let body = response.json();
        let texts: Vec<&str> = ["error", "message", "title", "detail"].iter().filter_map(|name| body[*name].as_str()).collect();
        let whole = match body.is_null() {
            true => String::from_utf8_lossy(&response.body).into_owned(),
            false => strings(&body).join("\n"),
        };
        // A text with the pattern of an argument, such as the hash of a block, is data. A pattern that nearly every key has says nothing.
        let is_argument = |text: &str| {
            let other = "z9".repeat(text.len() / 2);
            let mut arguments = self.operation.arguments.iter().filter(|argument| argument.schema["pattern"].is_string());
            arguments.any(|argument| argument.allows(text) && !argument.allows(&other))
        };
        let leak = find_leak(&whole, request, is_argument).map(|name| {
            self.failure(
                format!("the error {} contains {name}", response.status),
                "an error without internals of the server",
                response.describe(),
            )
        });
        self.record(Check::Leak, request, leak);
        if !texts.is_empty() {
            let blank = texts.iter().all(|text| text.trim().is_empty());
            let blank = blank.then(|| {
                self.failure(
                    format!("the error {} has no text", response.status),
                    "a text that describes the error",
                    response.describe(),
                )
            });
            self.record(Check::ErrorText, request, blank);
        }
        self.check_error_code(request, response, &body);
    }

    /// Checks that the code of an error is one of the declared response's examples.
    ///
    /// Applies to a property with an enumeration, for which the examples of the status name the operation's own values.
    fn check_error_code(&mut self, request: &Request, response: &ReceivedResponse, body: &Value) {
        let Some(spec) = self.operation.spec.response_for(response.status) else { return };
        let Some(code) = body["code"].as_str() else { return };
        let examples = spec.contents.iter().flat_map(|content| content.examples.values());
        let codes: BTreeSet<&str> = examples.filter_map(|example| example["code"].as_str()).collect();
        if codes.is_empty() || !self.is_own_request(request) {
            return;
        }
        let failure = (!codes.contains(code)).then(|| {
            let expected: Vec<_> = codes.iter().copied().collect();
            self.failure(
                format!("the error {} has the code {code}, which is not among those of the operation", response.status),
                expected.join(", "),
                response.describe(),
            )
        });
        self.record(Check::ErrorCode, request, failure);
    }

    /// Returns if a request is one to this operation, rather than to a resource that a check reads.
    fn is_own_request(&self, request: &Request) -> bool {
        let found = self.comparison.contract.find_ignoring_slashes(&request.method, self.document_path(&request.path));
        found.is_ok_and(|operation| operation.id == self.operation.spec.id)
    }

    /// Checks that a response for one caller is not stored for others (RFC 9111), and a secret one not at all.
    fn check_caching(&mut self, request: &Request, response: &ReceivedResponse) {
        let spec = self.operation.spec;
        if !response.is_success() || !spec.needs_key || !self.is_own_request(request) {
            return;
        }
        let cache_control = response.header(CACHE_CONTROL).unwrap_or_default().to_ascii_lowercase();
        let is_builtin = self.comparison.is_builtin();
        let sends_authorization = request.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case(AUTHORIZATION.as_str()));
        let is_secret = spec.is_secret && !cache_control.contains("no-store");
        let summary = match is_secret {
            true => Some("a response with a secret may be stored"),
            false => shared_storage(&cache_control, is_builtin, sends_authorization),
        };
        let failure = summary.map(|summary| self.failure(summary, "private or no-store", cache_control.clone()));
        self.record(Check::Caching, request, failure);
    }
}

/// Returns how `Cache-Control` lets shared caches send a response for one caller to others, if it does.
///
/// `public` allows that on purpose, except in the built-in document. The response to a request with `Authorization` is not stored
/// without such a directive (RFC 9111, section 3.5).
fn shared_storage(cache_control: &str, is_builtin: bool, sends_authorization: bool) -> Option<&'static str> {
    let directives: Vec<&str> = cache_control.split(',').map(str::trim).collect();
    let has = |name: &str| directives.contains(&name);
    let is_fresh = directives.iter().any(|directive| {
        directive.strip_prefix("max-age=").and_then(|seconds| seconds.parse::<u64>().ok()).is_some_and(|seconds| seconds > 0)
    });
    let is_stored = is_builtin || !has("public") && (!sends_authorization || has("must-revalidate"));
    match () {
        () if is_builtin && has("public") => Some("a response for one caller may be stored by shared caches"),
        () if is_fresh && is_stored && !["private", "no-cache", "no-store"].into_iter().any(has) => {
            Some("a response for one caller may be reused without asking the server")
        }
        () => None,
    }
}

/// Returns the name of what an error shows of the server. Texts that the client sent are none of its internals, and texts that
/// `is_argument` accepts are no keys.
fn find_leak(text: &str, request: &Request, is_argument: impl Fn(&str) -> bool) -> Option<&'static str> {
    // Formatted for few responses only, because a body can be large.
    let sent = LazyCell::new(|| request.to_curl("", KEY_VARIABLE));
    let is_sent = |found: &str| sent.contains(found.trim_matches([' ', '\n', '\'', '(']));
    let internal = INTERNALS.iter().find(|(_, pattern)| pattern.find_iter(text).any(|found| !is_sent(found.as_str())));
    let is_key = |text: &str| text.bytes().any(|b| b.is_ascii_digit()) && text.bytes().any(|b| b.is_ascii_lowercase());
    let text = TRACE.replace_all(text, "");
    let is_leaked_key = |found: &str| is_key(found) && !is_sent(found) && !is_argument(found);
    let key = || KEY.find_iter(&text).any(|found| is_leaked_key(found.as_str()));
    internal.map(|(name, _)| *name).or_else(|| key().then_some("a key"))
}

/// Returns all texts in a value, except the identifiers of a request.
fn strings(value: &Value) -> Vec<&str> {
    match value {
        Value::String(text) => vec![text],
        Value::Array(items) => items.iter().flat_map(strings).collect(),
        Value::Object(members) => {
            members.iter().filter(|(name, _)| !has_name(&REQUEST_NAMES, name)).flat_map(|(_, member)| strings(member)).collect()
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{find_leak, shared_storage, strings};
    use crate::http_client::Request;

    #[test]
    fn ordinary_texts_and_identifiers_of_requests_are_no_leaks() {
        let request = Request::new("GET", "/home/page/x");
        for text in [
            "Please select a size from the list",
            "cannot delete from an archived list",
            "Please insert into the form",
            "No page at /home/page/x",
            "Trace 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        ] {
            assert_eq!(find_leak(text, &request, |_| false), None, "{text}");
        }
        let error = json!({ "title": "No", "traceId": "4bf92f3577b34da6a3ce929d0e0e4736", "inner": [{ "request-id": "a" }] });
        assert_eq!(strings(&error), ["No"]);
    }

    #[test]
    fn shared_caches_store_what_the_directives_allow() {
        for (cache_control, is_builtin, sends_authorization, is_finding) in [
            ("max-age=60", true, false, true),
            ("public", true, false, true),
            ("private, max-age=60", true, false, false),
            ("no-cache, max-age=60", true, false, false),
            ("max-age=60", false, false, true),
            ("max-age=60", false, true, false),
            ("max-age=60, must-revalidate", false, true, true),
            ("public, max-age=60", false, true, false),
            ("public, max-age=60", false, false, false),
            ("max-age=0", false, false, false),
        ] {
            let found = shared_storage(cache_control, is_builtin, sends_authorization);
            assert_eq!(found.is_some(), is_finding, "{cache_control} {is_builtin} {sends_authorization}");
        }
    }

    #[test]
    fn internals_are_leaks() {
        let request = Request::new("GET", "/pets");
        for (text, expected) in [
            ("near: SELECT id FROM pets", "a part of an SQL statement"),
            ("select id from pets where id = $1", "a part of an SQL statement"),
            ("insert into pets (id) values ($1)", "a part of an SQL statement"),
            ("UNIQUE constraint failed: pets.id", "a part of an SQL statement"),
            ("no such file (/srv/app/pets.db)", "a path of the server's files"),
            ("the key 4bf92f3577b34da6a3ce929d0e0e4736 is unknown", "a key"),
        ] {
            assert_eq!(find_leak(text, &request, |_| false), Some(expected), "{text}");
        }
    }
}
