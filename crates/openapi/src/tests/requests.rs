//! What requests to other APIs may look like.

use http::HeaderMap;
use serde_json::{Value, json};

use super::super::ParameterLocation;
use super::{circles, contract, operation, refused, to, wrong_body};

#[test]
fn parameters_stand_in_every_place() {
    let parameter =
        |name: &str, place: &str, schema: Value| json!({ "name": name, "in": place, "required": true, "schema": schema });
    let parameters = json!([
        parameter("thing", "path", json!({ "type": "integer" })),
        parameter("page", "query", json!({ "type": "integer", "minimum": 1 })),
        parameter("X-Trace", "header", json!({ "type": "string", "maxLength": 3 })),
        parameter("theme", "cookie", json!({ "enum": ["dark", "light"] })),
        parameter("Accept", "header", json!({ "type": "integer" })),
    ]);
    let contract = operation(parameters, json!(null));
    let cookie = ("cookie", "a=b; theme=dark");
    assert_eq!(refused(&contract, "/things/1?page=2", &[("x-trace", "abc"), cookie], ""), [""; 0]);
    assert_eq!(refused(&contract, "/things/1", &[], ""), ["-page", "-X-Trace", "-theme"]);
    assert_eq!(
        refused(&contract, "/things/x?page=1&page=2", &[("x-trace", "abcd"), ("cookie", "theme=red")], ""),
        [
            "thing must be an integer",
            "page is given more than once",
            "X-Trace must have at most 3 characters",
            "theme must be one of: dark, light",
        ]
    );
    let places: Vec<_> = contract.find("POST", "/things/1").unwrap().parameters.iter().map(|parameter| parameter.place).collect();
    assert_eq!(places, [ParameterLocation::Path, ParameterLocation::Query, ParameterLocation::Header, ParameterLocation::Cookie]);
}

#[test]
fn parameters_come_in_every_style() {
    let numbers = json!({ "type": "array", "items": { "type": "integer" }, "maxItems": 2 });
    let point =
        json!({ "type": "object", "required": ["x"], "properties": { "x": { "type": "integer" }, "y": { "type": "integer" } } });
    let either = json!({ "oneOf": [{ "type": "integer", "maximum": 9 }, { "type": "string", "pattern": "^a" }, numbers] });
    for (place, style, explode, schema, right, wrong, told) in [
        ("query", "form", true, &numbers, "?p=1&p=2", "?p=1&p=b", "p must be an integer"),
        ("query", "form", false, &numbers, "?p=1,2", "?p=1%2C2,3", "p must have at most 2 items"),
        ("query", "spaceDelimited", false, &numbers, "?p=1%202", "?p=1+b", "p must be an integer"),
        ("query", "pipeDelimited", false, &numbers, "?p=1|2", "?p=1|b", "p must be an integer"),
        ("query", "deepObject", true, &point, "?p[x]=1&p[y]=2", "?p[y]=2", "p lacks x"),
        ("query", "form", true, &point, "?x=1&y=2", "?y=2", "p lacks x"),
        ("query", "form", false, &point, "?p=x,1,y,2", "?p=x,a", "p must be an integer"),
        ("query", "form", true, &either, "?p=abc", "?p=b", "p must be an integer"),
        ("path", "simple", false, &numbers, "1,2", "1,b", "p must be an integer"),
        ("path", "simple", true, &point, "x=1,y=2", "y=2", "p lacks x"),
        ("path", "label", true, &numbers, ".1.2", ".1.b", "p must be an integer"),
        ("path", "label", false, &json!({ "type": "integer" }), ".1", ".b", "p must be an integer"),
        ("path", "matrix", false, &numbers, ";p=1,2", ";p=1,b", "p must be an integer"),
        ("path", "matrix", true, &numbers, ";p=1;p=2", ";p=1;p=b", "p must be an integer"),
        ("path", "matrix", false, &json!({ "type": "integer" }), ";p=1", ";p=b", "p must be an integer"),
    ] {
        let parameter =
            json!({ "name": "p", "in": place, "required": true, "style": style, "explode": explode, "schema": schema });
        let path = if place == "path" { "/things/{p}" } else { "/things/1" };
        let operation = json!({ "post": { "parameters": [parameter], "responses": { "204": {} } } });
        let contract = contract(json!({ path: operation }), json!({}));
        let target = |text: &str| if place == "path" { format!("/things/{text}") } else { format!("/things/1{text}") };
        assert_eq!(refused(&contract, &target(right), &[], ""), [""; 0], "{style} {right}");
        assert_eq!(refused(&contract, &target(wrong), &[], ""), [told], "{style} {wrong}");
    }
}

#[test]
fn the_parts_of_a_list_come_as_they_were_sent() {
    let parameter = json!({ "name": "p", "in": "query", "style": "deepObject", "schema": { "type": "array", "items": {} } });
    let contract = operation(json!([parameter]), Value::Null);

    let found =
        contract.find("POST", "/things/1").unwrap().check("/things/1", Some("p[9]=a&p[10]=b&p[1]=c"), &HeaderMap::new(), b"");

    assert_eq!(found.unwrap().query["p"], json!(["a", "b", "c"]));
}

#[test]
fn parameters_may_be_json_or_empty() {
    let filter = json!({ "name": "filter", "in": "query", "content": { "application/json": { "schema": { "type": "array" } } } });
    let flag = json!({ "name": "flag", "in": "query", "allowEmptyValue": true, "schema": { "type": "boolean" } });
    let contract = operation(json!([filter, flag]), json!(null));
    assert_eq!(refused(&contract, "/things/1?filter=[1]&flag=", &[], ""), [""; 0]);
    assert_eq!(
        refused(&contract, "/things/1?filter=7&flag=x", &[], ""),
        ["filter must be an array", "flag must be true or false"]
    );
    assert!(refused(&contract, "/things/1?filter=[", &[], "")[0].starts_with("filter must be JSON"));
}

#[test]
fn an_operation_goes_before_its_path() {
    let limit = |maximum: u32| json!({ "name": "limit", "in": "query", "schema": { "type": "integer", "maximum": maximum } });
    let item = json!({ "parameters": [limit(5)], "post": { "parameters": [limit(9)], "responses": { "204": {} } } });
    let contract = contract(json!({ "/things": item }), json!({}));
    assert_eq!(refused(&contract, "/things?limit=7", &[], ""), [""; 0]);
    assert_eq!(refused(&contract, "/things?limit=10", &[], ""), ["limit must be at most 9"]);
}

#[test]
fn bodies_are_of_any_schema() {
    let names = json!({ "type": "array", "items": { "type": "string" } });
    assert_eq!(wrong_body(names.clone(), json!({}), &json!(["a"])), [""; 0]);
    assert_eq!(wrong_body(names.clone(), json!({}), &json!(["a", 7])), ["body must be a string (at 1)"]);
    assert_eq!(wrong_body(names, json!({}), &json!({})), ["body must be an array"]);
    assert_eq!(wrong_body(json!({ "type": "integer" }), json!({}), &json!(7)), [""; 0]);
    assert_eq!(
        wrong_body(json!({ "type": "object", "additionalProperties": { "type": "integer" } }), json!({}), &json!({ "a": "b" })),
        ["a must be an integer"]
    );
    assert_eq!(wrong_body(to("Event"), circles(), &json!({ "host": { "name": 7 } })).len(), 2);
    let known = json!({ "properties": { "a": { "type": "string" } }, "required": ["a"], "additionalProperties": false });
    assert_eq!(wrong_body(known.clone(), json!({}), &json!({ "b": 1 })), ["-a", "b is not among the properties of the body"]);
    // What is blank is the platform's own matter.
    assert_eq!(wrong_body(known, json!({}), &json!({ "a": "" })), [""; 0]);
}

#[test]
fn bodies_come_in_the_declared_media_types() {
    let form = json!({
        "type": "object",
        "required": ["name"],
        "properties": {
            "name": { "type": "string" },
            "size": { "type": "integer" },
            "tags": { "type": "array", "items": { "type": "integer" } },
        },
    });
    let content = json!({
        "application/vnd.thing+json": { "schema": { "type": "object", "required": ["a"], "properties": { "a": {} } } },
        "application/x-www-form-urlencoded": { "schema": form, "encoding": { "tags": { "explode": false } } },
        "image/*": {},
    });
    let contract = operation(json!([]), content);
    let ask = |media_type: &str, body: &str| refused(&contract, "/things/1", &[("content-type", media_type)], body);
    let urlencoded = "application/x-www-form-urlencoded";
    assert_eq!(ask("application/vnd.thing+json; charset=utf-8", r#"{"a": 1}"#), [""; 0]);
    assert_eq!(ask("application/vnd.thing+json", "{}"), ["-a"]);
    assert_eq!(ask("application/vnd.thing+json", ""), ["-a"]);
    assert_eq!(ask("application/vnd.thing+json", "{"), ["The request's body is not valid JSON: line 1, column 1."]);
    assert_eq!(ask(urlencoded, "name=a&size=7&tags=1,2"), [""; 0]);
    assert_eq!(ask(urlencoded, "size=x&tags=1,b"), ["-name", "size must be an integer", "tags must be an integer"]);
    assert_eq!(ask("image/png", "?"), [""; 0]);
    let declared = "application/vnd.thing+json or application/x-www-form-urlencoded or image/*";
    assert_eq!(ask("text/plain", "?"), [format!("The request's body must be {declared}.")]);
}

#[test]
fn a_body_is_missing_only_where_it_is_required() {
    let text = json!({ "text/plain": {} });
    assert_eq!(refused(&operation(json!([]), text.clone()), "/things/1", &[], ""), ["-body"]);
    let optional = json!({ "/things": { "post": { "requestBody": { "content": text }, "responses": { "204": {} } } } });
    assert_eq!(refused(&contract(optional, json!({})), "/things", &[], ""), [""; 0]);
}

/// Only the platform's own document means the platform's headers by these names.
#[test]
fn headers_that_are_called_as_the_platforms_are_like_all_others() {
    let header = |name: &str, kind: &str| json!({ "name": name, "in": "header", "required": true, "schema": { "type": kind } });
    let contract = operation(json!([header("X-Client-Version", "integer"), header("X-Api-Key", "string")]), Value::Null);
    let wrong = |headers: &[(&'static str, &str)]| refused(&contract, "/things/1", headers, "");
    assert_eq!(wrong(&[]), ["-X-Client-Version", "-X-Api-Key"]);
    assert_eq!(wrong(&[("x-client-version", "3.0.0"), ("x-api-key", "k")]), ["X-Client-Version must be an integer"]);
    assert_eq!(wrong(&[("x-client-version", "1"), ("x-api-key", "k")]), [""; 0]);
    assert!(!contract.operations().next().unwrap().needs_version);
}

#[test]
fn a_guess_is_about_an_argument_of_the_path_or_the_body() {
    let operation = |path: &str, argument: &str| {
        let content = json!({ "application/json": { "schema": { "type": "object" } } });
        let operation = json!({ "x-guessing": argument, "requestBody": { "content": content }, "responses": { "204": {} } });
        contract(json!({ path: { "post": operation } }), json!({}))
    };
    let about = |path: &str, argument: &str, target: &str, body: &str| {
        operation(path, argument).find("POST", target).unwrap().guessed(target, body.as_bytes())
    };

    assert_eq!(about("/resets/{reset}", "reset", "/resets/a%20b", r#"{"reset": "x"}"#), "a b");
    assert_eq!(about("/sessions", "name", "/sessions", r#"{"password": 1, "name": "Ama"}"#), "Ama");
    for body in ["", "{", "[]", "7", r#"{"name": 7}"#, r#"{"names": "Ama"}"#] {
        assert_eq!(about("/sessions", "name", "/sessions", body), "", "{body}");
    }
}
