//! Which characters a text may have, whatever its schema says: the platform's own contract tells it once, in its introduction.

use serde_json::Value;

/// What is said of a text with the character NUL, which PostgreSQL cannot keep.
pub const NUL: &str = "must not contain the character NUL";

/// Marks a text that may have several lines.
const MULTILINE: &str = "x-multiline";

/// Which characters a text may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AllowedCharacters {
    /// Those of one line that can be seen. A name with others looks like another one, or changes the text around it.
    Line,
    /// Those, what parts lines, and blanks without a width, where some languages may break a line.
    Lines,
    /// Any but NUL: of a password, and of what isn't shown as a text.
    Any,
}

impl AllowedCharacters {
    /// What a schema of the platform's own contract allows.
    pub fn of(schema: &Value) -> Self {
        match schema["format"].as_str() {
            Some("password" | "image") => Self::Any,
            _ if schema[MULTILINE] == true => Self::Lines,
            _ => Self::Line,
        }
    }

    /// What is wrong with the texts in a value, if anything is.
    pub fn wrong(self, value: &Value) -> Option<String> {
        match value {
            Value::String(text) => self.refused(text).map(|character| match character {
                '\0' => NUL.to_owned(),
                _ => format!("must not contain the character U+{:04X}", u32::from(character)),
            }),
            Value::Array(items) => items.iter().find_map(|item| self.wrong(item)),
            Value::Object(object) => {
                object.iter().find_map(|(name, value)| self.wrong(&Value::from(name.as_str())).or_else(|| self.wrong(value)))
            }
            _ => None,
        }
    }

    /// The first character of a text that it may not have.
    fn refused(self, text: &str) -> Option<char> {
        text.chars().find(|character| match (self, character) {
            (_, '\0') => true,
            (Self::Any, _) => false,
            (Self::Lines, '\t' | '\n' | '\r') => false,
            (Self::Line, '\u{200b}' | '\u{2028}' | '\u{2029}' | '\u{2060}' | '\u{feff}') => true,
            // They turn the text that follows, that of others too (Unicode Technical Report 36, section 2.6).
            (_, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}') => true,
            (_, character) => character.is_control(),
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_language_can_be_written_and_nothing_hidden() {
        let name = AllowedCharacters::of(&json!({ "type": "string" }));
        let description = AllowedCharacters::of(&json!({ "type": "string", "x-multiline": true }));
        let password = AllowedCharacters::of(&json!({ "type": "string", "format": "password" }));
        // Arabic with a mark of direction, Persian and an emoji with joiners, Hebrew, combining accents.
        for text in ["\u{200f}مسرح 3", "می\u{200c}خواهم", "👩\u{200d}🎤", "תיאטרון", "Cafe\u{301}", "Ɔdɔ & Co."]
        {
            assert_eq!(
                [name, description, password].map(|characters| characters.wrong(&json!(text))),
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
            let found = [name, description, password].map(|characters| characters.wrong(&json!(text)).is_some());
            assert_eq!(found, refused, "{text:?}");
        }
        assert_eq!(name.wrong(&json!(["a", { "b\u{202e}": 1 }])).as_deref(), Some("must not contain the character U+202E"));
    }
}
