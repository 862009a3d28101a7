//! The contract that this program was built from: `spec/openapi.yaml`.

use anyhow::ensure;
use boxoffice_openapi::Contract;

/// Parses the embedded document.
///
/// # Errors
/// Returns an error if the document is not valid.
pub fn load() -> anyhow::Result<Contract> {
    let document = serde_json::from_str(include_str!(concat!(env!("OUT_DIR"), "/contract.json")))?;
    let contract = Contract::new(document)?;
    ensure!(contract.warnings.is_empty(), "spec/openapi.yaml is not supported: {}", contract.warnings.join("; "));
    Ok(contract)
}
