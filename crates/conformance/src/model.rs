//! What a comparison finds, and what it tells of itself.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, NaiveDate, Utc};
use serde::{Deserialize, Serialize};

/// Declares the checks with the name that reports and baselines know each by, and what it asks.
macro_rules! checks {
    ($($variant:ident = $name:literal: $asks:literal,)*) => {
        /// A kind of question that a comparison asks. Its name stays; baselines name it.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum Check {
            $(#[doc = $asks] #[serde(rename = $name)] $variant,)*
        }

        impl Check {
            /// Every check.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The name that it is known by.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// What it asks, as a sentence.
            pub fn asks(self) -> &'static str {
                match self { $(Self::$variant => $asks,)* }
            }
        }
    };
}

checks! {
    Reachable = "operation.reachable": "The server knows the operation.",
    Valid = "request.valid": "A valid request succeeds.",
    Whole = "answer.whole": "An answer comes in time, and whole.",
    Failure = "status.failure": "The server doesn't fail inside.",
    Status = "status.declared": "The status is one that the document declares.",
    MediaType = "answer.media-type": "The answer has a declared media type, and a body where one is declared.",
    Header = "answer.header": "The answer has the declared headers, valid against their schemas.",
    Body = "answer.body": "The body is valid against its schema.",
    Undeclared = "answer.undeclared": "The body has no property that its schema doesn't name.",
    ListTotals = "list.totals": "A list's envelope adds up.",
    SelfResolves = "self.resolves": "What a resource calls itself leads to it.",
    Identifier = "identifier.pattern": "An identifier matches the pattern that the document gives it.",
    Known = "answer.known": "What the caller has already, by its ETag, is not sent again.",
    Kept = "sent.kept": "What was sent is read afterwards, and what was deleted is not.",
    ArgumentMissing = "argument.missing": "A missing required argument is refused with 400 and its name.",
    ArgumentType = "argument.type": "An argument of a wrong type is refused with 400 and its name.",
    ArgumentBounds = "argument.bounds": "A value out of bounds is refused with 400 and its argument's name.",
    ArgumentEnum = "argument.enum": "An unknown value of an enumeration is refused with 400 and its argument's name.",
    ArgumentForm = "argument.form": "A text of another pattern or format is refused with 400 and its argument's name.",
    BodyForm = "body.form": "A body that is no JSON is refused with 400, and one of another media type with 415.",
    KeyMissing = "key.missing": "A request without a key is refused with 401.",
    KeyBad = "key.bad": "An unknown key is refused with 403.",
    KeyScope = "key.scope": "A key whose scope doesn't reach the operation is refused with 403.",
    VersionMissing = "version.missing": "A request without a client version is refused with 412.",
    VersionOld = "version.old": "A client version that is too old is refused with 412.",
    PathUnknown = "path.unknown": "A path that the document doesn't have is refused with 404.",
    MethodOther = "method.other": "A method that the document doesn't have at a path is refused with 405 and Allow.",
    Example = "document.example": "The document's own example is valid.",
    Undescribed = "document.undescribed": "The server has nothing that the document doesn't describe.",
    ReferenceStatus = "reference.status": "Both servers answer the same request with the same status.",
    ReferenceShape = "reference.shape": "Both servers answer the same request with the same shape.",
}

/// One thing that is not as the document says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// The check that found it.
    pub check: Check,
    /// The operation's operationId; empty where it is about the server or the document as a whole.
    pub operation: String,
    /// The place in the document that says so, as a JSON pointer (RFC 6901): `/paths/~1orders/post/responses/201`.
    pub pointer: String,
    /// What is wrong, in one sentence that doesn't change from run to run: it has no identifier or time in it.
    pub summary: String,
    /// What the document asks for.
    pub expected: String,
    /// What the server did.
    pub actual: String,
    /// The request, as a curl command that can be repeated; empty where there was none. A key in it is replaced by `$KEY`.
    pub curl: String,
}

/// What is said to be about an operation, by its operationId, or about none where that is empty.
pub fn subject(operation: &str) -> &str {
    if operation.is_empty() { "the server as a whole" } else { operation }
}

/// A finding that is in the baseline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KnownFinding {
    /// What was found.
    #[serde(flatten)]
    pub finding: Finding,
    /// Why it is left for now.
    pub reason: String,
    /// The last day on which it is.
    pub expires: NaiveDate,
}

/// How often a check was made of an operation, and how often something was found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// How often it was made.
    pub made: usize,
    /// How often it found something.
    pub failed: usize,
}

/// What was asked of an operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Coverage {
    /// Its operationId.
    pub operation: String,
    /// Its method, in capitals.
    pub method: String,
    /// Its path, with variables in braces.
    pub path: String,
    /// Its first tag; empty when it has none.
    pub tag: String,
    /// Every check that was made of it.
    pub checks: BTreeMap<Check, Counts>,
    /// The statuses that the document declares.
    pub declared: BTreeSet<u16>,
    /// The statuses that it was seen to answer.
    pub seen: BTreeSet<u16>,
    /// Why nothing was asked of it, where nothing was.
    pub left_out: Option<String>,
}

impl Coverage {
    /// How many checks were made of it.
    pub fn made(&self) -> usize {
        self.checks.values().map(|tally| tally.made).sum()
    }
}

/// All that a comparison has to tell.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// Title and version of the document.
    pub document: String,
    /// The server's address.
    pub target: String,
    /// The other server's address, where two were compared.
    pub reference: Option<String>,
    /// What the generated requests follow from: the same seed makes the same ones.
    pub seed: u64,
    /// When it began.
    pub started: DateTime<Utc>,
    /// How long it took.
    pub seconds: f64,
    /// Requests that were sent, to both servers together.
    pub requests: usize,
    /// The operations, in the document's order.
    pub operations: Vec<Coverage>,
    /// What was found, and is not in the baseline.
    pub findings: Vec<Finding>,
    /// What was found, and is known by the baseline.
    pub known: Vec<KnownFinding>,
    /// What whoever reads the report should know besides: what could not be cleaned up, baseline entries that are over …
    pub notes: Vec<String>,
}

impl Report {
    /// The operation of this operationId.
    pub fn operation(&self, id: &str) -> Option<&Coverage> {
        self.operations.iter().find(|operation| operation.operation == id)
    }

    /// The tag of the operation that a finding is about; empty for what is about the server or the document as a whole.
    pub fn tag(&self, finding: &Finding) -> &str {
        self.operation(&finding.operation).map_or("", |operation| &operation.tag)
    }
}
