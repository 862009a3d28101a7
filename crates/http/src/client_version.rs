//! API version that a client expects.

use std::fmt;
use std::str::FromStr;

use anyhow::ensure;
use schemars::JsonSchema;
use schemars::r#gen::SchemaGenerator;
use schemars::schema::Schema;

use crate::text_schema;

/// Maximum number of numbers in a version.
const MAX_PARTS: usize = 8;

/// A client's version: one to eight numbers, most significant first; missing ones are 0. A number of any length is accepted, because a
/// client may be newer than the server; one that is too large counts as the largest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClientVersion([u64; MAX_PARTS]);

impl FromStr for ClientVersion {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        const EXPECTED: &str = "a version is one to eight numbers, such as 3.0.0";
        let mut version = [0; MAX_PARTS];
        let mut parts = text.trim().split('.');
        for number in &mut version {
            let Some(part) = parts.next() else { break };
            ensure!(!part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()), EXPECTED);
            *number = part.parse().unwrap_or(u64::MAX);
        }
        ensure!(parts.next().is_none(), EXPECTED);
        Ok(Self(version))
    }
}

impl JsonSchema for ClientVersion {
    fn is_referenceable() -> bool {
        false
    }

    fn schema_name() -> String {
        "ClientVersion".to_owned()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        text_schema(None, Some(r"^\d+(\.\d+){0,7}$"), None, None)
    }
}

impl fmt::Display for ClientVersion {
    /// At least three numbers, and more only up to the last one that is not 0.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.0.iter().rposition(|number| *number > 0).map_or(3, |last| (last + 1).max(3));
        let parts: Vec<_> = self.0[..count].iter().map(u64::to_string).collect();
        f.write_str(&parts.join("."))
    }
}
