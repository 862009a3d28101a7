//! Validation of a request: collects all missing and invalid arguments, in the document's order.

use std::borrow::Cow;

use http::{HeaderMap, header};
use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};

use crate::Operation;
use crate::error::{FieldError, RequestError, Result};
use crate::json;
use crate::parameter::{Parameter, ParameterLocation, RawValues};

/// The arguments of a valid request, converted to the types of their schemas.
#[derive(Debug, Default)]
pub struct ParsedRequest {
    /// The variables of the path.
    pub path: Map<String, Value>,
    /// The query parameters, without absent and blank ones.
    pub query: Map<String, Value>,
    /// The body, without optional properties that were null, except those that a null clears. Null if there is no body, or it is
    /// neither JSON nor a form.
    pub body: Value,
}

impl Operation {
    /// Validates and parses a request. `path` is the request's path without the base path of the document's server.
    ///
    /// In the built-in document, an invalid path variable identifies no resource. It is reported after all other errors, like a
    /// valid one that identifies no resource.
    ///
    /// # Errors
    /// [`RequestError`] for missing or invalid arguments, a malformed body, or a body of another media type.
    pub fn check(&self, path: &str, query: Option<&str>, headers: &HeaderMap, body: &[u8]) -> Result<ParsedRequest> {
        let (mut errors, mut is_unknown_resource) = (Vec::new(), false);
        let mut parsed = ParsedRequest::default();
        for location in [ParameterLocation::Path, ParameterLocation::Query, ParameterLocation::Header, ParameterLocation::Cookie]
        {
            let arguments = self.arguments(location, path, query.unwrap_or_default(), headers, &mut errors)?;
            match location {
                ParameterLocation::Path => parsed.path = arguments,
                ParameterLocation::Query => parsed.query = arguments,
                ParameterLocation::Header | ParameterLocation::Cookie => {}
            }
            if self.is_builtin && location == ParameterLocation::Path {
                is_unknown_resource = !errors.is_empty();
                errors.clear();
            }
        }
        if let Some(declared) = &self.body {
            parsed.body = declared.parse(headers, body, &mut errors)?;
        }
        match (errors.is_empty(), is_unknown_resource) {
            (false, _) => Err(RequestError::InvalidFields(errors)),
            (true, true) => Err(RequestError::UnknownResource),
            (true, false) => Ok(parsed),
        }
    }

    /// Returns the names of the query parameters that the operation doesn't define, in the order sent. Empty unless the operation
    /// belongs to the built-in document: other documents may define parameters in ways that aren't parsed here.
    pub fn undefined_parameters<'a>(&'a self, query: &'a str) -> impl Iterator<Item = Cow<'a, str>> {
        let names = form_urlencoded::parse(query.as_bytes()).map(|(name, _)| name);
        names.filter(|name| {
            let is_it = |parameter: &Parameter| parameter.location == ParameterLocation::Query && parameter.name == *name;
            self.is_builtin && !name.is_empty() && !self.parameters.iter().any(is_it)
        })
    }

    /// Parses the variables of a path.
    ///
    /// # Errors
    /// [`RequestError::UnknownResource`] for an invalid variable of the built-in document, otherwise as for [`check`](Self::check).
    pub fn path_arguments(&self, path: &str) -> Result<Map<String, Value>> {
        let mut errors = Vec::new();
        let arguments = self.arguments(ParameterLocation::Path, path, "", &HeaderMap::new(), &mut errors)?;
        match errors.is_empty() {
            true => Ok(arguments),
            false if self.is_builtin => Err(RequestError::UnknownResource),
            false => Err(RequestError::InvalidFields(errors)),
        }
    }

    /// Parses the parameters in one location. Adds an error for each one that is missing or invalid.
    fn arguments(
        &self,
        location: ParameterLocation,
        path: &str,
        query: &str,
        headers: &HeaderMap,
        errors: &mut Vec<FieldError>,
    ) -> Result<Map<String, Value>> {
        if !self.parameters.iter().any(|parameter| parameter.location == location) {
            return Ok(Map::new());
        }
        if location != ParameterLocation::Path || !self.template.is_ambiguous() {
            return self.parse_arguments(location, &self.raw_values(location, path, query, headers), errors);
        }
        // The first division of the path that is valid, or else the errors of the first one.
        let mut first = None;
        for variables in self.template.divisions(path) {
            let mut found = Vec::new();
            let arguments = self.parse_arguments(location, &decoded(variables.into_iter()), &mut found)?;
            if found.is_empty() {
                return Ok(arguments);
            }
            first.get_or_insert((arguments, found));
        }
        let (arguments, found) = first.unwrap_or_default();
        errors.extend(found);
        Ok(arguments)
    }

    /// Parses the parameters in one location from their unparsed values. Adds an error for each one that is missing or invalid.
    fn parse_arguments(
        &self,
        location: ParameterLocation,
        raw: &RawValues,
        errors: &mut Vec<FieldError>,
    ) -> Result<Map<String, Value>> {
        let mut arguments = Map::new();
        for parameter in self.parameters.iter().filter(|parameter| parameter.location == location) {
            let Some(value) = parameter.parse(&parameter.own_values(&self.parameters, raw), errors)? else { continue };
            // Headers are exempt: HTTP allows a tab in them and rejects all other control characters.
            let is_restricted = self.is_builtin && location != ParameterLocation::Header;
            match is_restricted.then(|| parameter.characters.violation(&value)).flatten() {
                Some(detail) => errors.push(FieldError::invalid(&parameter.name, detail)),
                None => _ = arguments.insert(parameter.name.clone(), value),
            }
        }
        Ok(arguments)
    }

    /// Returns the value of [`guessing_argument`](Self::guessing_argument), even if the request is otherwise invalid. Empty if the
    /// value is absent or not a string.
    pub fn guessing_target(&self, path: &str, body: &[u8]) -> String {
        let Some(argument) = &self.guessing_argument else { return String::new() };
        if let Some((_, text)) = self.template.variables(path).find(|(name, _)| name == argument) {
            return percent_decode_str(text).decode_utf8_lossy().into_owned();
        }
        // With the parser of `check`: of a body that only this one could read, the value would not be known.
        let body = json::parse(body).unwrap_or(Value::Null);
        body[argument].as_str().unwrap_or_default().to_owned()
    }

    /// Returns the unparsed values of a request in one location.
    fn raw_values<'a>(
        &'a self,
        location: ParameterLocation,
        path: &'a str,
        query: &'a str,
        headers: &'a HeaderMap,
    ) -> RawValues<'a> {
        match location {
            ParameterLocation::Path => decoded(self.template.variables(path)),
            // In the built-in document, a blank query parameter counts as absent.
            ParameterLocation::Query => {
                let pairs = form_urlencoded::parse(query.as_bytes());
                pairs.filter(|(_, text)| !self.is_builtin || !text.trim().is_empty()).collect()
            }
            // Only declared headers, to save the work of converting the others. Several lines of one header are equivalent to one
            // line with commas (RFC 9110, section 5.3).
            ParameterLocation::Header => {
                let declared = self.parameters.iter().filter(|parameter| parameter.location == ParameterLocation::Header);
                let raw_value = |parameter: &'a Parameter| {
                    let mut lines = headers.get_all(&parameter.name).iter().map(|line| String::from_utf8_lossy(line.as_bytes()));
                    let first = lines.next()?;
                    Some((parameter.name.as_str().into(), lines.fold(first, |all, line| all + ", " + line)))
                };
                declared.filter_map(raw_value).collect()
            }
            ParameterLocation::Cookie => {
                let cookies = headers.get_all(header::COOKIE).into_iter().filter_map(|value| value.to_str().ok());
                let pairs = cookies.flat_map(|cookies| cookies.split(';')).filter_map(|cookie| cookie.split_once('='));
                pairs.map(|(name, text)| (name.trim().into(), percent_decode_str(text.trim()).decode_utf8_lossy())).collect()
            }
        }
    }
}

/// Returns the variables of a path with their values percent-decoded.
fn decoded<'a>(variables: impl Iterator<Item = (&'a str, &'a str)>) -> RawValues<'a> {
    variables.map(|(name, text)| (name.into(), percent_decode_str(text).decode_utf8_lossy())).collect()
}
