//! Generation of sample data: values that a schema allows, reproducible by a seed.
//!
//! ```text
//! schema ── Bundler ──► SchemaBundle (self-contained) ─┬─ Generator: a random value ─┬─► validator ──► valid values
//!                                                      └─ BoundaryValues ────────────┘
//! ```

mod boundary_values;
mod bundle;
mod flat_schema;
mod generator;
mod merge;
mod number;
mod pattern;
mod scalar;
mod text;

use anyhow::bail;
use bundle::SchemaBundle;
use generator::{BUDGET, Generator};
use jsonschema::Validator;
use rand::SeedableRng;
use rand::rngs::Xoshiro256PlusPlus;
use serde_json::Value;
pub use text::PNG_PIXEL;

use crate::compile;
use crate::schema::{Direction, error_message};

/// Maximum number of attempts to generate a valid value. Further attempts hardly ever succeed, for example for schemas with `not` or
/// with branches that exclude each other.
const MAX_ATTEMPTS: u32 = 20;

/// The use of the examples and defaults in a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExampleUse {
    /// Wherever there is one, so that a value is as the document's author describes it.
    Always,
    /// At random, so that values differ.
    Sometimes,
    /// Not at all.
    Never,
}

/// Generator of values for one schema. Creating it is expensive and sampling is cheap, so cache it.
#[derive(Debug)]
pub struct Sampler {
    bundle: SchemaBundle,
    validator: Validator,
}

impl Sampler {
    /// Creates a sampler for a schema. References are looked up in `document` and may be recursive.
    ///
    /// # Errors
    /// If the target of a reference doesn't exist or is outside of the document, or the schema is invalid.
    pub fn new(document: &Value, schema: &Value, direction: Direction) -> anyhow::Result<Self> {
        let bundle = SchemaBundle::new(document, schema, direction)?;
        let validator = compile(&bundle.root)?;
        Ok(Self { bundle, validator })
    }

    /// Returns a valid value that contains some of the schema's examples. It is the same for the same document, schema and seed, on
    /// every machine.
    ///
    /// # Errors
    /// As for [`sample_with`](Self::sample_with).
    pub fn sample(&self, seed: u64) -> anyhow::Result<Value> {
        self.sample_with(seed, ExampleUse::Sometimes)
    }

    /// Returns a valid value, like [`sample`](Self::sample), with another use of examples.
    ///
    /// # Errors
    /// If no valid value was found. The error names the location as a JSON pointer (RFC 6901) relative to the schema, or, behind a
    /// reference, to the document, with a `#`.
    pub fn sample_with(&self, seed: u64, examples: ExampleUse) -> anyhow::Result<Value> {
        match self.sample_or_invalid(seed, examples)? {
            (value, None) => Ok(value),
            (_, Some(violation)) => {
                bail!("no valid value was found: {violation}; give the schema an example, or correct it")
            }
        }
    }

    /// Returns a value like [`sample_with`](Self::sample_with), or one that violates the schema if no valid value was found, with the
    /// reason. Some schemas allow no value at all, for example an `allOf` of two objects without additional properties.
    ///
    /// # Errors
    /// Never: invalid values are allowed in the last attempt.
    pub fn sample_or_invalid(&self, seed: u64, examples: ExampleUse) -> anyhow::Result<(Value, Option<String>)> {
        // Unlike StdRng, this generator returns the same numbers in all versions and on all machines.
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut failure = None;
        let mut invalid = None;
        let mut budget = BUDGET;
        for attempt in 0..MAX_ATTEMPTS {
            // An optional property may cause the failure, so some attempts have fewer or none of them. So may an example.
            let optional =
                if attempt == 0 && examples == ExampleUse::Always { 1.0 } else { [0.9, 0.5, 0.0][attempt as usize % 3] };
            let examples =
                if attempt >= MAX_ATTEMPTS / 4 && examples == ExampleUse::Always { ExampleUse::Sometimes } else { examples };
            match Generator::new(&self.bundle, &mut rng, optional, &mut budget).with_examples(examples).generate() {
                Ok(value) => match self.validator.validate(&value) {
                    Ok(()) => return Ok((value, None)),
                    Err(error) => {
                        let pointer = self.bundle.document_pointer(&error.schema_path().to_string());
                        let violation = format!("`{pointer}` {}", error_message(&error));
                        invalid.get_or_insert((value, Some(violation)));
                    }
                },
                Err(error) => failure = Some(error),
            }
            if budget == 0 {
                break;
            }
        }
        if let Some(invalid) = invalid {
            return Ok(invalid);
        }
        let value = Generator::new(&self.bundle, &mut rng, 0.0, &mut budget).allowing_invalid().generate()?;
        Ok((value, Some(failure.map_or_else(|| "it was not tried".to_owned(), |error| error.to_string()))))
    }
}
