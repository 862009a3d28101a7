//! Tests of the reading of documents from files.

use std::path::{Path, PathBuf};
use std::{env, fs};

use boxoffice_openapi::{Contract, Direction, Sampler};
use serde_json::{Value, json};

#[test]
fn parses_every_kind_of_yaml_value() {
    let text = "paths: {}\nx-all:\n  a: &a {b: 1, c: .5}\n  d: {<<: *a, b: 2}\n  e: [~, true, 0o17, -7]\n  200: ok\n  \
        f: 123456789012345678901234567890\n  g: -99999999999999999999\n  h: !custom x\n  i: !!str 7\n  j: 2020-01-01\n  \
        k: 340282366920938463463374607431768211456000\n";
    let expected = json!({
        "a": { "b": 1, "c": 0.5 }, "d": { "b": 2, "c": 0.5 }, "e": [null, true, 15, -7], "200": "ok",
        "f": 123456789012345678901234567890_u128 as f64, "g": -99999999999999999999_i128 as f64, "h": "x", "i": "7",
        "j": "2020-01-01", "k": 340282366920938463463374607431768211456000_f64,
    });
    let file = tempfile::NamedTempFile::new().unwrap();
    let read = |text: &str| {
        fs::write(file.path(), text).unwrap();
        Contract::read(file.path()).unwrap().document
    };
    assert_eq!(read(text)["x-all"], expected);
    assert_eq!(read("{\"paths\": {}, \"x-all\": 123456789012345678901234567890}")["x-all"], expected["f"]);
}

#[test]
fn finds_repeated_keys() {
    let file = tempfile::NamedTempFile::new().unwrap();
    for (text, pointer) in [
        ("paths: {}\nx-a:\n- b/c: 1\n  b/c: 2\n", "/x-a/0/b~1c"),
        ("{\"paths\": {}, \"x-a\": [{\"b/c\": 1, \"b/c\": 2}]}", "/x-a/0/b~1c"),
        ("paths: {/a: {}}\npaths: {}\nx-a: [{b/c: 2}]\n", "/paths"),
    ] {
        fs::write(file.path(), text).unwrap();
        let contract = Contract::read(file.path()).unwrap();
        let warning = format!("{pointer} is in {} more than once: only the last one is used", file.path().display());
        assert_eq!(contract.warnings, [warning.as_str(), "the document has no operations"]);
        assert_eq!((&contract.document["paths"], &contract.document["x-a"]), (&json!({}), &json!([{ "b/c": 2 }])), "{text}");
    }
}

#[test]
fn unusable_files_are_explained() {
    let file = tempfile::NamedTempFile::new().unwrap();
    for (text, expected) in [
        ("", "is empty".to_owned()),
        (" \n", "is empty".to_owned()),
        (&format!("{{\"x\": {}{}}}", "[".repeat(50_000), "]".repeat(50_000)), "more than 127 levels deep".to_owned()),
        ("{\"a\": 1", "can't be parsed as YAML or JSON".to_owned()),
    ] {
        fs::write(file.path(), text).unwrap();
        let error = format!("{:#}", Contract::read(file.path()).unwrap_err());
        assert!(error.contains(&expected), "{error}");
    }
}

#[test]
fn discriminator_may_map_to_other_files() {
    let folder = tempfile::tempdir().unwrap();
    let mapping = json!({ "cat": "#/components/schemas/Cat", "dog": "./schemas/dog.json" });
    let pet = json!({ "type": "object", "required": ["kind"], "properties": { "kind": { "type": "string" } },
        "discriminator": { "propertyName": "kind", "mapping": mapping } });
    let with = |base: &str, own: &str| json!({ "allOf": [{ "$ref": base }, { "type": "object", "required": [own], "properties": { own: { "type": "integer" } } }] });
    let any = json!({ "oneOf": [{ "$ref": "#/components/schemas/Cat" }, { "$ref": "./schemas/dog.json" }],
        "discriminator": { "propertyName": "kind", "mapping": mapping } });
    let schemas = json!({ "Pet": pet, "Cat": with("#/components/schemas/Pet", "lives"), "Any": any });
    let document = json!({ "openapi": "3.0.3", "paths": {}, "components": { "schemas": schemas } });
    fs::create_dir(folder.path().join("schemas")).unwrap();
    fs::write(folder.path().join("openapi.json"), document.to_string()).unwrap();
    let dog = with("../openapi.json#/components/schemas/Pet", "tricks");
    fs::write(folder.path().join("schemas/dog.json"), dog.to_string()).unwrap();
    // The other file is read because a mapping refers to it.
    let contract = Contract::read(folder.path()).unwrap();

    for schema in ["Pet", "Any"] {
        let schema = json!({ "$ref": format!("#/components/schemas/{schema}") });
        let sampler = Sampler::new(&contract.document, &schema, Direction::Response).unwrap();
        let pets: Vec<Value> = (0..50).map(|seed| sampler.sample(seed).unwrap()).collect();
        let count = |kind: &str, own: &str| pets.iter().filter(|pet| pet["kind"] == kind && pet.get(own).is_some()).count();
        let (cats, dogs) = (count("cat", "lives"), count("dog", "tricks"));
        assert!(cats > 0 && dogs > 0 && cats + dogs == pets.len(), "{schema}: {pets:?}");
    }
}

#[test]
fn equivalent_paths_are_one_file() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["docs", "a"] {
        fs::create_dir(folder.path().join(name)).unwrap();
    }
    let paths = json!({ "/1": { "$ref": "../a/c.json" }, "/2": { "$ref": "./.././a/../a/c.json" }, "/3": { "$ref": "d.json" } });
    let item = json!({ "get": { "responses": { "204": {} } } });
    for (name, content) in [
        ("docs/openapi.json", json!({ "paths": paths })),
        ("docs/d.json", json!({ "$ref": "../docs/../a/./c.json" })),
        ("a/c.json", item),
    ] {
        fs::write(folder.path().join(name), content.to_string()).unwrap();
    }
    let to_root: PathBuf = env::current_dir().unwrap().components().map(|_| "..").collect();
    let relative = to_root.join(folder.path().strip_prefix("/").unwrap());
    for folder in [folder.path(), Path::new(&relative)] {
        let contract = Contract::read(&folder.join("docs/openapi.json")).unwrap();
        assert_eq!(contract.warnings, [""; 0]);
        assert_eq!(contract.operations().count(), 3);
        assert_eq!(contract.files, ["docs/openapi.json", "a/c.json", "docs/d.json"].map(|name| folder.join(name)));
    }
}
