//! Every operation and every kind of caller: who is turned away at the front door, and who isn't.

use boxoffice::auth::Scope;
use serde_json::json;

use crate::on_both_databases;
use crate::support::{Operation, PASSWORD, World, operations, section};
use crate::tokens::{global_token, key_of};

on_both_databases![
    every_operation_asks_for_a_key,
    every_operation_refuses_a_key_that_opens_nothing,
    every_operation_is_for_its_scopes_alone,
    every_operation_asks_for_a_version_that_is_recent_enough,
    what_a_browser_fetches_by_itself_is_open,
];

/// What isn't fetched by browsers alone.
fn guarded_operations() -> impl Iterator<Item = Operation> {
    operations().into_iter().filter(|operation| operation.needs_key)
}

async fn every_operation_asks_for_a_key(world: World) {
    let expected = json!({ "message": "Your request could not be authenticated.", "code": "key.missing" });
    for operation in guarded_operations() {
        let without = operation.ask(&world, |request| request.no_key()).await;
        let empty = operation.ask(&world, |request| request.key("")).await;

        for answer in [without, empty] {
            assert_eq!((answer.status, &answer.body), (401, &expected), "{}", operation.id);
        }
    }
}

async fn every_operation_refuses_a_key_that_opens_nothing(world: World) {
    let expected = json!({ "message": "You are restricted from accessing this resource.", "code": "key.refused" });
    let ama = world.person("ama").await;
    let ended = world.sign_in("ama", PASSWORD).await.unwrap().key;
    world.client(&ended).session_active_delete().send().await.unwrap();
    for operation in guarded_operations() {
        for key in ["abcdefghijklmnopqrstuvwxyz012345", &ended, "?", &ama.key.to_uppercase()] {
            let answer = operation.ask(&world, |request| request.key(key)).await;

            assert_eq!((answer.status, &answer.body), (403, &expected), "{} with {key}", operation.id);
        }
    }
}

async fn every_operation_is_for_its_scopes_alone(world: World) {
    let kofi = world.person("kofi").await;
    let host = world.host_of(&kofi).await;
    let event = world.listed_event(&host, &[section("Floor", 20.0, 10)]).await;
    let redeemer = key_of(&world, &global_token(&host, &event).await).await;
    let customer = world.integration_of(&kofi).await;
    for operation in guarded_operations() {
        for (scope, key) in [
            (Scope::Public, &world.public_key),
            (Scope::Customer, &customer),
            (Scope::Administrator, &world.staff.key),
            (Scope::Redeemer, &redeemer),
        ] {
            let answer = operation.ask(&world, |request| request.key(key)).await;

            let is_refused = (answer.status, answer.code()) == (403, "key.refused");
            assert_eq!(is_refused, !operation.scopes.contains(&scope), "{} as {scope:?}: {answer:?}", operation.id);
        }
    }
}

async fn every_operation_asks_for_a_version_that_is_recent_enough(world: World) {
    let error = "Please upgrade your client to complete this request";
    let expected = json!({ "error": error, "code": "client.outdated" });
    for operation in guarded_operations() {
        for version in [None, Some(""), Some("three"), Some("2.9.9")] {
            let answer = operation.ask(&world, |request| request.version(version).key("?")).await;

            assert_eq!((answer.status, &answer.body), (412, &expected), "{} for {version:?}", operation.id);
        }
    }
}

async fn what_a_browser_fetches_by_itself_is_open(world: World) {
    let open: Vec<_> = operations().into_iter().filter(|operation| !operation.needs_key).collect();
    for operation in &open {
        let answer = operation.ask(&world, |request| request.no_key().version(None)).await;

        assert!(operation.method == "GET" && operation.scopes.is_empty(), "{}", operation.id);
        assert_eq!((answer.status, answer.code()), (404, "resource.not-found"), "{}", operation.id);
    }
    assert!(!open.is_empty());
}
