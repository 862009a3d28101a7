//! Generated images.

use std::collections::BTreeSet;

use boxoffice::features::catalog::media::drawing::{disc, rectangle};
use image::Rgba;

/// Returns the number of white pixels.
fn ink(png: &[u8]) -> usize {
    let image = image::load_from_memory(png).unwrap().into_rgba8();
    image.pixels().filter(|pixel| pixel.0 == [0xFF; 4]).count()
}

#[test]
fn draws_latin_greek_and_cyrillic_letters() {
    for text in ["Jazz Night", "Éclair Łódź", "e\u{301}clair", "Ελλάδα", "Україна"] {
        assert!(ink(&rectangle("1", (320, 320), text).unwrap()) > 100, "{text}");
        assert_ne!(disc("1", text).unwrap(), disc("1", "").unwrap(), "{text}");
    }
    assert_eq!(rectangle("1", (320, 320), "É").unwrap(), rectangle("1", (320, 320), "E\u{301}").unwrap());
}

#[test]
fn draws_letters_and_currencies_of_ghana_nigeria_and_vietnam() {
    let draw = |text: &str| rectangle("1", (320, 320), text).unwrap();
    let others = [draw(""), draw("□")];
    for letter in "ƆɔƐɛƉɖƔɣƲʋŊŋƁɓƊɗƘƙẸẹỌọṢṣ₵₦ệữặ₫".chars() {
        assert!(!others.contains(&draw(&letter.to_string())), "{letter}");
    }
}

#[test]
fn shows_a_box_for_each_visible_character_that_the_font_lacks() {
    let draw = |text: &str| rectangle("1", (320, 320), text).unwrap();
    for (text, shown) in [
        ("東京", "□□"),
        ("Jazz \u{1F3B7}\u{FE0F}!", "Jazz □!"),
        ("a\u{200D}b\u{FE0F}c\u{AD}d\u{7}e\u{200B}f\u{E0100}", "abcdef"),
        ("a\nb", "a b"),
        (" \u{200D}\u{FE0F} ", ""),
    ] {
        assert_eq!(draw(text), draw(shown), "{text:?}");
    }
    assert_ne!(draw("□"), draw(""));
}

#[test]
fn text_of_any_length_stays_inside_the_image() {
    for text in ["W".repeat(200), "Wide words ".repeat(18), "i ".repeat(100)] {
        for size in [(960, 320), (320, 320)] {
            let image = image::load_from_memory(&rectangle("1", size, &text).unwrap()).unwrap().into_rgba8();
            assert_eq!(image.dimensions(), size);
            let background = image.get_pixel(0, 0);
            let mut edges = (0..size.0).flat_map(|x| [image.get_pixel(x, 0), image.get_pixel(x, size.1 - 1)]);
            assert!(edges.all(|pixel| pixel == background), "{text}");
        }
    }
}

#[test]
fn white_is_readable_on_every_colour() {
    let linear = |part: u8| {
        let part = f64::from(part) / 255.0;
        if part <= 0.04045 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
    };
    let colour = |seed: u32| {
        let Rgba([colour @ .., _]) =
            *image::load_from_memory(&rectangle(&seed.to_string(), (1, 1), "").unwrap()).unwrap().into_rgba8().get_pixel(0, 0);
        colour
    };
    let colours: BTreeSet<[u8; 3]> = (0..500).map(colour).collect();
    assert_eq!(colours.len(), 12);
    for [red, green, blue] in colours {
        let luminance = 0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue);
        assert!(1.05 / (luminance + 0.05) >= 4.5, "{red:02x}{green:02x}{blue:02x}");
    }
}
