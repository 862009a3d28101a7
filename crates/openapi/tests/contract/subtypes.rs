//! Tests with schemas that include others for the same value: subtypes with a discriminator, and cycles.

use boxoffice_openapi::{Direction, Sampler};
use serde_json::{Value, json};

use super::{body_errors, contract, ref_to, response_violations};

/// Returns `Pet` and its subtypes `Cat` and `Dog`, with these additional keywords of `Pet`.
fn pets(added: Value) -> Value {
    let subtype = |property: &str| json!({ "allOf": [ref_to("Pet"), { "type": "object", "required": [property], "properties": { property: { "type": "integer" } } }] });
    let mut pet = json!({ "type": "object", "required": ["kind"], "properties": { "kind": { "type": "string" } } });
    pet.as_object_mut().unwrap().extend(added.as_object().unwrap().clone());
    json!({ "Pet": pet, "Cat": subtype("lives"), "Dog": subtype("tricks") })
}

fn discriminator() -> Value {
    json!({ "propertyName": "kind", "mapping": { "cat": "#/components/schemas/Cat", "dog": "Dog" } })
}

fn branches() -> Value {
    json!([ref_to("Cat"), ref_to("Dog")])
}

/// Returns the samples of a schema, after checking that they are valid.
fn samples(components: &Value, name: &str) -> Vec<Value> {
    let document = contract(json!({}), json!({ "schemas": components })).document;
    let sampler = Sampler::new(&document, &ref_to(name), Direction::Response).unwrap();
    let samples: Vec<Value> = (0..40).map(|seed| sampler.sample(seed).unwrap()).collect();
    for sample in &samples {
        assert_eq!(response_violations(ref_to(name), components.clone(), sample), [""; 0], "{name} {sample}");
    }
    samples
}

#[test]
fn discriminator_of_a_base_selects_the_subtype() {
    let violations = |value: Value| response_violations(ref_to("Pet"), pets(json!({ "discriminator": discriminator() })), &value);
    assert_eq!(violations(json!({ "kind": "cat", "lives": 9 })), [""; 0]);
    assert_eq!(violations(json!({ "kind": "dog", "tricks": 2 })), [""; 0]);
    assert_eq!(violations(json!({ "kind": "fish" })), [""; 0]);
    assert_eq!(violations(json!({ "kind": "cat", "lives": "9" })), ["body/lives: \"9\" is not of type \"integer\""]);
    assert_eq!(violations(json!({ "kind": "cat" })), ["body: \"lives\" is a required property"]);
    assert!(!violations(json!({ "kind": "fish", "lives": 9 })).is_empty());
    // Without a mapping, other names than those of the schemas may be meant.
    let schemas = pets(json!({ "discriminator": { "propertyName": "kind" } }));
    assert_eq!(response_violations(ref_to("Pet"), schemas, &json!({ "kind": "a cat", "lives": 9 })), [""; 0]);
    let found = samples(&pets(json!({ "discriminator": discriminator() })), "Pet");
    assert!(found.iter().all(|pet| pet["kind"] == if pet.get("lives").is_some() { "cat" } else { "dog" }), "{found:?}");
}

#[test]
fn names_of_the_schemas_select_the_subtype_without_a_mapping() {
    let schemas = pets(json!({ "discriminator": { "propertyName": "kind" } }));
    let violations = |value: Value| body_errors(ref_to("Pet"), schemas.clone(), &value);
    assert_eq!(violations(json!({ "kind": "Cat", "lives": 9 })), [""; 0]);
    assert_eq!(violations(json!({ "kind": "Fish" })), [""; 0]);
    assert!(!violations(json!({ "kind": "Cat" })).is_empty());
    assert!(!violations(json!({ "kind": "Dog", "tricks": "2" })).is_empty());
    for name in ["Pet", "Cat", "Dog"] {
        for pet in samples(&schemas, name) {
            let expected = if pet.get("lives").is_some() { "Cat" } else { "Dog" };
            assert!(pet["kind"] == expected && [expected, "Pet"].contains(&name), "{name}: {pet}");
        }
    }
    let document = contract(json!({}), json!({ "schemas": schemas })).document;
    let boundaries = Sampler::new(&document, &ref_to("Pet"), Direction::Request).unwrap().boundaries();
    assert!(boundaries.len() > 2 && boundaries.iter().all(|pet| ["Cat", "Dog"].iter().any(|name| pet["kind"] == *name)));
}

#[test]
fn mapping_of_a_discriminator_decides_between_overlapping_branches() {
    let open = json!({ "type": "object", "properties": { "kind": { "type": "string" }, "age": { "type": "integer" } } });
    let pet = json!({ "oneOf": branches(), "discriminator": discriminator() });
    let schemas = json!({ "Pet": pet, "Cat": open, "Dog": open });
    assert_eq!(response_violations(ref_to("Pet"), schemas, &json!({ "kind": "cat", "age": 1 })), [""; 0]);

    let closed = |property: &str| json!({ "type": "object", "required": [property], "properties": { "kind": {}, property: {} } });
    let schemas = json!({ "Pet": pet, "Cat": closed("lives"), "Dog": closed("tricks") });
    assert!(response_violations(ref_to("Pet"), schemas.clone(), &json!({ "kind": "dog", "tricks": 1 })).is_empty());
    assert!(!response_violations(ref_to("Pet"), schemas, &json!({ "kind": "cat", "tricks": 1 })).is_empty());
}

#[test]
fn subtypes_may_include_the_base_that_they_are_branches_of() {
    let schemas = pets(json!({ "oneOf": branches() }));
    for name in ["Pet", "Cat"] {
        assert_eq!(body_errors(ref_to(name), schemas.clone(), &json!({ "kind": "cat", "lives": 9 })), [""; 0]);
        assert!(!body_errors(ref_to(name), schemas.clone(), &json!({ "kind": "cat", "lives": "9" })).is_empty());
        assert!(!body_errors(ref_to(name), schemas.clone(), &json!({ "lives": 9 })).is_empty());
        samples(&schemas, name);
    }
}

#[test]
fn schemas_that_include_themselves_have_a_warning() {
    let schemas = json!({
        "A": { "type": "object", "properties": { "a": { "type": "integer" } }, "allOf": [ref_to("B")] },
        "B": { "allOf": [ref_to("A"), { "properties": { "b": { "type": "integer" } } }] },
        "C": { "anyOf": [ref_to("C"), { "type": "integer" }] },
    });
    let warnings = contract(json!({}), json!({ "schemas": schemas })).warnings;
    let expected = ["/components/schemas/B/allOf/0", "/components/schemas/C/anyOf/0"];
    for (warning, pointer) in warnings.iter().zip(expected) {
        assert_eq!(*warning, format!("the reference at {pointer} is ignored: it leads back to the schema that contains it"));
    }
    assert_eq!(response_violations(ref_to("A"), schemas.clone(), &json!({ "a": 1, "b": 2 })), [""; 0]);
    assert_eq!(response_violations(ref_to("A"), schemas.clone(), &json!({ "a": 1, "b": "2" })).len(), 1);
    assert_eq!(response_violations(ref_to("C"), schemas.clone(), &json!("x")).len(), 1);
    samples(&schemas, "A");
    samples(&schemas, "C");
}

#[test]
fn value_of_several_branches_is_one_violation() {
    let branch = |property: &str| json!({ "type": "object", "properties": { "a": {}, property: {} } });
    let schema = json!({ "oneOf": [branch("b"), branch("c")] });
    let violations = response_violations(schema, json!({}), &json!({ "a": 1 }));
    assert_eq!(violations.len(), 1, "{violations:?}");
    assert!(violations[0].contains("more than one of the schemas"), "{violations:?}");
}
