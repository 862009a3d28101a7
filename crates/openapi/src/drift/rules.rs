//! Rules for the parts of OpenAPI that dropshot 0.18 and schemars 0.8 can't express, or express differently. The comparison makes no
//! other exceptions.
//!
//! Each rule is an item of this module, with its reason. Remove a rule if a newer version of dropshot no longer needs it. A type that
//! implements `JsonSchema` itself can express formats, `multipleOf` or defaults of parameters, so these have no rule.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::document::{Keywords, NOT_BLANK, keywords_of};
use crate::EXTENSIBLE_ENUM;

/// **Raw bodies.** Dropshot generates `*/*` with an empty schema for a body without a type (`HttpResponseOk<FreeformBody>`).
/// `Response<Body>` also hides the status and all errors, so no rule allows it.
pub(super) fn is_raw_body(response: &Value) -> bool {
    response["content"].get("*/*").is_some()
}

/// The document's side of **raw bodies**: any media type except JSON, which has a type.
pub(super) fn may_be_raw(media_types: &BTreeMap<&str, &Value>) -> bool {
    !media_types.is_empty() && !media_types.contains_key("application/json")
}

/// **Optional values.** An optional parameter or header is an `Option`, which schemars makes nullable unless its type is a shared
/// schema. Parameters and headers can't be null, so `nullable` has no effect there.
pub(super) fn is_optional(parameter: &Value) -> bool {
    parameter["required"] != Value::Bool(true)
}

/// **Not blank.** An optional property that must not be blank is an `Option` as well, and so nullable. But the server rejects a null
/// there, as documented. Removes the names of such properties from the document's schema.
pub(super) fn extract_not_blank<'a>(documented: &mut Keywords<'a>) -> BTreeSet<&'a str> {
    let names = documented.remove(NOT_BLANK).and_then(Value::as_array);
    names.into_iter().flatten().filter_map(Value::as_str).collect()
}

/// Applies **optional values** and **not blank** to the server's schema.
pub(super) fn drop_nullable(served: &mut Keywords) {
    served.remove("nullable");
}

/// **Documented variants.** If the variants of an enumeration have doc comments, schemars generates a `oneOf` with an enumeration for
/// each comment. **Lists that may grow.** schemars generates closed lists only; the document has `x-extensible-enum` in responses.
/// **Null among values.** An inline nullable enumeration must contain null, but schemars doesn't add it, and a shared one doesn't
/// have it. `nullable` is compared anyway.
///
/// Removes the values of each form from the schema and returns them as JSON, without null.
pub(super) fn extract_enum(schema: &mut Keywords) -> BTreeSet<String> {
    if let Some(values) = schema.remove("enum").or_else(|| schema.remove(EXTENSIBLE_ENUM)) {
        return values.as_array().into_iter().flatten().filter(|value| !value.is_null()).map(Value::to_string).collect();
    }
    let variants = schema.get("oneOf").and_then(|variants| variants.as_array()).map_or(&[][..], Vec::as_slice);
    if variants.is_empty() || !variants.iter().all(is_variant) {
        return BTreeSet::new();
    }
    schema.remove("oneOf");
    schema.insert("type", &variants[0]["type"]);
    variants.iter().filter_map(|variant| variant["enum"].as_array()).flatten().map(Value::to_string).collect()
}

fn is_variant(schema: &Value) -> bool {
    keywords_of(schema).keys().eq(["enum", "type"].iter()) && schema["type"] == "string"
}

/// **Numbers.** Bounds are floating-point numbers in schemars, so `1.0` equals the document's `1`.
pub(super) fn same_value(document: &Value, server: &Value) -> bool {
    match (document, server) {
        (Value::Number(document), Value::Number(server)) => document == server || document.as_f64() == server.as_f64(),
        (Value::Array(document), Value::Array(server)) => {
            document.len() == server.len() && document.iter().zip(server).all(|(d, s)| same_value(d, s))
        }
        _ => document == server,
    }
}
