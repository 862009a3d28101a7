//! One resource: what identifies it, and how it becomes what an answer may be.

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::text;
use boxoffice_openapi::Schema;

/// The properties that may identify a resource that has no `self`, beside that named as the variable of its path.
pub const NAMES: [&str; 4] = ["id", "number", "code", "uuid"];

/// What identifies a resource among those of its collection: the last part of its `self`, else the property that is named as
/// its path's variable, or as an identifier is as a rule.
pub fn identity(value: &Value, variable: &str) -> Option<String> {
    let own = value["self"].as_str().and_then(|uri| uri.rsplit('/').next()).filter(|id| !id.is_empty());
    let named = || [variable].into_iter().chain(NAMES).find_map(|name| text(&value[name]));
    own.map(str::to_owned).or_else(named)
}

/// Gives a resource another identifier of the form that it has, and gives that. `shown` is the one that the document's example
/// has, which may stand in other URIs.
pub fn identified(value: &mut Value, variable: &str, shown: &str, number: u64) -> String {
    let old = identity(value, variable).unwrap_or_default();
    let new = next_id(&old, number);
    rename(value, variable, &old, &new);
    if !shown.is_empty() {
        rewrite_links(value, shown, &new);
    }
    new
}

fn rename(value: &mut Value, variable: &str, old: &str, new: &str) {
    let Some(object) = value.as_object_mut() else { return };
    for name in [variable].into_iter().chain(NAMES) {
        if let Some(property) = object.get_mut(name).filter(|property| text(property).as_deref() == Some(old)) {
            let as_number = new.parse::<u64>().ok().filter(|_| property.is_number());
            *property = as_number.map_or_else(|| Value::from(new), Value::from);
        }
    }
}

/// Puts a path into the place of another where a URI is that or begins with it; what is called so gets the identifier too. Other
/// resources that a resource shows stay: nothing says that there are any such below the new path.
pub fn rebase(value: &mut Value, old: &str, new: &str) {
    let last = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
    let begins = |uri: &str| {
        let start = uri.find(old).filter(|at| *at == 0 || uri[..*at].contains("://"))?;
        matches!(uri.as_bytes().get(start + old.len()), None | Some(b'/')).then_some(start)
    };
    if value["self"].as_str().is_some_and(|uri| uri.ends_with(old) && begins(uri).is_some()) {
        rename(value, "", &last(old), &last(new));
    }
    match value {
        Value::String(uri) => {
            if let Some(start) = begins(uri) {
                uri.replace_range(start..start + old.len(), new);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| rebase(item, old, new)),
        Value::Object(object) => {
            let is_resource = object.contains_key("self");
            let stays = |part: &Value| is_resource && part["self"].as_str().is_some_and(|uri| !uri.ends_with(old));
            object.values_mut().filter(|part| !stays(part)).for_each(|part| rebase(part, old, new));
        }
        _ => {}
    }
}

/// Puts an identifier into the place of another in every URI.
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

/// An identifier of the same form: a number counts on, with as many digits; a text has other characters of those that it has
/// already, of the same kind, behind whatever it begins with (`order_…`).
fn next_id(old: &str, number: u64) -> String {
    if let Ok(count) = old.parse::<u128>() {
        return format!("{:0width$}", count + u128::from(number), width = old.len());
    }
    let start = old.rfind(|character: char| !character.is_ascii_alphanumeric()).map_or(0, |at| at + 1);
    let start = if old.len() - start < 4 { 0 } else { start };
    if !old.is_ascii() || old.is_empty() {
        return number.to_string();
    }
    let kinds: [fn(&char) -> bool; 3] = [char::is_ascii_digit, char::is_ascii_lowercase, char::is_ascii_uppercase];
    let digest = Sha256::digest(format!("{old} {number}"));
    let characters = old.chars().enumerate().map(|(place, character)| {
        let Some(kind) = kinds.iter().find(|kind| kind(&character)).filter(|_| place >= start) else { return character };
        let alike: Vec<char> = old[start..].chars().filter(kind).collect();
        alike[usize::from(digest[place % digest.len()]) % alike.len()]
    });
    characters.collect()
}

/// How many things are wrong with a value. What the document shows may have some that a schema allows: undeclared properties.
pub fn violation_count(schema: Option<&Schema>, value: &Value) -> usize {
    schema.map_or(0, |schema| schema.wrong(value).len())
}

/// A value with those properties of another that it may have, or, where another is a URI, its last segment may be: what refers to
/// something may be sent as one and answered as the other. What is `writeOnly` is never answered (OpenAPI 3.0, Schema Object).
pub fn merge(schema: Option<&Schema>, mut base: Value, with: &Value) -> Value {
    let known = violation_count(schema, &base);
    let described = schema.map(Schema::properties).unwrap_or_default();
    let secrets: Vec<_> =
        described.into_iter().filter(|(_, property)| property["writeOnly"] == true).map(|(name, _)| name).collect();
    for (name, value) in with.as_object().into_iter().flatten().filter(|(name, _)| !secrets.contains(&name.as_str())) {
        let identifier = value.as_str().and_then(|uri| uri.rsplit_once('/')).map(|(_, identifier)| Value::from(identifier));
        for value in [Some(value.clone()), identifier].into_iter().flatten() {
            let Some(object) = base.as_object_mut() else { break };
            let before = object.insert(name.clone(), value);
            if violation_count(schema, &base) <= known {
                break;
            }
            restore(&mut base, name, before);
        }
    }
    base
}

fn restore(base: &mut Value, name: &str, before: Option<Value>) {
    let Some(object): Option<&mut Map<String, Value>> = base.as_object_mut() else { return };
    match before {
        Some(before) => object.insert(name.to_owned(), before),
        None => object.shift_remove(name),
    };
}

/// A value as a schema has it: itself, or what the document shows with its properties.
pub fn project_to_schema(schema: &Schema, value: &Value, shown: impl FnOnce() -> Option<Value>) -> Option<Value> {
    if violation_count(Some(schema), value) == 0 { Some(value.clone()) } else { Some(merge(Some(schema), shown()?, value)) }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_resource_is_identified_by_what_it_has() {
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
    fn a_new_identifier_has_the_form_of_the_old() {
        assert_eq!(next_id("17637000000099", 2), "17637000000101");
        assert_eq!(next_id("007", 1), "008");
        assert_eq!(next_id("", 3), "3");
        for (old, form) in [
            ("GH-4K7QW2MZ", "^GH-[4K7QW2MZ]{8}$"),
            ("3f2b8c1e-9d4a-4c6b-8e2f-0a1b2c3d4e5f", "^3f2b8c1e-9d4a-4c6b-8e2f-[0-9a-f]{12}$"),
            ("V8T3HK5N", "^[A-Z][0-9][A-Z][0-9][A-Z]{2}[0-9][A-Z]$"),
        ] {
            let new: Vec<_> = (1..4).map(|number| next_id(old, number)).collect();
            assert!(new.iter().all(|new| regex::Regex::new(form).unwrap().is_match(new)), "{new:?}");
            assert!(new[0] != new[1] && new[1] != new[2] && new[0] != old, "{new:?}");
        }
    }

    #[test]
    fn a_new_identifier_is_written_wherever_the_old_one_was() {
        let mut value =
            json!({ "self": "/things/7", "id": 7, "count": 7, "parts": [{ "self": "/things/7/parts/1" }], "no": "7" });
        assert_eq!(identified(&mut value, "thing", "7", 1), "8");
        let expected = json!({ "self": "/things/8", "id": 8, "count": 7, "parts": [{ "self": "/things/8/parts/1" }], "no": "7" });
        assert_eq!(value, expected);
    }

    #[test]
    fn what_is_below_another_path_is_written_with_it() {
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
