//! The contract that this program was built from: `spec/openapi.yaml`.

use std::sync::{Arc, OnceLock};

use anyhow::ensure;
use boxoffice_conformance::comparison::BuiltinServer;
use boxoffice_conformance::options::BuiltinDocument;
use boxoffice_openapi::Contract;

use crate::features::codes;
use crate::kernel::types::currency::Currency;
use crate::routes::routes;

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

/// Returns the document with which the requests of a platform are checked: amounts in a currency without decimals must be whole.
///
/// # Errors
/// Returns an error if the document is not valid.
pub fn load_for(currency: Currency) -> anyhow::Result<Arc<Contract>> {
    let contract = load()?;
    if currency.decimals > 0 {
        return Ok(contract);
    }
    let mut contract = Contract::new(contract.document.clone())?;
    contract.require_whole_amounts(&format!("must be a whole number: the currency {currency} has no decimals"));
    Ok(Arc::new(contract))
}

/// Returns the contract, with what this program knows about its own server.
///
/// # Errors
/// Returns an error if a document is not valid.
pub fn builtin_document() -> anyhow::Result<BuiltinDocument> {
    Ok(BuiltinDocument {
        contract: load()?,
        server: BuiltinServer { emitted: routes().openapi()?, codes: codes::all() },
        whole_currencies: Currency::without_decimals().collect(),
    })
}
