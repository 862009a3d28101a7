//! Sales: orders, their payments and refunds, the ledger, tickets, transfers of tickets, and the deletion of accounts.

pub mod account_deletion;
pub mod ledger;
pub mod orders;
pub mod payments;
pub mod tickets;
pub mod transfers;
