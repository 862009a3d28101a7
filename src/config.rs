//! Settings: command-line options, each with an environment variable.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use anyhow::Context;
use boxoffice_http::Listener;
use boxoffice_http::client_version::ClientVersion;
use clap::builder::FalseyValueParser;
use clap::{Args, ValueEnum};
use lettre::message::Mailbox;
use slog::Logger;

use crate::kernel::auth::PasswordSettings;
use crate::kernel::http::{LimitOptions, LimitSettings, TlsOptions};
use crate::kernel::private_files;
use crate::kernel::types::money::Money;

/// Location of the server's data: the options of every command that uses the database.
#[derive(Debug, Clone, Args)]
pub struct StorageOptions {
    /// Database: `sqlite:PATH` or `postgres://USER@HOST/NAME` [default: sqlite:DATA_DIR/boxoffice.db]
    #[arg(long, env = "DATABASE_URL", hide_env_values = true, value_name = "URL")]
    pub database: Option<String>,
    /// Folder for everything that is stored in files
    #[arg(long, env = "BOXOFFICE_DATA_DIR", default_value = "data", value_name = "FOLDER")]
    pub data_dir: PathBuf,
}

impl StorageOptions {
    /// Returns the database URL.
    pub fn database_url(&self) -> String {
        self.database.clone().unwrap_or_else(|| format!("sqlite:{}", self.data_dir.join("boxoffice.db").display()))
    }

    /// Withdraws the access of other users to the data folder and to the files of the database that exist already. Logs each
    /// change.
    pub fn restrict_access(&self, log: &Logger) {
        private_files::restrict(&self.data_dir, log);
        private_files::restrict_database(&self.database_url(), log);
    }
}

/// Location of the data and settings of the platform: the options of every command that runs the platform.
#[derive(Debug, Clone, Args)]
pub struct PlatformOptions {
    #[command(flatten)]
    storage: StorageOptions,
    #[command(flatten)]
    settings: SettingsOptions,
    /// Address to listen on
    #[arg(long, env = "BOXOFFICE_LISTEN", default_value = "127.0.0.1:8080", value_name = "ADDRESS")]
    listen: SocketAddr,
    #[command(flatten)]
    tls: TlsOptions,
}

/// Options for the platform's settings.
#[derive(Debug, Clone, Args)]
struct SettingsOptions {
    /// Start of all absolute URIs: the address that clients use [default: http://LISTEN, or https://LISTEN with TLS]
    #[arg(long, env = "BOXOFFICE_PUBLIC_URL", value_name = "URL")]
    public_url: Option<String>,
    /// Image store: a folder, or s3://BUCKET/PREFIX with the AWS_* variables [default: DATA_DIR/media]
    #[arg(long, env = "BOXOFFICE_MEDIA", value_name = "PLACE")]
    media: Option<String>,
    /// Currency of all amounts, as an ISO 4217 code
    #[arg(long, env = "BOXOFFICE_CURRENCY", default_value = "GHS", value_name = "CODE", value_parser = currency)]
    currency: String,
    /// Minutes for which an open order reserves its places
    #[arg(long, env = "BOXOFFICE_RESERVATION_MINUTES", default_value_t = 15, value_name = "MINUTES", value_parser = clap::value_parser!(u32).range(1..))]
    reservation_minutes: u32,
    /// Convenience fee of a ticket by its price: UP_TO:FEE, …, and the fee above the last step
    #[arg(long, env = "BOXOFFICE_FEE_STEPS", default_value = "50:0.99,100:1.99,150:2.99,200:3.99,4.99", value_name = "STEPS")]
    fee_steps: FeeSchedule,
    /// Lowest client version that is accepted
    #[arg(long, env = "BOXOFFICE_MINIMUM_CLIENT_VERSION", default_value = "3.0.0", value_name = "VERSION")]
    minimum_client_version: ClientVersion,
    /// Accept the most common passwords too
    #[arg(long, env = "BOXOFFICE_ALLOW_COMMON_PASSWORDS", value_parser = FalseyValueParser::new())]
    allow_common_passwords: bool,
    #[command(flatten)]
    limits: LimitOptions,
    #[command(flatten)]
    mail: MailOptions,
}

/// Options for sending mail.
#[derive(Debug, Clone, Args)]
struct MailOptions {
    /// Sender of all mail, such as `Box office <tickets@example.com>`
    #[arg(long, env = "BOXOFFICE_MAIL_FROM", default_value = "boxoffice@localhost", value_name = "ADDRESS")]
    mail_from: Mailbox,
    /// Key that encrypts mail until it is sent, created if it doesn't exist [default: DATA_DIR/mail.key]
    #[arg(long, env = "BOXOFFICE_MAIL_KEY_FILE", value_name = "FILE")]
    mail_key_file: Option<PathBuf>,
    /// Mail server; without one, mails are written to files in DATA_DIR/mail
    #[arg(long, env = "BOXOFFICE_SMTP", value_name = "HOST[:PORT]")]
    smtp: Option<SmtpServer>,
    /// Encryption of the connection to the mail server [default: tls at port 465, none to this machine, else starttls]
    #[arg(long, env = "BOXOFFICE_SMTP_TLS", value_name = "MODE")]
    smtp_tls: Option<SmtpTls>,
    /// Username for the mail server
    #[arg(long, env = "BOXOFFICE_SMTP_USER", requires = "smtp_password", value_name = "NAME")]
    smtp_user: Option<String>,
    /// Password for the mail server
    #[arg(long, env = "BOXOFFICE_SMTP_PASSWORD", hide_env_values = true, requires = "smtp_user", value_name = "PASSWORD")]
    smtp_password: Option<SmtpPassword>,
    /// PEM file of additional certificate authorities for the mail server
    #[arg(long, env = "BOXOFFICE_SMTP_CA", value_name = "FILE")]
    smtp_ca: Option<PathBuf>,
    /// Time limit for sending one mail, in seconds
    #[arg(long, env = "BOXOFFICE_SMTP_TIMEOUT_SECONDS", default_value_t = 30, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..=600))]
    smtp_timeout_seconds: u32,
}

/// The platform's settings.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The start of all absolute URIs, without a trailing slash.
    pub public_url: String,
    /// The image store: a folder or an S3 URL.
    pub media: String,
    /// The currency, as an ISO 4217 code.
    pub currency: String,
    /// The time for which an open order reserves its places.
    pub reservation: Duration,
    /// The convenience fees.
    pub fee_steps: FeeSchedule,
    /// The lowest client version that is accepted.
    pub minimum_client_version: ClientVersion,
    /// The settings of passwords.
    pub passwords: PasswordSettings,
    /// Rate limits and trusted proxies.
    pub limits: LimitSettings,
    /// The settings of mail.
    pub mail: MailSettings,
}

/// The settings of mail.
#[derive(Debug, Clone)]
pub struct MailSettings {
    /// The sender of all mail.
    pub from: Mailbox,
    /// The file with the key that encrypts mail until it is sent.
    pub key_file: PathBuf,
    /// The destination.
    pub route: MailTransportSettings,
}

/// The destination of mail.
#[derive(Debug, Clone)]
pub enum MailTransportSettings {
    /// Files in this folder.
    Folder(PathBuf),
    /// A mail server.
    Smtp(SmtpSettings),
}

/// The settings of a mail server.
#[derive(Debug, Clone)]
pub struct SmtpSettings {
    /// The host name or address.
    pub host: String,
    /// The port.
    pub port: u16,
    /// The encryption of the connection.
    pub tls: SmtpTls,
    /// The username and password.
    pub credentials: Option<(String, SmtpPassword)>,
    /// A PEM file of additional certificate authorities.
    pub certificates: Option<PathBuf>,
    /// The time limit for one mail.
    pub timeout: Duration,
}

/// The encryption of the connection to a mail server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SmtpTls {
    /// No encryption.
    None,
    /// STARTTLS, required: nothing is sent if the server doesn't support it.
    Starttls,
    /// TLS from the first byte.
    Tls,
}

/// A password in plain text. Its debug output hides the text, so that it is never logged.
#[derive(Clone)]
pub struct SmtpPassword(pub String);

impl fmt::Debug for SmtpPassword {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SmtpPassword")
    }
}

impl From<&str> for SmtpPassword {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

/// A mail server in an option, such as `mail.example.com`, `mail.example.com:465` or `[::1]:25`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct SmtpServer {
    host: String,
    port: Option<u16>,
}

impl FromStr for SmtpServer {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let (host, port) = match text.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (host, Some(port.parse().with_context(|| format!("no port: {port}"))?)),
            _ => (text, None),
        };
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        anyhow::ensure!(!host.is_empty() && !host.contains(['/', '@']), "a mail server is HOST or HOST:PORT: {text}");
        Ok(Self { host: host.to_owned(), port })
    }
}

impl SmtpServer {
    /// Returns the default encryption. Mails contain password reset codes, so only connections to this machine are not encrypted.
    fn tls(&self) -> SmtpTls {
        let is_local = self.host == "localhost" || self.host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
        match self.port {
            Some(465) => SmtpTls::Tls,
            _ if is_local => SmtpTls::None,
            _ => SmtpTls::Starttls,
        }
    }
}

impl MailOptions {
    fn settings(&self, data_dir: &Path) -> MailSettings {
        let key_file = self.mail_key_file.clone().unwrap_or_else(|| data_dir.join("mail.key"));
        let route = self.smtp.as_ref().map_or_else(
            || MailTransportSettings::Folder(data_dir.join("mail")),
            |server| {
                let tls = self.smtp_tls.unwrap_or_else(|| server.tls());
                let default_port = match tls {
                    SmtpTls::None => 25,
                    SmtpTls::Starttls => 587,
                    SmtpTls::Tls => 465,
                };
                MailTransportSettings::Smtp(SmtpSettings {
                    host: server.host.clone(),
                    port: server.port.unwrap_or(default_port),
                    tls,
                    credentials: self.smtp_user.clone().zip(self.smtp_password.clone()),
                    certificates: self.smtp_ca.clone(),
                    timeout: Duration::from_secs(u64::from(self.smtp_timeout_seconds)),
                })
            },
        );
        MailSettings { from: self.mail_from.clone(), key_file, route }
    }
}

impl PlatformOptions {
    /// Returns the database URL.
    pub fn database_url(&self) -> String {
        self.storage.database_url()
    }

    /// Returns the listener configuration of the server.
    ///
    /// # Errors
    /// Returns an error if the TLS files can't be used.
    pub fn listener(&self) -> anyhow::Result<Listener> {
        self.tls.listener(self.listen)
    }

    /// Withdraws the access of other users to all files of the platform that exist already. Logs each change.
    pub fn restrict_access(&self, log: &Logger) {
        let Settings { media, mail, .. } = self.settings();
        self.storage.restrict_access(log);
        private_files::restrict(&mail.key_file, log);
        if !media.starts_with("s3://") {
            private_files::restrict_all(Path::new(&media), log);
        }
        if let MailTransportSettings::Folder(folder) = &mail.route {
            private_files::restrict_all(folder, log);
        }
    }

    /// Returns the settings. Fills in the defaults that depend on other options.
    pub fn settings(&self) -> Settings {
        let options = &self.settings;
        let public_url = options.public_url.clone().unwrap_or_else(|| {
            let scheme = if self.tls.is_used() { "https" } else { "http" };
            format!("{scheme}://{}", self.listen)
        });
        let media = options.media.clone().unwrap_or_else(|| self.storage.data_dir.join("media").display().to_string());
        Settings {
            public_url: public_url.trim_end_matches('/').to_owned(),
            media,
            currency: options.currency.clone(),
            reservation: Duration::from_secs(u64::from(options.reservation_minutes) * 60),
            fee_steps: options.fee_steps.clone(),
            minimum_client_version: options.minimum_client_version,
            passwords: PasswordSettings { allow_common: options.allow_common_passwords, ..PasswordSettings::default() },
            limits: options.limits.settings(),
            mail: options.mail.settings(&self.storage.data_dir),
        }
    }
}

/// The convenience fees of tickets by unit price. A free ticket has no fee.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeeSchedule {
    /// Pairs of the highest unit price of a step and its fee, by ascending price.
    pub steps: Vec<(Money, Money)>,
    /// The fee above the last step.
    pub above: Money,
}

impl FeeSchedule {
    /// Returns the fee of one ticket with this price.
    pub fn fee(&self, unit_price: Money) -> Money {
        if unit_price == Money::ZERO {
            return Money::ZERO;
        }
        let step = self.steps.iter().find(|(up_to, _)| unit_price <= *up_to);
        step.map_or(self.above, |(_, fee)| *fee)
    }
}

impl FromStr for FeeSchedule {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let mut items: Vec<&str> = text.split(',').map(str::trim).collect();
        let above = parse_money(items.pop().context("fee steps are empty")?)?;
        let steps = items.into_iter().map(|item| {
            let (up_to, fee) = item.split_once(':').context("a fee step is PRICE:FEE")?;
            Ok((parse_money(up_to)?, parse_money(fee)?))
        });
        let steps = steps.collect::<anyhow::Result<Vec<_>>>()?;
        anyhow::ensure!(steps.is_sorted_by(|a, b| a.0 < b.0), "fee steps must rise");
        Ok(Self { steps, above })
    }
}

/// Parses a currency code of three capital letters.
fn currency(code: &str) -> anyhow::Result<String> {
    anyhow::ensure!(
        code.len() == 3 && code.bytes().all(|byte| byte.is_ascii_uppercase()),
        "a currency is three capitals, such as GHS"
    );
    Ok(code.to_owned())
}

/// Parses an amount such as `12`, `12.5` or `12.50`.
fn parse_money(text: &str) -> anyhow::Result<Money> {
    let text = text.trim();
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let is_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    anyhow::ensure!(is_digits(whole) && is_digits(fraction) && !whole.is_empty(), "no amount: {text}");
    anyhow::ensure!(fraction.len() <= 2, "an amount has at most two decimals: {text}");
    let minor = format!("{whole}{fraction:0<2}").parse().with_context(|| format!("too large an amount: {text}"))?;
    Ok(Money(minor))
}

#[cfg(test)]
mod tests {
    use proptest::collection::btree_map;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn parses_mail_servers_with_and_without_port() {
        for (text, read) in [
            ("mail.example.com", Some(("mail.example.com", None, SmtpTls::Starttls))),
            ("mail.example.com:465", Some(("mail.example.com", Some(465), SmtpTls::Tls))),
            ("mail.example.com:25", Some(("mail.example.com", Some(25), SmtpTls::Starttls))),
            ("localhost", Some(("localhost", None, SmtpTls::None))),
            ("[::1]:2525", Some(("::1", Some(2525), SmtpTls::None))),
            ("[::1]", Some(("::1", None, SmtpTls::None))),
            ("smtp://mail.example.com", None),
            ("user@mail.example.com", None),
            ("mail.example.com:port", None),
            ("", None),
        ] {
            let server = text.parse::<SmtpServer>().ok();
            let server = server.as_ref().map(|server| (server.host.as_str(), server.port, server.tls()));
            assert_eq!(server, read, "{text}");
        }
    }

    #[test]
    fn fee_depends_on_the_price_step() -> anyhow::Result<()> {
        let steps: FeeSchedule = "50:0.99,100:1.99,150:2.99,200:3.99,4.99".parse()?;
        for (price, fee) in [(0, 0), (1, 99), (5000, 99), (5001, 199), (10000, 199), (20000, 399), (20001, 499)] {
            assert_eq!(steps.fee(Money(price)), Money(fee), "{price}");
        }
        assert!("50:0.99".parse::<FeeSchedule>().is_err());
        assert!("100:1,50:2,3".parse::<FeeSchedule>().is_err());
        Ok(())
    }

    fn amount() -> impl Strategy<Value = Money> {
        (0..10_000_000_i64).prop_map(Money)
    }

    fn fee_steps() -> impl Strategy<Value = FeeSchedule> {
        let steps = btree_map(amount(), amount(), 0..8).prop_map(|steps| steps.into_iter().collect());
        (steps, amount()).prop_map(|(steps, above)| FeeSchedule { steps, above })
    }

    proptest! {
        #[test]
        fn fee_is_that_of_the_first_step_at_or_above_the_price(steps in fee_steps(), price in amount()) {
            let fee = steps.fee(price);

            let below = steps.steps.iter().filter(|(up_to, _)| *up_to < price).count();
            let expected = steps.steps.get(below).map_or(steps.above, |(_, fee)| *fee);
            prop_assert_eq!(fee, if price == Money::ZERO { Money::ZERO } else { expected });
        }

        #[test]
        fn fee_steps_round_trip_as_text(steps in fee_steps()) {
            let amount = |money: Money| format!("{}.{:02}", money.0 / 100, money.0 % 100);
            let written = steps.steps.iter().map(|(up_to, fee)| format!("{}:{}", amount(*up_to), amount(*fee)));
            let written: Vec<String> = written.chain([amount(steps.above)]).collect();

            prop_assert_eq!(written.join(",").parse::<FeeSchedule>().ok(), Some(steps));
        }
    }
}
