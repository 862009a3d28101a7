//! Checks of the dependencies that the settings name.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Display, Path};
use std::time::Duration;

use anyhow::{Context, ensure};
use boxoffice_http::error::one_line;
use boxoffice_http::{Certificate, Listener};
use chrono::{TimeDelta, Utc};
use futures::future::OptionFuture;
use http::header::CONTENT_TYPE;
use serde::Serialize;
use slog::Logger;
use tokio::time::timeout;

use super::serve::{ServeSettings, reserve};
use crate::config::PlatformOptions;
use crate::features::catalog::media::MediaStore;
use crate::kernel::db::{DatabaseLocation, DatabaseState, check_standby, inspect};
use crate::kernel::private_files::{existing_part, folder_of, require_writable};
use crate::kernel::settings::{MailSettings, MailTransportSettings, Settings};
use crate::kernel::signing::SigningKey;
use crate::kernel::types::currency::Currency;
use crate::kernel::{disk_space, outbox};

/// Time limit of a check.
const TIMEOUT: Duration = Duration::from_secs(20);
/// Remaining time of a certificate at which a check warns.
const RENEWAL: TimeDelta = TimeDelta::days(14);
/// Free bytes of a disk below which a check warns: about 200,000 orders fit.
const LITTLE_SPACE: u64 = 1 << 30;

/// The result of a check.
#[derive(Debug, Serialize)]
pub struct Finding {
    /// The dependency.
    pub name: &'static str,
    pub state: State,
    pub text: String,
}

/// The state of a dependency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, strum::Display)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum State {
    Ok,
    /// `serve` starts, but it may not be intended.
    Warning,
    /// `serve` does not start, or some requests fail.
    Failed,
}

impl Finding {
    pub fn new(name: &'static str, state: State, text: impl Into<String>) -> Self {
        Self { name, state, text: text.into() }
    }

    /// Returns the finding of a check that succeeds with a text.
    fn of(name: &'static str, checked: anyhow::Result<String>) -> Self {
        match checked {
            Ok(text) => Self::new(name, State::Ok, text),
            Err(error) => Self::new(name, State::Failed, one_line(&error)),
        }
    }
}

/// Checks everything that `serve` would use with these settings.
///
/// # Errors
/// Returns an error if an option is invalid.
pub async fn check_dependencies(options: &PlatformOptions, serve: ServeSettings, log: &Logger) -> anyhow::Result<Vec<Finding>> {
    let ServeSettings { listener, admin_listener, settings, otlp_endpoint, .. } = serve;
    options.warn_of_readable_secrets(log)?;
    let url = options.database_url()?;
    let standby = settings.read_database.as_ref().map(|standby| within(check_read_database(&url, &standby.0)));
    let (database, standby, media, mail) = tokio::join!(
        within(inspect(&url)),
        OptionFuture::from(standby),
        within(check_media(&settings)),
        within(check_mail(&settings.mail))
    );
    let data_dir = options.storage.data_dir()?;
    let mut findings = vec![Finding::of("data-dir", check_folder(data_dir))];
    findings.push(check_disks(data_dir, &url.parse()?, &settings).unwrap_or_else(|error| Finding::of("disk-space", Err(error))));
    findings.extend(database_findings(database, settings.currency));
    findings.extend(standby.map(|standby| Finding::of("read-database", standby)));
    findings.push(Finding::of("media", media));
    findings.push(Finding::of("mail", mail));
    findings.push(Finding::of("mail-key-file", check_mail_key(&settings.mail)));
    findings.push(Finding::of("ticket-key-file", check_ticket_key(&settings.ticket_key_file)));
    findings.push(Finding::of("mail-templates", check_mail_templates(&settings)));
    let archive = settings.retention.audit_archive.as_deref();
    findings.extend(archive.map(|folder| Finding::of("audit-archive", check_folder(folder))));
    findings.push(check_address("listen", &listener));
    findings.extend(admin_listener.map(|listener| check_address("admin-listen", &listener)));
    if let Some(endpoint) = &otlp_endpoint {
        findings.push(Finding::of("otlp-endpoint", within(check_collector(endpoint)).await));
    }
    findings.extend(listener.certificate.map(|certificate| check_certificate(&certificate)));
    Ok(findings)
}

async fn within<T>(check: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let checked = timeout(TIMEOUT, check).await;
    checked.with_context(|| format!("it has not answered within {} seconds", TIMEOUT.as_secs()))?
}

/// Checks that a folder can be written, or created.
pub fn check_folder(folder: &Path) -> anyhow::Result<String> {
    let exists = folder.exists();
    ensure!(!exists || folder.is_dir(), "{} is not a folder", folder.display());
    require_writable(folder)?;
    Ok(format!("{} {}", folder.display(), if exists { "can be written" } else { "will be created" }))
}

/// Checks the free space of each disk with a folder that the server writes to.
fn check_disks(data_dir: &Path, database: &DatabaseLocation, settings: &Settings) -> anyhow::Result<Finding> {
    let database = if let DatabaseLocation::Sqlite(file) = database { Some(folder_of(file)) } else { None };
    let mail = if let MailTransportSettings::Folder(folder) = &settings.mail.transport { Some(folder.as_path()) } else { None };
    let archive = settings.retention.audit_archive.as_deref();
    let mut disks = BTreeMap::new();
    for folder in [Some(data_dir), database, settings.media.folder(), mail, archive].into_iter().flatten() {
        let existing = existing_part(folder);
        if let Some(free) = disk_space::free_bytes(existing)? {
            disks.entry(fs::metadata(existing)?.dev()).or_insert((folder.display(), free));
        }
    }
    let judge = |free: u64| match free {
        ..disk_space::FULL => State::Failed,
        disk_space::FULL..LITTLE_SPACE => State::Warning,
        _ => State::Ok,
    };
    let describe = |(folder, free): &(Display<'_>, u64)| match judge(*free) {
        State::Failed => format!("the disk of {folder} is full ({free} bytes are free): make room on it, or enlarge it"),
        State::Warning => format!("the disk of {folder} has only {} MiB free: make room on it, or enlarge it", free >> 20),
        State::Ok => format!("the disk of {folder} has {} GiB free", free >> 30),
    };
    let state = disks.values().map(|(_, free)| *free).min().map_or(State::Ok, judge);
    Ok(Finding::new("disk-space", state, disks.values().map(describe).collect::<Vec<_>>().join("; ")))
}

fn database_findings(inspected: anyhow::Result<DatabaseState>, currency: Currency) -> Vec<Finding> {
    let DatabaseState { name, pending, currency: fixed, has_unfinished_copy } = match inspected {
        Ok(state) => state,
        Err(error) => return vec![Finding::of("database", Err(error))],
    };
    if has_unfinished_copy {
        let text = format!("{name} is the target of an unfinished copy; run the same `boxoffice copy` again");
        return vec![Finding::new("database", State::Failed, text)];
    }
    let tables = match pending {
        None => "has no tables yet; the first start creates them".to_owned(),
        Some(0) => "has all tables of this version".to_owned(),
        Some(1) => "will be migrated by the next start (1 migration)".to_owned(),
        Some(pending) => format!("will be migrated by the next start ({pending} migrations)"),
    };
    let database = Finding::new("database", State::Ok, format!("{name} {tables}"));
    let other = fixed.filter(|fixed| fixed != currency.code);
    let other = other.map(|fixed| {
        let text = format!("it is {currency}, but all amounts in this database are in {fixed}; set currency to {fixed}");
        Finding::new("currency", State::Failed, text)
    });
    [database].into_iter().chain(other).collect()
}

async fn check_read_database(database_url: &str, url: &str) -> anyhow::Result<String> {
    Ok(format!("PostgreSQL {} is a standby of the database", check_standby(database_url, url).await?))
}

/// Checks that images can be stored. In a bucket, it stores an object and deletes it.
async fn check_media(settings: &Settings) -> anyhow::Result<String> {
    if let Some(folder) = settings.media.folder() {
        return check_folder(folder);
    }
    MediaStore::open(settings)?.check_writable().await?;
    Ok(format!("{} can be written", settings.media))
}

/// Checks that mail can be delivered. Logs in to the mail server, and sends nothing.
async fn check_mail(mail: &MailSettings) -> anyhow::Result<String> {
    match &mail.transport {
        MailTransportSettings::Folder(folder) => {
            check_folder(folder)?;
            Ok(format!("no mail server: mails are written to {}", folder.display()))
        }
        MailTransportSettings::Smtp(server) => {
            outbox::check_mail_server(server).await?;
            Ok(format!("the mail server {}:{} accepts connections", server.host, server.port))
        }
    }
}

/// Checks that the collector accepts traces. Sends none.
async fn check_collector(endpoint: &str) -> anyhow::Result<String> {
    let empty = reqwest::Client::new().post(endpoint).header(CONTENT_TYPE, "application/x-protobuf").send();
    // Its URL may contain a password.
    let response = empty.await.map_err(reqwest::Error::without_url).context("the collector can't be reached")?;
    ensure!(response.status().is_success(), "the collector returned {}", response.status());
    Ok("the collector accepts traces".to_owned())
}

fn check_mail_key(mail: &MailSettings) -> anyhow::Result<String> {
    check_key_file(&mail.key_file, |file| outbox::MailCipher::open(file, false).map(drop))
}

fn check_ticket_key(file: &Path) -> anyhow::Result<String> {
    check_key_file(file, |file| SigningKey::open(file, false).map(drop))
}

fn check_key_file(file: &Path, open: impl FnOnce(&Path) -> anyhow::Result<()>) -> anyhow::Result<String> {
    if file.exists() {
        open(file)?;
        return Ok(format!("{} has a key", file.display()));
    }
    require_writable(file)?;
    Ok(format!("{} will be created", file.display()))
}

/// Renders every mail in every language.
fn check_mail_templates(settings: &Settings) -> anyhow::Result<String> {
    outbox::MailTemplates::open(settings)?;
    Ok(match &settings.mail.templates {
        Some(folder) => format!("those in {} can be used", folder.display()),
        None => "those of the program are used".to_owned(),
    })
}

/// An address that is in use is only a warning: the server may be running.
fn check_address(name: &'static str, listener: &Listener) -> Finding {
    let Err(error) = reserve(listener.address) else {
        return Finding::new(name, State::Ok, format!("{} is free", listener.address));
    };
    let is_in_use = error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == ErrorKind::AddrInUse);
    Finding::new(name, if is_in_use { State::Warning } else { State::Failed }, one_line(&error))
}

fn check_certificate(certificate: &Certificate) -> Finding {
    match certificate.require_valid() {
        Ok(ends) => {
            let state = if ends - Utc::now() < RENEWAL { State::Warning } else { State::Ok };
            Finding::new("tls-certificate", state, format!("the certificate is valid until {}", ends.date_naive()))
        }
        Err(error) => Finding::of("tls-certificate", Err(error)),
    }
}
