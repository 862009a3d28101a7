//! A request held against the contract: everything that is missing or invalid, at once, in the document's order.

use http::{HeaderMap, header};
use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};

use super::Operation;
use super::parameter::{Parameter, ParameterLocation, RawValues};
use crate::error::{FieldError, RequestError, Result};

/// What a request that fits the contract says, in the types that the contract gives it.
#[derive(Debug, Default)]
pub struct ParsedRequest {
    /// The path's variables.
    pub path: Map<String, Value>,
    /// The query's parameters; those that were absent or blank are not there.
    pub query: Map<String, Value>,
    /// The body, without the optional properties that were null; null where it is none, or neither JSON nor a form.
    pub body: Value,
}

impl Operation {
    /// Holds a request against the contract. `path` is the requested one, without the path of the document's server.
    ///
    /// # Errors
    /// When something is missing or invalid, or the body is of another media type or none at all.
    pub fn check(&self, path: &str, query: Option<&str>, headers: &HeaderMap, body: &[u8]) -> Result<ParsedRequest> {
        let mut problems = Vec::new();
        let mut arguments = ParsedRequest::default();
        for place in [ParameterLocation::Path, ParameterLocation::Query, ParameterLocation::Header, ParameterLocation::Cookie] {
            let mut parameters = self.parameters.iter().filter(|parameter| parameter.place == place).peekable();
            if parameters.peek().is_none() {
                continue;
            }
            let given = self.given(place, path, query.unwrap_or_default(), headers);
            for parameter in parameters {
                let Some(value) = parameter.read(&given, &mut problems)? else { continue };
                // A tab is white space in a header, which HTTP keeps free of other control characters.
                let has_rules = self.is_builtin && place != ParameterLocation::Header;
                let wrong = if has_rules { parameter.characters.wrong(&value) } else { None };
                if let Some(detail) = wrong {
                    problems.push(FieldError::invalid(&parameter.name, detail));
                    continue;
                }
                match place {
                    ParameterLocation::Path => arguments.path.insert(parameter.name.clone(), value),
                    ParameterLocation::Query => arguments.query.insert(parameter.name.clone(), value),
                    ParameterLocation::Header | ParameterLocation::Cookie => None,
                };
            }
        }
        if let Some(expected) = &self.body {
            arguments.body = expected.check(headers, body, &mut problems)?;
        }
        if problems.is_empty() { Ok(arguments) } else { Err(RequestError::InvalidFields(problems)) }
    }

    /// The value of the argument that [`guessing`](Self::guessing) names, whatever else is wrong with the request; empty where it
    /// has none that is a text.
    pub fn guessed(&self, path: &str, body: &[u8]) -> String {
        let Some(argument) = &self.credential_param else { return String::new() };
        if let Some((_, text)) = self.template.variables(path).find(|(name, _)| name == argument) {
            return percent_decode_str(text).decode_utf8_lossy().into_owned();
        }
        let body = serde_json::from_slice(body).unwrap_or(Value::Null);
        body[argument].as_str().unwrap_or_default().to_owned()
    }

    /// What a request says in one place.
    fn given<'a>(&'a self, place: ParameterLocation, path: &'a str, query: &'a str, headers: &'a HeaderMap) -> RawValues<'a> {
        match place {
            ParameterLocation::Path => {
                let variables = self.template.variables(path);
                variables.map(|(name, text)| (name.into(), percent_decode_str(text).decode_utf8_lossy())).collect()
            }
            // What is blank counts as absent on the platform (wire facts).
            ParameterLocation::Query => {
                let pairs = form_urlencoded::parse(query.as_bytes());
                pairs.filter(|(_, text)| !self.is_builtin || !text.trim().is_empty()).collect()
            }
            // Those alone that are declared, on every request's way. Several lines say the same as one (RFC 9110, section 5.3).
            ParameterLocation::Header => {
                let declared = self.parameters.iter().filter(|parameter| parameter.place == ParameterLocation::Header);
                let given = |parameter: &'a Parameter| {
                    let mut lines = headers.get_all(&parameter.name).iter().map(|line| String::from_utf8_lossy(line.as_bytes()));
                    let first = lines.next()?;
                    Some((parameter.name.as_str().into(), lines.fold(first, |all, line| all + ", " + line)))
                };
                declared.filter_map(given).collect()
            }
            ParameterLocation::Cookie => {
                let cookies = headers.get_all(header::COOKIE).into_iter().filter_map(|value| value.to_str().ok());
                let pairs = cookies.flat_map(|cookies| cookies.split(';')).filter_map(|cookie| cookie.split_once('='));
                pairs.map(|(name, text)| (name.trim().into(), text.trim().into())).collect()
            }
        }
    }
}
