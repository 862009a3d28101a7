//! Servers of one list, with a filter and sorts.

use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use super::{Store, compare, compare_stateful, document, findings, json_answer, json_response, rejection, variable};

const PETS: [(&str, &str); 3] = [("Bella", "cat"), ("apple", "dog"), ("Zorro", "dog")];

/// Compares a server that returns pets, and returns the findings.
async fn found(
    parameters: Value,
    answer: impl Fn(&str) -> Vec<(&'static str, &'static str)> + Send + Sync + 'static,
) -> Vec<String> {
    found_in(parameters, move |query| listed(answer(query))).await
}

fn listed(pets: Vec<(&str, &str)>) -> Value {
    pets.into_iter().map(|(name, species)| json!({ "name": name, "species": species })).collect()
}

/// Compares a server that returns a list, and returns the findings.
async fn found_in(parameters: Value, answer: impl Fn(&str) -> Value + Send + Sync + 'static) -> Vec<String> {
    let pet = json!({ "type": "object", "properties": { "name": { "type": "string" }, "species": { "type": "string" } } });
    let list = json_answer(&json!({ "type": "array", "items": pet }));
    let list = json!({ "operationId": "list", "parameters": parameters, "responses": { "200": list } });
    let document = document("pets", json!({ "/pets": { "get": list } }));
    let report = compare(document, move |request| json_response(200, &answer(request.uri().query().unwrap_or_default())));
    findings(&report.await).into_iter().filter(|finding| finding.starts_with("list list.")).collect()
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

/// Compares a server of a list with pages of at most 7 pets, to which another pet is added. `answer` gets the first pets, and whether
/// there are more.
async fn found_in_collection(schema: Value, answer: impl Fn(Vec<Value>, bool) -> Value + Send + Sync + 'static) -> Vec<String> {
    let pet = json!({ "type": "object", "required": ["name"], "properties": {
        "id": { "type": "integer", "readOnly": true }, "name": { "type": "string", "minLength": 1 },
    } });
    let paths = json!({
        "/pets": {
            "get": {
                "operationId": "list",
                "parameters": [{ "name": "limit", "in": "query", "schema": { "type": "integer" } }],
                "responses": { "200": json_answer(&schema) },
            },
            "post": {
                "operationId": "create",
                "requestBody": { "content": { "application/json": { "schema": pet } } },
                "responses": { "201": json_answer(&pet) },
            },
        },
        "/pets/{id}": { "get": {
            "parameters": variable("id", json!({ "type": "integer" })),
            "responses": { "200": json_answer(&pet), "404": json_answer(&json!({})) },
        } },
    });
    let mut pets = Store::default();
    for number in 1..=9 {
        pets.create(json!({ "name": format!("Pet {number}") }));
    }
    let report = compare_stateful(document("pets", paths), pets, move |contract, pets, request| {
        if let Some(rejection) = rejection(contract, request) {
            return rejection;
        }
        if (request.method().as_str(), request.uri().path()) == ("GET", "/pets") {
            let first = pets.resources.values().take(7).cloned().collect();
            return json_response(200, &answer(first, pets.resources.len() > 7));
        }
        pets.respond(request)
    });
    findings(&report.await).into_iter().filter(|finding| finding.contains("resource.listed")).collect()
}

#[tokio::test]
async fn page_with_a_next_one_is_not_the_whole_list() {
    let schema = |next: &str| json!({ "type": "object", "properties": { "pets": { "type": "array" }, next: {} } });
    let more = |pets: Vec<Value>, has_more: bool| json!({ "pets": pets, "has_more": has_more });
    assert_eq!(found_in_collection(schema("has_more"), more).await, [""; 0]);
    let nested = |pets: Vec<Value>, has_more: bool| json!({ "pets": pets, "paging": { "next": has_more.then_some("abc") } });
    assert_eq!(found_in_collection(schema("paging"), nested).await, [""; 0]);
    let none = |pets: Vec<Value>, _: bool| json!({ "pets": pets, "has_more": false });
    let expected = ["create resource.listed: the list lacks a created resource"];
    assert_eq!(found_in_collection(schema("has_more"), none).await, expected);
}

#[tokio::test]
async fn wrong_total_is_one_finding() {
    let pets: Vec<Value> = (1..=23).map(|id| json!({ "self": format!("/pets/{id}") })).collect();
    let number =
        |name: &str| json!({ "name": name, "in": "query", "schema": { "type": "integer", "minimum": 1, "maximum": 100 } });
    let list = json!({
        "operationId": "list",
        "parameters": [number("page"), number("records")],
        "responses": { "200": { "description": "", "content": { "application/json": {} } } },
    });
    let document = document("pets", json!({ "/pets": { "get": list } }));
    let report = compare(document, move |request| {
        let query = request.uri().query().unwrap_or_default();
        let number = |name: &str, other: usize| {
            let sent = form_urlencoded::parse(query.as_bytes()).find(|(sent, _)| sent == name);
            sent.and_then(|(_, number)| number.parse().ok()).unwrap_or(other)
        };
        let (page, records) = (number("page", 1), number("records", 10));
        let entries: Vec<&Value> = pets.iter().skip((page.max(1) - 1) * records).take(records).collect();
        json_response(200, &json!({ "total": entries.len(), "page": page, "records": records, "entries": entries }))
    });
    let totals: Vec<_> = findings(&report.await).into_iter().filter(|finding| finding.starts_with("list list.totals")).collect();
    assert_eq!(totals, ["list list.totals: a page past the end is answered with 200"]);
}

#[tokio::test]
async fn lists_with_cursors_and_descending_names_are_read() {
    let parameters = json!([
        { "name": "cursor", "in": "query", "schema": { "type": "string" } },
        { "name": "limit", "in": "query", "schema": { "type": "integer", "minimum": 1, "maximum": 2 } },
        { "name": "sort", "in": "query", "schema": { "type": "string", "enum": ["name", "-name"] } },
    ]);
    let page = |query: &str, pets: &[(&'static str, &'static str)], size: usize| {
        let cursor = form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == "cursor");
        let start = cursor.map_or(0, |(_, cursor)| cursor.parse().unwrap());
        let end = pets.len().min(start + size);
        json!({ "pets": listed(pets[start..end].to_vec()), "paging": { "nextCursor": (end < pets.len()).then(|| end.to_string()) } })
    };
    let sorted = |query: &str| {
        let mut pets = PETS.to_vec();
        pets.sort();
        if query.contains("sort=-name") {
            pets.reverse();
        }
        pets
    };
    let sound = move |query: &str| page(query, &sorted(query), if query.contains("limit=1") { 1 } else { 2 });
    assert_eq!(found_in(parameters.clone(), sound).await, [""; 0]);
    let expected = ["list list.sort: the sort name is not descending by name"];
    let ascending = move |query: &str| sound(&query.replace("sort=-name", ""));
    assert_eq!(found_in(parameters.clone(), ascending).await, expected);
    let repeated = move |query: &str| {
        let mut body = sound(query);
        body["pets"] = sound(&query.replace("cursor", "ignored"))["pets"].take();
        body
    };
    let found = found_in(parameters, repeated).await;
    assert!(found.iter().any(|finding| finding.starts_with("list list.totals")), "{found:?}");
}

#[tokio::test]
async fn parameter_of_another_document_may_be_no_filter() {
    let parameters = json!([
        { "name": "direction", "in": "query", "schema": { "type": "string", "enum": ["asc", "desc"] } },
        { "name": "pretty", "in": "query", "schema": { "type": "boolean" } },
    ]);
    assert_eq!(found(parameters, |_| PETS.into()).await, [""; 0]);
}

#[tokio::test]
async fn page_that_is_too_large_is_found() {
    let integer = json!({ "type": "integer", "minimum": 1, "maximum": 50 });
    let parameters =
        |names: &[&str]| names.iter().map(|name| json!({ "name": name, "in": "query", "schema": integer })).collect();
    let number = |query: &str, name: &str| {
        let mut pairs = form_urlencoded::parse(query.as_bytes());
        pairs.find(|(other, _)| other == name).and_then(|(_, text)| text.parse::<usize>().ok())
    };
    let page = move |query: &str, limit: usize| {
        PETS.into_iter().skip((number(query, "page").unwrap_or(1) - 1) * limit).take(limit).collect()
    };
    let limited = move |query: &str| page(query, number(query, "limit").unwrap_or(50));
    let expected = ["list list.totals: a page has more entries than requested"];
    for names in [&["limit"] as &[_], &["page", "limit"]] {
        assert_eq!(found(parameters(names), limited).await, [""; 0]);
        assert_eq!(found(parameters(names), move |query| page(query, 50)).await, expected);
    }
    // A property of the entries.
    assert_eq!(found(parameters(&["size"]), move |query| page(query, 50)).await, [""; 0]);
}

#[tokio::test]
async fn wrong_total_of_pages_is_found() {
    let number =
        |name: &str| json!({ "name": name, "in": "query", "schema": { "type": "integer", "minimum": 0, "maximum": 50 } });
    let page = |total: usize| {
        move |query: &str| {
            let number = |name: &str| {
                let mut pairs = form_urlencoded::parse(query.as_bytes());
                pairs.find(|(other, _)| other == name).and_then(|(_, text)| text.parse::<usize>().ok())
            };
            let pets = PETS.into_iter().skip(number("offset").unwrap_or(0)).take(number("limit").unwrap_or(50));
            json!({ "items": listed(pets.collect()), "total_count": total })
        }
    };
    let parameters = json!([number("offset"), number("limit")]);
    assert_eq!(found_in(parameters.clone(), page(3)).await, [""; 0]);
    for total in [2, 4] {
        let found = found_in(parameters.clone(), page(total)).await;
        assert_eq!(found[0], "list list.totals: the total of the list is not the number of its entries", "{total}");
    }
}

#[tokio::test]
async fn ignored_filter_in_the_plural_is_found() {
    let kinds = json!({ "type": "array", "items": { "type": "string", "enum": ["cat", "dog"] } });
    let parameters = json!([{ "name": "names", "in": "query", "schema": kinds }]);
    let pets = |query: &str| {
        let is_found = |pet: &&(&str, &str)| query.split_once("names=").is_none_or(|(_, sent)| sent == pet.0);
        [("cat", "x"), ("dog", "y")].iter().filter(is_found).copied().collect()
    };
    assert_eq!(found(parameters.clone(), pets).await, [""; 0]);
    let expected = ["list list.filter: the filter names returns an entry with another value"];
    assert_eq!(found(parameters, move |_| pets("")).await, expected);
}

#[tokio::test]
async fn entry_that_is_missing_between_pages_of_the_maximum_is_found() {
    let number = |name: &str, maximum: u64| json!({ "name": name, "in": "query", "schema": { "type": "integer", "minimum": 1, "maximum": maximum } });
    let pets = |missing: usize| {
        move |query: &str| -> Value {
            let number = |name: &str| {
                let mut pairs = form_urlencoded::parse(query.as_bytes());
                pairs.find(|(other, _)| other == name).and_then(|(_, text)| text.parse::<usize>().ok())
            };
            let (page, limit) = (number("page").unwrap_or(1), number("limit").unwrap_or(3));
            let missing = if page > 1 { missing } else { 0 };
            (1..=9)
                .skip((page - 1) * limit + missing)
                .take(limit.saturating_sub(missing))
                .map(|id| json!({ "name": format!("Pet {id}") }))
                .collect()
        }
    };
    let expected = ["list list.totals: the list has other entries in smaller pages"];
    for maximum in [2, 3, 4, 50] {
        let parameters = json!([number("page", 100), number("limit", maximum)]);
        assert_eq!(found_in(parameters.clone(), pets(0)).await, [""; 0], "{maximum}");
        if maximum > 2 {
            assert_eq!(found_in(parameters, pets(1)).await, expected, "{maximum}");
        }
    }
}
