//! The contract's operations, for what is asked of each of them.

use boxoffice::auth::Scope;
use boxoffice::contract::resolve;
use serde_json::{Value, json};

use super::contract::CONTRACT;
use super::http::Request;
use super::{Answer, World};

/// An operation of the contract, with everything that it refers to in place.
pub struct Operation {
    /// Its operationId.
    pub id: String,
    /// In capitals.
    pub method: String,
    /// With variables in braces.
    pub path: String,
    /// The one tag under which the contract lists it.
    pub tag: String,
    /// The scopes whose keys may call it.
    pub scopes: Vec<Scope>,
    /// Whether it asks for a key, and with it for the client's version.
    pub needs_key: bool,
    /// The largest body that it takes, in bytes; 0 where it takes none.
    pub body_limit: usize,
    node: Value,
}

/// Every operation.
pub fn operations() -> Vec<Operation> {
    let contract = &*CONTRACT;
    let operation = |operation: &boxoffice::contract::Operation| {
        let node = resolve(&contract.document, &contract.document["paths"][&operation.path][operation.method.to_lowercase()]);
        Operation {
            id: operation.id.clone(),
            method: operation.method.clone(),
            path: operation.path.clone(),
            tag: node["tags"][0].as_str().unwrap().to_owned(),
            scopes: operation.scopes.clone(),
            needs_key: operation.needs_key,
            body_limit: operation.body_limit().unwrap_or_default(),
            node,
        }
    };
    contract.operations().map(operation).collect()
}

impl Operation {
    /// Its parameters in this place: `path`, `query` or `header`.
    pub fn parameters(&self, place: &str) -> Vec<&Value> {
        let parameters = self.node["parameters"].as_array().into_iter().flatten();
        parameters.filter(|parameter| parameter["in"] == place).collect()
    }

    /// The path with the examples of its variables, but for those given.
    pub fn path_with(&self, given: &[(&str, &str)]) -> String {
        let mut path = self.path.clone();
        for parameter in self.parameters("path") {
            let name = parameter["name"].as_str().unwrap();
            let example = parameter.get("example").or_else(|| parameter["schema"]["enum"].get(0)).unwrap_or(&Value::Null);
            let example = match example {
                Value::String(text) => text.clone(),
                Value::Number(number) => number.to_string(),
                _ => "x".to_owned(),
            };
            let value = given.iter().find(|(given, _)| *given == name).map_or(example.as_str(), |(_, value)| value);
            path = path.replace(&format!("{{{name}}}"), value);
        }
        path
    }

    /// The required query parameters, with their examples.
    pub fn required_query(&self) -> String {
        let required = self.parameters("query").into_iter().filter(|parameter| parameter["required"] == true);
        let pairs = required.map(|parameter| {
            let (name, example) = (parameter["name"].as_str().unwrap(), &parameter["example"]);
            format!("{name}={}&", example.as_str().map_or_else(|| example.to_string(), str::to_owned))
        });
        pairs.collect()
    }

    /// The schema of its body.
    pub fn body_schema(&self) -> Option<&Value> {
        self.node.pointer("/requestBody/content/application~1json/schema")
    }

    /// The first example of the body.
    pub fn body(&self) -> Value {
        let examples = &self.node["requestBody"]["content"]["application/json"]["examples"];
        examples.as_object().and_then(|examples| examples.values().next()).map_or(Value::Null, |example| example["value"].clone())
    }

    /// The argument that tells about whom it guesses.
    pub fn guessing(&self) -> Option<&str> {
        self.node["x-guessing"].as_str()
    }

    /// Whether it has an answer of this status.
    pub fn answers(&self, status: u16) -> bool {
        self.node["responses"].get(status.to_string()).is_some()
    }

    /// Whether its answer carries a key or a code.
    pub fn is_secret(&self) -> bool {
        self.node["x-secret"] == json!(true)
    }

    /// The examples of its successful answers.
    pub fn examples(&self) -> Vec<&Value> {
        let answers = self.node["responses"].as_object().into_iter().flatten().filter(|(status, _)| status.starts_with('2'));
        let examples = answers.flat_map(|(_, answer)| answer["content"]["application/json"]["examples"].as_object());
        examples.flat_map(|examples| examples.values()).map(|example| &example["value"]).collect()
    }

    /// Whether the requirement doesn't list it.
    pub fn is_supplement(&self) -> bool {
        self.node["x-supplement"] == json!(true)
    }

    /// What it answers to a request that is as it should be, with the contract's examples, in every respect that is left alone
    /// by `change`.
    pub async fn ask(&self, world: &World, change: impl FnOnce(Request) -> Request) -> Answer {
        let request = world.request(&self.method, &format!("{}?{}", self.path_with(&[]), self.required_query()));
        let request = if self.body_schema().is_some() { request.json(&self.body()) } else { request };
        change(request).send().await
    }
}
