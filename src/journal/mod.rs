//! What a change leaves behind of the request itself, in the transaction of the change: a row of the audit trail, and, where the
//! request carried an `Idempotency-Key`, its answer, so that it has one effect however often it is sent.
//!
//! Changes that everyone wants at the same time are made together, at a [`Desk`].
//!
//! The front door hands every request that it lets in to [`carry_out`], or to [`read`] where it changes nothing; what it refuses
//! before that, to [`refuse`]. The trail is read by the feature `audit`.

mod answer;
mod desk;
mod group;
mod idempotency;
mod resource;
mod trail;
mod work;

pub use desk::{GroupCommit, commit_pending};
pub use idempotency::{IdempotentRequest, purge_expired};
pub use trail::AuditEntry;
pub use work::{AuditContext, audit_rejection, execute, read};

/// What this server keeps in memory for the journal.
#[derive(Default)]
pub struct RequestLog {
    under_way: idempotency::InProgressSet,
    group: group::AuditWriter,
}
