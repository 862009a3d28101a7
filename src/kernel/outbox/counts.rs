//! Limits of the mails that a recipient gets.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::hash::Hash;

use boxoffice_http::rate_limit::WindowLimit;
use parking_lot::Mutex;
use slog::info;

use super::template::MailTemplate;
use crate::kernel::Kernel;
use crate::kernel::types::id::Id;

/// The mails of a request that were counted against a limit, by what the limit counts by, and whether they may be sent.
///
/// It is created outside the transaction that stores the mails: if the transaction runs again, they are not counted again.
#[derive(Debug, Default)]
pub struct MailCounts(Mutex<BTreeMap<String, bool>>);

impl MailCounts {
    /// Counts a mail to an account, unless it was counted, and returns whether it may be sent. Logs a mail that may not, because its
    /// recipient has received too many of its kind. `key` is what the limit counts by.
    pub fn count(
        &self,
        kernel: &Kernel,
        limit: &WindowLimit,
        key: impl Hash + Display,
        template: MailTemplate,
        recipient: Id,
    ) -> bool {
        *self.0.lock().entry(key.to_string()).or_insert_with(|| {
            let is_allowed = limit.count(key).is_ok();
            if !is_allowed {
                info!(kernel.log, "mail left out, its recipient has received too many";
                    "template" => template.name(), "account_id" => recipient.0);
            }
            is_allowed
        })
    }
}
