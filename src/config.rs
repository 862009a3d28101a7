//! Command-line options for the settings of the platform, each with an environment variable and a key in the configuration file.

mod file;
mod http;
mod mail;
mod retention;
mod secret;
mod setting;
mod storage;
mod suggestion;

use std::env;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ::http::Uri;
use anyhow::{Context, anyhow, bail, ensure};
use boxoffice_http::Listener;
use boxoffice_http::client_version::ClientVersion;
use clap::{ArgAction, Args};
pub use file::{CONFIG_FILE, ConfigFile};
use http::{BodyMemoryOptions, ConnectionOptions, LimitOptions};
pub use http::{ListenAddress, TlsOptions};
use mail::MailOptions;
pub use mail::SmtpServer;
use retention::RetentionOptions;
use rustix::fs::{Access, access};
use rustix::io::Errno;
use secret::given_twice;
pub use secret::{SecretFile, warn_of_readable_files};
pub use setting::{InvalidSettings, Setting, boolean, setting, whole_number};
use slog::Logger;
pub use storage::{StorageOptions, database_url};
pub use suggestion::suggest;

use crate::kernel::auth::PasswordSettings;
use crate::kernel::db::DatabaseLocation;
use crate::kernel::private_files;
use crate::kernel::settings::{FeeSchedule, MailTransportSettings, MediaLocation, Secret, Settings};
use crate::kernel::types::currency::Currency;

/// Location of the data and settings of the platform: the options of every command that runs the platform.
#[derive(Debug, Clone, Args)]
pub struct PlatformOptions {
    /// Location of the data.
    #[command(flatten)]
    pub storage: StorageOptions,
    #[command(flatten)]
    settings: SettingsOptions,
    /// Address to listen on: HOST:PORT. Of a host name, the first IPv4 address is used.
    #[arg(long, env = "BOXOFFICE_LISTEN", default_value = "127.0.0.1:8080", value_name = "ADDRESS", value_parser = setting(str::parse::<ListenAddress>), help_heading = None)]
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
    /// Start of all absolute URIs: the address that clients use, which is the proxy's behind a proxy [default: http://LISTEN, or https://LISTEN with TLS]
    #[arg(long, env = "BOXOFFICE_PUBLIC_URL", value_name = "URL", value_parser = setting(public_url))]
    public_url: Option<Setting<String>>,
    /// Address of the operator's own website, to which the links in mail lead, such as SITE/orders/17630000000004 [default: none, they
    /// lead to a page of the server that says what to do]
    #[arg(long, env = "BOXOFFICE_SITE_URL", value_name = "URL", value_parser = setting(public_url))]
    site_url: Option<Setting<String>>,
    /// Image store: a folder, or an S3 bucket as `s3://BUCKET/PREFIX` with the usual `AWS_*` variables [default: DATA_DIR/media]
    #[arg(long, env = "BOXOFFICE_MEDIA", value_name = "PLACE", value_parser = setting(media_location), help_heading = "Media")]
    media: Option<Setting<MediaLocation>>,
    /// File with the secret access key of the bucket, such as a credential of systemd, instead of the variable
    /// `AWS_SECRET_ACCESS_KEY`
    #[arg(long, env = "AWS_SECRET_ACCESS_KEY_FILE", value_name = "FILE", value_parser = setting(SecretFile::read), help_heading = "Media")]
    aws_secret_access_key_file: Option<Setting<SecretFile>>,
    /// File with the key that signs the codes of tickets and the lists for gates, created if it doesn't exist [default: DATA_DIR/ticket.key]
    #[arg(long, env = "BOXOFFICE_TICKET_KEY_FILE", value_name = "FILE", help_heading = "Tickets")]
    ticket_key_file: Option<PathBuf>,
    /// Standby of the database, from which reports, exports and lists are read: `postgres://USER@HOST/NAME` [default: none, they are
    /// read from --database]
    #[arg(long, env = "BOXOFFICE_READ_DATABASE", hide_env_values = true, value_name = "URL", value_parser = setting(read_database), help_heading = "Reads from a standby")]
    read_database: Option<Setting<String>>,
    /// File with the URL of the standby, such as a credential of systemd, because the URL may contain a password
    #[arg(long, env = "BOXOFFICE_READ_DATABASE_URL_FILE", value_name = "FILE", value_parser = setting(read_database_file), help_heading = "Reads from a standby")]
    read_database_url_file: Option<Setting<SecretFile>>,
    /// Currency of all amounts, as an ISO 4217 code; the first start of `serve` sets it for the database
    #[arg(long, env = "BOXOFFICE_CURRENCY", default_value = "GHS", value_name = "CODE", value_parser = setting(str::parse::<Currency>), help_heading = "Databases")]
    currency: Setting<Currency>,
    /// Minutes for which an open order reserves its places, at most 10080 (a week)
    #[arg(long, env = "BOXOFFICE_RESERVATION_MINUTES", default_value = "15", value_name = "MINUTES", value_parser = setting(whole_number::<1, 10_080>))]
    reservation_minutes: Setting<u32>,
    /// Convenience fee of a ticket by its price, as `UP_TO:FEE`. The last value is the fee above the last step. A free ticket has no
    /// fee. A currency without decimals has no default: all values must be whole, such as 5000:100,10000:200,300.
    #[arg(long, env = "BOXOFFICE_FEE_STEPS", default_value = "50:0.99,100:1.99,150:2.99,200:3.99,4.99", value_name = "STEPS", value_parser = setting(fee_steps))]
    fee_steps: Setting<FeeSchedule>,
    /// Lowest `X-Client-Version` that is accepted
    #[arg(long, env = "BOXOFFICE_MINIMUM_CLIENT_VERSION", default_value = "3.0.0", value_name = "VERSION", value_parser = setting(client_version))]
    minimum_client_version: Setting<ClientVersion>,
    /// Accept the most common passwords too
    #[arg(long, env = "BOXOFFICE_ALLOW_COMMON_PASSWORDS", action = ArgAction::SetTrue, value_parser = setting(boolean))]
    allow_common_passwords: Setting<bool>,
    #[command(flatten)]
    limits: LimitOptions,
    #[command(flatten)]
    mail: MailOptions,
    #[command(flatten)]
    retention: RetentionOptions,
    /// Milliseconds from which a database statement is logged as slow, without its values; 0: never
    #[arg(long, env = "BOXOFFICE_SLOW_STATEMENT_MS", default_value = "1000", value_name = "MS", value_parser = setting(whole_number::<0, 600_000>), help_heading = "Logs")]
    slow_statement_ms: Setting<u32>,
}

impl SettingsOptions {
    /// Returns the problem of fees with decimals, such as those by default, in a currency without decimals.
    fn fee_decimals_problem(&self) -> Option<String> {
        let (currency, fees) = (self.currency.get().ok()?, self.fee_steps.get().ok()?);
        (!fees.are_in(*currency)).then(|| {
            format!(
                "--fee-steps (BOXOFFICE_FEE_STEPS): the currency {currency} has no decimals, so give whole prices and fees, such as \
                 5000:100,10000:200,300, or 0 for no fees; the default has decimals"
            )
        })
    }

    /// Returns the problem of a secret access key that is given twice, or that has no effect.
    fn media_key_problem(&self) -> Option<String> {
        const KEY: &str = "AWS_SECRET_ACCESS_KEY";
        const KEY_FILE: &str = "--aws-secret-access-key-file (AWS_SECRET_ACCESS_KEY_FILE)";
        let has_file = self.aws_secret_access_key_file.is_some();
        let is_bucket = matches!(&self.media, Some(media) if media.get().is_ok_and(|media| media.folder().is_none()));
        given_twice(env::var_os(KEY).is_some(), KEY, has_file, KEY_FILE).or_else(|| {
            (has_file && !is_bucket)
                .then(|| format!("{KEY_FILE}: it has no effect without a bucket in --media, such as s3://tickets"))
        })
    }

    /// Returns the URL of the standby.
    fn read_database(&self) -> anyhow::Result<Option<Secret>> {
        let url = self.read_database.as_ref().map(Setting::get).transpose()?;
        let file = self.read_database_url_file.as_ref().map(Setting::get).transpose()?;
        Ok(url.map(|url| Secret(url.clone())).or_else(|| file.map(|file| file.secret.clone())))
    }

    /// Returns the problem of a standby that is given twice, or that the database can't have.
    fn read_database_problem(&self, storage: &StorageOptions) -> Option<String> {
        const URL: &str = "--read-database (BOXOFFICE_READ_DATABASE)";
        const FILE: &str = "--read-database-url-file (BOXOFFICE_READ_DATABASE_URL_FILE)";
        let (has_url, has_file) = (self.read_database.is_some(), self.read_database_url_file.is_some());
        let database = storage.database_url().ok();
        let is_sqlite = database.is_some_and(|url| matches!(url.parse(), Ok(DatabaseLocation::Sqlite(_))));
        given_twice(has_url, URL, has_file, FILE).or_else(|| {
            let name = if has_url { URL } else { FILE };
            ((has_url || has_file) && is_sqlite)
                .then(|| format!("{name}: SQLite has no standby; set --database to the PostgreSQL database of the standby"))
        })
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

    /// Checks that this user can use the database and the keys, and if `creates_files`, create the keys and files in the folders of images
    /// and mails. After a command that root has run, they may belong to root.
    ///
    /// # Errors
    /// Returns an error that says what to do, or if an option is invalid.
    pub fn require_access(&self, creates_files: bool) -> anyhow::Result<()> {
        let Settings { media, mail, ticket_key_file, .. } = self.settings()?;
        self.storage.require_access()?;
        let data = self.storage.data_dir()?;
        let mail_folder = match &mail.transport {
            MailTransportSettings::Folder(folder) => Some(folder.as_path()),
            MailTransportSettings::Smtp(_) => None,
        };
        // Other failures may pass: the server works without images and mails.
        let is_denied = |folder: &&Path| {
            let existing = private_files::existing_part(folder);
            creates_files && access(existing, Access::WRITE_OK | Access::EXEC_OK) == Err(Errno::ACCESS)
        };
        let denied = [media.folder(), mail_folder].into_iter().flatten().find(is_denied);
        denied.map_or(Ok(()), |folder| private_files::require_access(&folder.join("new"), Access::WRITE_OK, Some(data)))?;
        [mail.key_file, ticket_key_file].iter().try_for_each(|key| {
            let rights = if creates_files && !key.exists() { Access::READ_OK | Access::WRITE_OK } else { Access::READ_OK };
            private_files::require_access(key, rights, Some(data))
        })
    }

    /// Requires that the keys exist. A command that stores a mail with a key of its own would lose it, because no server can read it.
    ///
    /// # Errors
    /// Returns an error that names a file that is missing or that this user can't read, or if an option is invalid.
    pub fn require_keys(&self) -> anyhow::Result<()> {
        let Settings { mail, ticket_key_file, .. } = self.settings()?;
        let data = self.storage.data_dir()?;
        for key in [mail.key_file, ticket_key_file] {
            private_files::require_access(&key, Access::READ_OK, Some(data))?;
            let key_name = key.display();
            ensure!(key.exists(), "the key {key_name} does not exist: give the settings of the server, such as --config");
        }
        Ok(())
    }

    /// Withdraws the access of other users to all files of the platform that exist already. Logs each change.
    ///
    /// # Errors
    /// Returns an error if an option is invalid.
    pub fn restrict_access(&self, log: &Logger) -> anyhow::Result<()> {
        let Settings { media, mail, ticket_key_file, .. } = self.settings()?;
        self.warn_of_readable_secrets(log)?;
        self.storage.restrict_access(log)?;
        private_files::restrict(&mail.key_file, log);
        private_files::restrict(&ticket_key_file, log);
        if let MediaLocation::Folder(folder) = &media {
            private_files::restrict_all(folder, MediaLocation::is_own_entry, log);
        }
        if let MailTransportSettings::Folder(folder) = &mail.transport {
            let is_mail = |name: &str| [".eml", ".part"].iter().any(|suffix| name.ends_with(suffix));
            private_files::restrict_all(folder, is_mail, log);
        }
        Ok(())
    }

    /// Logs a warning for each file with a secret that all users of the machine may read.
    ///
    /// # Errors
    /// Returns an error if an option is invalid.
    pub fn warn_of_readable_secrets(&self, log: &Logger) -> anyhow::Result<()> {
        self.storage.warn_of_readable_secrets(log)?;
        self.tls.warn_of_readable_key(log);
        let SettingsOptions { mail, aws_secret_access_key_file, read_database_url_file, .. } = &self.settings;
        let files = [&mail.smtp_password_file, aws_secret_access_key_file, read_database_url_file];
        warn_of_readable_files(files.into_iter().flatten(), log)
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
        let site_url = options.site_url.as_ref().map(|url| url.get().cloned()).transpose()?;
        let data_dir = self.storage.data_dir()?;
        let media = match &options.media {
            Some(media) => media.get()?.clone(),
            None => MediaLocation::Folder(data_dir.join("media")),
        };
        let media_secret_key = options.aws_secret_access_key_file.as_ref().map(Setting::get).transpose()?;
        Ok(Settings {
            read_database: options.read_database()?,
            media_secret_key: media_secret_key.map(|file| file.secret.clone()),
            site_url: site_url.map(|url| url.trim_end_matches('/').to_owned()),
            public_url: public_url.trim_end_matches('/').to_owned(),
            media,
            // A store that doesn't answer leaves the other requests in progress to the rest of the platform.
            image_accesses: (self.connections.limits()?.requests / 4).max(1),
            ticket_key_file: options.ticket_key_file.clone().unwrap_or_else(|| data_dir.join("ticket.key")),
            creates_files: true,
            currency: *options.currency.get()?,
            reservation: Duration::from_secs(u64::from(*options.reservation_minutes.get()?) * 60),
            fee_steps: options.fee_steps.get()?.clone(),
            minimum_client_version: *options.minimum_client_version.get()?,
            passwords: PasswordSettings { allow_common: *options.allow_common_passwords.get()?, ..PasswordSettings::default() },
            limits: options.limits.settings()?,
            mail: options.mail.settings(data_dir)?,
            retention: options.retention.settings()?,
            slow_statement: Some(Duration::from_millis(u64::from(*options.slow_statement_ms.get()?)))
                .filter(|time| !time.is_zero()),
        })
    }

    /// Returns what is wrong with each option, in the order of the options.
    pub fn problems(&self) -> Vec<Option<String>> {
        let Self { storage, settings, listen, tls, body_memory, connections } = self;
        let own = [
            listen.problem(),
            tls.problem(),
            settings.public_url.as_ref().and_then(Setting::problem),
            settings.site_url.as_ref().and_then(Setting::problem),
            settings.media.as_ref().and_then(Setting::problem),
            settings.aws_secret_access_key_file.as_ref().and_then(Setting::problem),
            settings.media_key_problem(),
            settings.read_database.as_ref().and_then(Setting::problem),
            settings.read_database_url_file.as_ref().and_then(Setting::problem),
            settings.read_database_problem(storage),
            settings.currency.problem(),
            settings.reservation_minutes.problem(),
            settings.fee_steps.problem(),
            settings.fee_decimals_problem(),
            settings.minimum_client_version.problem(),
            settings.allow_common_passwords.problem(),
            settings.slow_statement_ms.problem(),
        ];
        let limits = settings.limits.problems();
        let (body_memory, connections, mail) = (body_memory.problems(), connections.problems(), settings.mail.problems());
        let http = limits.into_iter().chain(body_memory).chain(connections);
        storage.problems().into_iter().chain(own).chain(http).chain(mail).chain(settings.retention.problems()).collect()
    }
}

/// Parses the path of a folder, which need not exist.
fn folder(path: &str) -> anyhow::Result<PathBuf> {
    ensure!(!path.is_empty(), "it is empty; give a folder, such as /var/lib/boxoffice");
    let path = PathBuf::from(path);
    ensure!(!path.exists() || path.is_dir(), "`{}` is not a folder", path.display());
    Ok(path)
}

/// Parses the location of the images: a path of a folder, or `s3://bucket/prefix`.
///
/// # Errors
/// Returns an error if it names no bucket, or a file that is not a folder.
pub fn media_location(text: &str) -> anyhow::Result<MediaLocation> {
    const EXPECTED: &str = "give a folder, or a bucket such as s3://tickets/images";
    ensure!(!text.is_empty(), "it is empty; {EXPECTED}");
    let Some((scheme, bucket)) = text.split_once("://") else { return folder(text).map(MediaLocation::Folder) };
    if scheme != "s3" {
        bail!("`{text}` is neither a folder nor an S3 bucket; {EXPECTED}");
    }
    let (name, prefix) = bucket.split_once('/').unwrap_or((bucket, ""));
    ensure!(!name.is_empty(), "`{text}` names no bucket; {EXPECTED}");
    Ok(MediaLocation::Bucket { name: name.to_owned(), prefix: prefix.to_owned() })
}

/// Checks the URL of a standby.
fn read_database(url: &str) -> anyhow::Result<String> {
    let location = url.parse()?;
    ensure!(matches!(location, DatabaseLocation::Postgres(_)), "a standby is postgres://USER@HOST/NAME");
    Ok(url.to_owned())
}

/// Reads a file with the URL of a standby, and checks it.
fn read_database_file(path: &str) -> anyhow::Result<SecretFile> {
    let file = SecretFile::read(path)?;
    read_database(&file.secret.0).with_context(|| format!("in {path}"))?;
    Ok(file)
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

/// Parses the fee steps.
fn fee_steps(text: &str) -> anyhow::Result<FeeSchedule> {
    text.parse().with_context(|| format!("`{text}` is not a list of steps such as 50:0.99,100:1.99,2.99"))
}

/// Parses the lowest client version.
fn client_version(text: &str) -> anyhow::Result<ClientVersion> {
    text.parse().map_err(|_| anyhow!("`{text}` is not a version of one to three numbers, such as 3.0.0"))
}
