//! Schemas that refer to each other or contain themselves.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{body_errors, contract, recursive_schemas, ref_to, response_violations};

#[test]
fn validates_recursive_schemas_at_every_depth() {
    let tree =
        |leaf: Value| json!({ "name": "a", "children": [{ "name": "b", "children": [{ "name": "c", "children": [leaf] }] }] });
    let location = "at 0/children/0/children/0";
    assert_eq!(body_errors(ref_to("Tree"), recursive_schemas(), &tree(json!({ "name": "d" }))), [""; 0]);
    assert_eq!(
        body_errors(ref_to("Tree"), recursive_schemas(), &tree(json!({ "name": 7 }))),
        [format!("children must be a string ({location}/name)")]
    );
    assert_eq!(body_errors(ref_to("Tree"), recursive_schemas(), &tree(json!({}))), [format!("children lacks name ({location})")]);
}

#[test]
fn rejects_undeclared_properties_in_recursive_responses() {
    let host = |event: Value| json!({ "name": "a", "events": [{ "title": "b", "host": { "events": [event] } }] });
    let errors = |event: Value| response_violations(ref_to("Host"), recursive_schemas(), &host(event));
    assert_eq!(errors(json!({ "title": "c", "host": null })), [""; 0]);
    assert_eq!(errors(json!({ "title": "c", "host": { "name": "d" } })), [""; 0]);
    assert_eq!(errors(json!({ "title": 7 })), [r#"body/events/0/host/events/0/title: 7 is not of type "string""#]);
    let event = |event: Value| response_violations(ref_to("Event"), recursive_schemas(), &event);
    assert_eq!(
        event(json!({ "title": "c", "extra": 1 })),
        ["body: Unevaluated properties are not allowed ('extra' was unexpected)"]
    );
    let tree =
        |leaf: Value| response_violations(ref_to("Tree"), recursive_schemas(), &json!({ "name": "a", "children": [leaf] }));
    assert_eq!(tree(json!({ "name": "b" })), [""; 0]);
    assert_eq!(
        tree(json!({ "name": "b", "extra": 1 })),
        ["body/children/0: Additional properties are not allowed ('extra' was unexpected)"]
    );
}

/// `Cat` is all of `Pet`, which is one of `Cat` and `Dog`.
#[test]
fn validates_schemas_that_contain_themselves_directly() {
    let kind = |kind: &str| json!({ "type": "object", "required": ["kind"], "properties": { "kind": { "type": "string", "enum": [kind] } } });
    let pets = json!({
        "Pet": { "oneOf": [ref_to("Cat"), ref_to("Dog")], "discriminator": { "propertyName": "kind" } },
        "Cat": { "allOf": [ref_to("Pet"), kind("cat")] },
        "Dog": { "allOf": [ref_to("Pet"), kind("dog")] },
        "Self": { "allOf": [ref_to("Self"), { "type": "string" }] },
        "Either": { "anyOf": [ref_to("Either"), { "type": "string" }] },
    });
    let errors = |name: &str, value: Value| body_errors(ref_to(name), pets.clone(), &value).len();
    assert_eq!((errors("Pet", json!({ "kind": "cat" })), errors("Cat", json!({ "kind": "cat" }))), (0, 0));
    assert_eq!((errors("Pet", json!({ "kind": "cow" })), errors("Cat", json!({ "kind": "dog" }))), (1, 1));
    assert_eq!((errors("Self", json!("x")), errors("Self", json!(7)), errors("Either", json!("x"))), (0, 1, 0));
    assert_eq!(response_violations(ref_to("Pet"), pets.clone(), &json!({ "kind": "cat" })), [""; 0]);
    assert_eq!(response_violations(ref_to("Pet"), pets.clone(), &json!({ "kind": "cow" })).len(), 1);
}

/// Each `Shape` is all of `Base`, which is one of the shapes.
#[test]
fn validates_many_schemas_that_contain_themselves_directly() {
    let shape = |number: usize| {
        let properties = json!({ format!("p{number}"): { "type": "integer" }, "next": ref_to("Base") });
        let own = json!({ "properties": properties, "required": [format!("p{number}")] });
        (format!("Shape{number}"), json!({ "allOf": [ref_to("Base"), own] }))
    };
    let mut schemas: serde_json::Map<_, _> = (0..30).map(shape).collect();
    let shapes: Vec<Value> = (0..30).map(|number| ref_to(&format!("Shape{number}"))).collect();
    schemas.insert("Base".to_owned(), json!({ "properties": { "id": { "type": "integer" } }, "oneOf": shapes }));
    for name in ["Base", "Shape7"] {
        let violations = |body: Value| response_violations(ref_to(name), schemas.clone().into(), &body);
        assert_eq!(violations(json!({ "id": 1, "p7": 2, "next": { "p3": 1 } })), [""; 0], "{name}");
        assert_eq!(
            violations(json!({ "id": 1, "p7": 2, "extra": 3 })),
            ["body: Unevaluated properties are not allowed ('extra' was unexpected)"],
            "{name}"
        );
    }
}

#[test]
fn nodes_with_the_same_reference_share_a_schema() {
    let response = |schema: Value| json!({ "description": "-", "content": { "application/json": { "schema": schema } } });
    let nullable = json!({ "$ref": "#/components/schemas/Error", "nullable": true });
    let responses = json!({ "400": response(ref_to("Error")), "404": response(ref_to("Error")), "410": response(nullable) });
    let contract = contract(
        json!({ "/a": { "get": { "responses": responses } } }),
        json!({ "schemas": { "Error": { "type": "object", "required": ["code"] } } }),
    );
    let operation = contract.find("GET", "/a").unwrap();
    let schema = |status| operation.response_for(status).unwrap().contents[0].schema.as_ref().unwrap();
    assert!(Arc::ptr_eq(schema(400), schema(404)));
    assert!(!Arc::ptr_eq(schema(400), schema(410)), "one of them allows null");
    assert!(schema(410).errors(&Value::Null).unwrap().is_empty());
    assert!(!schema(404).errors(&Value::Null).unwrap().is_empty());
}

#[test]
fn compiles_many_interdependent_schemas_in_time() {
    let schema = |number: usize| {
        let other =
            |step: usize| json!({ "anyOf": [{ "type": "string" }, ref_to(&format!("S{}", (number * 7 + step * 31) % 300))] });
        let properties: serde_json::Map<_, _> = (0..20).map(|step| (format!("p{step}"), other(step))).collect();
        (format!("S{number}"), json!({ "type": "object", "properties": properties }))
    };
    let schemas: serde_json::Map<_, _> = (0..300).map(schema).collect();
    assert_eq!(response_violations(ref_to("S1"), schemas.clone().into(), &json!({ "p0": { "p1": { "p2": "x" } } })), [""; 0]);
    assert!(!response_violations(ref_to("S1"), schemas.into(), &json!({ "p0": { "p1": { "p2": 7 } } })).is_empty());
}
