//! Generation of sample data: values that a schema allows, reproducible by a seed.
//!
//! ```text
//! schema ── Bundler ──► SchemaBundle (self-contained) ─┬─ Generator: a random value ─┬─► validator ──► valid values
//!                                                      └─ BoundaryValues ────────────┘
//! ```

mod boundary_values;
mod bundle;
mod generator;
mod merge;
mod number;
mod pattern;
mod text;

use anyhow::{anyhow, bail};
use bundle::SchemaBundle;
use generator::{BUDGET, Generator};
use jsonschema::Validator;
use rand::SeedableRng;
use rand::rngs::Xoshiro256PlusPlus;
use serde_json::Value;

use crate::compile;
use crate::schema::{Direction, error_message};

/// Maximum number of attempts to generate a valid value. Further attempts hardly ever succeed, for example for schemas with `not` or
/// with branches that exclude each other.
const MAX_ATTEMPTS: u32 = 20;

/// Generator of values for one schema. Creating it is expensive and sampling is cheap, so cache it.
#[derive(Debug)]
pub struct Sampler {
    bundle: SchemaBundle,
    validator: Validator,
}

impl Sampler {
    /// Creates a sampler for a schema of OpenAPI 3.0. References are looked up in `document` and may be recursive.
    ///
    /// # Errors
    /// If the target of a reference doesn't exist or is outside of the document, or the schema is invalid.
    pub fn new(document: &Value, schema: &Value, direction: Direction) -> anyhow::Result<Self> {
        let bundle = SchemaBundle::new(document, schema, direction)?;
        let validator = compile(&bundle.root)?;
        Ok(Self { bundle, validator })
    }

    /// Returns a valid value. It is the same for the same document, schema and seed, on every machine.
    ///
    /// # Errors
    /// If no valid value was found. The error names the location as a JSON pointer (RFC 6901) relative to the schema, or, behind a
    /// reference, to the document, with a `#`.
    pub fn sample(&self, seed: u64) -> anyhow::Result<Value> {
        // Unlike StdRng, this generator returns the same numbers in all versions and on all machines.
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut failure = anyhow!("it was not tried");
        let mut budget = BUDGET;
        for attempt in 0..MAX_ATTEMPTS {
            // An optional property may cause the failure, so some attempts have fewer or none of them.
            let optional = [0.9, 0.5, 0.0][attempt as usize % 3];
            match Generator::new(&self.bundle, &mut rng, optional, &mut budget).generate() {
                Ok(value) => match self.validator.validate(&value) {
                    Ok(()) => return Ok(value),
                    Err(error) => {
                        let pointer = self.bundle.document_pointer(&error.schema_path().to_string());
                        failure = anyhow!("`{pointer}` {}", error_message(&error));
                    }
                },
                Err(error) => failure = error,
            }
            if budget == 0 {
                break;
            }
        }
        bail!("no valid value was found: {failure}; give the schema an example, or correct it")
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may panic")]
mod tests;
