//! Tests of generated sample data.

use std::collections::BTreeSet;
use std::path::Path;

use boxoffice_openapi::invalid_values::invalid_values_for;
use boxoffice_openapi::{AllowedCharacters, Contract, Direction, ExampleUse, METHODS, Sampler, compile, resolve};
use serde_json::{Value, json};

use super::ref_to;

/// Returns the named schemas of the document, and those of all bodies, responses and parameters.
fn schemas_of(document: &Value) -> Vec<(String, Value)> {
    let named = document["components"]["schemas"].as_object().into_iter().flatten();
    let mut schemas: Vec<(String, Value)> = named.map(|(name, schema)| (name.clone(), schema.clone())).collect();
    for (path, item) in document["paths"].as_object().into_iter().flatten() {
        for (method, operation) in METHODS.iter().filter_map(|method| Some((method, item.get(method)?))) {
            let operation = resolve(document, operation);
            let responses = operation["responses"].as_object().into_iter().flatten().map(|(_, response)| response);
            let contents = responses.chain([&operation["requestBody"]]).filter_map(|part| part["content"].as_object());
            let bodies = contents.flatten().map(|(_, content)| &content["schema"]);
            let parameters = operation["parameters"].as_array().into_iter().flatten().map(|parameter| &parameter["schema"]);
            schemas.extend(bodies.chain(parameters).map(|schema| (format!("{method} {path}"), schema.clone())));
        }
    }
    // Most error responses are the same for all operations.
    let mut seen = BTreeSet::new();
    schemas.retain(|(_, schema)| seen.insert(schema.to_string()));
    schemas
}

fn sampler(schema: &Value) -> Sampler {
    Sampler::new(&json!({}), schema, Direction::Response).unwrap()
}

fn failure(document: &Value, schema: &Value) -> String {
    match Sampler::new(document, schema, Direction::Response) {
        Ok(sampler) => sampler.sample(1).unwrap_err().to_string(),
        Err(error) => format!("{error:#}"),
    }
}

#[test]
fn samples_every_schema_of_the_builtin_document() {
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
fn finds_boundary_and_invalid_values_for_every_builtin_property() {
    let document = Contract::read(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../spec/openapi.yaml"))).unwrap().document;
    let (mut valid_count, mut invalid_count, mut property_count) = (0, 0, 0);
    for (name, schema) in schemas_of(&document) {
        let schema = resolve(&document, &schema);
        for (property, schema) in schema["properties"].as_object().into_iter().flatten() {
            let validator = compile(schema).unwrap();
            property_count += 1;
            let boundaries = Sampler::new(&document, schema, Direction::Request).unwrap().boundaries();
            assert!(!boundaries.is_empty(), "{name}.{property}");
            for value in &boundaries {
                assert!(validator.is_valid(value), "{name}.{property}: {value}");
            }
            for value in invalid_values_for(schema, false).into_iter().map(|invalid| invalid.value) {
                let is_forbidden = AllowedCharacters::of(schema).violation(&value).is_some();
                assert!(is_forbidden || !validator.is_valid(&value), "{name}.{property}: {value}");
                invalid_count += 1;
            }
            valid_count += boundaries.len();
        }
    }
    assert!(valid_count > 4 * property_count && invalid_count > 4 * property_count, "{valid_count} and {invalid_count}");
}

#[test]
fn same_seed_generates_same_value() {
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
    // Servers are compared with these values, so a newer version of a library must not change them.
    let expected = json!({ "name": "autumn orchard", "number": "SZ-1C017KNA", "at": "2026-01-10T21:19:00Z" });
    assert_eq!(sampler.sample(7).unwrap(), expected);
    assert_ne!(sampler.sample(7).unwrap(), sampler.sample(8).unwrap());
}

/// Asserts that the samples and boundary values of a schema are valid, and that each condition holds for one of the samples.
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
fn samples_only_known_values_of_an_extensible_list() {
    let schema = json!({ "type": "array", "minItems": 1, "items": { "type": "string", "x-extensible-enum": ["a", "b"] } });
    let sampler = sampler(&schema);
    for value in (0..50).map(|seed| sampler.sample(seed).unwrap()).chain(sampler.boundaries()) {
        assert!(value.as_array().unwrap().iter().all(|item| *item == "a" || *item == "b"), "{value}");
    }
}

#[test]
fn samples_satisfy_every_keyword() {
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
    let (low, high) = (9_007_199_254_740_993_i64, 9_007_199_254_740_995_i64);
    assert_samples(json!({ "type": "integer", "exclusiveMinimum": low, "exclusiveMaximum": high }), &[]);
    assert_samples(json!({ "type": "array", "items": { "type": "integer" }, "contains": { "enum": [7] }, "minItems": 3 }), &[]);
    assert_samples(json!({ "contains": { "type": "integer" }, "minContains": 2, "maxContains": 3 }), &[]);
    assert_samples(
        json!({ "type": "array", "items": { "type": "integer" }, "contains": { "minimum": 100 },
            "minContains": 2, "maxContains": 3, "minItems": 5 }),
        &[],
    );
    assert_samples(
        json!({ "type": "object", "propertyNames": { "pattern": "^x-" }, "additionalProperties": { "type": "integer" },
            "minProperties": 2 }),
        &[],
    );
    assert_samples(
        json!({ "type": "object", "patternProperties": { "^n_": { "type": "integer" } }, "additionalProperties": false,
            "minProperties": 2 }),
        &[],
    );
    assert_samples(json!({ "type": "string", "format": "uri", "maxLength": 12 }), &[]);
    assert_samples(json!({ "type": "string", "format": "hostname", "maxLength": 5 }), &[]);
    assert_samples(
        json!({ "type": "object", "patternProperties": { "^x-[a-z]{3}$": { "type": "integer" } },
            "additionalProperties": false, "minProperties": 2 }),
        &[],
    );
    assert_samples(
        json!({ "type": "object", "required": ["a"], "properties": { "a": {} },
            "dependentSchemas": { "a": { "required": ["c"], "properties": { "c": { "type": "integer" } } } } }),
        &[|value| value["c"].is_i64()],
    );
    assert_samples(json!({}), &[]);
}

#[test]
fn samples_have_the_properties_on_which_others_depend() {
    let schema = json!({ "type": "object", "required": ["a"], "properties": { "a": { "type": "integer" } },
        "dependentRequired": { "a": ["b"], "b": ["c"], "d": ["e"] } });
    assert_samples(schema, &[|value| value.get("c").is_some() && value.get("e").is_none()]);
}

#[test]
fn samples_satisfy_every_format() {
    let common = ["date-time", "date", "time", "email", "uri", "uri-reference", "uuid", "ipv4", "ipv6", "hostname", "duration"];
    for format in common.into_iter().chain(["byte", "binary", "password", "image", "event-time", "birth-date", "of-our-own"]) {
        assert_samples(json!({ "type": "string", "format": format }), &[]);
    }
    for format in ["int32", "int64"] {
        assert_samples(json!({ "type": "integer", "format": format }), &[]);
    }
    let largest = i64::from(i32::MAX);
    let large = json!({ "type": "integer", "format": "int32", "minimum": largest - 40 });
    assert!((0..200).all(|seed| sampler(&large).sample(seed).unwrap().as_i64().unwrap() <= largest));
    assert_samples(json!({ "type": "number", "minimum": 1e300 }), &[]);
    for format in ["float", "double"] {
        assert_samples(json!({ "type": "number", "format": format }), &[]);
    }
    assert_samples(json!({ "type": "string", "format": "email", "minLength": 70, "maxLength": 100 }), &[]);
    assert_samples(json!({ "type": "string", "format": "email", "maxLength": 7 }), &[]);
    assert_samples(json!({ "type": "string", "format": "uri", "minLength": 60, "maxLength": 70 }), &[]);
    assert_samples(json!({ "type": "string", "format": "date", "pattern": "^1999-" }), &[]);
    assert_samples(json!({ "type": "string", "format": "uri", "maxLength": 15 }), &[]);
    assert_samples(json!({ "type": "string", "format": "date-time", "minLength": 25 }), &[]);
    assert_samples(json!({ "type": "string", "format": "hostname", "minLength": 100 }), &[]);
    assert_samples(json!({ "type": "string", "format": "uri", "minLength": 200, "maxLength": 300 }), &[]);
    assert_samples(json!({ "type": "string", "format": "date-time", "pattern": "\\+00:00$" }), &[]);
    assert_samples(json!({ "type": "string", "format": "event-time", "pattern": "^\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}$" }), &[]);
    assert_samples(json!({ "type": "string", "format": "uri-reference", "pattern": "^/zones/\\d+$" }), &[]);
}

#[test]
fn samples_match_every_pattern() {
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
    for patterns in [
        &["^[A-Z]{2}", "[0-9]{3}$"] as &[_],
        &["[0-9]{3}$", "^[A-Z]{2}"],
        &["^[A-Za-z0-9]{8,}$", "[A-Z]", "[a-z]", "[0-9]"],
        &["^[a-z-]+$", "^.{5,8}$", "^(?!admin)"],
    ] {
        let parts: Vec<_> = patterns.iter().map(|pattern| json!({ "type": "string", "pattern": pattern })).collect();
        assert_samples(json!({ "allOf": parts }), &[]);
    }
}

#[test]
fn samples_satisfy_combined_schemas() {
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

/// Returns a document with schemas of pets, and with recursive schemas.
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

#[test]
fn discriminator_contains_the_schema_name() {
    let document = pets();
    let sampler = Sampler::new(&document, &ref_to("Pet"), Direction::Response).unwrap();
    let samples: Vec<Value> = (0..50).map(|seed| sampler.sample(seed).unwrap()).collect();
    assert!(samples.iter().any(|pet| pet.get("lives").is_some()) && samples.iter().any(|pet| pet.get("tricks").is_some()));
    for pet in samples {
        assert_eq!(pet["kind"], if pet.get("lives").is_some() { "a cat" } else { "Dog" }, "{pet}");
    }
}

/// The part that requires a property is often not the one that declares it.
#[test]
fn part_requires_no_property_of_the_other_direction() {
    let base = json!({ "type": "object", "properties": {
        "id": { "type": "integer", "readOnly": true }, "secret": { "type": "string", "writeOnly": true }, "name": { "enum": ["a"] },
    } });
    let part = json!({ "type": "object", "required": ["id", "secret", "name"] });
    let document = json!({ "components": { "schemas": { "Base": base, "Nested": { "allOf": [ref_to("Base")] } } } });
    for schema in
        [json!({ "allOf": [ref_to("Nested"), part] }), json!({ "allOf": [ref_to("Base")], "required": part["required"] })]
    {
        let names = |direction| {
            let sample = Sampler::new(&document, &schema, direction).unwrap().sample(1).unwrap();
            let mut names: Vec<_> = sample.as_object().unwrap().keys().cloned().collect();
            names.sort();
            names
        };
        assert_eq!(
            (names(Direction::Request), names(Direction::Response)),
            (vec!["name".into(), "secret".into()], vec!["id".into(), "name".into()]),
            "{schema}"
        );
    }
}

#[test]
fn range_of_all_numbers_has_small_numbers() {
    let largest = f64::MAX;
    for minimum in [-largest, 0.0] {
        let sampler = sampler(&json!({ "type": "number", "minimum": minimum, "maximum": largest }));
        for seed in 0..50 {
            assert!(sampler.sample(seed).unwrap().is_number());
        }
        assert!((0..50).any(|seed| sampler.sample(seed).unwrap().as_f64().unwrap().abs() < 1e6));
    }
}

#[test]
fn samples_of_recursive_schemas_are_finite() {
    let document = pets();
    for name in ["Tree", "Sum", "Term"] {
        let sampler = Sampler::new(&document, &ref_to(name), Direction::Response).unwrap();
        for seed in 0..200 {
            let length = sampler.sample(seed).unwrap().to_string().len();
            assert!(length < 100_000, "{name}: {length} bytes");
        }
        assert!(!sampler.boundaries().is_empty(), "{name}");
    }
}

#[test]
fn samples_have_only_properties_of_the_direction() {
    let document = pets();
    let sample = |direction| Sampler::new(&document, &ref_to("Account"), direction).unwrap().sample(1).unwrap();
    let (request, response) = (sample(Direction::Request), sample(Direction::Response));
    assert!(request.get("password").is_some() && request.get("number").is_none(), "{request}");
    assert!(response.get("number").is_some() && response.get("password").is_none(), "{response}");
}

#[test]
fn reports_location_of_schemas_without_values() {
    let document = pets();
    for (schema, message) in [
        (ref_to("Endless"), "`#/components/schemas/Endless` requires itself"),
        (ref_to("Circle"), "`#/components/schemas/Circle` requires itself"),
        (json!({ "required": ["a"], "properties": { "a": ref_to("Endless") } }), "`#/components/schemas/Endless` requires"),
        (ref_to("Lost"), "`#/components/schemas/Lost`"),
        (json!({ "$ref": "other.yaml#/Zone" }), "`other.yaml#/Zone`"),
        (json!({ "type": "integer", "minimum": 3, "maximum": 2 }), "`schema` has no number"),
        (
            json!({ "required": ["a/b"], "properties": { "a/b": { "type": "string", "minLength": 3, "maxLength": 2 } } }),
            "`schema/properties/a~1b`",
        ),
        (
            json!({ "type": "array", "minItems": 3, "uniqueItems": true, "items": { "type": "boolean" } }),
            "requires 3 different items",
        ),
        (
            json!({ "required": ["a"], "properties": { "a": {
                "type": "array", "minItems": 90_000, "items": { "type": "array", "minItems": 9, "items": {} },
            } } }),
            "`schema/properties/a/items/items` requires more than 100000 values",
        ),
        (json!({ "required": ["a"], "additionalProperties": false }), "requires the property a, but doesn't allow it"),
        (json!({ "minProperties": 2, "properties": { "a": {} }, "additionalProperties": false }), "numbers of properties"),
        (json!({ "allOf": [{ "enum": [1] }, { "enum": [2] }] }), "no value that all its parts allow"),
        (json!({ "type": "string", "pattern": "^(a)\\1$" }), "no text for `schema` can be generated from its pattern"),
        (json!({ "type": "string", "pattern": "^(?=a)b$" }), "`schema` had no valid value"),
        (json!({ "type": "object", "required": ["a"], "properties": { "a": {} }, "not": {} }), "`schema/not`"),
    ] {
        let failure = failure(&document, &schema);
        assert!(failure.contains(message), "{schema}: {failure}");
    }
}

#[test]
fn invalid_value_has_the_reason() {
    let text = json!({ "type": "string", "pattern": "^(?=a)b$" });
    let schema = json!({ "type": "object", "required": ["a", "b"], "properties": { "a": { "enum": [1] }, "b": text } });
    let (value, violation) = sampler(&schema).sample_or_invalid(1, ExampleUse::Always).unwrap();
    assert!(value["a"] == 1 && value["b"].is_string(), "{value}");
    assert!(violation.unwrap().contains("`schema/properties/b` had no valid value"));
    for schema in [json!({ "type": "integer", "minimum": 3, "maximum": 2 }), ref_to("Endless"), ref_to("Circle")] {
        let sampler = Sampler::new(&pets(), &schema, Direction::Response).unwrap();
        let (_, violation) = sampler.sample_or_invalid(1, ExampleUse::Always).unwrap();
        assert!(violation.is_some(), "{schema}");
    }
}

#[test]
fn boundaries_include_the_limits() {
    let has = |schema: Value, wanted: &[Value]| {
        let boundaries = sampler(&schema).boundaries();
        for value in wanted {
            assert!(boundaries.contains(value), "{schema} lacks {value}: {boundaries:?}");
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
fn boundaries_are_limited() {
    let wide =
        json!({ "type": "array", "minItems": 1, "maxItems": 1_000_000, "items": { "type": "string", "maxLength": 10_000_000 } });
    let boundaries = sampler(&wide).boundaries();
    assert!(!boundaries.is_empty() && boundaries.iter().all(|boundary| boundary.to_string().len() < 50_000));
    let many: serde_json::Map<String, Value> =
        (0..400).map(|number| (format!("p{number}"), json!({ "enum": [1, 2, 3] }))).collect();
    assert_eq!(sampler(&json!({ "type": "object", "properties": many })).boundaries().len(), 500);
}

#[test]
fn texts_of_nested_patterns_are_limited() {
    let mut schema = json!({ "type": "string", "minLength": 500, "pattern": r"^(([a-z]+ )+[a-z]+\. )+$" });
    let text = sampler(&schema).sample_or_invalid(1, ExampleUse::Always).unwrap().0.to_string();
    schema["maxLength"] = json!(600);
    let boundaries = sampler(&schema).boundaries();
    assert!(text.len() < 50_000 && boundaries.iter().all(|boundary| boundary.to_string().len() < 50_000), "{}", text.len());
    // The limit leaves room for the shortest text.
    let long = json!({ "type": "string", "pattern": "^(a[0-9]){3000}$" });
    assert_eq!(sampler(&long).sample(1).unwrap().as_str().unwrap().len(), 6000);
}
