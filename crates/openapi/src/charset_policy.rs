//! The characters that strings may contain. The built-in document states this rule once, in its introduction, instead of in each
//! schema.

use icu_properties::CodePointSetData;
use icu_properties::props::DefaultIgnorableCodePoint;
use serde_json::Value;

/// Error message for a string with the character NUL, which PostgreSQL can't store.
pub const NUL: &str = "must not contain the character NUL";

/// Schema extension that allows line breaks in a string.
const MULTILINE: &str = "x-multiline";
/// Schema extension that allows any character in a string.
const ANY_CHARACTER: &str = "x-any-character";

/// The set of characters that a string may contain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AllowedCharacters {
    /// Visible characters of a single line. Names with invisible characters could imitate other names or change the text around
    /// them.
    Line,
    /// Visible characters, line breaks, tabs, and zero-width spaces, which some languages use for line breaking.
    Lines,
    /// Any character except NUL: for passwords and data that isn't displayed as text.
    Any,
}

impl AllowedCharacters {
    /// Returns the set for a schema of the built-in document.
    pub fn of(schema: &Value) -> Self {
        match schema["format"].as_str() {
            Some("password" | "image") => Self::Any,
            _ if schema[ANY_CHARACTER] == true => Self::Any,
            _ if schema[MULTILINE] == true => Self::Lines,
            _ => Self::Line,
        }
    }

    /// Returns an error message for the first forbidden character in the strings of a value, including property names.
    pub fn violation(self, value: &Value) -> Option<String> {
        match value {
            Value::String(text) => self.text_violation(text),
            Value::Array(items) => items.iter().find_map(|item| self.violation(item)),
            Value::Object(object) => {
                object.iter().find_map(|(name, value)| self.text_violation(name).or_else(|| self.violation(value)))
            }
            _ => None,
        }
    }

    /// Returns the same for a value of a schema. Skips values of a type that the schema rejects, and properties that it doesn't name,
    /// because they are ignored.
    pub fn violation_of(self, schema: &Value, value: &Value) -> Option<String> {
        match (schema["type"].as_str(), value) {
            (Some("array"), Value::Array(items)) => items.iter().find_map(|item| self.violation_of(&schema["items"], item)),
            (Some("object"), Value::Object(object)) => object.iter().find_map(|(name, value)| {
                let of_names = &schema["additionalProperties"];
                match schema["properties"].get(name) {
                    Some(property) => self.violation_of(property, value),
                    None if of_names.is_object() || *of_names == true => {
                        self.text_violation(name).or_else(|| self.violation_of(of_names, value))
                    }
                    None => None,
                }
            }),
            (Some("string"), Value::String(_)) | (None, _) => self.violation(value),
            _ => None,
        }
    }

    fn text_violation(self, text: &str) -> Option<String> {
        self.forbidden_character(text).map(|character| match character {
            '\0' => NUL.to_owned(),
            _ => format!("must not contain the character U+{:04X}", u32::from(character)),
        })
    }

    fn forbidden_character(self, text: &str) -> Option<char> {
        text.chars().find(|character| self.forbids(*character))
    }

    fn forbids(self, character: char) -> bool {
        match (self, character) {
            (_, '\0') => true,
            (Self::Any, _) => false,
            (Self::Lines, '\t' | '\n' | '\r') => false,
            (Self::Line, '\u{200b}' | '\u{2028}' | '\u{2029}' | '\u{2060}' | '\u{feff}') => true,
            // Bidirectional controls reverse the text that follows, even in other fields (Unicode Technical Report 36, section 2.6).
            (_, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}') => true,
            (_, character) => character.is_control(),
        }
    }
}

/// Returns whether no text of a request may contain a character: a control character other than a tab or the end of a line, or one
/// that reverses the text that follows.
pub fn is_forbidden(character: char) -> bool {
    AllowedCharacters::Lines.forbids(character)
}

/// Returns whether a character is displayed as nothing or as an empty space: white space, a character that Unicode declares as
/// ignorable in display, or the blank pattern of Braille.
pub fn is_invisible(character: char) -> bool {
    let ignorable = CodePointSetData::new::<DefaultIgnorableCodePoint>();
    character.is_whitespace() || character == '\u{2800}' || ignorable.contains(character)
}
