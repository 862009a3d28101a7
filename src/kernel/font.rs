//! The font of tickets and generated images.

use ab_glyph::{Font, FontRef};
use anyhow::Result;
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;
use unicode_width::UnicodeWidthChar;

/// The character that is drawn for one that the font lacks.
const REPLACEMENT: char = '□';

/// Returns the font's file.
pub fn file() -> &'static [u8] {
    dejavu::sans_condensed::regular()
}

/// Opens the font. It has the letters of the languages that are written in Latin, Greek or Cyrillic letters, and the symbols of most
/// currencies.
///
/// # Errors
/// Returns an error if the file can't be read, which is not expected.
pub fn open() -> Result<FontRef<'static>> {
    Ok(FontRef::try_from_slice(file())?)
}

/// Returns a text with the characters that the font can draw. Line breaks become spaces, and characters that the font lacks become `□`.
/// Those without a visible form, such as variation selectors, are left out.
pub fn drawable(font: &FontRef<'_>, text: &str) -> String {
    let drawable = |letter: char| {
        let glyph = font.glyph_id(letter);
        let has_glyph = glyph.0 != 0;
        let has_width = letter.width().is_some_and(|width| width > 0);
        match (has_width, has_glyph) {
            _ if letter.is_whitespace() => Some(' '),
            (true, true) => Some(letter),
            (true, false) => Some(REPLACEMENT),
            // Accents that have no composed letter. A variation selector is such a mark too, but its glyph is empty.
            (false, true) if is_combining_mark(letter) && font.outline(glyph).is_some() => Some(letter),
            (false, _) => None,
        }
    };
    text.nfc().filter_map(drawable).collect()
}
