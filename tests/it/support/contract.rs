//! What the server answers, held against the contract: whatever a test asks for, an answer that the contract doesn't describe
//! fails it.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use boxoffice::contract::{Contract, compile, resolve};
use jsonschema::Validator;

use super::Answer;

static ANSWERS: LazyLock<Answers> = LazyLock::new(Answers::of_the_contract);

/// The schema of every JSON answer of every operation.
struct Answers {
    /// Method, path template and operationId of each operation.
    operations: Vec<(String, String, String)>,
    by_status: BTreeMap<(String, u16), Option<Validator>>,
}

impl Answers {
    fn of_the_contract() -> Self {
        let contract = Contract::builtin().unwrap();
        let (mut operations, mut by_status) = (Vec::new(), BTreeMap::new());
        for operation in contract.operations() {
            operations.push((operation.method.clone(), operation.path.clone(), operation.id.clone()));
            let node = &contract.document["paths"][&operation.path][operation.method.to_lowercase()];
            for (status, response) in node["responses"].as_object().unwrap() {
                let response = resolve(&contract.document, response);
                let schema = response.pointer("/content/application~1json/schema").map(|schema| compile(schema).unwrap());
                by_status.insert((operation.id.clone(), status.parse().unwrap()), schema);
            }
        }
        Self { operations, by_status }
    }

    fn operation(&self, method: &str, path: &str) -> Option<&str> {
        let path = path.split('?').next().unwrap();
        let path = path.strip_prefix("/v3/").map_or_else(|| path.to_owned(), |rest| format!("/{rest}"));
        let is_it = |template: &str| {
            let (template, path) = (template.split('/'), path.split('/'));
            template.clone().count() == path.clone().count()
                && template.zip(path).all(|(wanted, given)| wanted == given || wanted.starts_with('{'))
        };
        let found = self.operations.iter().find(|(its, template, _)| its == method && is_it(template));
        found.map(|(_, _, id)| id.as_str())
    }
}

/// Fails when the contract has this operation and doesn't describe this answer.
pub fn hold_to_the_contract(method: &str, path: &str, answer: &Answer) {
    let Some(operation) = ANSWERS.operation(method, path) else { return };
    let described = ANSWERS.by_status.get(&(operation.to_owned(), answer.status));
    let schema = described.unwrap_or_else(|| panic!("{operation} may not answer {}: {}", answer.status, answer.body));
    if let Some(schema) = schema {
        let wrong: Vec<_> = schema.iter_errors(&answer.body).map(|error| format!("{} {error}", error.instance_path())).collect();
        assert!(wrong.is_empty(), "{operation} {}: {wrong:#?}\n{:#}", answer.status, answer.body);
    }
}

fn answer(status: u16, body: serde_json::Value) -> Answer {
    Answer { status, headers: reqwest::header::HeaderMap::new(), body }
}

#[test]
fn an_answer_that_is_described_passes() {
    hold_to_the_contract("GET", "/v3/time", &answer(200, serde_json::json!({ "utc": 1 })));
    hold_to_the_contract("GET", "/nowhere", &answer(404, serde_json::Value::Null));
}

#[test]
#[should_panic(expected = "time_get 200")]
fn an_answer_of_another_shape_fails() {
    hold_to_the_contract("GET", "/time", &answer(200, serde_json::json!({ "utc": "1" })));
}

#[test]
#[should_panic(expected = "time_get may not answer 409")]
fn an_answer_of_another_status_fails() {
    hold_to_the_contract("GET", "/time?x=1", &answer(409, serde_json::Value::Null));
}
