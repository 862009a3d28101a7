//! Domain errors, independent of HTTP. [`ApiError`] maps them to a status and a body.

use std::borrow::Cow;

use anyhow::anyhow;
use boxoffice_openapi::RequestError;
pub use boxoffice_openapi::{FieldError, FieldErrorKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ApiError;
use crate::rate_limit::RateLimitStatus;
use crate::refused_ticket::RefusedTicket;

/// Declares the stable codes with their default texts.
macro_rules! codes {
    ($($variant:ident = $code:literal: $text:literal,)*) => {
        /// The stable code of an error, by which clients distinguish errors. Texts may change.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
        pub enum Code {
            $(#[doc = $text] #[serde(rename = $code)] $variant,)*
        }

        impl Code {
            /// The code as it is sent to clients.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $code,)* }
            }

            /// The default text.
            pub const fn text(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }
        }
    };
}

codes! {
    ArgumentsInvalid = "arguments.invalid": "Some arguments are missing or invalid.",
    BodyMalformed = "body.malformed": "The request's body is not valid JSON.",
    HostInvalid = "host.invalid": "The request must have exactly one Host header, with the name of the server.",
    AdmissionNone = "admission.none": "None of these tickets can be admitted here.",
    KeyMissing = "key.missing": "Your request could not be authenticated.",
    SessionWrongPassword = "session.wrong-password": "The password is wrong.",
    PaymentDeclined = "payment.declined": "The payment was declined. The order is still open; try another means of payment.",
    KeyRefused = "key.refused": "You are restricted from accessing this resource.",
    ResourceNotYours = "resource.not-yours": "You are restricted from accessing this resource.",
    AccountDeactivated = "account.deactivated": "This account is deactivated.",
    EndpointUnknown = "endpoint.unknown": "The requested endpoint does not exist on this server.",
    ResourceNotFound = "resource.not-found": "There is presently no resource with the given URI.",
    PagePastEnd = "page.past-end": "The list has no such page. Ask for a smaller page.",
    AccountUnknown = "account.unknown": "No account has this username or e-mail.",
    MethodNotAllowed = "method.not-allowed": "This endpoint does not allow this method. The Allow header names those it does.",
    BodyTooSlow = "body.too-slow": "The request's body did not arrive in time.",
    IdempotencyUnderWay = "idempotency.under-way": "A request with this Idempotency-Key is still under way. Ask again shortly.",
    SessionEnded = "session.ended": "This session has ended already.",
    AccountTaken = "account.taken": "Another account holds these arguments.",
    AccountInactive = "account.inactive": "This account is deactivated already.",
    AccountLastAdministrator = "account.last-administrator": "This is the last active administrator.",
    AccountHasTickets = "account.has-tickets": "This account holds tickets to events that have not ended.",
    VerificationClosed = "verification.closed": "This verification is over. Ask for another one.",
    ResetClosed = "reset.closed": "This reset is over. Ask for another one.",
    RegionTaken = "region.taken": "Another region holds this name.",
    RegionInUse = "region.in-use": "Venues lie in this region. Move or remove them first.",
    CategoryTaken = "category.taken": "Another category holds this name.",
    CategoryInUse = "category.in-use": "Events are of this category or of a subcategory to be removed.",
    VenueTaken = "venue.taken": "Another venue holds this name.",
    VenueInUse = "venue.in-use": "Events are or have been staged at this venue.",
    HostTaken = "host.taken": "Another host holds this name.",
    HostRemoved = "host.removed": "The host has been removed.",
    HostTooMany = "host.too-many": "This account administers as many hosts as one can.",
    AdministratorTaken = "administrator.taken": "This account administers the host already.",
    AdministratorLast = "administrator.last": "This account is the host's last administrator.",
    EventTaken = "event.taken": "Another event holds this title.",
    EventSold = "event.sold": "Tickets to this event have been sold. Withdraw or cancel it instead.",
    EventNotDraft = "event.not-draft": "Only a draft can be submitted for review.",
    EventNotListed = "event.not-listed": "This event is not listed.",
    EventOver = "event.over": "This event is over.",
    EventCancelled = "event.cancelled": "This event is cancelled.",
    SectionTaken = "section.taken": "Another section of this event holds this name.",
    SectionInUse = "section.in-use": "This section has sold tickets or active reservations.",
    SectionSoldOut = "section.sold-out": "This section has not that many places left.",
    SectionNotSoldOut = "section.not-sold-out": "This section has places left that can be ordered.",
    SectionInactive = "section.inactive": "This section is not active.",
    SectionNotOnSale = "section.not-on-sale": "This section is not on sale at this time.",
    SectionCapacity = "section.capacity": "The capacity cannot be less than the places sold and reserved.",
    SectionAccountMaximum = "section.account-maximum": "This account may not buy as many tickets of this section.",
    SectionTooMany = "section.too-many": "This event has as many sections as one can have.",
    WaitingListJoined = "waiting-list.joined": "This account is on the section's waiting list already.",
    WaitingListFull = "waiting-list.full": "The section's waiting list is full.",
    WaitingListTooMany = "waiting-list.too-many": "This account is on as many waiting lists as one can be.",
    ModifierTaken = "modifier.taken": "Another price modifier of this section holds this name.",
    ModifierTooMany = "modifier.too-many": "This section has as many price modifiers as one can have.",
    ZoneInUse = "zone.in-use": "Advertisements are assigned to this zone.",
    AdvertisementTaken = "advertisement.taken": "Another advertisement holds this name.",
    AdvertisementTooMany = "advertisement.too-many": "This event has as many advertisements as one can have.",
    AdvertisementNotDraft = "advertisement.not-draft": "Only a draft can be submitted for review.",
    AdvertisementNotListed = "advertisement.not-listed": "This advertisement is not listed.",
    AdvertisementCancelled = "advertisement.cancelled": "This advertisement is cancelled.",
    SubmissionDecided = "submission.decided": "This submission has been decided.",
    OrderTooMany = "order.too-many": "The account has too many open orders. Pay for or cancel one first.",
    OrderNotOpen = "order.not-open": "This order is not open any more.",
    OrderNotFulfilled = "order.not-fulfilled": "This order is not fulfilled.",
    AdmissionTooLate = "admission.too-late": "An admission can be undone for 10 minutes only.",
    AdmissionOrderVoided = "admission.order-voided": "The order of this admission's ticket was voided.",
    AdmissionConflict = "admission.conflict": "Another gate has admitted this ticket, too.",
    EventNotCancelled = "event.not-cancelled": "This event is not cancelled.",
    EventReturning = "event.returning": "The orders of this event are being returned already.",
    TicketNotIssued = "ticket.not-issued": "Only a ticket that is Issued can be transferred or returned.",
    TransferNotOpen = "transfer.not-open": "This transfer is not open any more.",
    TokenTooMany = "token.too-many": "This event has as many admission tokens as one can have.",
    TokenGlobal = "token.global": "The event's global token can be neither changed nor removed.",
    ClientOutdated = "client.outdated": "Please upgrade your client to complete this request",
    ResourceChanged = "resource.changed": "This resource has changed since it was read. Read it again, and decide anew.",
    BodyTooLarge = "body.too-large": "The request's body is too large.",
    UriTooLong = "uri.too-long": "The request's path and query are too long.",
    MediaTypeUnsupported = "media-type.unsupported": "The request's body must be application/json.",
    IdempotencyOtherRequest = "idempotency.other-request": "This Idempotency-Key belongs to another request. Send each request with a key of its own.",
    RequestsTooMany = "requests.too-many": "Too many requests. Try again later.",
    HeadersTooLarge = "headers.too-large": "The request's headers are too large.",
    ServerError = "server.error": "There was a server error while excuting this request. Please see system logs for details.",
    ServerUnavailable = "server.unavailable": "The server is unavailable at the moment. Try again shortly.",
    PaymentGateway = "payment.gateway": "The payment gateway failed. Nothing was taken; try again later.",
}

/// The error of an operation. Nothing was changed, except possibly for [`Error::Unavailable`].
#[derive(Debug)]
pub enum Error {
    /// Missing and invalid arguments, in the contract's order.
    Invalid(Vec<FieldError>),
    /// A business rule, the resource's state or a missing permission rejects the operation.
    Rejected(Code, Cow<'static, str>),
    /// No ticket of the request is admitted ([`Code::AdmissionNone`]): the text, and the reason for each serial number.
    NotAdmitted(Cow<'static, str>, Vec<RefusedTicket>),
    /// A rate limit is exceeded.
    TooMany(Box<RateLimitStatus>),
    /// The database failed. The cause is an `sqlx::Error`.
    Database(Box<dyn std::error::Error + Send + Sync>),
    /// A dependency, such as the database, is unavailable. Nothing was changed, unless the response to a commit was lost: then
    /// the outcome is unknown. The cause is only logged.
    Unavailable(anyhow::Error),
    /// An internal error. The cause is only logged.
    Internal(anyhow::Error),
}

/// A result whose error is [`Error`] by default.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// 404: the resource doesn't exist, or the caller may not see it.
    pub const NOT_FOUND: Error = Error::Rejected(Code::ResourceNotFound, Cow::Borrowed(Code::ResourceNotFound.text()));
    /// 403: the caller lacks the required relation to the resource.
    pub const FORBIDDEN: Error = Error::Rejected(Code::ResourceNotYours, Cow::Borrowed(Code::ResourceNotYours.text()));

    /// Returns whether it is certain that nothing was changed, so that files prepared for the change can be deleted.
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
            Self::NotAdmitted(text, refused) => Self::NotAdmitted(text.clone(), refused.clone()),
            Self::TooMany(status) => Self::TooMany(status.clone()),
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

impl Code {
    /// Creates an error with this code and a more specific text.
    pub fn with_message(self, text: impl Into<Cow<'static, str>>) -> Error {
        Error::Rejected(self, text.into())
    }
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

impl From<RequestError> for Error {
    fn from(error: RequestError) -> Self {
        match error {
            RequestError::InvalidFields(fields) => Self::Invalid(fields),
            RequestError::UnknownResource => Self::NOT_FOUND,
            RequestError::MalformedBody(text) => Code::BodyMalformed.with_message(text),
            RequestError::UnsupportedMediaType(text) => Code::MediaTypeUnsupported.with_message(text),
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
