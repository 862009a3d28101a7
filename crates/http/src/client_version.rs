//! API version that a client expects.

use std::fmt;
use std::str::FromStr;

use anyhow::{Context, ensure};
use schemars::JsonSchema;
use schemars::r#gen::SchemaGenerator;
use schemars::schema::Schema;

use crate::text_schema;

/// A client's version: one to three numbers; missing ones are 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClientVersion([u32; 3]);

impl FromStr for ClientVersion {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        const EXPECTED: &str = "a version is one to three numbers, such as 3.0.0";
        let mut version = [0; 3];
        let mut parts = text.trim().split('.');
        for number in &mut version {
            let Some(part) = parts.next() else { break };
            ensure!(part.bytes().all(|byte| byte.is_ascii_digit()), EXPECTED);
            *number = part.parse().context(EXPECTED)?;
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
        text_schema(None, Some(r"^\d+(\.\d+){0,2}$"), None, None)
    }
}

impl fmt::Display for ClientVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [major, minor, patch] = self.0;
        write!(f, "{major}.{minor}.{patch}")
    }
}
