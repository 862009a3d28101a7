//! A resource is removed while requests refer to it. Each outcome is the result of one request after the other: the request
//! succeeds and the removal is rejected or includes it, or the removal succeeds and the request is rejected as if the resource
//! had never existed.
//!
//! [`REFERENCES`] lists every operation that refers to another resource. The test fails if an operation of the contract or a
//! foreign key of the schema is not accounted for.

mod fixtures;
mod references;
mod requests;

use std::collections::BTreeSet;

use futures::future::{join, join_all};
use serde_json::{Value, json};

use crate::support::{Call, Response, TestApp, card_payment, operations, race_rounds, rejection, section, test_on};
use fixtures::Fixtures;
use references::{FIXED_FOREIGN_KEYS, INDEPENDENT_OPERATIONS, REFERENCES, Reference};
use requests::prepare;

/// Returns how often each reference is tested. The window of a race is a few milliseconds, so a single round may miss it.
fn rounds() -> usize {
    race_rounds(5, 20)
}

#[test_on(sqlite, postgres)]
async fn requests_survive_removal_of_their_resources(app: TestApp) {
    let fixtures = Fixtures::create(&app).await;
    for reference in REFERENCES {
        for _ in 0..rounds() {
            let race = prepare(&fixtures, reference).await;
            let requests = join_all(race.requests.iter().map(|call| call.send(&app)));
            let (responses, removal) = join(requests, race.removal.send(&app)).await;
            check(reference, &responses, &removal);
            for created in responses.iter().filter_map(|response| response.body["self"].as_str()) {
                let read = app.get(&app.staff.key, created).await;
                let is_expected = read.status == 200 || (reference.cascades && read.status == 404);
                assert!(is_expected, "{reference:?}: {created} {} {}", read.status, read.body);
            }
        }
    }
}

/// Asserts that some order of the requests and the removal has these responses.
fn check(reference: &Reference, responses: &[Response], removal: &Response) {
    let is_removed = removal.status < 300;
    let removal_outcome = rejection(removal);
    assert!(is_removed || reference.kept.contains(&removal_outcome), "{reference:?}: {removal_outcome:?} {}", removal.body);
    for response in responses.iter().filter(|response| response.status >= 300) {
        let outcome = rejection(response);
        assert!(reference.refused.contains(&outcome), "{reference:?}: {outcome:?} {}", response.body);
    }
    let accepted = responses.iter().filter(|response| response.status < 300).count();
    if is_removed {
        assert!(accepted == 0 || reference.cascades, "{reference:?}: {accepted} were accepted although the removal succeeded");
    } else {
        assert!(accepted > 0, "{reference:?}: the removal was rejected, but no request was accepted: {responses:?}");
    }
}

/// Orders that arrive together are executed in one batch. One order in four is for an event that is being removed.
#[test_on(sqlite, postgres)]
async fn orders_of_removed_section_do_not_affect_others(app: TestApp) {
    let fixtures = Fixtures::create(&app).await;
    for round in 0..rounds() * 2 {
        let kept = fixtures.listed_event(&[10.0, 0.0]).await;
        let removed = fixtures.listed_event(&[10.0, 0.0]).await;
        let sections = (0..4).map(|number| if number == 0 { &removed.sections } else { &kept.sections });
        let orders = sections.zip(&fixtures.buyers).map(|(sections, buyer)| fixtures.order(buyer, &sections[round % 2]));
        let orders: Vec<Call> = orders.collect();
        let uri = if round % 4 < 2 { removed.uri.clone() } else { removed.sections[round % 2].clone() };
        let removal = fixtures.by_host("DELETE", uri, Value::Null);

        let (responses, removal) = join(join_all(orders.iter().map(|order| order.send(&app))), removal.send(&app)).await;

        for response in &responses[1..] {
            assert_eq!(response.status, 201, "an order of another event: {}", response.body);
        }
        let order = &responses[0];
        match removal.status {
            204 => {
                assert_eq!(rejection(order), (400, "arguments.invalid"), "{}", order.body);
                assert_eq!(order.invalid_arguments(), ["items"]);
            }
            409 => assert_eq!(order.status, 201, "{}", order.body),
            _ => panic!("{} {}", removal.status, removal.body),
        }
    }
}

/// A foreign key that no test covers may be violated by a request, which would then fail with a 500.
#[test_on(sqlite, postgres)]
async fn every_foreign_key_is_tested(app: TestApp) {
    let mut reader = app.state.db.read().await.unwrap();
    let select = if reader.is_postgres() {
        "select c.conrelid::regclass::text || '(' || string_agg(a.attname, ',' order by k.position) || ')' as foreign_key
         from pg_constraint c cross join lateral unnest(c.conkey) with ordinality as k (attnum, position)
         join pg_attribute a on a.attrelid = c.conrelid and a.attnum = k.attnum
         where c.contype = 'f' group by c.oid, c.conrelid"
    } else {
        "select name || '(' || group_concat(\"from\") || ')' as foreign_key from (
             select m.name, f.id, f.\"from\" from sqlite_master m join pragma_foreign_key_list(m.name) f
             where m.type = 'table' order by m.name, f.id, f.seq
         ) as keys group by name, id"
    };
    let found: Vec<(String,)> = reader.query(select).all().await.unwrap();
    let found: BTreeSet<&str> = found.iter().map(|(key,)| key.as_str()).collect();
    let tested = REFERENCES.iter().flat_map(|reference| reference.foreign_keys).copied();
    let fixed = FIXED_FOREIGN_KEYS.iter().flat_map(|(_, keys)| *keys).copied();
    let listed: BTreeSet<&str> = tested.chain(fixed).collect();
    let difference: Vec<_> = found.symmetric_difference(&listed).collect();
    assert!(difference.is_empty(), "in the schema or in the lists of this test, but not in both: {difference:?}");
}

#[test]
fn every_operation_is_listed() {
    let changes = operations().iter().filter(|operation| operation.method != "GET").map(|operation| operation.id.clone());
    let contract: BTreeSet<String> = changes.collect();
    let tested = REFERENCES.iter().map(|reference| reference.operation);
    let independent = INDEPENDENT_OPERATIONS.iter().copied();
    let listed: BTreeSet<String> = tested.chain(independent).map(str::to_owned).collect();
    let difference: Vec<_> = contract.symmetric_difference(&listed).filter(|name| *name != "token_authentication_get").collect();
    assert!(difference.is_empty(), "in the contract or in the lists of this test, but not in both: {difference:?}");
}

/// The reservations have ended for the server that deletes the event, whose clock is ahead.
#[test_on(sqlite, postgres)]
async fn payment_for_deleted_event_is_refunded(app: TestApp) {
    let (kofi, ama, deleted) = app.create_sale(&[section("Floor", 20.0, 10)]).await;
    let kept = app.create_listed_event(&deleted.host, &[section("Floor", 30.0, 10)]).await;
    let hers = ama.order(&deleted.sections[0], 1).await.unwrap().self_;
    let both = app.place_order(&ama.key, json!({ &deleted.sections[0]: 1, &kept.sections[0]: 1 })).await;
    let both = both.uri();
    let delete = async || {
        app.execute_sql("update reservations set expires = 1").await;
        app.delete(&kofi.key, &deleted.uri).await.status
    };

    let (paid, deleted) = app.pay_during(&ama, &hers, card_payment(), delete).await;
    let next = app.pay(&ama.key, both, card_payment()).await;

    assert_eq!(deleted, 204);
    for paid in [&paid, &next] {
        assert_eq!(rejection(paid), (409, "order.not-open"), "{}", paid.body);
    }
    app.time_out_orders().await;
    for order in [&hers, both] {
        assert_eq!(app.read(order).await["status"], "Timed Out");
    }
    assert_eq!(app.gateway.total(), 0.0);
    assert_eq!(app.sold_and_reserved(&kept.sections[0]).await, (0, 0));
    app.assert_invariants().await;
}
