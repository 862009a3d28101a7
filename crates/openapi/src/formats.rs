//! The formats `event-time` and `birth-date` of the built-in document.

use chrono::{DateTime, Datelike, NaiveDate, NaiveDateTime, Utc};

/// Parses a date and time with optional seconds, fraction and zone. Without a zone it is UTC. The year in UTC must have at most four
/// digits, because responses format it with four.
pub fn parse_date_time(text: &str) -> Option<DateTime<Utc>> {
    let text = text.replacen(' ', "T", 1);
    let zoned = ["%Y-%m-%dT%H:%M%#z", "%Y-%m-%dT%H:%M:%S%.f%#z"];
    let unzoned = ["%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S%.f"];
    let utc =
        zoned.iter().find_map(|format| DateTime::parse_from_str(&text, format).ok()).map(|time| time.to_utc()).or_else(|| {
            unzoned.iter().find_map(|format| NaiveDateTime::parse_from_str(&text, format).ok()).map(|time| time.and_utc())
        })?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_birth_date_is_read_in_both_shapes() {
        assert_eq!(parse_birth_date("1990-02-28").as_deref(), Some("1990-02-28"));
        assert_eq!(parse_birth_date("28-02-1990").as_deref(), Some("1990-02-28"));
        for invalid in ["30-02-1990", "1899-12-31", "31-12-1899", "0990-02-28", "12990-02-28", ""] {
            assert_eq!(parse_birth_date(invalid), None, "{invalid}");
        }
        assert_eq!(parse_birth_date("01-01-1900").as_deref(), Some("1900-01-01"));
    }
}
