//! One resource: its identifier, and its representation in a response.

use boxoffice_openapi::Schema;
use serde_json::Value;
use sha2::{Digest, Sha256};

/// Properties that may identify a resource without `self`, besides the property named like its path variable.
pub const ID_PROPERTIES: [&str; 4] = ["id", "number", "code", "uuid"];

/// The characters of a new identifier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Alphabet {
    /// Those of the old identifier, whose format may allow no others.
    OfIdentifier,
    /// All digits and letters of the old identifier's kinds. The letters are those of hexadecimal numbers if the old ones are.
    All,
}

/// Maximum number of validations for one [`merge`], which blocks all other requests.
const MAX_MERGE_ATTEMPTS: usize = 500;

/// Returns a resource's identifier: the last segment of its `self`, or else the property named like its path variable or one of
/// [`ID_PROPERTIES`].
pub fn identity(value: &Value, variable: &str) -> Option<String> {
    let from_self = value["self"].as_str().and_then(|uri| uri.rsplit('/').next()).filter(|id| !id.is_empty());
    let from_property = || [variable].into_iter().chain(ID_PROPERTIES).find_map(|name| path_segment(&value[name]));
    from_self.map(str::to_owned).or_else(from_property)
}

/// A string or a number as a path segment.
pub fn path_segment(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// Returns the name of the property that contains a resource's identifier: the one named like its path variable, or the first one of
/// [`ID_PROPERTIES`]. Another property may have the same value by chance.
pub fn identifier_property<'a>(value: &Value, variable: &'a str, id: &str) -> Option<&'a str> {
    [variable].into_iter().chain(ID_PROPERTIES).find(|name| path_segment(&value[*name]).as_deref() == Some(id))
}

/// Assigns a new identifier of the same format to the document's example of a resource and returns it. URIs that contain the old
/// identifier are changed too, so the example must not contain a client's values.
pub fn assign_id(example: &mut Value, variable: &str, number: u64, alphabet: Alphabet) -> String {
    let old = identity(example, variable).unwrap_or_default();
    let new = next_id(&old, number, alphabet);
    replace_id(example, variable, &old, &new);
    if !old.is_empty() {
        rewrite_links(example, &old, &new);
    }
    new
}

fn replace_id(value: &mut Value, variable: &str, old: &str, new: &str) {
    let Some(object) = value.as_object_mut() else { return };
    for name in [variable].into_iter().chain(ID_PROPERTIES) {
        if let Some(property) = object.get_mut(name).filter(|property| path_segment(property).as_deref() == Some(old)) {
            let as_number = new.parse::<u64>().ok().filter(|_| property.is_number());
            *property = as_number.map_or_else(|| Value::from(new), Value::from);
        }
    }
}

/// Replaces a path, or the beginning of one, in every URI. A resource whose `self` is that path also gets the new identifier.
/// Other resources nested in a resource are left unchanged, because they may not exist below the new path.
pub fn rebase(value: &mut Value, old: &str, new: &str) {
    let last = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
    let find_path = |uri: &str| {
        let start = uri.find(old).filter(|start| *start == 0 || uri[..*start].contains("://"))?;
        matches!(uri.as_bytes().get(start + old.len()), None | Some(b'/')).then_some(start)
    };
    if value["self"].as_str().is_some_and(|uri| uri.ends_with(old) && find_path(uri).is_some()) {
        replace_id(value, "", &last(old), &last(new));
    }
    match value {
        Value::String(uri) => {
            if let Some(start) = find_path(uri) {
                uri.replace_range(start..start + old.len(), new);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| rebase(item, old, new)),
        Value::Object(object) => {
            let is_resource = object.contains_key("self");
            let is_other_resource = |part: &Value| is_resource && part["self"].as_str().is_some_and(|uri| !uri.ends_with(old));
            object.values_mut().filter(|part| !is_other_resource(part)).for_each(|part| rebase(part, old, new));
        }
        _ => {}
    }
}

/// Replaces an identifier in every URI.
fn rewrite_links(value: &mut Value, old: &str, new: &str) {
    match value {
        Value::String(uri) if uri.contains('/') && uri.split('/').any(|segment| segment == old) => {
            *uri = uri.split('/').map(|segment| if segment == old { new } else { segment }).collect::<Vec<_>>().join("/");
        }
        Value::Array(items) => items.iter_mut().for_each(|item| rewrite_links(item, old, new)),
        Value::Object(object) => object.values_mut().for_each(|value| rewrite_links(value, old, new)),
        _ => {}
    }
}

/// Returns a new identifier of the same format. A number is increased and keeps its number of digits. In a text, each letter or
/// digit is replaced by one of the same kind from the alphabet; a prefix such as `order_` is preserved.
fn next_id(old: &str, number: u64, alphabet: Alphabet) -> String {
    if let Ok(count) = old.parse::<u128>() {
        return format!("{:0width$}", count + u128::from(number), width = old.len());
    }
    let start = old.rfind(|character: char| !character.is_ascii_alphanumeric()).map_or(0, |index| index + 1);
    let start = if old.len() - start < 4 { 0 } else { start };
    if !old.is_ascii() || old.is_empty() {
        return number.to_string();
    }
    let kinds: [fn(&char) -> bool; 3] = [char::is_ascii_digit, char::is_ascii_lowercase, char::is_ascii_uppercase];
    let digest = Sha256::digest(format!("{old} {number}"));
    let characters = old.chars().enumerate().map(|(index, character)| {
        let Some(kind) = kinds.iter().find(|kind| kind(&character)).filter(|_| index >= start) else { return character };
        let mut choices: Vec<char> = old[start..].chars().filter(kind).collect();
        if alphabet == Alphabet::All {
            let is_hexadecimal = choices.iter().all(char::is_ascii_hexdigit);
            let all = ('0'..='z').filter(kind);
            choices = all.filter(|character| !is_hexadecimal || character.is_ascii_hexdigit()).collect();
        }
        choices[usize::from(digest[index % digest.len()]) % choices.len()]
    });
    characters.collect()
}

/// Returns the number of violations of a value. The document's examples may have some: undeclared properties, which a schema
/// allows.
pub fn violation_count(schema: Option<&Schema>, value: &Value) -> usize {
    schema.map_or(0, |schema| schema.violations(value).len())
}

/// Copies those properties of `changes` into `base` that the schema allows. If a property's value is a URI that the schema
/// rejects, its last segment is tried: a reference may be a URI in requests and an identifier in responses. `writeOnly`
/// properties are never copied, because responses don't contain them (OpenAPI 3.0, Schema Object).
///
/// If the schema rejects the changes, each half of them is tried, so that a valid body of any size is validated only once. After
/// [`MAX_MERGE_ATTEMPTS`], the other changes are left out.
pub fn merge(schema: Option<&Schema>, mut base: Value, changes: &Value) -> Value {
    let properties = schema.map(Schema::properties).unwrap_or_default();
    let changes = changes.as_object().into_iter().flatten().filter(|(name, _)| !is_write_only(&properties, name));
    let changes: Vec<_> = changes.map(|(name, value)| (name.clone(), value.clone())).collect();
    let allowed_violations = violation_count(schema, &base);
    let mut attempts = 0..MAX_MERGE_ATTEMPTS;
    let mut pending = vec![changes.as_slice()];
    while let Some(part) = pending.pop() {
        let identifier = match part {
            [(name, Value::String(uri))] => uri.rsplit_once('/').map(|(_, identifier)| [(name.clone(), Value::from(identifier))]),
            _ => None,
        };
        let candidates = [Some(part), identifier.as_ref().map(|identifier| &identifier[..])].into_iter().flatten();
        let merged = candidates.zip(attempts.by_ref()).find_map(|(part, _)| {
            let mut candidate = base.clone();
            candidate.as_object_mut()?.extend(part.iter().cloned());
            (violation_count(schema, &candidate) <= allowed_violations).then_some(candidate)
        });
        match merged {
            Some(merged) => base = merged,
            None if part.len() > 1 => {
                let (first, second) = part.split_at(part.len() / 2);
                pending.extend([second, first]);
            }
            None => {}
        }
    }
    base
}

fn is_write_only(properties: &[(&str, &Value)], name: &str) -> bool {
    properties.iter().any(|(known, property)| *known == name && property["writeOnly"] == true)
}

/// Returns a resource with changes that make it another variant of its schema (`oneOf` or `anyOf`): without the properties that only
/// other variants have. `None` if the changes are valid together with all present properties, or in no variant.
pub fn with_other_variant(schema: &Schema, value: &Value, changes: &Value) -> Option<Value> {
    let properties = schema.properties();
    let changes = changes.as_object()?.iter().filter(|(name, _)| !is_write_only(&properties, name));
    let mut changed = value.clone();
    changed.as_object_mut()?.extend(changes.map(|(name, value)| (name.clone(), value.clone())));
    let allowed_violations = violation_count(Some(schema), value);
    let is_valid = |value: &Value| violation_count(Some(schema), value) <= allowed_violations;
    if is_valid(&changed) {
        return None;
    }
    let variants = schema.variants();
    let names = |variant: &Schema| variant.properties().into_iter().map(|(name, _)| name.to_owned()).collect::<Vec<_>>();
    let names: Vec<Vec<String>> = variants.iter().map(names).collect();
    names.iter().find_map(|own| {
        let is_kept = |name: &String| own.contains(name) || !names.iter().any(|other| other.contains(name));
        let mut variant = changed.clone();
        variant.as_object_mut()?.retain(|name, _| is_kept(name));
        is_valid(&variant).then_some(variant)
    })
}

/// Returns a value that is valid by a schema: the value itself, or else the document's example with the value's properties.
pub fn project_to_schema(schema: &Schema, value: &Value, example: impl FnOnce() -> Option<Value>) -> Option<Value> {
    if violation_count(Some(schema), value) == 0 { Some(value.clone()) } else { Some(merge(Some(schema), example()?, value)) }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn identity_is_from_self_or_property() {
        for (value, id) in [
            (json!({ "self": "/things/7", "id": 8 }), Some("7")),
            (json!({ "id": 8, "thing": "abc" }), Some("abc")),
            (json!({ "id": 8 }), Some("8")),
            (json!({ "name": "x" }), None),
        ] {
            assert_eq!(identity(&value, "thing").as_deref(), id, "{value}");
        }
    }

    #[test]
    fn next_id_keeps_the_format() {
        assert_eq!(next_id("17637000000099", 2, Alphabet::OfIdentifier), "17637000000101");
        assert_eq!(next_id("007", 1, Alphabet::OfIdentifier), "008");
        assert_eq!(next_id("", 3, Alphabet::OfIdentifier), "3");
        for (old, pattern) in [
            ("GH-4K7QW2MZ", "^GH-[4K7QW2MZ]{8}$"),
            ("3f2b8c1e-9d4a-4c6b-8e2f-0a1b2c3d4e5f", "^3f2b8c1e-9d4a-4c6b-8e2f-[0-9a-f]{12}$"),
            ("V8T3HK5N", "^[A-Z][0-9][A-Z][0-9][A-Z]{2}[0-9][A-Z]$"),
        ] {
            let new: Vec<_> = (1..4).map(|number| next_id(old, number, Alphabet::OfIdentifier)).collect();
            assert!(new.iter().all(|new| regex::Regex::new(pattern).unwrap().is_match(new)), "{new:?}");
            assert!(new[0] != new[1] && new[1] != new[2] && new[0] != old, "{new:?}");
        }
    }

    #[test]
    fn assigned_id_replaces_the_old_one_everywhere() {
        let mut value =
            json!({ "self": "/things/7", "id": 7, "count": 7, "parts": [{ "self": "/things/7/parts/1" }], "no": "7" });
        assert_eq!(assign_id(&mut value, "thing", 1, Alphabet::OfIdentifier), "8");
        let expected = json!({ "self": "/things/8", "id": 8, "count": 7, "parts": [{ "self": "/things/8/parts/1" }], "no": "7" });
        assert_eq!(value, expected);
    }

    #[test]
    fn rebase_rewrites_paths_of_the_resource_only() {
        let mut value = json!({
            "owner": { "self": "https://pets.example/owners/1", "id": 1 }, "next": "/owners/12/pets/1", "note": "see /owners/1",
            "pets": [{ "self": "/owners/1/pets/1", "id": 1, "bed": { "self": "/owners/1/beds/1" } }],
        });
        rebase(&mut value, "/owners/1", "/owners/2");
        let expected = json!({
            "owner": { "self": "https://pets.example/owners/2", "id": 2 }, "next": "/owners/12/pets/1", "note": "see /owners/1",
            "pets": [{ "self": "/owners/2/pets/1", "id": 1, "bed": { "self": "/owners/1/beds/1" } }],
        });
        assert_eq!(value, expected);
    }
}
