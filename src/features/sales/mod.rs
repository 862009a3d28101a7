pub mod account_deletion;
pub mod ledger;
pub mod orders;
pub mod payments;
pub mod tickets;
pub mod transfers;
