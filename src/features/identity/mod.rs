pub mod account_lookups;
pub mod accounts;
pub mod integrations;
pub mod sessions;
pub mod verification_codes;
