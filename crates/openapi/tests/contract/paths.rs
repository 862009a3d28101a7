//! Paths of operations, and how requests match them.

use boxoffice_openapi::{Contract, RouteError};
use serde_json::{Value, json};

use super::contract;

#[test]
fn strips_base_paths_of_all_servers() {
    let operation = json!({ "responses": { "204": { "description": "" } } });
    let mut own = operation.clone();
    own["servers"] = json!([{ "url": "https://example.com/v3/" }]);
    let contract = Contract::new(json!({
        "openapi": "3.1.0",
        "servers": [{ "url": "/v1" }],
        "paths": {
            "/a": { "servers": [{ "url": "/v2" }, { "url": "/b" }], "get": operation, "post": own },
            "/b/{id}": { "get": operation },
        },
    }));
    let contract = contract.unwrap();
    for (path, expected) in
        [("/v1/a", "/a"), ("/v2/a", "/a"), ("/v3/a", "/a"), ("/a", "/a"), ("/v20/a", "/v20/a"), ("/b/7", "/b/7")]
    {
        assert_eq!(contract.without_prefix(path), expected, "{path}");
    }
}

#[test]
fn strips_base_paths_with_all_listed_values_of_variables() {
    let variables = json!({
        "server": { "default": "https://example.com" },
        "stage": { "default": "prod", "enum": ["prod", "test"] },
        "version": { "default": "v1", "enum": ["v2"] },
        "tenant": { "default": "acme" },
        "port": { "default": "8443", "enum": ["8443"] },
    });
    let contract = Contract::new(json!({
        "openapi": "3.0.3",
        "servers": [
            { "url": "{server}/{stage}/api/{version}", "variables": variables },
            { "url": "https://localhost:{port}/of/{tenant}/{undefined}", "variables": variables },
            { "url": "/of/{tenant}", "variables": variables },
        ],
        "paths": { "/a": { "get": { "responses": { "204": { "description": "" } } } } },
    }));
    let contract = contract.unwrap();
    for (path, is_stripped) in [
        ("/prod/api/v1/a", true),
        ("/prod/api/v2/a", true),
        ("/test/api/v2/a", true),
        ("/dev/api/v1/a", false),
        ("/of/acme/a", true),
        ("/of/other/a", false),
    ] {
        assert_eq!(contract.without_prefix(path), if is_stripped { "/a" } else { path });
    }
}

#[test]
fn matches_paths_by_shape() {
    let named = |id: &str| json!({ "operationId": id, "responses": { "204": {} } });
    let contract = contract(
        json!({
            "/a/{id}": { "get": named("by id") },
            "/a/{name}": { "post": named("by name") },
            "/{any}/c": { "get": named("any") },
            "/{other}/{part}": { "get": named("part") },
            "/a/b": { "get": named("literal") },
        }),
        json!({}),
    );
    let found = |method: &str, path: &str| contract.find(method, path).map(|operation| operation.id.clone());
    assert_eq!(found("GET", "/a/1").as_deref(), Ok("by id"));
    assert_eq!(found("POST", "/a/1").as_deref(), Ok("by name"));
    assert_eq!(found("GET", "/a/b").as_deref(), Ok("literal"));
    assert_eq!(found("GET", "/x/c").as_deref(), Ok("any"));
    assert_eq!(found("GET", "/x/y").as_deref(), Ok("part"));
    assert_eq!(found("PUT", "/a/1"), Err(RouteError::MethodNotAllowed(vec!["GET".to_owned(), "POST".to_owned()])));
    assert_eq!(["/", "/a", "/a/b/c", "/a%2Fb", "/b%"].map(|path| found("GET", path)), [const { Err(RouteError::NotFound) }; 5]);
}

#[test]
fn matches_equivalent_spellings_of_a_path() {
    let contract = contract(json!({ "/a-b/{id}/c": { "get": { "responses": { "204": {} } } } }), json!({}));
    for path in ["/a-b/1/c", "/a%2Db/1/c", "/%61%2d%62/%31/%63"] {
        assert!(["GET", "get"].iter().all(|method| contract.find(method, path).is_ok()), "{path}");
    }
    for path in ["/A-B/1/c", "/a-b/1/c/", "//a-b/1/c", "/a-b//1/c"] {
        assert_eq!(contract.find("GET", path).err(), Some(RouteError::NotFound), "{path}");
    }
}

#[test]
fn path_with_a_slash_at_its_end_is_another_path() {
    let named = |id: &str| json!({ "get": { "operationId": id, "responses": { "204": {} } } });
    let paths = json!({ "/": named("root"), "/a/": named("slash"), "/a": named("none"), "/{id}/": named("variable") });
    let contract = contract(paths, json!({}));
    let found = ["/", "/a", "/a/", "/b/", "/b"].map(|path| contract.find("GET", path).map(|operation| operation.id.as_str()));
    assert_eq!(found, [Ok("root"), Ok("none"), Ok("slash"), Ok("variable"), Err(RouteError::NotFound)]);
}

#[test]
fn path_with_several_variables_in_a_segment_is_divided_by_their_schemas() {
    let variable = |name: &str, schema: Value| json!({ "name": name, "in": "path", "required": true, "schema": schema });
    let kind = || variable("kind", json!({ "enum": ["json", "xml"] }));
    let contract = contract(
        json!({
            "/a/{name}.{kind}": { "get": {
                "parameters": [variable("name", json!({ "type": "string" })), kind()], "responses": { "204": {} },
            } },
        }),
        json!({}),
    );
    let parse = |path: &str| contract.find("GET", path).unwrap().path_arguments(path);
    for (path, name) in [("/a/b.json", "b"), ("/a/b.c.json", "b.c"), ("/a/b.json.xml", "b.json"), ("/a/.b.xml", ".b")] {
        assert_eq!(parse(path).unwrap()["name"], name, "{path}");
    }
    assert!(parse("/a/b.c.txt").is_err());
    assert_eq!(["/a/json", "/a/.json", "/a/b."].map(|path| contract.find("GET", path).is_ok()), [false; 3]);
    let dots = format!("/a/{}", ".".repeat(8000));
    assert!(parse(&dots).is_err());
}
