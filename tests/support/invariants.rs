//! Invariants of the stored data.

use boxoffice::invariants;
use boxoffice::kernel::db::Reader;
use boxoffice::kernel::types::clock::Timestamp;

/// Returns a description of every invariant that is violated at this time.
pub async fn check_invariants(reader: &mut Reader, now: Timestamp) -> Vec<String> {
    invariants::violations(reader, now).await.unwrap()
}
