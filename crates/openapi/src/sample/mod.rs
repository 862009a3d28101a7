//! Data made from schemas: values that a schema allows, the same ones for the same seed.

mod boundary_values;
mod bundle;
mod generator;
mod merge;
mod number;
mod pattern;
mod text;

use anyhow::{anyhow, bail};
use jsonschema::Validator;
use rand::SeedableRng;
use rand::rngs::Xoshiro256PlusPlus;
use serde_json::Value;

use super::compile;
use super::schema::{Direction, error_message};
use bundle::SchemaBundle;
use generator::{BUDGET, Generator};

/// So often a value is made until one is valid: what isn't found by then (`not`, arms that exclude each other) hardly ever is.
const TRIES: u32 = 20;

/// Makes values for one schema. It is costly to make and cheap to ask, so keep it where the schema is asked for often.
#[derive(Debug)]
pub struct Sampler {
    closed: SchemaBundle,
    validator: Validator,
}

impl Sampler {
    /// Reads a schema of a document, an OpenAPI 3.0 one; its references are followed in `document`, and may lead back to it.
    ///
    /// # Errors
    /// When a reference leads nowhere or out of the document, or the schema is none.
    pub fn new(document: &Value, schema: &Value, direction: Direction) -> anyhow::Result<Self> {
        let closed = SchemaBundle::new(document, schema, direction)?;
        let validator = compile(&closed.root)?;
        Ok(Self { closed, validator })
    }

    /// A value that is valid against the schema: the same for the same document, schema and seed, on every machine.
    ///
    /// # Errors
    /// When none was found. The error names the place as a JSON pointer (RFC 6901), from the schema on, or from the document's
    /// root, with a `#`, behind a reference.
    pub fn sample(&self, seed: u64) -> anyhow::Result<Value> {
        // A generator whose values stay over versions and machines, which those of StdRng do not.
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut problem = anyhow!("it was not tried");
        let mut left = BUDGET;
        for attempt in 0..TRIES {
            // What is optional may be what makes a value invalid, so it is left out more and more.
            let optional = [0.9, 0.5, 0.0][attempt as usize % 3];
            match Generator::new(&self.closed, &mut rng, optional, &mut left).generate() {
                Ok(value) => match self.validator.validate(&value) {
                    Ok(()) => return Ok(value),
                    Err(error) => {
                        problem = anyhow!(
                            "`{}` {}",
                            self.closed.document_pointer(&error.schema_path().to_string()),
                            error_message(&error)
                        )
                    }
                },
                Err(error) => problem = error,
            }
            if left == 0 {
                break;
            }
        }
        bail!("no value was found in so many tries as it is worth: {problem}; give the schema an example, or correct it")
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may panic")]
mod tests;
