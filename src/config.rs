//! Settings: command-line options, each with an environment variable.

mod setting;

use std::fmt;
use std::fs::File;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context, anyhow, ensure};
use boxoffice_http::Listener;
use boxoffice_http::client_version::ClientVersion;
use clap::builder::FalseyValueParser;
use clap::{Args, ValueEnum};
use http::Uri;
use lettre::message::Mailbox;
pub use setting::{InvalidSettings, Setting, setting, whole_number};
use slog::Logger;

use crate::kernel::auth::PasswordSettings;
use crate::kernel::db::DatabaseLocation;
use crate::kernel::http::{BodyMemoryOptions, ConnectionOptions, LimitOptions, LimitSettings, ListenAddress, TlsOptions};
use crate::kernel::private_files;
use crate::kernel::types::money::Money;

/// The currencies of ISO 4217, without those of funds, metals and tests.
const CURRENCIES: &str = "AED AFN ALL AMD ANG AOA ARS AUD AWG AZN BAM BBD BDT BGN BHD BIF BMD BND BOB BRL BSD BTN BWP BYN BZD CAD \
    CDF CHF CLP CNY COP CRC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GNF GTQ GYD HKD HNL HTG HUF \
    IDR ILS INR IQD IRR ISK JMD JOD JPY KES KGS KHR KMF KPW KRW KWD KYD KZT LAK LBP LKR LRD LSL LYD MAD MDL MGA MKD MMK MNT MOP \
    MRU MUR MVR MWK MXN MYR MZN NAD NGN NIO NOK NPR NZD OMR PAB PEN PGK PHP PKR PLN PYG QAR RON RSD RUB RWF SAR SBD SCR SDG SEK \
    SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TND TOP TRY TTD TWD TZS UAH UGX USD UYU UZS VED VES VND VUV WST XAF XCD \
    XCG XOF XPF YER ZAR ZMW ZWG";

/// Location of the server's data: the options of every command that uses the database.
#[derive(Debug, Clone, Args)]
pub struct StorageOptions {
    /// Database: `sqlite:PATH` or `postgres://USER@HOST/NAME` [default: sqlite:DATA_DIR/boxoffice.db]
    #[arg(long, env = "DATABASE_URL", hide_env_values = true, value_name = "URL", value_parser = setting(database_url))]
    database: Option<Setting<String>>,
    /// Folder for everything that is stored in files
    #[arg(long, env = "BOXOFFICE_DATA_DIR", default_value = "data", value_name = "FOLDER", value_parser = setting(folder))]
    data_dir: Setting<PathBuf>,
}

impl StorageOptions {
    /// Returns the database URL.
    ///
    /// # Errors
    /// Returns an error if an option is invalid.
    pub fn database_url(&self) -> anyhow::Result<String> {
        InvalidSettings::reject(self.problems())?;
        match &self.database {
            Some(url) => url.get().cloned(),
            None => Ok(format!("sqlite:{}", self.data_dir()?.join("boxoffice.db").display())),
        }
    }

    /// Returns the folder for everything that is stored in files.
    ///
    /// # Errors
    /// Returns an error if the option is invalid.
    pub fn data_dir(&self) -> anyhow::Result<&Path> {
        self.data_dir.get().map(PathBuf::as_path)
    }

    fn problems(&self) -> Vec<Option<String>> {
        vec![self.database.as_ref().and_then(Setting::problem), self.data_dir.problem()]
    }

    /// Withdraws the access of other users to the data folder and to the files of the database that exist already. Logs each
    /// change.
    ///
    /// # Errors
    /// Returns an error if an option is invalid.
    pub fn restrict_access(&self, log: &Logger) -> anyhow::Result<()> {
        private_files::restrict(self.data_dir()?, log);
        private_files::restrict_database(&self.database_url()?, log);
        Ok(())
    }
}

/// Location of the data and settings of the platform: the options of every command that runs the platform.
#[derive(Debug, Clone, Args)]
pub struct PlatformOptions {
    /// Location of the data.
    #[command(flatten)]
    pub storage: StorageOptions,
    #[command(flatten)]
    settings: SettingsOptions,
    /// Address to listen on: HOST:PORT
    #[arg(long, env = "BOXOFFICE_LISTEN", default_value = "127.0.0.1:8080", value_name = "ADDRESS", value_parser = setting(str::parse::<ListenAddress>))]
    listen: Setting<ListenAddress>,
    #[command(flatten)]
    tls: TlsOptions,
    #[command(flatten)]
    body_memory: BodyMemoryOptions,
    #[command(flatten)]
    connections: ConnectionOptions,
}

/// Options for the platform's settings.
#[derive(Debug, Clone, Args)]
struct SettingsOptions {
    /// Start of all absolute URIs: the address that clients use [default: http://LISTEN, or https://LISTEN with TLS]
    #[arg(long, env = "BOXOFFICE_PUBLIC_URL", value_name = "URL", value_parser = setting(public_url))]
    public_url: Option<Setting<String>>,
    /// Image store: a folder, or s3://BUCKET/PREFIX with the AWS_* variables [default: DATA_DIR/media]
    #[arg(long, env = "BOXOFFICE_MEDIA", value_name = "PLACE", value_parser = setting(media))]
    media: Option<Setting<String>>,
    /// Currency of all amounts, as an ISO 4217 code; the first start of `serve` sets it for the database
    #[arg(long, env = "BOXOFFICE_CURRENCY", default_value = "GHS", value_name = "CODE", value_parser = setting(currency))]
    currency: Setting<String>,
    /// Minutes for which an open order reserves its places, at most a week
    #[arg(long, env = "BOXOFFICE_RESERVATION_MINUTES", default_value = "15", value_name = "MINUTES", value_parser = setting(whole_number::<1, 10_080>))]
    reservation_minutes: Setting<u32>,
    /// Convenience fee of a ticket by its price: UP_TO:FEE, …, and the fee above the last step
    #[arg(long, env = "BOXOFFICE_FEE_STEPS", default_value = "50:0.99,100:1.99,150:2.99,200:3.99,4.99", value_name = "STEPS", value_parser = setting(fee_steps))]
    fee_steps: Setting<FeeSchedule>,
    /// Lowest client version that is accepted
    #[arg(long, env = "BOXOFFICE_MINIMUM_CLIENT_VERSION", default_value = "3.0.0", value_name = "VERSION", value_parser = setting(client_version))]
    minimum_client_version: Setting<ClientVersion>,
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
    #[arg(long, env = "BOXOFFICE_MAIL_FROM", default_value = "boxoffice@localhost", value_name = "ADDRESS", value_parser = setting(mail_address))]
    mail_from: Setting<Mailbox>,
    /// Key that encrypts mail until it is sent, created if it doesn't exist [default: DATA_DIR/mail.key]
    #[arg(long, env = "BOXOFFICE_MAIL_KEY_FILE", value_name = "FILE")]
    mail_key_file: Option<PathBuf>,
    /// Mail server; without one, mails are written to files in DATA_DIR/mail
    #[arg(long, env = "BOXOFFICE_SMTP", value_name = "HOST[:PORT]", value_parser = setting(str::parse::<SmtpServer>))]
    smtp: Option<Setting<SmtpServer>>,
    /// Encryption of the connection to the mail server: none, starttls or tls [default: tls at port 465, none to this machine, else starttls]
    #[arg(long, env = "BOXOFFICE_SMTP_TLS", value_name = "MODE", value_parser = setting(smtp_tls))]
    smtp_tls: Option<Setting<SmtpTls>>,
    /// Username for the mail server
    #[arg(long, env = "BOXOFFICE_SMTP_USER", value_name = "NAME")]
    smtp_user: Option<String>,
    /// Password for the mail server
    #[arg(long, env = "BOXOFFICE_SMTP_PASSWORD", hide_env_values = true, value_name = "PASSWORD")]
    smtp_password: Option<SmtpPassword>,
    /// PEM file of additional certificate authorities for the mail server
    #[arg(long, env = "BOXOFFICE_SMTP_CA", value_name = "FILE")]
    smtp_ca: Option<PathBuf>,
    /// Time limit for sending one mail, in seconds
    #[arg(long, env = "BOXOFFICE_SMTP_TIMEOUT_SECONDS", default_value = "30", value_name = "SECONDS", value_parser = setting(whole_number::<1, 600>))]
    smtp_timeout_seconds: Setting<u32>,
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
    fn settings(&self, data_dir: &Path) -> anyhow::Result<MailSettings> {
        let from = self.mail_from.get()?.clone();
        let key_file = self.mail_key_file.clone().unwrap_or_else(|| data_dir.join("mail.key"));
        let Some(server) = &self.smtp else {
            return Ok(MailSettings { from, key_file, route: MailTransportSettings::Folder(data_dir.join("mail")) });
        };
        let server = server.get()?;
        let tls = self.smtp_tls.as_ref().map(|tls| tls.get().copied()).transpose()?.unwrap_or_else(|| server.tls());
        let default_port = match tls {
            SmtpTls::None => 25,
            SmtpTls::Starttls => 587,
            SmtpTls::Tls => 465,
        };
        let route = MailTransportSettings::Smtp(SmtpSettings {
            host: server.host.clone(),
            port: server.port.unwrap_or(default_port),
            tls,
            credentials: self.smtp_user.clone().zip(self.smtp_password.clone()),
            certificates: self.smtp_ca.clone(),
            timeout: Duration::from_secs(u64::from(*self.smtp_timeout_seconds.get()?)),
        });
        Ok(MailSettings { from, key_file, route })
    }

    fn problems(&self) -> Vec<Option<String>> {
        let of_server = [
            (self.smtp_tls.is_some(), "--smtp-tls (BOXOFFICE_SMTP_TLS)"),
            (self.smtp_user.is_some(), "--smtp-user (BOXOFFICE_SMTP_USER)"),
            (self.smtp_password.is_some(), "--smtp-password (BOXOFFICE_SMTP_PASSWORD)"),
            (self.smtp_ca.is_some(), "--smtp-ca (BOXOFFICE_SMTP_CA)"),
        ];
        let unused = of_server.into_iter().map(|(is_set, name)| {
            let is_unused = is_set && self.smtp.is_none();
            is_unused.then(|| format!("{name}: it has no effect without --smtp, the mail server, such as mail.example.com"))
        });
        let incomplete = match (&self.smtp_user, &self.smtp_password) {
            (Some(_), None) => Some("--smtp-user (BOXOFFICE_SMTP_USER): it needs --smtp-password (BOXOFFICE_SMTP_PASSWORD)"),
            (None, Some(_)) => Some("--smtp-password (BOXOFFICE_SMTP_PASSWORD): it needs --smtp-user (BOXOFFICE_SMTP_USER)"),
            _ => None,
        };
        let unreadable = self.smtp_ca.as_ref().and_then(|file| {
            let error = File::open(file).err()?;
            Some(format!("--smtp-ca (BOXOFFICE_SMTP_CA): cannot read {}: {error}", file.display()))
        });
        let parsed = [
            self.mail_from.problem(),
            self.smtp.as_ref().and_then(Setting::problem),
            self.smtp_tls.as_ref().and_then(Setting::problem),
            self.smtp_timeout_seconds.problem(),
            incomplete.map(str::to_owned),
            unreadable,
        ];
        parsed.into_iter().chain(unused).collect()
    }
}

impl PlatformOptions {
    /// Returns the database URL.
    ///
    /// # Errors
    /// Returns an error if an option is invalid.
    pub fn database_url(&self) -> anyhow::Result<String> {
        self.storage.database_url()
    }

    /// Returns the listener configuration of the server. Resolves the host name.
    ///
    /// # Errors
    /// Returns an error if the address can't be resolved, or the TLS files can't be used.
    pub fn listener(&self) -> anyhow::Result<Listener> {
        let listener = self.tls.listener(self.listen.get()?)?;
        Ok(Listener { body_memory: self.body_memory.limits()?, connections: self.connections.limits()?, ..listener })
    }

    /// Withdraws the access of other users to all files of the platform that exist already. Logs each change.
    ///
    /// # Errors
    /// Returns an error if an option is invalid.
    pub fn restrict_access(&self, log: &Logger) -> anyhow::Result<()> {
        let Settings { media, mail, .. } = self.settings()?;
        self.storage.restrict_access(log)?;
        private_files::restrict(&mail.key_file, log);
        if !media.starts_with("s3://") {
            private_files::restrict_all(Path::new(&media), log);
        }
        if let MailTransportSettings::Folder(folder) = &mail.route {
            private_files::restrict_all(folder, log);
        }
        Ok(())
    }

    /// Returns the settings. Fills in the defaults that depend on other options.
    ///
    /// # Errors
    /// Returns an error that names all invalid options, if there are any.
    pub fn settings(&self) -> anyhow::Result<Settings> {
        InvalidSettings::reject(self.problems())?;
        let options = &self.settings;
        let public_url = match &options.public_url {
            Some(url) => url.get()?.clone(),
            None => format!("{}://{}", if self.tls.is_used() { "https" } else { "http" }, self.listen.get()?),
        };
        let data_dir = self.storage.data_dir()?;
        let media = match &options.media {
            Some(media) => media.get()?.clone(),
            None => data_dir.join("media").display().to_string(),
        };
        Ok(Settings {
            public_url: public_url.trim_end_matches('/').to_owned(),
            media,
            currency: options.currency.get()?.clone(),
            reservation: Duration::from_secs(u64::from(*options.reservation_minutes.get()?) * 60),
            fee_steps: options.fee_steps.get()?.clone(),
            minimum_client_version: *options.minimum_client_version.get()?,
            passwords: PasswordSettings { allow_common: options.allow_common_passwords, ..PasswordSettings::default() },
            limits: options.limits.settings()?,
            mail: options.mail.settings(data_dir)?,
        })
    }

    /// Returns what is wrong with each option, in the order of the options.
    pub fn problems(&self) -> Vec<Option<String>> {
        let Self { storage, settings, listen, tls, body_memory, connections } = self;
        let own = [
            listen.problem(),
            tls.problem(),
            settings.public_url.as_ref().and_then(Setting::problem),
            settings.media.as_ref().and_then(Setting::problem),
            settings.currency.problem(),
            settings.reservation_minutes.problem(),
            settings.fee_steps.problem(),
            settings.minimum_client_version.problem(),
        ];
        let limits = settings.limits.problems();
        let (body_memory, connections, mail) = (body_memory.problems(), connections.problems(), settings.mail.problems());
        let http = limits.into_iter().chain(body_memory).chain(connections);
        storage.problems().into_iter().chain(own).chain(http).chain(mail).collect()
    }
}

/// Checks a database URL.
fn database_url(url: &str) -> anyhow::Result<String> {
    url.parse::<DatabaseLocation>()?;
    Ok(url.to_owned())
}

/// Parses the path of a folder, which need not exist.
fn folder(path: &str) -> anyhow::Result<PathBuf> {
    ensure!(!path.is_empty(), "it is empty; give a folder, such as /var/lib/boxoffice");
    let path = PathBuf::from(path);
    ensure!(!path.exists() || path.is_dir(), "`{}` is not a folder", path.display());
    Ok(path)
}

/// Checks the address that clients use.
fn public_url(text: &str) -> anyhow::Result<String> {
    let url = text.parse::<Uri>().ok().filter(|url| {
        let is_http = url.scheme_str().is_some_and(|scheme| ["http", "https"].contains(&scheme));
        let has_host = url.authority().is_some_and(|authority| !authority.host().is_empty() && !authority.as_str().contains('@'));
        is_http && has_host && url.query().is_none() && !text.contains('#')
    });
    ensure!(
        url.is_some(),
        "`{text}` is not an address that begins with http:// or https:// and has no parameters, such as https://tickets.example.com"
    );
    Ok(text.to_owned())
}

/// Checks the location of the images.
fn media(text: &str) -> anyhow::Result<String> {
    const EXPECTED: &str = "give a folder, or a bucket such as s3://tickets/images";
    ensure!(!text.is_empty(), "it is empty; {EXPECTED}");
    match text.split_once("://") {
        Some(("s3", bucket)) => ensure!(!bucket.is_empty() && !bucket.starts_with('/'), "`{text}` names no bucket; {EXPECTED}"),
        Some(_) => anyhow::bail!("`{text}` is neither a folder nor an S3 bucket; {EXPECTED}"),
        None => _ = folder(text)?,
    }
    Ok(text.to_owned())
}

/// Parses the encryption of the connection to a mail server.
fn smtp_tls(text: &str) -> anyhow::Result<SmtpTls> {
    SmtpTls::from_str(text, true).map_err(|_| anyhow!("`{text}` is none of none, starttls and tls"))
}

/// Parses the sender of mail.
fn mail_address(text: &str) -> anyhow::Result<Mailbox> {
    text.parse()
        .map_err(|_| anyhow!("`{text}` is not a mail address, such as tickets@example.com or Box office <tickets@example.com>"))
}

/// Parses the fee steps.
fn fee_steps(text: &str) -> anyhow::Result<FeeSchedule> {
    text.parse().with_context(|| format!("`{text}` is not a list of steps such as 50:0.99,100:1.99,2.99"))
}

/// Parses the lowest client version.
fn client_version(text: &str) -> anyhow::Result<ClientVersion> {
    text.parse().map_err(|_| anyhow!("`{text}` is not a version of one to three numbers, such as 3.0.0"))
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
        let above = parse_money(items.pop().context("it is empty")?).context("the last value is the fee above all steps")?;
        let steps = items.into_iter().map(|item| {
            let (up_to, fee) = item.split_once(':').with_context(|| format!("`{item}` has no fee"))?;
            Ok((parse_money(up_to)?, parse_money(fee)?))
        });
        let steps = steps.collect::<anyhow::Result<Vec<_>>>()?;
        ensure!(steps.is_sorted_by(|a, b| a.0 < b.0), "the prices must rise");
        Ok(Self { steps, above })
    }
}

/// Checks a currency code.
fn currency(code: &str) -> anyhow::Result<String> {
    ensure!(
        code.len() == 3 && CURRENCIES.split_whitespace().any(|known| known == code),
        "`{code}` is not a currency code of ISO 4217 in capitals, such as GHS or EUR"
    );
    Ok(code.to_owned())
}

/// Parses an amount such as `12`, `12.5` or `12.50`.
fn parse_money(text: &str) -> anyhow::Result<Money> {
    let text = text.trim();
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let is_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    ensure!(is_digits(whole) && is_digits(fraction) && !whole.is_empty(), "`{text}` is not an amount");
    ensure!(fraction.len() <= 2, "`{text}` has more than two decimals");
    let minor = format!("{whole}{fraction:0<2}").parse().with_context(|| format!("`{text}` is too large"))?;
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
