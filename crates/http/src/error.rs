//! Domain errors. [`ApiError`] maps them to a response.

use std::borrow::Cow;

use anyhow::anyhow;
use boxoffice_openapi::RequestError;
pub use boxoffice_openapi::{FieldError, FieldErrorKind};
use dropshot::Body;
use http::Response;
pub use http::StatusCode;
use serde_json::{Map, Value};

use crate::ApiError;
use crate::rate_limit::RateLimitStatus;

/// The stable code of an error, by which clients distinguish errors, with its status and its default text. Texts may change.
///
/// The constants are the codes that are not specific to an application, which declares its own with
/// [`error_codes!`](crate::error_codes).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Code {
    // First, so that sorted codes are grouped by status.
    status: StatusCode,
    name: &'static str,
    text: &'static str,
}

/// Declares error codes as constants, each with its name, its status and its default text, and a list of all of them.
#[macro_export]
macro_rules! error_codes {
    (
        $(#[$doc:meta])*
        $visibility:vis const $list:ident;
        $($constant:ident = ($name:literal, $status:ident, $text:literal),)*
    ) => {
        $(
            #[doc = $text]
            pub const $constant: $crate::error::Code =
                $crate::error::Code::new($name, $crate::error::StatusCode::$status, $text);
        )*

        $(#[$doc])*
        $visibility const $list: &[$crate::error::Code] =
            &[$($crate::error::Code::new($name, $crate::error::StatusCode::$status, $text),)*];
    };
}

impl Code {
    error_codes! {
        /// The codes declared here.
        pub const GENERIC;

        ARGUMENTS_INVALID = ("arguments.invalid", BAD_REQUEST, "Some arguments are missing or invalid."),
        BODY_MALFORMED = ("body.malformed", BAD_REQUEST, "The request's body is not valid JSON."),
        HOST_INVALID = (
            "host.invalid",
            BAD_REQUEST,
            "The request must have exactly one Host header, with the name of the server."
        ),
        KEY_MISSING = ("key.missing", UNAUTHORIZED, "Your request could not be authenticated."),
        KEY_REFUSED = ("key.refused", FORBIDDEN, "You are restricted from accessing this resource."),
        RESOURCE_NOT_YOURS = ("resource.not-yours", FORBIDDEN, "You are restricted from accessing this resource."),
        ENDPOINT_UNKNOWN = ("endpoint.unknown", NOT_FOUND, "The requested endpoint does not exist on this server."),
        RESOURCE_NOT_FOUND = ("resource.not-found", NOT_FOUND, "There is presently no resource with the given URI."),
        PAGE_PAST_END = ("page.past-end", NOT_FOUND, "There is presently no resource with the given URI."),
        METHOD_NOT_ALLOWED = (
            "method.not-allowed",
            METHOD_NOT_ALLOWED,
            "This endpoint does not allow this method. The Allow header names those it does."
        ),
        BODY_TOO_SLOW = ("body.too-slow", REQUEST_TIMEOUT, "The request's body did not arrive in time."),
        IDEMPOTENCY_UNDER_WAY = (
            "idempotency.under-way",
            CONFLICT,
            "A request with this Idempotency-Key is still in progress. Try again shortly."
        ),
        CLIENT_OUTDATED = ("client.outdated", PRECONDITION_FAILED, "Please upgrade your client to complete this request"),
        RESOURCE_CHANGED = (
            "resource.changed",
            PRECONDITION_FAILED,
            "This resource has changed since it was read. Read it again, and repeat the change if it still applies."
        ),
        BODY_TOO_LARGE = ("body.too-large", PAYLOAD_TOO_LARGE, "The request's body is too large."),
        URI_TOO_LONG = ("uri.too-long", URI_TOO_LONG, "The request's path and query are too long."),
        MEDIA_TYPE_UNSUPPORTED = (
            "media-type.unsupported",
            UNSUPPORTED_MEDIA_TYPE,
            "The request's body must be application/json."
        ),
        IDEMPOTENCY_OTHER_REQUEST = (
            "idempotency.other-request",
            UNPROCESSABLE_ENTITY,
            "This Idempotency-Key belongs to another request. Send each request with a key of its own."
        ),
        REQUESTS_TOO_MANY = ("requests.too-many", TOO_MANY_REQUESTS, "Too many requests. Try again later."),
        HEADERS_TOO_LARGE = ("headers.too-large", REQUEST_HEADER_FIELDS_TOO_LARGE, "The request's headers are too large."),
        SERVER_ERROR = (
            "server.error",
            INTERNAL_SERVER_ERROR,
            "There was a server error while excuting this request. Please see system logs for details."
        ),
        SERVER_UNAVAILABLE = (
            "server.unavailable",
            SERVICE_UNAVAILABLE,
            "The server is unavailable at the moment. Try again shortly."
        ),
    }

    /// Creates a code. `name` is what is sent to clients.
    pub const fn new(name: &'static str, status: StatusCode, text: &'static str) -> Self {
        Self { status, name, text }
    }

    /// The code as it is sent to clients.
    pub const fn as_str(self) -> &'static str {
        self.name
    }

    /// The HTTP status.
    pub const fn status(self) -> StatusCode {
        self.status
    }

    /// The default text.
    pub const fn text(self) -> &'static str {
        self.text
    }

    /// Creates an error with this code and a more specific text.
    pub fn with_message(self, text: impl Into<Cow<'static, str>>) -> Error {
        Error::Rejected(self, text.into())
    }
}

/// The error of an operation. Nothing was changed, except possibly for [`Error::Unavailable`].
#[derive(Debug)]
pub enum Error {
    /// Missing and invalid arguments, in the contract's order.
    Invalid(Vec<FieldError>),
    /// A business rule, the resource's state or a missing permission rejects the operation.
    Rejected(Code, Cow<'static, str>),
    /// A rejection whose body has more than a code and a text.
    Detailed(Box<DetailedRejection>),
    /// A rate limit is exceeded.
    TooMany(Box<RateLimitStatus>),
    /// The request was executed before, with this response, which the client receives again. Like an error, it ends the work.
    Replayed(Box<Response<Body>>),
    /// The database failed. The cause is an `sqlx::Error`.
    Database(Box<dyn std::error::Error + Send + Sync>),
    /// A dependency, such as the database, is unavailable. Nothing was changed, unless the response to a commit was lost: then
    /// the outcome is unknown. The cause is only logged.
    Unavailable(anyhow::Error),
    /// An internal error. The cause is only logged.
    Internal(anyhow::Error),
}

/// A rejection with invalid arguments and further properties of the body.
#[derive(Debug, Clone)]
pub struct DetailedRejection {
    /// The code.
    pub code: Code,
    /// The text.
    pub text: Cow<'static, str>,
    /// The invalid arguments.
    pub fields: Vec<FieldError>,
    /// Further properties of the body.
    pub properties: Map<String, Value>,
}

/// A result whose error is [`Error`] by default.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// 404: the resource doesn't exist, or the caller may not see it.
    pub const NOT_FOUND: Error = Error::Rejected(Code::RESOURCE_NOT_FOUND, Cow::Borrowed(Code::RESOURCE_NOT_FOUND.text()));
    /// 403: the caller lacks the required relation to the resource.
    pub const FORBIDDEN: Error = Error::Rejected(Code::RESOURCE_NOT_YOURS, Cow::Borrowed(Code::RESOURCE_NOT_YOURS.text()));

    /// Returns whether it is certain that nothing was changed.
    pub fn is_definite(&self) -> bool {
        !matches!(self, Self::Unavailable(_))
    }

    /// Separates a rejection, which is a valid outcome, from a failure.
    ///
    /// # Errors
    /// The failure.
    pub fn split_rejection<T>(result: Result<T>) -> Result<Result<T>> {
        match result {
            Err(failure @ (Self::Database(_) | Self::Unavailable(_) | Self::Internal(_))) => Err(failure),
            outcome => Ok(outcome),
        }
    }

    /// Returns a copy for another request of the same batch. Causes can't be cloned and become text.
    pub fn clone_lossy(&self) -> Self {
        match self {
            Self::Invalid(problems) => Self::Invalid(problems.clone()),
            Self::Rejected(code, text) => Self::Rejected(*code, text.clone()),
            Self::Detailed(rejection) => Self::Detailed(rejection.clone()),
            Self::TooMany(status) => Self::TooMany(status.clone()),
            Self::Replayed(_) => Code::IDEMPOTENCY_UNDER_WAY.into(),
            Self::Database(cause) => Self::Internal(anyhow!("{cause}")),
            Self::Internal(cause) => Self::Internal(anyhow!("{}", one_line(cause))),
            Self::Unavailable(cause) => Self::Unavailable(anyhow!("{}", one_line(cause))),
        }
    }

    /// Returns the cause of an error in one line, or else its text. For the log and the command line.
    pub fn into_log_text(self) -> String {
        ApiError::from(self).log_text()
    }

    /// Creates an error about one invalid argument. `detail` continues a sentence that begins with its name.
    pub fn invalid(name: &str, detail: impl Into<String>) -> Self {
        Self::Invalid(vec![FieldError::invalid(name, detail)])
    }
}

/// Returns an error and its causes on one line, for the log and the command line. Leaves out a cause whose text is in that of the
/// error before it, because libraries often repeat it.
pub fn one_line(error: &anyhow::Error) -> String {
    let mut line = String::new();
    for cause in error.chain() {
        let text = cause.to_string();
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        if !line.contains(&text) {
            line.push_str(if line.is_empty() { "" } else { ": " });
            line.push_str(&text);
        }
    }
    line
}

impl From<Code> for Error {
    fn from(code: Code) -> Self {
        Self::Rejected(code, Cow::Borrowed(code.text()))
    }
}

impl From<anyhow::Error> for Error {
    fn from(error: anyhow::Error) -> Self {
        Self::Internal(error)
    }
}

/// For the command line: the cause in one line, or else the text.
impl From<Error> for anyhow::Error {
    fn from(error: Error) -> Self {
        anyhow!(error.into_log_text())
    }
}

impl From<RequestError> for Error {
    fn from(error: RequestError) -> Self {
        match error {
            RequestError::InvalidFields(fields) => Self::Invalid(fields),
            RequestError::UnknownResource => Self::NOT_FOUND,
            RequestError::MalformedBody(text) => Code::BODY_MALFORMED.with_message(text),
            RequestError::UnsupportedMediaType(text) => Code::MEDIA_TYPE_UNSUPPORTED.with_message(text),
            RequestError::Internal(cause) => Self::Internal(cause),
        }
    }
}

/// Succeeds if `errors` is empty; otherwise returns all of them.
///
/// # Errors
/// [`Error::Invalid`].
pub fn ensure_no_field_errors(errors: Vec<FieldError>) -> Result<()> {
    if errors.is_empty() { Ok(()) } else { Err(Error::Invalid(errors)) }
}

/// Returns `error` if the condition is true. For an error that costs nothing to create, because it is created in any case.
///
/// # Errors
/// `error`.
pub fn reject_if(condition: bool, error: impl Into<Error>) -> Result<()> {
    if condition { Err(error.into()) } else { Ok(()) }
}
