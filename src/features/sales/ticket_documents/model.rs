//! Tickets in a document.

use crate::features::sales::tickets::TicketRow;
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::Id;

/// A ticket with everything that its page shows.
#[derive(Debug, Clone, sqlx_macros::FromRow)]
pub struct DocumentTicketRow {
    /// The order or the transfer by which it was found.
    pub source_id: Id,
    /// The ticket.
    #[sqlx(flatten)]
    pub ticket: TicketRow,
    /// The title of the event.
    pub title: String,
    /// The start of the event.
    pub starts: Timestamp,
    /// The name of the venue.
    pub venue: String,
    /// The address of the venue.
    pub address: String,
    /// The name of the section.
    pub section: String,
}

/// A page of a document.
#[derive(Debug, Clone)]
pub struct DocumentTicket {
    /// The ticket.
    pub row: DocumentTicketRow,
    /// The name of its owner.
    pub owner: String,
    /// The text of its QR code.
    pub code: String,
}
