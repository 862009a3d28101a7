//! Errors of a request that does not conform to the document.

use schemars::JsonSchema;
use serde::Serialize;

/// Whether an argument is missing or invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FieldErrorKind {
    /// It was required, and absent, null or blank.
    Missing,
    /// It was there, and not as the contract says.
    Invalid,
}

/// What is wrong with one argument of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "FieldProblem")]
pub struct FieldError {
    /// The argument's name.
    pub name: String,
    /// Whether it is missing or invalid.
    pub problem: FieldErrorKind,
    /// What is wrong with it, in words.
    pub detail: String,
}

impl FieldError {
    /// A required argument that was not given.
    pub fn missing(name: &str) -> Self {
        Self { name: name.to_owned(), problem: FieldErrorKind::Missing, detail: "is required".to_owned() }
    }

    /// An argument that cannot be taken; `detail` completes the sentence that its name begins.
    pub fn invalid(name: &str, detail: impl Into<String>) -> Self {
        Self { name: name.to_owned(), problem: FieldErrorKind::Invalid, detail: detail.into() }
    }
}

/// The reason why a request does not conform to the document.
#[derive(Debug)]
pub enum RequestError {
    /// Arguments are missing or invalid: all of them, in the document's order.
    InvalidFields(Vec<FieldError>),
    /// The body can't be parsed.
    MalformedBody(String),
    /// The body has a media type or an encoding that the operation does not accept.
    UnsupportedMediaType(String),
    /// A schema of the document can't be compiled.
    Internal(anyhow::Error),
}

impl From<anyhow::Error> for RequestError {
    fn from(error: anyhow::Error) -> Self {
        Self::Internal(error)
    }
}

/// The result of checking a request.
pub type Result<T, E = RequestError> = std::result::Result<T, E>;
