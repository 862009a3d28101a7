//! Suggestions for misspelled names of settings.

/// The least similarity of a suggestion, of at most 1.
const LEAST_SIMILARITY: f64 = 0.8;

/// Returns the known name that is most similar to an unknown one, as the end of a message, such as `; did you mean x?`. Returns an
/// empty text if none is similar.
pub fn suggest<'a>(unknown: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let similarity = |name| (strsim::jaro_winkler(unknown, name), name);
    let similar = known.into_iter().map(similarity).filter(|(similarity, _)| *similarity >= LEAST_SIMILARITY);
    let closest = similar.max_by(|(first, _), (second, _)| first.total_cmp(second));
    closest.map_or_else(String::new, |(_, name)| format!("; did you mean `{name}`?"))
}
