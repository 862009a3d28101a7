//! The request that the document gives an example of for an operation.

use anyhow::Context;
use serde_json::{Map, Value};

use crate::auth::Scope;
use crate::contract::{Contract, Operation, resolve};

/// An operation's examples, put together to one request. Every text of it is the document's.
#[derive(Debug)]
pub struct Example {
    /// In capitals.
    pub method: String,
    /// With variables in braces.
    pub path: String,
    /// The path's variables.
    pub variables: Vec<(String, String)>,
    /// The query's required parameters.
    pub query: Vec<(String, String)>,
    /// The required headers.
    pub headers: Vec<(String, String)>,
    /// The examples of its body, by name.
    pub bodies: Map<String, Value>,
    /// Every argument of the query and the body, required or not.
    pub arguments: Vec<String>,
    /// Whether it asks for a key.
    pub needs_key: bool,
    /// The scopes whose keys may ask.
    pub scopes: Vec<Scope>,
}

impl Example {
    /// What the document shows of an operation.
    ///
    /// # Errors
    /// When a variable of the path, or something else that is required, has no example.
    pub fn of(contract: &Contract, operation: &Operation) -> anyhow::Result<Self> {
        let node = contract.document.pointer(&operation.pointer).context("an operation stands where its pointer says")?;
        let item = &contract.document["paths"][&operation.path];
        let parameters = [&item["parameters"], &node["parameters"]];
        let parameters = parameters.into_iter().filter_map(Value::as_array).flatten();
        let parameters: Vec<Value> = parameters.map(|parameter| resolve(&contract.document, parameter)).collect();
        let required = |place: &str| {
            let asked = parameters.iter().filter(move |parameter| parameter["in"] == place && parameter["required"] == true);
            asked.map(|parameter| example_of(&operation.id, parameter)).collect::<anyhow::Result<Vec<_>>>()
        };
        let content = resolve(&contract.document, &node["requestBody"]["content"]["application/json"]);
        let bodies = content["examples"].as_object().into_iter().flatten();
        let queried = parameters.iter().filter(|parameter| parameter["in"] == "query").filter_map(name_of);
        let told = content["schema"]["properties"].as_object().into_iter().flat_map(|properties| properties.keys());
        Ok(Self {
            method: operation.method.clone(),
            path: operation.path.clone(),
            variables: required("path")?,
            query: required("query")?,
            headers: required("header")?,
            bodies: bodies.map(|(name, example)| (name.clone(), example["value"].clone())).collect(),
            arguments: queried.chain(told.cloned()).collect(),
            needs_key: operation.needs_key,
            scopes: operation.scopes.clone(),
        })
    }

    /// The path's variables with what a URI of this path has in their place; nothing when it is of another one.
    pub fn read<'a>(&'a self, uri: &'a str) -> Option<Vec<(&'a str, &'a str)>> {
        let (named, given): (Vec<_>, Vec<_>) = (self.path.split('/').collect(), uri.split('/').collect());
        let fits = |(name, text): (&&str, &&str)| name.starts_with('{') || name == text;
        if named.len() != given.len() || !named.iter().zip(&given).all(fits) {
            return None;
        }
        let variables = named.into_iter().zip(given).filter(|(name, _)| name.starts_with('{'));
        Some(variables.map(|(name, text)| (name.trim_matches(['{', '}']), text)).collect())
    }
}

fn name_of(parameter: &Value) -> Option<String> {
    parameter["name"].as_str().map(str::to_owned)
}

/// A parameter's name and example.
fn example_of(operation: &str, parameter: &Value) -> anyhow::Result<(String, String)> {
    let name = name_of(parameter).context("a parameter has no name")?;
    let example = parameter.get("example").or_else(|| parameter["schema"].get("example"));
    let example = example.or_else(|| parameter["schema"]["enum"].get(0));
    let example = example.with_context(|| format!("the document has no example of {name} in {operation}; give it one"))?;
    Ok((name, example.as_str().map_or_else(|| example.to_string(), str::to_owned)))
}
