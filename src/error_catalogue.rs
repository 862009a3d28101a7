//! The error catalogue: each error code with its status, its operations, its cause and its remedy.
//!
//! Causes and remedies are in the contract, at the schema `ErrorCode`. Statuses and operations are those that the endpoints declare.
//! `docs/errors.md` is this catalogue; a test compares them.

use std::collections::BTreeMap;
use std::fmt::Write;

use anyhow::Context;
use boxoffice_http::error::Code;
use boxoffice_openapi::METHODS;
use serde_json::Value;

use crate::features::codes;
use crate::kernel::http::CODES;

const INTRODUCTION: &str = "\
# Errors

Every error response has a stable `code`. Select by the code: texts can change, and later versions can add codes. A client that
doesn't know a code treats the error by its status.

`boxoffice errors` prints this page. It is generated from the contract and the server's code.
";

/// Longest list of operations that is shown.
const SHOWN_OPERATIONS: usize = 12;

/// Returns the catalogue as Markdown. `served` is the document that the server's code emits.
///
/// # Errors
/// If a code has no cause or remedy in the contract.
pub fn render(contract: &Value, served: &Value) -> anyhow::Result<String> {
    let schema = &contract["components"]["schemas"]["ErrorCode"];
    let names: Vec<String> =
        serde_json::from_value(schema["x-extensible-enum"].clone()).context("the contract lists no codes")?;
    let (operations, total) = operations_by_code(served);
    let mut by_status: BTreeMap<_, Vec<&Code>> = BTreeMap::new();
    let codes = codes::all();
    for name in names {
        let code = codes.iter().find(|code| code.as_str() == name).with_context(|| format!("the server has no code {name}"))?;
        by_status.entry(code.status()).or_default().push(code);
    }
    let mut page = INTRODUCTION.to_owned();
    for (status, codes) in by_status {
        writeln!(page, "\n## {status}")?;
        for code in codes {
            let entry = &schema["x-error-catalogue"][code.as_str()];
            let text = |key: &str| entry[key].as_str().with_context(|| format!("{} has no {key}", code.as_str()));
            let operations = operations.get(code.as_str()).map(Vec::as_slice).unwrap_or_default();
            writeln!(page, "\n### `{}`\n", code.as_str())?;
            writeln!(page, "- Cause: {}", text("cause")?)?;
            writeln!(page, "- Remedy: {}", text("remedy")?)?;
            writeln!(page, "- Operations: {}", describe(operations, total))?;
        }
    }
    Ok(page)
}

/// Returns the operations that declare each code, in the document's order, and the number of all operations.
fn operations_by_code(served: &Value) -> (BTreeMap<&str, Vec<&str>>, usize) {
    let mut by_code: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut total = 0;
    let items = served["paths"].as_object().into_iter().flatten().map(|(_, item)| item);
    for operation in items.flat_map(|item| METHODS.iter().filter_map(|method| item.get(method))) {
        total += 1;
        let responses = operation["responses"].as_object().into_iter().flatten();
        let codes = responses.filter_map(|(_, response)| response[CODES].as_array()).flatten();
        for code in codes.filter_map(Value::as_str) {
            by_code.entry(code).or_default().push(operation["operationId"].as_str().unwrap_or_default());
        }
    }
    (by_code, total)
}

fn describe(operations: &[&str], total: usize) -> String {
    match operations.len() {
        // Rejected before the operation is known.
        0 => "any request".to_owned(),
        count if count == total => "all".to_owned(),
        count if count > SHOWN_OPERATIONS => format!("{count} of {total}"),
        _ => operations.iter().map(|operation| format!("`{operation}`")).collect::<Vec<_>>().join(", "),
    }
}
