//! Mails that report a change of credentials to an account's address.

use serde_json::json;

use super::model::AccountRow;
use crate::kernel::outbox::{Mail, MailTemplate};
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

/// The author of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangedBy {
    /// The account itself.
    Owner,
    /// A platform administrator.
    Staff,
    /// The owner of a mailed code.
    Code,
}

/// Returns the mail about a change, to the address that the account had before. It doesn't contain a new address.
pub fn of_change<'a>(app: &App, before: &'a AccountRow, changed: Credential, by: ChangedBy) -> Mail<'a> {
    let changed = match changed {
        Credential::Password => "password",
        Credential::Email => "email",
        Credential::Both => "both",
    };
    let by = match by {
        ChangedBy::Owner => "owner",
        ChangedBy::Staff => "staff",
        ChangedBy::Code => "code",
    };
    let values =
        json!({ "name": before.greeting(), "number": before.number, "changed": changed, "by": by, "time": app.clock.now().0 });
    Mail { recipient: before.mail_address(), template: MailTemplate::CredentialsChanged, values }
}
