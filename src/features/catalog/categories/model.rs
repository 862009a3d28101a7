//! API types and database rows of categories.

use boxoffice_http::{inline_schema, schema_from_json};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::kernel::http::has_location;
use crate::kernel::types::api_types::Uri;
use crate::kernel::types::id::Id;

/// A category in API responses.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Category {
    /// Its URI.
    #[serde(rename = "self")]
    pub uri: Uri,
    /// Its unique name.
    pub name: String,
    /// Names of its subcategories, in the order of the request.
    pub subcategories: Vec<String>,
}

has_location!(Category, PATH = "/categories/");

#[derive(Debug, Deserialize, JsonSchema)]
pub struct CategoryPath {
    pub category: Id,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct CategoryCreate {
    #[schemars(length(min = 1, max = 200))]
    pub name: String,
    pub subcategories: Subcategories,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct CategoryUpdate {
    #[schemars(length(min = 1, max = 200))]
    pub name: Option<String>,
    pub subcategories: Option<Subcategories>,
}

/// Names of a category's subcategories in a request. Each occurs once, and their order is kept.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub struct Subcategories(pub Vec<String>);

impl Subcategories {
    /// Returns the names as a JSON array, so that one SQL statement can take all of them.
    pub fn json(&self) -> String {
        serde_json::Value::from(self.0.clone()).to_string()
    }
}

inline_schema!(
    Subcategories,
    "Subcategories",
    schema_from_json(json!({
        "type": "array", "minItems": 1, "maxItems": 100, "uniqueItems": true,
        "items": { "type": "string", "minLength": 1, "maxLength": 200 },
    }))
);

/// Database row of a category.
#[derive(Debug, sqlx_macros::FromRow)]
pub struct CategoryRow {
    pub id: Id,
    pub name: String,
}

/// Database row of a subcategory.
#[derive(Debug, sqlx_macros::FromRow)]
pub struct SubcategoryRow {
    pub category_id: Id,
    pub name: String,
}
