//! The formats `event-time` and `birth-date` of the built-in document, and e-mail addresses.

use std::sync::LazyLock;

use chrono::{DateTime, Datelike, NaiveDate, NaiveDateTime, Utc};
use jsonschema::{Draft, EmailOptions, Validator};
use serde_json::json;

/// Parses a date and time with optional seconds, fraction and zone. Without a zone it is UTC. The year in UTC must have at most four
/// digits, because responses format it with four. A space before the zone is a `+` that was not percent-encoded in a query.
pub fn parse_date_time(text: &str) -> Option<DateTime<Utc>> {
    let (start, zone) = text.split_at_checked("YYYY-MM-DD ".len())?;
    let text = (start.replace(' ', "T") + &zone.replace(' ', "+")).to_ascii_uppercase();
    let zoned = ["%Y-%m-%dT%H:%M%#z", "%Y-%m-%dT%H:%M:%S%.f%#z"];
    let unzoned = ["%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S%.f"];
    let utc =
        zoned.iter().find_map(|format| DateTime::parse_from_str(&text, format).ok()).map(|time| time.to_utc()).or_else(|| {
            unzoned.iter().find_map(|format| NaiveDateTime::parse_from_str(&text, format).ok()).map(|time| time.and_utc())
        })?;
    // A leap second is the first second of the next minute, which can be that of another year.
    let utc = DateTime::from_timestamp_micros(utc.timestamp_micros())?;
    (0..=9999).contains(&utc.year()).then_some(utc)
}

/// Description of a date of birth for a client.
pub const BIRTH_DATE_DESCRIPTION: &str = "a date from 1900-01-01 to today, such as 1990-02-28 or 28-02-1990";

/// The first valid date of birth.
const FIRST_BIRTH_DATE: &str = "1900-01-01";

/// Returns whether a text has the format `birth-date`: a date that [`parse_birth_date`] accepts, or no text, which a pattern may
/// exclude.
pub fn is_birth_date(text: &str) -> bool {
    text.is_empty() || parse_birth_date(text).is_some()
}

/// Parses a date of birth from 1900 in the form `YYYY-MM-DD` or `DD-MM-YYYY`. Returns it in the form `YYYY-MM-DD`. The caller checks
/// that the date is not in the future.
pub fn parse_birth_date(text: &str) -> Option<String> {
    let date = match text.find('-') {
        Some(4) => NaiveDate::parse_from_str(text, "%Y-%m-%d"),
        _ => NaiveDate::parse_from_str(text, "%d-%m-%Y"),
    };
    date.ok().map(|date| date.format("%Y-%m-%d").to_string()).filter(|date| date.as_str() >= FIRST_BIRTH_DATE)
}

/// Returns whether mail servers deliver to an e-mail address of this form. It is a bare address without a display name, because it
/// identifies an account. Some forms of RFC 5321 are rejected, because mail servers and libraries don't accept them: a quoted local
/// part, and an IP address in place of the domain name.
pub fn is_deliverable_email(text: &str) -> bool {
    static RFC_5321: LazyLock<Validator> = LazyLock::new(|| {
        let options = jsonschema::options()
            .with_draft(Draft::Draft202012)
            .should_validate_formats(true)
            .with_email_options(EmailOptions::default().without_display_text().without_domain_literal());
        options.build(&json!({ "format": "email" })).expect("the schema is valid")
    });
    let last_label = text.rsplit(['@', '.']).next().unwrap_or_default();
    let is_ip_address = last_label.bytes().all(|byte| byte.is_ascii_digit());
    !is_ip_address && !text.starts_with('"') && RFC_5321.is_valid(&json!(text))
}
