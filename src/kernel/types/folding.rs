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
