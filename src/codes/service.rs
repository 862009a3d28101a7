//! What verifications and resets mean.

use std::time::Duration;

use super::model::{Code, CodeRow, CodeStatus, Digits, Identifier, Kind, Standing};
use super::store;
use crate::accounts::{self, AccountRow};
use crate::app::App;
use crate::auth;
use crate::base::secret;
use crate::db::{Tx, transaction};
use crate::error::{Code as Refusal, Error, Result};
use crate::outbox::{self, Mail};

/// How long a code counts (decisions).
const LIFE: Duration = Duration::from_secs(15 * 60);
/// How often a code may be tried (decisions).
const TRIES: i64 = 5;
/// How often the codes of one kind of an account may be tried in a day, all of them together. Who asks for one code after the other
/// would guess one of them in the end.
const DAILY_TRIES: i64 = 50;
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Makes a code for the account with this e-mail address and mails it. Earlier ones of the account count no more.
pub async fn request(app: &App, kind: Kind, email: &str) -> Result<Code> {
    let (identifier, digits) = (secret::api_key(), secret::mailed_code());
    let row = transaction!(app.db, |tx| make(app, tx, kind, email, &identifier, &digits).await)?;
    Ok(Code { identifier: Identifier(identifier), row, standing: Standing::Open })
}

async fn make(app: &App, tx: &mut Tx, kind: Kind, email: &str, identifier: &str, digits: &str) -> Result<CodeRow> {
    let account = accounts::lock_by_email(tx, email).await?;
    let account = account.ok_or_else(|| Refusal::AccountUnknown.because("No account has this e-mail address."))?;
    store::close(tx, kind, account.id).await?;
    store::delete_expired(tx, account.id, app.clock.now().minus(DAY)).await?;
    let row = CodeRow {
        hash: secret::hash(identifier),
        kind,
        account_id: account.id,
        code_hash: code_hash(identifier, digits),
        expires: app.clock.now().plus(LIFE),
        tries: 0,
        status: CodeStatus::Pending,
        email: account.email.clone(),
    };
    store::insert(tx, &row).await?;
    outbox::push(app, tx, [mail(app, &row, &account, digits)]).await?;
    Ok(row)
}

/// A code, for whoever knows its identifier.
pub async fn get(app: &App, kind: Kind, identifier: Identifier) -> Result<Code> {
    let mut tx = app.db.read().await?;
    let row = store::find(&mut tx, kind, &secret::hash(&identifier.0)).await?.ok_or(Error::NOT_FOUND)?;
    let account = accounts::find(&mut tx, row.account_id).await?.ok_or(Error::NOT_FOUND)?;
    let standing = match row.status {
        CodeStatus::Used => Standing::Used,
        CodeStatus::Pending if row.expires > app.clock.now() && row.tries < TRIES && is_still_at(&account, &row) => {
            Standing::Open
        }
        CodeStatus::Pending | CodeStatus::Closed => Standing::Over,
    };
    Ok(Code { identifier, row, standing })
}

/// Uses a code: verifies its account or, with a reset's, gives it `password`.
///
/// Against the usual order of checks, whether the code still counts is asked before the digits are looked at: who has used up
/// the tries learns nothing more about them.
pub async fn redeem(app: &App, kind: Kind, identifier: Identifier, given: Digits, password: Option<String>) -> Result<Code> {
    let mut code = get(app, kind, identifier).await?;
    if code.standing != Standing::Open {
        return Err(kind.closed());
    }
    let right = code_hash(&code.identifier.0, &given.0) == code.row.code_hash;
    let password = match password {
        Some(password) if right => {
            let account = accounts::find(&mut app.db.read().await?, code.row.account_id).await?.ok_or(Error::NOT_FOUND)?;
            // No try is used up by this, nor the code: its holder sends it again with another password.
            auth::require_uncommon(&password, [&account.username, &account.email])?;
            Some(app.passwords.hash(password).await?)
        }
        _ => None,
    };
    transaction!(app.db, |tx| try_it(app, tx, &code.row, right, password.as_deref()).await)?;
    if !right {
        // Only now that the try is counted for good.
        return Err(Error::invalid("code", "is not the one that was sent"));
    }
    code.standing = Standing::Used;
    Ok(code)
}

/// Counts a try, and does what the code is for when it is right. The account is locked first, here as where codes are made.
async fn try_it(app: &App, tx: &mut Tx, code: &CodeRow, right: bool, password_hash: Option<&str>) -> Result<()> {
    let now = app.clock.now();
    let account = accounts::lock(tx, code.account_id).await?.ok_or(Error::NOT_FOUND)?;
    let is_patient = store::tries_since(tx, code.kind, account.id, now.minus(DAY)).await? < DAILY_TRIES;
    if !is_still_at(&account, code) || !is_patient || !store::count_try(tx, &code.hash, now, TRIES).await? {
        return Err(code.kind.closed());
    }
    if !right {
        return Ok(());
    }
    store::set_used(tx, &code.hash).await?;
    match password_hash {
        Some(hash) => accounts::set_password(tx, account.id, hash, now).await,
        None => accounts::set_verified(tx, account.id).await,
    }
}

/// Whether the account still has the e-mail address that the code went to.
fn is_still_at(account: &AccountRow, code: &CodeRow) -> bool {
    account.email.to_lowercase() == code.email.to_lowercase()
}

/// What is kept of a code: without the identifier, which is kept nowhere, nobody finds the digits by trying.
fn code_hash(identifier: &str, digits: &str) -> String {
    secret::hash(&format!("{identifier} {digits}"))
}

fn mail<'a>(app: &App, code: &'a CodeRow, account: &AccountRow, digits: &str) -> Mail<'a> {
    let (subject, purpose) = match code.kind {
        Kind::Verification => ("Your verification code", "verifies this e-mail address"),
        Kind::Reset => ("Your code for a new password", "lets you choose a new password"),
    };
    let until = code.expires.to_minutes().replace('T', " ");
    let body = format!(
        "Hello {username},\n\nthis code {purpose} at {place}:\n\n    {digits}\n\nIt counts until {until} UTC, and once.\n\n\
         If you did not ask for it, you need do nothing: without the code nothing changes.\n",
        username = account.username,
        place = app.settings.public_url,
    );
    Mail { recipient: &code.email, subject, body }
}
