//! The kinds of change. Each is a function from a node to the changed node, or to `None` if it doesn't apply.

use boxoffice_openapi::EXTENSIBLE_ENUM;
use serde_json::{Map, Value, json};

use super::sites::{Context, Kind, Site, is_method};

/// Returns the changed node, or `None` if the change doesn't apply.
type Apply = dyn Fn(&Value, &Site) -> Option<Value>;

pub struct Change {
    pub name: String,
    pub kind: Kind,
    pub apply: Box<Apply>,
}

/// Returns every kind of change.
pub fn all() -> Vec<Change> {
    let mut changes = Vec::new();
    paths(&mut changes);
    operations(&mut changes);
    parameters(&mut changes);
    bodies(&mut changes);
    keywords(&mut changes);
    flags(&mut changes);
    types(&mut changes);
    members(&mut changes);
    changes
}

fn add(changes: &mut Vec<Change>, kind: Kind, name: impl Into<String>, apply: impl Fn(&Value, &Site) -> Option<Value> + 'static) {
    changes.push(Change { name: name.into(), kind, apply: Box::new(apply) });
}

fn paths(changes: &mut Vec<Change>) {
    add(changes, Kind::Paths, "path renamed", |paths, _| rename_first(paths, |_| true, |path| format!("{path}-other")));
    add(changes, Kind::Paths, "path variable renamed", |paths, _| {
        rename_first(paths, |path| path.contains('{'), |path| path.replacen('{', "{other_", 1))
    });
    add(changes, Kind::Paths, "path variable made a literal", |paths, _| {
        rename_first(paths, |path| path.contains('{'), |path| path.replacen('{', "", 1).replacen('}', "", 1))
    });
    add(changes, Kind::PathItem, "operation removed", |item, _| without(item, first_method(item)?));
    add(changes, Kind::PathItem, "operation added", |item, _| {
        let operation = set(&item[first_method(item)?], "operationId", json!("added"));
        set_new(item, "patch", operation)
    });
    add(changes, Kind::PathItem, "method changed", |item, _| {
        let method = first_method(item)?;
        set_new(&without(item, method)?, "patch", item[method].clone())
    });
}

fn operations(changes: &mut Vec<Change>) {
    let kind = Kind::Operation;
    add(changes, kind, "operationId changed", |node, _| Some(set(node, "operationId", json!("other"))));
    add(changes, kind, "operationId removed", |node, _| without(node, "operationId"));
    add(changes, kind, "tag changed", |node, _| Some(set(node, "tags", json!(["Other"]))));
    add(changes, kind, "tag added", |node, _| replace(node, "tags", |tags| push(tags, json!("Other"))));
    add(changes, kind, "tags removed", |node, _| without(node, "tags"));
    add(changes, kind, "deprecated flipped", |node, _| Some(flip(node, "deprecated")));
    for place in ["query", "header", "path"] {
        add(changes, kind, format!("{place} parameter added"), move |node, _| {
            let parameter = json!({"name": "added", "in": place, "schema": {"type": "string"}});
            let own = node.get("parameters").cloned().unwrap_or(json!([]));
            Some(set(node, "parameters", push(&own, parameter)?))
        });
    }
    add(changes, kind, "parameter removed", |node, _| {
        let kept = node["parameters"].as_array()?.split_last()?.1;
        (!kept.is_empty()).then(|| set(node, "parameters", json!(kept)))
    });
    add(changes, kind, "security emptied", |node, _| (node["security"] != json!([])).then(|| set(node, "security", json!([]))));
    add(changes, kind, "security removed", |node, _| without(node, "security"));
    add(changes, kind, "request body removed", |node, _| without(node, "requestBody"));
    add(changes, kind, "request body added", |node, _| {
        let body = json!({"required": true, "content": {"application/json": {"schema": {"type": "object"}}}});
        set_new(node, "requestBody", body)
    });
    for (what, first) in [("success", "2"), ("4xx", "4"), ("5xx", "5")] {
        let is_one = move |status: &str| status.starts_with(first);
        add(changes, kind, format!("{what} status removed"), move |node, _| {
            let status = node["responses"].as_object()?.keys().find(|status| is_one(status))?;
            replace(node, "responses", |responses| without(responses, status))
        });
        add(changes, kind, format!("{what} status changed"), move |node, _| {
            replace(node, "responses", |responses| rename_first(responses, is_one, |_| format!("{first}26")))
        });
        add(changes, kind, format!("{what} status added"), move |node, _| {
            let response = node["responses"].as_object()?.iter().find(|(status, _)| is_one(status))?.1;
            replace(node, "responses", |responses| set_new(responses, &format!("{first}26"), response.clone()))
        });
    }
}

fn parameters(changes: &mut Vec<Change>) {
    let kind = Kind::Parameter;
    add(changes, kind, "parameter renamed", |node, _| Some(set(node, "name", json!("other"))));
    add(changes, kind, "parameter moved", |node, _| {
        let place = if node["in"] == "query" { "header" } else { "query" };
        Some(set(node, "in", json!(place)))
    });
    add(changes, kind, "parameter required flipped", |node, _| Some(flip(node, "required")));
    add(changes, kind, "parameter style changed", |node, _| Some(set(node, "style", json!("label"))));
    add(changes, kind, "parameter deprecated flipped", |node, _| Some(flip(node, "deprecated")));
    add(changes, kind, "parameter schema removed", |node, _| without(node, "schema"));
    let kind = Kind::Header;
    add(changes, kind, "header required flipped", |node, _| Some(flip(node, "required")));
    add(changes, kind, "header schema removed", |node, _| without(node, "schema"));
}

fn bodies(changes: &mut Vec<Change>) {
    add(changes, Kind::RequestBody, "request body required flipped", |node, _| Some(flip(node, "required")));
    for kind in [Kind::RequestBody, Kind::Response] {
        add(changes, kind, "media type changed", |node, _| {
            let json = |media_type: &str| media_type == "application/json";
            replace(node, "content", |content| rename_first(content, json, |_| "text/csv".to_owned()))
        });
        add(changes, kind, "media type added", |node, _| {
            is_json(node).then_some(())?;
            replace(node, "content", |content| set_new(content, "text/csv", json!({"schema": {"type": "string"}})))
        });
        add(changes, kind, "body schema replaced", |node, _| {
            is_json(node).then_some(())?;
            Some(set(node, "content", json!({"application/json": {"schema": {"type": "string", "format": "other"}}})))
        });
        add(changes, kind, "body schema removed", |node, _| {
            is_json(node).then(|| set(node, "content", json!({"application/json": {}})))
        });
        add(changes, kind, "content removed", |node, _| without(node, "content"));
    }
    add(changes, Kind::Response, "content added", |node, site| {
        (site.context == Context::Success).then_some(())?;
        set_new(node, "content", json!({"application/json": {"schema": {"type": "string"}}}))
    });
    add(changes, Kind::Response, "header added", |node, _| {
        let headers = node.get("headers").cloned().unwrap_or(json!({}));
        Some(set(node, "headers", set(&headers, "X-Added", json!({"schema": {"type": "string"}}))))
    });
    add(changes, Kind::Response, "header removed", |node, _| without(node, "headers"));
    add(changes, Kind::Response, "header renamed", |node, _| {
        replace(node, "headers", |headers| rename_first(headers, |_| true, |name| format!("{name}-Other")))
    });
}

/// Keywords with a value: each is changed or removed where it exists, and added where its type allows it.
fn keywords(changes: &mut Vec<Change>) {
    let keywords = [
        ("format", "string", json!("other")),
        ("format", "number", json!("other")),
        ("format", "integer", json!("int32")),
        ("pattern", "string", json!("^other$")),
        ("minLength", "string", json!(7)),
        ("maxLength", "string", json!(777)),
        ("minimum", "integer", json!(-7)),
        ("maximum", "integer", json!(777)),
        ("minimum", "number", json!(-0.7)),
        ("maximum", "number", json!(777.7)),
        ("multipleOf", "integer", json!(7)),
        ("multipleOf", "number", json!(0.07)),
        ("minItems", "array", json!(7)),
        ("maxItems", "array", json!(777)),
        ("minProperties", "object", json!(7)),
        ("maxProperties", "object", json!(777)),
        ("default", "integer", json!(7)),
        ("default", "string", json!("other")),
    ];
    for (keyword, of_type, other) in keywords {
        let name = |what: &str| format!("{keyword} of {of_type} {what}");
        let value = other.clone();
        add(changes, Kind::Schema, name("changed"), move |node, site| {
            let fits = node["type"] == of_type && node.get(keyword).is_some() && is_open(keyword, site);
            fits.then(|| set(node, keyword, value.clone()))
        });
        add(changes, Kind::Schema, name("removed"), move |node, site| {
            (node["type"] == of_type && is_open(keyword, site)).then(|| without(node, keyword))?
        });
        add(changes, Kind::Schema, name("added"), move |node, site| {
            (node["type"] == of_type && is_open(keyword, site)).then(|| set_new(node, keyword, other.clone()))?
        });
    }
}

fn flags(changes: &mut Vec<Change>) {
    let kind = Kind::Schema;
    add(changes, kind, "nullable added", |node, site| {
        (is_open("nullable", site) && node["nullable"] != true).then(|| set(node, "nullable", json!(true)))
    });
    add(changes, kind, "nullable removed", |node, site| is_open("nullable", site).then(|| without(node, "nullable"))?);
    for (flag, of_type) in
        [("uniqueItems", "array"), ("exclusiveMinimum", "number"), ("exclusiveMaximum", "number"), ("readOnly", "string")]
    {
        add(changes, kind, format!("{flag} flipped"), move |node, _| (node["type"] == of_type).then(|| flip(node, flag)));
    }
}

fn types(changes: &mut Vec<Change>) {
    let kind = Kind::Schema;
    for (from, to) in [
        ("string", "integer"),
        ("integer", "number"),
        ("number", "integer"),
        ("boolean", "string"),
        ("array", "string"),
        ("object", "array"),
    ] {
        add(changes, kind, format!("type {from} changed"), move |node, _| {
            (node["type"] == from).then(|| set(node, "type", json!(to)))
        });
    }
    add(changes, kind, "type removed", |node, site| (!site.wrapped).then(|| without(node, "type"))?);
    add(changes, kind, "enum value added", |node, _| replace(node, list_of(node)?, |values| push(values, json!("added"))));
    add(changes, kind, "enum value removed", |node, _| {
        let kept = node[list_of(node)?].as_array()?.split_last()?.1;
        Some(set(node, list_of(node)?, json!(kept)))
    });
    add(changes, kind, "enum value changed", |node, _| {
        let kept = node[list_of(node)?].as_array()?.split_last()?.1;
        Some(set(node, list_of(node)?, push(&json!(kept), json!("other"))?))
    });
    add(changes, kind, "enum removed", |node, _| without(node, list_of(node)?));
    add(changes, kind, "enum added", |node, _| {
        (node["type"] == "string").then(|| set_new(node, "enum", json!(["one", "two"])))?
    });
}

/// Returns the keyword of a list of values, which may be closed or extensible.
fn list_of(node: &Value) -> Option<&'static str> {
    ["enum", EXTENSIBLE_ENUM].into_iter().find(|keyword| node.get(keyword).is_some())
}

/// Members of schemas: properties, items, alternatives.
fn members(changes: &mut Vec<Change>) {
    let kind = Kind::Schema;
    add(changes, kind, "property renamed", |node, _| {
        replace(node, "properties", |all| rename_first(all, |_| true, |name| format!("{name}Other")))
    });
    add(changes, kind, "property removed", |node, _| {
        let first = node["properties"].as_object()?.keys().next()?;
        replace(node, "properties", |all| without(all, first))
    });
    add(changes, kind, "property added", |node, _| {
        replace(node, "properties", |all| set_new(all, "added", json!({"type": "string"})))
    });
    add(changes, kind, "property schema replaced", |node, _| {
        let last = node["properties"].as_object()?.keys().next_back()?;
        replace(node, "properties", |all| Some(set(all, last, json!({"type": "string", "format": "other"}))))
    });
    add(changes, kind, "required dropped", |node, _| {
        let kept = node["required"].as_array()?.split_last()?.1;
        Some(set(node, "required", json!(kept)))
    });
    add(changes, kind, "required added", |node, _| {
        let required = node.get("required").cloned().unwrap_or(json!([]));
        let optional = node["properties"].as_object()?.keys().find(|name| !contains(&required, name))?;
        Some(set(node, "required", push(&required, json!(optional))?))
    });
    add(changes, kind, "required removed", |node, _| without(node, "required"));
    for keyword in ["items", "additionalProperties"] {
        add(changes, kind, format!("{keyword} replaced"), move |node, _| {
            replace(node, keyword, |_| Some(json!({"type": "string", "format": "other"})))
        });
        add(changes, kind, format!("{keyword} emptied"), move |node, _| replace(node, keyword, |_| Some(json!({}))));
        add(changes, kind, format!("{keyword} removed"), move |node, _| without(node, keyword));
    }
    add(changes, kind, "additionalProperties forbidden", |node, _| {
        (node["type"] == "object").then(|| set(node, "additionalProperties", json!(false)))
    });
    add(changes, kind, "alternative removed", |node, _| {
        let kept = node["anyOf"].as_array()?.split_last()?.1;
        Some(set(node, "anyOf", json!(kept)))
    });
    add(changes, kind, "wrapper emptied", |node, _| node.get("allOf").map(|_| set(node, "allOf", json!([{}]))));
}

/// Returns whether a keyword is effective at this site, and not hidden by the same keyword of a wrapper.
fn is_open(keyword: &str, site: &Site) -> bool {
    !site.wrapped || !["nullable", "default"].contains(&keyword)
}

fn is_json(body: &Value) -> bool {
    body["content"].get("application/json").is_some()
}

fn first_method(item: &Value) -> Option<&str> {
    item.as_object()?.keys().map(String::as_str).find(|key| is_method(key))
}

fn contains(list: &Value, text: &str) -> bool {
    list.as_array().into_iter().flatten().any(|member| member == text)
}

fn set(node: &Value, key: &str, value: Value) -> Value {
    let mut node = node.clone();
    node[key] = value;
    node
}

/// Sets a key that doesn't exist.
fn set_new(node: &Value, key: &str, value: Value) -> Option<Value> {
    node.get(key).is_none().then(|| set(node, key, value))
}

fn without(node: &Value, key: &str) -> Option<Value> {
    let mut map = node.as_object()?.clone();
    map.shift_remove(key)?;
    Some(Value::Object(map))
}

/// Changes the value of a key, if it exists.
fn replace(node: &Value, key: &str, change: impl FnOnce(&Value) -> Option<Value>) -> Option<Value> {
    Some(set(node, key, change(node.get(key)?)?))
}

fn flip(node: &Value, flag: &str) -> Value {
    set(node, flag, json!(node[flag] != true))
}

fn push(list: &Value, value: Value) -> Option<Value> {
    let mut list = list.as_array()?.clone();
    list.push(value);
    Some(Value::Array(list))
}

/// Renames the first matching key.
fn rename_first(node: &Value, wanted: impl Fn(&str) -> bool, rename: impl Fn(&str) -> String) -> Option<Value> {
    let members = node.as_object()?;
    let old = members.keys().find(|key| wanted(key))?;
    let renamed: Map<String, Value> =
        members.iter().map(|(key, value)| (if key == old { rename(key) } else { key.clone() }, value.clone())).collect();
    Some(Value::Object(renamed))
}
