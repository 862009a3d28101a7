//! Languages of mail.

use std::str::FromStr;

use anyhow::anyhow;
use chrono::Locale;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::kernel::types::stored_text::stored_as_text;

/// A language in which the platform writes mail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, strum::IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Language {
    /// English.
    En,
    /// French.
    Fr,
}

stored_as_text!(Language);

impl Language {
    /// All languages.
    pub const ALL: [Self; 2] = [Self::En, Self::Fr];

    /// Returns the code of ISO 639-1.
    pub fn code(self) -> &'static str {
        self.into()
    }

    /// Returns the names of days and months.
    pub fn locale(self) -> Locale {
        match self {
            Self::En => Locale::en_GB,
            Self::Fr => Locale::fr_FR,
        }
    }

    /// Returns the language that an `Accept-Language` header prefers (RFC 9110, section 12.5.4), or `None` if it accepts none of
    /// them.
    pub fn preferred(header: &str) -> Option<Self> {
        let ranges = header.split(',').take(50).filter_map(|range| {
            let (tag, weight) = range.split_once(';').unwrap_or((range, "q=1"));
            let weight: f32 = weight.trim().strip_prefix("q=")?.trim().parse().ok()?;
            let primary = tag.trim().split('-').next().unwrap_or_default();
            let language = Self::ALL.into_iter().find(|language| language.code().eq_ignore_ascii_case(primary))?;
            (weight > 0.0).then_some((language, weight))
        });
        // Of equal weights, the first one counts.
        ranges.reduce(|best, next| if next.1 > best.1 { next } else { best }).map(|(language, _)| language)
    }
}

impl FromStr for Language {
    type Err = anyhow::Error;

    fn from_str(code: &str) -> anyhow::Result<Self> {
        let language = Self::ALL.into_iter().find(|language| language.code() == code);
        language
            .ok_or_else(|| anyhow!("`{code}` is no language of the mails; give one of {}", Self::ALL.map(Self::code).join(", ")))
    }
}
