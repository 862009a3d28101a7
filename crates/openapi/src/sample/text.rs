//! Generation of texts: words, and texts of a format.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use chrono::{DateTime, Utc};
use rand::RngExt;
use rand::rngs::Xoshiro256PlusPlus;
use rand::seq::IndexedRandom;

const WORDS: [&str; 24] = [
    "amber", "autumn", "blue", "bridge", "cedar", "city", "coast", "dance", "evening", "festival", "garden", "harbour", "jazz",
    "lantern", "meadow", "night", "north", "orchard", "piano", "river", "stage", "summer", "theatre", "winter",
];

/// A PNG image of one pixel, in base64.
pub const PNG_PIXEL: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==";

/// Formats of a date or time that a pattern may require.
const TIME_FORMATS: [&str; 7] = [
    "%Y-%m-%dT%H:%M",
    "%Y-%m-%d %H:%M",
    "%Y-%m-%dT%H:%M:%S+00:00",
    "%Y-%m-%dT%H:%M:%SZ",
    "%Y-%m-%d %H:%M:%S",
    "%Y-%m-%d",
    "%H:%M",
];

/// Returns a random word.
pub fn word(rng: &mut Xoshiro256PlusPlus) -> &'static str {
    WORDS.choose(rng).copied().unwrap_or("amber")
}

/// Returns random words with a total length of `min` to `max` characters.
pub fn words(rng: &mut Xoshiro256PlusPlus, min: usize, max: usize) -> String {
    let mut text = word(rng).to_owned();
    while text.len() < min || (text.len() + 10 < max && rng.random_bool(0.4)) {
        text.push(' ');
        text.push_str(word(rng));
    }
    text.truncate(max);
    // A server may trim a space at the end and return a different text.
    if text.ends_with(' ') {
        text.pop();
        text.push('s');
    }
    text
}

/// Returns a random date and time in each of [`TIME_FORMATS`].
pub fn date_times(rng: &mut Xoshiro256PlusPlus) -> impl Iterator<Item = String> {
    let date_time = date_time(rng);
    TIME_FORMATS.iter().map(move |format| date_time.format(format).to_string())
}

/// Returns a random date and time in the years 2026 to 2030, in whole minutes.
fn date_time(rng: &mut Xoshiro256PlusPlus) -> DateTime<Utc> {
    const FIRST: i64 = 1_767_225_600; // 2026-01-01T00:00Z
    const MINUTES: i64 = 5 * 365 * 24 * 60;
    DateTime::from_timestamp(FIRST + 60 * rng.random_range(0..MINUTES), 0).unwrap_or_default()
}

/// Returns a random text of a format of OpenAPI 3.0, JSON Schema or the built-in document, about `padding` characters longer than
/// necessary. `None` for an unknown format or one that doesn't restrict the text.
pub fn formatted(rng: &mut Xoshiro256PlusPlus, format: &str, padding: usize) -> Option<String> {
    let time = |time_format: &str, rng: &mut Xoshiro256PlusPlus| date_time(rng).format(time_format).to_string();
    let longer = |base: &str| format!("{base}{}", "x".repeat(padding));
    Some(match format {
        "date-time" if padding == 0 => time("%Y-%m-%dT%H:%M:%SZ", rng),
        // Without a fraction it has 20 characters, and with one 21 and its digits.
        "date-time" => time(&format!("%Y-%m-%dT%H:%M:%S.{}Z", "0".repeat(padding.saturating_sub(21).clamp(1, 9))), rng),
        "date" => time("%Y-%m-%d", rng),
        "time" => time("%H:%M:%SZ", rng),
        "event-time" => time("%Y-%m-%dT%H:%M", rng),
        "birth-date" => format!("{}-{}", rng.random_range(1940..=2007), time("%m-%d", rng).replace("02-29", "02-28")),
        "duration" => format!("P{}D", rng.random_range(1..=30)),
        // A label of a host name has up to 63 characters (RFC 1035), the part before the @ up to 64 (RFC 5321).
        "email" | "idn-email" if padding == 0 => format!("{}@example.com", word(rng)),
        "email" | "idn-email" => format!("{}@{}example.com", "x".repeat(padding.min(60)), labels(padding.saturating_sub(60))),
        "hostname" | "idn-hostname" if padding == 0 => format!("{}.example.com", word(rng)),
        "hostname" | "idn-hostname" => format!("{}example.com", labels(padding)),
        "uri" | "url" | "iri" => longer(&format!("https://example.com/{}", word(rng))),
        "uri-reference" | "iri-reference" => longer(&format!("/{}", word(rng))),
        "uri-template" => longer("/{id}/"),
        "json-pointer" => longer("/"),
        "regex" => longer("[a-z]+"),
        "uuid" => {
            let mut bytes: [u8; 16] = rng.random();
            // Version 4, variant 1 (RFC 9562).
            bytes[6] = bytes[6] & 0x0f | 0x40;
            bytes[8] = bytes[8] & 0x3f | 0x80;
            let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
        }
        // Addresses for documentation (RFC 5737, RFC 3849).
        "ipv4" | "ip" => format!("192.0.2.{}", rng.random::<u8>()),
        "ipv6" => format!("2001:db8::{:x}", rng.random_range(1..=0xffff)),
        "image" => PNG_PIXEL.to_owned(),
        "byte" => STANDARD.encode(words(rng, padding.max(3) * 3 / 4, usize::MAX)),
        _ => return None,
    })
}

/// Returns the shortest text of a format that has texts of several lengths.
pub fn shortest(format: &str) -> Option<&'static str> {
    Some(match format {
        "duration" => "P1D",
        "email" | "idn-email" => "a@b.co",
        "hostname" | "idn-hostname" => "a.io",
        "uri" | "url" | "iri" => "http://a.io",
        "uri-reference" | "iri-reference" => "/",
        "regex" => "a",
        "ipv6" => "::1",
        _ => return None,
    })
}

/// Returns labels of a host name with a total length, each followed by a dot.
fn labels(length: usize) -> String {
    let mut labels = String::new();
    let mut remaining = length;
    while remaining >= 2 {
        let label = (remaining - 1).min(63);
        labels.push_str(&"x".repeat(label));
        labels.push('.');
        remaining -= label + 1;
    }
    labels
}
