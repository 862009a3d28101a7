//! Tickets as a PDF: one page for each ticket, with its QR code.

mod endpoints;
mod font;
mod model;
mod page;
mod pdf;
mod service;
mod store;

pub use endpoints::register;
pub use model::{DocumentTicket, DocumentTicketRow};
pub use pdf::render;
pub use service::{full_name, style, ticket};
pub use store::{of_orders, of_transfers};
