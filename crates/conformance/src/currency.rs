//! Amounts in a currency without decimals, which must be whole.

use std::sync::Arc;

use boxoffice_openapi::Contract;
use serde_json::{Value, json};

/// Returns the built-in document for a currency without decimals: amounts are whole, also in the examples of requests.
///
/// # Errors
/// Fails if the document is invalid.
pub fn with_whole_amounts(contract: &Contract) -> anyhow::Result<Arc<Contract>> {
    let mut document = contract.document.clone();
    let mut names = Vec::new();
    require_whole_amounts(&mut document, &mut names);
    let bodies = contract.operations().map(|operation| format!("{}/requestBody/content", operation.pointer));
    for pointer in bodies.chain(["/components/examples".to_owned()]) {
        document.pointer_mut(&pointer).into_iter().for_each(|examples| truncate_amounts(examples, &names));
    }
    let mut whole = Contract::new(document)?;
    whole.warnings.clone_from(&contract.warnings);
    Ok(Arc::new(whole))
}

/// Requires whole amounts in all schemas of a document. Adds the names of the properties of requests that are amounts to `names`.
pub fn require_whole_amounts(document: &mut Value, names: &mut Vec<String>) {
    match document {
        Value::Object(members) => {
            if members.get("x-decimals").is_some_and(Value::is_u64) {
                members.insert("x-decimals".to_owned(), json!(0));
            }
            for (name, member) in members {
                if let Some(step) = member.get_mut("multipleOf").filter(|step| step.as_f64().is_some_and(|step| step < 1.0)) {
                    *step = json!(1);
                    names.push(name.clone());
                }
                require_whole_amounts(member, names);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| require_whole_amounts(item, names)),
        _ => {}
    }
}

/// Removes the decimals of the properties with these names.
fn truncate_amounts(value: &mut Value, names: &[String]) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                match member.as_f64().filter(|_| names.contains(name)) {
                    Some(amount) => *member = json!(amount.trunc()),
                    None => truncate_amounts(member, names),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| truncate_amounts(item, names)),
        _ => {}
    }
}
