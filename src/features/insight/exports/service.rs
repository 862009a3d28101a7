//! Exports of events and hosts. Only administrators of the host and platform administrators can read them.

use boxoffice_http::error::Result;
use futures::FutureExt;

use super::model::{LedgerFilter, Month};
use super::store;
use super::table::stream;
use crate::features::catalog::{events, hosts};
use crate::kernel::auth::Caller;
use crate::kernel::http::StreamedFile;
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::Id;
use crate::state::Ctx;

pub async fn orders(ctx: &Ctx, caller: &Caller, event: Id) -> Result<StreamedFile> {
    let host = events::load_managed(&mut ctx.unit.read().await?, caller, event).await?.host_id;
    let now = ctx.app.clock.now();
    stream(ctx, "orders.csv", Box::new(move |tx, after| store::orders(tx, event, host, after, now).boxed())).await
}

pub async fn tickets(ctx: &Ctx, caller: &Caller, event: Id) -> Result<StreamedFile> {
    events::load_managed(&mut ctx.unit.read().await?, caller, event).await?;
    stream(ctx, "tickets.csv", Box::new(move |tx, after| store::tickets(tx, event, after).boxed())).await
}

pub async fn ledger(ctx: &Ctx, caller: &Caller, host: Id, filter: &LedgerFilter) -> Result<StreamedFile> {
    hosts::require_can_audit(&mut ctx.unit.read().await?, caller, host).await?;
    filter.period.check()?;
    let month = filter.month.as_ref().map(bounds);
    let later = |from: Option<Timestamp>| from.max(month.map(|(start, _)| start));
    let earlier = |until: Option<Timestamp>| {
        let ends = [until, month.map(|(_, end)| end)];
        ends.into_iter().flatten().min()
    };
    let (from, until) = (later(filter.period.start()), earlier(filter.period.end()));
    stream(ctx, "transactions.csv", Box::new(move |tx, after| store::ledger(tx, host, from, until, after).boxed())).await
}

/// Returns the first moment of a month and that of the next one.
fn bounds(month: &Month) -> (Timestamp, Timestamp) {
    let (year, number) = month.0.split_once('-').unwrap_or_default();
    let (year, number): (i32, u32) = (year.parse().unwrap_or_default(), number.parse().unwrap_or(1));
    let next = if number == 12 { (year + 1, 1) } else { (year, number + 1) };
    let first_of = |(year, month): (i32, u32)| Timestamp::parse(&format!("{year:04}-{month:02}-01T00:00"));
    (first_of((year, number)).unwrap_or(Timestamp(0)), first_of(next).unwrap_or(Timestamp::NEVER))
}
