//! The contract's operations, for tests that call each of them.

use std::sync::{Arc, LazyLock};

use boxoffice_openapi::{Contract, EXTENSIBLE_ENUM, Scope, resolve};
use serde_json::{Value, json};

use super::{Request, Response, TestApp};

/// The contract.
pub static CONTRACT: LazyLock<Arc<Contract>> = LazyLock::new(|| boxoffice::contract::load().unwrap());

/// The contract with closed lists of values in responses: clients accept other values, but this server must only send those that
/// the contract lists.
pub static CLOSED_CONTRACT: LazyLock<Contract> = LazyLock::new(|| {
    let mut document = CONTRACT.document.clone();
    close_lists(&mut document);
    Contract::new(document).unwrap()
});

fn close_lists(node: &mut Value) {
    if let Some(values) = node.as_object_mut().and_then(|schema| schema.remove(EXTENSIBLE_ENUM)) {
        node["enum"] = values;
    }
    match node {
        Value::Object(members) => members.values_mut().for_each(close_lists),
        Value::Array(items) => items.iter_mut().for_each(close_lists),
        _ => {}
    }
}

/// An operation of the contract, with all references resolved.
pub struct Operation {
    /// Its operationId.
    pub id: String,
    /// In capitals.
    pub method: String,
    /// With variables in braces.
    pub path: String,
    /// Its tag.
    pub tag: String,
    /// The scopes whose keys may call it.
    pub scopes: Vec<Scope>,
    /// True if it requires a key and a client version.
    pub needs_key: bool,
    /// The maximum size of its body in bytes; 0 if it has none.
    pub body_limit: usize,
    node: Value,
}

/// Returns every operation.
pub fn operations() -> &'static [Operation] {
    /// Resolving the references takes a second.
    static OPERATIONS: LazyLock<Vec<Operation>> = LazyLock::new(read_operations);

    &OPERATIONS
}

fn read_operations() -> Vec<Operation> {
    let contract = &*CONTRACT;
    let operation = |operation: &boxoffice_openapi::Operation| {
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
    /// Returns its parameters in `path`, `query` or `header`.
    pub fn parameters(&self, location: &str) -> Vec<&Value> {
        let parameters = self.node["parameters"].as_array().into_iter().flatten();
        parameters.filter(|parameter| parameter["in"] == location).collect()
    }

    /// Returns the path with these variables; the others have the contract's examples.
    pub fn path_with(&self, variables: &[(&str, &str)]) -> String {
        let mut path = self.path.clone();
        for parameter in self.parameters("path") {
            let name = parameter["name"].as_str().unwrap();
            let example = parameter.get("example").or_else(|| parameter["schema"]["enum"].get(0)).unwrap_or(&Value::Null);
            let example = match example {
                Value::String(text) => text.clone(),
                Value::Number(number) => number.to_string(),
                _ => "x".to_owned(),
            };
            let value = variables.iter().find(|(variable, _)| *variable == name).map_or(example.as_str(), |(_, value)| value);
            path = path.replace(&format!("{{{name}}}"), value);
        }
        path
    }

    /// Returns the required query parameters, with their examples.
    pub fn required_query(&self) -> String {
        let required = self.parameters("query").into_iter().filter(|parameter| parameter["required"] == true);
        let pairs = required.map(|parameter| {
            let (name, example) = (parameter["name"].as_str().unwrap(), &parameter["example"]);
            format!("{name}={}&", example.as_str().map_or_else(|| example.to_string(), str::to_owned))
        });
        pairs.collect()
    }

    /// Returns whether it returns a list in pages.
    pub fn is_list(&self) -> bool {
        self.parameters("query").iter().any(|parameter| parameter["name"] == "page")
    }

    /// Returns the schema of its JSON body.
    pub fn body_schema(&self) -> Option<&Value> {
        self.node.pointer("/requestBody/content/application~1json/schema")
    }

    /// Returns the first example of the body.
    pub fn body(&self) -> Value {
        let examples = &self.node["requestBody"]["content"]["application/json"]["examples"];
        examples.as_object().and_then(|examples| examples.values().next()).map_or(Value::Null, |example| example["value"].clone())
    }

    /// Returns the argument that identifies the account whose credentials a request tries (`x-guessing`).
    pub fn guessing_argument(&self) -> Option<&str> {
        self.node["x-guessing"].as_str()
    }

    /// Returns whether it declares a response with this status.
    pub fn declares(&self, status: u16) -> bool {
        self.node["responses"].get(status.to_string()).is_some()
    }

    /// Returns whether its response contains a key or a code (`x-secret`).
    pub fn is_secret(&self) -> bool {
        self.node["x-secret"] == json!(true)
    }

    /// Returns the examples of its successful responses.
    pub fn examples(&self) -> Vec<&Value> {
        let responses = self.node["responses"].as_object().into_iter().flatten().filter(|(status, _)| status.starts_with('2'));
        let examples = responses.flat_map(|(_, response)| response["content"]["application/json"]["examples"].as_object());
        examples.flat_map(|examples| examples.values()).map(|example| &example["value"]).collect()
    }

    /// Returns whether it is not in the list of required operations (`x-supplement`).
    pub fn is_supplement(&self) -> bool {
        self.node["x-supplement"] == json!(true)
    }

    /// Builds the contract's example request for this path.
    pub fn request(&self, app: &TestApp, path: &str) -> Request {
        let request = app.request(&self.method, &format!("{path}?{}", self.required_query()));
        if self.body_schema().is_some() { request.json(&self.body()) } else { request }
    }

    /// Sends the contract's example request, after `change` was applied to it.
    pub async fn send(&self, app: &TestApp, change: impl FnOnce(Request) -> Request) -> Response {
        change(self.request(app, &self.path_with(&[]))).send().await
    }
}
