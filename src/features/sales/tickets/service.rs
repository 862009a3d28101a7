//! Reading and issuing tickets.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use anyhow::anyhow;
use boxoffice_http::error::{Error, Result};

use super::model::{Redeemed, Serial, Ticket, TicketRow, TicketStatus, uri};
use super::store;
use crate::features::catalog::events;
use crate::features::catalog::sections::{self, Section};
use crate::features::identity::accounts::{self, Account, AccountList, AccountLists, AccountNumber, AccountPage, AccountRow};
use crate::kernel::auth::Caller;
use crate::kernel::db::{Reader, Tx, Writes};
use crate::kernel::types::api_types::{OffsetSeconds, Uri};
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::embedded::{Embedded, EmbeddedById};
use crate::kernel::types::id::Id;
use crate::kernel::types::paging::{Page, PageRequest, PagedRows};
use crate::kernel::types::secret;
use crate::state::{App, Ctx};

/// Batches of reads of the tickets of accounts.
pub type AccountTickets = AccountLists<TicketPage>;

/// A page of the tickets of an account.
#[derive(Clone)]
pub struct TicketPage {
    total: i64,
    tickets: Vec<TicketRow>,
    /// The sections of all tickets in the batch.
    sections: Arc<EmbeddedById<Section>>,
}

pub async fn list_of_account(ctx: &Ctx, caller: &Caller, number: &AccountNumber, paging: PageRequest) -> Result<Page<Ticket>> {
    let AccountList { account, page } = ctx.app.account_tickets.get(ctx, caller, number, paging).await?;
    let Some(TicketPage { total, tickets, sections }) = page else { return paging.empty_page() };
    let owners = HashMap::from([(account.id, Embedded::new(&accounts::view_for(caller, account))?)]);
    let tickets = tickets.into_iter().map(|row| view(row, &sections, &owners));
    Ok(paging.page(total, tickets.collect::<Result<_>>()?))
}

impl AccountPage for TicketPage {
    type Key = PageRequest;

    async fn read(app: &App, reader: &mut Reader, paging: PageRequest, accounts: &[AccountRow]) -> Result<HashMap<Id, Self>> {
        let pages = store::list_of_accounts(reader, accounts.iter().map(|account| account.id), paging).await?;
        let section_ids: BTreeSet<Id> = pages.values().flat_map(|page| &page.rows).map(|row| row.section_id).collect();
        let sections = Arc::new(sections::find_embedded(reader, section_ids, app.clock.now()).await?);
        let page = |page: PagedRows<TicketRow>| Self { total: page.total, tickets: page.rows, sections: Arc::clone(&sections) };
        Ok(pages.into_iter().map(|(account, rows)| (account, page(rows))).collect())
    }
}

/// Lists the tickets of an order without those that were replaced, the oldest first, for a platform administrator.
pub async fn list_of_order(ctx: &Ctx, caller: &Caller, order: Id, paging: PageRequest) -> Result<Page<Ticket>> {
    let mut reader = ctx.unit.read().await?;
    let page = store::list_of_order(&mut reader, order, paging).await?;
    let entries = views(&mut reader, caller, page.rows, ctx.app.clock.now()).await?;
    Ok(paging.page(page.total, entries))
}

pub async fn get(ctx: &Ctx, caller: &Caller, ticket: Id) -> Result<Ticket> {
    let mut reader = ctx.unit.read().await?;
    let row = load_authorized(&mut reader, caller, ticket).await?;
    let mut views = views(&mut reader, caller, vec![row], ctx.app.clock.now()).await?;
    views.pop().ok_or(Error::NOT_FOUND)
}

/// Loads a ticket for its owner, an administrator of the event's host or a platform administrator.
pub async fn load_authorized(reader: &mut Reader, caller: &Caller, ticket: Id) -> Result<TicketRow> {
    let row = store::find(reader, ticket).await?.ok_or(Error::NOT_FOUND)?;
    if !caller.is(row.owner_id) {
        events::load_managed(reader, caller, row.event_id).await?;
    }
    Ok(row)
}

/// Tickets of one section to be issued for an order.
#[derive(Debug, Clone, Copy)]
pub struct NewTickets {
    /// The order.
    pub order: Id,
    /// The owner of the tickets.
    pub owner: Id,
    /// The event.
    pub event: Id,
    /// The section.
    pub section: Id,
    /// The number of tickets.
    pub quantity: i64,
}

/// Issues tickets with new serial numbers.
pub fn issue<'a>(app: &App, writes: Writes<'a>, new: impl IntoIterator<Item = NewTickets>) -> Writes<'a> {
    let now = app.clock.now();
    let mut tickets = Vec::new();
    for NewTickets { order, owner, event, section, quantity } in new {
        tickets.extend((0..quantity).map(|_| TicketRow {
            id: app.clock.next_id(),
            serial: secret::ticket_serial(),
            order_id: order,
            event_id: event,
            section_id: section,
            owner_id: owner,
            status: TicketStatus::Issued,
            issued: now,
            redeemed: None,
            modified: now,
        }));
    }
    store::insert(writes, &tickets)
}

/// Replaces the Pending tickets of `from` by Issued tickets of `to`, which have other serial numbers. So the copies of `from` no
/// longer admit. Returns whether all of the tickets were Pending; otherwise the caller must roll the transaction back.
///
/// The orders of the tickets must be [locked](super::lock_orders): a return must not miss the new tickets.
pub async fn replace(app: &App, tx: &mut Tx, tickets: &[Id], from: Id, to: Id) -> Result<bool> {
    let pending = store::lock_pending(tx, tickets, from).await?;
    let now = app.clock.now();
    let replacement = |ticket: &TicketRow| TicketRow {
        id: app.clock.next_id(),
        serial: secret::ticket_serial(),
        owner_id: to,
        status: TicketStatus::Issued,
        modified: now,
        ..ticket.clone()
    };
    let replacements: Vec<TicketRow> = pending.iter().map(replacement).collect();
    if replacements.len() < tickets.len() {
        return Ok(false);
    }
    store::insert(tx.writes(), &replacements).execute().await?;
    let pairs = pending.iter().zip(&replacements).map(|(ticket, replacement)| (ticket.id, replacement.id));
    store::set_replaced(tx, pairs, now).await?;
    Ok(true)
}

/// Returns tickets as responses.
async fn views(reader: &mut Reader, caller: &Caller, rows: Vec<TicketRow>, now: Timestamp) -> Result<Vec<Ticket>> {
    let (sections, owners) = find_embedded(reader, caller, rows.iter(), now).await?;
    rows.into_iter().map(|row| view(row, &sections, &owners)).collect()
}

/// Loads and serializes each section and each owner of tickets once.
pub async fn find_embedded<'r>(
    reader: &mut Reader,
    caller: &Caller,
    rows: impl Iterator<Item = &'r TicketRow> + Clone,
    now: Timestamp,
) -> Result<(EmbeddedById<Section>, EmbeddedById<Account>)> {
    let owners = accounts::views_for(reader, caller, rows.clone().map(|row| row.owner_id)).await?;
    let owners = owners.iter().map(|(id, owner)| Ok((*id, Embedded::new(owner)?))).collect::<Result<_>>()?;
    Ok((sections::find_embedded(reader, rows.map(|row| row.section_id), now).await?, owners))
}

/// Returns a ticket as a response.
pub fn view(row: TicketRow, sections: &EmbeddedById<Section>, owners: &EmbeddedById<Account>) -> Result<Ticket> {
    let section = sections.get(&row.section_id).zip(owners.get(&row.owner_id));
    let (section, owner) = section.ok_or_else(|| anyhow!("ticket {} lacks its section or owner", row.id))?;
    Ok(Ticket {
        uri: uri(row.id),
        serial: Serial(row.serial),
        order: Uri(format!("/orders/{}", row.order_id)),
        status: row.status,
        section: section.clone(),
        owner: owner.clone(),
        issued: OffsetSeconds::from(row.issued),
        redeemed: Redeemed(row.redeemed.map_or_else(|| "N/A".to_owned(), Timestamp::format_rfc3339)),
    })
}
