//! The page of a ticket, in points of 1/72 inch from the bottom left.

use anyhow::Result;
use pdf_writer::{Content, Str};

use super::font::DocumentFont;
use super::model::DocumentTicket;
use super::pdf::{DocumentStyle, FONT};
use crate::features::sales::tickets::QrCode;
use crate::kernel::outbox::format_time;
use crate::kernel::types::language::Language;

/// Width of A4.
pub(super) const WIDTH: f32 = 595.28;
/// Height of A4.
pub(super) const HEIGHT: f32 = 841.89;
const MARGIN: f32 = 56.0;
const TEXT_WIDTH: f32 = WIDTH - 2.0 * MARGIN;
const HEAD_HEIGHT: f32 = 64.0;
/// Width and height of the QR code, without the quiet zone around it.
const QR_SIDE: f32 = 210.0;

const BLUE: [f32; 3] = [0.122, 0.227, 0.373];
const BLACK: [f32; 3] = [0.1, 0.12, 0.16];
const GREY: [f32; 3] = [0.36, 0.4, 0.47];
const WHITE: [f32; 3] = [1.0, 1.0, 1.0];

/// The fixed texts of a page.
struct Labels {
    venue: &'static str,
    section: &'static str,
    holder: &'static str,
    order: &'static str,
    ticket: &'static str,
    number: fn(usize, usize) -> String,
    advice: &'static str,
}

impl Labels {
    fn of(language: Language) -> Self {
        match language {
            Language::En => Self {
                venue: "Venue",
                section: "Section",
                holder: "Holder",
                order: "Order",
                ticket: "Ticket",
                number: |number, count| format!("Ticket {number} of {count}"),
                advice: "This code admits one person, once. Keep it to yourself.",
            },
            Language::Fr => Self {
                venue: "Lieu",
                section: "Catégorie",
                holder: "Titulaire",
                order: "Commande",
                ticket: "Billet",
                number: |number, count| format!("Billet {number} sur {count}"),
                advice: "Ce code permet l’entrée d’une personne, une seule fois. Gardez-le pour vous.",
            },
        }
    }
}

/// A page while it is drawn.
struct DocumentPage<'a> {
    content: Content,
    font: &'a mut DocumentFont,
}

/// Draws the page of a ticket, which is the given one of all.
///
/// # Errors
/// Returns an error if its code is too long for a QR code.
pub(super) fn draw(
    ticket: &DocumentTicket,
    (number, count): (usize, usize),
    style: &DocumentStyle,
    font: &mut DocumentFont,
) -> Result<Vec<u8>> {
    let labels = Labels::of(style.language);
    let mut page = DocumentPage { content: Content::new(), font };
    page.fill(BLUE).rect(0.0, HEIGHT - HEAD_HEIGHT, WIDTH, HEAD_HEIGHT).fill_nonzero();
    let head = HEIGHT - HEAD_HEIGHT / 2.0 - 5.0;
    page.line(&style.platform, 16.0, WHITE, MARGIN, head);
    let of_all = (labels.number)(number, count);
    page.line_to(&of_all, 12.0, WHITE, WIDTH - MARGIN, head);

    let row = &ticket.row;
    let mut top = HEIGHT - HEAD_HEIGHT - 48.0;
    for line in page.wrap(&row.title, 26.0, 3) {
        page.line(&line, 26.0, BLACK, MARGIN, top);
        top -= 32.0;
    }
    let starts = format_time(row.starts, style.time_zone, style.language);
    page.line(&starts, 15.0, BLUE, MARGIN, top - 2.0);
    top -= 40.0;
    let venue = format!("{}, {}", row.venue, row.address);
    let order = row.ticket.order_id.to_string();
    let fields = [(labels.venue, &venue, 3), (labels.section, &row.section, 2), (labels.holder, &ticket.owner, 2)];
    for (label, text, lines) in fields.into_iter().chain([(labels.order, &order, 1), (labels.ticket, &row.ticket.serial, 1)]) {
        page.line(label, 10.0, GREY, MARGIN, top);
        top -= 16.0;
        for line in page.wrap(text, 14.0, lines) {
            page.line(&line, 14.0, BLACK, MARGIN, top);
            top -= 18.0;
        }
        top -= 8.0;
    }
    page.qr_code(&ticket.code, (WIDTH - QR_SIDE) / 2.0, MARGIN + 44.0)?;
    page.centred(labels.advice, 11.0, GREY, MARGIN);
    Ok(page.content.finish().to_vec())
}

impl DocumentPage<'_> {
    fn fill(&mut self, [red, green, blue]: [f32; 3]) -> &mut Content {
        self.content.set_fill_rgb(red, green, blue)
    }

    /// Draws a line that begins at `left`.
    fn line(&mut self, text: &str, size: f32, colour: [f32; 3], left: f32, baseline: f32) {
        let text = self.font.drawable(text);
        let glyphs = self.font.encode(&text);
        self.fill(colour).begin_text().set_font(FONT, size).next_line(left, baseline).show(Str(&glyphs)).end_text();
    }

    /// Draws a line that ends at `right`.
    fn line_to(&mut self, text: &str, size: f32, colour: [f32; 3], right: f32, baseline: f32) {
        let width = self.width(&self.font.drawable(text), size);
        self.line(text, size, colour, right - width, baseline);
    }

    fn centred(&mut self, text: &str, size: f32, colour: [f32; 3], baseline: f32) {
        let width = self.width(&self.font.drawable(text), size);
        self.line(text, size, colour, (WIDTH - width) / 2.0, baseline);
    }

    /// Returns the width of a text that the font has.
    fn width(&self, text: &str, size: f32) -> f32 {
        self.font.width(text) * size
    }

    /// Splits a text into at most this many lines. What doesn't fit is replaced by an ellipsis.
    fn wrap(&self, text: &str, size: f32, most: usize) -> Vec<String> {
        let text = self.font.drawable(text);
        let mut lines: Vec<String> = vec![String::new()];
        for (piece, begins_word) in text.split_whitespace().flat_map(|word| self.pieces(word, size)) {
            let line = lines.last_mut().map(std::mem::take).unwrap_or_default();
            let separator = if begins_word && !line.is_empty() { " " } else { "" };
            let longer = format!("{line}{separator}{piece}");
            if self.width(&longer, size) <= TEXT_WIDTH {
                lines.pop();
                lines.push(longer);
            } else if lines.len() < most {
                lines.pop();
                lines.extend([line, piece]);
            } else {
                lines.pop();
                lines.push(self.shortened(&line, size));
                break;
            }
        }
        lines
    }

    /// Returns a word, or the pieces of one that is wider than the page, each with whether it begins the word.
    fn pieces(&self, word: &str, size: f32) -> Vec<(String, bool)> {
        if self.width(word, size) <= TEXT_WIDTH {
            return vec![(word.to_owned(), true)];
        }
        let mut pieces = vec![(String::new(), true)];
        for letter in word.chars() {
            let is_full = pieces.last().is_some_and(|(piece, _)| self.width(&format!("{piece}{letter}"), size) > TEXT_WIDTH);
            if is_full {
                pieces.push((String::new(), false));
            }
            pieces.last_mut().into_iter().for_each(|(piece, _)| piece.push(letter));
        }
        pieces
    }

    fn shortened(&self, line: &str, size: f32) -> String {
        let mut line = line.to_owned();
        while self.width(&format!("{line}…"), size) > TEXT_WIDTH && line.pop().is_some() {}
        format!("{}…", line.trim_end())
    }

    /// Draws a QR code with its lower left corner at this position. Neighbouring dark modules of a row are one rectangle, so that
    /// no viewer draws a gap between them.
    fn qr_code(&mut self, text: &str, left: f32, bottom: f32) -> Result<()> {
        let code = QrCode::encode(text)?;
        let side = QR_SIDE / code.width as f32;
        self.fill([0.0; 3]);
        // In modules, so that the numbers are short.
        self.content.save_state().transform([side, 0.0, 0.0, side, left, bottom]);
        for run in code.runs() {
            self.content.rect(run.column as f32, (code.width - 1 - run.row) as f32, run.length as f32, 1.0);
        }
        self.content.fill_nonzero().restore_state();
        Ok(())
    }
}
