pub mod audit_log;
pub mod reports;
pub mod server_info;
