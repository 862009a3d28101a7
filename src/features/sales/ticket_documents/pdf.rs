//! Writing of a document.

use std::io::Write;

use anyhow::Result;
use chrono_tz::Tz;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use pdf_writer::{Filter, Finish, Name, Pdf, Rect, Ref, TextStr};

use super::font::{DocumentFont, FontRefs};
use super::model::DocumentTicket;
use super::page::{self, HEIGHT, WIDTH};
use crate::kernel::types::language::Language;

/// The name of the font in the pages.
pub(super) const FONT: Name<'static> = Name(b"F");

/// The level of compression, of at most 9. The next ones take half as long again, and save 3 %.
const LEVEL: u32 = 3;

/// The texts and formats of a document.
#[derive(Debug, Clone)]
pub struct DocumentStyle {
    /// The language.
    pub language: Language,
    /// The time zone of the times.
    pub time_zone: Tz,
    /// The platform's name.
    pub platform: String,
}

/// Returns a PDF with one page for each ticket. 50 tickets take about 16 milliseconds of a core.
///
/// # Errors
/// Returns an error if the font can't be embedded or a code is too long, which is not expected.
pub fn render(tickets: &[DocumentTicket], style: &DocumentStyle) -> Result<Vec<u8>> {
    let mut last = 0;
    let mut next = || {
        last += 1;
        Ref::new(last)
    };
    let (catalog, tree, info) = (next(), next(), next());
    let font_refs = FontRefs::new(&mut next);
    let pages: Vec<(Ref, Ref)> = tickets.iter().map(|_| (next(), next())).collect();
    let mut font = DocumentFont::open()?;
    let mut pdf = Pdf::new();
    pdf.catalog(catalog).pages(tree).lang(TextStr(style.language.code()));
    let title = tickets.first().map(|ticket| ticket.row.title.as_str()).unwrap_or_default();
    pdf.document_info(info).title(TextStr(title)).creator(TextStr(&style.platform));
    let count = i32::try_from(pages.len())?;
    pdf.pages(tree).kids(pages.iter().map(|(page, _)| *page)).count(count);
    for (number, (ticket, (page, content))) in (1..).zip(tickets.iter().zip(&pages)) {
        let mut written = pdf.page(*page);
        written.parent(tree).media_box(Rect::new(0.0, 0.0, WIDTH, HEIGHT)).contents(*content);
        written.resources().fonts().pair(FONT, font_refs.font);
        written.finish();
        let drawn = page::draw(ticket, (number, tickets.len()), style, &mut font)?;
        pdf.stream(*content, &compress(&drawn)?).filter(Filter::FlateDecode);
    }
    font.write(&mut pdf, &font_refs)?;
    Ok(pdf.finish())
}

pub(super) fn compress(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::new(LEVEL));
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?)
}
