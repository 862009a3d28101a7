//! Identity: accounts, log-in sessions, API keys for programs, and mailed verification codes.

pub mod account_lookups;
pub mod accounts;
pub mod integrations;
pub mod sessions;
pub mod verification_codes;
