//! Drawing of generated images: white text in the centre of a coloured area.

use std::io::Cursor;

use ab_glyph::{Font, FontRef, PxScale, ScaleFont, point};
use anyhow::Result;
use image::{ImageFormat, Rgba, RgbaImage};
use sha2::{Digest, Sha256};

use crate::kernel::font;

/// Background colours. White letters have a contrast of at least 4.5 on each of them, as accessibility guidelines require.
const COLOURS: [[u8; 3]; 12] = [
    [0xC6, 0x28, 0x28],
    [0xAD, 0x14, 0x57],
    [0x8E, 0x24, 0xAA],
    [0x5E, 0x35, 0xB1],
    [0x39, 0x49, 0xAB],
    [0x19, 0x65, 0xC0],
    [0x02, 0x6E, 0xA6],
    [0x00, 0x76, 0x7F],
    [0x00, 0x75, 0x64],
    [0x2E, 0x7D, 0x32],
    [0x8A, 0x63, 0x00],
    [0xB8, 0x4A, 0x0E],
];
/// Width and height of a disc, in pixels.
const DISC_SIDE: u32 = 128;
/// Share of the width and of the height of an image that its text may fill.
const TEXT_SHARE: f32 = 0.75;
/// Sizes of the text as shares of the image's height. The first one at which the text fits is used, otherwise the last one.
const SIZE_SHARES: [f32; 8] = [0.6, 0.45, 0.32, 0.24, 0.18, 0.13, 0.1, 0.07];

/// Draws a disc with a text on a transparent background, and returns it as a PNG. `seed` selects the colour.
///
/// # Errors
/// Returns an error if the font can't be read or the encoder fails, which is not expected.
pub fn disc(seed: &str, text: &str) -> Result<Vec<u8>> {
    let [red, green, blue] = colour(seed);
    with_text(RgbaImage::from_fn(DISC_SIDE, DISC_SIDE, |x, y| Rgba([red, green, blue, disc_alpha(x, y)])), text)
}

/// Draws a rectangle of this width and height in pixels with a text, and returns it as a PNG. `seed` selects the colour.
///
/// # Errors
/// Returns an error if the font can't be read or the encoder fails, which is not expected.
pub fn rectangle(seed: &str, (width, height): (u32, u32), text: &str) -> Result<Vec<u8>> {
    let [red, green, blue] = colour(seed);
    with_text(RgbaImage::from_pixel(width, height, Rgba([red, green, blue, 0xFF])), text)
}

fn colour(seed: &str) -> [u8; 3] {
    COLOURS[usize::from(Sha256::digest(seed)[0]) % COLOURS.len()]
}

/// Returns the alpha value of a pixel of the disc: opaque inside, transparent outside, with a soft edge of one pixel.
fn disc_alpha(x: u32, y: u32) -> u8 {
    let centre = DISC_SIDE as f32 / 2.0;
    let inside = centre - 1.0 - (x as f32 + 0.5 - centre).hypot(y as f32 + 0.5 - centre);
    ((inside + 0.5).clamp(0.0, 1.0) * 255.0) as u8
}

/// Draws the text, wrapped at spaces, and encodes the image.
fn with_text(mut image: RgbaImage, text: &str) -> Result<Vec<u8>> {
    let font = font::open()?;
    let text = font::drawable(&font, text);
    let (image_width, image_height) = (image.width() as f32, image.height() as f32);
    let mut layout = (0.0, Vec::new());
    for share in SIZE_SHARES {
        let size = share * image_height;
        let lines = wrap(&font, size, &text, image_width * TEXT_SHARE);
        let fits = size * lines.len() as f32 <= image_height * TEXT_SHARE
            && lines.iter().all(|line| width(&font, size, line) <= image_width * TEXT_SHARE);
        layout = (size, lines);
        if fits {
            break;
        }
    }
    let (size, lines) = layout;
    let mut top = (image_height - size * lines.len() as f32) / 2.0;
    for line in lines {
        draw_line(&mut image, &font, size, &line, top);
        top += size;
    }
    let mut file = Cursor::new(Vec::new());
    image.write_to(&mut file, ImageFormat::Png)?;
    Ok(file.into_inner())
}

/// Splits a text into lines of at most this width. A word that is wider by itself gets a line of its own.
fn wrap(font: &FontRef<'_>, size: f32, text: &str, max_width: f32) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let longer = lines.last().map(|line| format!("{line} {word}")).filter(|line| width(font, size, line) <= max_width);
        match (longer, lines.last_mut()) {
            (Some(longer), Some(line)) => *line = longer,
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

fn width(font: &FontRef<'_>, size: f32, line: &str) -> f32 {
    let font = font.as_scaled(PxScale::from(size));
    line.chars().map(|letter| font.h_advance(font.glyph_id(letter))).sum()
}

/// Draws a line in the middle of the image's width. Pixels outside the image are left out.
fn draw_line(image: &mut RgbaImage, font: &FontRef<'_>, size: f32, line: &str, top: f32) {
    let scaled = font.as_scaled(PxScale::from(size));
    let (mut left, baseline) = ((image.width() as f32 - width(font, size, line)) / 2.0, top + scaled.ascent());
    for letter in font::visual_order(line).chars() {
        let mut glyph = scaled.scaled_glyph(letter);
        glyph.position = point(left, baseline);
        left += scaled.h_advance(glyph.id);
        let Some(outline) = scaled.outline_glyph(glyph) else { continue };
        let start = outline.px_bounds().min;
        outline.draw(|x, y, coverage| {
            let (x, y) = (start.x + x as f32, start.y + y as f32);
            if x < 0.0 || y < 0.0 {
                return;
            }
            let Some(Rgba([colour @ .., _])) = image.get_pixel_mut_checked(x as u32, y as u32) else { return };
            for part in colour {
                *part += (f32::from(255 - *part) * coverage.clamp(0.0, 1.0)) as u8;
            }
        });
    }
}
