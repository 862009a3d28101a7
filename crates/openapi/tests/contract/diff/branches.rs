//! Branches of `oneOf` and `anyOf`, and discriminators.

use boxoffice_openapi::diff::Impact::Breaking;
use serde_json::{Value, json};

use super::{NONE, breaking, changes, document, non_breaking, operation, request_changes, response_changes};

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
fn new_subtypes_of_a_base_are_new_branches() {
    let base = |names: &[&str], has_mapping: bool| {
        let mut animal = json!({ "type": "object", "required": ["kind"], "properties": { "kind": { "type": "string" } } });
        animal["discriminator"] = json!({ "propertyName": "kind" });
        let subtype =
            json!({ "allOf": [{ "$ref": "#/components/schemas/Animal" }, { "properties": { "age": { "type": "integer" } } }] });
        let mut schemas = json!({});
        for name in names {
            schemas[name] = subtype.clone();
            if has_mapping {
                animal["discriminator"]["mapping"][name] = json!(name);
            }
        }
        schemas["Animal"] = animal;
        json!({ "components": { "schemas": schemas } })
    };
    let schema = || json!({ "$ref": "#/components/schemas/Animal" });
    for has_mapping in [false, true] {
        let [one, two] = [&["Cat"][..], &["Cat", "Dog"]].map(|names| base(names, has_mapping));
        let request = |schemas: &Value| document(operation(schema(), json!({})), schemas.clone());
        let texts = ["Animal: the branch Dog of anyOf was added", "Animal: the mapping of Dog was added"];
        let sorted = |mut changes: Vec<_>| {
            changes.sort_by(|(_, one): &(_, String), (_, other)| one.cmp(other));
            changes
        };
        assert_eq!(sorted(changes(request(&one), request(&two))), texts.map(non_breaking));
        let response = |schemas: &Value| document(operation(json!({}), schema()), schemas.clone());
        assert_eq!(sorted(changes(response(&one), response(&two))), texts.map(breaking));
    }
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
