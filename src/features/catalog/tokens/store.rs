//! SQL of admission tokens.

use std::collections::HashSet;

use boxoffice_http::error::Result;

use super::admission_scope::{self, AdmissionScope};
use super::model::{TokenFilter, TokenRow};
use crate::kernel::db::{Reader, Tx, define_sql};
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::Id;
use crate::kernel::types::paging::PagedRows;

// The columns of `TokenRow`.
define_sql!(columns, "id, event_id, code, name, global");

/// Returns a page of an event's tokens: the global token first, then the others, the oldest first.
pub async fn list(reader: &mut Reader, event: Id, filter: &TokenFilter) -> Result<PagedRows<TokenRow>> {
    reader
        .list(columns!(), "from tokens where true")
        .and_where("event_id = ?", Some(event))
        .and_where("global = ?", filter.global)
        .page("global desc, id", filter.paging)
        .await
}

pub async fn find(reader: &mut Reader, event: Id, id: Id) -> Result<Option<TokenRow>> {
    reader
        .query(concat!("select ", columns!(), " from tokens where id = $1 and event_id = $2"))
        .bind(id)
        .bind(event)
        .optional()
        .await
}

/// Locks and returns a token. No other transaction can change or remove it until this one ends.
pub async fn lock(tx: &mut Tx, event: Id, id: Id) -> Result<Option<TokenRow>> {
    let token = tx.select(concat!(columns!(), " from tokens where true")).and_where("id = ?", Some(id));
    token.and_where("event_id = ?", Some(event)).for_update().optional().await
}

/// Locks and returns the token with this code, like [`lock`].
pub async fn lock_by_code(tx: &mut Tx, code: String) -> Result<Option<TokenRow>> {
    let token = tx.select(concat!(columns!(), " from tokens where true")).and_where("code = ?", Some(code));
    token.for_update().optional().await
}

/// Inserts a token. Returns false, and inserts nothing, if another token has this code.
pub async fn insert(tx: &mut Tx, row: &TokenRow) -> Result<bool> {
    let inserted = tx
        .query("insert into tokens (id, event_id, code, name, global) values ($1, $2, $3, $4, $5) on conflict (code) do nothing")
        .bind(row.id)
        .bind(row.event_id)
        .bind(row.code.clone())
        .bind(row.name.clone())
        .bind(row.global)
        .rows_affected()
        .await?;
    Ok(inserted == 1)
}

pub async fn set_name(tx: &mut Tx, id: Id, name: &str) -> Result<()> {
    tx.query("update tokens set name = $2 where id = $1").bind(id).bind(name.to_owned()).execute().await
}

/// Replaces the code of a token. Returns false, and changes nothing, if a token has the new code.
pub async fn set_code(tx: &mut Tx, id: Id, code: &str) -> Result<bool> {
    let update = "update tokens set code = $2 where id = $1 and not exists (select 1 from tokens t where t.code = $2)";
    Ok(tx.query(update).bind(id).bind(code.to_owned()).rows_affected().await? == 1)
}

/// Returns the number of tokens of an event.
pub async fn count_of_event(reader: &mut Reader, event: Id) -> Result<i64> {
    reader.query("select count(*) from tokens where event_id = $1").bind(event).scalar().await
}

pub async fn delete(tx: &mut Tx, id: Id) -> Result<()> {
    tx.query("delete from tokens where id = $1").bind(id).execute().await
}

/// Ends the keys that were issued for a token.
pub async fn end_keys(tx: &mut Tx, token: Id, now: Timestamp) -> Result<()> {
    tx.query("update api_keys set ended = $2 where token_id = $1 and ended is null").bind(token).bind(now).execute().await
}

/// Deletes some of the valid keys of a token except the `kept` ones that were used last. Keys that were never used are deleted first.
pub async fn delete_oldest_keys(tx: &mut Tx, token: Id, kept: i64) -> Result<()> {
    let delete = "delete from api_keys where id in (
            select id from api_keys where token_id = $1 and ended is null
            order by last_used desc nulls last, id desc limit 100 offset $2)";
    tx.query(delete).bind(token).bind(kept).execute().await
}

/// Ends the keys that were issued for any token of an event. Locks the tokens, so that no more keys are issued for them.
pub async fn end_keys_of_event(tx: &mut Tx, event: Id, now: Timestamp) -> Result<()> {
    let tokens = tx.select("id from tokens where true").and_where("event_id = ?", Some(event));
    tokens.for_update().lock().await?;
    let update = "update api_keys set ended = $2
        where ended is null and token_id in (select t.id from tokens t where t.event_id = $1)";
    tx.query(update).bind(event).bind(now).execute().await
}

/// Deletes some of the keys that were ended before this time, or whose events ended before `over`, and returns their number. Only keys
/// of admission tokens have a token: the condition on it lets the database use its index.
pub async fn delete_keys(tx: &mut Tx, before: Timestamp, over: Timestamp) -> Result<u64> {
    let delete = "delete from api_keys where id in (
            select k.id from api_keys k left join tokens t on t.id = k.token_id left join events e on e.id = t.event_id
            where k.token_id > 0 and (k.ended < $1 or e.ends < $2) order by k.token_id limit 500)";
    tx.query(delete).bind(before).bind(over).rows_affected().await
}

/// Returns those of these tokens that don't exist any longer.
pub async fn removed(reader: &mut Reader, mut tokens: HashSet<Id>) -> Result<HashSet<Id>> {
    if !tokens.is_empty() {
        let existing: Vec<Id> = reader.select("id from tokens where true").and_in("id", tokens.iter().copied()).scalars().await?;
        tokens.retain(|token| !existing.contains(token));
    }
    Ok(tokens)
}

/// Returns the identifiers of all sections of an event, the oldest first.
pub async fn sections_of_event(reader: &mut Reader, event: Id) -> Result<Vec<Id>> {
    reader.query("select id from sections where event_id = $1 order by id").bind(event).scalars().await
}

/// Returns the identifiers of the sections of an event within an admission scope, the oldest first.
pub async fn sections_in_scope(reader: &mut Reader, event: Id, scope: AdmissionScope) -> Result<Vec<Id>> {
    let sections = reader.select("id from sections where true").and_where("event_id = ?", Some(event));
    let sections = sections.and_where(&admission_scope::covers_sql("id"), scope.token());
    sections.push(" order by id").scalars().await
}

/// Returns the sections of these tokens as `(token, section)`, the oldest section first. The global token has none here.
pub async fn sections_of_tokens(reader: &mut Reader, tokens: &[Id]) -> Result<Vec<(Id, Id)>> {
    reader
        .select("token_id, section_id from token_sections where true")
        .and_in("token_id", tokens.to_vec())
        .push(" order by section_id")
        .all()
        .await
}

pub async fn insert_sections(tx: &mut Tx, token: Id, sections: &[Id]) -> Result<()> {
    tx.insert_rows("token_sections (token_id, section_id)", sections.iter().copied(), |columns| {
        columns.add(|_| token).add(|section| *section);
    })
    .await
}

pub async fn delete_sections(tx: &mut Tx, token: Id) -> Result<()> {
    tx.query("delete from token_sections where token_id = $1").bind(token).execute().await
}

/// Returns whether a token covers a section of its own event.
pub async fn covers(reader: &mut Reader, token: Id, section: Id) -> Result<bool> {
    reader
        .select("s.id from sections s where")
        .push_bind(" s.id = ?", section)
        .and_where(&admission_scope::covers_sql("s.id"), Some(token))
        .exists()
        .await
}
