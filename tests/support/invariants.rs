//! Invariants of the stored data.

use boxoffice::invariants;
use boxoffice::kernel::db::Tx;
use boxoffice::kernel::types::clock::Timestamp;

/// Returns a description of every invariant that is violated at this time.
pub async fn check_invariants(tx: &mut Tx, now: Timestamp) -> Vec<String> {
    invariants::violations(tx, now).await.unwrap()
}
