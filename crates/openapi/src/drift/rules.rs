//! What dropshot 0.18 and schemars 0.8 can't say, or say in their own way: the only leniency of the comparison.
//!
//! Each rule is one item here with its reason. When a newer dropshot can say more, its rule is to be taken out. What
//! can be said with a type of our own that implements `JsonSchema` (formats, `multipleOf`, defaults of parameters …)
//! has no rule.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::document::{Keywords, NOT_BLANK, keywords_of};

/// **Raw bodies.** A body that isn't made from a type (`HttpResponseOk<FreeformBody>`) is emitted as `*/*` with an empty
/// schema. `Response<Body>` hides the status too, and all errors, so no rule admits it.
pub(super) fn is_raw_body(response: &Value) -> bool {
    response["content"].get("*/*").is_some()
}

/// The other half of **raw bodies**: the document gives such a body some media type, but not one that a type can make.
pub(super) fn may_be_raw(media_types: &BTreeMap<&str, &Value>) -> bool {
    !media_types.is_empty() && !media_types.contains_key("application/json")
}

/// **Optional values.** A parameter or header that may be left out is an `Option`, which is emitted as nullable unless
/// its type is a shared schema. Neither a query nor a header can hold a null, so the word means nothing there.
pub(super) fn is_optional(parameter: &Value) -> bool {
    parameter["required"] != Value::Bool(true)
}

/// **Not blank.** What a change may leave out but not blank is an `Option` as well, and so emitted as nullable. But the front
/// door refuses a null there, as the document says. This takes the names of such properties out of the document's schema.
pub(super) fn extract_not_blank<'a>(documented: &mut Keywords<'a>) -> BTreeSet<&'a str> {
    let names = documented.remove(NOT_BLANK).and_then(Value::as_array);
    names.into_iter().flatten().filter_map(Value::as_str).collect()
}

/// Applies **optional values** and **not blank** to the server's schema.
pub(super) fn drop_nullable(served: &mut Keywords) {
    served.remove("nullable");
}

/// **Documented variants.** Where the variants of an enumeration have doc comments, schemars emits a `oneOf` of small
/// enumerations, to have a place for the comments. This takes the values of either form, as JSON, out of the schema.
pub(super) fn extract_enum(schema: &mut Keywords) -> BTreeSet<String> {
    if let Some(values) = schema.remove("enum") {
        return values.as_array().into_iter().flatten().map(Value::to_string).collect();
    }
    let arms = schema.get("oneOf").and_then(|arms| arms.as_array()).map_or(&[][..], Vec::as_slice);
    if arms.is_empty() || !arms.iter().all(is_variant) {
        return BTreeSet::new();
    }
    schema.remove("oneOf");
    schema.insert("type", &arms[0]["type"]);
    arms.iter().filter_map(|arm| arm["enum"].as_array()).flatten().map(Value::to_string).collect()
}

/// **Null among values.** A null is only allowed where an enumeration names it, and schemars never does.
pub(super) fn add_null_variant(served: &Keywords, values: &mut BTreeSet<String>) {
    if served.contains_key("nullable") && !values.is_empty() {
        values.insert(Value::Null.to_string());
    }
}

fn is_variant(arm: &Value) -> bool {
    keywords_of(arm).keys().eq(["enum", "type"].iter()) && arm["type"] == "string"
}

/// **Numbers.** schemars keeps bounds as floating-point numbers: `1.0` is the document's `1`.
pub(super) fn same_value(document: &Value, server: &Value) -> bool {
    match (document, server) {
        (Value::Number(document), Value::Number(server)) => document == server || document.as_f64() == server.as_f64(),
        (Value::Array(document), Value::Array(server)) => {
            document.len() == server.len() && document.iter().zip(server).all(|(d, s)| same_value(d, s))
        }
        _ => document == server,
    }
}
