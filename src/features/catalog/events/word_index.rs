//! All published events and their words in memory, so that a search or a list needs no query to find its events.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Bound;

use super::cache_store::{ChangeCursor, PublishedChange};
use super::search::Search;
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::Id;
use crate::kernel::types::paging::SortOrder;

/// Maximum memory use in bytes, about a fourth more than 100,000 events with 100 words each. With more events, the database searches.
const CAPACITY: usize = 64 << 20;
/// Approximate memory use of an event without its words, in bytes.
const EVENT_BYTES: usize = 64;
/// Approximate memory use of a distinct word in bytes, without its letters and its events.
const WORD_BYTES: usize = 80;
/// Number of outdated entries above which the index is built anew, if most of its entries are outdated or it exceeds its capacity.
const MAX_OUTDATED: usize = 1000;

/// An index of the published events by words, as they were at one value of the `event_changes` counter.
///
/// It is updated with the changes since its cursor. A changed event gets a new entry at the end, and its old entry becomes outdated, so
/// the occurrences of a word are always sorted.
#[derive(Debug)]
pub struct WordIndex {
    capacity: usize,
    /// Approximate memory use in bytes.
    size: usize,
    /// True if the events have exceeded the capacity. Then the index stays empty.
    is_full: bool,
    /// Value of the `event_changes` counter; `None` while further changes are known to exist.
    version: Option<i64>,
    cursor: ChangeCursor,
    entries: Vec<Entry>,
    /// The numbers of the current entries.
    current: HashMap<Id, u32>,
    words: BTreeMap<Box<str>, Vec<Occurrence>>,
}

/// An event, or an earlier version of it.
#[derive(Debug)]
struct Entry {
    event: Id,
    starts: Timestamp,
    ends: Timestamp,
    is_current: bool,
}

/// An entry that has a word, with the rank of the first field that has it: 0 for the title, 1 for the tags, 2 for the description. The
/// rank has the two lowest bits, because an index has many occurrences.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Occurrence(u32);

impl Occurrence {
    const fn new(entry: u32, rank: u32) -> Self {
        Self(entry << 2 | rank)
    }

    const fn entry(self) -> u32 {
        self.0 >> 2
    }

    const fn rank(self) -> u32 {
        self.0 & 3
    }
}

/// The events that a search or a list has found.
#[derive(Debug, PartialEq, Eq)]
pub struct FoundEvents {
    /// Value of the `event_changes` counter.
    pub changes: i64,
    /// Their number.
    pub total: usize,
    /// The first ones. Events without a different sort key are the oldest first.
    pub first: Vec<Id>,
    /// The time until which the events are the same, unless there are changes.
    pub valid_until: Timestamp,
}

/// The events that a search or a list selects, and their order.
#[derive(Debug, Clone, Copy, Default)]
pub struct Selection<'a> {
    /// The words that the events have; `None` for a list of all events.
    pub search: Option<&'a Search>,
    /// Only events that have not ended, or only those that have.
    pub active: Option<bool>,
    /// The direction in which they are sorted by start. Without it, a search sorts them by the field that has the words, then by start.
    pub by_start: Option<SortOrder>,
}

impl Default for WordIndex {
    fn default() -> Self {
        Self::with_capacity(CAPACITY)
    }
}

impl WordIndex {
    /// Creates an index that may use about this many bytes.
    pub fn with_capacity(capacity: usize) -> Self {
        Self {
            capacity,
            size: 0,
            is_full: false,
            version: None,
            cursor: ChangeCursor::default(),
            entries: Vec::new(),
            current: HashMap::new(),
            words: BTreeMap::new(),
        }
    }

    /// Returns the position from which to read further changes; `None` if the index has exceeded its capacity.
    pub fn cursor(&self) -> Option<ChangeCursor> {
        (!self.is_full).then(|| self.cursor.clone())
    }

    /// Returns whether further changes are known to exist, for which the index has capacity.
    pub fn is_incomplete(&self) -> bool {
        self.version.is_none() && !self.is_full
    }

    /// Returns whether the index is complete for another value of the `event_changes` counter.
    pub fn is_of_other_version(&self, version: i64) -> bool {
        self.version.is_some_and(|own| own != version)
    }

    /// Adds the changes that follow the cursor, which are all of them if `is_last`.
    pub fn update(&mut self, changes: Vec<PublishedChange>, is_last: bool) {
        let Some(newest) = changes.first() else { return };
        // After a failover, the database may lack changes that are in the index. A new index has no server.
        let is_continued = newest.server == self.cursor.server && newest.last_position >= self.cursor.position;
        if self.cursor.server.is_some() && !is_continued {
            *self = Self::with_capacity(self.capacity);
            return;
        }
        self.cursor.server.clone_from(&newest.server);
        self.version = is_last.then_some(newest.changes);
        for change in changes {
            let Some((position, event)) = change.position.zip(change.event_id) else { continue };
            (self.cursor.position, self.cursor.event) = (position, event);
            if let Some(outdated) = self.current.remove(&event) {
                self.entries[outdated as usize].is_current = false;
            }
            self.insert(event, &change);
        }
        let outdated = self.entries.len() - self.current.len();
        let is_over = self.size > self.capacity;
        if outdated > MAX_OUTDATED && (is_over || outdated > self.current.len()) {
            *self = Self::with_capacity(self.capacity);
        } else if is_over {
            *self = Self { is_full: true, ..Self::with_capacity(self.capacity) };
        }
    }

    /// Adds the event of a change, if it is published.
    fn insert(&mut self, event: Id, change: &PublishedChange) {
        let PublishedChange { starts: Some(starts), ends: Some(ends), .. } = change else { return };
        let (title, keywords) = (split(change.title_words.as_ref()), split(change.keywords.as_ref()));
        let entry = self.entries.len() as u32;
        self.entries.push(Entry { event, starts: *starts, ends: *ends, is_current: true });
        self.current.insert(event, entry);
        self.size += EVENT_BYTES;
        for word in change.words.iter().flat_map(|words| words.split_ascii_whitespace()) {
            let rank = if title.contains(word) { 0 } else { 1 + u32::from(!keywords.contains(word)) };
            let occurrence = Occurrence::new(entry, rank);
            self.size += size_of::<Occurrence>();
            match self.words.get_mut(word) {
                Some(occurrences) => occurrences.push(occurrence),
                None => {
                    self.size += WORD_BYTES + word.len();
                    self.words.insert(word.into(), vec![occurrence]);
                }
            }
        }
    }

    /// Returns the first events of a selection, at most `limit`. Returns `None` if the index is incomplete.
    pub fn find(&self, selection: &Selection<'_>, now: Timestamp, limit: usize) -> Option<FoundEvents> {
        let changes = self.version?;
        let key = |rank: u32, entry: &Entry| match selection.by_start {
            Some(SortOrder::Asc) => (0, entry.starts, entry.event),
            Some(SortOrder::Desc) => (0, Timestamp(-entry.starts.0), entry.event),
            None if selection.search.is_some() => (rank, entry.starts, entry.event),
            None => (0, Timestamp(0), entry.event),
        };
        let (mut found, mut next_end) = (Vec::new(), Timestamp::NEVER);
        let mut select = |rank: u32, entry: &Entry| {
            if !entry.is_current {
                return;
            }
            let is_active = entry.ends > now;
            if is_active {
                next_end = next_end.min(entry.ends);
            }
            if selection.active.is_none_or(|active| active == is_active) {
                found.push(key(rank, entry));
            }
        };
        match selection.search {
            Some(search) => self
                .occurrences(search)
                .into_iter()
                .for_each(|occurrence| select(occurrence.rank(), &self.entries[occurrence.entry() as usize])),
            None => self.entries.iter().for_each(|entry| select(0, entry)),
        }
        let total = found.len();
        if limit < total {
            found.select_nth_unstable(limit);
            found.truncate(limit);
        }
        found.sort_unstable();
        let first = found.into_iter().map(|(.., event)| event).collect();
        let valid_until = if selection.active.is_some() { next_end } else { Timestamp::NEVER };
        Some(FoundEvents { changes, total, first, valid_until })
    }

    /// Returns the entries that have all words of a search, with the rank of the last field that is needed for all of them.
    fn occurrences(&self, search: &Search) -> Vec<Occurrence> {
        let Some((beginning, whole)) = search.words().split_last() else { return Vec::new() };
        let whole = whole.iter().map(|word| self.words.get(word.as_str()).map(Vec::as_slice));
        let Some(mut whole) = whole.collect::<Option<Vec<&[Occurrence]>>>() else { return Vec::new() };
        // The rarest word comes last.
        whole.sort_by_key(|occurrences| Reverse(occurrences.len()));
        let completed: Vec<&[Occurrence]> = self
            .words
            .range::<str, _>((Bound::Included(beginning.as_str()), Bound::Unbounded))
            .take_while(|(word, _)| word.starts_with(beginning.as_str()))
            .map(|(_, occurrences)| occurrences.as_slice())
            .collect();
        let number_of_completed: usize = completed.iter().map(|occurrences| occurrences.len()).sum();
        let mut found = match whole.pop_if(|rarest| rarest.len() < number_of_completed) {
            Some(rarest) => self.with_any_of(rarest, &completed),
            None => self.with_words(&completed, number_of_completed),
        };
        for occurrences in whole.into_iter().rev() {
            found = found.into_iter().filter_map(|one| with_word(one, occurrences)).collect();
        }
        found
    }

    /// Returns the occurrences whose entry has any of these words.
    fn with_any_of(&self, occurrences: &[Occurrence], words: &[&[Occurrence]]) -> Vec<Occurrence> {
        let ranks = self.lowest_ranks(words);
        let with_rank =
            |one: &Occurrence| ranks[one.entry() as usize].map(|rank| one.max(&Occurrence::new(one.entry(), rank)).to_owned());
        occurrences.iter().filter_map(with_rank).collect()
    }

    /// Returns the entries of any of these words, each with its lowest rank. `number` is the number of the words' occurrences.
    fn with_words(&self, words: &[&[Occurrence]], number: usize) -> Vec<Occurrence> {
        // The rank of each entry takes less time than a sort of many occurrences.
        if words.len() > 1 && number > self.entries.len() / 16 {
            let ranks = self.lowest_ranks(words);
            let entries = (0..).zip(ranks).filter_map(|(entry, rank)| Some(Occurrence::new(entry, rank?)));
            return entries.collect();
        }
        let mut all = words.concat();
        if words.len() > 1 {
            all.sort_unstable();
            all.dedup_by_key(|occurrence| occurrence.entry());
        }
        all
    }

    /// Returns the lowest rank of each entry among these words, which are neither copied nor sorted.
    fn lowest_ranks(&self, words: &[&[Occurrence]]) -> Vec<Option<u32>> {
        let mut ranks: Vec<Option<u32>> = vec![None; self.entries.len()];
        for occurrence in words.iter().copied().flatten() {
            let lowest = &mut ranks[occurrence.entry() as usize];
            *lowest = Some(lowest.map_or(occurrence.rank(), |rank| rank.min(occurrence.rank())));
        }
        ranks
    }
}

/// Returns the distinct words of a field.
fn split(words: Option<&String>) -> HashSet<&str> {
    words.into_iter().flat_map(|words| words.split_ascii_whitespace()).collect()
}

/// Returns an entry with the higher rank of both, if it has the word with these occurrences.
fn with_word(one: Occurrence, occurrences: &[Occurrence]) -> Option<Occurrence> {
    let position = occurrences.binary_search_by_key(&one.entry(), |occurrence| occurrence.entry()).ok()?;
    Some(one.max(occurrences[position]))
}
