//! Limits of log-ins, mails and more, which the rate limits of requests don't cover, because they depend on the account or on the
//! result.

use std::net::IpAddr;
use std::time::Duration;

use boxoffice_http::client_ip::rate_limit_key;
use boxoffice_http::error::Result;
use boxoffice_http::rate_limit::{CountedUse, PER_ADDRESS_FACTOR, WindowLimit};

use crate::kernel::auth::Caller;
use crate::kernel::settings::LimitSettings;

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(60 * 60);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// Mails about offered tickets that an account gets in an hour.
const TRANSFER_MAILS: u32 = 20;
/// Mails about orders that their customer has cancelled, for an account in an hour. The address of an account may belong to another person.
const CANCELLATION_MAILS: u32 = 10;
/// Mails with the tickets of free orders to an e-mail address in an hour: of complimentary orders, and of all others unless the account
/// has verified the address.
const FREE_ORDER_MAILS: u32 = 20;
/// Mails about returned tickets of free orders that a customer gets in an hour. Their text is the host's, and they cost nothing.
const FREE_RETURN_MAILS: u32 = 20;
/// Accounts that are created in a day for the e-mail addresses to which an account gives tickets.
const GUESTS: u32 = 1000;
/// Declined payments that an account may send in an hour with the keys of its sessions.
const DECLINED_PAYMENTS: u32 = 30;

/// The limits of a server. Each server counts separately.
#[derive(Debug)]
pub struct WindowLimits {
    /// Failed log-ins, by account.
    pub logins: WindowLimit,
    /// Requests that reveal if another account has a username or an e-mail address, by the account that sent them.
    names: WindowLimit,
    /// The same requests by client address.
    names_of_address: WindowLimit,
    /// Changes of password or e-mail address, by account.
    pub credential_changes: WindowLimit,
    /// Mailed codes, by purpose, e-mail address, and whether someone has signed in to the account from the client's address.
    pub codes: WindowLimit,
    /// Codes that no admission token has, by client address.
    pub token_codes: WindowLimit,
    /// Payments that the gateway declines, by the account that sends them.
    pub payments: WindowLimit,
    /// Accounts that complimentary orders create, by the account that sends them, and their rejections that reveal an account.
    pub guests: WindowLimit,
    /// Mails about offered tickets, by recipient.
    pub transfer_mails: WindowLimit,
    /// Mails about orders that their customer has cancelled, by customer.
    pub cancellation_mails: WindowLimit,
    /// Mails with the tickets of free orders, by e-mail address.
    pub free_order_mails: WindowLimit,
    /// Mails about returned tickets of free orders, by customer.
    pub free_return_mails: WindowLimit,
}

impl WindowLimits {
    /// Creates the limits with these settings.
    pub fn new(settings: &LimitSettings) -> Self {
        let share = |limit: u32| limit.div_ceil(settings.servers.max(1));
        Self {
            logins: WindowLimit::new("logins", settings.failed_logins, HOUR),
            names: WindowLimit::new("names", settings.guesses, MINUTE),
            names_of_address: WindowLimit::new("names", settings.guesses.saturating_mul(PER_ADDRESS_FACTOR), MINUTE),
            credential_changes: WindowLimit::new("changes", settings.credential_changes, HOUR),
            codes: WindowLimit::new("codes", settings.codes, HOUR),
            token_codes: WindowLimit::new("tokens", settings.guesses.saturating_mul(PER_ADDRESS_FACTOR), MINUTE),
            payments: WindowLimit::new("payments", share(DECLINED_PAYMENTS), HOUR),
            guests: WindowLimit::new("guests", share(GUESTS), DAY),
            transfer_mails: WindowLimit::new("mails", share(TRANSFER_MAILS), HOUR),
            cancellation_mails: WindowLimit::new("mails", share(CANCELLATION_MAILS), HOUR),
            free_order_mails: WindowLimit::new("mails", share(FREE_ORDER_MAILS), HOUR),
            free_return_mails: WindowLimit::new("mails", share(FREE_RETURN_MAILS), HOUR),
        }
    }

    /// Counts a request that reveals if another account has a username or an e-mail address. Platform administrators may list all
    /// accounts, so there is nothing that they could find out.
    ///
    /// # Errors
    /// [`Error::TooMany`](boxoffice_http::error::Error::TooMany) if the limit of the caller or of the client address is used up.
    pub fn count_name(&self, caller: &Caller, address: IpAddr) -> Result<Vec<CountedUse<'_>>> {
        if caller.is_administrator() {
            return Ok(Vec::new());
        }
        let of_address = self.names_of_address.count(rate_limit_key(address))?;
        let of_account = caller.account.map(|account| self.names.count(account)).transpose()?;
        Ok(of_account.into_iter().chain([of_address]).collect())
    }
}
