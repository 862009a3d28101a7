//! Command-line options for mail.

use std::fs::File;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use anyhow::{anyhow, bail, ensure};
use chrono_tz::Tz;
use clap::Args;
use lettre::message::Mailbox;

use super::secret::given_twice;
use super::{SecretFile, Setting, setting, whole_number};
use crate::kernel::settings::{MailSettings, MailTransportSettings, Secret, SmtpSettings, SmtpTls};
use crate::kernel::types::language::Language;

/// Options for sending mail.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Mail")]
pub(super) struct MailOptions {
    /// Sender of all mail, such as `Box office <tickets@example.com>`
    #[arg(long, env = "BOXOFFICE_MAIL_FROM", default_value = "boxoffice@localhost", value_name = "ADDRESS", value_parser = setting(mail_address))]
    mail_from: Setting<Mailbox>,
    /// File with the key that encrypts mail until it is sent, created if it doesn't exist [default: DATA_DIR/mail.key]
    #[arg(long, env = "BOXOFFICE_MAIL_KEY_FILE", value_name = "FILE")]
    mail_key_file: Option<PathBuf>,
    /// Folder with templates that replace those of the program, such as fr/refund.html; see `boxoffice mail-templates`
    #[arg(long, env = "BOXOFFICE_MAIL_TEMPLATES", value_name = "FOLDER", value_parser = setting(existing_folder))]
    mail_templates: Option<Setting<PathBuf>>,
    /// Language of mail to accounts without a language of their own: en or fr
    #[arg(long, env = "BOXOFFICE_MAIL_LANGUAGE", default_value = "en", value_name = "LANGUAGE", value_parser = setting(str::parse::<Language>))]
    mail_language: Setting<Language>,
    /// Time zone of the times in mail and on tickets, such as Africa/Accra
    #[arg(long, env = "BOXOFFICE_TIME_ZONE", default_value = "UTC", value_name = "ZONE", value_parser = setting(time_zone))]
    time_zone: Setting<Tz>,
    /// Mail server [default: none, mails are written to files in DATA_DIR/mail]
    #[arg(long, env = "BOXOFFICE_SMTP", value_name = "HOST[:PORT]", value_parser = setting(str::parse::<SmtpServer>))]
    smtp: Option<Setting<SmtpServer>>,
    /// Encryption of the connection to the mail server: none, starttls or tls [default: tls at port 465, none to this machine, else starttls]
    #[arg(long, env = "BOXOFFICE_SMTP_TLS", value_name = "MODE", value_parser = setting(smtp_tls))]
    smtp_tls: Option<Setting<SmtpTls>>,
    /// Username for the mail server
    #[arg(long, env = "BOXOFFICE_SMTP_USER", value_name = "NAME")]
    smtp_user: Option<String>,
    /// Password for the mail server; prefer the file or the variable, because all users of a machine may read its command lines
    #[arg(long, env = "BOXOFFICE_SMTP_PASSWORD", hide_env_values = true, value_name = "PASSWORD")]
    smtp_password: Option<Secret>,
    /// File with the password for the mail server, such as a credential of systemd
    #[arg(long, env = "BOXOFFICE_SMTP_PASSWORD_FILE", value_name = "FILE", value_parser = setting(SecretFile::read))]
    pub(super) smtp_password_file: Option<Setting<SecretFile>>,
    /// PEM file of additional certificate authorities for the mail server [default: the system's certificates]
    #[arg(long, env = "BOXOFFICE_SMTP_CA", value_name = "FILE")]
    smtp_ca: Option<PathBuf>,
    /// Time limit for sending one mail, from 1 to 600 seconds
    #[arg(long, env = "BOXOFFICE_SMTP_TIMEOUT_SECONDS", default_value = "30", value_name = "SECONDS", value_parser = setting(whole_number::<1, 600>))]
    smtp_timeout_seconds: Setting<u32>,
}

/// A mail server in an option, such as `mail.example.com`, `mail.example.com:465` or `[::1]:25`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SmtpServer {
    /// The host name or address.
    pub host: String,
    /// The port, if it is given.
    pub port: Option<u16>,
}

impl FromStr for SmtpServer {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        const EXPECTED: &str = "give HOST or HOST:PORT, such as mail.example.com or mail.example.com:587";
        ensure!(!text.contains("://"), "`{text}` has a scheme; {EXPECTED}");
        let (host, port) = match text.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => {
                let port = port.parse().ok().filter(|port| *port > 0);
                (host, Some(port.ok_or_else(|| anyhow!("`{text}` has no valid port; {EXPECTED}"))?))
            }
            _ => (text, None),
        };
        let bracketed = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let is_address = bracketed.is_some_and(|host| host.parse::<IpAddr>().is_ok_and(|address| address.is_ipv6()));
        let is_name =
            |host: &str| !host.is_empty() && host.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_'));
        ensure!(
            !host.contains(':') || is_address,
            "`{text}` is not a mail server; an IPv6 address has brackets, as in [2001:db8::1]:587"
        );
        ensure!(is_address || is_name(host), "`{text}` is not a mail server; {EXPECTED}");
        Ok(Self { host: bracketed.unwrap_or(host).to_owned(), port })
    }
}

impl SmtpServer {
    /// Returns the default encryption. Mails contain password reset codes, so only connections to this machine are not encrypted.
    pub fn tls(&self) -> SmtpTls {
        let is_local = self.host == "localhost" || self.host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
        match self.port {
            Some(465) => SmtpTls::Tls,
            _ if is_local => SmtpTls::None,
            _ => SmtpTls::Starttls,
        }
    }
}

impl MailOptions {
    /// Returns the settings with the values of these options.
    pub(super) fn settings(&self, data_dir: &Path) -> anyhow::Result<MailSettings> {
        let from = self.mail_from.get()?.clone();
        let key_file = self.mail_key_file.clone().unwrap_or_else(|| data_dir.join("mail.key"));
        let templates = self.mail_templates.as_ref().map(|folder| folder.get().cloned()).transpose()?;
        let (language, time_zone) = (*self.mail_language.get()?, *self.time_zone.get()?);
        let Some(server) = &self.smtp else {
            let transport = MailTransportSettings::Folder(data_dir.join("mail"));
            return Ok(MailSettings { from, key_file, templates, language, time_zone, transport });
        };
        let server = server.get()?;
        let tls = self.smtp_tls.as_ref().map(|tls| tls.get().copied()).transpose()?.unwrap_or_else(|| server.tls());
        let default_port = match tls {
            SmtpTls::None => 25,
            SmtpTls::Starttls => 587,
            SmtpTls::Tls => 465,
        };
        let transport = MailTransportSettings::Smtp(SmtpSettings {
            host: server.host.clone(),
            port: server.port.unwrap_or(default_port),
            tls,
            credentials: self.smtp_user.clone().zip(self.password()?),
            certificates: self.smtp_ca.clone(),
            timeout: Duration::from_secs(u64::from(*self.smtp_timeout_seconds.get()?)),
        });
        Ok(MailSettings { from, key_file, templates, language, time_zone, transport })
    }

    /// Returns the password for the mail server, which an option or a file has.
    fn password(&self) -> anyhow::Result<Option<Secret>> {
        let file = self.smtp_password_file.as_ref().map(Setting::get).transpose()?;
        Ok(self.smtp_password.clone().or_else(|| file.map(|file| file.secret.clone())))
    }

    /// Returns what is wrong with each option.
    pub(super) fn problems(&self) -> Vec<Option<String>> {
        const USER: &str = "--smtp-user (BOXOFFICE_SMTP_USER)";
        const PASSWORD: &str = "--smtp-password (BOXOFFICE_SMTP_PASSWORD)";
        const PASSWORD_FILE: &str = "--smtp-password-file (BOXOFFICE_SMTP_PASSWORD_FILE)";
        let of_server = [
            (self.smtp_tls.is_some(), "--smtp-tls (BOXOFFICE_SMTP_TLS)"),
            (self.smtp_user.is_some(), USER),
            (self.smtp_password.is_some(), PASSWORD),
            (self.smtp_password_file.is_some(), PASSWORD_FILE),
            (self.smtp_ca.is_some(), "--smtp-ca (BOXOFFICE_SMTP_CA)"),
        ];
        let unused = of_server.into_iter().map(|(is_set, name)| {
            let is_unused = is_set && self.smtp.is_none();
            is_unused.then(|| format!("{name}: it has no effect without --smtp, the mail server, such as mail.example.com"))
        });
        let (has_user, has_password) = (self.smtp_user.is_some(), self.smtp_password.is_some());
        let has_file = self.smtp_password_file.is_some();
        let incomplete = match (has_user, has_password, has_file) {
            (true, false, false) => Some(format!("{USER}: it needs {PASSWORD} or {PASSWORD_FILE}")),
            (false, true, _) => Some(format!("{PASSWORD}: it needs {USER}")),
            (false, false, true) => Some(format!("{PASSWORD_FILE}: it needs {USER}")),
            _ => None,
        };
        let unreadable = self.smtp_ca.as_ref().and_then(|file| {
            let error = File::open(file).err()?;
            Some(format!("--smtp-ca (BOXOFFICE_SMTP_CA): cannot read {}: {error}", file.display()))
        });
        let parsed = [
            self.mail_from.problem(),
            self.mail_templates.as_ref().and_then(Setting::problem),
            self.mail_language.problem(),
            self.time_zone.problem(),
            self.smtp.as_ref().and_then(Setting::problem),
            self.smtp_tls.as_ref().and_then(Setting::problem),
            self.smtp_timeout_seconds.problem(),
            self.smtp_password_file.as_ref().and_then(Setting::problem),
            given_twice(has_password, PASSWORD, has_file, PASSWORD_FILE),
            incomplete,
            unreadable,
        ];
        parsed.into_iter().chain(unused).collect()
    }
}

/// Parses the encryption of the connection to a mail server.
fn smtp_tls(text: &str) -> anyhow::Result<SmtpTls> {
    match text.to_ascii_lowercase().as_str() {
        "none" => Ok(SmtpTls::None),
        "starttls" => Ok(SmtpTls::Starttls),
        "tls" => Ok(SmtpTls::Tls),
        _ => bail!("`{text}` is none of none, starttls and tls"),
    }
}

/// Parses the path of a folder that exists.
fn existing_folder(path: &str) -> anyhow::Result<PathBuf> {
    let path = PathBuf::from(path);
    ensure!(path.is_dir(), "`{}` is not a folder", path.display());
    Ok(path)
}

/// Parses the name of a time zone.
fn time_zone(name: &str) -> anyhow::Result<Tz> {
    name.parse().map_err(|_| anyhow!("`{name}` is not a time zone of the IANA database, such as Africa/Accra or UTC"))
}

/// Parses the sender of mail.
fn mail_address(text: &str) -> anyhow::Result<Mailbox> {
    text.parse()
        .map_err(|_| anyhow!("`{text}` is not a mail address, such as tickets@example.com or Box office <tickets@example.com>"))
}
