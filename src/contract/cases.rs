//! Values at the edges of what a schema allows, and just outside of it.

use serde_json::Value;

use super::Sampler;

/// What is wrong about a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Null or blank where something is required, which counts as missing (wire facts).
    Missing,
    /// Another type.
    Type,
    /// Too long, too short, too large, too small, too many, too few, or between the steps.
    Bounds,
    /// Not one of the enumeration.
    Enum,
    /// A text of another pattern or format.
    Form,
}

/// A value that a schema doesn't allow.
#[derive(Debug, Clone, PartialEq)]
pub struct Wrong {
    /// The value.
    pub value: Value,
    /// Why it isn't allowed.
    pub kind: Kind,
}

impl Sampler {
    /// Valid values at the edges of the schema: shortest and longest, smallest and largest, each of an enumeration, null where it
    /// may be, the leap day and texts beyond ASCII. No text has more than 10,000 characters, no array more than 100 items.
    pub fn boundaries(&self) -> Vec<Value> {
        Vec::new()
    }
}

/// Every way in which a value can be wrong by its schema, which has no references any more ([`super::resolve`]).
pub fn wrong_values(_schema: &Value, _required: bool) -> Vec<Wrong> {
    Vec::new()
}
