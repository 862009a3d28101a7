//! Callbacks: requests that a server sends to a client because of an operation, and the runtime expressions in their URLs.

use std::fmt::Write;

use http::HeaderMap;
use serde_json::Value;

use crate::resolver::{References, escape};
use crate::response::BodyContent;
use crate::schema::{Direction, to_plain_string};
use crate::{METHODS, Operation, ParsedRequest};

/// A request that a server sends because of an operation.
#[derive(Debug)]
pub struct Callback {
    /// The name in the document.
    pub name: String,
    /// The URL, with runtime expressions: `{$request.body#/callbackUrl}/events`.
    pub url: String,
    /// The method, in capitals.
    pub method: String,
    /// The first declared body, if there is one.
    pub content: Option<BodyContent>,
    /// Location in the document, as a JSON pointer.
    pub pointer: String,
}

/// A request and its response: the values of runtime expressions.
#[derive(Debug, Clone, Copy)]
pub struct RuntimeValues<'a> {
    /// The operation.
    pub operation: &'a Operation,
    /// The URL of the request.
    pub url: &'a str,
    /// The headers of the request.
    pub request_headers: &'a HeaderMap,
    /// The arguments of the request.
    pub arguments: &'a ParsedRequest,
    /// The status of the response.
    pub status: u16,
    /// The headers of the response.
    pub response_headers: &'a HeaderMap,
    /// The body of the response; null if it isn't JSON.
    pub response_body: &'a Value,
}

/// Reads the callbacks of an Operation Object.
pub(crate) fn read<'a>(
    references: &References<'a>,
    pointer: &str,
    operation: &'a Value,
    warnings: &mut Vec<String>,
) -> Vec<Callback> {
    let mut callbacks = Vec::new();
    let declared = operation["callbacks"].as_object().into_iter().flatten();
    let urls =
        declared.flat_map(|(name, node)| references.follow(node).as_object().into_iter().flatten().map(move |url| (name, url)));
    for (name, (url, item)) in urls.filter(|(_, (url, _))| !url.starts_with("x-")) {
        let item = references.follow(item);
        for (method, node) in METHODS.into_iter().filter_map(|method| Some((method, item.get(method)?))) {
            let pointer = format!("{pointer}/callbacks/{}/{}/{method}", escape(name), escape(url));
            if let Some(problem) = expressions(url).find_map(|part| part.err()) {
                warnings.push(format!("the callback {name} is left out: {problem}"));
                continue;
            }
            let body = node.get("requestBody").and_then(|body| references.follow(body)["content"].as_object());
            let content = body.and_then(|contents| contents.iter().next());
            let content = content.map(|(media_type, node)| BodyContent::new(references, media_type, node, Direction::Request));
            callbacks.push(Callback { name: name.clone(), url: url.clone(), method: method.to_uppercase(), content, pointer });
        }
    }
    callbacks
}

impl Callback {
    /// Returns the URL with the values of its runtime expressions.
    ///
    /// # Errors
    /// Returns an error that names the first expression without a value.
    pub fn resolve_url(&self, values: &RuntimeValues<'_>) -> Result<String, String> {
        let mut url = String::new();
        for part in expressions(&self.url) {
            match part? {
                UrlPart::Literal(text) => url.push_str(text),
                UrlPart::Expression(expression) => {
                    let value = values.evaluate(expression).ok_or_else(|| format!("{expression} has no value"))?;
                    let _infallible = url.write_str(&value);
                }
            }
        }
        Ok(url)
    }
}

impl RuntimeValues<'_> {
    /// Returns the value of a runtime expression, such as `$request.body#/callbackUrl` (OpenAPI 3.0, Runtime Expressions).
    fn evaluate(&self, expression: &str) -> Option<String> {
        let header = |headers: &HeaderMap, name: &str| headers.get(name)?.to_str().ok().map(str::to_owned);
        let at = |body: &Value, pointer: &str| {
            let pointer = pointer.strip_prefix('#').unwrap_or(pointer);
            body.pointer(pointer).filter(|value| !value.is_null()).map(to_plain_string)
        };
        let (source, rest) = match expression {
            "$url" => return Some(self.url.to_owned()),
            "$method" => return Some(self.operation.method.clone()),
            "$statusCode" => return Some(self.status.to_string()),
            _ => expression.strip_prefix('$')?.split_once('.')?,
        };
        let (place, name) = rest.split_at(rest.find(['.', '#']).unwrap_or(rest.len()));
        let name = name.strip_prefix('.').unwrap_or(name);
        match (source, place) {
            ("request", "header") => header(self.request_headers, name),
            ("request", "query") => self.arguments.query.get(name).map(to_plain_string),
            ("request", "path") => self.arguments.path.get(name).map(to_plain_string),
            ("request", "body") => at(&self.arguments.body, name),
            ("response", "header") => header(self.response_headers, name),
            ("response", "body") => at(self.response_body, name),
            _ => None,
        }
    }
}

/// A part of the URL of a callback.
enum UrlPart<'a> {
    Literal(&'a str),
    Expression(&'a str),
}

/// Splits the URL of a callback into texts and expressions. A URL that is only an expression may lack the braces, as in many documents.
fn expressions(url: &str) -> impl Iterator<Item = Result<UrlPart<'_>, String>> {
    let mut rest = url;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        if rest.starts_with('$') && rest.len() == url.len() && !rest.contains(['{', '}']) {
            return Some(Ok(UrlPart::Expression(std::mem::take(&mut rest))));
        }
        let start = rest.find("{$").unwrap_or(rest.len());
        if start > 0 {
            let (literal, after) = rest.split_at(start);
            rest = after;
            return Some(Ok(UrlPart::Literal(literal)));
        }
        let Some((expression, after)) = rest[1..].split_once('}') else {
            rest = "";
            return Some(Err(format!("an expression in {url} has no end")));
        };
        rest = after;
        Some(Ok(UrlPart::Expression(expression)))
    })
}
