//! Contents of mails.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use boxoffice_http::error::Result;
use serde_json::{Map, Value, json};

use super::store::{self, MailItemRow, MailOfferRow, MailOrderRow, MailTransferRow};
use crate::features::identity::accounts::{self, AccountRow};
use crate::features::sales::mail_values::{MailReference, RETURNED_SECTIONS};
use crate::features::sales::ticket_documents::{self, DocumentTicket, DocumentTicketRow};
use crate::features::sales::tickets::TicketStatus;
use crate::features::sales::transfers::TransferStatus;
use crate::kernel::context::Context;
use crate::kernel::low_priority;
use crate::kernel::outbox::{self, Attachment, DueMail, DueRecipient, MailContent, MailContents, MailTemplate};
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::Id;
use crate::state::{App, Ctx};

/// Job step: tries to deliver mails until none is due. Returns the number of attempts.
///
/// # Errors
/// Returns an error if the database fails.
pub async fn deliver_due(app: &Arc<App>) -> Result<u64> {
    outbox::deliver_due(&app.kernel, &Contents(Context::immediate(Arc::clone(app)))).await
}

/// Loads the contents of a batch of mails with seven queries at most.
struct Contents(Ctx);

/// The rows of a batch of mails.
struct Rows {
    accounts: HashMap<Id, AccountRow>,
    orders: HashMap<Id, MailOrderRow>,
    items: Vec<MailItemRow>,
    transfers: HashMap<Id, MailTransferRow>,
    offers: HashMap<Id, MailOfferRow>,
    /// The tickets of the orders and the transfers.
    tickets: Vec<DocumentTicketRow>,
}

#[async_trait]
impl MailContents for Contents {
    async fn load(&self, mails: &[DueMail]) -> Result<Vec<Result<Option<MailContent>>>> {
        let rows = Rows::load(&self.0, mails).await?;
        let mut contents = Vec::with_capacity(mails.len());
        for mail in mails {
            contents.push(self.content(&rows, mail).await);
        }
        Ok(contents)
    }
}

impl Rows {
    async fn load(ctx: &Ctx, mails: &[DueMail]) -> Result<Self> {
        let (mut orders, mut transfers, mut offers) = (vec![], vec![], vec![]);
        for reference in mails.iter().filter_map(MailReference::of) {
            match reference {
                MailReference::Order(order) | MailReference::TicketsOfEvent { order, .. } => orders.push(order),
                MailReference::Transfer(transfer) => transfers.push(transfer),
                MailReference::Entry(entry) => offers.push(entry),
            }
        }
        let account = |mail: &DueMail| match mail.recipient {
            DueRecipient::Account(account) => Some(account),
            DueRecipient::Address { .. } => None,
        };
        let mut account_ids: Vec<Id> = mails.iter().filter_map(account).collect();
        let mut rows = Self {
            accounts: HashMap::new(),
            orders: HashMap::new(),
            items: vec![],
            transfers: HashMap::new(),
            offers: HashMap::new(),
            tickets: vec![],
        };
        if account_ids.is_empty() {
            return Ok(rows);
        }
        let mut reader = ctx.unit.read().await?;
        if !orders.is_empty() {
            rows.orders = store::orders(&mut reader, &orders).await?.into_iter().map(|order| (order.id, order)).collect();
            rows.items = store::items(&mut reader, &orders).await?;
            rows.tickets = ticket_documents::of_orders(&mut reader, orders).await?;
        }
        if !transfers.is_empty() {
            let found = store::transfers(&mut reader, &transfers).await?;
            rows.transfers = found.into_iter().map(|transfer| (transfer.id, transfer)).collect();
            rows.tickets.extend(ticket_documents::of_transfers(&mut reader, transfers).await?);
        }
        if !offers.is_empty() {
            rows.offers = store::offers(&mut reader, &offers).await?.into_iter().map(|offer| (offer.id, offer)).collect();
        }
        account_ids.extend(rows.transfers.values().map(|transfer| transfer.sender_id));
        rows.accounts = accounts::find_all(&mut reader, account_ids).await?.into_iter().map(|row| (row.id, row)).collect();
        Ok(rows)
    }
}

impl Contents {
    /// Returns the content of a mail, or `None` if its order, transfer or offer no longer needs it, or its account was removed.
    async fn content(&self, rows: &Rows, mail: &DueMail) -> Result<Option<MailContent>> {
        let mut values = mail.values.as_object().cloned().unwrap_or_default();
        let account = match &mail.recipient {
            DueRecipient::Address { email, language } => {
                let (email, language) = (email.clone(), *language);
                return Ok(Some(MailContent { email, language, values: values.into(), attachments: vec![] }));
            }
            DueRecipient::Account(account) => rows.accounts.get(account),
        };
        // Refunds and returns for a removed account are made, but it has no address any more.
        let Some(account) = account.filter(|account| !account.removed) else { return Ok(None) };
        values.entry("name").or_insert_with(|| account.greeting().into());
        values.insert("guest".to_owned(), account.guest.into());
        let reference = MailReference::of(mail);
        let is_needed = match reference {
            Some(MailReference::Order(order)) => add_order(rows, order, &mut values),
            Some(MailReference::TicketsOfEvent { order, event }) => add_event_of_tickets(rows, order, event, &mut values),
            Some(MailReference::Transfer(transfer)) => add_transfer(rows, mail.template, transfer, &mut values),
            Some(MailReference::Entry(entry)) => add_offer(rows, entry, self.0.app.clock.now(), &mut values),
            None => true,
        };
        if !is_needed {
            return Ok(None);
        }
        let source = match (mail.template, reference) {
            (MailTemplate::OrderConfirmation, Some(MailReference::Order(order))) => Some(order),
            (MailTemplate::TransferClaimed, Some(MailReference::Transfer(transfer))) => Some(transfer),
            _ => None,
        };
        let is_own = |ticket: &&DocumentTicketRow| {
            Some(ticket.source_id) == source
                && ticket.ticket.owner_id == account.id
                && ticket.ticket.status == TicketStatus::Issued
        };
        let tickets: Vec<DocumentTicketRow> = rows.tickets.iter().filter(is_own).cloned().collect();
        if source.is_some() {
            values.insert("tickets".to_owned(), tickets.len().into());
        }
        let attachments = if tickets.is_empty() { vec![] } else { vec![self.document(account, tickets).await?] };
        let (email, language) = (account.email.clone(), account.language);
        Ok(Some(MailContent { email, language, values: values.into(), attachments }))
    }

    /// Returns the PDF with these tickets.
    async fn document(&self, owner: &AccountRow, tickets: Vec<DocumentTicketRow>) -> Result<Attachment> {
        let app = &self.0.app;
        let style = ticket_documents::style(app, owner);
        let tickets = tickets.into_iter().map(|row| ticket_documents::ticket(app, row, owner));
        let tickets = tickets.collect::<Result<Vec<DocumentTicket>>>()?;
        let bytes = low_priority::run(move || ticket_documents::render(&tickets, &style)).await??;
        Ok(Attachment { file_name: "tickets.pdf".to_owned(), media_type: "application/pdf", bytes })
    }
}

/// Adds the values of an order; of a mail about returned tickets, with these and their events alone. Returns whether the mail is still
/// needed.
fn add_order(rows: &Rows, id: Id, values: &mut Map<String, Value>) -> bool {
    let Some(order) = rows.orders.get(&id) else { return false };
    let items = || rows.items.iter().filter(|item| item.order_id == id);
    // Missing in mails of an earlier version.
    let returned = values.remove(RETURNED_SECTIONS).and_then(|sections| serde_json::from_value::<Vec<(i64, i64)>>(sections).ok());
    let returned: HashMap<Id, i64> = returned.into_iter().flatten().map(|(section, tickets)| (Id(section), tickets)).collect();
    let mut events: Vec<(Id, Value)> = Vec::new();
    for item in items().filter(|item| returned.is_empty() || returned.contains_key(&item.section_id)) {
        if events.iter().all(|(event, _)| *event != item.event_id) {
            events.push((item.event_id, event_of_item(item)));
        }
    }
    let item = |item: &MailItemRow| {
        let amount = (item.unit_price * item.quantity).0;
        json!({ "event": item.title, "section": item.section, "quantity": item.quantity, "amount": amount })
    };
    let returned_item = |item: &MailItemRow| {
        Some(json!({ "event": item.title, "section": item.section, "quantity": returned.get(&item.section_id)? }))
    };
    values.insert("returned_items".to_owned(), items().filter_map(returned_item).collect());
    let total = order.subtotal + order.fees;
    values.insert(
        "order".to_owned(),
        json!({
            "number": id.to_string(), "fees": order.fees.0, "total": total.0, "has_payment": order.has_payment,
            "items": items().map(item).collect::<Vec<_>>(),
        }),
    );
    values.insert("events".to_owned(), events.into_iter().map(|(_, event)| event).collect());
    true
}

/// Adds the values of the event of some tickets: their holder sees nothing of the customer's order. Returns whether the mail is still
/// needed.
fn add_event_of_tickets(rows: &Rows, order: Id, event: Id, values: &mut Map<String, Value>) -> bool {
    let is_found = |item: &&MailItemRow| item.order_id == order && item.event_id == event;
    let Some(item) = rows.items.iter().find(is_found) else { return false };
    values.remove("order");
    values.remove("event");
    values.insert("events".to_owned(), json!([event_of_item(item)]));
    true
}

/// Adds the values of a transfer. Returns whether the mail is still needed: an offer may have ended already.
fn add_transfer(rows: &Rows, template: MailTemplate, id: Id, values: &mut Map<String, Value>) -> bool {
    let Some(transfer) = rows.transfers.get(&id) else { return false };
    let is_offer = template == MailTemplate::TransferReceived;
    let Some(sender) = rows.accounts.get(&transfer.sender_id) else { return false };
    if is_offer && transfer.status != TransferStatus::Pending {
        return false;
    }
    let tickets = || rows.tickets.iter().filter(|ticket| ticket.source_id == id);
    let mut events: Vec<(Id, Value)> = Vec::new();
    for ticket in tickets() {
        if events.iter().all(|(event, _)| *event != ticket.ticket.event_id) {
            let event = event(ticket.ticket.event_id, &ticket.title, ticket.starts.0, &ticket.venue, &ticket.address);
            events.push((ticket.ticket.event_id, event));
        }
    }
    let count = tickets().count();
    values.insert("transfer".to_owned(), id.to_string().into());
    // The recipient may not know the sender, whose name may be a message.
    let name = Some(ticket_documents::full_name(sender)).filter(|name| accounts::is_usual_name(name));
    values.insert("sender".to_owned(), name.unwrap_or_else(|| sender.greeting().to_owned()).into());
    values.insert("tickets".to_owned(), count.into());
    values.insert("accepted".to_owned(), count.into());
    values.insert("events".to_owned(), events.into_iter().map(|(_, event)| event).collect());
    true
}

/// Adds the values of an offer of places. Returns whether the mail is still needed: the offer may be used or over already.
fn add_offer(rows: &Rows, id: Id, now: Timestamp, values: &mut Map<String, Value>) -> bool {
    let Some(offer) = rows.offers.get(&id).filter(|offer| offer.expires > now) else { return false };
    values.insert("quantity".to_owned(), offer.quantity.into());
    values.insert("section".to_owned(), offer.section.as_str().into());
    values.insert("expires".to_owned(), offer.expires.0.into());
    let event = event(offer.event_id, &offer.title, offer.starts.0, &offer.venue, &offer.address);
    values.insert("events".to_owned(), json!([event]));
    true
}

fn event_of_item(item: &MailItemRow) -> Value {
    event(item.event_id, &item.title, item.starts.0, &item.venue, &item.address)
}

fn event(id: Id, title: &str, starts: i64, venue: &str, address: &str) -> Value {
    json!({ "number": id.to_string(), "title": title, "starts": starts, "venue": venue, "address": address })
}
