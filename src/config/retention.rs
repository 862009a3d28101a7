//! Command-line options of the retention: the time after which stored rows and files are deleted.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::{Setting, folder, setting, whole_number};
use crate::kernel::settings::RetentionSettings;

/// The largest number of days: a hundred years.
const MAX_DAYS: u32 = 36_500;

/// Options of the retention.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Retention")]
pub(super) struct RetentionOptions {
    /// Days for which entries of the audit log are kept; 0: for ever
    #[arg(long, env = "BOXOFFICE_KEEP_AUDIT_DAYS", default_value = "0", value_name = "DAYS", value_parser = setting(whole_number::<0, MAX_DAYS>))]
    keep_audit_days: Setting<u32>,
    /// Folder for entries of the audit log, to which they are written as JSON lines before they are deleted [default: none, they
    /// are deleted without a copy]
    #[arg(long, env = "BOXOFFICE_AUDIT_ARCHIVE", value_name = "FOLDER", value_parser = setting(folder))]
    audit_archive: Option<Setting<PathBuf>>,
    /// Days for which sessions, and the keys of gates, are kept after they have expired
    #[arg(long, env = "BOXOFFICE_KEEP_SESSIONS_DAYS", default_value = "30", value_name = "DAYS", value_parser = setting(whole_number::<0, MAX_DAYS>))]
    keep_sessions_days: Setting<u32>,
    /// Days for which verification and reset codes are kept after they have expired
    #[arg(long, env = "BOXOFFICE_KEEP_CODES_DAYS", default_value = "1", value_name = "DAYS", value_parser = setting(whole_number::<1, MAX_DAYS>))]
    keep_codes_days: Setting<u32>,
    /// Days for which mails that were given up, and mails that were written to files, are kept
    #[arg(long, env = "BOXOFFICE_KEEP_MAIL_DAYS", default_value = "30", value_name = "DAYS", value_parser = setting(whole_number::<1, MAX_DAYS>))]
    keep_mail_days: Setting<u32>,
    /// Days for which cancelled and timed-out orders without any payment are kept; 0: for ever
    #[arg(long, env = "BOXOFFICE_KEEP_UNPAID_ORDERS_DAYS", default_value = "365", value_name = "DAYS", value_parser = setting(whole_number::<0, MAX_DAYS>))]
    keep_unpaid_orders_days: Setting<u32>,
}

impl RetentionOptions {
    /// Returns the settings with the values of these options.
    ///
    /// # Errors
    /// Returns an error if an option is invalid.
    pub(super) fn settings(&self) -> anyhow::Result<RetentionSettings> {
        let days = |days: &Setting<u32>| anyhow::Ok(Duration::from_secs(u64::from(*days.get()?) * 24 * 60 * 60));
        let limited = |limit: Duration| (!limit.is_zero()).then_some(limit);
        Ok(RetentionSettings {
            audit: limited(days(&self.keep_audit_days)?),
            audit_archive: self.audit_archive.as_ref().map(Setting::get).transpose()?.cloned(),
            sessions: days(&self.keep_sessions_days)?,
            codes: days(&self.keep_codes_days)?,
            mail: days(&self.keep_mail_days)?,
            unpaid_orders: limited(days(&self.keep_unpaid_orders_days)?),
        })
    }

    /// Returns what is wrong with each option.
    pub(super) fn problems(&self) -> Vec<Option<String>> {
        const ARCHIVE: &str = "--audit-archive (BOXOFFICE_AUDIT_ARCHIVE)";
        let numbers = [
            &self.keep_audit_days,
            &self.keep_sessions_days,
            &self.keep_codes_days,
            &self.keep_mail_days,
            &self.keep_unpaid_orders_days,
        ];
        let is_useless = self.audit_archive.is_some() && self.keep_audit_days.get().is_ok_and(|days| *days == 0);
        let useless = is_useless.then(|| format!("{ARCHIVE}: it has no effect without --keep-audit-days, such as 730"));
        let archive = self.audit_archive.as_ref().and_then(Setting::problem);
        numbers.into_iter().map(Setting::problem).chain([archive, useless]).collect()
    }
}
