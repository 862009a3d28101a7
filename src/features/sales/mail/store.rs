//! SQL of the contents of mails.

use boxoffice_http::error::Result;

use crate::features::catalog::events::EventStatus;
use crate::features::sales::transfers::TransferStatus;
use crate::kernel::db::Reader;
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::Id;
use crate::kernel::types::money::Money;

/// An order in a mail.
#[derive(Debug, sqlx_macros::FromRow)]
pub struct MailOrderRow {
    pub id: Id,
    pub subtotal: Money,
    pub fees: Money,
    /// True if something was or may have been paid for it, even if it was refunded.
    pub has_payment: bool,
}

/// An item of an order in a mail.
#[derive(Debug, sqlx_macros::FromRow)]
pub struct MailItemRow {
    pub order_id: Id,
    pub quantity: i64,
    pub unit_price: Money,
    pub section_id: Id,
    pub section: String,
    pub event_id: Id,
    pub title: String,
    pub starts: Timestamp,
    pub venue: String,
    pub address: String,
}

/// A transfer in a mail.
#[derive(Debug, sqlx_macros::FromRow)]
pub struct MailTransferRow {
    pub id: Id,
    pub status: TransferStatus,
    pub sender_id: Id,
}

pub async fn orders(reader: &mut Reader, ids: &[Id]) -> Result<Vec<MailOrderRow>> {
    let orders = reader.select(
        "o.id, o.subtotal, o.fees, exists (select 1 from payments p where p.order_id = o.id
            and p.status <> 'Declined') as has_payment from orders o where true",
    );
    orders.and_in("o.id", ids.to_vec()).all().await
}

/// Returns the items of these orders in their order, without those of events or sections that were removed.
pub async fn items(reader: &mut Reader, orders: &[Id]) -> Result<Vec<MailItemRow>> {
    let items = reader.select(
        "i.order_id, i.quantity, i.unit_price, i.section_id, s.name as section, i.event_id, e.title, e.starts, v.name as venue, v.address
         from order_items i join sections s on s.id = i.section_id join events e on e.id = i.event_id
         join venues v on v.id = e.venue_id where true",
    );
    items.and_in("i.order_id", orders.to_vec()).push(" order by i.order_id, i.position").all().await
}

pub async fn transfers(reader: &mut Reader, ids: &[Id]) -> Result<Vec<MailTransferRow>> {
    reader.select("id, status, sender_id from transfers where true").and_in("id", ids.to_vec()).all().await
}

/// An open offer of places in a mail, to an account that has waited for them.
#[derive(Debug, sqlx_macros::FromRow)]
pub struct MailOfferRow {
    /// The entry of the waiting list.
    pub id: Id,
    pub quantity: i64,
    pub expires: Timestamp,
    pub section: String,
    pub event_id: Id,
    pub title: String,
    pub starts: Timestamp,
    pub venue: String,
    pub address: String,
}

/// Returns those of these offers that are open.
pub async fn offers(reader: &mut Reader, ids: &[Id]) -> Result<Vec<MailOfferRow>> {
    let offers = reader.select(
        "w.id, w.quantity, w.expires, s.name as section, s.event_id, e.title, e.starts, v.name as venue, v.address
         from waiting_entries w join sections s on s.id = w.section_id join events e on e.id = s.event_id
         join venues v on v.id = e.venue_id where w.status = 'Offered'",
    );
    offers.and_in("w.id", ids.to_vec()).all().await
}

/// An event in a notice.
#[derive(Debug, Clone, sqlx_macros::FromRow)]
pub struct NoticeEventRow {
    pub id: Id,
    pub status: EventStatus,
    pub title: String,
    pub starts: Timestamp,
    pub ends: Timestamp,
    pub admission_from: Option<Timestamp>,
    pub venue: String,
    pub address: String,
}

pub async fn notice_event(reader: &mut Reader, id: Id) -> Result<Option<NoticeEventRow>> {
    let event = "select e.id, e.status, e.title, e.starts, e.ends, e.admission_from, v.name as venue, v.address
         from events e join venues v on v.id = e.venue_id where e.id = $1";
    reader.query(event).bind(id).optional().await
}

/// Returns the next holders of unused tickets of an event, each once, with the ticket by which it was found.
pub async fn holders(reader: &mut Reader, event: Id, after_ticket: Id, most: i64) -> Result<Vec<(Id, Id)>> {
    reader
        .query(
            "select t.id, t.owner_id from tickets t where t.event_id = $1 and t.id > $2 and t.status in ('Issued', 'Pending')
         and not exists (select 1 from tickets o where o.owner_id = t.owner_id and o.id < t.id and o.event_id = t.event_id
                         and o.status in ('Issued', 'Pending'))
         order by t.id limit $3",
        )
        .bind(event)
        .bind(after_ticket)
        .bind(most)
        .all()
        .await
}
