//! Checks, findings and the report of a comparison.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, NaiveDate, Utc};
use serde::{Deserialize, Serialize};

/// Declares the checks, each with its name in reports and baselines, and the rule that it checks.
macro_rules! checks {
    ($($variant:ident = $name:literal: $rule:literal,)*) => {
        /// A check of a comparison. Its name is stable, because baselines contain it.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum Check {
            $(#[doc = $rule] #[serde(rename = $name)] $variant,)*
        }

        impl Check {
            /// Every check.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// Returns the stable name.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// Returns the rule as a sentence.
            pub fn rule(self) -> &'static str {
                match self { $(Self::$variant => $rule,)* }
            }
        }
    };
}

checks! {
    Reachable = "operation.reachable": "The server implements the operation.",
    Prepared = "preparation.done": "The server accepts the requests that prepare the comparison.",
    Requested = "client.operation": "A client requests operations that the document has.",
    Sent = "client.request": "A client's request matches the document.",
    Accepted = "client.rejected": "The server rejects a request that does not match the document or lacks the required credential.",
    Valid = "request.valid": "A valid request succeeds.",
    Complete = "response.complete": "A response arrives in time and is complete.",
    ServerError = "status.failure": "The server returns no status from 500.",
    Status = "status.declared": "The document declares the status.",
    MediaType = "response.media-type": "The response has a declared media type, and a body if one is declared.",
    Header = "response.header": "The response has the declared headers, and they match their schemas.",
    Body = "response.body": "The body matches its schema.",
    UndeclaredProperty = "response.undeclared": "The body has only properties that its schema declares.",
    ListTotals = "list.totals": "The pages of a list add up.",
    SelfLink = "self.resolves": "A self link leads to its resource.",
    Identifier = "identifier.pattern": "An identifier matches the pattern in the document.",
    NotModified = "response.not-modified": "A GET with If-None-Match returns 304 for an unchanged resource.",
    Created = "resource.created": "A created resource can be read, as the response to its creation shows it.",
    Listed = "resource.listed": "The list of a collection contains a created resource, as it is read.",
    Removed = "resource.removed": "A removed resource is not listed, and can't be read or removed again.",
    UnknownResource = "resource.unknown": "An unknown identifier in the path is rejected with 404.",
    Conflict = "resource.conflict": "A taken name and the removal of a resource in use are conflicts, with 409.",
    UpdateResponse = "update.response": "The response to an update is what a read right after it returns.",
    Tag = "tag.changes": "An entity tag changes with its resource, and only with it.",
    IfMatch = "tag.if-match": "A change with the right tag in If-Match is carried out, and one with an old tag is 412 without an effect.",
    Repeat = "request.repeated": "A request that is repeated with its Idempotency-Key has one effect, and another one with that key is 422.",
    Action = "action.kept": "A read after an action shows its result.",
    RepeatedAction = "action.repeated": "An action that changed the state can't be repeated: the second one is 409.",
    Filter = "list.filter": "A filter returns all entries with its value, and no others.",
    Sort = "list.sort": "A sorted list is in the order of the property, ascending and descending.",
    DeclaredValue = "value.declared": "Sums, decimals and times are as the document declares them (x-sum, x-decimals, x-now).",
    JsonText = "response.json": "A JSON body is UTF-8 without a byte order mark, and repeats no key.",
    CommonHeader = "response.common-header": "Every response has the headers that the document declares for all (x-response-headers).",
    Caching = "response.caching": "A response for one caller is not stored for others, and a secret one not at all.",
    ErrorText = "error.text": "An error has a text.",
    ErrorCode = "error.code": "The code of an error is one of the operation's, as the examples of the status show.",
    Leak = "response.leak": "A response contains no stack traces, statements, paths, password hashes and keys of the server.",
    Head = "method.head": "HEAD has the status and the headers of GET.",
    Options = "method.options": "OPTIONS allows exactly the documented methods.",
    Cors = "method.cors": "No unknown web site may read a response with a user's credentials.",
    IgnoredParameter = "argument.ignored": "An undefined query parameter is ignored, and named in the declared header.",
    TooLarge = "body.large": "A body above the limit is rejected with 413.",
    Persistence = "sent.kept": "Sent properties are read back, and a deleted resource is gone.",
    ArgumentMissing = "argument.missing": "A missing required argument is rejected with 400 and its name.",
    ArgumentType = "argument.type": "An argument of a wrong type is rejected with 400 and its name.",
    ArgumentBounds = "argument.bounds": "A value out of bounds is rejected with 400 and the argument's name.",
    ArgumentEnum = "argument.enum": "An unknown value of an enumeration is rejected with 400 and the argument's name.",
    ArgumentFormat = "argument.form": "A text of another pattern or format is rejected with 400 and the argument's name.",
    BodyFormat = "body.form": "A body that is not JSON is rejected with 400, and one of another media type with 415.",
    KeyMissing = "key.missing": "A request without a key is rejected with 401, or with 403 if another document than the built-in one declares only that.",
    KeyUnknown = "key.bad": "An unknown key is rejected with 403, or with 401 if the document is not the built-in one.",
    KeyScope = "key.scope": "A key of too low a scope is rejected with 403.",
    VersionMissing = "version.missing": "A request without a client version is rejected with 412.",
    VersionOld = "version.old": "A client version that is too old is rejected with 412.",
    PathUnknown = "path.unknown": "An undocumented path is rejected with 404.",
    MethodUndeclared = "method.other": "An undocumented method is rejected with 405 and Allow.",
    Example = "document.example": "The document's examples match their schemas.",
    Undocumented = "document.undescribed": "The server has no operations or arguments that the document lacks.",
    ReferenceStatus = "reference.status": "Both servers return the same status for the same request.",
    ReferenceShape = "reference.shape": "Both servers return a body of the same shape for the same request.",
}

/// A violation that a check found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// The check.
    pub check: Check,
    /// The operationId; empty for findings about the server or the document as a whole.
    pub operation: String,
    /// JSON pointer (RFC 6901) of the violated part of the document: `/paths/~1orders/post/responses/201`.
    pub pointer: String,
    /// The violation in one sentence. It is the same in every run: it contains no identifier or time.
    pub summary: String,
    /// The behavior that the document requires.
    pub expected: String,
    /// The behavior of the server.
    pub actual: String,
    /// The request as a curl command to repeat it, with `$KEY` instead of a key; empty for checks without a request.
    pub curl: String,
    /// Number of requests that showed it. The other fields describe the first one.
    #[serde(default = "one")]
    pub occurrences: usize,
}

fn one() -> usize {
    1
}

/// Returns the operationId of a finding, or a description if it is empty.
pub fn operation_label(operation: &str) -> &str {
    if operation.is_empty() { "the server as a whole" } else { operation }
}

/// Reason why an operation was left out that `--only` and `--skip` don't select.
pub const EXCLUDED: &str = "excluded by --only or --skip";
/// Reason why an operation was left out after the comparison was stopped.
pub const STOPPED: &str = "stopped";
/// Reason why the proxy has not checked an operation.
pub const NOT_REQUESTED: &str = "no client has requested it";

/// A finding that the baseline contains.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KnownFinding {
    /// The finding.
    #[serde(flatten)]
    pub finding: Finding,
    /// Reason for accepting the finding.
    pub reason: String,
    /// Last day on which it is accepted.
    pub expires: NaiveDate,
}

/// Number of times that a check was made and failed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Times made.
    pub made: usize,
    /// Times failed.
    pub failed: usize,
}

/// Checks and statuses of an operation.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Coverage {
    /// The operationId.
    pub operation: String,
    /// The method, in capitals.
    pub method: String,
    /// The path, with variables in braces.
    pub path: String,
    /// The first tag; empty without one.
    pub tag: String,
    /// Checks made.
    pub checks: BTreeMap<Check, Counts>,
    /// Statuses that the document declares.
    pub declared: BTreeSet<u16>,
    /// Statuses that the server returned.
    pub seen: BTreeSet<u16>,
    /// Reason for sending no request, if none was sent.
    pub left_out: Option<String>,
    /// Time spent on the operation's checks, in seconds.
    pub seconds: f64,
}

impl Coverage {
    /// Returns the number of checks made.
    pub fn check_count(&self) -> usize {
        self.checks.values().map(|counts| counts.made).sum()
    }
}

/// Result of a comparison.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// Title and version of the document.
    pub document: String,
    /// Address of the target.
    pub target: String,
    /// Address of the reference, if there is one.
    pub reference: Option<String>,
    /// Seed of the generated requests.
    pub seed: u64,
    /// Start time.
    pub started: DateTime<Utc>,
    /// Duration in seconds.
    pub seconds: f64,
    /// Number of requests sent to both servers.
    pub requests: usize,
    /// The operations, in the document's order.
    pub operations: Vec<Coverage>,
    /// Findings that are not in the baseline.
    pub findings: Vec<Finding>,
    /// Findings that are in the baseline.
    pub known: Vec<KnownFinding>,
    /// Notes: resources that could not be deleted, expired entries of the baseline, warnings about the document.
    pub notes: Vec<String>,
}

impl Report {
    /// Finds an operation by operationId.
    pub fn operation(&self, id: &str) -> Option<&Coverage> {
        self.operations.iter().find(|operation| operation.operation == id)
    }

    /// Returns the tag of a finding's operation; empty for findings about the server or the document as a whole.
    pub fn tag(&self, finding: &Finding) -> &str {
        self.operation(&finding.operation).map_or("", |operation| &operation.tag)
    }
}
