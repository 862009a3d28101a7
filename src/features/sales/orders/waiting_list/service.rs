//! Joining, reading and leaving waiting lists.

use std::collections::BTreeSet;

use boxoffice_http::error::{Code, Error, Result, reject_if};

use super::model::{EntriesOf, EntryRow, NewEntry, WaitingEntry, WaitingEntryCreate, WaitingEntryPath, WaitingStatus};
use super::store;
use crate::features::catalog::events;
use crate::features::catalog::sections::{self, SectionUri};
use crate::features::codes;
use crate::features::identity::accounts::{self, AccountNumber};
use crate::features::sales::orders::inventory::account_maximum;
use crate::features::sales::orders::pricing::check_on_sale;
use crate::features::sales::orders::store as orders;
use crate::kernel::auth::Caller;
use crate::kernel::db::{Reader, Tx, transaction};
use crate::kernel::types::api_types::{DateTime, NullableField, Uri};
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::Id;
use crate::kernel::types::paging::{Page, PageRequest};
use crate::state::{App, Ctx};

/// Largest number of entries of a section that wait.
const MAX_WAITING_OF_SECTION: i64 = 10_000;
/// Largest number of entries of an account that wait or have an open offer.
const MAX_WAITING_OF_ACCOUNT: i64 = 20;

/// Adds the caller's account to the waiting list of a section.
pub async fn join(ctx: &Ctx, caller: &Caller, uri: SectionUri, new: &WaitingEntryCreate) -> Result<WaitingEntry> {
    transaction!(ctx.unit, |tx| join_in_tx(&ctx.app, tx, caller, uri, new).await)
}

async fn join_in_tx(app: &App, tx: &mut Tx, caller: &Caller, uri: SectionUri, new: &WaitingEntryCreate) -> Result<WaitingEntry> {
    let now = app.clock.now();
    let section = sections::load(tx, uri, now).await?;
    events::load_visible(tx, caller, section.event_id).await?;
    let account = caller.account.ok_or(Error::FORBIDDEN)?;
    // Locks in the order of an order: the account, the host, the section.
    accounts::lock(tx, account).await?.ok_or(Code::KEY_REFUSED)?;
    let event = orders::lock_hosts_and_read_sale_status(tx, [section.event_id]).await?.pop().ok_or(Error::NOT_FOUND)?;
    let places = sections::lock_available(app, tx, [section.id], now).await?.remove(&section.id).ok_or(Error::NOT_FOUND)?;
    // The host may have changed the section while this request waited for the locks.
    let section = sections::load(tx, uri, now).await?;
    if new.quantity > section.capacity {
        return Err(Error::invalid("quantity", "is more than the section's capacity"));
    }
    check_on_sale(&section, &event, now)?;
    let earlier = store::find_of_account(tx, section.id, account).await?;
    reject_if(earlier.as_ref().is_some_and(|entry| is_open(entry, now)), codes::WAITING_LIST_JOINED)?;
    reject_if(places.waiting == 0 && places.left > 0, codes::SECTION_NOT_SOLD_OUT)?;
    if section.maximum_per_account.is_some() {
        let held = orders::count_held(tx, &BTreeSet::from([account]), &BTreeSet::from([section.id]), now).await?;
        let held = held.first().map_or(0, |(.., tickets)| *tickets);
        account_maximum(&section, &event, held, new.quantity)?;
    }
    reject_if(places.waiting >= MAX_WAITING_OF_SECTION, codes::WAITING_LIST_FULL)?;
    reject_if(store::count_open(tx, account, now).await? >= MAX_WAITING_OF_ACCOUNT, codes::WAITING_LIST_TOO_MANY)?;
    if let Some(ended) = earlier {
        remove(tx, &ended).await?;
    }
    let id = app.clock.next_id();
    store::insert(tx, NewEntry { id, section_id: section.id, account_id: account, quantity: new.quantity, joined: now }).await?;
    sections::adjust_waiting(tx, &[(section.id, 1, 0)]).await?;
    let row = store::find(tx, id).await?.ok_or(Error::NOT_FOUND)?;
    view(tx, caller, row, now).await
}

/// Returns whether an account waits, or has an offer that has not ended.
fn is_open(entry: &EntryRow, now: Timestamp) -> bool {
    matches!(entry.status(now), WaitingStatus::Waiting | WaitingStatus::Offered)
}

pub async fn list_of_section(ctx: &Ctx, caller: &Caller, uri: SectionUri, paging: PageRequest) -> Result<Page<WaitingEntry>> {
    let now = ctx.app.clock.now();
    let mut reader = ctx.unit.read().await?;
    let section = sections::load(&mut reader, uri, now).await?;
    events::load_managed(&mut reader, caller, section.event_id).await?;
    list(&mut reader, caller, EntriesOf::Section(section.id), paging, now).await
}

pub async fn list_of_account(
    ctx: &Ctx,
    caller: &Caller,
    number: &AccountNumber,
    paging: PageRequest,
) -> Result<Page<WaitingEntry>> {
    let mut reader = ctx.unit.read().await?;
    let account = accounts::load(&mut reader, caller, number).await?.id;
    list(&mut reader, caller, EntriesOf::Account(account), paging, ctx.app.clock.now()).await
}

async fn list(
    reader: &mut Reader,
    caller: &Caller,
    of: EntriesOf,
    paging: PageRequest,
    now: Timestamp,
) -> Result<Page<WaitingEntry>> {
    let page = store::list(reader, of, paging).await?;
    Ok(paging.page(page.total, views(reader, caller, page.rows, now).await?))
}

pub async fn get(ctx: &Ctx, caller: &Caller, path: &WaitingEntryPath) -> Result<WaitingEntry> {
    let mut reader = ctx.unit.read().await?;
    let row = load(&mut reader, path).await?;
    if !caller.is(row.account_id) {
        events::load_managed(&mut reader, caller, row.event_id).await?;
    }
    view(&mut reader, caller, row, ctx.app.clock.now()).await
}

/// Loads the entry with this path.
async fn load(reader: &mut Reader, path: &WaitingEntryPath) -> Result<EntryRow> {
    let row = store::find(reader, path.entry).await?;
    row.filter(|row| row.section_id == path.section && row.event_id == path.event).ok_or(Error::NOT_FOUND)
}

/// Removes an entry. The places of an open offer become free for the next account.
pub async fn leave(ctx: &Ctx, caller: &Caller, path: &WaitingEntryPath) -> Result<()> {
    transaction!(ctx.unit, |tx| {
        let row = load(tx, path).await?;
        caller.require_account(row.account_id)?;
        sections::lock_all(tx, [row.section_id]).await?;
        // The offer may have begun or ended before the lock.
        let row = load(tx, path).await?;
        remove(tx, &row).await
    })
}

/// Deletes an entry of a locked section.
async fn remove(tx: &mut Tx, entry: &EntryRow) -> Result<()> {
    store::delete(tx, entry.id).await?;
    let change = entry.stored_status.change_of_removal(entry.section_id, entry.quantity);
    sections::adjust_waiting(tx, change.as_slice()).await
}

/// Deletes all entries of an account that is deleted. The account, and the sections of its entries, are locked.
pub async fn delete_of_account(tx: &mut Tx, account: Id) -> Result<()> {
    let removed = store::delete_of_account(tx, account).await?.into_iter();
    let changes = removed.filter_map(|(section, status, quantity)| status.change_of_removal(section, quantity));
    sections::adjust_waiting(tx, &changes.collect::<Vec<_>>()).await
}

async fn view(reader: &mut Reader, caller: &Caller, row: EntryRow, now: Timestamp) -> Result<WaitingEntry> {
    views(reader, caller, vec![row], now).await?.pop().ok_or(Error::NOT_FOUND)
}

async fn views(reader: &mut Reader, caller: &Caller, rows: Vec<EntryRow>, now: Timestamp) -> Result<Vec<WaitingEntry>> {
    let customers = accounts::views_for(reader, caller, rows.iter().map(|row| row.account_id)).await?;
    let view = |row: EntryRow| {
        let customer = customers.get(&row.account_id).cloned();
        let customer = customer.ok_or_else(|| anyhow::anyhow!("the entry {} has no customer", row.id))?;
        let section = sections::uri(row.event_id, row.section_id);
        let status = row.status(now);
        let expires = row.expires.filter(|_| status == WaitingStatus::Offered);
        Ok(WaitingEntry {
            uri: Uri(format!("{}/waiting-list/{}", section.0, row.id)),
            section,
            customer,
            quantity: row.quantity,
            status,
            position: NullableField((status == WaitingStatus::Waiting).then_some(row.position)),
            joined: DateTime::from(row.joined),
            expires: NullableField(expires.map(DateTime::from)),
        })
    };
    rows.into_iter().map(view).collect()
}
