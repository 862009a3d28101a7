//! Words of events, and searches for them. Both databases only compare these words, so they find the same events.

use std::collections::BTreeSet;

use unicode_normalization::char::is_combining_mark;

use super::model::EventRow;
use crate::kernel::types::folding::fold;

/// Maximum length of a word in characters. The rest of a longer word is left out, in events and in searches alike.
const MAX_WORD_LENGTH: usize = 64;
/// Maximum number of words of a search.
const MAX_SEARCH_WORDS: usize = 50;

/// The words of an event, each once, separated by spaces.
#[derive(Debug, PartialEq, Eq)]
pub struct EventWords {
    /// The words of the title.
    pub title: String,
    /// The words of title and tags.
    pub keywords: String,
    /// The words of title, tags and description.
    pub all: String,
}

impl EventWords {
    /// Returns the words of an event.
    pub fn of(row: &EventRow, tags: &[String]) -> Self {
        let mut distinct = DistinctWords::default();
        distinct.add(&row.title);
        let title = distinct.join();
        tags.iter().for_each(|tag| distinct.add(tag));
        let keywords = distinct.join();
        distinct.add(&row.description);
        Self { title, keywords, all: distinct.join() }
    }
}

/// A search for the events that have all of its words. The last one is the beginning of a word. A search without words finds nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Search {
    words: Vec<String>,
}

impl Search {
    /// Parses the text of a search.
    ///
    /// # Errors
    /// The problem with a text that has too many words.
    pub fn parse(text: &str) -> Result<Self, String> {
        let words: Vec<String> = words(&fold(text)).collect();
        let is_too_long = words.len() > MAX_SEARCH_WORDS;
        if is_too_long { Err(format!("must have at most {MAX_SEARCH_WORDS} words")) } else { Ok(Self { words }) }
    }

    /// Returns the words.
    pub fn words(&self) -> &[String] {
        &self.words
    }

    /// Returns the search in the language of SQLite's full-text index. Words are letters and digits, so nothing needs escaping.
    pub fn to_fts5(&self) -> String {
        let words: Vec<String> = self.words.iter().map(|word| format!("\"{word}\"")).collect();
        // An empty phrase matches nothing.
        if words.is_empty() { "\"\"".to_owned() } else { format!("{} *", words.join(" AND ")) }
    }

    /// Returns the texts that ` words `, the words of an event between spaces, contain if they have all words of the search.
    pub fn to_substrings(&self) -> Vec<String> {
        let Some((beginning, whole)) = self.words.split_last() else { return Vec::new() };
        whole.iter().map(|word| format!(" {word} ")).chain([format!(" {beginning}")]).collect()
    }

    /// Returns the search in the language of PostgreSQL's full-text search.
    pub fn to_tsquery(&self) -> String {
        let words: Vec<String> = self.words.iter().map(|word| format!("'{word}'")).collect();
        // No word is a space.
        if words.is_empty() { "' '".to_owned() } else { format!("{}:*", words.join(" & ")) }
    }
}

/// Returns the words of a folded text: runs of letters, digits and the marks that belong to them. Marks without a letter or a digit,
/// such as the variation selector that follows many emoji, are no word.
fn words(folded: &str) -> impl Iterator<Item = String> {
    let is_separator = |letter: char| !(letter.is_alphanumeric() || is_combining_mark(letter));
    let words = folded.split(is_separator).filter(|word| word.contains(char::is_alphanumeric));
    words.map(|word| word.chars().take(MAX_WORD_LENGTH).collect())
}

/// The words of several texts, each once.
#[derive(Debug, Default)]
pub struct DistinctWords(BTreeSet<String>);

impl DistinctWords {
    /// Adds the words of a text.
    pub fn add(&mut self, text: &str) {
        self.0.extend(words(&fold(text)));
    }

    /// Returns the words, separated by spaces.
    pub fn join(&self) -> String {
        self.0.iter().map(String::as_str).collect::<Vec<_>>().join(" ")
    }
}
