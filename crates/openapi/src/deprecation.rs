//! Announcements that an operation will be removed.

use anyhow::{Context, ensure};
use chrono::{NaiveDate, NaiveTime};
use http::HeaderValue;
use serde_json::Value;

/// The dates of a deprecated operation, as header values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deprecation {
    /// The value of `Deprecation` (RFC 9745): the date in `x-deprecated-since`.
    pub since: HeaderValue,
    /// The value of `Sunset` (RFC 8594): the date in `x-sunset`, after which the operation may be removed.
    pub sunset: Option<HeaderValue>,
}

impl Deprecation {
    /// Reads the dates of an operation. Returns `None` if it is not deprecated, or if another API's document has no date.
    ///
    /// # Errors
    /// If a date is invalid, is missing in the built-in document, or the sunset is before the deprecation.
    pub(crate) fn read(operation: &Value, is_builtin: bool) -> anyhow::Result<Option<Self>> {
        if operation["deprecated"] != true || !is_builtin && operation["x-deprecated-since"].is_null() {
            return Ok(None);
        }
        let since = date(operation, "x-deprecated-since")?.context("a deprecated operation needs x-deprecated-since")?;
        let sunset = date(operation, "x-sunset")?;
        ensure!(sunset.is_none_or(|sunset| sunset > since), "x-sunset must be after x-deprecated-since");
        Ok(Some(Self {
            since: HeaderValue::try_from(format!("@{}", since.and_time(NaiveTime::MIN).and_utc().timestamp()))?,
            sunset: sunset.map(|date| HeaderValue::try_from(date.format("%a, %d %b %Y 00:00:00 GMT").to_string())).transpose()?,
        }))
    }
}

fn date(operation: &Value, keyword: &str) -> anyhow::Result<Option<NaiveDate>> {
    let Some(value) = operation.get(keyword) else { return Ok(None) };
    let date = value.as_str().and_then(|text| NaiveDate::parse_from_str(text, "%Y-%m-%d").ok());
    date.map(Some).with_context(|| format!("{keyword} must be a date such as 2026-12-31"))
}
