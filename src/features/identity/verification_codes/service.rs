//! Operations on e-mail verifications and password resets.

use std::net::IpAddr;
use std::time::Duration;

use boxoffice_http::error::{Error, Result};
use boxoffice_http::rate_limit::RateLimitStatus;
use serde_json::json;

use super::model::{CodeGroup, CodePurpose, CodeRow, CodeStatus, CodeValidity, Digits, EmailInput, Identifier, VerificationCode};
use super::store;
use crate::features::codes;
use crate::features::identity::accounts::{self, AccountRow};
use crate::features::identity::sessions;
use crate::kernel::auth::HashRequester;
use crate::kernel::db::{Reader, Tx, transaction};
use crate::kernel::outbox::{self, Mail, MailTemplate, Recipient};
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::Id;
use crate::kernel::types::secret;
use crate::state::{App, Ctx};

/// Validity period of a code.
const CODE_LIFETIME: Duration = Duration::from_secs(15 * 60);
/// Maximum number of attempts at one code.
const MAX_ATTEMPTS: i64 = 5;
/// Maximum number of attempts per day at all codes of a [`CodeGroup`]. Without this limit, a client could request one code
/// after another until it guesses one.
const MAX_DAILY_ATTEMPTS: i64 = 50;
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// The request of a code by a client.
struct CodeRequest<'a> {
    kind: CodePurpose,
    email: &'a str,
    /// The account with this e-mail address, if someone has signed in to it from the address of the client before.
    known_account: Option<Id>,
}

/// Creates a code for the account with this e-mail address and mails it, for a client at this address. Closes the account's earlier
/// codes of the same [`CodeGroup`].
///
/// The number of codes for an e-mail address is limited. Otherwise, an attacker could send its owner any number of mails, also by
/// giving the address to one account after another, and invalidate each code before its owner can use it. Addresses from which
/// someone has signed in to the account have a limit of their own, which others can't use up.
pub async fn request(ctx: &Ctx, kind: CodePurpose, address: IpAddr, email: &EmailInput) -> Result<VerificationCode> {
    let email = email.0.trim();
    let known_account = known_account(ctx, address, email).await?;
    let counted = ctx.app.limits.codes.count((kind, email.to_ascii_lowercase(), known_account.is_some()))?;
    let code = create(ctx, &CodeRequest { kind, email, known_account }).await;
    if code.is_err() {
        counted.release();
    }
    code
}

/// Returns the active account with this e-mail address, if someone has signed in to it from this address.
async fn known_account(ctx: &Ctx, address: IpAddr, email: &str) -> Result<Option<Id>> {
    let account = accounts::id_of_email(&mut ctx.unit.read().await?, email).await?;
    Ok(match account {
        Some(account) if sessions::is_known_address(ctx, account, address).await? => Some(account),
        _ => None,
    })
}

async fn create(ctx: &Ctx, request: &CodeRequest<'_>) -> Result<VerificationCode> {
    let (identifier, digits) = (secret::api_key(), secret::verification_code());
    let row = transaction!(ctx.unit, |tx| create_in_tx(&ctx.app, tx, request, &identifier, &digits).await)?;
    Ok(VerificationCode { identifier: Identifier(identifier), row, validity: CodeValidity::Open })
}

async fn create_in_tx(app: &App, tx: &mut Tx, request: &CodeRequest<'_>, identifier: &str, digits: &str) -> Result<CodeRow> {
    let account = accounts::lock_by_email(tx, request.email).await?;
    let account = account.ok_or_else(|| codes::ACCOUNT_UNKNOWN.with_message("No account has this e-mail address."))?;
    // By now, another account may have the e-mail address.
    let known_address = request.known_account == Some(account.id);
    let group = CodeGroup { kind: request.kind, account: account.id, known_address };
    reject_without_attempts(tx, group, app.clock.now()).await?;
    store::close(tx, group).await?;
    store::delete_expired(tx, account.id, app.clock.now().minus(DAY)).await?;
    let row = CodeRow {
        hash: secret::hash(identifier),
        kind: request.kind,
        account_id: account.id,
        code_hash: code_hash(identifier, digits),
        expires: app.clock.now().plus(CODE_LIFETIME),
        tries: 0,
        status: CodeStatus::Pending,
        email: account.email.clone(),
        known_address,
    };
    store::insert(tx, &row).await?;
    outbox::push_until(app, tx, [mail(&row, &account, digits)], row.expires).await?;
    Ok(row)
}

/// Returns the code with this identifier. The identifier is a secret, so no other permission is required.
pub async fn get(ctx: &Ctx, kind: CodePurpose, identifier: Identifier) -> Result<VerificationCode> {
    Ok(look_up(ctx, kind, identifier).await?.0)
}

/// Returns a code and its account.
async fn look_up(ctx: &Ctx, kind: CodePurpose, identifier: Identifier) -> Result<(VerificationCode, AccountRow)> {
    let now = ctx.app.clock.now();
    let mut reader = ctx.unit.read().await?;
    let row = store::find(&mut reader, kind, &secret::hash(&identifier.0)).await?.ok_or(Error::NOT_FOUND)?;
    let account = accounts::find(&mut reader, row.account_id).await?.ok_or(Error::NOT_FOUND)?;
    let validity = match row.status {
        CodeStatus::Used => CodeValidity::Used,
        CodeStatus::Pending if row.expires > now && row.tries < MAX_ATTEMPTS && email_unchanged(&account, &row) => {
            if within_attempt_limit(&mut reader, row.group(), now).await? {
                CodeValidity::Open
            } else {
                CodeValidity::Over
            }
        }
        CodeStatus::Pending | CodeStatus::Closed => CodeValidity::Over,
    };
    Ok((VerificationCode { identifier, row, validity }, account))
}

/// Redeems a code: verifies the account's e-mail address or, for a reset, sets `password`, which comes from a client at this
/// address.
///
/// Unlike in other operations, the code's validity is checked before the digits, so that a client without attempts left learns
/// nothing more about them. Every response that reveals if the digits were correct counts as an attempt, including the rejection of
/// the account's own names as its password. A common password is rejected before the digits are looked at, and does not count.
pub async fn redeem(
    ctx: &Ctx,
    kind: CodePurpose,
    identifier: Identifier,
    digits: Digits,
    password: Option<(String, IpAddr)>,
) -> Result<VerificationCode> {
    let (mut code, account) = look_up(ctx, kind, identifier).await?;
    if code.validity != CodeValidity::Open {
        return Err(kind.closed());
    }
    let is_common = |(password, _): &(String, IpAddr)| ctx.app.passwords.weakness(password, &[]);
    if let Some(weakness) = password.as_ref().and_then(is_common) {
        return Err(Error::Invalid(vec![weakness]));
    }
    let is_correct = code_hash(&code.identifier.0, &digits.0) == code.row.code_hash;
    let outcome = match (is_correct, password) {
        (false, _) => Err(Error::invalid("code", "is not the one that was sent")),
        (true, None) => Ok(None),
        (true, Some((password, address))) => match ctx.app.passwords.weakness(&password, &[&account.username, &account.email]) {
            None => {
                let requester = HashRequester { account: Some(account.id), address: Some(address) };
                Ok(Some(ctx.app.passwords.hash(requester, password).await?))
            }
            Some(weakness) => Err(Error::Invalid(vec![weakness])),
        },
    };
    transaction!(ctx.unit, |tx| record_attempt(&ctx.app, tx, &code.row, &outcome).await)?;
    // Return the error only after the attempt has been committed.
    outcome?;
    code.validity = CodeValidity::Used;
    Ok(code)
}

/// Job step: deletes some codes that expired before this time. Returns their number.
///
/// # Errors
/// Returns an error if the database fails.
pub async fn delete_expired_before(ctx: &Ctx, before: Timestamp) -> Result<u64> {
    transaction!(ctx.unit, |tx| store::delete_expired_before(tx, before).await)
}

/// Corrects the codes that were created while the clock was ahead: at a time after `latest`. They end as if they had been created
/// now. Returns their number.
pub async fn correct_future(tx: &mut Tx, now: Timestamp, latest: Timestamp) -> Result<u64> {
    store::set_end(tx, latest.plus(CODE_LIFETIME), now.plus(CODE_LIFETIME)).await
}

/// Counts an attempt. If the input was accepted, marks the code as used, and sets the password with this hash, or verifies the
/// e-mail address if there is no hash. Locks the account first, like the creation of codes.
async fn record_attempt(app: &App, tx: &mut Tx, code: &CodeRow, outcome: &Result<Option<String>>) -> Result<()> {
    let now = app.clock.now();
    let account = accounts::lock(tx, code.account_id).await?.ok_or(Error::NOT_FOUND)?;
    let counts = email_unchanged(&account, code) && within_attempt_limit(tx, code.group(), now).await?;
    if !counts || !store::count_try(tx, &code.hash, now, MAX_ATTEMPTS).await? {
        return Err(code.kind.closed());
    }
    if let Ok(password_hash) = outcome {
        store::set_used(tx, &code.hash).await?;
        match password_hash {
            Some(hash) => accounts::reset_password(app, tx, &account, hash).await?,
            None => accounts::set_verified(tx, account.id).await?,
        }
    }
    if !within_attempt_limit(tx, code.group(), now).await? {
        // Close the codes permanently. A client that sent several attempts at once may learn from the response times which digits
        // were correct, and must not be able to use them a day later.
        store::close(tx, code.group()).await?;
    }
    Ok(())
}

/// Returns whether any attempts are left today for these codes.
async fn within_attempt_limit(reader: &mut Reader, codes: CodeGroup, now: Timestamp) -> Result<bool> {
    Ok(store::tries_since(reader, codes, now.minus(DAY)).await? < MAX_DAILY_ATTEMPTS)
}

/// Rejects the request of a code that would accept no attempt.
async fn reject_without_attempts(reader: &mut Reader, codes: CodeGroup, now: Timestamp) -> Result<()> {
    if within_attempt_limit(reader, codes, now).await? {
        return Ok(());
    }
    // The attempts at the first code are the first that no longer count.
    let first = store::first_end(reader, codes, now.minus(DAY)).await?;
    let wait = first.unwrap_or(now).plus(DAY).seconds() - now.seconds();
    let wait = Duration::from_secs(u64::try_from(wait).unwrap_or_default());
    Err(Error::TooMany(Box::new(RateLimitStatus::exceeded("attempts", MAX_DAILY_ATTEMPTS as u32, DAY, wait))))
}

/// Returns whether the account still has the e-mail address that the code was sent to.
fn email_unchanged(account: &AccountRow, code: &CodeRow) -> bool {
    account.email.eq_ignore_ascii_case(&code.email)
}

/// Returns the stored hash of the digits. It includes the identifier, which is not stored, so that the digits can't be found by
/// hashing all combinations.
fn code_hash(identifier: &str, digits: &str) -> String {
    secret::hash(&format!("{identifier} {digits}"))
}

fn mail<'a>(code: &'a CodeRow, account: &AccountRow, digits: &str) -> Mail<'a> {
    let template = match code.kind {
        CodePurpose::Verification => MailTemplate::VerificationCode,
        CodePurpose::Reset => MailTemplate::PasswordReset,
    };
    let recipient = Recipient::Address { account: account.id, email: &code.email, language: account.language };
    let values = json!({ "name": account.greeting(), "code": digits, "expires": code.expires.0 });
    Mail { recipient, template, values }
}
