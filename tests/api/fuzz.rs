//! Property tests of every parser of external input, with valid, nearly valid and invalid texts. No parser may panic or accept a
//! value that does not round-trip.
//!
//! Each run tries a few hundred texts; `BOXOFFICE_FUZZ_SECONDS` sets a duration instead. Failing seeds are stored in `fuzz/` and
//! tried first.

use std::cell::Cell;
use std::env;
use std::fmt::Debug;
use std::io::{self, Write};
use std::time::{Duration, Instant};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use boxoffice::features::catalog::advertisements::parse_markdown;
use boxoffice::features::catalog::media;
use boxoffice::features::catalog::review::Content;
use boxoffice::features::catalog::sections::{self, SectionUri};
use boxoffice::features::sales::orders::read_number_filter;
use boxoffice::kernel::settings::FeeSchedule;
use boxoffice::kernel::types::clock::Timestamp;
use boxoffice::kernel::types::id::Id;
use boxoffice::kernel::types::money::Money;
use boxoffice_http::client_version::ClientVersion;
use boxoffice_openapi::RequestError;
use boxoffice_openapi::parse_birth_date;
use boxoffice_openapi::{compile, resolve};
use http::{HeaderMap, HeaderValue, header};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config, FileFailurePersistence, TestCaseResult, TestError, TestRunner};
use serde_json::{Value, json};

use crate::support::operations;

/// The number of cases for each parser.
const CASES: u32 = 256;

/// Tries values for the configured time. Panics with the smallest failing value, and stores its seed in `file`.
fn fuzz<S: Strategy<Value: Debug>>(file: &'static str, values: S, check: impl Fn(S::Value) -> TestCaseResult) {
    let time = env::var("BOXOFFICE_FUZZ_SECONDS").ok().map(|seconds| Duration::from_secs(seconds.parse().unwrap()));
    let persistence = FileFailurePersistence::Direct(file);
    let config = Config { cases: CASES, failure_persistence: Some(Box::new(persistence)), ..Config::default() };
    let (started, cases) = (Instant::now(), Cell::new(0_u64));
    let counted = |value| {
        cases.set(cases.get() + 1);
        check(value)
    };
    loop {
        // A runner can't be reused after its last case.
        match TestRunner::new(config.clone()).run(&values, counted) {
            Ok(()) => {}
            Err(TestError::Fail(reason, value)) => panic!("case {}: {reason}\n{value:#?}", cases.get()),
            Err(TestError::Abort(reason)) => panic!("case {}: {reason}", cases.get()),
        }
        if time.is_none_or(|time| started.elapsed() >= time) {
            break;
        }
    }
    if time.is_some() {
        let _ = writeln!(io::stdout(), "{file}: {} cases in {} s, 0 failures", cases.get(), started.elapsed().as_secs());
    }
}

/// Generates texts similar to these: some characters are changed, inserted and removed.
fn like(models: &'static [&'static str]) -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        any::<char>().prop_map(String::from),
        select(vec![
            "0",
            "9",
            "-",
            "+",
            "/",
            ":",
            ".",
            ",",
            "T",
            "Z",
            " ",
            "=",
            "%",
            "\0",
            "\n",
            "é",
            "\u{202e}",
            "٣",
            "9999999999"
        ])
        .prop_map(str::to_owned),
        "[ -~]{1,4}",
    ];
    let edits = vec((any::<prop::sample::Index>(), 0..3_usize, piece), 0..4);
    prop_oneof![
        4 => (select(models), edits).prop_map(|(model, edits)| {
            let mut text: Vec<char> = model.chars().collect();
            for (at, left_out, piece) in edits {
                let from = at.index(text.len() + 1);
                let to = (from + left_out).min(text.len());
                text.splice(from..to, piece.chars());
            }
            text.into_iter().collect()
        }),
        1 => any::<String>(),
    ]
}

#[test]
fn timestamps() {
    const MODELS: &[&str] =
        &["2026-12-01T19:30", "2026-02-29 19:30:15.123456789Z", "9999-12-31T23:59-23:59", "0000-01-01T00:00:00+0100"];
    fuzz("tests/api/fuzz/dates_and_times.txt", like(MODELS), |text| {
        if let Some(moment) = Timestamp::parse(&text) {
            let minutes = moment.format_minutes();
            prop_assert_eq!(minutes.len(), 16);
            prop_assert_eq!(Timestamp::parse(&minutes).map(Timestamp::format_minutes), Some(minutes));
            prop_assert_eq!(Timestamp::parse(&moment.format_rfc3339()).map(Timestamp::seconds), Some(moment.seconds()));
        }
        Ok(())
    });
}

#[test]
fn birth_dates() {
    const MODELS: &[&str] = &["1990-02-28", "28-02-1990", "29-02-2000", "0001-01-01", "31-12-9999"];
    // Includes the pattern that is checked before the parser runs.
    let schema = json!({ "format": "birth-date", "pattern": r"^(\d{4}-\d{2}-\d{2}|\d{2}-\d{2}-\d{4})$" });
    let schema = compile(&schema).unwrap();
    fuzz("tests/api/fuzz/dates_of_birth.txt", like(MODELS), |text| {
        let read = parse_birth_date(&text);
        if schema.is_valid(&json!(text)) {
            let read = read.unwrap();
            prop_assert_eq!(read.len(), 10);
            prop_assert_eq!(parse_birth_date(&read), Some(read));
        }
        Ok(())
    });
}

#[test]
fn ids() {
    fuzz("tests/api/fuzz/identifiers.txt", like(&["17637000000051", "00000000000000", "99999999999999"]), |text| {
        if let Some(id) = Id::parse(&text) {
            prop_assert_eq!(id.to_string(), text);
        }
        Ok(())
    });
}

#[test]
fn section_uris() {
    const MODELS: &[&str] =
        &["/events/17637000000051/sections/17637000000061", "/v3/sections/17637000000061", "/sections/17637000000061"];
    fuzz("tests/api/fuzz/section_uris.txt", like(MODELS), |text| {
        if let Some(SectionUri { event, section }) = SectionUri::parse(&text) {
            let short = format!("/sections/{section}");
            let uri = event.map_or(short, |event| sections::uri(event, section).0);
            prop_assert_eq!(text.strip_prefix("/v3").unwrap_or(&text), uri);
        }
        Ok(())
    });
}

#[test]
fn submission_ids() {
    const MODELS: &[&str] = &["L2V2ZW50cy8xNzYzNzAwMDAwMDA1MQ==", "L3ZlbnVlcy8xNzYzNzAwMDAwMDAzMg==", "L2V2ZW50cy8="];
    let of_texts =
        like(&["/events/17637000000051", "/advertisements/17637000000051"]).prop_map(|uri| BASE64_STANDARD.encode(uri));
    fuzz("tests/api/fuzz/submission_identifiers.txt", prop_oneof![like(MODELS), of_texts], |text| {
        if let Some(content) = Content::parse(&text) {
            prop_assert_eq!(content.submission(), text);
        }
        Ok(())
    });
}

#[test]
fn client_versions() {
    fuzz("tests/api/fuzz/client_versions.txt", like(&["3.0.0", "3", " 10.20 ", "4294967295.0.1"]), |text| {
        if let Ok(version) = text.parse::<ClientVersion>() {
            prop_assert_eq!(version.to_string().parse::<ClientVersion>().ok(), Some(version));
        }
        Ok(())
    });
}

#[test]
fn fee_steps() {
    const MODELS: &[&str] = &["50:0.99,100:1.99,4.99", "0", "92233720368547758.07:1,2.5", "1:1, 2:2 ,3"];
    fuzz("tests/api/fuzz/fee_steps.txt", like(MODELS), |text| {
        if let Ok(steps) = text.parse::<FeeSchedule>() {
            let amounts = steps.steps.iter().flat_map(|(up_to, fee)| [*up_to, *fee]).chain([steps.above]);
            prop_assert!(amounts.into_iter().all(|amount| amount >= Money::ZERO));
            let is_of_amounts =
                |character: char| character.is_ascii_digit() || character.is_whitespace() || ".,:".contains(character);
            prop_assert!(text.chars().all(is_of_amounts), "amounts are digits");
        }
        Ok(())
    });
}

#[test]
fn number_filters() {
    const MODELS: &[&str] =
        &["^176(37|38)", "(a{100}){100}", r"\d+[^0-9]{3,}(?i:x)*?", "(((1*)*)*)*$", r"\pL{900}", "[[:alpha:]&&[^a]]"];
    fuzz("tests/api/fuzz/number_filters.txt", like(MODELS), |text| {
        // The contract's maximum length.
        let text: String = text.chars().take(100).collect();
        match read_number_filter(&text) {
            Ok(filter) => drop(filter.is_match("17637000000051")),
            Err(error) => prop_assert!(matches!(error, boxoffice_http::error::Error::Invalid(_)), "{:?}", error),
        }
        Ok(())
    });
}

#[test]
fn images() {
    const MODELS: [&str; 3] = [
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==",
        "UklGRiIAAABXRUJQVlA4IBYAAAAwAQCdASoBAAEADsD+JaQAA3AAAAAA",
        // The headers of a JPEG of 1 × 1 pixel, and its end, without data.
        "/9j/4AAQSkZJRgABAQEAYABgAAD/wAALCAABAAEBAREA/9oACAEBAAA/AP/Z",
    ];
    let edits = vec((any::<prop::sample::Index>(), 0..6_usize, vec(any::<u8>(), 0..6)), 0..6);
    let damaged = (select(&MODELS[..]), edits).prop_map(|(model, edits)| {
        let mut bytes = BASE64_STANDARD.decode(model).unwrap();
        for (at, left_out, piece) in edits {
            let from = at.index(bytes.len() + 1);
            let to = (from + left_out).min(bytes.len());
            bytes.splice(from..to, piece);
        }
        BASE64_STANDARD.encode(bytes)
    });
    let uris = like(&["data:image/png;base64,iVBORw0KGgo=", "DATA:image/webp;x=y;BASE64,UklGRiIAAABX", "data:,", ","]);
    fuzz("tests/api/fuzz/images.txt", prop_oneof![3 => damaged, 1 => uris], |text| {
        if let Ok(image) = media::parse("banner", &text) {
            prop_assert!(image.width >= 1 && image.height >= 1 && image.width <= 10_000 && image.height <= 10_000);
            prop_assert!(u64::from(image.width) * u64::from(image.height) <= 40_000_000);
        }
        Ok(())
    });
}

#[test]
fn markdown() {
    const MODELS: &[&str] = &[
        "# Title\n\nText *with* `code`.\n\n- one\n- two\n  1. three\n\n> quote\n> - in it\n\n```\ncode\n```\n",
        "<b>raw</b> &amp; [link](http://x)\n***\n| a | b |\n",
        "> > > > - - - - 1) 2) 3)\n\t\tx\n",
    ];
    let document = boxoffice::contract::load().unwrap().document.clone();
    let schema = compile(&resolve(&document, &document["components"]["schemas"]["ParsedMarkdown"])).unwrap();
    fuzz("tests/api/fuzz/markdown.txt", like(MODELS), |text| {
        let parsed = serde_json::to_value(parse_markdown(&text)).unwrap();
        prop_assert!(schema.is_valid(&parsed), "{}", parsed);
        Ok(())
    });
}

/// Generates valid or nearly valid JSON.
fn json_text() -> impl Strategy<Value = String> {
    let odd = select(vec![
        "null",
        "true",
        "-0",
        "1e400",
        "1e-400",
        "9223372036854775808",
        "\"\\ud800\"",
        "\"\\u0000\"",
        "\"\\u202e\"",
        "\"\"",
        "\" \"",
        "[]",
        "{}",
        "{\"a\":1,\"a\":2}",
        "[[[[[[]]]]]]",
        "\"2026-13-01T10:00\"",
        "\"/sections/17637000000061\"",
        "\"data:,\"",
        "1.005",
    ]);
    prop_oneof![3 => odd.prop_map(str::to_owned), 1 => any::<String>().prop_map(|text| json!(text).to_string()), 1 => any::<String>()]
}

#[test]
fn bodies() {
    let contract = boxoffice::contract::load().unwrap();
    let operations = operations();
    let with_bodies: Vec<_> = operations.iter().filter(|operation| operation.body_schema().is_some()).collect();
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let changes = vec((any::<prop::sample::Index>(), json_text()), 0..4);
    let raw = prop_oneof![6 => Just(None), 1 => vec(any::<u8>(), 0..64).prop_map(Some)];
    fuzz("tests/api/fuzz/bodies.txt", (any::<prop::sample::Index>(), changes, raw), |(which, changes, raw)| {
        let operation = which.get(&with_bodies);
        let names: Vec<&String> = operation.body_schema().unwrap()["properties"].as_object().unwrap().keys().collect();
        let mut parts: Vec<(String, String)> =
            operation.body().as_object().unwrap().iter().map(|(name, value)| (name.clone(), value.to_string())).collect();
        for (at, value) in changes {
            let name = (*at.get(&names)).clone();
            parts.retain(|(known, _)| *known != name);
            parts.push((name, value));
        }
        let parts: Vec<String> = parts.into_iter().map(|(name, value)| format!("{}:{value}", json!(name))).collect();
        let body = raw.unwrap_or_else(|| format!("{{{}}}", parts.join(",")).into_bytes());
        let path = operation.path_with(&[]);
        match contract.operation(&operation.id).unwrap().check(&path, Some(&operation.required_query()), &headers, &body) {
            // Accepted arguments conform to the schema, and do so again after a round trip.
            Ok(arguments) => {
                let again = arguments.body.to_string();
                let found = contract.operation(&operation.id).unwrap();
                let again = found.check(&path, Some(&operation.required_query()), &headers, again.as_bytes());
                prop_assert!(again.is_ok_and(|again| again.body == arguments.body));
            }
            Err(RequestError::InvalidFields(problems)) => prop_assert!(!problems.is_empty()),
            Err(RequestError::MalformedBody(_) | RequestError::UnsupportedMediaType(_)) => {}
            Err(error) => prop_assert!(false, "{:?}", error),
        }
        Ok(())
    });
}

#[test]
fn queries_and_paths() {
    const MODELS: &[&str] = &[
        "/v3/events/17637000000051/sections/17637000000061?page=1&records=25",
        "/orders?number=%5E176&status=Placed&page=1",
        "/events?sort=start&order=desc&active=true&region=x",
        "/submissions/L2V2ZW50cy8xNzYzNzAwMDAwMDA1MQ==?approved=true&reason=%0A",
        "/accounts/GH-4K7QW2MZ/sessions/17637000000051",
    ];
    let contract = boxoffice::contract::load().unwrap();
    fuzz("tests/api/fuzz/queries_and_paths.txt", (select(vec!["GET", "DELETE", "PUT"]), like(MODELS)), |(method, uri)| {
        let (path, query) = uri.split_once('?').unwrap_or((&uri, ""));
        let path = contract.without_prefix(path);
        let Ok(operation) = contract.find(method, path) else { return Ok(()) };
        match operation.check(path, Some(query), &HeaderMap::new(), b"") {
            Ok(arguments) => prop_assert!(arguments.query.values().all(|value| !matches!(value, Value::Null))),
            Err(RequestError::InvalidFields(_) | RequestError::UnknownResource) => {}
            Err(error) => prop_assert!(false, "{:?}", error),
        }
        Ok(())
    });
}
