//! Errors of a request that doesn't conform to the document.

use schemars::JsonSchema;
use serde::Serialize;

/// The kind of a [`FieldError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FieldErrorKind {
    /// The argument is required, but absent, null or blank.
    Missing,
    /// The argument is present, but its schema doesn't allow the value.
    Invalid,
}

/// An error in one argument of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "FieldProblem")]
pub struct FieldError {
    /// The argument's name.
    pub name: String,
    /// Missing or invalid.
    pub problem: FieldErrorKind,
    /// The description of the error. It completes a sentence that begins with the name.
    pub detail: String,
}

impl FieldError {
    /// An error for a required argument that is absent.
    pub fn missing(name: &str) -> Self {
        Self { name: name.to_owned(), problem: FieldErrorKind::Missing, detail: "is required".to_owned() }
    }

    /// An error for an argument that was rejected. `detail` completes a sentence that begins with the name.
    pub fn invalid(name: &str, detail: impl Into<String>) -> Self {
        Self { name: name.to_owned(), problem: FieldErrorKind::Invalid, detail: detail.into() }
    }
}

/// The reason why a request doesn't conform to the document.
#[derive(Debug)]
pub enum RequestError {
    /// Arguments are missing or invalid. Contains all of them, in the document's order.
    InvalidFields(Vec<FieldError>),
    /// A path variable of the built-in document has a value that its schema rejects, so no resource has this URI. All other
    /// arguments are valid.
    UnknownResource,
    /// The body can't be parsed.
    MalformedBody(String),
    /// The operation doesn't accept the body's media type or encoding.
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
