//! The rows of a table that a statement reads.

use std::fmt::{self, Display, Formatter};

/// The keys whose rows have a fixed maximum, or that the statements which use them must read completely.
const BOUNDED_KEYS: [(&str, &str); 18] = [
    // At most 50 tickets, in as many sections.
    ("order_items", "order_id"),
    ("order_item_modifiers", "order_id"),
    ("reservations", "order_id"),
    ("tickets", "order_id"),
    ("transfer_tickets", "transfer_id"),
    ("payments", "order_id"),
    ("refunds", "payment_id"),
    ("refund_shares", "refund_id"),
    ("revocations", "order_id"),
    ("transaction_shares", "transaction_id"),
    ("transactions", "order_id"),
    // At most 20 of a ticket.
    ("admission_conflicts", "ticket_id"),
    ("admission_conflicts", "admission_id"),
    // At most 20 of an event.
    ("event_tags", "event_id"),
    // Bounds of what an account can store.
    ("sections", "event_id"),
    ("modifiers", "section_id"),
    ("token_sections", "token_id"),
    ("subcategories", "category_id"),
];

/// A read of a table by an index, or of the whole table.
#[derive(Debug, Clone)]
pub struct Access {
    pub table: String,
    /// The columns of the index that must equal a value, in the order of the index. Empty if the whole table is read.
    pub columns: Vec<String>,
    /// True if at most one row has these values, or if no other index could narrow the read further.
    pub is_narrowed: bool,
    /// True if the read ends after the rows of a page.
    pub is_page: bool,
}

impl Access {
    /// Returns whether a key or a limit bounds the number of rows.
    pub fn is_bounded(&self) -> bool {
        let has_bounded_key =
            |(table, column): &(&str, &str)| self.table == *table && self.columns.iter().any(|name| name == column);
        self.is_narrowed || self.is_page || BOUNDED_KEYS.iter().any(has_bounded_key)
    }
}

impl Display for Access {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match &*self.columns {
            [] => write!(f, "all of {}", self.table),
            columns => write!(f, "{} by {}", self.table, columns.join(", ")),
        }
    }
}
