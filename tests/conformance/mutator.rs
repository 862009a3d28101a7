//! Mutates an OpenAPI document, one small change at a time.
//!
//! It works with any document: it collects the locations that a comparison must check ([`sites`]), and applies every kind of
//! change ([`changes`]) to the first matching ones in parameters, request bodies, responses and errors of a few operations.

mod changes;
mod sites;

use std::collections::BTreeMap;

use serde_json::Value;

use self::changes::Change;
use self::sites::Site;

/// The number of operations with the same change in the same context.
const OPERATIONS_EACH: usize = 2;

/// A single change of a document.
pub struct Mutation {
    /// The kind of change, such as `maximum removed`.
    pub change: String,
    /// The change, operation and pointer, for messages.
    pub name: String,
    /// The path of the operation that it changes, unless it changes the list of paths.
    pub path: Option<String>,
    pointer: String,
    node: Value,
}

impl Mutation {
    /// Returns the document with this change.
    pub fn applied_to(&self, document: &Value) -> Value {
        let mut mutated = document.clone();
        *mutated.pointer_mut(&self.pointer).expect("a mutation is of this document") = self.node.clone();
        mutated
    }
}

/// Returns many single changes of the document, each of which a comparison must find.
pub fn mutations(document: &Value) -> Vec<Mutation> {
    let sites = sites::of(document);
    changes::all().iter().flat_map(|change| of_one_kind(document, &sites, change)).collect()
}

/// Returns the names of all kinds of change.
pub fn kinds() -> Vec<String> {
    changes::all().into_iter().map(|change| change.name).collect()
}

fn of_one_kind(document: &Value, sites: &[Site], change: &Change) -> Vec<Mutation> {
    let mut operations = BTreeMap::new();
    let mut mutations = Vec::new();
    for site in sites.iter().filter(|site| site.kind == change.kind) {
        let operations: &mut Vec<&str> = operations.entry(site.context).or_default();
        if operations.len() == OPERATIONS_EACH || operations.contains(&site.operation.as_str()) {
            continue;
        }
        let original = document.pointer(&site.pointer).expect("a site is in its document");
        if let Some(node) = (change.apply)(original, site) {
            assert_ne!(original, &node, "{} changes nothing at {}", change.name, site.pointer);
            operations.push(&site.operation);
            let name = format!("{} in {} at {}", change.name, site.operation, site.pointer);
            let path = site.operation.find('/').map(|start| site.operation[start..].to_owned());
            mutations.push(Mutation { change: change.name.clone(), name, path, pointer: site.pointer.clone(), node });
        }
    }
    mutations
}
