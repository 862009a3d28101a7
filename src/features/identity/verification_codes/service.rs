//! What verifications and resets mean.

use std::time::Duration;

use super::model::{CodePurpose, CodeRow, CodeStatus, CodeValidity, Digits, Identifier, VerificationCode};
use super::store;
use crate::features::identity::accounts::{self, AccountRow};
use crate::state::App;
use crate::kernel::auth;
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::secret;
use crate::kernel::db::{Tx, transaction};
use boxoffice_http::error::{Code as Refusal, Error, Result};
use crate::kernel::outbox::{self, Mail};

/// How long a code counts (decisions).
const LIFE: Duration = Duration::from_secs(15 * 60);
/// How often a code may be tried (decisions).
const TRIES: i64 = 5;
/// How often the codes of one kind of an account may be tried in a day, all of them together. Who asks for one code after the other
/// would guess one of them in the end.
const DAILY_TRIES: i64 = 50;
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Makes a code for the account with this e-mail address and mails it. Earlier ones of the account count no more.
pub async fn request(app: &App, kind: CodePurpose, email: &str) -> Result<VerificationCode> {
    let (identifier, digits) = (secret::api_key(), secret::verification_code());
    let row = transaction!(app.db, |tx| make(app, tx, kind, email, &identifier, &digits).await)?;
    Ok(VerificationCode { identifier: Identifier(identifier), row, standing: CodeValidity::Open })
}

async fn make(app: &App, tx: &mut Tx, kind: CodePurpose, email: &str, identifier: &str, digits: &str) -> Result<CodeRow> {
    let account = accounts::lock_by_email(tx, email).await?;
    let account = account.ok_or_else(|| Refusal::AccountUnknown.with_message("No account has this e-mail address."))?;
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
pub async fn get(app: &App, kind: CodePurpose, identifier: Identifier) -> Result<VerificationCode> {
    Ok(look_up(app, kind, identifier).await?.0)
}

/// A code and its account.
async fn look_up(app: &App, kind: CodePurpose, identifier: Identifier) -> Result<(VerificationCode, AccountRow)> {
    let now = app.clock.now();
    let mut tx = app.db.read().await?;
    let row = store::find(&mut tx, kind, &secret::hash(&identifier.0)).await?.ok_or(Error::NOT_FOUND)?;
    let account = accounts::find(&mut tx, row.account_id).await?.ok_or(Error::NOT_FOUND)?;
    let standing = match row.status {
        CodeStatus::Used => CodeValidity::Used,
        CodeStatus::Pending if row.expires > now && row.tries < TRIES && email_unchanged(&account, &row) => {
            if within_attempt_limit(&mut tx, &row, now).await? {
                CodeValidity::Open
            } else {
                CodeValidity::Over
            }
        }
        CodeStatus::Pending | CodeStatus::Closed => CodeValidity::Over,
    };
    Ok((VerificationCode { identifier, row, standing }, account))
}

/// Uses a code: verifies its account or, with a reset's, gives it `password`.
///
/// Against the usual order of checks, whether the code still counts is asked before the digits are looked at: who has used up
/// the tries learns nothing more about them. Whatever is told of the digits costs a try, that they are right too, as it is told
/// by the refusal of a password.
pub async fn redeem(
    app: &App,
    kind: CodePurpose,
    identifier: Identifier,
    given: Digits,
    password: Option<String>,
) -> Result<VerificationCode> {
    let (mut code, account) = look_up(app, kind, identifier).await?;
    if code.standing != CodeValidity::Open {
        return Err(kind.closed());
    }
    let right = code_hash(&code.identifier.0, &given.0) == code.row.code_hash;
    let given = match (right, password) {
        (false, _) => Err(Error::invalid("code", "is not the one that was sent")),
        (true, None) => Ok(None),
        (true, Some(password)) => match auth::require_uncommon(&password, [&account.username, &account.email]) {
            Ok(()) => Ok(Some(app.passwords.hash(password).await?)),
            Err(refusal) => Err(refusal),
        },
    };
    transaction!(app.db, |tx| record_attempt(app, tx, &code.row, &given).await)?;
    // What is wrong with it is told only now that the try is counted for good.
    given?;
    code.standing = CodeValidity::Used;
    Ok(code)
}

/// Counts a try and, when what was given is right, does what the code is for: gives the account the password of this hash, or
/// verifies it where there is none. The account is locked first, here as where codes are made.
async fn record_attempt(app: &App, tx: &mut Tx, code: &CodeRow, given: &Result<Option<String>>) -> Result<()> {
    let now = app.clock.now();
    let account = accounts::lock(tx, code.account_id).await?.ok_or(Error::NOT_FOUND)?;
    let counts = email_unchanged(&account, code) && within_attempt_limit(tx, code, now).await?;
    if !counts || !store::count_try(tx, &code.hash, now, TRIES).await? {
        return Err(code.kind.closed());
    }
    if let Ok(password_hash) = given {
        store::set_used(tx, &code.hash).await?;
        match password_hash {
            Some(hash) => accounts::set_password(tx, account.id, hash, now).await?,
            None => accounts::set_verified(tx, account.id).await?,
        }
    }
    if !within_attempt_limit(tx, code, now).await? {
        // For good: whoever asked at the same moment, and knows by the time that it took what was right, has no more use for it
        // when a day has passed.
        store::close(tx, code.kind, account.id).await?;
    }
    Ok(())
}

/// Whether the day's tries of the codes of this kind are not used up.
async fn within_attempt_limit(tx: &mut Tx, code: &CodeRow, now: Timestamp) -> Result<bool> {
    Ok(store::tries_since(tx, code.kind, code.account_id, now.minus(DAY)).await? < DAILY_TRIES)
}

/// Whether the account still has the e-mail address that the code went to.
fn email_unchanged(account: &AccountRow, code: &CodeRow) -> bool {
    account.email.eq_ignore_ascii_case(&code.email)
}

/// What is kept of a code: without the identifier, which is kept nowhere, nobody finds the digits by trying.
fn code_hash(identifier: &str, digits: &str) -> String {
    secret::hash(&format!("{identifier} {digits}"))
}

fn mail<'a>(app: &App, code: &'a CodeRow, account: &AccountRow, digits: &str) -> Mail<'a> {
    let (subject, purpose) = match code.kind {
        CodePurpose::Verification => ("Your verification code", "verifies this e-mail address"),
        CodePurpose::Reset => ("Your code for a new password", "lets you choose a new password"),
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
