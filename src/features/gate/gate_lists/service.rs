//! Loading and signing a page of a gate list.

use std::collections::BTreeMap;
use std::time::Duration;

use boxoffice_http::error::{Error, Result};
use data_encoding::BASE64URL_NOPAD;
use serde_json::json;

use super::model::{GateList, GateListContent, GateListQuery, GateListTickets, UtcSecond};
use crate::features::catalog::{events, sections, tokens};
use crate::features::sales::tickets::{self, TicketStatus};
use crate::kernel::auth::Caller;
use crate::kernel::signing::SigningKey;
use crate::kernel::types::api_types::{NullableField, Uri};
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::Id;
use crate::state::Ctx;

/// Number of tickets on a page, which bounds the memory of a request. A page has about 35 bytes for each.
const PAGE_TICKETS: i64 = 10_000;
/// A load of changes begins this long before the previous load. A change that was being saved during the previous load has a time
/// before it, and is returned now.
const OVERLAP: Duration = Duration::from_secs(60);

/// Returns a page of the tickets to which the caller may admit.
pub async fn get(ctx: &Ctx, caller: &Caller, event: Id, query: &GateListQuery) -> Result<GateList> {
    // Before the read, so that the next load has all changes after it.
    let now = ctx.app.clock.now();
    // A gate loads the complete list if its sections have changed, so they must be those of the tickets.
    let mut reader = ctx.unit.read_snapshot().await?;
    let event = events::load(&mut reader, event).await?;
    let scope = tokens::authorize(&mut reader, caller, &event).await?;
    scope.require_token(&mut reader).await?;
    let sections = tokens::sections_in_scope(&mut reader, event.id, scope).await?;
    // All pages of a load select the same tickets, also if the time comes meanwhile.
    let since = query.modified_since.map(|since| tickets::or_all_if_future(since.0, now));
    let rows = tickets::list_for_gate(&mut reader, event.id, scope, since, query.after(), PAGE_TICKETS).await?;
    reader.end().await?;
    let is_full = i64::try_from(rows.len()).is_ok_and(|count| count == PAGE_TICKETS);
    let last = rows.last().map(|row| row.id).filter(|_| is_full);
    let mut groups: BTreeMap<(Id, &str), (TicketStatus, Vec<String>)> = BTreeMap::new();
    for row in rows {
        let (_, digests) = groups.entry((row.section_id, row.status.into())).or_insert((row.status, Vec::new()));
        digests.push(tickets::digest(&row.serial));
    }
    let group = |((section, _), (status, digests)): ((Id, &str), (TicketStatus, Vec<String>))| GateListTickets {
        section: sections::uri(event.id, section),
        status,
        digests,
    };
    let content = GateListContent {
        event: events::uri(event.id),
        status: event.status,
        admission_from: event.admission_from.map(Timestamp::format_rfc3339),
        token: scope.token().map(|token| tokens::uri(event.id, token)),
        created: now.format_rfc3339(),
        modified_since: since.map(utc_second),
        sections: sections.into_iter().map(|section| sections::uri(event.id, section)).collect(),
        tickets: groups.into_iter().map(group).collect(),
    };
    let of_changes = since.map(|since| format!("&modified_since={}", utc_second(since).0)).unwrap_or_default();
    let next = last.map(|last| Uri(format!("/events/{}/gate-list?after={last}{of_changes}", event.id)));
    let list = sign(&ctx.app.ticket_keys.own, &content)?;
    Ok(GateList { list, next: NullableField(next), modified_since: utc_second(now.minus(OVERLAP)) })
}

/// Returns the content as a JSON Web Signature in compact form (RFC 7515) with Ed25519 (RFC 8037).
fn sign(key: &SigningKey, content: &GateListContent) -> Result<String> {
    let header = json!({ "alg": "EdDSA", "kid": key.id.to_string(), "typ": "gate-list" });
    let content = serde_json::to_vec(content).map_err(|error| Error::Internal(error.into()))?;
    let signed = format!("{}.{}", BASE64URL_NOPAD.encode(header.to_string().as_bytes()), BASE64URL_NOPAD.encode(&content));
    let signature = BASE64URL_NOPAD.encode(&key.sign(signed.as_bytes()));
    Ok(format!("{signed}.{signature}"))
}

/// Returns the second of a time. A `+` in a query would be a space.
fn utc_second(time: Timestamp) -> UtcSecond {
    UtcSecond(time.format_rfc3339().replace("+00:00", "Z"))
}
