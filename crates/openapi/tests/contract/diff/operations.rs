//! Paths, operations, parameters, media types, security requirements, webhooks and callbacks.

use std::fs;

use boxoffice_openapi::Contract;
use boxoffice_openapi::diff::Impact::{self, Breaking, NonBreaking};
use boxoffice_openapi::diff::diff;
use serde_json::{Value, json};

use super::{NONE, breaking, changes, document, non_breaking, operation, with_parameter};

#[test]
fn follows_references_to_path_items() {
    let document_of = |kind: &str| {
        let item = json!({ "post": operation(json!({ "type": kind }), json!({})) });
        let paths = json!({ "/x": { "$ref": "#/components/pathItems/an%20x" } });
        json!({ "openapi": "3.1.0", "paths": paths, "components": { "pathItems": { "an x": item } } })
    };
    let expected = [breaking("POST /x body: the type is now integer instead of string")];
    assert_eq!(changes(document_of("string"), document_of("integer")), expected);
}

#[test]
fn follows_references_to_other_files() {
    let folder = tempfile::tempdir().unwrap();
    let read = |kind: &str| {
        let item = json!({ "post": operation(json!({ "type": kind }), json!({})) });
        fs::write(folder.path().join("my item.json"), item.to_string()).unwrap();
        let main = json!({ "openapi": "3.0.3", "paths": { "/x": { "$ref": "my%20item.json" } } });
        fs::write(folder.path().join("openapi.json"), main.to_string()).unwrap();
        Contract::read(folder.path()).unwrap().document
    };
    let changes = diff(&read("string"), &read("integer"));
    assert_eq!(changes.iter().map(|change| change.impact).collect::<Vec<_>>(), [Breaking]);
}

#[test]
fn compares_servers_by_their_addresses() {
    let with = |servers: Value| document(operation(json!({}), json!({})), json!({ "servers": servers }));
    let changes_of = |old: Value, new: Value| changes(with(old), with(new));
    let url = |url: &str| json!({ "url": url });
    let host = |version: &str| {
        let variables = json!({ "host": { "default": "example.com" }, "version": { "default": version } });
        json!({ "url": "https://{host}/{version}/", "variables": variables })
    };

    let moved = [breaking("servers: the base path is now /v2 instead of /v1")];
    assert_eq!(changes_of(json!([url("/v1")]), json!([url("/v2")])), moved);
    assert_eq!(changes_of(json!([host("v1")]), json!([host("v2")])), moved);
    assert_eq!(changes_of(json!([url("/v1"), url("/v2")]), json!([url("/v2"), url("/v1")])), moved);
    assert_eq!(changes_of(json!([]), json!([url("/v1")])), [breaking("servers: the base path is now /v1 instead of /")]);
    let test = url("https://test.example.com/v1");
    assert_eq!(
        changes_of(json!([host("v1"), test]), json!([host("v1")])),
        [breaking("servers: the server https://test.example.com/v1 was removed")]
    );
    assert_eq!(
        changes_of(json!([host("v1")]), json!([host("v1"), test])),
        [non_breaking("servers: the server https://test.example.com/v1 was added")]
    );
    assert_eq!(changes_of(json!([url("/v1")]), json!([host("v1")])), NONE);
    assert_eq!(changes_of(json!([]), json!([url("https://example.com/")])), NONE);

    let region = |variable: Value| json!([{ "url": "https://{region}.example.com", "variables": { "region": variable } }]);
    let open = region(json!({ "default": "a" }));
    let one = region(json!({ "default": "a", "enum": ["a"] }));
    let two = region(json!({ "default": "a", "enum": ["a", "b"] }));
    for (old, new, change) in [
        (&two, &one, breaking("servers: the value b of the server variable region was removed")),
        (&one, &two, non_breaking("servers: the value b of the server variable region was added")),
        (&open, &one, breaking("servers: the server variable region now has a list of values")),
        (&one, &open, non_breaking("servers: the server variable region no longer has a list of values")),
    ] {
        assert_eq!(changes_of(old.clone(), new.clone()), [change]);
    }

    let described = |text: &str| with(json!([{ "url": "/v1", "description": text }]));
    let prose = diff(&described("one"), &described("another"));
    assert_eq!(prose.iter().map(|change| change.impact).collect::<Vec<_>>(), [Impact::Prose]);
}

#[test]
fn fills_in_default_serialization_of_parameters() {
    let list = json!({ "type": "array", "items": { "type": "string" } });
    let changes_of = |location: &str, members: Value| {
        let new = json!({ "in": location, "schema": list, "style": members["style"], "explode": members["explode"] });
        let old = with_parameter(json!({ "in": location, "schema": list }), json!({}));
        changes(old, with_parameter(new, json!({})))
    };
    assert_eq!(changes_of("query", json!({ "style": "form", "explode": true })), NONE);
    assert_eq!(changes_of("cookie", json!({ "style": "form", "explode": true })), NONE);
    assert_eq!(changes_of("header", json!({ "style": "simple", "explode": false })), NONE);
    assert_eq!(changes_of("query", json!({ "explode": false })), [breaking("POST /x query.q: explode is now false")]);
    let piped = [breaking("POST /x query.q: explode is now false"), breaking("POST /x query.q: style is now \"pipeDelimited\"")];
    assert_eq!(changes_of("query", json!({ "style": "pipeDelimited" })), piped);

    let deep = |members: Value| {
        let mut parameter = json!({ "in": "query", "schema": { "type": "object" }, "style": "deepObject" });
        parameter.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        with_parameter(parameter, json!({}))
    };
    assert_eq!(changes(deep(json!({})), deep(json!({ "explode": true }))), NONE);

    let reserved = json!({ "in": "query", "schema": list, "allowReserved": false });
    let plain = with_parameter(json!({ "in": "query", "schema": list }), json!({}));
    assert_eq!(changes(plain, with_parameter(reserved, json!({}))), NONE);
}

#[test]
fn compares_alternative_security_requirements() {
    let schemes = json!({
        "key": { "type": "apiKey", "in": "header", "name": "X-Key" },
        "token": { "type": "http", "scheme": "bearer" },
        "oauth": { "type": "oauth2", "flows": {} },
    });
    let changes_of = |old: Value, new: Value| {
        let with = |security: Value| {
            let operation = json!({ "security": security, "responses": { "204": { "description": "" } } });
            document(operation, json!({ "components": { "securitySchemes": schemes } }))
        };
        changes(with(old), with(new))
    };
    let key = json!({ "key": [] });
    let token = json!({ "token": [] });
    let both = json!({ "key": [], "token": [] });
    let oauth = |scopes: &[&str]| json!({ "oauth": scopes });

    for (old, new) in [
        (json!([key, token]), json!([token, key])),
        (json!([both]), json!([{ "token": [], "key": [] }])),
        (json!([oauth(&["read", "write"])]), json!([oauth(&["write", "read"])])),
        (json!([]), json!([{}])),
    ] {
        assert_eq!(changes_of(old.clone(), new.clone()), NONE, "{old} {new}");
    }
    let text = "POST /x: the security requirements have changed";
    for (old, new) in [
        (json!([key]), json!([key, token])),
        (json!([both]), json!([token])),
        (json!([oauth(&["read", "write"])]), json!([oauth(&["read"])])),
        (json!([key]), json!([])),
        (json!([key]), json!([key, {}])),
    ] {
        assert_eq!(changes_of(old.clone(), new.clone()), [non_breaking(text)], "{old} {new}");
    }
    for (old, new) in [
        (json!([key, token]), json!([key])),
        (json!([key]), json!([both])),
        (json!([oauth(&["read"])]), json!([oauth(&["read", "write"])])),
        (json!([]), json!([key])),
        (json!([key, {}]), json!([key])),
    ] {
        assert_eq!(changes_of(old.clone(), new.clone()), [breaking(text)], "{old} {new}");
    }
}

#[test]
fn compares_content_of_parameters_by_its_schema() {
    let changes_of = |old: Value, new: Value, schemas: (Value, Value)| {
        let members = |schema: Value| json!({ "in": "query", "content": { "application/json": { "schema": schema } } });
        changes(with_parameter(members(old), schemas.0), with_parameter(members(new), schemas.1))
    };
    let nothing = || (json!({}), json!({}));
    let described = |text: &str| json!({ "type": "object", "description": text });
    assert_eq!(changes_of(described("one"), described("another"), nothing()), NONE);
    let limited = |limit: u64| json!({ "type": "string", "maxLength": limit });
    assert_eq!(changes_of(limited(3), limited(4), nothing()), [non_breaking("POST /x query.q: maxLength is now 4")]);

    let reference = || json!({ "$ref": "#/components/schemas/Filter" });
    let schemas = |kind: &str| json!({ "Filter": { "type": kind } });
    assert_eq!(
        changes_of(reference(), reference(), (schemas("string"), schemas("integer"))),
        [breaking("Filter: the type is now integer instead of string")]
    );

    let plain = with_parameter(json!({ "in": "query", "schema": { "type": "string" } }), json!({}));
    let encoded = with_parameter(json!({ "in": "query", "content": { "application/json": {} } }), json!({}));
    assert_eq!(changes(plain, encoded), [breaking("POST /x query.q: content was added")]);
}

#[test]
fn pairs_operations_by_the_texts_around_variables() {
    let with = |paths: &[(&str, &str)]| {
        let item = |(path, kind): &(&str, &str)| {
            let parameter = json!({ "name": "id", "in": "path", "required": true, "schema": { "type": kind } });
            let operation = json!({ "parameters": [parameter], "responses": { "204": { "description": "" } } });
            ((*path).to_owned(), json!({ "get": operation }))
        };
        json!({ "openapi": "3.1.0", "paths": paths.iter().map(item).collect::<serde_json::Map<_, _>>() })
    };
    let two = with(&[("/x/{id}:start", "string"), ("/x/{id}:stop", "string")]);
    assert_eq!(changes(two, with(&[("/x/{id}:stop", "string")])), [breaking("GET /x/{id}:start: the operation was removed")]);
    for path in ["/x/{id}", "/x/v-{id}", "/x/{id}.json"] {
        let expected = format!("GET {path} id: the type is now integer instead of string");
        assert_eq!(changes(with(&[(path, "string")]), with(&[(path, "integer")])), [breaking(&expected)]);
    }
}

#[test]
fn compares_all_methods_and_the_servers_of_paths() {
    let with = |item: Value| json!({ "openapi": "3.2.0", "servers": [{ "url": "/v1" }], "paths": { "/x": item } });
    let operation = json!({ "responses": { "204": { "description": "" } } });
    let all = json!({ "get": operation, "query": operation, "additionalOperations": { "COPY": operation } });
    assert_eq!(
        changes(with(all), with(json!({ "get": operation }))),
        [breaking("COPY /x: the operation was removed"), breaking("QUERY /x: the operation was removed")]
    );

    let moved = [breaking("GET /x: the base path is now /v2 instead of /v1")];
    let servers = |url: &str| json!([{ "url": url }]);
    let plain = with(json!({ "get": operation }));
    assert_eq!(changes(plain.clone(), with(json!({ "servers": servers("/v2"), "get": operation }))), moved);
    let mut own = operation.clone();
    own["servers"] = servers("/v2");
    assert_eq!(changes(plain.clone(), with(json!({ "servers": servers("/v1"), "get": own }))), moved);
    assert_eq!(changes(plain, with(json!({ "servers": servers("/v1"), "get": operation }))), NONE);
}

#[test]
fn clients_send_the_responses_of_webhooks() {
    let webhook = |responses: Value| document(json!({}), json!({ "webhooks": { "w": { "post": { "responses": responses } } } }));
    let signed =
        |is_required: bool| json!({ "description": "", "headers": { "x-sig": { "required": is_required, "schema": {} } } });
    let old = webhook(json!({ "200": { "description": "" }, "410": { "description": "" } }));
    let new = webhook(json!({ "200": signed(true), "204": { "description": "" } }));
    let optional = webhook(json!({ "200": signed(false), "410": { "description": "" } }));

    let impacts = |old: &Value, new: &Value| {
        let mut found = changes(old.clone(), new.clone());
        found.sort_by(|(_, text), (_, other)| text.cmp(other));
        found.into_iter().map(|(impact, _)| impact).collect::<Vec<_>>()
    };
    // The header of 200, and the responses 204 and 410.
    assert_eq!(impacts(&old, &new), [Breaking, NonBreaking, Breaking], "{:?}", changes(old.clone(), new.clone()));
    assert_eq!(impacts(&new, &old), [NonBreaking, Breaking, NonBreaking], "{:?}", changes(new, old.clone()));
    assert_eq!(impacts(&old, &optional), [NonBreaking]);
}

#[test]
fn compares_webhooks_and_callbacks_in_reverse() {
    let object = |names: &[&str], required: &[&str]| {
        let properties: serde_json::Map<_, _> =
            names.iter().map(|name| ((*name).to_owned(), json!({ "type": "string" }))).collect();
        json!({ "type": "object", "properties": properties, "required": required })
    };
    let webhook = |schema: Value| {
        document(operation(json!({}), json!({})), json!({ "webhooks": { "w": { "post": operation(schema, json!({})) } } }))
    };
    let callback = |schema: Value| {
        let mut subscribe = operation(json!({}), json!({}));
        subscribe["callbacks"] = json!({ "done": { "{$request.body#/url}": { "post": operation(schema, json!({})) } } });
        document(subscribe, json!({}))
    };
    let documents: [(&dyn Fn(Value) -> Value, &str); 2] =
        [(&webhook, "webhook POST w"), (&callback, "POST /x callback done POST {$request.body#/url}")];
    for (with, place) in documents {
        let of = |names: &[&str], required: &[&str]| with(object(names, required));
        let text = |text: &str| format!("{place} body.{text}");
        assert_eq!(changes(of(&["a"], &[]), of(&["a", "b"], &["b"])), [non_breaking(&text("b: the property was added"))]);
        assert_eq!(changes(of(&["a", "b"], &[]), of(&["a"], &[])), [breaking(&text("b: the property was removed"))]);
        assert_eq!(changes(of(&["a"], &["a"]), of(&["a"], &[])), [breaking(&text("a: it is no longer required"))]);
        assert_eq!(
            changes(of(&["a"], &[]), document(operation(json!({}), json!({})), json!({}))),
            [breaking(&format!("{place}: the operation was removed"))]
        );
    }
}

#[test]
fn compares_headers_like_parameters() {
    let with =
        |header: Value| document(json!({ "responses": { "200": { "description": "", "headers": { "X": header } } } }), json!({}));
    let content = |kind: &str| with(json!({ "content": { "application/json": { "schema": { "type": kind } } } }));
    assert_eq!(
        changes(content("string"), content("integer")),
        [breaking("POST /x 200 x: the type is now integer instead of string")]
    );
    let exploded = |explode: bool| with(json!({ "explode": explode, "schema": { "type": "object" } }));
    assert_eq!(changes(exploded(false), exploded(true)), [breaking("POST /x 200 x: explode is now true")]);
}

#[test]
fn compares_empty_parameters_and_encodings_of_forms() {
    let parameter = |can_be_empty: bool| {
        with_parameter(json!({ "in": "query", "schema": { "type": "string" }, "allowEmptyValue": can_be_empty }), json!({}))
    };
    assert_eq!(changes(parameter(true), parameter(false)), [breaking("POST /x query.q: it can no longer be empty")]);
    assert_eq!(changes(parameter(false), parameter(true)), [non_breaking("POST /x query.q: it can now be empty")]);

    let form = |encoding: Value| {
        let content = json!({ "multipart/form-data": { "schema": { "type": "object" }, "encoding": { "file": encoding } } });
        document(json!({ "requestBody": { "content": content }, "responses": {} }), json!({}))
    };
    assert_eq!(
        changes(form(json!({})), form(json!({ "contentType": "image/png" }))),
        [breaking("POST /x body: the encoding of file has changed")]
    );
}

#[test]
fn compares_media_types_without_case_and_charset() {
    let request = |media_type: &str| {
        let content = json!({ media_type: { "schema": { "type": "string" } } });
        document(json!({ "requestBody": { "content": content }, "responses": {} }), json!({}))
    };
    for (old, new) in [
        ("application/json", "Application/JSON"),
        ("application/json", "application/json; charset=utf-8"),
        ("text/csv; charset=utf-8; header=present", "text/csv;header=present"),
    ] {
        assert_eq!(changes(request(old), request(new)), NONE);
    }
    assert_eq!(
        changes(request("application/json"), request("application/*")),
        [non_breaking("POST /x body: the media type application/* was added")]
    );
    assert_eq!(
        changes(request("application/*"), request("application/json")),
        [
            breaking("POST /x body: the media type application/* was removed"),
            non_breaking("POST /x body: the media type application/json was added")
        ]
    );
}

#[test]
fn compares_what_clients_send_for_a_security_scheme() {
    let with = |scheme: Value| {
        let operation = json!({ "security": [{ "s": ["a"] }], "responses": { "204": { "description": "" } } });
        document(operation, json!({ "components": { "securitySchemes": { "s": scheme } } }))
    };
    let flows = |scopes: Value| with(json!({ "type": "oauth2", "flows": { "implicit": { "scopes": scopes } } }));
    assert_eq!(changes(flows(json!({ "a": "A" })), flows(json!({ "a": "Text", "b": "B" }))), NONE);
    let bearer = with(json!({ "type": "http", "scheme": "bearer" }));
    let token = with(json!({ "type": "http", "scheme": "Bearer", "bearerFormat": "JWT" }));
    assert_eq!(changes(bearer.clone(), token), NONE);
    let basic = with(json!({ "type": "http", "scheme": "basic" }));
    assert_eq!(changes(bearer, basic), [breaking("POST /x: the security requirements have changed")]);
}
