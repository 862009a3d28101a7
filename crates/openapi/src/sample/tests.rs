use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Value, json};

use super::{Direction, Sampler};
use crate::charset_policy::AllowedCharacters;
use crate::invalid_values::wrong_values;
use crate::{Contract, METHODS, compile, resolve};

/// The schemas of the contract that stand under a name, and those of all bodies, answers and parameters.
fn schemas_of(document: &Value) -> Vec<(String, Value)> {
    let named = document["components"]["schemas"].as_object().into_iter().flatten();
    let mut schemas: Vec<(String, Value)> = named.map(|(name, schema)| (name.clone(), schema.clone())).collect();
    for (path, item) in document["paths"].as_object().into_iter().flatten() {
        for (method, operation) in METHODS.iter().filter_map(|method| Some((method, item.get(method)?))) {
            let operation = resolve(document, operation);
            let answers = operation["responses"].as_object().into_iter().flatten().map(|(_, answer)| answer);
            let contents = answers.chain([&operation["requestBody"]]).filter_map(|part| part["content"].as_object());
            let bodies = contents.flatten().map(|(_, content)| &content["schema"]);
            let parameters = operation["parameters"].as_array().into_iter().flatten().map(|parameter| &parameter["schema"]);
            schemas.extend(bodies.chain(parameters).map(|schema| (format!("{method} {path}"), schema.clone())));
        }
    }
    // The answers to what goes wrong are the same everywhere.
    let mut seen = BTreeSet::new();
    schemas.retain(|(_, schema)| seen.insert(schema.to_string()));
    schemas
}

fn sampler(schema: &Value) -> Sampler {
    Sampler::new(&json!({}), schema, Direction::Response).unwrap()
}

fn refusal(document: &Value, schema: &Value) -> String {
    match Sampler::new(document, schema, Direction::Response) {
        Ok(sampler) => sampler.sample(1).unwrap_err().to_string(),
        Err(error) => format!("{error:#}"),
    }
}

#[test]
fn every_schema_of_the_contract_has_samples() {
    let document = Contract::read(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../spec/openapi.yaml"))).unwrap().document;
    let schemas = schemas_of(&document);
    assert!(schemas.len() > 150, "only {}", schemas.len());
    for (name, schema) in schemas {
        let validator = compile(&resolve(&document, &schema)).unwrap();
        for direction in [Direction::Request, Direction::Response] {
            let sampler = Sampler::new(&document, &schema, direction).unwrap();
            for seed in 0..50 {
                let value = sampler.sample(seed).unwrap_or_else(|error| panic!("{name}: {error}"));
                assert!(validator.is_valid(&value), "{name}: {value}");
            }
        }
    }
}

#[test]
fn every_property_of_the_contract_has_edges_and_wrong_values() {
    let document = Contract::read(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../spec/openapi.yaml"))).unwrap().document;
    let (mut right, mut wrong, mut properties) = (0, 0, 0);
    for (name, schema) in schemas_of(&document) {
        let schema = resolve(&document, &schema);
        for (property, schema) in schema["properties"].as_object().into_iter().flatten() {
            let validator = compile(schema).unwrap();
            properties += 1;
            let edges = Sampler::new(&document, schema, Direction::Request).unwrap().boundaries();
            assert!(!edges.is_empty(), "{name}.{property}");
            for value in &edges {
                assert!(validator.is_valid(value), "{name}.{property}: {value}");
            }
            for value in wrong_values(schema, false).into_iter().map(|wrong| wrong.value) {
                let is_unseen = AllowedCharacters::of(schema).wrong(&value).is_some();
                assert!(is_unseen || !validator.is_valid(&value), "{name}.{property}: {value}");
                wrong += 1;
            }
            right += edges.len();
        }
    }
    assert!(right > 4 * properties && wrong > 4 * properties, "{right} and {wrong} of {properties}");
}

#[test]
fn the_same_seed_makes_the_same_value() {
    let schema = json!({
        "type": "object",
        "required": ["name", "number", "at"],
        "properties": {
            "name": { "type": "string" },
            "number": { "type": "string", "pattern": "^[A-Z]{2}-[A-Z0-9]{8}$" },
            "at": { "type": "string", "format": "date-time" },
        },
    });
    let sampler = sampler(&schema);
    // Written out, as a newer version of a library must not change it unseen: servers are compared by it.
    let expected = json!({ "name": "autumn orchard", "number": "SZ-1C017KNA", "at": "2026-01-10T21:19:00Z" });
    assert_eq!(sampler.sample(7).unwrap(), expected);
    assert_ne!(sampler.sample(7).unwrap(), sampler.sample(8).unwrap());
}

/// Samples and edges of a schema are valid, and all that is in a list of conditions is seen among the samples.
#[track_caller]
fn assert_samples(schema: Value, conditions: &[fn(&Value) -> bool]) {
    let validator = compile(&schema).unwrap();
    let sampler = sampler(&schema);
    let samples: Vec<Value> =
        (0..200).map(|seed| sampler.sample(seed).unwrap_or_else(|error| panic!("{schema}: {error}"))).collect();
    for value in samples.iter().chain(&sampler.boundaries()) {
        assert!(validator.is_valid(value), "{schema}: {value}");
    }
    for (number, condition) in conditions.iter().enumerate() {
        assert!(samples.iter().any(condition), "{schema}: {number} never seen in {samples:?}");
    }
}

#[test]
fn samples_heed_every_keyword() {
    assert_samples(json!({ "type": "boolean" }), &[|value| *value == true, |value| *value == false]);
    assert_samples(json!({ "type": "string", "nullable": true }), &[Value::is_null, Value::is_string]);
    assert_samples(json!({ "enum": ["a", 2, true] }), &[|value| *value == "a", |value| *value == 2, |value| *value == true]);
    assert_samples(json!({ "type": "string", "enum": ["only"] }), &[|value| *value == "only"]);
    assert_samples(json!({ "type": "integer" }), &[Value::is_i64]);
    assert_samples(json!({ "type": "integer", "minimum": 3, "maximum": 4 }), &[|value| *value == 3, |value| *value == 4]);
    assert_samples(
        json!({ "type": "integer", "minimum": 3, "exclusiveMinimum": true, "maximum": 5, "exclusiveMaximum": true }),
        &[|value| *value == 4],
    );
    assert_samples(json!({ "type": "integer", "multipleOf": 7, "minimum": 1, "maximum": 7 }), &[|value| *value == 7]);
    assert_samples(json!({ "type": "integer", "multipleOf": 1.5, "minimum": 1, "maximum": 5 }), &[|value| *value == 3]);
    assert_samples(json!({ "type": "integer", "maximum": -5 }), &[|value| *value == -5]);
    assert_samples(json!({ "type": "integer", "minimum": i64::MAX - 5, "maximum": i64::MAX }), &[Value::is_i64]);
    assert_samples(json!({ "type": "number", "minimum": 1e200, "maximum": 1e300 }), &[]);
    assert_samples(json!({ "type": "number", "minimum": 0, "maximum": 1, "multipleOf": 0.01 }), &[Value::is_f64]);
    assert_samples(json!({ "type": "number", "minimum": 0.1, "maximum": 0.1001 }), &[]);
    assert_samples(json!({ "type": "number", "minimum": 0, "exclusiveMinimum": true, "maximum": 0.00001 }), &[]);
    assert_samples(json!({ "type": "string", "minLength": 40, "maxLength": 41 }), &[]);
    assert_samples(json!({ "type": "string", "maxLength": 2 }), &[]);
    assert_samples(json!({ "type": "string", "maxLength": 0 }), &[]);
    assert_samples(json!({ "type": "string", "not": { "enum": ["jazz", "city"] } }), &[]);
    assert_samples(json!({ "type": "string", "example": "Ama" }), &[|value| *value == "Ama", |value| *value != "Ama"]);
    assert_samples(json!({ "type": "string", "maxLength": 20, "example": "much too long to be an example" }), &[]);
    assert_samples(json!({ "type": "array", "items": { "type": "integer" } }), &[|value| value != &json!([])]);
    assert_samples(json!({ "type": "array", "items": { "enum": [1, 2, 3] }, "minItems": 3, "uniqueItems": true }), &[]);
    assert_samples(json!({ "type": "array", "items": { "type": "string" }, "maxItems": 0 }), &[]);
    assert_samples(json!({ "type": "array", "items": { "enum": [1, 2] }, "maxItems": 200, "uniqueItems": true }), &[]);
    assert_samples(json!({ "type": "object", "minProperties": 4, "maxProperties": 5 }), &[]);
    assert_samples(
        json!({ "type": "object", "additionalProperties": { "type": "integer", "minimum": 1 }, "maxProperties": 2 }),
        &[|value| value != &json!({})],
    );
    assert_samples(
        json!({ "properties": { "a": {}, "b": {}, "c": {} }, "required": ["b"], "maxProperties": 2, "additionalProperties": false }),
        &[|value| value.get("a").is_some(), |value| value.get("a").is_none()],
    );
    assert_samples(json!({ "required": ["undescribed"] }), &[|value| value.get("undescribed").is_some()]);
    assert_samples(json!({}), &[]);
}

#[test]
fn samples_heed_every_format() {
    let common = ["date-time", "date", "time", "email", "uri", "uri-reference", "uuid", "ipv4", "ipv6", "hostname", "duration"];
    for format in common.into_iter().chain(["byte", "binary", "password", "image", "event-time", "birth-date", "of-our-own"]) {
        assert_samples(json!({ "type": "string", "format": format }), &[]);
    }
    for format in ["int32", "int64"] {
        assert_samples(json!({ "type": "integer", "format": format }), &[]);
    }
    for format in ["float", "double"] {
        assert_samples(json!({ "type": "number", "format": format }), &[]);
    }
    assert_samples(json!({ "type": "string", "format": "email", "minLength": 70, "maxLength": 100 }), &[]);
    assert_samples(json!({ "type": "string", "format": "hostname", "minLength": 100 }), &[]);
    assert_samples(json!({ "type": "string", "format": "uri", "minLength": 200, "maxLength": 300 }), &[]);
    assert_samples(json!({ "type": "string", "format": "date-time", "pattern": "\\+00:00$" }), &[]);
    assert_samples(json!({ "type": "string", "format": "event-time", "pattern": "^\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}$" }), &[]);
    assert_samples(json!({ "type": "string", "format": "uri-reference", "pattern": "^/zones/\\d+$" }), &[]);
}

#[test]
fn samples_heed_every_pattern() {
    for pattern in [
        "^[A-Za-z0-9-]+$",
        "^(N/A|\\d{4}-\\d{2}-\\d{2})$",
        "^(https?://\\S+)?$",
        "^\\d+(\\.\\d+){0,2}$",
        "^[^a-z]{3}$",
        "^\\p{Lu}$",
        "[é漢]",
        "^\\w{2,}\\s?\\W$",
        "^(?:a|b(c|d)*)+?$",
        "^.{5,}$",
        "^(?![0-9]{8}(-[0-9)]{4})+$)[a-z][a-z0-9-]*(?<!-)$",
        "/",
        "",
    ] {
        assert_samples(json!({ "type": "string", "pattern": pattern }), &[]);
    }
    assert_samples(json!({ "type": "string", "pattern": "^[A-Za-z0-9-]+$", "minLength": 40, "maxLength": 45 }), &[]);
    assert_samples(json!({ "type": "string", "pattern": "^[a-z]*$", "maxLength": 1 }), &[]);
    assert_samples(json!({ "type": "string", "pattern": "^x", "minLength": 12 }), &[]);
}

#[test]
fn samples_heed_what_schemas_have_in_common() {
    let name = json!({ "type": "object", "required": ["name"], "properties": { "name": { "type": "string", "minLength": 3 } } });
    let age =
        json!({ "properties": { "age": { "type": "integer", "minimum": 18 }, "name": { "maxLength": 4 } }, "required": ["age"] });
    assert_samples(json!({ "allOf": [name, age] }), &[|value| value["age"].is_i64() && value["name"].is_string()]);
    assert_samples(json!({ "allOf": [{ "type": "integer", "minimum": 3 }, { "maximum": 3 }] }), &[|value| *value == 3]);
    assert_samples(json!({ "oneOf": [{ "type": "string" }, { "type": "integer" }] }), &[Value::is_string, Value::is_i64]);
    assert_samples(
        json!({ "anyOf": [{ "required": ["a"] }, { "required": ["b"] }], "type": "object",
            "properties": { "a": { "type": "string" }, "b": { "type": "string" } } }),
        &[|value| value.get("a").is_some(), |value| value.get("b").is_some()],
    );
    assert_samples(
        json!({ "oneOf": [{ "required": ["a"] }, { "required": ["b"] }], "type": "object",
            "properties": { "a": { "type": "string" }, "b": { "type": "string" } } }),
        &[|value| value.get("a").is_some(), |value| value.get("b").is_some()],
    );
}

/// A document of pets, of which each kind has a schema, and of trees.
fn pets() -> Value {
    let pet = |kind: &str| {
        json!({ "type": "object", "required": ["kind", kind], "properties": {
        "kind": { "type": "string" }, kind: { "type": "integer" }, "age": { "type": "integer" } } })
    };
    json!({ "components": { "schemas": {
        "Cat": pet("lives"),
        "Dog": pet("tricks"),
        "Pet": {
            "oneOf": [{ "$ref": "#/components/schemas/Cat" }, { "$ref": "#/components/schemas/Dog" }],
            "discriminator": { "propertyName": "kind", "mapping": { "a cat": "#/components/schemas/Cat" } },
        },
        "Tree": { "type": "object", "required": ["children"], "properties": {
            "name": { "type": "string" },
            "parent": { "$ref": "#/components/schemas/Tree" },
            "children": { "type": "array", "items": { "$ref": "#/components/schemas/Tree" } },
        } },
        "Sum": { "type": "object", "required": ["left", "right"], "properties": {
            "left": { "$ref": "#/components/schemas/Term" }, "right": { "$ref": "#/components/schemas/Term" } } },
        "Term": { "anyOf": [{ "$ref": "#/components/schemas/Sum" }, { "$ref": "#/components/schemas/Sum" }, { "type": "number" }] },
        "Endless": { "type": "object", "required": ["next"], "properties": { "next": { "$ref": "#/components/schemas/Endless" } } },
        "Circle": { "$ref": "#/components/schemas/Circle" },
        "Account": { "type": "object", "required": ["number", "password"], "additionalProperties": false, "properties": {
            "number": { "type": "string", "readOnly": true }, "password": { "type": "string", "writeOnly": true } } },
    } } })
}

fn named(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

#[test]
fn a_discriminator_names_the_arm() {
    let document = pets();
    let sampler = Sampler::new(&document, &named("Pet"), Direction::Response).unwrap();
    let samples: Vec<Value> = (0..50).map(|seed| sampler.sample(seed).unwrap()).collect();
    assert!(samples.iter().any(|pet| pet.get("lives").is_some()) && samples.iter().any(|pet| pet.get("tricks").is_some()));
    for pet in samples {
        assert_eq!(pet["kind"], if pet.get("lives").is_some() { "a cat" } else { "Dog" }, "{pet}");
    }
}

#[test]
fn a_schema_that_refers_to_itself_has_samples_that_end() {
    let document = pets();
    for name in ["Tree", "Sum", "Term"] {
        let sampler = Sampler::new(&document, &named(name), Direction::Response).unwrap();
        for seed in 0..200 {
            let length = sampler.sample(seed).unwrap().to_string().len();
            assert!(length < 100_000, "{name}: {length} bytes");
        }
        assert!(!sampler.boundaries().is_empty(), "{name}");
    }
}

#[test]
fn a_property_goes_one_way_alone() {
    let document = pets();
    let sample = |direction| Sampler::new(&document, &named("Account"), direction).unwrap().sample(1).unwrap();
    let (request, response) = (sample(Direction::Request), sample(Direction::Response));
    assert!(request.get("password").is_some() && request.get("number").is_none(), "{request}");
    assert!(response.get("number").is_some() && response.get("password").is_none(), "{response}");
}

#[test]
fn what_cannot_be_made_is_refused_with_its_place() {
    let document = pets();
    for (schema, place) in [
        (named("Endless"), "`#/components/schemas/Endless` asks for itself"),
        (named("Circle"), "`#/components/schemas/Circle` asks for itself"),
        (json!({ "required": ["a"], "properties": { "a": named("Endless") } }), "`#/components/schemas/Endless` asks"),
        (named("Lost"), "`#/components/schemas/Lost`"),
        (json!({ "$ref": "other.yaml#/Zone" }), "`other.yaml#/Zone`"),
        (json!({ "type": "integer", "minimum": 3, "maximum": 2 }), "`` has no number"),
        (
            json!({ "required": ["a/b"], "properties": { "a/b": { "type": "string", "minLength": 3, "maxLength": 2 } } }),
            "`/properties/a~1b`",
        ),
        (
            json!({ "type": "array", "minItems": 3, "uniqueItems": true, "items": { "type": "boolean" } }),
            "asks for 3 different items",
        ),
        (
            json!({ "required": ["a"], "properties": { "a": {
                "type": "array", "minItems": 90_000, "items": { "type": "array", "minItems": 9, "items": {} },
            } } }),
            "`/properties/a/items/items` would make more than 100000 values",
        ),
        (json!({ "required": ["a"], "additionalProperties": false }), "asks for a, and allows no such"),
        (json!({ "minProperties": 2, "properties": { "a": {} }, "additionalProperties": false }), "number of properties"),
        (json!({ "allOf": [{ "enum": [1] }, { "enum": [2] }] }), "no value that all its parts allow"),
        (json!({ "type": "string", "pattern": "^(a)\\1$" }), "no text for `` can be made from its pattern"),
        (json!({ "type": "string", "pattern": "^(?=a)b$" }), "`` has no value that was found"),
        (json!({ "type": "object", "required": ["a"], "properties": { "a": {} }, "not": {} }), "`/not`"),
    ] {
        let refusal = refusal(&document, &schema);
        assert!(refusal.contains(place), "{schema}: {refusal}");
    }
}

#[test]
fn edges_are_where_the_bounds_are() {
    let has = |schema: Value, wanted: &[Value]| {
        let edges = sampler(&schema).boundaries();
        for value in wanted {
            assert!(edges.contains(value), "{schema} lacks {value}: {edges:?}");
        }
    };
    has(json!({ "type": "integer", "minimum": -3, "maximum": 12 }), &[json!(-3), json!(12), json!(0)]);
    has(
        json!({ "type": "number", "minimum": 0.5, "maximum": 10, "multipleOf": 0.25 }),
        &[json!(0.5), json!(0.75), json!(9.75), json!(10)],
    );
    has(json!({ "type": "integer", "minimum": 0, "exclusiveMinimum": true }), &[json!(1)]);
    has(json!({ "type": "string", "minLength": 1, "maxLength": 4 }), &[json!("x"), json!("é"), json!("é漢🎟é"), json!("xxxx")]);
    has(json!({ "type": "string", "nullable": true, "enum": ["a", "b"] }), &[json!(null), json!("a"), json!("b")]);
    has(json!({ "type": "boolean" }), &[json!(true), json!(false)]);
    has(json!({ "type": "string", "format": "date" }), &[json!("2028-02-29")]);
    has(json!({ "type": "string", "pattern": "^a{2,3}$" }), &[json!("aa"), json!("aaa")]);
    has(json!({ "type": "array", "items": { "enum": [1] }, "minItems": 1, "maxItems": 3 }), &[json!([1]), json!([1, 1, 1])]);
    has(
        json!({ "type": "object", "properties": { "a": { "enum": [1, 2] } } }),
        &[json!({}), json!({ "a": 1 }), json!({ "a": 2 })],
    );
    has(json!({ "oneOf": [{ "type": "boolean" }, { "enum": ["a"] }] }), &[json!(true), json!("a")]);
    has(
        json!({ "type": "object", "additionalProperties": { "enum": [1] }, "minProperties": 1, "maxProperties": 2 }),
        &[json!({ "entry0": 1 })],
    );
}

#[test]
fn edges_have_an_end() {
    let wide =
        json!({ "type": "array", "minItems": 1, "maxItems": 1_000_000, "items": { "type": "string", "maxLength": 10_000_000 } });
    let edges = sampler(&wide).boundaries();
    assert!(!edges.is_empty() && edges.iter().all(|edge| edge.to_string().len() < 50_000));
    let many: serde_json::Map<String, Value> =
        (0..400).map(|number| (format!("p{number}"), json!({ "enum": [1, 2, 3] }))).collect();
    assert_eq!(sampler(&json!({ "type": "object", "properties": many })).boundaries().len(), 500);
}
