//! Checks that invalid arguments, sent one at a time, are rejected by name.

use boxoffice_openapi::invalid_values::{InvalidKind, invalid_values_for};
use boxoffice_openapi::response::matches_range;
use serde_json::{Value, json};

use crate::argument::{Argument, ArgumentLocation};
use crate::comparison::Comparison;
use crate::http_client::{ReceivedResponse, Request};
use crate::model::Check;
use crate::operation_run::{Exchange, OperationRun, RequestPair};
use crate::operation_under_test::Alternative;
use crate::recorder::CheckFailure;

/// Largest length of an encoded text in a URL. Servers may reject URLs of more than 8,000 bytes (RFC 9110, section 4.1).
const MAX_URL_TEXT: usize = 7_000;

/// A media type that only a range such as `*/*` allows.
const UNKNOWN_MEDIA_TYPE: &str = "application/x-unknown";

impl OperationRun<'_> {
    /// Checks every argument with every kind of value that its schema forbids.
    pub async fn check_arguments(&mut self, pair: &RequestPair) {
        let operation = self.operation;
        self.check_each(pair, &operation.arguments).await;
        for alternative in self.alternatives() {
            self.check_each(&pair.with_alternative(&alternative), &alternative.arguments).await;
        }
    }

    /// Returns the alternatives of the body. The fixtures of the built-in document have only its examples.
    pub fn alternatives(&self) -> Vec<Alternative> {
        let Comparison { contract, seed, .. } = self.comparison;
        if self.comparison.is_builtin() { Vec::new() } else { self.operation.alternatives(&contract.document, *seed) }
    }

    async fn check_each(&mut self, pair: &RequestPair, arguments: &[Argument]) {
        let spec = self.operation.spec;
        for argument in arguments {
            let remove = |request: &Request| argument.set(request, spec, None);
            let is_missed = argument.required && argument.location != ArgumentLocation::Path;
            if is_missed
                && !self.is_valid_alternative(argument, &remove(&pair.target.request))
                && let Some(exchange) = self.send_mutated(pair, true, remove).await
            {
                self.record_argument_rejection(Check::ArgumentMissing, argument, &exchange, "is missing");
            }
            for (kind, value) in self.invalid_values(argument) {
                let (check, problem) = problem_of(kind);
                let set = |request: &Request| argument.set(request, spec, Some(&value));
                let request = set(&pair.target.request);
                let is_elsewhere = argument.location == ArgumentLocation::Path && !self.is_same_operation(&request);
                if is_elsewhere || self.is_valid_alternative(argument, &request) {
                    continue;
                }
                if let Some(exchange) = self.send_mutated(pair, true, set).await {
                    self.record_argument_rejection(check, argument, &exchange, problem);
                }
            }
        }
    }

    /// Checks that a property is rejected that the schema of the body forbids. The built-in document forbids none.
    pub async fn check_undeclared_property(&mut self, pair: &RequestPair) {
        let body = self.operation.json_body.as_ref().filter(|body| body.schema["additionalProperties"] == false);
        let Some((body, mut value)) = body.zip(pair.target.request.json()) else { return };
        let pointer = format!("{}/schema/additionalProperties", body.pointer);
        let Some(object) = value.as_object_mut() else { return };
        object.insert("undeclared".to_owned(), json!(1));
        let Some(exchange) = self.send_mutated(pair, true, |request| request.clone().with_json(&value)).await else { return };
        let is_rejected = self.rejects_argument(&exchange.response);
        self.record_rejection(Check::ArgumentFormat, &exchange, is_rejected, &pointer, "an undeclared property", "400");
    }

    /// Checks that a body is rejected that is no object, such as a list, and has a value that its schema forbids; or that is an object
    /// without properties, although the schema demands some.
    pub async fn check_whole_body(&mut self, pair: &RequestPair) {
        let Some(body) = &self.operation.json_body else { return };
        let is_object = body.schema["type"] == "object" || self.operation.arguments.iter().any(Argument::is_in_body);
        let values = match is_object {
            true if body.schema["minProperties"].is_number() => vec![(InvalidKind::Bounds, json!({}))],
            true => return,
            false => invalid_values_for(&body.schema, false).into_iter().map(|invalid| (invalid.kind, invalid.value)).collect(),
        };
        for (kind, value) in values.into_iter().filter(|(_, value)| !body.is_valid(value)) {
            let Some(exchange) = self.send_mutated(pair, true, |request| request.clone().with_json(&value)).await else { return };
            let (check, problem) = problem_of(kind);
            let is_rejected = self.rejects_argument(&exchange.response);
            let name = format!("a body that {problem}");
            self.record_rejection(check, &exchange, is_rejected, &format!("{}/schema", body.pointer), &name, "400");
        }
    }

    /// Checks that a body is rejected if it is not JSON, or has an unsupported media type. Many servers ignore the media type of other
    /// bodies, so it is checked there only if 415 is declared.
    pub async fn check_body_format(&mut self, pair: &RequestPair) {
        let spec = self.operation.spec;
        let Some(declared) = &spec.body else { return };
        let (json, pointer) = match &self.operation.json_body {
            Some(body) => (Some(body.media_type.as_str()), body.pointer.clone()),
            None => (None, format!("{}/requestBody", spec.pointer)),
        };
        let allows_any = declared.contents.iter().any(|content| matches_range(&content.media_type, UNKNOWN_MEDIA_TYPE));
        let other = (!allows_any && (json.is_some() || spec.statuses.contains(&415))).then_some(UNKNOWN_MEDIA_TYPE);
        for (media_type, text, status, name) in
            [(json, "{\"name\": ", 400, "a body that is not JSON"), (other, "{}", 415, "a body of another media type")]
        {
            let Some(media_type) = media_type else { continue };
            let replace_body = |request: &Request| {
                let mut request = request.clone().with_header("Content-Type", media_type);
                request.body = Some(text.as_bytes().to_vec());
                request
            };
            let Some(exchange) = self.send_mutated(pair, true, replace_body).await else { continue };
            let response = &exchange.response;
            // The platform distinguishes the two. Many frameworks reject both in the same way.
            let is_other = status == 400 || !self.comparison.is_builtin();
            let is_expected = response.status == status || (is_other && self.rejects_argument(response));
            self.record_rejection(Check::BodyFormat, &exchange, is_expected, &pointer, name, &status.to_string());
        }
    }

    /// Returns the invalid values of an argument that can be sent in its location.
    fn invalid_values(&self, argument: &Argument) -> Vec<(InvalidKind, Value)> {
        let mut values = invalid_values_for(&argument.schema, argument.required || argument.not_blank);
        if !self.comparison.is_builtin() {
            // Only the platform treats blank as missing and forbids some characters in every text.
            values.retain(|invalid| !argument.is_valid(&invalid.value));
        }
        let parameter = argument.parameter(self.operation.spec);
        // A form has objects as JSON.
        let may_be_object = argument.location == ArgumentLocation::Form && argument.schema["type"] == "object";
        let is_sendable = |value: &Value| {
            let Some(parameter) = parameter else { return true };
            let texts = parameter.serialize(value);
            // Outside a body, a blank text counts as absent, a number is also a text, and a text is also an array of one item.
            !value.is_null()
                && (!value.is_object() || may_be_object)
                && texts.iter().any(|(_, text)| !text.trim().is_empty())
                && texts.iter().all(|(_, text)| is_sendable_in(argument.location, text))
                && !parameter.accepts(&texts)
        };
        // Outside a body, different values may be the same text.
        let mut texts = Vec::new();
        let mut is_new = |value: &Value| {
            let text = parameter.map(|parameter| parameter.serialize(value));
            let is_new = parameter.is_none() || !texts.contains(&text);
            texts.push(text);
            is_new
        };
        values.retain(|invalid| is_sendable(&invalid.value) && is_new(&invalid.value));
        // Outside of a JSON body, every value is a text, and a text can't have a wrong type.
        let is_text = parameter.is_some() && argument.schema["type"] == "string";
        let kind = |kind| if is_text && kind == InvalidKind::Type { InvalidKind::Form } else { kind };
        values.into_iter().map(|invalid| (kind(invalid.kind), invalid.value)).collect()
    }

    /// Returns if a request with an invalid property of the body is valid, because another alternative of the body's schema allows it.
    fn is_valid_alternative(&self, argument: &Argument, request: &Request) -> bool {
        let is_valid = || self.operation.has_valid_body(request) || self.operation.has_valid_form(request);
        argument.is_property() && !self.comparison.is_builtin() && is_valid()
    }

    /// Returns if a request is still routed to this operation.
    fn is_same_operation(&self, request: &Request) -> bool {
        let found = self.comparison.contract.find_ignoring_slashes(&request.method, &request.path);
        found.is_ok_and(|operation| operation.id == self.operation.spec.id)
    }

    /// Returns if the status rejects an argument: 400, 422 if the document declares it (RFC 9110), or what else another document than
    /// the built-in one declares. Without any declared rejection of arguments, 422 is as good as 400.
    fn rejects_argument(&self, response: &ReceivedResponse) -> bool {
        let spec = self.operation.spec;
        match response.status {
            400 => true,
            422 => spec.statuses.contains(&422) || !self.comparison.is_builtin() && !spec.statuses.contains(&400),
            401 | 403 | 404 | 405 | 429 => false,
            status => !self.comparison.is_builtin() && (400..500).contains(&status) && spec.statuses.contains(&status),
        }
    }

    fn record_argument_rejection(&mut self, check: Check, argument: &Argument, exchange: &Exchange, problem: &str) {
        let Exchange { request, response } = exchange;
        let name = &argument.name;
        if self.comparison.is_builtin() && argument.location == ArgumentLocation::Path {
            // An invalid identifier identifies no resource.
            let (name, is_not_found) = (format!("{name} that {problem}"), response.status == 404);
            return self.record_rejection(check, exchange, is_not_found, &argument.pointer, &name, "404");
        }
        // An invalid identifier in the path may be an unknown resource, unless the document declares 400 alone.
        let declares = |status| self.operation.spec.statuses.contains(&status);
        let is_not_found =
            argument.location == ArgumentLocation::Path && response.status == 404 && (declares(404) || !declares(400));
        let is_rejected = self.rejects_argument(response);
        // The format of other documents' errors is unknown, so the name is checked in the platform's errors only.
        if self.comparison.is_builtin() && is_rejected && !names_argument(response, name) {
            let failure = CheckFailure {
                pointer: argument.pointer.clone(),
                summary: format!("the response doesn't name {name}, which {problem}"),
                expected: format!("{} with the name {name}", response.status),
                actual: response.describe(),
            };
            self.record(check, request, Some(failure));
        } else if let Some(summary) = self.wrong_field(check, response, name).filter(|_| is_rejected) {
            let expected = format!("{} alone, as missing or invalid", name);
            let failure = CheckFailure { pointer: argument.pointer.clone(), summary, expected, actual: response.describe() };
            self.record(check, request, Some(failure));
        } else {
            let name = format!("{name} that {problem}");
            self.record_rejection(check, exchange, is_rejected || is_not_found, &argument.pointer, &name, "400");
        }
    }

    /// Returns a summary if the platform's error reports another argument, too, or the wrong problem.
    fn wrong_field(&self, check: Check, response: &ReceivedResponse, name: &str) -> Option<String> {
        let body = response.json();
        let fields = body["fields"].as_array().filter(|_| self.comparison.is_builtin())?;
        if let Some(other) = fields.iter().filter_map(|field| field["name"].as_str()).find(|other| *other != name) {
            return Some(format!("the response names {other}, too, which is valid"));
        }
        let problem = if check == Check::ArgumentMissing { "missing" } else { "invalid" };
        fields.iter().any(|field| field["problem"] != problem).then(|| format!("the response doesn't call {name} {problem}"))
    }

    /// Records if an invalid request was rejected with the expected status, and checks the response if its status is declared.
    pub fn record_rejection(
        &mut self,
        check: Check,
        exchange: &Exchange,
        is_expected: bool,
        pointer: &str,
        name: &str,
        expected: &str,
    ) {
        let Exchange { request, response } = exchange;
        // A declared `default` covers every status that the document doesn't declare: any rejection may have it.
        let spec = self.operation.spec;
        let is_default = (400..500).contains(&response.status)
            && !spec.statuses.contains(&response.status)
            && !expected.split(" or ").any(|status| status.parse().is_ok_and(|status| spec.statuses.contains(&status)))
            && spec.response_for(response.status).is_some();
        let is_expected = is_expected || is_default;
        // `send` has recorded statuses from 500.
        let failure = (!is_expected && response.status < 500).then(|| CheckFailure {
            pointer: pointer.to_owned(),
            summary: format!("{name} is answered with {}", response.status),
            expected: expected.to_owned(),
            actual: response.describe(),
        });
        self.record(check, request, failure);
        if self.operation.spec.response_for(response.status).is_some() {
            self.check_response(request, response);
        }
    }
}

/// Returns the check for an invalid value, and its description.
fn problem_of(kind: InvalidKind) -> (Check, &'static str) {
    match kind {
        InvalidKind::Missing => (Check::ArgumentMissing, "is blank"),
        InvalidKind::Type => (Check::ArgumentType, "has a wrong type"),
        InvalidKind::Bounds => (Check::ArgumentBounds, "is out of bounds"),
        InvalidKind::Enum => (Check::ArgumentEnum, "has an unknown value"),
        InvalidKind::Form => (Check::ArgumentFormat, "has an invalid format"),
    }
}

/// Returns if a text can be sent in a part of a request.
pub fn is_sendable_in(location: ArgumentLocation, text: &str) -> bool {
    match location {
        ArgumentLocation::Body | ArgumentLocation::Form => true,
        // A client removes dot segments from a path (RFC 3986, section 5.2.4).
        ArgumentLocation::Path if text == "." || text == ".." => false,
        ArgumentLocation::Path | ArgumentLocation::Query => {
            text.bytes().map(|byte| if byte.is_ascii_alphanumeric() { 1 } else { 3 }).sum::<usize>() <= MAX_URL_TEXT
        }
        ArgumentLocation::Header => text.chars().all(|character| matches!(character, ' '..='~')),
        // RFC 6265, section 4.1.1.
        ArgumentLocation::Cookie => text.chars().all(|c| matches!(c, '!'..='~') && !['"', ',', ';', '\\'].contains(&c)),
    }
}

/// Returns if the platform's error names an argument in `fields`.
fn names_argument(response: &ReceivedResponse, name: &str) -> bool {
    response.json()["fields"].as_array().is_some_and(|fields| fields.iter().any(|field| field["name"] == name))
}
