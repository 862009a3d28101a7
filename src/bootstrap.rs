//! The requirements of a start: the account and the keys of the first one, the fixed settings, and the key of the tickets.

use std::fmt;
use std::fs;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use boxoffice_http::error::Result;
use boxoffice_openapi::Scope;
use slog::warn;

use crate::config::InvalidSettings;
use crate::features::identity::accounts::{self, PreparedAccount};
use crate::features::sales::tickets;
use crate::kernel::audit::{self, NewAuditEntry};
use crate::kernel::auth::{KeyKind, NewKey, issue};
use crate::kernel::db::{Tx, transaction};
use crate::kernel::http::user_name;
use crate::kernel::private_files;
use crate::kernel::settings::MailTransportSettings;
use crate::kernel::types::id::Id;
use crate::kernel::types::secret;
use crate::provisioning;
use crate::state::App;

/// The address of the administrator that the first start creates. No mail can be delivered to it.
pub(crate) const FIRST_EMAIL: &str = "administrator@localhost.localdomain";

/// The credentials that the first start created. They are shown once and never logged; the database stores only hashes.
pub struct InitialCredentials {
    /// The administrator's username.
    pub username: String,
    /// The administrator's password.
    pub password: String,
    /// An API key of the administrator.
    pub administrator_key: String,
    /// A public API key, which acts for no account.
    pub public_key: String,
}

impl fmt::Display for InitialCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "The database was empty. These credentials were created and are shown only here:")?;
        writeln!(f, "  administrator's username  {}", self.username)?;
        writeln!(f, "  administrator's e-mail    {FIRST_EMAIL}, which receives nothing: set your own address")?;
        writeln!(f, "  administrator's password  {}", self.password)?;
        writeln!(f, "  administrator's key       {}", self.administrator_key)?;
        write!(f, "  public key                {}", self.public_key)
    }
}

/// Creates an administrator and two API keys if there is no account yet.
///
/// # Errors
/// Returns an error if the database fails.
pub async fn first_start(app: &Arc<App>) -> anyhow::Result<Option<InitialCredentials>> {
    let Some((tx, credentials)) = begin_first_start(app).await? else { return Ok(None) };
    tx.commit().await?;
    Ok(Some(credentials))
}

/// Like [`first_start`], but writes the credentials to a new file in `folder`, and returns its path. Only the server's user can
/// read it. There is no file unless the credentials are valid.
///
/// # Errors
/// Returns an error if the file can't be written, or the database fails.
pub async fn first_start_to_file(app: &Arc<App>, folder: &Path) -> anyhow::Result<Option<PathBuf>> {
    let Some((tx, credentials)) = begin_first_start(app).await? else { return Ok(None) };
    let file = CredentialsFile::create(folder, &format!("{credentials}\n"));
    let file = file.with_context(|| format!("cannot write the first credentials to a file in {}", folder.display()))?;
    tx.commit().await?;
    Ok(Some(file.keep()))
}

/// Creates an administrator and two API keys in a transaction, if there is no account yet. Of several programs that do this at the
/// same time, the first one creates them, and the others wait for its commit and create none.
async fn begin_first_start(app: &Arc<App>) -> anyhow::Result<Option<(Tx, InitialCredentials)>> {
    if accounts::exists_any(&mut app.db.read().await?).await? {
        return Ok(None);
    }
    let (username, password) = ("administrator", secret::api_key());
    let new = provisioning::validate_account(username, FIRST_EMAIL, &password, Scope::Administrator)?;
    let new = accounts::prepare(app, new).await?;
    let mut tx = app.db.begin().await?;
    let keys = create_first_account(app, &mut tx, new).await?;
    Ok(keys.map(|(administrator_key, public_key)| {
        (tx, InitialCredentials { username: username.to_owned(), password, administrator_key, public_key })
    }))
}

/// Creates the account and returns its key and a public key, unless there is an account. The audit log has them like those that the
/// commands `account create` and `key create` create.
async fn create_first_account(app: &App, tx: &mut Tx, new: PreparedAccount) -> Result<Option<(String, String)>> {
    if tx.is_postgres() {
        // SQLite has one writing transaction at a time.
        tx.query("lock table accounts in share row exclusive mode").execute().await?;
    }
    if accounts::exists_any(tx).await? {
        return Ok(None);
    }
    let account = accounts::insert(app, tx, new).await?;
    let key =
        |scope, account| NewKey { kind: KeyKind::Integration, name: "first start", scope, account, token: None, expires: None };
    let (_, administrator_key) = issue(app, tx, &key(Scope::Administrator, Some(account.id))).await?;
    let (_, public_key) = issue(app, tx, &key(Scope::Public, None)).await?;
    let created =
        [("account_create", "/accounts"), ("integration_create", "/integrations"), ("integration_create", "/integrations")];
    let operator = user_name();
    let entry = |(operation, resource): (&str, &str)| NewAuditEntry {
        at: app.clock.now(),
        key: Id::NONE,
        account: None,
        operation: operation.to_owned(),
        resource: resource.to_owned(),
        request: String::new(),
        status: 200,
        code: None,
        count: 1,
        operator: Some(operator.clone()),
    };
    audit::insert(tx, &created.map(entry)).await?;
    Ok(Some((administrator_key, public_key)))
}

/// A new file that only this user can read. Dropping it deletes the file.
struct CredentialsFile(Option<PathBuf>);

impl CredentialsFile {
    /// Creates `first-start.txt`, or `first-start-2.txt` and so on if that exists. Creates the folder if necessary.
    fn create(folder: &Path, text: &str) -> io::Result<Self> {
        private_files::create_folder(folder)?;
        let mut number = 1;
        let (path, mut file) = loop {
            let name = if number == 1 { "first-start.txt".to_owned() } else { format!("first-start-{number}.txt") };
            let path = folder.join(name);
            match private_files::create_file(&path) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => number += 1,
                file => break (path, file?),
            }
        };
        let secret = Self(Some(path));
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        Ok(secret)
    }

    fn keep(mut self) -> PathBuf {
        self.0.take().unwrap_or_default()
    }
}

impl Drop for CredentialsFile {
    fn drop(&mut self) {
        if let Some(path) = &self.0 {
            // If it can't be deleted, it contains credentials that are not valid.
            let _deleted = fs::remove_file(path);
        }
    }
}

/// Logs warnings if there is no active administrator, or if mails to one are lost.
///
/// # Errors
/// Returns an error if the database fails.
pub async fn warn_of_administrators(app: &App) -> anyhow::Result<()> {
    let mut reader = app.db.read().await?;
    let administrators = accounts::administrators(&mut reader).await?;
    if administrators.is_empty() {
        warn!(app.log, "no administrator is active: create one with `boxoffice account create --role administrator`");
    }
    let has_mail_server = matches!(app.settings.mail.transport, MailTransportSettings::Smtp(_));
    let administrators = accounts::find_all(&mut reader, administrators).await?;
    let unreachable = administrators.into_iter().find(|account| has_mail_server && account.email == FIRST_EMAIL);
    if let Some(account) = unreachable {
        warn!(app.log, "mails to the first administrator are lost, because the account still has the address of the first start";
            "account" => account.number);
    }
    Ok(())
}

/// Rejects settings that would change the meaning of stored data. The currency is the only one: amounts are stored without it.
///
/// # Errors
/// Returns an error if the first start has set another currency.
pub async fn check_fixed_settings(app: &App) -> anyhow::Result<()> {
    let mut reader = app.db.read().await?;
    let query = reader.query("select value from fixed_settings where name = 'currency'");
    let stored: Option<String> = query.optional_scalar().await?;
    let currency = app.settings.currency;
    match stored {
        Some(stored) if stored != currency.code => {
            let problem = format!(
                "--currency (BOXOFFICE_CURRENCY): it is {currency}, but all amounts in this database are in {stored}; start with \
                 --currency {stored}, or with another database"
            );
            InvalidSettings::reject([Some(problem)])
        }
        _ => Ok(()),
    }
}

/// Stores the settings that later starts can't change, unless they are stored already.
///
/// # Errors
/// Returns an error if another program has just stored other settings, or the database fails.
pub async fn store_fixed_settings(app: &App) -> anyhow::Result<()> {
    let insert = "insert into fixed_settings (name, value) values ('currency', $1) on conflict (name) do nothing";
    let stored = transaction!(app.db, |tx| tx.query(insert).bind(app.settings.currency.code.to_owned()).execute().await);
    stored?;
    check_fixed_settings(app).await
}

/// Stores the public key with which other servers verify the codes of tickets of this server, unless it is stored.
///
/// # Errors
/// Returns an error if the database fails.
pub async fn store_ticket_key(app: &App) -> anyhow::Result<()> {
    let key = &app.ticket_keys.own;
    let mut reader = app.db.read().await?;
    if tickets::is_registered(&mut reader, key).await? {
        return Ok(());
    }
    drop(reader);
    let now = app.clock.now();
    transaction!(app.db, |tx| tickets::register_key(tx, key, now).await).map_err(Into::into)
}
