//! Properties of schemas with branches: `allOf`, `anyOf` and `oneOf`.

use serde_json::{Value, json};

use super::{body_errors, ref_to, response_violations};

#[test]
fn declared_properties_are_declared_in_every_branch() {
    let node = |name: &str, other: &str| json!({ "type": "object", "required": [name], "properties": { name: { "type": "integer" }, other: ref_to(other) } });
    let schemas = || json!({ "Node": node("v", "Node"), "Leaf": node("w", "Leaf") });
    let violations = |schema: Value, body: Value| response_violations(schema, schemas(), &body);
    let id = json!({ "type": "object", "properties": { "id": { "type": "integer" } } });
    let either = json!({ "oneOf": [ref_to("Node"), ref_to("Leaf")] });
    let with = |keyword: &str, branches: Value| json!({ "properties": { "id": { "type": "integer" } }, keyword: branches });
    for schema in [
        with("oneOf", either["oneOf"].clone()),
        with("anyOf", either["oneOf"].clone()),
        json!({ "allOf": [id, either] }),
        json!({ "allOf": [id, { "allOf": [either] }] }),
        json!({ "properties": { "id": {} }, "if": { "required": ["v"] }, "then": ref_to("Node") }),
        json!({ "properties": { "id": {} }, "dependentSchemas": { "id": ref_to("Node") } }),
        json!({ "allOf": [id], "if": { "required": ["v"] }, "then": ref_to("Node") }),
    ] {
        assert_eq!(violations(schema.clone(), json!({ "id": 1, "v": 2 })), [""; 0], "{schema}");
        assert_eq!(
            violations(schema.clone(), json!({ "id": 1, "v": 2, "extra": 3 })),
            ["body: Unevaluated properties are not allowed ('extra' was unexpected)"],
            "{schema}"
        );
    }
    let both = json!({ "allOf": [
        { "properties": { "a": { "type": "integer" }, "c": { "properties": { "d": {} } } } },
        { "properties": { "b": { "type": "integer" } } },
    ] });
    assert_eq!(violations(both.clone(), json!({ "a": "x", "b": 1 })), [r#"body/a: "x" is not of type "integer""#]);
    assert_eq!(violations(both, json!({ "b": "x", "extra": 1 })), [r#"body/b: "x" is not of type "integer""#]);
    let required = json!({ "properties": { "a": {} }, "required": ["b"] });
    assert_eq!(
        violations(required, json!({ "a": 1, "b": 2 })),
        ["body: Additional properties are not allowed ('b' was unexpected)"]
    );
}

#[test]
fn branch_of_free_form_allows_any_property() {
    let closed = json!({ "type": "object", "properties": { "a": {} } });
    for keyword in ["anyOf", "oneOf"] {
        let violations = |branches: Value, body: Value| response_violations(json!({ keyword: branches }), json!({}), &body);
        let free = json!([{ "type": "object" }, { "type": "string" }]);
        assert_eq!(violations(free.clone(), json!({ "a": 1 })), [""; 0]);
        assert_eq!(violations(free, json!("text")), [""; 0]);
        assert_eq!(
            violations(json!([closed, { "type": "string" }]), json!({ "a": 1, "b": 2 })),
            ["body: Unevaluated properties are not allowed ('b' was unexpected)"]
        );
    }
    let extended = json!({ "allOf": [closed, { "type": "object" }] });
    assert_eq!(
        response_violations(extended, json!({}), &json!({ "b": 2 })),
        ["body: Unevaluated properties are not allowed ('b' was unexpected)"]
    );
}

#[test]
fn branch_of_free_form_declares_nothing_beside_declared_properties() {
    let declared = json!({ "properties": { "a": {} } });
    let free = json!({ "anyOf": [{ "type": "object" }, { "type": "string" }] });
    let nested = json!({ "properties": { "a": {} }, "allOf": [free] });
    let closed = json!({ "unevaluatedProperties": false, "anyOf": free["anyOf"] });
    for schema in [json!({ "allOf": [declared, free] }), nested, closed.clone()] {
        assert_eq!(
            response_violations(schema.clone(), json!({}), &json!({ "b": 2 })),
            ["body: Unevaluated properties are not allowed ('b' was unexpected)"],
            "{schema}"
        );
    }
    assert_eq!(body_errors(closed, json!({}), &json!({ "b": 2 })), ["b is not among the properties of the body"]);
}

#[test]
fn names_the_wrong_property_of_a_branch() {
    let pet = |kind: &str, property: &str| {
        let properties = json!({ "kind": { "enum": [kind] }, property: { "type": "integer" }, "friend": ref_to("Pet") });
        json!({ "type": "object", "required": ["kind", property], "properties": properties })
    };
    let schemas =
        || json!({ "Pet": { "oneOf": [ref_to("Cat"), ref_to("Dog")] }, "Cat": pet("cat", "lives"), "Dog": pet("dog", "barks") });
    let violations = |schema: Value, body: Value| response_violations(schema, schemas(), &body);
    let inline = json!({ "oneOf": [pet("cat", "lives"), pet("dog", "barks")] });
    for schema in [ref_to("Pet"), inline.clone(), json!({ "nullable": true, "anyOf": inline["oneOf"] })] {
        assert_eq!(
            violations(schema.clone(), json!({ "kind": "cat", "lives": "nine" })),
            [r#"body/lives: "nine" is not of type "integer""#],
            "{schema}"
        );
        assert_eq!(violations(schema, json!({ "kind": "cow" })), [r#"body/kind: "cow" is not one of "cat" or "dog""#]);
    }
    let friend = json!({ "kind": "cat", "lives": 9, "friend": { "kind": "dog", "barks": "x" } });
    assert_eq!(violations(ref_to("Pet"), friend), [r#"body/friend/barks: "x" is not of type "integer""#]);
    let nullable = json!({ "type": "object", "nullable": true, "properties": { "a": { "type": "string", "enum": ["x"], "nullable": true } } });
    assert_eq!(violations(nullable.clone(), json!(null)), [""; 0]);
    assert_eq!(violations(nullable.clone(), json!({ "a": null })), [""; 0]);
    assert_eq!(violations(nullable.clone(), json!({ "a": "y" })), [r#"body/a: "y" is not one of "x" or null"#]);
    assert_eq!(
        body_errors(json!({ "properties": { "a": nullable } }), json!({}), &json!({ "a": { "a": 7 } })),
        ["a must be a string (at a)"]
    );
    assert!(violations(json!({ "oneOf": [{ "type": "string" }, { "type": "integer" }] }), json!(true))[0].starts_with("body: "));
}

#[test]
fn unknown_discriminator_lists_the_values_of_all_branches() {
    let book = |kind: &str, name: &str| {
        let properties =
            json!({ "kind": { "enum": [kind] }, "cover": { "enum": [format!("{kind} cover")] }, name: { "type": "number" } });
        json!({ "type": "object", "required": ["kind", name], "properties": properties })
    };
    let schemas = json!({ "Ebook": book("ebook", "size"), "Paper": book("paper", "weight") });
    let branches = || json!([ref_to("Ebook"), ref_to("Paper")]);
    for schema in [
        json!({ "oneOf": branches() }),
        json!({ "anyOf": branches() }),
        json!({ "oneOf": branches(), "discriminator": { "propertyName": "kind", "mapping": { "ebook": "Ebook", "paper": "Paper" } } }),
    ] {
        let errors = |body: Value| body_errors(schema.clone(), schemas.clone(), &body);
        assert_eq!(errors(json!({ "kind": "audio", "size": 1 })), ["kind must be one of: ebook, paper"], "{schema}");
        assert_eq!(errors(json!({ "kind": "paper", "size": 1 })), ["-weight"], "{schema}");
        let cover = errors(json!({ "kind": "paper", "weight": 1, "cover": "none" }));
        assert_eq!(cover, ["cover must be one of: paper cover"], "{schema}");
    }
}

#[test]
fn undeclared_property_is_named() {
    let closed = json!({ "type": "object", "properties": { "a": {} }, "additionalProperties": false });
    let schema = json!({ "type": "object", "properties": {
        "filter": closed, "children": { "type": "array", "items": closed }, "never": false,
    } });
    for (body, expected) in [
        (json!({ "filter": { "b": 1, "c": 2 } }), "filter must not have b, c"),
        (json!({ "children": [{ "b": 1 }] }), "children must not have b (at 0)"),
        (json!({ "never": 1 }), "never is not allowed"),
    ] {
        assert_eq!(body_errors(schema.clone(), json!({}), &body), [expected]);
    }
}
