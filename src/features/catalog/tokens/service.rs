//! Operations on admission tokens. Administrators of the event's host and platform administrators manage them.

use std::collections::{BTreeSet, HashMap};
use std::net::IpAddr;

use boxoffice_http::client_ip::rate_limit_key;
use boxoffice_http::error::{Code, Error, Result, reject_if};
use boxoffice_openapi::Scope;

use super::model::{
    GivenCode, GivenSection, RedeemerKey, Token, TokenAuthentication, TokenCode, TokenCreate, TokenFilter, TokenRow, TokenUpdate,
};
use super::{model, store};
use crate::features::catalog::events;
use crate::features::catalog::hosts;
use crate::features::catalog::sections::{self, SectionUri};
use crate::features::codes;
use crate::kernel::auth::{self, ADMISSION_LIFE, Caller, KeyKind, NewKey};
use crate::kernel::db::{Reader, Tx, transaction};
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::Id;
use crate::kernel::types::paging::Page;
use crate::kernel::types::secret;
use crate::state::{App, Ctx};

/// Maximum number of admission tokens of an event.
const MAX_TOKENS: i64 = 1000;
/// Maximum number of valid keys of an admission token. More devices than that don't admit with one token.
const MAX_KEYS: i64 = 1000;
const NO_SECTION: &str = "names no section of this event";

pub async fn list(ctx: &Ctx, caller: &Caller, event: Id, filter: &TokenFilter) -> Result<Page<Token>> {
    let mut reader = ctx.unit.read().await?;
    events::load_managed(&mut reader, caller, event).await?;
    let page = store::list(&mut reader, event, filter).await?;
    let entries = views(&mut reader, event, page.rows).await?;
    Ok(filter.paging.page(page.total, entries))
}

pub async fn create(ctx: &Ctx, caller: &Caller, event: Id, new: &TokenCreate) -> Result<Token> {
    transaction!(ctx.unit, |tx| {
        // Locked, so that concurrent requests can't exceed the limit.
        events::lock_managed(tx, caller, event).await?;
        let sections = read_sections(tx, event, &new.sections).await?;
        reject_if(store::count_of_event(tx, event).await? >= MAX_TOKENS, codes::TOKEN_TOO_MANY)?;
        let row = insert(&ctx.app, tx, event, false, new.name.as_deref().unwrap_or_default()).await?;
        store::insert_sections(tx, row.id, &sections).await?;
        view(tx, row).await
    })
}

/// Creates the global token of a new event.
pub async fn create_global(app: &App, tx: &mut Tx, event: Id) -> Result<()> {
    insert(app, tx, event, true, "").await?;
    Ok(())
}

pub async fn get(ctx: &Ctx, caller: &Caller, event: Id, token: Id) -> Result<Token> {
    let mut reader = ctx.unit.read().await?;
    let event = events::load(&mut reader, event).await?;
    let row = store::find(&mut reader, event.id, token).await?.ok_or(Error::NOT_FOUND)?;
    hosts::require_administrator(&mut reader, caller, event.host_id).await?;
    view(&mut reader, row).await
}

pub async fn update(ctx: &Ctx, caller: &Caller, event: Id, token: Id, change: &TokenUpdate) -> Result<Token> {
    transaction!(ctx.unit, |tx| {
        let mut row = lock_managed(tx, caller, event, token).await?;
        let sections = match &change.sections {
            Some(uris) => Some(read_sections(tx, event, uris).await?),
            None => None,
        };
        require_not_global(&row, "The global token covers every section of its event and can't be changed.")?;
        if let Some(sections) = sections {
            store::delete_sections(tx, token).await?;
            store::insert_sections(tx, token, &sections).await?;
        }
        if let Some(name) = &change.name {
            store::set_name(tx, token, name).await?;
            row.name.clone_from(name);
        }
        view(tx, row).await
    })
}

pub async fn delete(ctx: &Ctx, caller: &Caller, event: Id, token: Id) -> Result<()> {
    transaction!(ctx.unit, |tx| {
        let row = lock_managed(tx, caller, event, token).await?;
        require_not_global(&row, "The global token of an event can't be removed.")?;
        store::end_keys(tx, token, ctx.app.clock.now()).await?;
        store::delete(tx, token).await
    })
}

/// Gives a token a new code, and ends the keys that were issued for it.
pub async fn replace_code(ctx: &Ctx, caller: &Caller, event: Id, token: Id) -> Result<Token> {
    transaction!(ctx.unit, |tx| {
        let mut row = lock_managed(tx, caller, event, token).await?;
        row.code = secret::token_code();
        while !store::set_code(tx, token, &row.code).await? {
            row.code = secret::token_code();
        }
        store::end_keys(tx, token, ctx.app.clock.now()).await?;
        view(tx, row).await
    })
}

/// Exchanges a code for a key, for a client at this address. Codes that no token has are limited by address: a code has eight characters,
/// and a client with many keys could otherwise try codes until it finds one.
pub async fn authenticate(ctx: &Ctx, address: IpAddr, code: &GivenCode) -> Result<TokenAuthentication> {
    // Counted before the look-up, so that concurrent requests can't exceed the limit.
    let counted = ctx.app.limits.token_codes.count(rate_limit_key(address))?;
    let outcome = transaction!(ctx.unit, |tx| authenticate_in_tx(&ctx.app, tx, code).await);
    if !matches!(outcome, Err(Error::Rejected(Code::RESOURCE_NOT_FOUND, _))) {
        counted.release();
    }
    outcome
}

/// Issues a key for a code. Locks the token, so that its removal also ends this key, and so that concurrent requests can't exceed the
/// maximum of keys: without one, they would pile up until the end of the event, which may have none.
async fn authenticate_in_tx(app: &App, tx: &mut Tx, code: &GivenCode) -> Result<TokenAuthentication> {
    let row = store::lock_by_code(tx, code.0.to_ascii_uppercase()).await?.ok_or(Error::NOT_FOUND)?;
    let ends = events::load(tx, row.event_id).await?.ends;
    reject_if(ends.plus(ADMISSION_LIFE) <= app.clock.now(), Error::NOT_FOUND)?;
    store::delete_oldest_keys(tx, row.id, MAX_KEYS - 1).await?;
    let new = NewKey {
        kind: KeyKind::Admission,
        name: "Admission token",
        scope: Scope::Redeemer,
        account: None,
        token: Some(row.id),
        expires: None,
    };
    let (_, key) = auth::issue(app, tx, &new).await?;
    let event = events::uri(row.event_id);
    let token = view(tx, row).await?;
    Ok(TokenAuthentication { key: RedeemerKey(key), event, sections: token.sections })
}

/// Job step: deletes some keys of admission tokens that ended or expired before this time. Returns their number.
///
/// # Errors
/// Returns an error if the database fails.
pub async fn delete_expired_keys_before(ctx: &Ctx, before: Timestamp) -> Result<u64> {
    transaction!(ctx.unit, |tx| store::delete_keys(tx, before, before.minus(ADMISSION_LIFE)).await)
}

/// Inserts a token of a new or locked event. Retries with another code if another token has the same one.
async fn insert(app: &App, tx: &mut Tx, event: Id, global: bool, name: &str) -> Result<TokenRow> {
    loop {
        let (id, code) = (app.clock.next_id(), secret::token_code());
        let row = TokenRow { id, event_id: event, code, name: name.to_owned(), global };
        if store::insert(tx, &row).await? {
            return Ok(row);
        }
    }
}

/// Locks and returns a token and locks its event, if the caller may manage it. The event's sections stay until the transaction
/// ends.
async fn lock_managed(tx: &mut Tx, caller: &Caller, event: Id, token: Id) -> Result<TokenRow> {
    let event = events::lock(tx, event).await?.ok_or(Error::NOT_FOUND)?;
    store::find(tx, event.id, token).await?.ok_or(Error::NOT_FOUND)?;
    hosts::lock_administrator(tx, caller, event.host_id).await?;
    store::lock(tx, event.id, token).await?.ok_or(Error::NOT_FOUND)
}

fn require_not_global(row: &TokenRow, text: &'static str) -> Result<()> {
    if row.global { Err(codes::TOKEN_GLOBAL.with_message(text)) } else { Ok(()) }
}

/// Parses the sections in a request and removes duplicates, in either form of URI. All of them must be sections of this event,
/// which is locked.
async fn read_sections(reader: &mut Reader, event: Id, uris: &[GivenSection]) -> Result<Vec<Id>> {
    let of_event: BTreeSet<Id> = store::sections_of_event(reader, event).await?.into_iter().collect();
    let parse = |uri: &GivenSection| {
        let uri = SectionUri::parse(&uri.0)?;
        (uri.event.is_none_or(|id| id == event) && of_event.contains(&uri.section)).then_some(uri.section)
    };
    let sections: Vec<Option<Id>> = uris.iter().map(parse).collect();
    let unknown: Vec<String> =
        sections.iter().enumerate().filter(|(_, section)| section.is_none()).map(|(index, _)| index.to_string()).collect();
    if !unknown.is_empty() {
        return Err(Error::invalid("sections", format!("{NO_SECTION} (at {})", unknown.join(", "))));
    }
    Ok(sections.into_iter().flatten().collect::<BTreeSet<_>>().into_iter().collect())
}

async fn view(reader: &mut Reader, row: TokenRow) -> Result<Token> {
    let event = row.event_id;
    let mut views = views(reader, event, vec![row]).await?;
    views.pop().ok_or(Error::NOT_FOUND)
}

/// Returns the representation of tokens of one event, with their sections.
async fn views(reader: &mut Reader, event: Id, rows: Vec<TokenRow>) -> Result<Vec<Token>> {
    let all_sections =
        if rows.iter().any(|row| row.global) { store::sections_of_event(reader, event).await? } else { Vec::new() };
    let token_ids: Vec<Id> = rows.iter().filter(|row| !row.global).map(|row| row.id).collect();
    let mut sections_by_token: HashMap<Id, Vec<Id>> = HashMap::new();
    for (token, section) in store::sections_of_tokens(reader, &token_ids).await? {
        sections_by_token.entry(token).or_default().push(section);
    }
    let view = |row: TokenRow| {
        let sections = if row.global { Some(&all_sections) } else { sections_by_token.get(&row.id) };
        Token {
            uri: model::uri(event, row.id),
            code: TokenCode(row.code),
            name: row.name,
            global: row.global,
            sections: sections.into_iter().flatten().map(|section| sections::uri(event, *section)).collect(),
        }
    };
    Ok(rows.into_iter().map(view).collect())
}
