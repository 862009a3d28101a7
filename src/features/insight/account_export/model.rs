//! Requests and responses of the export.

use boxoffice_http::string_newtype;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::kernel::types::api_types::{DateTime, NullableField, Uri};

string_newtype!(
    /// The position of a page: the number of its first table, and of the first row in that table.
    ExportPosition, None, Some(r"^\d{1,3}-\d{1,12}$"), None, None
);

#[derive(Debug, Deserialize, JsonSchema)]
pub struct ExportQuery {
    pub after: Option<ExportPosition>,
}

/// A page of an export.
#[derive(Debug, Serialize, JsonSchema)]
pub struct AccountExport {
    #[serde(rename = "self")]
    pub uri: Uri,
    pub exported: DateTime,
    pub entries: Vec<AccountExportEntry>,
    pub next: NullableField<Uri>,
}

/// A row about the account.
#[derive(Debug, Serialize, JsonSchema)]
pub struct AccountExportEntry {
    #[serde(rename = "type")]
    pub kind: String,
    pub data: Map<String, Value>,
}
