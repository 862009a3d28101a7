//! Servers of one list, with a filter and sorts.

use std::sync::atomic::{AtomicBool, Ordering};

use http::{Request, Response};
use serde_json::{Value, json};

use super::{comparison, findings, start};

const PETS: [(&str, &str); 3] = [("Bella", "cat"), ("apple", "dog"), ("Zorro", "dog")];

/// Compares a server that returns pets, and returns the findings.
async fn found(
    parameters: Value,
    answer: impl Fn(&str) -> Vec<(&'static str, &'static str)> + Send + Sync + 'static,
) -> Vec<String> {
    let pet = json!({ "type": "object", "properties": { "name": { "type": "string" }, "species": { "type": "string" } } });
    let list = json!({ "description": "", "content": { "application/json": { "schema": { "type": "array", "items": pet } } } });
    let document = json!({
        "openapi": "3.0.3",
        "info": { "title": "pets", "version": "1" },
        "paths": { "/pets": { "get": { "operationId": "list", "parameters": parameters, "responses": { "200": list } } } },
    });
    let address = start(move |request: &Request<_>| {
        let pets = answer(request.uri().query().unwrap_or_default());
        let body: Value = pets.iter().map(|(name, species)| json!({ "name": name, "species": species })).collect();
        Response::builder().header("content-type", "application/json").body(body.to_string()).unwrap()
    });
    let report = comparison(document, None, &address.await).await.run(|_| ()).await;
    findings(&report).into_iter().filter(|finding| finding.starts_with("list list.")).collect()
}

#[tokio::test]
async fn ignored_filter_with_several_values_is_found() {
    let species = json!({ "type": "array", "items": { "type": "string", "enum": ["cat", "dog"] } });
    let parameters = json!([{ "name": "species", "in": "query", "explode": false, "schema": species }]);
    let filter = |query: &str| {
        let is_found = |(_, species): &(&str, &str)| query.split_once("species=").is_none_or(|(_, sent)| sent.contains(species));
        PETS.into_iter().filter(is_found).collect()
    };
    assert_eq!(found(parameters.clone(), filter).await, [""; 0]);
    let expected = ["list list.filter: the filter species returns an entry with another value"];
    assert_eq!(found(parameters, |_| PETS.into()).await, expected);
}

#[tokio::test]
async fn ignored_order_in_capitals_is_found() {
    let values = |values: &[&str]| json!({ "type": "string", "enum": values });
    let parameters = json!([
        { "name": "sort", "in": "query", "schema": values(&["name"]) },
        { "name": "order", "in": "query", "schema": values(&["ASC", "DESC"]) },
    ]);
    let sort = |query: &str| {
        let mut pets = PETS.to_vec();
        pets.sort();
        if query.contains("order=DESC") {
            pets.reverse();
        }
        pets
    };
    assert_eq!(found(parameters.clone(), sort).await, [""; 0]);
    let expected = ["list list.sort: the sort name is not descending by name"];
    assert_eq!(found(parameters, move |_| sort("")).await, expected);
}

#[tokio::test]
async fn order_that_changes_is_found() {
    let is_reversed = AtomicBool::new(false);
    let shuffle = move |_: &str| {
        let mut pets = PETS.to_vec();
        if is_reversed.fetch_xor(true, Ordering::Relaxed) {
            pets.reverse();
        }
        pets
    };
    let expected = ["list list.totals: two requests for the list return entries in another order"];
    assert_eq!(found(json!([]), shuffle).await, expected);
}
