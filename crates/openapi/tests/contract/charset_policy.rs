//! Tests of the characters that strings may contain.

use boxoffice_openapi::{AllowedCharacters, is_blank};
use serde_json::json;

#[test]
fn checks_declared_values_of_the_declared_types() {
    let items = json!({ "type": "object", "properties": { "name": { "type": "string" } } });
    let counts = json!({ "type": "object", "additionalProperties": { "type": "integer" } });
    let schema = json!({ "type": "object", "properties": { "list": { "type": "array", "items": items }, "counts": counts } });
    let found = |value| AllowedCharacters::Line.violation_of(&schema, &value).is_some();

    assert!(found(json!({ "list": [{ "name": "a\nb" }] })));
    assert!(found(json!({ "counts": { "a\nb": 1 } })));
    assert!(!found(json!({ "list": [{ "name": "a", "note\n": "a\nb" }], "note": "a\nb" })), "undeclared");
    assert!(!found(json!({ "list": [{ "name": ["a\nb"] }, "a\nb"], "counts": "a\nb" })), "of another type");
}

#[test]
fn allows_all_languages_and_rejects_invisible_characters() {
    let name = AllowedCharacters::of(&json!({ "type": "string" }));
    let description = AllowedCharacters::of(&json!({ "type": "string", "x-multiline": true }));
    let password = AllowedCharacters::of(&json!({ "type": "string", "format": "password" }));
    // Arabic with a direction mark, Persian and an emoji with joiners, Hebrew, combining accents.
    for text in ["\u{200f}مسرح 3", "می\u{200c}خواهم", "👩\u{200d}🎤", "תיאטרון", "Cafe\u{301}", "Ɔdɔ & Co."]
    {
        assert_eq!(
            [name, description, password].map(|characters| characters.violation(&json!(text))),
            [None, None, None],
            "{text}"
        );
    }
    for (text, refused) in [
        ("a\0b", [true, true, true]),
        ("a\u{7}b", [true, true, false]),
        ("a\u{7f}b", [true, true, false]),
        ("a\u{85}b", [true, true, false]),
        ("a\u{202e}b", [true, true, false]),
        ("a\u{2066}b", [true, true, false]),
        ("a\nb\tc\r\n", [true, false, false]),
        ("a\u{200b}b", [true, false, false]),
        ("a\u{feff}b", [true, false, false]),
    ] {
        let found = [name, description, password].map(|characters| characters.violation(&json!(text)).is_some());
        assert_eq!(found, refused, "{text:?}");
    }
    for text in ["\u{3164}", "\u{2800}\u{ad} ", "\u{200d}\u{200c}", "\u{fe0f}\u{e0041}", "\t\u{85}\u{a0}"] {
        assert!(is_blank(&json!(text)), "{text:?}");
    }
    assert!(!"Ɔ٣漢.🎤\u{301}\0\u{7}".chars().any(|character| is_blank(&json!(character))));
    assert_eq!(name.violation(&json!(["a", { "b\u{202e}": 1 }])).as_deref(), Some("must not contain the character U+202E"));
}
