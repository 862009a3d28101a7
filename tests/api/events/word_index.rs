//! The words of events, and the index of published events by words.

use std::time::Duration;

use boxoffice::features::catalog::events::search::{DistinctWords, Search};
use boxoffice::features::catalog::events::word_index::{Selection, WordIndex};
use boxoffice::features::catalog::events::{ChangeCursor, PublishedChange};
use boxoffice::kernel::types::clock::Timestamp;
use boxoffice::kernel::types::id::Id;
use boxoffice::kernel::types::paging::SortOrder;

#[test]
fn words_are_letters_and_digits_of_folded_text() {
    let distinct_words = |text: &str| {
        let mut distinct = DistinctWords::default();
        distinct.add(text);
        distinct.join()
    };
    for (text, expected) in [
        ("Harmattan Jazz-Night, 2025!", "2025 harmattan jazz night"),
        ("L'Été \u{201c}CAFE\u{301}\u{201d} café", "café l été"),
        ("Ｊａｚｚ ﬁnale Straße", "finale jazz strasse"),
        ("a:b*c\"d'e\\f(g) NOT h^i", "a b c d e f g h i not"),
        ("हिन्दी संगीत", "संगीत हिन्दी"),
        ("🎷 !? \u{0}", ""),
        ("❤\u{fe0f} jazz ☀\u{fe0f}\u{301}", "jazz"),
    ] {
        assert_eq!(distinct_words(text), expected, "{text}");
    }
    assert_eq!(distinct_words(&"é".repeat(100)), "é".repeat(64));
}

#[test]
fn search_is_written_for_each_database() {
    let search = Search::parse("\"Jazz\" -night* & Caf").unwrap_or_else(|problem| panic!("{problem}"));
    assert_eq!(search.to_fts5(), "\"jazz\" AND \"night\" AND \"caf\" *");
    assert_eq!(search.to_tsquery(), "'jazz' & 'night' & 'caf':*");
    assert_eq!(search.to_substrings(), [" jazz ", " night ", " caf"]);
    let nothing = Search::parse("*").unwrap_or_else(|problem| panic!("{problem}"));
    assert_eq!((nothing.to_fts5().as_str(), nothing.to_tsquery().as_str()), ("\"\"", "' '"));
    assert_eq!(Search::parse(&"a ".repeat(51)), Err("must have at most 50 words".to_owned()));
    assert!(Search::parse(&"a ".repeat(50)).is_ok());
}

/// Returns a published event with the words of title, tags and description.
fn published(position: i64, event: i64, [title, keywords, words]: [&str; 3]) -> PublishedChange {
    let starts = Timestamp(100 - event);
    PublishedChange {
        starts: Some(starts),
        ends: Some(starts.plus(Duration::from_micros(10))),
        title_words: Some(title.to_owned()),
        keywords: Some(keywords.to_owned()),
        words: Some(words.to_owned()),
        ..withdrawn(position, event)
    }
}

fn withdrawn(position: i64, event: i64) -> PublishedChange {
    PublishedChange {
        changes: position,
        last_position: position,
        server: Some("first".to_owned()),
        position: Some(position),
        event_id: Some(Id(event)),
        starts: None,
        ends: None,
        title_words: None,
        keywords: None,
        words: None,
    }
}

/// Returns the total and the first two events of a search among all events.
fn find(index: &WordIndex, text: &str) -> Option<(usize, Vec<i64>)> {
    let search = Search::parse(text).unwrap_or_else(|problem| panic!("{problem}"));
    let found = index.find(&Selection { search: Some(&search), ..Selection::default() }, Timestamp(0), 2)?;
    Some((found.total, found.first.into_iter().map(|Id(id)| id).collect()))
}

#[test]
fn sorts_by_field_and_start() {
    let mut index = WordIndex::default();
    let changes = vec![
        published(1, 1, ["a", "a", "a jam jazz night"]),
        published(1, 2, ["jazz", "jazz night", "jazz night"]),
        published(1, 3, ["night", "jam night", "jam night"]),
        published(1, 4, ["jazz night", "jazz night", "jazz night"]),
        published(1, 5, ["jazz night", "jazz night", "jazz night"]),
    ];
    index.update(changes, true);

    for (text, expected) in [
        ("jazz night", (4, vec![5, 4])),
        ("night ja", (5, vec![5, 4])),
        ("night jam", (2, vec![3, 1])),
        ("jam", (2, vec![3, 1])),
        ("j", (5, vec![5, 4])),
        ("a n", (1, vec![1])),
        ("jazz night a", (1, vec![1])),
        ("jam zebra", (0, vec![])),
        ("zebra jam", (0, vec![])),
        ("!", (0, vec![])),
    ] {
        assert_eq!(find(&index, text), Some(expected), "{text}");
    }
    let search = Search::parse("jazz").unwrap_or_else(|problem| panic!("{problem}"));
    for (active, expected) in [(Some(true), 2), (Some(false), 2), (None, 4)] {
        let found = index.find(&Selection { search: Some(&search), active, by_start: None }, Timestamp(106), 10);
        assert_eq!(found.map(|found| (found.changes, found.total, found.first.len())), Some((1, expected, expected)));
    }
}

#[test]
fn lists_all_events() {
    let mut index = WordIndex::default();
    let without_words = PublishedChange { title_words: None, keywords: None, words: None, ..published(1, 4, [""; 3]) };
    let mut changes: Vec<_> = [1, 3, 2].into_iter().map(|event| published(1, event, ["jazz"; 3])).collect();
    changes.push(without_words);
    index.update(changes, true);
    index.update(vec![withdrawn(2, 3)], true);
    let all = Selection::default();
    let list = |selection, limit| {
        let found = index.find(&selection, Timestamp(107), limit);
        found.map(|found| (found.total, found.first.into_iter().map(|Id(id)| id).collect::<Vec<_>>(), found.valid_until.0))
    };

    assert_eq!(list(all, 10), Some((3, vec![1, 2, 4], Timestamp::NEVER.0)));
    assert_eq!(list(all, 2), Some((3, vec![1, 2], Timestamp::NEVER.0)));
    assert_eq!(list(Selection { by_start: Some(SortOrder::Asc), ..all }, 2), Some((3, vec![4, 2], Timestamp::NEVER.0)));
    assert_eq!(list(Selection { by_start: Some(SortOrder::Desc), ..all }, 2), Some((3, vec![1, 2], Timestamp::NEVER.0)));
    assert_eq!(list(Selection { active: Some(true), ..all }, 10), Some((2, vec![1, 2], 108)));
    assert_eq!(list(Selection { active: Some(false), ..all }, 10), Some((1, vec![4], 108)));
}

#[test]
fn follows_changes() {
    let mut index = WordIndex::default();
    assert_eq!(find(&index, "jazz"), None);
    index.update(vec![published(1, 1, ["jazz"; 3]), published(2, 2, ["jazz"; 3])], false);
    assert_eq!(find(&index, "jazz"), None, "there are further changes");
    index.update(vec![published(3, 1, ["rock"; 3]), published(4, 3, ["jazz"; 3])], true);
    assert_eq!(find(&index, "jazz"), Some((2, vec![3, 2])));
    assert_eq!(find(&index, "rock"), Some((1, vec![1])));
    let cursor = ChangeCursor { server: Some("first".to_owned()), position: 4, event: Id(3) };
    assert_eq!(index.cursor(), Some(cursor.clone()));

    let unchanged = PublishedChange { changes: 5, position: None, event_id: None, ..withdrawn(5, 0) };
    index.update(vec![unchanged], true);
    assert_eq!((index.is_incomplete(), index.is_of_other_version(5), index.cursor()), (false, false, Some(cursor)));
    index.update(vec![withdrawn(6, 3)], true);
    assert_eq!(find(&index, "jazz"), Some((1, vec![2])));

    // After a failover, the database may lack changes.
    let other_server = PublishedChange { server: Some("second".to_owned()), ..withdrawn(7, 2) };
    for newest in [other_server, withdrawn(5, 2)] {
        let mut index = WordIndex::default();
        index.update(vec![published(6, 1, ["jazz"; 3])], true);
        index.update(vec![newest], true);
        assert_eq!((index.is_incomplete(), index.cursor()), (true, Some(ChangeCursor::default())));
    }
}

#[test]
fn memory_is_limited() {
    let mut index = WordIndex::default();
    // An event and 1000 outdated versions of it are kept.
    for position in 0..=1000 {
        assert_eq!(index.cursor().map(|cursor| cursor.position), Some(position - 1));
        index.update(vec![published(position, 1, ["jazz"; 3])], true);
    }
    index.update(vec![published(5000, 1, ["jazz"; 3])], true);
    assert_eq!((find(&index, "jazz"), index.cursor()), (None, Some(ChangeCursor::default())), "the index is built anew");

    // The capacity is enough for these events, which take 68 bytes each, but not for their earlier versions too.
    let mut index = WordIndex::with_capacity(3000 * 68);
    index.update((0..2000).map(|event| published(1, event, ["jazz"; 3])).collect(), true);
    index.update((0..900).map(|event| published(2, event, ["rock"; 3])).collect(), true);
    assert_eq!(find(&index, "jazz").map(|(total, _)| total), Some(1100));
    index.update((900..1100).map(|event| published(3, event, ["rock"; 3])).collect(), true);
    assert_eq!((find(&index, "jazz"), index.cursor()), (None, Some(ChangeCursor::default())), "the index is built anew");

    let mut index = WordIndex::with_capacity(1000);
    index.update((0..10).map(|event| published(1, event, ["jazz"; 3])).collect(), true);
    assert_eq!(find(&index, "jazz").map(|(total, _)| total), Some(10));
    index.update((10..20).map(|event| published(2, event, ["jazz"; 3])).collect(), true);
    assert_eq!((find(&index, "jazz"), index.cursor()), (None, None));
}
