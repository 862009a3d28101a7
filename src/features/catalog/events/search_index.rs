//! The index of the search: words and tags of events. It is written in the transaction that writes the event.

use std::collections::BTreeSet;

use anyhow::Context as _;
use boxoffice_http::error::{Error, Result};

use super::model::EventRow;
use super::search::EventWords;
use super::store;
use crate::kernel::db::{Reader, Tx, transaction};
use crate::kernel::types::folding::fold;
use crate::kernel::types::id::Id;
use crate::state::Ctx;

/// Number of events that one transaction of the job completes.
const BATCH: usize = 100;

/// Writes what the search finds these events by. Their rows must be locked or new.
pub async fn write(tx: &mut Tx, events: &[EventRow]) -> Result<()> {
    let ids = || events.iter().map(|event| event.id);
    let mut words = Vec::with_capacity(events.len());
    let mut tags: BTreeSet<(Id, String)> = BTreeSet::new();
    for event in events {
        let of_event: Vec<String> = serde_json::from_str(&event.tags).context("an event's tags are a JSON array")?;
        words.push((event.id, EventWords::of(event, &of_event)));
        tags.extend(of_event.iter().map(|tag| (event.id, fold(tag))));
    }
    insert_words(tx, &words).await?;
    delete_tags(tx, ids()).await?;
    if !tags.is_empty() {
        insert_tags(tx, &tags.into_iter().collect::<Vec<_>>()).await?;
    }
    delete_from_queue(tx, ids()).await
}

/// Adds events to the index that another program or a server of the version before has written. Returns their number.
pub async fn complete(ctx: &Ctx) -> Result<u64> {
    transaction!(ctx.unit, |tx| {
        let ids = queued(tx).await?;
        if ids.is_empty() {
            return Ok(0);
        }
        store::lock_all(tx, ids.iter().copied()).await?;
        let events = store::find_all(tx, ids).await?;
        write(tx, &events).await?;
        count_change(tx).await?;
        Ok::<_, Error>(events.len() as u64)
    })
}

/// Returns the next events in the queue.
async fn queued(reader: &mut Reader) -> Result<Vec<Id>> {
    reader
        .select("event_id from event_search_queue where true order by event_id")
        .push(&format!(" limit {BATCH}"))
        .scalars()
        .await
}

async fn insert_words(tx: &mut Tx, words: &[(Id, EventWords)]) -> Result<()> {
    tx.insert("event_words (event_id, title_words, keywords, words)")
        .values(words, |columns| {
            columns
                .add(|(id, _)| *id)
                .add(|(_, words)| words.title.clone())
                .add(|(_, words)| words.keywords.clone())
                .add(|(_, words)| words.all.clone());
        })
        .push(
            " on conflict (event_id) do update set title_words = excluded.title_words, keywords = excluded.keywords, \
             words = excluded.words",
        )
        .execute()
        .await
}

async fn delete_tags(tx: &mut Tx, events: impl IntoIterator<Item = Id>) -> Result<()> {
    tx.delete("event_tags where true").and_in("event_id", events).execute().await
}

async fn insert_tags(tx: &mut Tx, tags: &[(Id, String)]) -> Result<()> {
    tx.insert("event_tags (event_id, tag)")
        .values(tags, |columns| {
            columns.add(|(id, _)| *id).add(|(_, tag)| tag.clone());
        })
        .execute()
        .await
}

async fn delete_from_queue(tx: &mut Tx, events: impl IntoIterator<Item = Id>) -> Result<()> {
    tx.delete("event_search_queue where true").and_in("event_id", events).execute().await
}

/// Counts a change, because servers cache what a search has found. It is the last statement of its transaction: all others wait
/// for the one row.
async fn count_change(tx: &mut Tx) -> Result<()> {
    tx.query("update event_changes set count = count + 1").execute().await
}
