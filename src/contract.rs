//! The contract that this program was built from: `spec/openapi.yaml`.

use std::sync::{Arc, OnceLock};

use anyhow::ensure;
use boxoffice_openapi::Contract;

/// Returns the embedded document, which is parsed once in each process.
///
/// # Errors
/// Returns an error if the document is not valid.
pub fn load() -> anyhow::Result<Arc<Contract>> {
    static CONTRACT: OnceLock<Arc<Contract>> = OnceLock::new();
    if let Some(contract) = CONTRACT.get() {
        return Ok(Arc::clone(contract));
    }
    let document = serde_json::from_str(include_str!(concat!(env!("OUT_DIR"), "/contract.json")))?;
    let contract = Contract::new(document)?;
    ensure!(contract.warnings.is_empty(), "spec/openapi.yaml is not supported: {}", contract.warnings.join("; "));
    Ok(Arc::clone(CONTRACT.get_or_init(|| Arc::new(contract))))
}
