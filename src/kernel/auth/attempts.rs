//! Limits of attempts that the rate limits of requests don't cover, because they depend on the account or on the result.

use std::time::Duration;

use boxoffice_http::rate_limit::{AttemptLimit, PER_ADDRESS_FACTOR};

use crate::kernel::http::LimitSettings;

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(60 * 60);
/// Mails about offered tickets that an account gets in an hour.
const TRANSFER_MAILS: u32 = 20;

/// The limits of a server. Each server counts separately.
#[derive(Debug)]
pub struct AttemptLimits {
    /// Failed log-ins, by account.
    pub logins: AttemptLimit,
    /// Usernames and e-mail addresses that another account has, by the account that tried them.
    pub taken_names: AttemptLimit,
    /// Usernames and e-mail addresses that another account has, by client address.
    pub taken_names_of_address: AttemptLimit,
    /// Changes of password or e-mail address, by account.
    pub credential_changes: AttemptLimit,
    /// Mailed codes, by purpose and e-mail address.
    pub codes: AttemptLimit,
    /// Mails about offered tickets, by recipient.
    pub transfer_mails: AttemptLimit,
}

impl AttemptLimits {
    /// Creates the limits with these settings.
    pub fn new(settings: &LimitSettings) -> Self {
        Self {
            logins: AttemptLimit::new("logins", settings.failed_logins, HOUR),
            taken_names: AttemptLimit::new("names", settings.guesses, MINUTE),
            taken_names_of_address: AttemptLimit::new("names", settings.guesses.saturating_mul(PER_ADDRESS_FACTOR), MINUTE),
            credential_changes: AttemptLimit::new("changes", settings.credential_changes, HOUR),
            codes: AttemptLimit::new("codes", settings.codes, HOUR),
            transfer_mails: AttemptLimit::new("mails", TRANSFER_MAILS, HOUR),
        }
    }
}
