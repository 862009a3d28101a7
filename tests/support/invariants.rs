//! Invariants of the stored data.

use boxoffice::invariants;
use boxoffice::kernel::db::Tx;

/// Returns a description of every violated invariant.
pub async fn check_invariants(tx: &mut Tx) -> Vec<String> {
    invariants::violations(tx).await.unwrap()
}
