//! Sales: orders, their payments, refunds and returns, the ledger, tickets and their PDF, transfers of tickets, mails about all of
//! them, and the deletion of accounts.

pub mod account_deletion;
pub mod event_returns;
pub mod ledger;
pub mod mail;
pub(crate) mod mail_values;
pub mod orders;
pub mod payments;
pub mod ticket_documents;
pub mod tickets;
pub mod transfers;
