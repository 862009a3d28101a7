//! Tests of the formats of the built-in document.

use boxoffice_openapi::{compile, parse_birth_date};
use serde_json::json;

#[test]
fn accepts_deliverable_email_addresses_only() {
    let validator = compile(&json!({ "format": "email" })).unwrap();
    let is_deliverable_email = |email: &str| validator.is_valid(&json!(email));
    for email in ["a@b.co", "first.last+tag@example.com", "o'neil@sub.example.com", "ama@xn--bcher-kva.example", "ama@localhost"]
    {
        assert!(is_deliverable_email(email), "{email}");
    }
    for email in [
        "\"a b\"@example.com",
        "\"ama\"@example.com",
        "\"\"@example.com",
        "a b@example.com",
        "ama@192.0.2.1",
        "ama@[192.0.2.1]",
        "ama@exa_mple.com",
        "ama@-example.com",
        "ama@example..com",
        "ama@example.com.",
        ".ama@example.com",
        "ama.@example.com",
        "a..b@example.com",
        "\u{e4}ma@example.com",
        "Ama <ama@example.com>",
        "<ama@example.com>",
        "ama@example.com, kofi@example.com",
        "ama@",
        "ama",
        "",
    ] {
        assert!(!is_deliverable_email(email), "{email}");
    }
    assert!(!is_deliverable_email(&format!("{}@example.com", "x".repeat(65))), "the local part has at most 64 characters");
    assert!(!is_deliverable_email(&format!("ama@{}.com", "x".repeat(64))), "a label has at most 63 characters");
}

#[test]
fn a_birth_date_is_read_in_both_shapes() {
    assert_eq!(parse_birth_date("1990-02-28").as_deref(), Some("1990-02-28"));
    assert_eq!(parse_birth_date("28-02-1990").as_deref(), Some("1990-02-28"));
    for invalid in ["30-02-1990", "1899-12-31", "31-12-1899", "0990-02-28", "12990-02-28", ""] {
        assert_eq!(parse_birth_date(invalid), None, "{invalid}");
    }
    assert_eq!(parse_birth_date("01-01-1900").as_deref(), Some("1900-01-01"));
}
