//! Mails that report a change of credentials to an account's address.

use super::model::AccountRow;
use crate::kernel::outbox::Mail;
use crate::state::App;

/// The credentials that were changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Credential {
    /// The password.
    Password,
    /// The e-mail address.
    Email,
    /// The password and the e-mail address.
    Both,
}

/// Returns the mail about a change, to the address that the account had before. It doesn't contain a new address.
pub fn of_change<'a>(app: &App, before: &'a AccountRow, changed: Credential, by: &str) -> Mail<'a> {
    let (subject, what) = match changed {
        Credential::Password => ("Your password was changed", "The password"),
        Credential::Email => ("Your e-mail address was changed", "The e-mail address"),
        Credential::Both => ("Your e-mail address and password were changed", "The e-mail address and the password"),
    };
    let were = if changed == Credential::Both { "were" } else { "was" };
    let body = format!(
        "Hello {username},\n\n{what} of your account {number} at {base_url} {were} changed{by} on {now} UTC.\nOther sessions of the \
         account were ended.\n\nIf you made this change, you need do nothing. If you did not, someone else has access to your \
         account: contact the platform's staff, and name the account's number.\n",
        username = before.username,
        number = before.number,
        base_url = app.settings.public_url,
        now = app.clock.now().to_minutes().replace('T', " "),
    );
    Mail { recipient: &before.email, subject, body }
}
