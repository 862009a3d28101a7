//! File names and letters of the icons of regions. The icons are not uploaded but drawn from the name of the region's country.

use sha2::{Digest, Sha256};
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// Largest number of letters of a file name, without its extension. The names of some countries are longer.
const MAX_NAME: usize = 196;

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
    let mut name = words.join("_");
    name.truncate(MAX_NAME);
    name + ".png"
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

fn hash(text: &str) -> [u8; 32] {
    Sha256::digest(text).into()
}

/// Returns the initials of the first two words of a country's name, without articles, prepositions and conjunctions.
pub fn initials(country: &str) -> String {
    let is_stop_word = |word: &&str| matches!(*word, "of" | "the" | "and" | "d" | "l" | "de" | "da" | "del" | "la");
    let initials = |words: &mut dyn Iterator<Item = &str>| -> String {
        words.filter_map(|word| word.chars().next()).take(2).flat_map(char::to_uppercase).collect()
    };
    let lower_case = country.nfc().collect::<String>().to_lowercase();
    let words = || lower_case.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty());
    let long = initials(&mut words().filter(|word| !is_stop_word(word)));
    if long.is_empty() { initials(&mut words()) } else { long }
}
