//! Operations on transfers: the owner offers, the recipient claims or rejects, and either of them cancels.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use anyhow::anyhow;
use boxoffice_http::error::{Code, Error, FieldError, Result, reject_if};

use super::model::{
    Transfer, TransferCreate, TransferFilter, TransferRow, TransferSerial, TransferStatus, TransferTicket, TransferTicketRow,
    TransferTicketStatus,
};
use super::store;
use crate::features::catalog::sections::{self, Section};
use crate::features::codes;
use crate::features::identity::accounts::{self, Account, AccountLists, AccountNumber, AccountPage, AccountRow};
use crate::features::sales::mail_values::SalesMail;
use crate::features::sales::tickets::{self, Redeemed, SerialInput, TicketRow};
use crate::kernel::auth::Caller;
use crate::kernel::db::{LARGE_PAGE, Reader, Tx, transaction};
use crate::kernel::outbox::{self, MailCounts, MailTemplate};
use crate::kernel::types::api_types::{OffsetSeconds, Uri};
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::embedded::{Embedded, EmbeddedById};
use crate::kernel::types::id::Id;
use crate::kernel::types::paging::{Page, PageRequest, SortOrder};
use crate::state::{App, Ctx};

/// Batches of reads of the transfers of accounts.
pub type AccountTransfers = AccountLists<FirstTransfers>;

/// The first page of the transfers of an account, with the related data of all pages of its batch.
#[derive(Clone)]
pub struct FirstTransfers {
    total: i64,
    rows: Vec<TransferRow>,
    related: Arc<TransferRelations>,
}

/// Lists the transfers that an account has sent or received, sorted by time of creation.
pub async fn list_of_account(
    ctx: &Ctx,
    caller: &Caller,
    number: &AccountNumber,
    filter: &TransferFilter,
    order: SortOrder,
) -> Result<Page<Transfer>> {
    if filter.paging.is_first() {
        let list = ctx.app.account_transfers.get(ctx, caller, number, (*filter, order)).await?;
        if let Some(FirstTransfers { total, rows, related }) = list.page {
            return Ok(filter.paging.page(total, related.views(caller, rows)?));
        }
    }
    let mut reader = ctx.unit.read().await?;
    let account = accounts::load(&mut reader, caller, number).await?;
    let page = store::list_of_account(&mut reader, account.id, filter, order).await?;
    let entries = views(&mut reader, caller, page.rows, ctx.app.clock.now()).await?;
    Ok(filter.paging.page(page.total, entries))
}

impl AccountPage for FirstTransfers {
    type Key = (TransferFilter, SortOrder);

    /// Leaves out pages that are large, alone or together with others.
    async fn read(
        app: &App,
        reader: &mut Reader,
        (filter, order): Self::Key,
        accounts: &[AccountRow],
    ) -> Result<HashMap<Id, Self>> {
        let ids: Vec<Id> = accounts.iter().map(|account| account.id).collect();
        let mut pages = store::first_pages_of_accounts(reader, &ids, &filter, order).await?;
        let transfers: Vec<TransferRow> = pages.values().flat_map(|(_, rows)| rows).copied().collect();
        let tickets = store::tickets(reader, transfers.iter().map(|row| row.id)).await?;
        if tickets.len() == store::MAX_TICKETS {
            return Ok(HashMap::new());
        }
        let tickets = by_transfer(tickets);
        let sizes = store::sizes(reader, &transfers, &tickets).await?;
        let mut read = HashMap::new();
        let mut bytes = 0;
        for id in ids {
            let (total, rows) = pages.remove(&id).unwrap_or_default();
            let size: i64 = rows.iter().filter_map(|row| sizes.get(&row.id)).sum();
            if bytes + size <= LARGE_PAGE {
                bytes += size;
                read.insert(id, (total, rows));
            }
        }
        let related = TransferRelations::load(reader, read.values().flat_map(|(_, rows)| rows), tickets, app.clock.now()).await?;
        let related = Arc::new(related);
        let page = |(id, (total, rows))| (id, Self { total, rows, related: Arc::clone(&related) });
        Ok(read.into_iter().map(page).collect())
    }
}

/// Lists the transfers of the tickets of an order, the newest first, for a platform administrator.
pub async fn list_of_order(ctx: &Ctx, caller: &Caller, order: Id, paging: PageRequest) -> Result<Page<Transfer>> {
    let mut reader = ctx.unit.read().await?;
    let page = store::list_of_order(&mut reader, order, paging).await?;
    let entries = views(&mut reader, caller, page.rows, ctx.app.clock.now()).await?;
    Ok(paging.page(page.total, entries))
}

pub async fn create(ctx: &Ctx, caller: &Caller, new: &TransferCreate) -> Result<Transfer> {
    let mails = MailCounts::default();
    transaction!(ctx.unit, |tx| create_in_tx(&ctx.app, tx, caller, new, &mails).await)
}

pub async fn get(ctx: &Ctx, caller: &Caller, id: Id) -> Result<Transfer> {
    let mut reader = ctx.unit.read().await?;
    let row = load(&mut reader, id).await?;
    if !caller.is(row.sender_id) {
        caller.require_account(row.recipient_id)?;
    }
    view(&mut reader, caller, row, ctx.app.clock.now()).await
}

/// Accepts a transfer; its tickets are replaced by tickets of the recipient.
pub async fn claim(ctx: &Ctx, caller: &Caller, id: Id) -> Result<Transfer> {
    transaction!(ctx.unit, |tx| respond(&ctx.app, tx, caller, id, TransferStatus::Claimed).await)
}

/// Rejects a transfer; its tickets stay with the sender.
pub async fn reject(ctx: &Ctx, caller: &Caller, id: Id) -> Result<Transfer> {
    transaction!(ctx.unit, |tx| respond(&ctx.app, tx, caller, id, TransferStatus::Rejected).await)
}

pub async fn cancel(ctx: &Ctx, caller: &Caller, id: Id) -> Result<()> {
    transaction!(ctx.unit, |tx| {
        let row = load(tx, id).await?;
        reject_if(!caller.is(row.sender_id) && !caller.is(row.recipient_id), Error::FORBIDDEN)?;
        close(&ctx.app, tx, row, TransferStatus::Cancelled).await
    })?;
    Ok(())
}

/// Cancels every open transfer that an account has sent or received. If there is one, it also locks all tickets of the account, because
/// all locks of tickets must be taken in ascending order.
pub async fn cancel_for_account(app: &App, tx: &mut Tx, account: Id) -> Result<()> {
    let open = store::lock_open_of(tx, account).await?;
    if open.is_empty() {
        return Ok(());
    }
    let own = tickets::ids_of_account(tx, account).await?;
    cancel_all(app, tx, &open, &own).await
}

/// Cancels every open transfer that offers any of the tickets in `offered`. The tickets stay with their senders. If there is
/// one, it also locks `others`, because all locks of tickets must be taken in ascending order.
pub async fn cancel_for_tickets(app: &App, tx: &mut Tx, offered: &[Id], others: &[Id]) -> Result<()> {
    if offered.is_empty() {
        return Ok(());
    }
    let open = store::lock_open_holding(tx, offered.iter().copied()).await?;
    cancel_all(app, tx, &open, others).await
}

/// Cancels locked transfers. Locks their tickets and `others`.
async fn cancel_all(app: &App, tx: &mut Tx, open: &[TransferRow], others: &[Id]) -> Result<()> {
    let offered = store::offered_tickets(tx, open.iter().map(|row| row.id)).await?;
    tickets::lock_by_ids(tx, others.iter().chain(&offered).copied()).await?;
    store::cancel_all(tx, open.iter().map(|row| row.id)).await?;
    if !tickets::release(tx, &offered, app.clock.now()).await? {
        return Err(anyhow!("a ticket of an open transfer is not Pending").into());
    }
    Ok(())
}

/// Offers all of the tickets, or none of them.
async fn create_in_tx(app: &App, tx: &mut Tx, caller: &Caller, new: &TransferCreate, mails: &MailCounts) -> Result<Transfer> {
    let sender = caller.account.ok_or(Error::FORBIDDEN)?;
    let recipient = lock_accounts(tx, sender, &new.recipient).await?;
    let tickets = own_tickets(tx, sender, &new.tickets.0).await?;
    let (recipient, tickets) = match (recipient, tickets) {
        (Ok(recipient), Ok(tickets)) => (recipient, tickets),
        (recipient, tickets) => return Err(Error::Invalid(recipient.err().into_iter().chain(tickets.err()).collect())),
    };
    let now = app.clock.now();
    let ids: Vec<Id> = tickets.iter().map(|ticket| ticket.id).collect();
    let offered = tickets::mark_pending(tx, &ids, sender, now).await?;
    let rejected = tickets.iter().filter(|ticket| !offered.contains(&ticket.id));
    let rejected: Vec<&str> = rejected.map(|ticket| ticket.serial.as_str()).collect();
    if !rejected.is_empty() {
        return Err(not_issued(&rejected));
    }
    let id = app.clock.next_id();
    let row = TransferRow { id, status: TransferStatus::Pending, sender_id: sender, recipient_id: recipient };
    store::insert(tx, &row).await?;
    store::insert_tickets(tx, id, &ids).await?;
    // The sender decides when a mail is sent, so their number is limited. The offer itself is not.
    if mails.count(app, &app.limits.transfer_mails, recipient, MailTemplate::TransferReceived, recipient) {
        outbox::push(app, tx, [SalesMail::TransferReceived { transfer: id }.to(recipient)]).await?;
    }
    view(tx, caller, row, now).await
}

/// Locks the sender and the recipient, by ascending identifier, and returns the recipient. It is not deactivated before the
/// transfer exists.
///
/// # Errors
/// [`Code::KEY_REFUSED`] if the sender was deleted since its key was looked up: it must not leave an open transfer behind.
async fn lock_accounts(tx: &mut Tx, sender: Id, recipient: &AccountNumber) -> Result<Result<Id, FieldError>> {
    let recipient = accounts::find_by_number(tx, recipient).await?.map(|account| account.id);
    let locked = accounts::lock_all(tx, [sender].into_iter().chain(recipient)).await?;
    reject_if(!locked.iter().any(|account| account.id == sender), Code::KEY_REFUSED)?;
    Ok(match locked.iter().find(|account| Some(account.id) == recipient && account.activated) {
        None => Err(FieldError::invalid("recipient", "names no active account")),
        Some(account) if account.id == sender => Err(FieldError::invalid("recipient", "must be another account")),
        Some(account) => Ok(account.id),
    })
}

/// Locks and returns the owner's tickets with these serial numbers. The error is the same for another account's ticket as for an
/// unknown serial number.
async fn own_tickets(tx: &mut Tx, owner: Id, serials: &[SerialInput]) -> Result<Result<Vec<TicketRow>, FieldError>> {
    let tickets = tickets::lock_own(tx, owner, serials.iter().map(|serial| serial.0.clone()).collect()).await?;
    let owned: HashSet<&str> = tickets.iter().map(|ticket| ticket.serial.as_str()).collect();
    let unknown: Vec<&str> = serials.iter().map(|serial| serial.0.as_str()).filter(|serial| !owned.contains(serial)).collect();
    if unknown.is_empty() {
        // The contract can't reject a serial number that is repeated in another case.
        let is_repeated = tickets.len() < serials.len();
        return Ok(if is_repeated { Err(FieldError::invalid("tickets", "must not repeat an item")) } else { Ok(tickets) });
    }
    Ok(Err(FieldError::invalid("tickets", format!("names no ticket of yours (at {})", unknown.join(", ")))))
}

fn not_issued(serials: &[&str]) -> Error {
    let are = if serials.len() == 1 { "is" } else { "are" };
    let serials = serials.join(" and ");
    codes::TICKET_NOT_ISSUED.with_message(format!("Only a ticket that is Issued can be transferred, and {serials} {are} not."))
}

/// Ends a transfer with the response of its recipient.
async fn respond(app: &App, tx: &mut Tx, caller: &Caller, id: Id, status: TransferStatus) -> Result<Transfer> {
    let row = load(tx, id).await?;
    reject_if(!caller.is(row.recipient_id), Error::FORBIDDEN)?;
    // The lock serializes with the deletion of the account, so that no ticket is transferred to a deleted account.
    accounts::lock(tx, row.recipient_id).await?.ok_or(Error::NOT_FOUND)?;
    let ended = close(app, tx, row, status).await?;
    if status == TransferStatus::Claimed {
        outbox::push(app, tx, [SalesMail::TransferClaimed { transfer: ended.id }.to(ended.recipient_id)]).await?;
    }
    view(tx, caller, ended, app.clock.now()).await
}

/// Ends an open transfer with `status`: its tickets are Issued to their sender again, or replaced by tickets of the recipient.
async fn close(app: &App, tx: &mut Tx, row: TransferRow, status: TransferStatus) -> Result<TransferRow> {
    let tickets = store::offered_tickets(tx, [row.id]).await?;
    let is_claimed = status == TransferStatus::Claimed;
    if is_claimed {
        tickets::lock_orders(tx, &tickets).await?;
    }
    reject_if(!store::end(tx, row.id, status).await?, codes::TRANSFER_NOT_OPEN)?;
    let were_pending = if is_claimed {
        tickets::replace(app, tx, &tickets, row.sender_id, row.recipient_id).await?
    } else {
        tickets::lock_by_ids(tx, tickets.iter().copied()).await?;
        tickets::release(tx, &tickets, app.clock.now()).await?
    };
    if !were_pending {
        return Err(anyhow!("a ticket of the open transfer {} is not Pending", row.id).into());
    }
    Ok(TransferRow { status, ..row })
}

async fn load(reader: &mut Reader, id: Id) -> Result<TransferRow> {
    store::find(reader, id).await?.ok_or(Error::NOT_FOUND)
}

async fn view(reader: &mut Reader, caller: &Caller, row: TransferRow, now: Timestamp) -> Result<Transfer> {
    views(reader, caller, vec![row], now).await?.pop().ok_or(Error::NOT_FOUND)
}

/// Returns transfers with their tickets as responses to this caller. Loads each section and each account once.
async fn views(reader: &mut Reader, caller: &Caller, rows: Vec<TransferRow>, now: Timestamp) -> Result<Vec<Transfer>> {
    let tickets = by_transfer(store::tickets(reader, rows.iter().map(|row| row.id)).await?);
    TransferRelations::load(reader, &rows, tickets, now).await?.views(caller, rows)
}

/// Groups tickets by their transfers.
fn by_transfer(tickets: Vec<TransferTicketRow>) -> HashMap<Id, Vec<TransferTicketRow>> {
    let mut by_transfer: HashMap<Id, Vec<TransferTicketRow>> = HashMap::new();
    tickets.into_iter().for_each(|ticket| by_transfer.entry(ticket.transfer_id).or_default().push(ticket));
    by_transfer
}

/// The resources that transfers embed.
struct TransferRelations {
    /// Their tickets, by transfer.
    tickets: HashMap<Id, Vec<TransferTicketRow>>,
    sections: EmbeddedById<Section>,
    accounts: HashMap<Id, AccountRow>,
}

impl TransferRelations {
    /// Loads what these transfers with these tickets embed. Tickets of other transfers are left out.
    async fn load(
        reader: &mut Reader,
        transfers: impl IntoIterator<Item = &TransferRow>,
        mut tickets: HashMap<Id, Vec<TransferTicketRow>>,
        now: Timestamp,
    ) -> Result<Self> {
        let transfers: HashMap<Id, &TransferRow> = transfers.into_iter().map(|row| (row.id, row)).collect();
        tickets.retain(|transfer, _| transfers.contains_key(transfer));
        let section_ids = tickets.values().flatten().map(|ticket| ticket.section_id);
        let sections = sections::find_embedded(reader, section_ids, now).await?;
        let account_ids = transfers.values().flat_map(|row| [row.sender_id, row.recipient_id]);
        let accounts = accounts::find_all(reader, account_ids).await?.into_iter().map(|account| (account.id, account)).collect();
        Ok(Self { tickets, sections, accounts })
    }

    /// Returns these transfers as responses to this caller.
    fn views(&self, caller: &Caller, rows: Vec<TransferRow>) -> Result<Vec<Transfer>> {
        let ids: HashSet<Id> = rows.iter().flat_map(|row| [row.sender_id, row.recipient_id]).collect();
        let account = |id: Id| {
            let account = self.accounts.get(&id).ok_or_else(|| anyhow!("there is no account {id}"))?;
            Ok((id, Embedded::new(&accounts::view_for(caller, account.clone()))?))
        };
        let accounts = ids.into_iter().map(account).collect::<Result<HashMap<_, _>>>()?;
        rows.into_iter().map(|row| self.view(caller, row, &accounts)).collect()
    }

    fn view(&self, caller: &Caller, row: TransferRow, accounts: &EmbeddedById<Account>) -> Result<Transfer> {
        let tickets = self.tickets.get(&row.id).into_iter().flatten().map(|offer| {
            let section = self.sections.get(&offer.section_id);
            let section = section.ok_or_else(|| anyhow!("the ticket {} has no section", offer.ticket_id))?;
            Ok(ticket_view(caller, &row, offer.clone(), section.clone(), accounts[&row.owner()].clone()))
        });
        Ok(Transfer {
            uri: Uri(format!("/transfers/{}", row.id)),
            status: row.status,
            sender: accounts[&row.sender_id].clone(),
            recipient: accounts[&row.recipient_id].clone(),
            tickets: tickets.collect::<Result<_>>()?,
        })
    }
}

/// Returns a ticket of a transfer as a response. Hides the serial number from the side that doesn't own the ticket, because it
/// could be used for admission: from the recipient before the claim, from the sender after it.
fn ticket_view(
    caller: &Caller,
    row: &TransferRow,
    offer: TransferTicketRow,
    section: Embedded<Section>,
    owner: Embedded<Account>,
) -> TransferTicket {
    let is_side = caller.is(row.sender_id) || caller.is(row.recipient_id);
    let is_hidden = is_side && !caller.is(row.owner());
    let is_open = row.status == TransferStatus::Pending;
    TransferTicket {
        uri: tickets::uri(offer.ticket_id),
        serial: TransferSerial(if is_hidden { String::new() } else { offer.serial }),
        status: if is_open { TransferTicketStatus::Pending } else { TransferTicketStatus::Issued },
        section,
        owner,
        issued: OffsetSeconds::from(offer.issued),
        redeemed: Redeemed("N/A".to_owned()),
    }
}
