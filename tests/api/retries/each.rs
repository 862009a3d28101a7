//! Every POST and PATCH of the contract, sent twice at once, repeated, and once with another request's idempotency key.

use super::{is_replayed, send_twice};
use crate::access::callers::Caller;
use crate::access::fixtures::AccessFixtures;
use crate::access::rules::ROWS;
use crate::support::{Snapshot, TestApp, rejection, test_on};

#[test_on(sqlite, postgres)]
async fn every_post_and_patch_is_idempotent(app: TestApp) {
    let fixtures = AccessFixtures::create(app).await;
    let mut snapshot = Snapshot::take(&fixtures.app).await;
    let audit_entries = async || fixtures.app.scalar::<i64>("select count(*) from audit").await;
    let lookup = ROWS.iter().find(|row| row.operation == "lookup_create").unwrap();
    let mut tried = 0;
    for row in ROWS.iter().filter(|row| ["POST", "PATCH"].contains(&fixtures.operation(row).method.as_str())) {
        let name = row.name();
        // The owner's key would end with the account.
        let caller = if row.operation == "account_deletion_create" { Caller::Administrator } else { row.allowed()[0] };
        let request = |key| fixtures.request(row, &fixtures.ids, caller).header("Idempotency-Key", key);
        let other_request = fixtures.request(lookup, &fixtures.others, caller).header("Idempotency-Key", "other");
        assert_eq!(other_request.send().await.status, 200, "{name}");

        let (rejected, first) = send_twice(&fixtures.app, || request("one").send()).await;
        let before = (snapshot.changes().await, audit_entries().await);
        let again = request("one").send().await;
        let after = (snapshot.changes().await, audit_entries().await);
        let other = request("other").send().await;
        snapshot.restore().await;

        assert_eq!(rejection(&rejected), (409, "idempotency.under-way"), "{name}");
        assert!([200, 201].contains(&first.status) && !is_replayed(&first), "{name}: {first:?}");
        assert_eq!((again.status, is_replayed(&again), &again.body), (first.status, true, &first.body), "{name}");
        assert_eq!(again.header("location"), first.header("location"), "{name}");
        assert_eq!(again.header("content-type"), first.header("content-type"), "{name}");
        assert_eq!(before, after, "{name}");
        assert_eq!(rejection(&other), (422, "idempotency.other-request"), "{name}: {other:?}");
        tried += 1;
    }
    assert!(tried > 45, "only {tried}");
}
