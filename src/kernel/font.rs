//! The font of tickets and generated images.

use std::ops::Range;

use ab_glyph::{Font, FontRef};
use anyhow::Result;
use ar_reshaper::ReshaperConfig;
use ar_reshaper::prelude::LigatureNames;
use unicode_bidi::BidiInfo;
use unicode_bidi_mirroring::get_mirrored;
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;
use unicode_width::UnicodeWidthChar;

/// The character that is drawn for one that the font lacks.
const REPLACEMENT: char = '□';
/// Joins letters that would not be joined otherwise. It has no visible form, and `ar-reshaper` panics on some texts that have it.
const ZERO_WIDTH_JOINER: char = '\u{200D}';

/// Returns the font's file.
pub fn file() -> &'static [u8] {
    dejavu::sans_condensed::regular()
}

/// Opens the font. It has the letters of the languages that are written in Latin, Greek or Cyrillic letters, those of Arabic, Persian and
/// Hebrew, and the symbols of most currencies.
///
/// # Errors
/// Returns an error if the file can't be read, which is not expected.
pub fn open() -> Result<FontRef<'static>> {
    Ok(FontRef::try_from_slice(file())?)
}

/// Returns a text with the characters that the font can draw. Line breaks become spaces, and characters that the font lacks become `□`.
/// Those without a visible form, such as variation selectors, are left out. Arabic letters get the form that joins them to their
/// neighbours, and lose the marks of vowels. The text stays in the order in which it is read, see [`visual_order`].
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
    let text: String = text.nfc().filter(|letter| *letter != ZERO_WIDTH_JOINER).collect();
    let mut joining = ReshaperConfig::default();
    // The font has no such ligature.
    joining.update_ligature(LigatureNames::ARABIC_LIGATURE_ALLAH, false);
    joining.to_reshaper().reshape(text).chars().filter_map(drawable).collect()
}

/// Returns the characters of a [drawable] line as they stand from left to right: those of Hebrew and Arabic words are reversed. The first
/// letter of the line that has a direction decides the order of the words (Unicode Standard Annex #9).
pub fn visual_order(line: &str) -> String {
    let bidi = BidiInfo::new(line, None);
    let Some(paragraph) = bidi.paragraphs.first().filter(|_| bidi.has_rtl()) else { return line.to_owned() };
    let (levels, runs) = bidi.visual_runs(paragraph, paragraph.range.clone());
    let ordered = |run: Range<usize>| match levels[run.start].is_rtl() {
        true => reversed(&line[run]),
        false => line[run].to_owned(),
    };
    runs.into_iter().map(ordered).collect()
}

/// Returns a text from its end, with mirrored brackets. Marks stay behind their letter.
fn reversed(text: &str) -> String {
    let mut letters: Vec<String> = Vec::new();
    for letter in text.chars() {
        match letters.last_mut().filter(|_| is_combining_mark(letter)) {
            Some(marked) => marked.push(letter),
            None => letters.push(get_mirrored(letter).unwrap_or(letter).into()),
        }
    }
    letters.into_iter().rev().collect()
}
