//! The error catalogue in `docs/errors.md`.

use std::collections::BTreeSet;
use std::fs;

use boxoffice::error_catalogue;
use boxoffice::routes::routes;

use crate::support::CONTRACT;

/// `BOXOFFICE_WRITE=1` writes the page.
#[test]
fn page_is_current() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/errors.md");
    let page = error_catalogue::render(&CONTRACT.document, &routes().openapi().unwrap()).unwrap();
    if std::env::var_os("BOXOFFICE_WRITE").is_some() {
        fs::write(file, &page).unwrap();
    }
    assert!(fs::read_to_string(file).unwrap() == page, "docs/errors.md is stale: run `boxoffice errors > docs/errors.md`");
}

#[test]
fn catalogue_has_every_code_and_no_other() {
    let schema = &CONTRACT.document["components"]["schemas"]["ErrorCode"];
    let codes: BTreeSet<_> = schema["x-extensible-enum"].as_array().unwrap().iter().map(|code| code.as_str().unwrap()).collect();
    let entries: BTreeSet<_> = schema["x-error-catalogue"].as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(codes, entries);
}
