//! Tests of the names of paged lists.

use boxoffice_openapi::paging::{SIZE_NAMES, entries_property, has_name};
use serde_json::json;

#[test]
fn separators_and_case_have_no_meaning() {
    assert!(has_name(&SIZE_NAMES, "per_page") && has_name(&SIZE_NAMES, "perPage") && has_name(&SIZE_NAMES, "Page-Size"));
    assert!(!has_name(&SIZE_NAMES, "page"));
}

#[test]
fn entries_are_preferably_objects() {
    assert_eq!(entries_property(&json!({ "tags": ["a"], "books": [{ "id": 1 }] })), Some("books"));
    assert_eq!(entries_property(&json!({ "total": 0, "books": [] })), Some("books"));
    assert_eq!(entries_property(&json!([1])), None);
}
