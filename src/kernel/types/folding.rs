//! Comparison of names regardless of case, white space and Unicode representation, on both databases alike.

use caseless::Caseless;
use unicode_normalization::UnicodeNormalization;

/// Returns the key by which a name or a text to search for is compared: normalized to NFKC, case-folded, without surrounding white
/// space, and with one space for each run of white space.
///
/// ```
/// use boxoffice::kernel::types::folding::fold;
/// assert_eq!(fold(" CAFE\u{301}  Bar "), "café bar");
/// ```
pub fn fold(text: &str) -> String {
    let folded: String = text.nfkc().default_case_fold().nfkc().collect();
    folded.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_names_have_the_same_key() {
        for [name, same] in [
            ["Café", "CAFÉ"],
            ["Café", " Cafe\u{301}\u{a0}"],
            ["Straße", "STRASSE"],
            ["Ωmega", "ωMEGA"],
            ["ΟΔΟΣ", "οδος"],
            ["Кино", "КИНО"],
            ["Ｊａｚｚ Night", "jazz\u{3000} night"],
            ["ﬁnale", "FINALE"],
            ["İ", "i\u{307}"],
        ] {
            assert_eq!(fold(name), fold(same), "{name}");
            assert_eq!(fold(&fold(name)), fold(name), "{name}");
        }
        for [name, other] in [["Café", "Cafe"], ["Jazz Night", "JazzNight"], ["ı", "i"]] {
            assert_ne!(fold(name), fold(other), "{name}");
        }
    }
}
