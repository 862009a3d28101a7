//! The request that the document gives an example of for an operation.

use anyhow::Context;
use serde_json::{Map, Value};

use crate::auth::Scope;
use crate::contract::{Operation, Parameter, ParameterLocation, PathTemplate, Schema, segments, to_plain_string};

/// An operation's examples, put together to one request. Every text of it is the document's.
#[derive(Debug)]
pub struct Example {
    /// In capitals.
    pub method: String,
    /// With variables in braces.
    pub path: String,
    template: PathTemplate,
    /// The path's variables.
    pub variables: Vec<(String, String)>,
    /// The query's required parameters.
    pub query: Vec<(String, String)>,
    /// Whether it asks for the client's version.
    pub needs_version: bool,
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
    pub fn of(operation: &Operation) -> anyhow::Result<Self> {
        let required = |place: ParameterLocation| {
            let asked = operation.parameters.iter().filter(move |parameter| parameter.place == place && parameter.required);
            asked.map(|parameter| example_of(&operation.id, parameter)).collect::<anyhow::Result<Vec<_>>>()
        };
        let queried = operation.parameters.iter().filter(|parameter| parameter.place == ParameterLocation::Query);
        let schemas = operation.body.iter().flat_map(|body| &body.contents).filter_map(|content| content.schema.as_ref());
        let told = schemas.flat_map(Schema::properties).map(|(name, _)| name.to_owned());
        Ok(Self {
            method: operation.method.clone(),
            path: operation.path.clone(),
            template: operation.template.clone(),
            variables: required(ParameterLocation::Path)?,
            query: required(ParameterLocation::Query)?,
            needs_version: operation.needs_version,
            bodies: operation.request_examples("application/json"),
            arguments: queried.map(|parameter| parameter.name.clone()).chain(told).collect(),
            needs_key: operation.needs_key,
            scopes: operation.scopes.clone(),
        })
    }

    /// The path's variables with what a URI of this path has in their place; nothing when it is of another one.
    pub fn read<'a>(&'a self, uri: &'a str) -> Option<Vec<(&'a str, &'a str)>> {
        self.template.matches(&segments(uri).collect::<Vec<_>>()).then(|| self.template.variables(uri).collect())
    }
}

/// A parameter's name and example.
fn example_of(operation: &str, parameter: &Parameter) -> anyhow::Result<(String, String)> {
    let Parameter { name, schema, .. } = parameter;
    let example =
        parameter.examples.values().next().or_else(|| schema.resolved.get("example")).or_else(|| schema.resolved["enum"].get(0));
    let example = example.with_context(|| format!("the document has no example of {name} in {operation}; give it one"))?;
    Ok((name.clone(), to_plain_string(example)))
}
