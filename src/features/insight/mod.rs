//! Read-only information: the audit log, exports, histories, reports, and server information.

pub mod account_export;
pub mod audit_log;
pub mod exports;
pub mod histories;
pub mod reports;
pub mod server_info;
