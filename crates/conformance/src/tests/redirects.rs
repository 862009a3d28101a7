//! A server of short links, which answers with redirects and is correct apart from one fault.

use std::collections::BTreeMap;

use boxoffice_openapi::Contract;
use bytes::Bytes;
use http::{Request, Response};
use serde_json::{Value, json};

use super::{
    compare_stateful, comparison, error, findings, is_valid, json_answer, json_response, response, sent, start, unrouted,
    variable,
};
use crate::model::Report;
use crate::server_kind::ServerKind;

fn document() -> Value {
    let url = json!({ "type": "string", "format": "uri", "maxLength": 200 });
    let link = json!({ "type": "object", "required": ["url"], "properties": {
        "code": { "type": "string", "readOnly": true }, "url": url,
    } });
    let (answer, error) = (json_answer(&link), error());
    let body = json!({ "required": true, "content": { "application/json": { "schema": link } } });
    let variable = variable("code", json!({ "type": "string", "pattern": "^[a-z0-9-]{4,99}$" }));
    let redirect = json!({ "description": "", "headers": { "Location": { "required": true, "schema": { "type": "string", "format": "uri-reference" } } } });
    let paths = json!({
        "/links": { "post": { "operationId": "create", "requestBody": body, "responses": { "201": answer, "400": error } } },
        "/links/{code}": {
            "parameters": variable,
            "get": { "operationId": "read", "responses": { "200": answer, "404": error } },
            "put": { "operationId": "replace", "requestBody": body, "responses": { "303": redirect, "400": error, "404": error } },
        },
        "/{code}": { "parameters": variable, "get": { "operationId": "follow", "responses": { "302": redirect, "404": error } } },
    });
    super::document("links", paths)
}

/// Compares the server with its document.
async fn compare(fault: &'static str) -> Report {
    let answer = move |contract: &_, links: &mut _, request: &_| answer(contract, links, request, fault);
    compare_stateful(document(), BTreeMap::new(), answer).await
}

fn answer(contract: &Contract, links: &mut BTreeMap<String, Value>, request: &Request<Bytes>, fault: &str) -> Response<String> {
    let path = request.uri().path();
    let operation = match contract.find(request.method().as_str(), path) {
        Ok(operation) => operation,
        Err(error) => return unrouted(error),
    };
    let code = path.rsplit('/').next().unwrap_or_default().to_owned();
    let follows_all = operation.id == "follow" && fault == "follows all";
    if operation.id != "create" && !links.contains_key(&code) && !follows_all {
        return json_response(404, &json!({}));
    }
    if !follows_all && !is_valid(operation, request) {
        return json_response(400, &json!({}));
    }
    let mut link = sent(request);
    let redirect = |status: u16, location: &str| {
        let mut redirect = response(status, String::new());
        if fault != "redirects nowhere" {
            redirect.headers_mut().insert("location", location.parse().unwrap());
        }
        redirect
    };
    match operation.id.as_str() {
        "create" => {
            let code = format!("link-{}", links.len());
            link["code"] = json!(code);
            links.insert(code, link.clone());
            json_response(201, &link)
        }
        "replace" => {
            if fault != "replaces nothing" {
                link["code"] = json!(code);
                links.insert(code, link);
            }
            redirect(303, path)
        }
        "follow" => redirect(302, links.get(&code).and_then(|link| link["url"].as_str()).unwrap_or("https://example.com")),
        _ => json_response(200, &links[&code]),
    }
}

#[tokio::test]
async fn declared_redirects_are_successes() {
    let report = compare("").await;
    assert_eq!(findings(&report), [""; 0]);
    let follow = report.operation("follow").unwrap();
    assert!(follow.left_out.is_none() && follow.seen.contains(&302), "{follow:?}");
}

#[tokio::test]
async fn faults_of_redirects_are_found() {
    for (fault, expected) in [
        ("redirects nowhere", "follow response.header: the response 302 lacks the header Location"),
        ("replaces nothing", "replace sent.kept: a changed url is not read back"),
        ("follows all", "follow argument.form: code that has an invalid format is answered with 302"),
        ("follows all", "follow resource.unknown: an unknown code is answered with 302"),
    ] {
        let found = findings(&compare(fault).await);
        assert!(found.iter().any(|finding| finding == expected), "{expected}: {found:?}");
        // A text in a path has no other type.
        assert!(!found.iter().any(|finding| finding.contains("argument.type: code")), "{found:?}");
    }
}

/// Compares a server with two kinds of short links that answers every GET of one with this status. Returns the kind that it is taken for.
async fn kind_of(status: u16) -> ServerKind {
    let mut document = document();
    let follow = document["paths"]["/{code}"].clone();
    document["paths"] = json!({ "/{code}": follow, "/short/{code}": follow });
    document["paths"]["/short/{code}"]["get"]["operationId"] = json!("follow_short");
    let address = start(move |_: &Request<Bytes>| {
        let mut redirect = response(status, String::new());
        redirect.headers_mut().insert("location", "https://example.com".parse().unwrap());
        redirect
    });
    let comparison = comparison(document, None, &address.await).await;
    comparison.run(|_| ()).await;
    comparison.kind()
}

#[tokio::test]
async fn mock_of_redirects_is_a_mock() {
    assert_eq!(kind_of(302).await, ServerKind::StatelessMock);
    // Such a redirect isn't declared: it may lead to a login.
    assert_eq!(kind_of(307).await, ServerKind::Real);
}
