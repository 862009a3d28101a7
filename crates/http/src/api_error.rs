//! API error response: the one place that maps an error to a status and a body.

use std::fmt;
use std::sync::Arc;

use boxoffice_openapi::{FieldError, FieldErrorKind};
use dropshot::{ErrorStatusCode, HttpError, HttpResponseError};
use http::StatusCode;
use schemars::JsonSchema;
use schemars::r#gen::SchemaGenerator;
use schemars::schema::Schema;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::error::{Code, Error, one_line};
use crate::rate_limit::RateLimitStatus;

/// An error response. The cause of an internal error is logged and never sent.
#[derive(Debug, Clone)]
pub struct ApiError {
    code: Code,
    text: String,
    fields: Option<Vec<FieldError>>,
    /// Further properties of the body.
    properties: Option<Box<Map<String, Value>>>,
    rate_limit: Option<Box<RateLimitStatus>>,
    /// For the log alone.
    cause: Option<Arc<anyhow::Error>>,
}

/// The body of every error. The application adds the list of codes and the further properties to its schema.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Error")]
struct Body<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'a str>,
    code: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    fields: Option<&'a [FieldError]>,
    #[serde(flatten)]
    #[schemars(skip)]
    properties: Option<&'a Map<String, Value>>,
}

impl Code {
    /// Returns whether the body has the text in `message`, as in the requirement's table.
    fn has_message(self) -> bool {
        self.status() == StatusCode::FORBIDDEN || !self.has_error()
    }

    /// Returns whether the body has the text in `error`. It has it in both places if some clients read the one, some the other.
    fn has_error(self) -> bool {
        !matches!(self, Self::KEY_MISSING | Self::KEY_REFUSED | Self::ENDPOINT_UNKNOWN | Self::SERVER_ERROR)
    }
}

impl ApiError {
    /// The HTTP status.
    pub fn status(&self) -> StatusCode {
        self.code.status()
    }

    /// The stable code.
    pub fn code(&self) -> Code {
        self.code
    }

    /// The cause of an internal error, for the log.
    pub fn cause(&self) -> Option<&anyhow::Error> {
        self.cause.as_deref()
    }

    /// Returns the cause in one line, or else the text. For the log and the command line.
    pub fn log_text(&self) -> String {
        self.cause().map_or_else(|| self.to_string(), one_line)
    }

    /// The rate limit that rejected the request.
    pub fn rate_limit(&self) -> Option<&RateLimitStatus> {
        self.rate_limit.as_deref()
    }

    /// The body, as JSON.
    pub fn body(&self) -> serde_json::Result<Vec<u8>> {
        serde_json::to_vec(self)
    }
}

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        let rate_limit = if let Error::TooMany(status) = &error { Some(status.clone()) } else { None };
        let mut properties = None;
        let (code, text, fields, cause) = match error {
            Error::Invalid(problems) => (Code::ARGUMENTS_INVALID, sentence(&problems), Some(problems), None),
            Error::Rejected(code, text) => (code, text.into_owned(), fields_of(code), None),
            Error::Detailed(rejection) => {
                properties = Some(Box::new(rejection.properties));
                (rejection.code, rejection.text.into_owned(), Some(rejection.fields), None)
            }
            Error::TooMany(status) => (Code::REQUESTS_TOO_MANY, status.text(), None, None),
            // For callers that can't send the response: the client gets it with its next attempt.
            Error::Replayed(_) => return Code::IDEMPOTENCY_UNDER_WAY.into(),
            Error::Database(cause) => {
                (Code::SERVER_ERROR, Code::SERVER_ERROR.text().to_owned(), None, Some(anyhow::Error::from_boxed(cause)))
            }
            Error::Unavailable(cause) => {
                (Code::SERVER_UNAVAILABLE, Code::SERVER_UNAVAILABLE.text().to_owned(), None, Some(cause))
            }
            Error::Internal(cause) => (Code::SERVER_ERROR, Code::SERVER_ERROR.text().to_owned(), None, Some(cause)),
        };
        Self { code, text, fields, properties, rate_limit, cause: cause.map(Arc::new) }
    }
}

impl From<Code> for ApiError {
    fn from(code: Code) -> Self {
        Error::from(code).into()
    }
}

/// Fields of the body. Every 400 has the property, even if no single argument is wrong.
fn fields_of(code: Code) -> Option<Vec<FieldError>> {
    matches!(code, Code::BODY_MALFORMED | Code::HOST_INVALID).then(Vec::new)
}

/// Errors of dropshot itself. Requests are validated before, so these are only cases that the contract can't express.
impl From<HttpError> for ApiError {
    fn from(error: HttpError) -> Self {
        if error.status_code.is_client_error() {
            return Code::ARGUMENTS_INVALID.with_message(error.external_message).into();
        }
        Error::Internal(anyhow::anyhow!("dropshot: {}", error.internal_message)).into()
    }
}

/// Returns a summary such as `Missing: name, country. Invalid: city (must be a string).`
fn sentence(problems: &[FieldError]) -> String {
    let of = |kind| problems.iter().filter(move |problem| problem.problem == kind);
    let missing: Vec<_> = of(FieldErrorKind::Missing).map(|problem| problem.name.as_str()).collect();
    let invalid: Vec<_> = of(FieldErrorKind::Invalid).map(|problem| format!("{} ({})", problem.name, problem.detail)).collect();
    let part = |title: &str, names: String| if names.is_empty() { String::new() } else { format!("{title}: {names}.") };
    let parts = [part("Missing", missing.join(", ")), part("Invalid", invalid.join(", "))];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
}

impl Serialize for ApiError {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text = self.text.as_str();
        let (error, message) = (self.code.has_error().then_some(text), self.code.has_message().then_some(text));
        let (fields, properties) = (self.fields.as_deref(), self.properties.as_deref());
        Body { error, message, code: self.code.as_str(), fields, properties }.serialize(serializer)
    }
}

impl JsonSchema for ApiError {
    fn schema_name() -> String {
        "Error".to_owned()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Body::json_schema(generator)
    }
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl HttpResponseError for ApiError {
    fn status_code(&self) -> ErrorStatusCode {
        ErrorStatusCode::from_status(self.status()).unwrap_or(ErrorStatusCode::INTERNAL_SERVER_ERROR)
    }
}
