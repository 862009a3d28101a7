//! Read-only information: the audit log, reports, and server information.

pub mod account_export;
pub mod audit_log;
pub mod reports;
pub mod server_info;
