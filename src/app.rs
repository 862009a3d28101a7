//! Wires configuration, database, jobs and server together. A test starts it on port 0.

use std::sync::Arc;

use slog::Logger;

use crate::auth::Passwords;
use crate::base::clock::Clock;
use crate::config::Settings;
use crate::db::Db;
use crate::http::Api;

/// What every operation works with.
pub struct App {
    /// The database.
    pub db: Db,
    /// The time, and new identifiers.
    pub clock: Clock,
    /// The platform's settings.
    pub settings: Settings,
    /// Hashes and checks passwords.
    pub passwords: Passwords,
    /// The log.
    pub log: Logger,
}

/// Every endpoint.
pub fn api() -> Api {
    let mut api = Api::new();
    crate::sessions::register(&mut api);
    crate::accounts::register(&mut api);
    crate::integrations::register(&mut api);
    crate::defaults::register(&mut api);
    crate::hosts::register(&mut api);
    crate::regions::register(&mut api);
    crate::venues::register(&mut api);
    crate::categories::register(&mut api);
    crate::events::register(&mut api);
    crate::sections::register(&mut api);
    crate::review::register(&mut api);
    crate::orders::register(&mut api);
    crate::payments::register(&mut api);
    crate::tickets::register(&mut api);
    crate::tokens::register(&mut api);
    crate::admissions::register(&mut api);
    crate::media::register(&mut api);
    api
}
