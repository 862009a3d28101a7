//! Icons of regions. They are not uploaded but drawn from the name of the region's country, with the same result on every server.

use anyhow::Result;
use sha2::{Digest, Sha256};
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// Width and height of an icon, in pixels.
pub const SIDE: usize = 128;

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

/// Returns the file name of a country's icon: lower-case words of `[a-z0-9]`, joined by `_`.
///
/// Accents are removed. The file name of a country without any Latin letter is derived from its hash.
///
/// ```
/// use boxoffice::features::catalog::media::icon_name;
/// assert_eq!(icon_name("Côte d'Ivoire"), "cote_d_ivoire.png");
/// ```
pub fn name(country: &str) -> String {
    let mut folded = String::with_capacity(country.len());
    for letter in country.nfkd().filter(|letter| !is_combining_mark(*letter)) {
        match without_decomposition(letter) {
            Some(letters) => folded.push_str(letters),
            None => folded.push(letter.to_ascii_lowercase()),
        }
    }
    let words: Vec<_> = folded.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).collect();
    if words.is_empty() {
        let [a, b, c, d, ..] = hash(country);
        return format!("country_{a:02x}{b:02x}{c:02x}{d:02x}.png");
    }
    words.join("_") + ".png"
}

/// Returns the replacement of a letter that Unicode doesn't decompose into a base letter and an accent.
fn without_decomposition(letter: char) -> Option<&'static str> {
    Some(match letter {
        'ß' | 'ẞ' => "ss",
        'æ' | 'Æ' => "ae",
        'œ' | 'Œ' => "oe",
        'ø' | 'Ø' => "o",
        'ð' | 'Ð' | 'đ' | 'Đ' => "d",
        'þ' | 'Þ' => "th",
        'ł' | 'Ł' => "l",
        'ħ' | 'Ħ' => "h",
        'ı' => "i",
        _ => return None,
    })
}

/// Draws the icon for a file name of [`name`], with or without `.png`: a PNG of [`SIDE`] × [`SIDE`] pixels with a coloured disc
/// on a transparent background and the country's initials. It only uses operations that IEEE 754 rounds the same on every
/// machine.
///
/// # Errors
/// Returns an error if the encoder fails, which is not expected in memory.
pub fn render(name: &str) -> Result<Vec<u8>> {
    let name = name.strip_suffix(".png").unwrap_or(name);
    let colour = COLOURS[usize::from(hash(name)[0]) % COLOURS.len()];
    let letters = BitmapText::new(&initials(name));

    let mut pixels = Vec::with_capacity(SIDE * SIDE * 4);
    for y in 0..SIDE {
        for x in 0..SIDE {
            let white = letters.coverage(x, y);
            let [red, green, blue] = colour.map(|part| (f32::from(part) * (1.0 - white) + 255.0 * white) as u8);
            pixels.extend([red, green, blue, disc_alpha(x, y)]);
        }
    }

    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, SIDE as u32, SIDE as u32);
    encoder.set_color(png::ColorType::Rgba);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.write_header()?.write_image_data(&pixels)?;
    Ok(file)
}

fn hash(text: &str) -> [u8; 32] {
    Sha256::digest(text).into()
}

/// Returns the initials of the first two words, without articles, prepositions and conjunctions.
fn initials(name: &str) -> String {
    let is_stop_word = |word: &&str| matches!(*word, "of" | "the" | "and" | "d" | "l" | "de" | "da" | "del" | "la");
    let initials = |words: &mut dyn Iterator<Item = &str>| -> String {
        words.filter_map(|word| word.chars().next()).take(2).map(|letter| letter.to_ascii_uppercase()).collect()
    };
    let long = initials(&mut name.split('_').filter(|word| !is_stop_word(word)));
    if long.is_empty() { initials(&mut name.split('_')) } else { long }
}

/// Returns the alpha value of a pixel of the disc: opaque inside, transparent outside, with a soft edge of one pixel.
fn disc_alpha(x: usize, y: usize) -> u8 {
    let centre = SIDE as f32 / 2.0;
    let (dx, dy) = (x as f32 + 0.5 - centre, y as f32 + 0.5 - centre);
    let inside = centre - 1.0 - (dx * dx + dy * dy).sqrt();
    ((inside + 0.5).clamp(0.0, 1.0) * 255.0) as u8
}

/// One or two letters in the centre of the icon.
struct BitmapText {
    glyphs: Vec<[u8; GLYPH_HEIGHT]>,
    /// The width and height of a glyph's dot, in pixels.
    scale: usize,
}

impl BitmapText {
    fn new(text: &str) -> BitmapText {
        let glyphs: Vec<_> = text.chars().map(glyph).collect();
        // The largest scale at which the corners stay well inside the disc.
        let scale = if glyphs.len() > 1 { 8 } else { 11 };
        BitmapText { glyphs, scale }
    }

    /// Returns the coverage of a pixel by the letters, from 0 to 1.
    ///
    /// Dots drawn as squares would look like a defect at this size. So the ink is interpolated linearly between the centres of
    /// the dots, and the letter covers all points with enough ink. This rounds ends and corners, and joins the dots of a
    /// diagonal.
    fn coverage(&self, x: usize, y: usize) -> f32 {
        /// The threshold of the ink. It is below a half, so that dots touching at a corner are joined and strokes are slightly
        /// bold.
        const INK_THRESHOLD: f32 = 0.42;
        let scale = self.scale as f32;
        let dot = |position: usize, dots: usize| (position as f32 + 0.5 - SIDE as f32 / 2.0) / scale + dots as f32 / 2.0 - 0.5;
        let ink = self.ink_at(dot(x, self.width()), dot(y, GLYPH_HEIGHT));
        ((ink - INK_THRESHOLD) * scale + 0.5).clamp(0.0, 1.0)
    }

    /// Returns the ink at a point in dot coordinates, interpolated from the four dots around it.
    fn ink_at(&self, x: f32, y: f32) -> f32 {
        let (left, top) = (x.floor(), y.floor());
        let (right_share, bottom_share) = (x - left, y - top);
        let row = |y: f32| self.dot_at(left, y) * (1.0 - right_share) + self.dot_at(left + 1.0, y) * right_share;
        row(top) * (1.0 - bottom_share) + row(top + 1.0) * bottom_share
    }

    /// Returns 1 if there is a dot at these coordinates, otherwise 0.
    fn dot_at(&self, x: f32, y: f32) -> f32 {
        if x < 0.0 || y < 0.0 || y >= GLYPH_HEIGHT as f32 {
            return 0.0;
        }
        let (x, y) = (x as usize, y as usize);
        let Some(glyph) = self.glyphs.get(x / ADVANCE) else { return 0.0 };
        // The leftmost dot of a glyph is its highest bit. The column after the last dot is the gap.
        let column = 1 << (ADVANCE - 1 - x % ADVANCE);
        if (glyph[y] << 1) & column != 0 { 1.0 } else { 0.0 }
    }

    /// Returns the width of all letters with the gaps between them, in dots.
    fn width(&self) -> usize {
        (self.glyphs.len() * ADVANCE).saturating_sub(1)
    }
}

/// Distance from one letter to the next, in dots.
const ADVANCE: usize = GLYPH_WIDTH + 1;
const GLYPH_WIDTH: usize = 5;
const GLYPH_HEIGHT: usize = 7;

/// Returns the bitmap of a letter or digit: one number per row, whose five low bits are the dots from left to right. Other
/// characters are blank.
#[rustfmt::skip]
fn glyph(letter: char) -> [u8; GLYPH_HEIGHT] {
    match letter {
        'A' => [0b01110, 0b10001, 0b10001, 0b11111, 0b10001, 0b10001, 0b10001],
        'B' => [0b11110, 0b10001, 0b10001, 0b11110, 0b10001, 0b10001, 0b11110],
        'C' => [0b01110, 0b10001, 0b10000, 0b10000, 0b10000, 0b10001, 0b01110],
        'D' => [0b11110, 0b10001, 0b10001, 0b10001, 0b10001, 0b10001, 0b11110],
        'E' => [0b11111, 0b10000, 0b10000, 0b11110, 0b10000, 0b10000, 0b11111],
        'F' => [0b11111, 0b10000, 0b10000, 0b11110, 0b10000, 0b10000, 0b10000],
        'G' => [0b01110, 0b10001, 0b10000, 0b10111, 0b10001, 0b10001, 0b01110],
        'H' => [0b10001, 0b10001, 0b10001, 0b11111, 0b10001, 0b10001, 0b10001],
        'I' => [0b01110, 0b00100, 0b00100, 0b00100, 0b00100, 0b00100, 0b01110],
        'J' => [0b00111, 0b00010, 0b00010, 0b00010, 0b00010, 0b10010, 0b01100],
        'K' => [0b10001, 0b10010, 0b10100, 0b11000, 0b10100, 0b10010, 0b10001],
        'L' => [0b10000, 0b10000, 0b10000, 0b10000, 0b10000, 0b10000, 0b11111],
        'M' => [0b10001, 0b11011, 0b10101, 0b10101, 0b10001, 0b10001, 0b10001],
        'N' => [0b10001, 0b11001, 0b11001, 0b10101, 0b10011, 0b10011, 0b10001],
        'O' => [0b01110, 0b10001, 0b10001, 0b10001, 0b10001, 0b10001, 0b01110],
        'P' => [0b11110, 0b10001, 0b10001, 0b11110, 0b10000, 0b10000, 0b10000],
        'Q' => [0b01110, 0b10001, 0b10001, 0b10001, 0b10101, 0b10010, 0b01101],
        'R' => [0b11110, 0b10001, 0b10001, 0b11110, 0b10100, 0b10010, 0b10001],
        'S' => [0b01111, 0b10000, 0b10000, 0b01110, 0b00001, 0b00001, 0b11110],
        'T' => [0b11111, 0b00100, 0b00100, 0b00100, 0b00100, 0b00100, 0b00100],
        'U' => [0b10001, 0b10001, 0b10001, 0b10001, 0b10001, 0b10001, 0b01110],
        'V' => [0b10001, 0b10001, 0b10001, 0b10001, 0b01010, 0b01010, 0b00100],
        'W' => [0b10001, 0b10001, 0b10001, 0b10101, 0b10101, 0b11011, 0b10001],
        'X' => [0b10001, 0b10001, 0b01010, 0b00100, 0b01010, 0b10001, 0b10001],
        'Y' => [0b10001, 0b10001, 0b01010, 0b00100, 0b00100, 0b00100, 0b00100],
        'Z' => [0b11111, 0b00001, 0b00010, 0b00100, 0b01000, 0b10000, 0b11111],
        '0' => [0b01110, 0b10001, 0b10011, 0b10101, 0b11001, 0b10001, 0b01110],
        '1' => [0b00100, 0b01100, 0b00100, 0b00100, 0b00100, 0b00100, 0b01110],
        '2' => [0b01110, 0b10001, 0b00001, 0b00010, 0b00100, 0b01000, 0b11111],
        '3' => [0b11111, 0b00010, 0b00100, 0b00010, 0b00001, 0b10001, 0b01110],
        '4' => [0b00010, 0b00110, 0b01010, 0b10010, 0b11111, 0b00010, 0b00010],
        '5' => [0b11111, 0b10000, 0b11110, 0b00001, 0b00001, 0b10001, 0b01110],
        '6' => [0b00110, 0b01000, 0b10000, 0b11110, 0b10001, 0b10001, 0b01110],
        '7' => [0b11111, 0b00001, 0b00010, 0b00100, 0b01000, 0b01000, 0b01000],
        '8' => [0b01110, 0b10001, 0b10001, 0b01110, 0b10001, 0b10001, 0b01110],
        '9' => [0b01110, 0b10001, 0b10001, 0b01111, 0b00001, 0b00010, 0b01100],
        _ => [0; GLYPH_HEIGHT],
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;

    #[test]
    fn names_are_lower_case_words() {
        for (country, expected) in [
            ("Germany", "germany.png"),
            ("United States of America", "united_states_of_america.png"),
            ("Côte d'Ivoire", "cote_d_ivoire.png"),
            ("  Korea (the Republic of) ", "korea_the_republic_of.png"),
            ("Åland", "aland.png"),
            ("Türkiye", "turkiye.png"),
            ("Færøerne", "faeroerne.png"),
            ("Guinea-Bissau", "guinea_bissau.png"),
        ] {
            assert_eq!(name(country), expected);
        }
        for odd in ["", "日本", "../..", "Ελλάδα", "\0", "K₂", "e\u{301}"] {
            let stem = name(odd).strip_suffix(".png").unwrap().to_owned();
            let is_plain = |c: char| matches!(c, 'a'..='z' | '0'..='9' | '_');
            assert!(!stem.is_empty() && stem.chars().all(is_plain), "{odd:?} became {stem}");
        }
        assert_ne!(name("日本"), name("中国"));
    }

    #[test]
    fn initials_skip_small_words() {
        for (name, expected) in [
            ("germany", "G"),
            ("cote_d_ivoire", "CI"),
            ("isle_of_man", "IM"),
            ("united_states_of_america", "US"),
            ("the", "T"),
            ("", ""),
        ] {
            assert_eq!(initials(name), expected);
        }
    }

    #[test]
    fn icons_are_the_same_each_time_and_differ_by_name() {
        assert_eq!(render("germany.png").unwrap(), render("germany").unwrap());
        assert_ne!(render("germany.png").unwrap(), render("ghana.png").unwrap());
        let icon = render("cote_d_ivoire.png").unwrap();
        let info = png::Decoder::new(std::io::Cursor::new(icon)).read_info().unwrap();
        assert_eq!((info.info().width, info.info().height), (128, 128));
        for odd in ["", "日本", "a_b_c_d_e", "___"] {
            assert!(render(odd).is_ok());
        }
    }

    #[test]
    fn every_letter_and_digit_has_a_glyph() {
        for letter in ('A'..='Z').chain('0'..='9') {
            assert_ne!(glyph(letter), [0; GLYPH_HEIGHT], "{letter}");
        }
    }

    #[test]
    fn white_is_readable_on_every_colour() {
        let linear = |part: u8| {
            let part = f64::from(part) / 255.0;
            if part <= 0.04045 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
        };
        for [red, green, blue] in COLOURS {
            let luminance = 0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue);
            assert!(1.05 / (luminance + 0.05) >= 4.5, "{red:02x}{green:02x}{blue:02x}");
        }
    }
}
