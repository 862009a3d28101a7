//! Tests of the comparison of two documents, with small documents of other APIs.

use std::fs;

use boxoffice_openapi::Contract;
use boxoffice_openapi::diff::Impact::{self, Breaking, NonBreaking};
use boxoffice_openapi::diff::diff;
use serde_json::{Value, json};

/// Returns a document with one operation, `POST /x`, and these members of the whole document.
fn document(operation: Value, members: Value) -> Value {
    let mut document = json!({ "openapi": "3.1.0", "paths": { "/x": { "post": operation } } });
    document.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    document
}

/// Returns an operation with this schema of its request and response.
fn operation(request: Value, response: Value) -> Value {
    let body = |schema: Value| json!({ "description": "", "content": { "application/json": { "schema": schema } } });
    json!({ "requestBody": body(request), "responses": { "200": body(response) } })
}

/// Returns the changes between two documents, without prose, as `place: text`.
fn changes(old: Value, new: Value) -> Vec<(Impact, String)> {
    let [old, new] = [old, new].map(|document| Contract::new(document).unwrap().document);
    let changes = diff(&old, &new).into_iter().filter(|change| change.impact != Impact::Prose);
    changes.map(|change| (change.impact, format!("{}: {}", change.place, change.text))).collect()
}

/// Returns the changes if only the schema of a request changes.
fn request_changes(old: Value, new: Value, schemas: Value) -> Vec<(Impact, String)> {
    let [old, new] =
        [old, new].map(|schema| document(operation(schema, json!({})), json!({ "components": { "schemas": schemas } })));
    changes(old, new)
}

/// Returns the changes if only the schema of a response changes.
fn response_changes(old: Value, new: Value, schemas: Value) -> Vec<(Impact, String)> {
    let [old, new] =
        [old, new].map(|schema| document(operation(json!({}), schema), json!({ "components": { "schemas": schemas } })));
    changes(old, new)
}

fn breaking(text: &str) -> (Impact, String) {
    (Breaking, text.to_owned())
}

fn non_breaking(text: &str) -> (Impact, String) {
    (NonBreaking, text.to_owned())
}

const NONE: [(Impact, String); 0] = [];

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
fn reports_required_names_without_a_property() {
    let free = json!({ "type": "object" });
    let strict = json!({ "type": "object", "required": ["z"] });
    let nothing = || json!({});
    assert_eq!(request_changes(free.clone(), strict.clone(), nothing()), [breaking("POST /x body.z: it is now required")]);
    assert_eq!(
        request_changes(strict.clone(), free.clone(), nothing()),
        [non_breaking("POST /x body.z: it is no longer required")]
    );
    assert_eq!(response_changes(strict.clone(), free, nothing()), [breaking("POST /x 200.z: it is no longer required")]);

    // The property is declared in another part.
    let base = json!({ "type": "object", "properties": { "z": { "type": "string" } } });
    let parts = |part: &Value| json!({ "allOf": [base, part] });
    assert_eq!(
        request_changes(parts(&json!({ "type": "object" })), parts(&strict), nothing()),
        [breaking("POST /x body.z: it is now required")]
    );

    // A declaration of a name that was required already requires nothing more.
    let declared = json!({ "type": "object", "required": ["z"], "properties": { "z": { "type": "string" } } });
    assert_eq!(request_changes(strict, declared, nothing()), [non_breaking("POST /x body.z: the property was added")]);
}

#[test]
fn compares_additional_properties_by_what_they_allow() {
    let object = |additional: Value| json!({ "type": "object", "additionalProperties": additional });
    let ascending = [json!(false), json!({ "type": "string" }), json!(true)];
    for (narrow, wide) in [(0, 1), (0, 2), (1, 2)] {
        let (narrow, wide) = (object(ascending[narrow].clone()), object(ascending[wide].clone()));
        let text = |place: &str| format!("{place}: additionalProperties has changed");
        let (request, response) = (text("POST /x body"), text("POST /x 200"));
        let nothing = || json!({});
        assert_eq!(request_changes(narrow.clone(), wide.clone(), nothing()), [non_breaking(&request)]);
        assert_eq!(request_changes(wide.clone(), narrow.clone(), nothing()), [breaking(&request)]);
        // Clients ignore properties that they don't know, but rely on the schema of those in a map.
        let widened = if narrow["additionalProperties"] == false { non_breaking(&response) } else { breaking(&response) };
        assert_eq!(response_changes(narrow.clone(), wide.clone(), nothing()), [widened]);
        assert_eq!(response_changes(wide, narrow, nothing()), [non_breaking(&response)]);
    }
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

/// Returns a document with a parameter that has these members besides its name.
fn with_parameter(members: Value, schemas: Value) -> Value {
    let mut parameter = json!({ "name": "q" });
    parameter.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    let operation = json!({ "parameters": [parameter], "responses": { "204": { "description": "" } } });
    document(operation, json!({ "components": { "schemas": schemas } }))
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
fn skips_properties_that_are_not_sent() {
    let object = |name: &str, property: Value, required: Value| {
        let properties = json!({ "a": { "type": "string" }, name: property });
        json!({ "type": "object", "properties": properties, "required": required })
    };
    let changes_of = |old: Value, new: Value| {
        let document_of = |schema: Value| document(operation(schema.clone(), schema), json!({}));
        changes(document_of(old), document_of(new))
    };
    let plain = json!({ "type": "object", "properties": { "a": { "type": "string" } } });
    let read_only = |values: Value| json!({ "type": "string", "readOnly": true, "enum": values });
    let write_only = |values: Value| json!({ "type": "string", "writeOnly": true, "enum": values });

    // Compared in responses only.
    assert_eq!(
        changes_of(plain.clone(), object("id", read_only(json!(["x"])), json!(["id"]))),
        [non_breaking("POST /x 200.id: the property was added")]
    );
    let short = object("id", read_only(json!(["x"])), json!([]));
    let long = object("id", read_only(json!(["x", "y"])), json!(["id"]));
    assert_eq!(
        changes_of(long.clone(), short.clone()),
        [breaking("POST /x 200.id: it is no longer required"), non_breaking("POST /x 200.id: the value y was removed"),]
    );
    // Compared in requests only.
    let short = object("secret", write_only(json!(["x"])), json!(["secret"]));
    let long = object("secret", write_only(json!(["x", "y"])), json!([]));
    assert_eq!(
        changes_of(short, long.clone()),
        [
            non_breaking("POST /x body.secret: it is no longer required"),
            non_breaking("POST /x body.secret: the value y was added"),
        ]
    );
    assert_eq!(changes_of(long, plain), [breaking("POST /x body.secret: the property was removed")]);
}

#[test]
fn pairs_branches_by_the_names_of_components() {
    let schema = |name: &str| json!({ "type": "object", "properties": { name: { "type": "string" } }, "required": [name] });
    let schemas = json!({ "Cat": schema("meows"), "Dog": schema("barks"), "Bird": schema("sings") });
    let branches = |keyword: &str, names: &[&str]| {
        let all = names.iter().map(|name| json!({ "$ref": format!("#/components/schemas/{name}") }));
        json!({ keyword: all.collect::<Vec<_>>() })
    };
    for keyword in ["oneOf", "anyOf"] {
        let two = branches(keyword, &["Cat", "Dog"]);
        let swapped = branches(keyword, &["Dog", "Cat"]);
        let three = branches(keyword, &["Bird", "Cat", "Dog"]);
        let text = |place: &str, verb: &str| format!("{place}: the branch Bird of {keyword} was {verb}");
        let (added, removed) = (text("POST /x body", "added"), text("POST /x body", "removed"));
        assert_eq!(request_changes(two.clone(), swapped.clone(), schemas.clone()), NONE);
        assert_eq!(request_changes(swapped.clone(), three.clone(), schemas.clone()), [non_breaking(&added)]);
        assert_eq!(request_changes(three.clone(), swapped.clone(), schemas.clone()), [breaking(&removed)]);
        let (added, removed) = (text("POST /x 200", "added"), text("POST /x 200", "removed"));
        assert_eq!(response_changes(two.clone(), three.clone(), schemas.clone()), [breaking(&added)]);
        assert_eq!(response_changes(three, two, schemas.clone()), [non_breaking(&removed)]);
    }
    let parts = |names: &[&str]| branches("allOf", names);
    assert_eq!(
        request_changes(parts(&["Cat", "Dog"]), parts(&["Bird", "Dog", "Cat"]), schemas.clone()),
        [breaking("POST /x body.sings: the property was added")]
    );

    // Without names, equal branches are paired, then the others in order.
    let branch = |kind: &&str| json!({ "type": kind, "format": "any" });
    let inline = |kinds: &[&str]| json!({ "oneOf": kinds.iter().map(branch).collect::<Vec<_>>() });
    let changes = request_changes(inline(&["string", "integer"]), inline(&["boolean", "number", "string"]), json!({}));
    let expected = [
        breaking("POST /x body|0: the type is now boolean instead of integer"),
        non_breaking("POST /x body: a branch of oneOf was added"),
    ];
    assert_eq!(changes, expected);
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

#[test]
fn parts_of_all_of_are_compared_as_one_schema() {
    let text = || json!({ "type": "string" });
    let whole = json!({ "type": "object", "required": ["id"], "properties": { "id": text(), "name": text() } });
    let base = json!({ "type": "object", "required": ["id"], "properties": { "id": text() } });
    let schemas = || json!({ "Base": base });
    let extended = json!({ "allOf": [{ "$ref": "#/components/schemas/Base" }], "properties": { "name": text() } });
    let nested = json!({ "allOf": [{ "allOf": [base] }, { "properties": { "name": text() } }] });
    for parts in [&extended, &nested] {
        for changes_of in [request_changes, response_changes] {
            assert_eq!(changes_of(whole.clone(), parts.clone(), schemas()), NONE);
            assert_eq!(changes_of(parts.clone(), whole.clone(), schemas()), NONE);
        }
    }
    assert_eq!(
        response_changes(json!({ "$ref": "#/components/schemas/Base" }), extended, schemas()),
        [non_breaking("POST /x 200.name: the property was added")]
    );

    // A part may declare a property again.
    let restricted = |id: Value| json!({ "allOf": [base, { "properties": { "id": id, "name": text() } }] });
    let plain = restricted(text());
    let described = restricted(json!({ "type": "string", "description": "The number." }));
    assert_eq!(response_changes(plain.clone(), described, json!({})), NONE);
    let short = restricted(json!({ "type": "string", "maxLength": 3 }));
    assert_eq!(request_changes(plain, short, json!({})), [breaking("POST /x body.id: maxLength is now 3")]);

    // The declarations of several parts apply together.
    let base = |kind: &str| json!({ "type": "object", "properties": { "size": { "type": kind } } });
    let parts = |kind: &str, part: Value| json!({ "allOf": [base(kind)], "properties": { "size": part } });
    let minimum = || json!({ "minimum": 1 });
    let changed = [breaking("POST /x body.size: the type is now string instead of integer")];
    assert_eq!(request_changes(parts("integer", minimum()), parts("string", minimum()), json!({})), changed);
    let whole = |size: Value| json!({ "type": "object", "properties": { "size": size } });
    for (part, size) in [
        (minimum(), json!({ "type": "integer", "minimum": 1 })),
        (json!({ "type": "number" }), json!({ "type": "integer" })),
        (json!({ "enum": [1, 2] }), json!({ "type": "integer", "enum": [1, 2] })),
    ] {
        for changes_of in [request_changes, response_changes] {
            assert_eq!(changes_of(parts("integer", part.clone()), whole(size.clone()), json!({})), NONE, "{part}");
            assert_eq!(changes_of(whole(size.clone()), parts("integer", part.clone()), json!({})), NONE, "{part}");
        }
    }
    let limits =
        |limit: u64| json!({ "allOf": [{ "type": "string", "maxLength": 9 }, { "maxLength": limit, "enum": ["a", "b"] }] });
    let one = json!({ "type": "string", "maxLength": 5, "enum": ["a", "b"] });
    assert_eq!(request_changes(limits(5), one.clone(), json!({})), NONE);
    assert_eq!(request_changes(one, limits(4), json!({})), [breaking("POST /x body: maxLength is now 4")]);
    let lists = |list: Value| json!({ "allOf": [{ "enum": ["a", "b"] }, { "enum": list }] });
    assert_eq!(
        request_changes(json!({ "enum": ["a", "b"] }), lists(json!(["b", "c"])), json!({})),
        [breaking("POST /x body: the value a was removed")]
    );

    // The items of several parts, too.
    let items = |limit: u64| json!({ "allOf": [{ "type": "array", "items": text() }, { "items": { "maxLength": limit } }] });
    let one = json!({ "type": "array", "items": { "type": "string", "maxLength": 5 } });
    for changes_of in [request_changes, response_changes] {
        assert_eq!(changes_of(items(5), one.clone(), json!({})), NONE);
        assert_eq!(changes_of(one.clone(), items(5), json!({})), NONE);
    }
    assert_eq!(request_changes(items(5), items(4), json!({})), [breaking("POST /x body[]: maxLength is now 4")]);
    let none = json!({ "allOf": [one.clone(), { "items": false }] });
    assert_eq!(request_changes(one, none, json!({})), [breaking("POST /x body: items has changed")]);

    // A part with another value of the same keyword remains a part.
    let with = |part: Value| json!({ "pattern": "^a", "allOf": [part, { "maxLength": 3 }] });
    assert_eq!(
        request_changes(with(json!({ "pattern": "b$" })), with(json!({ "pattern": "c$" })), json!({})),
        [breaking("POST /x body|0: pattern has changed")]
    );
    // A schema may be a part of itself.
    let recursive = |kind: &str| json!({ "A": { "type": kind, "allOf": [{ "$ref": "#/components/schemas/A" }] } });
    let [old, new] = ["string", "integer"].map(|kind| {
        let schema = json!({ "$ref": "#/components/schemas/A" });
        document(operation(schema, json!({})), json!({ "components": { "schemas": recursive(kind) } }))
    });
    assert_eq!(changes(old, new), [breaking("A: the type is now integer instead of string")]);
}

#[test]
fn compares_bounds_by_what_they_exclude() {
    let same = [
        (json!({ "type": "string" }), json!({ "type": "string", "minLength": 0 })),
        (json!({ "type": "array" }), json!({ "type": "array", "minItems": 0 })),
        (json!({ "minimum": 3, "exclusiveMinimum": 3 }), json!({ "exclusiveMinimum": 3 })),
        (json!({ "maximum": 3, "exclusiveMaximum": true }), json!({ "exclusiveMaximum": 3 })),
    ];
    for (one, other) in same {
        assert_eq!(request_changes(one.clone(), other.clone(), json!({})), NONE, "{one} {other}");
        assert_eq!(request_changes(other, one, json!({})), NONE);
    }
    let wider_and_narrower = [
        (json!({ "exclusiveMinimum": 3 }), json!({ "exclusiveMinimum": 5 }), "exclusiveMinimum is now"),
        (json!({ "exclusiveMaximum": 5 }), json!({ "exclusiveMaximum": 3 }), "exclusiveMaximum is now"),
        (json!({ "minimum": 3 }), json!({ "exclusiveMinimum": 3 }), "minimum is now"),
        (json!({ "multipleOf": 5 }), json!({ "multipleOf": 10 }), "multipleOf has changed"),
        (json!({ "minLength": 1 }), json!({ "minLength": 2 }), "minLength is now"),
    ];
    for (wider, narrower, text) in wider_and_narrower {
        for (old, new, impact) in [(&wider, &narrower, Breaking), (&narrower, &wider, NonBreaking)] {
            let changes = request_changes(old.clone(), new.clone(), json!({}));
            assert!(changes.iter().all(|change| change.0 == impact), "{changes:?}");
            assert!(changes.iter().any(|(_, change)| change.contains(text)), "{changes:?}");
        }
    }
}

#[test]
fn compares_types_values_and_alternatives_by_what_they_allow() {
    let same = [
        (json!({ "type": ["string", "integer"] }), json!({ "type": ["integer", "string"] })),
        (json!({ "enum": ["x", "y"] }), json!({ "oneOf": [{ "const": "x" }, { "type": "string", "const": "y" }] })),
        (json!({ "type": "string" }), json!({ "type": "string", "format": "password" })),
    ];
    for (one, other) in same {
        assert_eq!(request_changes(one.clone(), other.clone(), json!({})), NONE, "{one} {other}");
    }
    let object = json!({ "type": "object", "properties": { "a": { "type": "string" } } });
    let wider_and_narrower = [
        (json!({ "type": ["string", "integer"] }), json!({ "type": "string" })),
        (json!({ "type": ["string", "number"] }), json!({ "type": "integer" })),
        (json!({ "type": "string" }), json!({ "const": "x" })),
        (json!({ "oneOf": [{ "type": "array" }, object] }), object),
    ];
    for (wider, narrower) in wider_and_narrower {
        for (old, new, impact) in [(&wider, &narrower, Breaking), (&narrower, &wider, NonBreaking)] {
            let changes = request_changes(old.clone(), new.clone(), json!({}));
            assert_eq!(changes.iter().map(|change| change.0).collect::<Vec<_>>(), [impact], "{changes:?}");
        }
    }
    let changes = request_changes(json!({ "enum": [1] }), json!({ "enum": ["1"] }), json!({}));
    assert!(changes.contains(&breaking("POST /x body: the value 1 was removed")), "{changes:?}");
}

#[test]
fn null_in_a_list_without_a_type_is_compared() {
    let with_null = || json!({ "enum": ["a", null] });
    let without = || json!({ "enum": ["a"] });
    let text = |place: &str, can: &str| format!("{place}: it can {can} be null");
    let (now, no_longer) = (text("POST /x body", "now"), text("POST /x body", "no longer"));
    assert_eq!(request_changes(without(), with_null(), json!({})), [non_breaking(&now)]);
    assert_eq!(request_changes(with_null(), without(), json!({})), [breaking(&no_longer)]);
    let (now, no_longer) = (text("POST /x 200", "now"), text("POST /x 200", "no longer"));
    assert_eq!(response_changes(without(), with_null(), json!({})), [breaking(&now)]);
    assert_eq!(response_changes(with_null(), without(), json!({})), [non_breaking(&no_longer)]);
    for same in
        [json!({ "type": ["string", "null"], "enum": ["a", null] }), json!({ "oneOf": [{ "const": "a" }, { "type": "null" }] })]
    {
        assert_eq!(request_changes(with_null(), same.clone(), json!({})), NONE, "{same}");
        assert_eq!(request_changes(same, with_null(), json!({})), NONE);
    }
}

#[test]
fn another_notation_of_content_or_a_flag_is_no_change() {
    let old = |schema: Value| {
        let mut old = document(operation(schema, json!({})), json!({}));
        old["openapi"] = json!("3.0.3");
        old
    };
    for (format, keywords) in [
        ("byte", json!({ "type": "string", "contentEncoding": "base64" })),
        ("binary", json!({ "type": "string", "contentMediaType": "application/octet-stream" })),
    ] {
        let (old, new) =
            (old(json!({ "type": "string", "format": format })), document(operation(keywords, json!({})), json!({})));
        assert_eq!(changes(old.clone(), new.clone()), NONE, "{format}");
        assert_eq!(changes(new, old), NONE);
    }

    let operation_with = |deprecated: Option<bool>| {
        let mut operation = operation(json!({}), json!({}));
        operation.as_object_mut().unwrap().extend(deprecated.map(|flag| ("deprecated".to_owned(), json!(flag))));
        document(operation, json!({}))
    };
    assert_eq!(changes(operation_with(None), operation_with(Some(false))), NONE);
    assert_eq!(changes(operation_with(None), operation_with(Some(true))), [non_breaking("POST /x: it is now deprecated")]);
    let parameter = |flag: bool| with_parameter(json!({ "in": "query", "schema": {}, "deprecated": flag }), json!({}));
    assert_eq!(changes(parameter(false), parameter(true)), [non_breaking("POST /x query.q: it is now deprecated")]);
    assert_eq!(changes(parameter(true), parameter(false)), [non_breaking("POST /x query.q: it is no longer deprecated")]);
}

#[test]
fn compares_excluded_properties() {
    let object = |properties: Value| json!({ "type": "object", "properties": properties });
    let (open, excluded) = (|| object(json!({ "a": true })), || object(json!({ "a": false })));
    let (now, no_longer) = ("POST /x body.a: the property is now excluded", "POST /x body.a: the property is no longer excluded");
    for old in [open(), object(json!({}))] {
        assert_eq!(request_changes(old.clone(), excluded(), json!({})), [breaking(now)]);
        assert_eq!(request_changes(excluded(), old, json!({})), [non_breaking(no_longer)]);
    }
    assert_eq!(request_changes(excluded(), excluded(), json!({})), NONE);
    let text = "POST /x 200.a: the property is now excluded";
    assert_eq!(response_changes(object(json!({})), excluded(), json!({})), [non_breaking(text)]);
    assert_eq!(response_changes(open(), excluded(), json!({})), [breaking(text)]);
}

#[test]
fn compares_every_keyword() {
    let list = |members: Value| {
        let mut schema = json!({ "type": "array" });
        schema.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        schema
    };
    let restrictions = [
        json!({ "contains": { "const": "x" } }),
        json!({ "dependentRequired": { "a": ["b"] } }),
        json!({ "propertyNames": { "pattern": "^a" } }),
        json!({ "unevaluatedProperties": false }),
        json!({ "prefixItems": [{ "type": "string" }] }),
    ];
    for restriction in restrictions {
        let text = format!("POST /x body: {} has changed", restriction.as_object().unwrap().keys().next().unwrap());
        assert_eq!(request_changes(list(json!({})), list(restriction.clone()), json!({})), [breaking(&text)]);
        assert_eq!(request_changes(list(restriction), list(json!({})), json!({})), [non_breaking(&text)]);
    }
    let tuple = |kind: &str| list(json!({ "prefixItems": [{ "type": "string" }, { "type": kind }] }));
    assert_eq!(
        response_changes(tuple("integer"), tuple("string"), json!({})),
        [breaking("POST /x 200 prefixItems: the type is now string instead of integer")]
    );
    let patterns =
        |pattern: &str, text: &str| json!({ "type": "object", "patternProperties": { pattern: { "description": text } } });
    assert_eq!(response_changes(patterns("^a", "one"), patterns("^a", "another"), json!({})), NONE);
    assert_eq!(
        response_changes(patterns("^a", ""), patterns("^b", ""), json!({})),
        [breaking("POST /x 200: patternProperties has changed")]
    );
}

#[test]
fn new_mappings_of_discriminators_belong_to_new_branches() {
    let animal = || json!({ "type": "object", "properties": { "kind": { "type": "string" } } });
    let schemas = || json!({ "Cat": animal(), "Dog": animal() });
    let with = |names: &[&str]| {
        let reference = |name: &&str| format!("#/components/schemas/{name}");
        let mapping: serde_json::Map<_, _> = names.iter().map(|name| ((*name).to_owned(), reference(name).into())).collect();
        let branches: Vec<_> = names.iter().map(|name| json!({ "$ref": reference(name) })).collect();
        json!({ "oneOf": branches, "discriminator": { "propertyName": "kind", "mapping": mapping } })
    };
    let (one, two) = (with(&["Cat"]), with(&["Cat", "Dog"]));
    let texts =
        |place: &str| [format!("{place}: the branch Dog of oneOf was added"), format!("{place}: the mapping of Dog was added")];
    let [branch, mapping] = texts("POST /x body");
    assert_eq!(request_changes(one.clone(), two.clone(), schemas()), [non_breaking(&branch), non_breaking(&mapping)]);
    let [branch, mapping] = texts("POST /x 200");
    assert_eq!(response_changes(one, two, schemas()), [breaking(&branch), breaking(&mapping)]);
}

#[test]
fn implied_names_of_discriminators_may_be_written_out() {
    let discriminator = |mapping: Value| match mapping {
        Value::Null => json!({ "propertyName": "kind" }),
        mapping => json!({ "propertyName": "kind", "mapping": mapping }),
    };
    let animal = || json!({ "type": "object", "required": ["kind"], "properties": { "kind": { "type": "string" } } });
    let references = || ["Cat", "Dog"].map(|name| json!({ "$ref": format!("#/components/schemas/{name}") }));
    let branches = |mapping: Value| {
        let schema = json!({ "oneOf": references(), "discriminator": discriminator(mapping) });
        let schemas = json!({ "Cat": animal(), "Dog": animal() });
        document(operation(schema.clone(), schema), json!({ "components": { "schemas": schemas } }))
    };
    let subtypes = |mapping: Value| {
        let mut base = animal();
        base["discriminator"] = discriminator(mapping);
        let subtype = json!({ "allOf": [{ "$ref": "#/components/schemas/Animal" }] });
        let schemas = json!({ "Animal": base, "Cat": subtype, "Dog": subtype });
        let schema = json!({ "$ref": "#/components/schemas/Animal" });
        document(operation(schema.clone(), schema), json!({ "components": { "schemas": schemas } }))
    };
    let full = json!({ "Cat": "#/components/schemas/Cat", "Dog": "#/components/schemas/Dog" });
    let short = json!({ "Cat": "Cat", "Dog": "Dog" });
    let with: [&dyn Fn(Value) -> Value; 2] = [&branches, &subtypes];
    for with in with {
        for mapping in [&full, &short] {
            assert_eq!(changes(with(Value::Null), with(mapping.clone())), NONE, "{mapping}");
            assert_eq!(changes(with(mapping.clone()), with(Value::Null)), NONE, "{mapping}");
        }
        assert_eq!(changes(with(full.clone()), with(short.clone())), NONE);
        let renamed = json!({ "cat": "Cat", "Dog": "Dog" });
        let changes = changes(with(full.clone()), with(renamed));
        assert!(changes.iter().any(|(impact, text)| *impact == Breaking && text.contains("the mapping of Cat was removed")));
    }
}
