//! Conversion of a document to the dialect that the rest of the crate uses, and removal of its broken parts.
//!
//! The dialect is OpenAPI 3.0 with the other keywords of JSON Schema 2020-12. So the schemas of OpenAPI 3.1 and 3.2 are rewritten:
//!
//! | OpenAPI 3.1 | dialect |
//! |---|---|
//! | `type: [string, "null"]` | `type: string`, `nullable: true` |
//! | `type: [string, integer]` | `anyOf: [{ type: string }, { type: integer }]` |
//! | `anyOf: [A, { type: "null" }]` | `allOf: [A]`, `nullable: true` |
//! | `const: 7` | `enum: [7]` |
//! | `examples: [7, 8]` | `example: 7` |
//! | `$ref` with other keywords | `allOf: [{ $ref }]` with other keywords |
//! | `contentEncoding: base64` | `format: byte` |
//!
//! Real documents have mistakes. A keyword with an invalid value and a reference without a target are removed, each with a warning,
//! so that the rest of the document is usable.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::{Map, Value, json};

use crate::resolver::{collect_references, escape, has_names, is_data, target};
use crate::schema::{SubschemaForm, compile, subschema_form};
use crate::source::readable;
use crate::{cycles, subtypes};

/// The types of JSON Schema, except `null`.
const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];

/// Keywords that only schemas have, as do those with subschemas. `required`, `description`, `example`, `default` and `deprecated` are not
/// among them.
const SCHEMA_KEYWORDS: [&str; 24] = [
    "const",
    "contentEncoding",
    "contentMediaType",
    "dependentRequired",
    "enum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "maxContains",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minContains",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "nullable",
    "pattern",
    "readOnly",
    "uniqueItems",
    "writeOnly",
];

/// Keywords whose values contain parts of other kinds than schemas, or references to them.
const REFERENCE_OBJECTS: [&str; 8] =
    ["parameters", "headers", "responses", "requestBody", "requestBodies", "examples", "links", "callbacks"];

/// Keywords that identify a schema for references, and have no meaning in this dialect. `$id` would change the base of references.
/// `$recursiveRef` is of an earlier draft.
const IDENTIFIERS: [&str; 8] =
    ["$anchor", "$comment", "$dynamicAnchor", "$id", "$recursiveAnchor", "$recursiveRef", "$schema", "$vocabulary"];

/// Converts a document of this version in place. Returns a warning for each part that was removed.
pub fn convert(document: &mut Value, version: &str) -> Vec<String> {
    let is_3_1 = !version.starts_with("3.0");
    let mut converter = Converter { is_3_1, pattern_errors: HashMap::new(), warnings: Vec::new() };
    converter.convert(document, false, &Location { parent: None, step: Step::Name(""), keyword: "" }, None);
    remove_broken_references(document, &mut converter.warnings);
    subtypes::add_branches(document);
    cycles::remove(document, &mut converter.warnings);
    converter.warnings
}

/// A location in the document. It becomes a JSON pointer only for warnings.
struct Location<'a> {
    parent: Option<&'a Location<'a>>,
    step: Step<'a>,
    /// The nearest keyword on the way: `headers` at `/headers/X-Size`.
    keyword: &'a str,
}

enum Step<'a> {
    Name(&'a str),
    Index(usize),
}

impl Location<'_> {
    fn pointer(&self) -> String {
        let Some(parent) = self.parent else { return String::new() };
        match self.step {
            Step::Name(name) => format!("{}/{}", parent.pointer(), escape(name)),
            Step::Index(index) => format!("{}/{index}", parent.pointer()),
        }
    }
}

struct Converter {
    /// True for OpenAPI 3.1 and later. OpenAPI 3.0 ignores all keywords beside a reference.
    is_3_1: bool,
    /// The compiler's error for each pattern.
    pattern_errors: HashMap<String, Option<String>>,
    warnings: Vec<String>,
}

impl Converter {
    /// Converts a value. `is_map` is true if its keys are names. `definitions` is the nearest schema with `$defs` around it.
    fn convert(&mut self, value: &mut Value, is_map: bool, at: &Location<'_>, definitions: Option<&Location<'_>>) {
        match value {
            Value::Object(object) => {
                let definitions = if object.contains_key("$defs") && at.parent.is_some() { Some(at) } else { definitions };
                if !is_map {
                    self.convert_node(object, at, definitions);
                }
                for (key, value) in object.iter_mut().filter(|(key, _)| !is_data(key, is_map)) {
                    let keyword: &str = if is_map { at.keyword } else { key };
                    let at = Location { parent: Some(at), step: Step::Name(key), keyword };
                    self.convert(value, has_names(key, is_map), &at, definitions);
                }
            }
            Value::Array(items) => {
                for (index, item) in items.iter_mut().enumerate() {
                    let at = Location { parent: Some(at), step: Step::Index(index), keyword: at.keyword };
                    self.convert(item, false, &at, definitions);
                }
            }
            _ => {}
        }
    }

    /// Converts the keywords of a node whose keys are keywords.
    fn convert_node(&mut self, node: &mut Map<String, Value>, at: &Location<'_>, definitions: Option<&Location<'_>>) {
        if let Some(pattern) = node.get("pattern").and_then(Value::as_str) {
            let compile_error = || compile(&json!({ "pattern": pattern })).err().map(|error| format!("{error:#}"));
            if let Some(error) = self.pattern_errors.entry(pattern.to_owned()).or_insert_with(compile_error) {
                self.warnings.push(format!("the pattern at {}/pattern is not checked: {error}", readable(&at.pointer())));
                node.remove("pattern");
            }
        }
        if node.get("externalValue").is_some_and(Value::is_string) {
            let pointer = readable(&at.pointer());
            self.warnings
                .push(format!("the example at {pointer} is not served: put its externalValue into the document, as `value`"));
        }
        convert_example(node);
        convert_item_schema(node);
        if node.contains_key("$ref") {
            // Keywords beside a reference have a meaning in schemas only.
            convert_reference(node, self.is_3_1 && !REFERENCE_OBJECTS.contains(&at.keyword), definitions);
        }
        if is_schema(node, at.keyword) {
            if self.is_3_1 {
                // A keyword of OpenAPI 3.0 only. The conversion of types adds it again.
                node.shift_remove("nullable");
            }
            self.remove_invalid_keywords(node, at);
            convert_schema(node);
            subtypes::restrict_branches(node);
        }
    }

    /// Removes the keywords of a schema whose values are invalid, and corrects frequent mistakes.
    fn remove_invalid_keywords(&mut self, schema: &mut Map<String, Value>, at: &Location<'_>) {
        correct_mistakes(schema, at.keyword);
        let invalid = schema.iter().filter(|(keyword, value)| !is_valid_keyword(keyword, value));
        let invalid: Vec<String> = invalid.map(|(keyword, _)| keyword.clone()).collect();
        for keyword in invalid {
            let value = schema.shift_remove(&keyword).unwrap_or_default();
            let value: String = value.to_string().chars().take(60).collect();
            self.warnings.push(format!("{keyword} at {} is ignored: it can't be {value}", readable(&at.pointer())));
        }
    }
}

/// Returns whether a keyword belongs to schemas only.
fn is_schema_keyword(keyword: &str) -> bool {
    SCHEMA_KEYWORDS.contains(&keyword) || subschema_form(keyword).is_some()
}

/// Returns whether a node is a schema. `keyword` is the nearest one on the way to it. A parameter has some of the same keywords in old
/// documents.
fn is_schema(node: &Map<String, Value>, keyword: &str) -> bool {
    let is_place_of_schema = ["schema", "schemas"].contains(&keyword) || subschema_form(keyword).is_some();
    let has_type = match node.get("type") {
        Some(_) if is_place_of_schema => true,
        Some(Value::String(kind)) => TYPES.contains(&kind.as_str()) || ["any", "file", "null"].contains(&kind.as_str()),
        Some(Value::Array(_)) => true,
        _ => false,
    };
    !node.contains_key("in") && (has_type || node.keys().any(|keyword| is_schema_keyword(keyword)))
}

/// Returns whether a keyword of a schema may have this value.
fn is_valid_keyword(keyword: &str, value: &Value) -> bool {
    let is_subschema = |value: &Value| value.is_object() || value.is_boolean();
    let is_list_of_names = |value: &Value| value.as_array().is_some_and(|names| names.iter().all(Value::is_string));
    let is_type = |value: &Value| value.as_str().is_some_and(|kind| TYPES.contains(&kind) || kind == "null");
    match keyword {
        "type" => is_type(value) || value.as_array().is_some_and(|kinds| kinds.iter().all(is_type)),
        "multipleOf" => value.as_f64().is_some_and(|step| step > 0.0),
        "minimum" | "maximum" => value.is_number(),
        "exclusiveMinimum" | "exclusiveMaximum" => value.is_number() || value.is_boolean(),
        "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties" | "minContains"
        | "maxContains" => value.as_f64().is_some_and(|count| count >= 0.0 && count.fract() == 0.0),
        "uniqueItems" | "nullable" | "readOnly" | "writeOnly" | "deprecated" => value.is_boolean(),
        "pattern" | "format" | "title" | "description" => value.is_string(),
        "required" => is_list_of_names(value),
        "enum" => value.is_array(),
        "dependentRequired" => value.as_object().is_some_and(|named| named.values().all(is_list_of_names)),
        _ => match subschema_form(keyword) {
            Some(SubschemaForm::List) => {
                value.as_array().is_some_and(|branches| !branches.is_empty() && branches.iter().all(is_subschema))
            }
            Some(SubschemaForm::Named) => value.as_object().is_some_and(|named| named.values().all(is_subschema)),
            Some(SubschemaForm::Single) => is_subschema(value),
            None => true,
        },
    }
}

/// Corrects mistakes with an evident meaning. `keyword` is the nearest one on the way to the schema.
fn correct_mistakes(schema: &mut Map<String, Value>, keyword: &str) {
    // The type null without quotes is another value in YAML. An empty `type:` is the same value, but has no meaning in most places.
    let is_alternative = ["anyOf", "oneOf"].contains(&keyword) && schema.len() == 1;
    match schema.get_mut("type") {
        Some(kind @ Value::Null) if is_alternative => *kind = json!("null"),
        Some(Value::Array(kinds)) => kinds.iter_mut().filter(|kind| kind.is_null()).for_each(|kind| *kind = json!("null")),
        _ => {}
    }
    match schema.get("type").and_then(Value::as_str) {
        Some("any") => drop(schema.shift_remove("type")),
        // The type of an uploaded or downloaded file in Swagger 2.0.
        Some("file") => {
            schema.insert("type".to_owned(), json!("string"));
            schema.entry("format").or_insert(json!("binary"));
        }
        _ => {}
    }
    // A boolean `required` belongs to a parameter. At a schema it has no meaning.
    if schema.get("required").is_some_and(Value::is_boolean) {
        schema.shift_remove("required");
    }
    if let Some(Value::Array(names)) = schema.get_mut("required") {
        let mut seen = BTreeSet::new();
        names.retain(|name| name.as_str().is_none_or(|name| seen.insert(name.to_owned())));
    }
    for keyword in ["properties", "patternProperties", "$defs"] {
        for property in schema.get_mut(keyword).and_then(Value::as_object_mut).into_iter().flat_map(Map::values_mut) {
            if property.is_null() {
                *property = json!({});
            }
        }
    }
    for (keyword, value) in schema.iter_mut() {
        let is_number = keyword.starts_with("min") || keyword.starts_with("max") || keyword == "multipleOf";
        let is_flag = ["nullable", "readOnly", "writeOnly", "uniqueItems", "deprecated"].contains(&keyword.as_str());
        let is_text = keyword == "title" || keyword == "description";
        let corrected = match value {
            Value::String(text) if is_number || is_flag => serde_json::from_str::<Value>(text).ok(),
            Value::Null if keyword == "items" || keyword == "additionalProperties" => Some(json!({})),
            // The items of a tuple, in JSON Schema before 2020-12.
            Value::Array(items) if keyword == "items" && items.len() == 1 => items.first().cloned(),
            Value::Array(items) if keyword == "items" && !items.is_empty() => Some(json!({ "anyOf": items })),
            Value::Null | Value::Bool(_) | Value::Number(_) if is_text => Some(json!("")),
            _ => None,
        };
        if let Some(corrected) = corrected {
            *value = corrected;
        }
    }
}

/// Converts the keywords of a schema of OpenAPI 3.1.
fn convert_schema(schema: &mut Map<String, Value>) {
    for identifier in IDENTIFIERS {
        if schema.get(identifier).is_some_and(|value| !value.is_object() || identifier == "$vocabulary") {
            schema.shift_remove(identifier);
        }
    }
    if let Some(value) = schema.shift_remove("const") {
        restrict_to(schema, value);
    }
    convert_type(schema);
    for keyword in ["anyOf", "oneOf"] {
        convert_null_branch(schema, keyword);
    }
    let media_type = schema.get("contentMediaType").and_then(Value::as_str).unwrap_or_default();
    let format = match schema.get("contentEncoding").and_then(Value::as_str) {
        Some("base64") => Some("byte"),
        None if media_type == "application/octet-stream" || media_type.starts_with("image/") => Some("binary"),
        _ => None,
    };
    if let Some(format) = format {
        schema.entry("format").or_insert(json!(format));
    }
}

/// Converts `type: "null"` and lists of types.
fn convert_type(schema: &mut Map<String, Value>) {
    let kinds = match schema.get("type") {
        Some(Value::Array(kinds)) => kinds.clone(),
        Some(Value::String(kind)) if kind == "null" => vec![json!("null")],
        _ => return,
    };
    schema.shift_remove("type");
    let is_nullable = kinds.iter().any(|kind| kind == "null");
    if is_nullable && ["allOf", "anyOf", "oneOf", "not", "if"].iter().any(|keyword| schema.contains_key(*keyword)) {
        // `nullable` would allow null although another keyword excludes it.
        return add_to_all_of(schema, json!({ "type": kinds }));
    }
    // An enumeration without null excludes it.
    if is_nullable && allows_null(schema) {
        schema.insert("nullable".to_owned(), json!(true));
    }
    let kinds: BTreeSet<&str> = kinds.iter().filter_map(Value::as_str).filter(|kind| TYPES.contains(kind)).collect();
    let kinds: Vec<&str> = kinds.into_iter().collect();
    match kinds.as_slice() {
        [] if is_nullable => restrict_to(schema, Value::Null),
        [] => {}
        [kind] => drop(schema.insert("type".to_owned(), json!(kind))),
        kinds => {
            let branches = json!({ "anyOf": kinds.iter().map(|kind| json!({ "type": kind })).collect::<Vec<_>>() });
            add_to_all_of(schema, branches);
        }
    }
}

/// Allows a schema only one value, or none if its enumeration excludes that.
fn restrict_to(schema: &mut Map<String, Value>, value: Value) {
    let is_excluded = schema.get("enum").and_then(Value::as_array).is_some_and(|values| !values.contains(&value));
    let values = if is_excluded { json!([]) } else { json!([value]) };
    schema.insert("enum".to_owned(), values);
}

/// Returns whether neither the type of a schema, after the conversion of lists of types, nor its enumeration excludes null.
fn allows_null(schema: &Map<String, Value>) -> bool {
    !schema.contains_key("type")
        && schema.get("enum").and_then(Value::as_array).is_none_or(|values| values.contains(&Value::Null))
}

/// Returns whether the type of a branch allows null; `None` if it has no type.
fn type_allows_null(branch: &Value) -> Option<bool> {
    let kind = branch.get("type")?;
    Some(kind == "null" || kind.as_array().is_some_and(|kinds| kinds.contains(&json!("null"))))
}

/// Returns whether the values that a branch lists contain null; `None` if it lists none.
fn values_allow_null(branch: &Value) -> Option<bool> {
    let values = branch.get("enum").map(|values| values.as_array().is_some_and(|values| values.contains(&Value::Null)));
    values.or_else(|| branch.get("const").map(Value::is_null))
}

/// Returns whether a branch allows null and nothing else.
fn is_null(branch: &Value) -> bool {
    let is_null_type = branch["type"] == "null" || branch["type"] == json!(["null"]);
    let is_null_value = branch["enum"] == json!([null]) || branch.get("const").is_some_and(Value::is_null);
    let has_subschemas = branch.as_object().is_some_and(|branch| branch.keys().any(|keyword| subschema_form(keyword).is_some()));
    let excludes_null = type_allows_null(branch) == Some(false) || values_allow_null(branch) == Some(false);
    (is_null_type || is_null_value) && !has_subschemas && !excludes_null
}

/// Returns whether a branch evidently allows null, among others. The targets of references are not considered.
fn may_be_null(branch: &Value) -> bool {
    let is_composed = ["$ref", "allOf", "anyOf", "oneOf", "not", "if"].iter().any(|keyword| branch.get(keyword).is_some());
    let (kind, values) = (type_allows_null(branch), values_allow_null(branch));
    branch != false && !is_composed && kind.unwrap_or(true) && values.unwrap_or(true)
}

/// Removes the branch of `anyOf` or `oneOf` that allows only null, and makes the schema nullable instead. That would allow null
/// although another keyword, or in `oneOf` another branch, excludes it: such a schema remains as it is.
fn convert_null_branch(schema: &mut Map<String, Value>, keyword: &str) {
    let mut others = ["allOf", "anyOf", "oneOf", "not", "if"].into_iter().filter(|other| *other != keyword);
    let is_restricted = others.any(|other| schema.contains_key(other));
    let Some(Value::Array(branches)) = schema.get_mut(keyword) else { return };
    let null_count = branches.iter().filter(|branch| is_null(branch)).count();
    let is_ambiguous = keyword == "oneOf" && branches.iter().filter(|branch| may_be_null(branch)).count() > 1;
    if null_count == 0 || is_restricted || is_ambiguous {
        return;
    }
    branches.retain(|branch| !is_null(branch));
    let branches = std::mem::take(branches);
    if allows_null(schema) {
        schema.insert("nullable".to_owned(), json!(true));
    }
    match branches.as_slice() {
        [] => {
            schema.shift_remove(keyword);
            restrict_to(schema, Value::Null);
        }
        [branch] => {
            schema.shift_remove(keyword);
            add_to_all_of(schema, branch.clone());
        }
        _ => drop(schema.insert(keyword.to_owned(), branches.into())),
    }
}

fn add_to_all_of(schema: &mut Map<String, Value>, branch: Value) {
    match schema.entry("allOf").or_insert(json!([])) {
        Value::Array(branches) => branches.push(branch),
        other => *other = json!([branch]),
    }
}

/// Converts the examples of a schema, which are a list in OpenAPI 3.1, and those of an Example Object of OpenAPI 3.2.
fn convert_example(node: &mut Map<String, Value>) {
    if let Some(Value::Array(examples)) = node.get_mut("examples") {
        let first = if examples.is_empty() { None } else { Some(examples.swap_remove(0)) };
        node.shift_remove("examples");
        if let Some(first) = first {
            node.entry("example").or_insert(first);
        }
    }
    for keyword in ["dataValue", "serializedValue"] {
        if let Some(value) = node.shift_remove(keyword) {
            node.entry("value").or_insert(value);
        }
    }
}

/// Converts the schema of each item of a stream (OpenAPI 3.2, Media Type Object) to the schema of a list.
fn convert_item_schema(node: &mut Map<String, Value>) {
    if let Some(item) = node.shift_remove("itemSchema") {
        node.entry("schema").or_insert(json!({ "type": "array", "minItems": 1, "items": item }));
    }
}

/// Converts a reference with other keywords, and one to the `$defs` of the schema around it.
fn convert_reference(node: &mut Map<String, Value>, extends_references: bool, definitions: Option<&Location<'_>>) {
    if let (Some(Value::String(reference)), Some(definitions)) = (node.get_mut("$ref"), definitions)
        && reference.starts_with("#/$defs/")
    {
        *reference = format!("#{}{}", definitions.pointer(), &reference[1..]);
    }
    let is_applied = |keyword: &str| is_schema_keyword(keyword) || ["default", "example", "required", "type"].contains(&keyword);
    let has_more = extends_references && node.keys().any(|keyword| is_applied(keyword));
    if has_more && let Some(reference) = node.shift_remove("$ref") {
        add_to_all_of(node, json!({ "$ref": reference }));
    }
}

/// Removes the references without a target. The schema then allows every value.
fn remove_broken_references(document: &mut Value, warnings: &mut Vec<String>) {
    let mut references = Default::default();
    collect_references(document, false, &mut references);
    let broken = references.into_iter().filter_map(|reference| Some((reference.to_owned(), target(document, reference).err()?)));
    let broken: HashMap<String, anyhow::Error> = broken.collect();
    if broken.is_empty() {
        return;
    }
    let mut places = BTreeMap::new();
    remove_references(document, false, "", &broken, &mut places);
    for (reference, places) in places {
        let more = if places.len() > 1 { format!(" ({} more)", places.len() - 1) } else { String::new() };
        warnings.push(format!("{}{more}: {:#}", readable(&places[0]), broken[&reference]));
    }
}

/// Removes the broken references in the value at `pointer`, and adds the places of each.
fn remove_references(
    value: &mut Value,
    is_map: bool,
    pointer: &str,
    broken: &HashMap<String, anyhow::Error>,
    places: &mut BTreeMap<String, Vec<String>>,
) {
    match value {
        Value::Object(object) => {
            let reference = object.get("$ref").and_then(Value::as_str).filter(|target| !is_map && broken.contains_key(*target));
            if let Some(reference) = reference.map(str::to_owned) {
                places.entry(reference).or_default().push(pointer.to_owned());
                object.shift_remove("$ref");
            }
            for (key, value) in object.iter_mut().filter(|(key, _)| !is_data(key, is_map)) {
                remove_references(value, has_names(key, is_map), &format!("{pointer}/{}", escape(key)), broken, places);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                remove_references(item, false, &format!("{pointer}/{index}"), broken, places);
            }
        }
        _ => {}
    }
}
