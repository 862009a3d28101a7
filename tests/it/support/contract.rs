//! What the server answers, held against the contract.

use std::sync::{LazyLock, OnceLock};

use boxoffice::contract::{Contract, compile, resolve};
use http::{HeaderMap, header};
use jsonschema::Validator;
use serde_json::{Value, json};

/// Every answer that the contract describes.
pub static ANSWERS: LazyLock<Answers> = LazyLock::new(|| Answers::of(&Contract::builtin().unwrap()));

/// What a contract describes of its operations' answers.
pub struct Answers {
    operations: Vec<Operation>,
}

struct Operation {
    id: String,
    method: String,
    path: String,
    answers: Vec<Answer>,
}

/// One answer of an operation.
struct Answer {
    status: u16,
    /// The media types that its body may have; none where it has no body.
    media_types: Vec<String>,
    /// Of a JSON body.
    schema: Option<Schema>,
    headers: Vec<Header>,
}

struct Header {
    name: String,
    is_required: bool,
    schema: Schema,
}

/// A schema that is compiled when it is first needed: a test alone needs few of them.
struct Schema {
    schema: Value,
    validator: OnceLock<Validator>,
}

impl Answers {
    fn of(contract: &Contract) -> Self {
        let answer = |(status, node): (&String, &Value)| Answer::of(status, &resolve(&contract.document, node));
        let operation = |operation: &boxoffice::contract::Operation| {
            let node = &contract.document["paths"][&operation.path][operation.method.to_lowercase()];
            Operation {
                id: operation.id.clone(),
                method: operation.method.clone(),
                path: operation.path.clone(),
                answers: node["responses"].as_object().unwrap().iter().map(answer).collect(),
            }
        };
        Self { operations: contract.operations().map(operation).collect() }
    }

    fn operation(&self, method: &str, path: &str) -> Option<&Operation> {
        let path = path.strip_prefix("/v3/").map_or_else(|| path.to_owned(), |rest| format!("/{rest}"));
        let found = self.operations.iter().filter(|operation| operation.method == method && operation.is_at(&path));
        found.min_by_key(|operation| operation.path.matches('{').count())
    }

    /// The operation that answers a method at a path, and all that is wrong with an answer of it. An operation that the contract
    /// doesn't have may answer as it likes.
    pub fn judge(&self, method: &str, path: &str, status: u16, headers: &HeaderMap, body: &[u8]) -> Option<(&str, Vec<String>)> {
        let operation = self.operation(method, path)?;
        let described = operation.answers.iter().find(|answer| answer.status == status);
        let wrong = match described {
            Some(answer) => answer.wrong(headers, body),
            None => vec![format!("may not be answered: {}", String::from_utf8_lossy(body))],
        };
        let about = format!("{} {status}", operation.id);
        Some((&operation.id, wrong.into_iter().map(|wrong| format!("{about} {wrong} ({method} {path})")).collect()))
    }
}

impl Operation {
    fn is_at(&self, path: &str) -> bool {
        let (template, path) = (self.path.split('/'), path.split('/'));
        template.clone().count() == path.clone().count()
            && template.zip(path).all(|(wanted, given)| wanted == given || (wanted.starts_with('{') && !given.is_empty()))
    }
}

impl Answer {
    fn of(status: &str, node: &Value) -> Self {
        let content = node["content"].as_object().into_iter().flatten();
        let header = |(name, header): (&String, &Value)| Header {
            name: name.clone(),
            is_required: header["required"] == true,
            schema: Schema::new(&header["schema"]),
        };
        Self {
            status: status.parse().unwrap(),
            media_types: content.map(|(media_type, _)| media_type.clone()).collect(),
            schema: node.pointer("/content/application~1json/schema").map(Schema::new),
            headers: node["headers"].as_object().into_iter().flatten().map(header).collect(),
        }
    }

    fn wrong(&self, headers: &HeaderMap, body: &[u8]) -> Vec<String> {
        let text = |name: &str| headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
        let media_type = text(header::CONTENT_TYPE.as_str()).unwrap_or_default();
        let media_type = media_type.split(';').next().unwrap_or_default().trim();
        let mut wrong = Vec::new();
        if self.media_types.is_empty() {
            if !body.is_empty() {
                wrong.push(format!("has a body: {}", String::from_utf8_lossy(body)));
            }
        } else if !self.media_types.iter().any(|declared| declared == media_type) {
            wrong.push(format!("is `{media_type}` and not one of {:?}", self.media_types));
        } else if let (Some(schema), "application/json") = (&self.schema, media_type) {
            match serde_json::from_slice(body) {
                Ok(body) => wrong.extend(schema.wrong(&body).into_iter().map(|wrong| format!("body{wrong} in {body}"))),
                Err(error) => wrong.push(format!("body is no JSON: {error}: {}", String::from_utf8_lossy(body))),
            }
        }
        for header in &self.headers {
            match text(&header.name) {
                None if header.is_required => wrong.push(format!("lacks the header {}", header.name)),
                None => {}
                Some(text) => {
                    let is_text = header.schema.schema["type"] == "string";
                    let value = if is_text { json!(text) } else { serde_json::from_str(&text).unwrap_or_default() };
                    wrong.extend(header.schema.wrong(&value).into_iter().map(|wrong| format!("{}{wrong}", header.name)));
                }
            }
        }
        wrong
    }
}

impl Schema {
    fn new(schema: &Value) -> Self {
        let mut schema = schema.clone();
        close(&mut schema);
        Self { schema, validator: OnceLock::new() }
    }

    fn wrong(&self, value: &Value) -> Vec<String> {
        let validator = self.validator.get_or_init(|| compile(&self.schema).unwrap());
        validator.iter_errors(value).map(|error| format!("{}: {error}", error.instance_path())).collect()
    }
}

/// Forbids what isn't described: a client's document may not know less than the server tells.
fn close(schema: &mut Value) {
    let Value::Object(schema) = schema else { return };
    for part in ["items", "additionalProperties"] {
        schema.get_mut(part).into_iter().for_each(close);
    }
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        properties.values_mut().for_each(close);
        schema.entry("additionalProperties").or_insert(json!(false));
    }
}

crate::plain_tests![
    an_answer_that_is_described_passes,
    an_operation_outside_the_contract_is_left_alone,
    an_answer_of_another_shape_is_wrong,
    a_property_that_is_not_described_is_wrong,
    every_answer_can_be_closed,
    an_answer_of_another_status_is_wrong,
    an_answer_of_another_media_type_is_wrong,
    a_body_where_none_is_described_is_wrong,
    no_body_where_one_is_described_is_wrong,
    a_missing_header_is_wrong,
    a_header_of_another_shape_is_wrong,
    a_fixed_path_goes_before_a_variable_one,
];

/// A contract of few words.
static SAMPLE: LazyLock<Answers> = LazyLock::new(|| {
    let json = |schema: Value| json!({ "application/json": { "schema": schema } });
    let part = json!({ "type": "object", "properties": {} });
    let zone = json!({
        "type": "object",
        "required": ["name"],
        "properties": {
            "name": { "type": "string" },
            "size": part,
            "parts": { "type": "array", "items": part },
            "by-day": { "type": "object", "additionalProperties": part },
            "free": { "type": "object" },
        },
    });
    let created = json!({
        "headers": {
            "Location": { "required": true, "schema": { "type": "string", "pattern": "^/zones/" } },
            "Retry-After": { "schema": { "type": "integer" } },
        },
        "content": json(zone.clone()),
    });
    let operation = |id: &str, responses: Value| json!({ "operationId": id, "responses": responses });
    let document = json!({
        "components": { "responses": { "Zone": { "content": json(zone) } } },
        "paths": {
            "/zones": { "post": operation("zone_create", json!({ "201": created })) },
            "/zones/{zone}": {
                "get": operation("zone_get", json!({ "200": { "$ref": "#/components/responses/Zone" } })),
                "delete": operation("zone_delete", json!({ "204": {} })),
            },
            "/zones/first": { "get": operation("zone_first_get", json!({ "200": { "content": { "image/png": {} } } })) },
        },
    });
    Answers::of(&Contract::new(document).unwrap())
});

/// What is wrong with an answer of the sample's, without the request in brackets.
fn wrong(method: &str, path: &str, status: u16, headers: &[(&'static str, &str)], body: &str) -> Vec<String> {
    let headers = headers.iter().map(|(name, value)| (http::HeaderName::from_static(name), value.parse().unwrap())).collect();
    let (_, wrong) = SAMPLE.judge(method, path, status, &headers, body.as_bytes()).unwrap();
    wrong.iter().map(|wrong| wrong.rsplit_once(" (").unwrap().0.to_owned()).collect()
}

const JSON: (&str, &str) = ("content-type", "application/json; charset=utf-8");
const LOCATION: (&str, &str) = ("location", "/zones/1");
const ZONE: &str = r#"{"name": "Top"}"#;

fn an_answer_that_is_described_passes() {
    assert_eq!(wrong("GET", "/zones/1", 200, &[JSON], ZONE), [""; 0]);
    assert_eq!(wrong("GET", "/v3/zones/1", 200, &[JSON], ZONE), [""; 0]);
    assert_eq!(wrong("POST", "/zones", 201, &[JSON, LOCATION, ("retry-after", "7")], ZONE), [""; 0]);
    assert_eq!(wrong("DELETE", "/zones/1", 204, &[], ""), [""; 0]);
}

fn an_operation_outside_the_contract_is_left_alone() {
    for (method, path) in [("GET", "/nowhere"), ("PATCH", "/zones"), ("GET", "/zones/"), ("GET", "/v4/zones/1")] {
        assert!(SAMPLE.judge(method, path, 404, &HeaderMap::new(), b"?").is_none(), "{method} {path}");
    }
}

fn an_answer_of_another_shape_is_wrong() {
    assert_eq!(
        wrong("GET", "/zones/1", 200, &[JSON], r#"{"name": 7}"#),
        [r#"zone_get 200 body/name: 7 is not of type "string" in {"name":7}"#]
    );
    assert_eq!(wrong("GET", "/zones/1", 200, &[JSON], "{}"), [r#"zone_get 200 body: "name" is a required property in {}"#]);
}

fn a_property_that_is_not_described_is_wrong() {
    let zone = |zone: Value| wrong("GET", "/zones/1", 200, &[JSON], &zone.to_string()).join(", ");
    let unexpected = "Additional properties are not allowed ('extra' was unexpected)";
    for (given, place) in [
        (json!({ "name": "Top", "extra": 1 }), ""),
        (json!({ "name": "Top", "size": { "extra": 1 } }), "/size"),
        (json!({ "name": "Top", "parts": [{}, { "extra": 1 }] }), "/parts/1"),
        (json!({ "name": "Top", "by-day": { "monday": { "extra": 1 } } }), "/by-day/monday"),
    ] {
        assert_eq!(zone(given.clone()), format!("zone_get 200 body{place}: {unexpected} in {given}"));
    }
    let described = json!({ "name": "Top", "size": {}, "parts": [{}], "by-day": { "monday": {} }, "free": { "extra": 1 } });
    assert_eq!(zone(described), "");
}

/// Nothing is put together from several schemas, of which each alone would forbid what the others describe.
fn every_answer_can_be_closed() {
    let schemas = ANSWERS.operations.iter().flat_map(|operation| &operation.answers).filter_map(|answer| answer.schema.as_ref());
    for schema in schemas {
        let text = schema.schema.to_string();
        assert!(!["\"allOf\"", "\"anyOf\"", "\"oneOf\""].iter().any(|keyword| text.contains(keyword)), "{text}");
    }
}

fn an_answer_of_another_status_is_wrong() {
    assert_eq!(wrong("GET", "/zones/1", 409, &[JSON], "{}"), ["zone_get 409 may not be answered: {}"]);
}

fn an_answer_of_another_media_type_is_wrong() {
    let text = ("content-type", "text/plain");
    assert_eq!(
        wrong("GET", "/zones/1", 200, &[text], ZONE),
        [r#"zone_get 200 is `text/plain` and not one of ["application/json"]"#]
    );
    assert_eq!(wrong("GET", "/zones/1", 200, &[], ZONE), [r#"zone_get 200 is `` and not one of ["application/json"]"#]);
}

fn a_body_where_none_is_described_is_wrong() {
    assert_eq!(wrong("DELETE", "/zones/1", 204, &[JSON], "{}"), ["zone_delete 204 has a body: {}"]);
}

fn no_body_where_one_is_described_is_wrong() {
    let wrong = wrong("GET", "/zones/1", 200, &[JSON], "");
    assert!(wrong.len() == 1 && wrong[0].starts_with("zone_get 200 body is no JSON"), "{wrong:?}");
}

fn a_missing_header_is_wrong() {
    assert_eq!(wrong("POST", "/zones", 201, &[JSON], ZONE), ["zone_create 201 lacks the header Location"]);
}

fn a_header_of_another_shape_is_wrong() {
    let elsewhere = ("location", "/venues/1");
    assert_eq!(
        wrong("POST", "/zones", 201, &[JSON, elsewhere, ("retry-after", "soon")], ZONE),
        [
            r#"zone_create 201 Location: "/venues/1" does not match "^/zones/""#,
            r#"zone_create 201 Retry-After: null is not of type "integer""#,
        ]
    );
}

fn a_fixed_path_goes_before_a_variable_one() {
    assert_eq!(SAMPLE.operation("GET", "/zones/first").unwrap().id, "zone_first_get");
}
