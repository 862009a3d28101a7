//! `boxoffice drift`: it finds no difference between a document and a conforming server, and every mutation of either.

use std::collections::{BTreeMap, BTreeSet};

use boxoffice::routes::routes;
use boxoffice_openapi::drift::{Difference, compare, compare_policies};
use serde_json::{Value, json};

use crate::drift_fixture;
use crate::mutator::{self, Mutation};

/// Returns the differences of the fixture document and server, after `change` was applied to them.
fn differences_after(change: impl FnOnce(&mut Value, &mut Value)) -> Vec<Difference> {
    let mut document = drift_fixture::document();
    let mut server = drift_fixture::server();
    change(&mut document, &mut server);
    compare(&document, &server)
}

/// Returns the same as texts.
fn texts_after(change: impl FnOnce(&mut Value, &mut Value)) -> Vec<String> {
    differences_after(change).iter().map(Difference::to_string).collect()
}

/// Returns the document with one path only.
fn with_one_path(document: &Value, path: &str) -> Value {
    let mut one = document.clone();
    one["paths"] = json!({ path: document["paths"][path] });
    one
}

/// Asserts that each mutation of a document is a difference from the other document. It is looked for in the mutated path only, because
/// comparing whole documents takes much longer.
fn assert_all_found(mutations: &[Mutation], mutated: &Value, other: &Value, compare: impl Fn(&Value, &Value) -> Vec<Difference>) {
    let mut by_path = BTreeMap::new();
    let mut is_missed = |mutation: &&Mutation| {
        let (mutated, other) = by_path.entry(mutation.path.clone()).or_insert_with(|| {
            let path = |whole: &Value| mutation.path.as_ref().map_or_else(|| whole.clone(), |path| with_one_path(whole, path));
            let (mutated, other) = (path(mutated), path(other));
            assert_eq!(compare(&mutated, &other), [], "before the mutation {}", mutation.name);
            (mutated, other)
        });
        compare(&mutation.applied_to(mutated), other).is_empty()
    };
    let missed: Vec<_> = mutations.iter().filter(&mut is_missed).map(|mutation| mutation.name.as_str()).collect();
    assert!(missed.is_empty(), "missed:\n  {}", missed.join("\n  "));
    assert!(mutations.len() >= 80, "only {} mutations", mutations.len());
}

#[test]
fn changed_policy_or_address_is_a_difference() {
    let contract = boxoffice::contract::load().unwrap().document.clone();
    let differences_after = |change: &dyn Fn(&mut Value)| {
        let mut document = contract.clone();
        change(&mut document);
        compare_policies(&document, &contract).iter().map(Difference::to_string).collect::<Vec<_>>()
    };
    assert_eq!(differences_after(&|_| ()), [""; 0]);
    let session = "/paths/~1sessions/post";
    let operation = &contract.pointer(session).unwrap();
    assert!(["x-scopes", "x-guessing", "x-secret"].iter().all(|policy| operation.get(policy).is_some()), "{operation}");
    for (policy, changed) in [
        ("x-scopes", json!(["administrator"])),
        ("x-guessing", json!("other")),
        ("x-secret", json!(false)),
        ("x-scopes", json!([])),
    ] {
        let changed = differences_after(&|document| document.pointer_mut(session).unwrap()[policy] = changed.clone());
        assert!(changed.len() == 1 && changed[0].starts_with(&format!("POST /sessions: {policy} is ")), "{changed:?}");
    }
    let removed = differences_after(&|document| {
        document.pointer_mut(session).unwrap().as_object_mut().unwrap().shift_remove("x-guessing");
    });
    assert!(removed[0].starts_with("POST /sessions: x-guessing is absent in the document, "), "{removed:?}");
    let added = differences_after(&|document| document["paths"]["/time"]["get"]["x-secret"] = json!(true));
    assert_eq!(added, ["GET /time: x-secret is true in the document, absent in the server"]);
    let moved = differences_after(&|document| document["servers"][0]["url"] = json!("/v9"));
    assert!(moved.len() == 1 && moved[0].starts_with("servers: addresses is "), "{moved:?}");
    let reordered = differences_after(&|document| {
        document.pointer_mut(session).unwrap()["x-scopes"].as_array_mut().unwrap().reverse();
    });
    assert_eq!(reordered, [""; 0]);
}

#[test]
fn conforming_server_has_no_differences() {
    assert_eq!(texts_after(|_, _| ()), [""; 0]);
}

#[test]
fn every_mutation_of_fixture_document_is_found() {
    let document = drift_fixture::document();
    let server = drift_fixture::server();

    let mutations = mutator::mutations(&document);

    assert_all_found(&mutations, &document, &server, compare);
}

#[test]
fn server_conforms_to_contract() {
    let contract = boxoffice::contract::load().unwrap();

    let differences = compare(&contract.document, &routes().openapi().unwrap());

    assert_eq!(differences.iter().map(Difference::to_string).collect::<Vec<_>>(), [""; 0]);
}

#[test]
fn every_mutation_of_contract_is_found() {
    let document = boxoffice::contract::load().unwrap().document.clone();
    let server = routes().openapi().unwrap();

    let mutations = mutator::mutations(&document);

    assert_all_found(&mutations, &document, &server, compare);
}

#[test]
fn every_mutation_of_fixture_server_is_found() {
    let document = drift_fixture::document();
    let server = drift_fixture::server();

    // Two mutations are no difference on this side: dropshot declares every optional parameter nullable, and so every argument
    // that an update may omit but not blank.
    let mut mutations = mutator::mutations(&server);
    let not_compared = ["parameters", "/OrderUpdate/properties/email"];
    mutations.retain(|mutation| {
        !(mutation.change.starts_with("nullable") && not_compared.iter().any(|place| mutation.name.contains(place)))
    });

    assert_all_found(&mutations, &server, &document, |server, document| compare(document, server));
}

#[test]
fn fixture_covers_every_kind_of_change() {
    let applied: BTreeSet<_> = mutator::mutations(&drift_fixture::document()).into_iter().map(|m| m.change).collect();

    let unused: Vec<_> = mutator::kinds().into_iter().filter(|kind| !applied.contains(kind)).collect();

    assert!(unused.is_empty(), "no place for {unused:?}");
}

#[test]
fn difference_states_location_and_both_values() {
    let texts = texts_after(|document, _| {
        document["components"]["schemas"]["OrderCreate"]["properties"]["items"]["additionalProperties"]["maximum"] = json!(60);
    });

    assert_eq!(texts, ["POST /orders body.items{}: maximum is 60 in the document, 50 in the server"]);
}

#[test]
fn prose_is_not_compared() {
    let texts = texts_after(|document, _| {
        let operation = &mut document["paths"]["/orders"]["get"];
        operation["summary"] = json!("Other");
        operation["x-note"] = json!("Other");
        document["components"]["schemas"]["Order"]["description"] = json!("Other");
        document["components"]["schemas"]["Order"]["example"] = json!({});
    });

    assert_eq!(texts, [""; 0]);
}

#[test]
fn unresolvable_or_circular_reference_is_a_difference() {
    for reference in ["#/components/schemas/None", "#/components/schemas/Account", "other.yaml"] {
        let texts = texts_after(|document, _| {
            document["components"]["schemas"]["Account"] = json!({"$ref": reference});
        });
        assert!(!texts.is_empty(), "{reference}");
    }
}

#[test]
fn raw_body_does_not_hide_json_differences() {
    let texts = texts_after(|document, _| {
        document["paths"]["/media/{kind}/{image}"]["get"]["responses"]["200"]["content"] =
            json!({"application/json": {"schema": {"type": "string"}}});
    });

    assert_eq!(
        texts,
        [
            "GET /media/{kind}/{image} 200: media type */* is absent in the document, present in the server",
            "GET /media/{kind}/{image} 200: media type application/json is present in the document, absent in the server",
        ]
    );
}

#[test]
fn path_parameters_are_compared_by_position_and_name() {
    let texts = texts_after(|document, _| {
        let paths = document["paths"].as_object_mut().expect("paths");
        let item = paths.remove("/media/{kind}/{image}").expect("the path of images");
        paths.insert("/media/{image}/{kind}".to_owned(), item);
    });

    assert_eq!(
        texts,
        [
            "GET /media/{image}/{kind} path: variable is {image} in the document, {kind} in the server",
            "GET /media/{image}/{kind} path: variable is {kind} in the document, {image} in the server",
        ]
    );
}
