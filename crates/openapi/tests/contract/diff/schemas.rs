//! Schemas and their keywords.

use boxoffice_openapi::diff::Impact::{Breaking, NonBreaking};
use serde_json::{Value, json};

use super::{NONE, breaking, changes, document, non_breaking, operation, request_changes, response_changes, with_parameter};

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
