//! Texts of errors: plain words, without regular expressions, names of formats and types, and with correct plurals.
//!
//! [`sweep`](crate::sweep) checks the texts about generated invalid values.

use boxoffice::features::codes;
use boxoffice_openapi::invalid_values::invalid_values_for;
use boxoffice_openapi::to_plain_string;
use serde_json::{Value, json};

use crate::support::{Response, TestApp, operations, test_on};

/// Parts of regular expressions, names of formats and of Rust's types, and texts of parsers.
const INTERNAL: [&str; 32] = [
    "^",
    "$",
    "\\",
    "[A",
    "[0",
    "(?",
    "]+",
    "]*",
    ".*",
    "{",
    "event-time",
    "birth-date",
    "date-time",
    "uri-reference",
    "int32",
    "int64",
    "i64",
    "u32",
    "u64",
    "f64",
    "usize",
    "struct",
    "variant",
    "expected",
    "invalid type",
    "invalid value",
    "missing field",
    "schema",
    "null",
    "pattern",
    "regex",
    "Some(",
];

/// Returns what is wrong with a text.
fn fault(text: &str) -> Option<String> {
    let internal = INTERNAL.iter().find(|part| text.contains(*part)).map(|part| format!("contains {part:?}"));
    let words: Vec<_> = text.split(|character: char| !character.is_alphanumeric() && character != '-').collect();
    let plurals = words.windows(2).find(|pair| pair[0] == "1" && pair[1].ends_with('s') && pair[1] != "is");
    let plural = plurals.map(|pair| format!("has {:?}", pair.join(" ")));
    internal.or(plural).or_else(|| text.is_empty().then(|| "is empty".to_owned()))
}

/// Returns the faults of the texts of a response.
pub fn faults(response: &Response) -> Vec<String> {
    let fields = response.body["fields"].as_array().into_iter().flatten().map(|field| &field["detail"]);
    let texts = [&response.body["error"], &response.body["message"]].into_iter().chain(fields).filter_map(Value::as_str);
    texts.filter_map(|text| Some(format!("{text:?} {}", fault(text)?))).collect()
}

/// Values that no schema allows, or only some schemas, in every argument of every operation; and bodies that are no JSON objects.
/// No database sees most of these requests.
#[test_on(sqlite)]
async fn texts_of_odd_requests_are_plain(app: TestApp) {
    let (mut wrong, mut tried) = (Vec::new(), 0);
    for operation in operations() {
        let path = operation.path_with(&[]);
        if let Some(schema) = operation.body_schema() {
            for name in schema["properties"].as_object().unwrap().keys() {
                for value in
                    [json!(1e300), json!(-1), json!(u64::MAX), json!({ "?": "?" }), json!({ "": 1 }), json!([{}]), json!([""])]
                {
                    let mut body = operation.body();
                    body[name] = value;
                    let response = app.request(&operation.method, &path).key(&app.staff.key).json(&body).send().await;
                    wrong.extend(faults(&response).into_iter().map(|fault| format!("{} {name}: {fault}", operation.id)));
                    tried += usize::from(response.status == 400);
                }
            }
            for text in ["{", "[]", "{\"a\": 1, \"a\": 2}", "\u{1}", "1e999", "{\"a\": tru}"] {
                let request = app.request(&operation.method, &path).key(&app.staff.key);
                let response = request.header("Content-Type", "application/json").body(text).send().await;
                wrong.extend(faults(&response).into_iter().map(|fault| format!("{} {text}: {fault}", operation.id)));
            }
        }
        for parameter in operation.parameters("query") {
            let name = parameter["name"].as_str().unwrap();
            for text in ["1e300", "(", "["] {
                let encoded: String = form_urlencoded::byte_serialize(text.as_bytes()).collect();
                let request = app.request(&operation.method, &format!("{path}?{}{name}={encoded}", operation.required_query()));
                let response = request.key(&app.staff.key).send().await;
                wrong.extend(faults(&response).into_iter().map(|fault| format!("{} {name}: {fault}", operation.id)));
                tried += usize::from(response.status == 400);
            }
        }
        for parameter in operation.parameters("header") {
            let name = parameter["name"].as_str().unwrap();
            let values =
                invalid_values_for(&parameter["schema"], false).into_iter().map(|invalid| to_plain_string(&invalid.value));
            for text in values.chain(["1e300", "(", "["].map(str::to_owned)) {
                if text.chars().any(|character| !matches!(character, ' '..='~')) {
                    continue;
                }
                let response = operation.send(&app, |request| request.key(&app.staff.key).header(name, &text)).await;
                wrong.extend(faults(&response).into_iter().map(|fault| format!("{} {name}: {fault}", operation.id)));
                tried += usize::from(response.status == 400);
            }
        }
    }
    assert!(tried > 1500, "only {tried}");
    wrong.sort();
    wrong.dedup();
    assert!(wrong.is_empty(), "{} are wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn default_texts_are_plain() {
    for code in codes::all() {
        assert_eq!(fault(code.text()), None, "{}", code.as_str());
    }
}

#[test]
fn finds_faults() {
    for text in ["must match ^a$", "must be a valid event-time", "must have at least 1 items", "invalid type: i64", ""] {
        assert!(fault(text).is_some(), "{text}");
    }
    for text in ["must have at least 1 item", "must have 3 to 32 letters", "must be at least 1", "Try again in 1 second."] {
        assert_eq!(fault(text), None, "{text}");
    }
}
