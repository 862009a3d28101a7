//! The font of a document, with the glyphs that it uses and no others.

use std::collections::BTreeMap;

use ab_glyph::{Font, FontRef};
use anyhow::{Context, Result, anyhow};
use pdf_writer::types::{CidFontType, FontFlags, SystemInfo, UnicodeCmap};
use pdf_writer::{Filter, Finish, Name, Pdf, Rect, Ref, Str};
use subsetter::GlyphRemapper;

use super::pdf::compress;
use crate::kernel::font;

/// The name of the font in the document. The six letters say that it is a subset (ISO 32000-1, 9.6.4).
const NAME: Name<'static> = Name(b"BOXOFF+DejaVuSansCondensed");
const SYSTEM_INFO: SystemInfo<'static> = SystemInfo { registry: Str(b"Adobe"), ordering: Str(b"Identity"), supplement: 0 };
/// The name of the map from glyphs to letters.
const UNICODE_MAP: Name<'static> = Name(b"Boxoffice");

/// The objects of a font in a document.
pub struct FontRefs {
    /// The font itself.
    pub font: Ref,
    descendant: Ref,
    descriptor: Ref,
    file: Ref,
    unicode: Ref,
}

impl FontRefs {
    /// Reserves the objects.
    pub fn new(mut next: impl FnMut() -> Ref) -> Self {
        Self { font: next(), descendant: next(), descriptor: next(), file: next(), unicode: next() }
    }
}

/// Collects the glyphs of a document while its pages are drawn.
pub struct DocumentFont {
    font: FontRef<'static>,
    glyphs: GlyphRemapper,
    /// The letter of each new glyph.
    letters: BTreeMap<u16, char>,
}

impl DocumentFont {
    /// Opens the font.
    pub fn open() -> Result<Self> {
        Ok(Self { font: font::open()?, glyphs: GlyphRemapper::new(), letters: BTreeMap::new() })
    }

    /// Returns a text with the characters that the font can draw.
    pub fn drawable(&self, text: &str) -> String {
        font::drawable(&self.font, text)
    }

    /// Returns the width of a text at a size of 1.
    pub fn width(&self, text: &str) -> f32 {
        let advance: f32 = text.chars().map(|letter| self.font.h_advance_unscaled(self.font.glyph_id(letter))).sum();
        advance / self.units()
    }

    /// Returns a line as the glyphs of the document, from left to right.
    pub fn encode(&mut self, line: &str) -> Vec<u8> {
        let line = font::visual_order(line);
        let mut bytes = Vec::with_capacity(line.len() * 2);
        for letter in line.chars() {
            let glyph = self.glyphs.remap(self.font.glyph_id(letter).0);
            self.letters.entry(glyph).or_insert(letter);
            bytes.extend(glyph.to_be_bytes());
        }
        bytes
    }

    fn units(&self) -> f32 {
        self.font.units_per_em().unwrap_or(1000.0)
    }

    /// Writes the font with the glyphs that were encoded.
    ///
    /// # Errors
    /// Returns an error if the font can't be reduced, which is not expected.
    pub fn write(&self, pdf: &mut Pdf, refs: &FontRefs) -> Result<()> {
        let scale = 1000.0 / self.units();
        pdf.type0_font(refs.font)
            .base_font(NAME)
            .encoding_predefined(Name(b"Identity-H"))
            .descendant_font(refs.descendant)
            .to_unicode(refs.unicode);

        let mut descendant = pdf.cid_font(refs.descendant);
        descendant.subtype(CidFontType::Type2).base_font(NAME).system_info(SYSTEM_INFO).font_descriptor(refs.descriptor);
        descendant.default_width(0.0).cid_to_gid_map_predefined(Name(b"Identity"));
        let widths = self.glyphs.remapped_gids().map(|glyph| self.font.h_advance_unscaled(ab_glyph::GlyphId(glyph)) * scale);
        descendant.widths().consecutive(0, widths);
        descendant.finish();

        let (ascent, descent) = (self.font.ascent_unscaled() * scale, self.font.descent_unscaled() * scale);
        pdf.font_descriptor(refs.descriptor)
            .name(NAME)
            .flags(FontFlags::NON_SYMBOLIC)
            .bbox(Rect::new(-200.0, descent, 1300.0, ascent))
            .italic_angle(0.0)
            .ascent(ascent)
            .descent(descent)
            .cap_height(ascent * 0.75)
            .stem_v(60.0)
            .font_file2(refs.file);

        let subset = subsetter::subset(font::file(), 0, &self.glyphs).map_err(|error| anyhow!("{error}"));
        let subset = subset.context("the font can't be reduced")?;
        pdf.stream(refs.file, &compress(&subset)?).filter(Filter::FlateDecode);

        let mut unicode = UnicodeCmap::new(UNICODE_MAP, SYSTEM_INFO);
        self.letters.iter().for_each(|(glyph, letter)| unicode.pair(*glyph, *letter));
        pdf.cmap(refs.unicode, &unicode.finish());
        Ok(())
    }
}
