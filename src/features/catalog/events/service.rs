//! Operations on events.

use std::sync::Arc;

use boxoffice_http::error::{Error, FieldError, Result, ensure_no_field_errors, reject_if};
use boxoffice_openapi::is_blank_text;

use super::cache;
use super::images::{EventImages, discard_replaced};
use super::list_store::{self, EventListFilter, EventVisibility};
use super::model::{Event, EventRow, EventStatus};
use super::notices;
use super::permissions::{check_managed, load, load_visible, lock_managed};
use super::requests::{EventCreate, EventFilter, EventUpdate};
use super::store;
use super::view::{view, view_one};
use crate::features::catalog::advertisements;
use crate::features::catalog::categories;
use crate::features::catalog::hosts;
use crate::features::catalog::media::{self, ImageKind};
use crate::features::catalog::review::{self, Submission, SubmissionType};
use crate::features::catalog::sections;
use crate::features::catalog::tokens;
use crate::features::catalog::venues;
use crate::features::codes;
use crate::features::identity::accounts::{self, AccountNumber};
use crate::kernel::auth::{self, Caller};
use crate::kernel::db::{Reader, Tx, ViolationExt, transaction};
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::Id;
use crate::kernel::types::paging::Page;
use crate::state::{App, Ctx};

/// Returns a page of the events for which an account has tickets, whatever their status.
pub async fn list_of_account(ctx: &Ctx, caller: &Caller, number: &AccountNumber, filter: &EventFilter) -> Result<Page<Event>> {
    let mut reader = ctx.unit.read().await?;
    let account = accounts::load(&mut reader, caller, number).await?;
    page(&ctx.app, &mut reader, filter, &EventListFilter::of(EventVisibility::HeldBy(account.id))).await
}

/// Returns a page of events.
pub async fn page(
    app: &App,
    reader: &mut Reader,
    filter: &EventFilter,
    list_filter: &EventListFilter<'_>,
) -> Result<Page<Event>> {
    let now = app.clock.now();
    let result = list_store::list(reader, filter, list_filter, now).await?;
    let events = cache::with_relations(app, reader, result.rows, now).await?.into_iter();
    Ok(filter.paging.page(result.total, events.map(|event| view(app, event, now)).collect::<Result<_>>()?))
}

pub async fn get(ctx: &Ctx, caller: &Caller, id: Id) -> Result<Event> {
    let mut reader = ctx.unit.read().await?;
    let row = load_visible(&mut reader, caller, id).await?;
    view_one(&ctx.app, &mut reader, row).await
}

pub async fn create(ctx: &Ctx, caller: &Caller, new: &EventCreate) -> Result<Event> {
    if new.banner.is_some() || new.thumbnail.is_some() {
        check_host(ctx, caller, new.host.id).await?;
    }
    let images = EventImages::parse(&ctx.app, caller, None, new.banner.as_ref(), new.thumbnail.as_ref()).await?;
    let now = ctx.app.clock.now();
    if images.has_new() {
        // Storing an image is slow, so it happens before the transaction. All checks run first, so that no image is stored for a
        // request that will be rejected.
        let row = new.row(Id::NONE, now, &images);
        transaction!(ctx.unit.dry_run(), |tx| {
            check_new(tx, caller, &row, &images.problems).await?;
            check_title(tx, &row).await
        })?;
        images.store(ctx).await?;
    }
    let created = transaction!(ctx.unit, |tx| {
        let row = new.row(ctx.app.clock.next_id(), now, &images);
        check_new(tx, caller, &row, &images.problems).await?;
        insert(&ctx.app, tx, &row).await?;
        view_one(&ctx.app, tx, row).await
    });
    if created.is_err() {
        images.discard(ctx).await;
    }
    created
}

/// Requires a caller who may act for a host, before the images of a new event are decoded. An unknown host is a field error, which is
/// reported with all others.
async fn check_host(ctx: &Ctx, caller: &Caller, host: Id) -> Result<()> {
    let mut reader = ctx.unit.read().await?;
    if hosts::exists(&mut reader, host).await? {
        hosts::require_administrator(&mut reader, caller, host).await?;
    }
    Ok(())
}

/// Inserts a new event, and creates its global admission token.
///
/// # Errors
/// [`codes::EVENT_TAKEN`] if another event has its title.
pub async fn insert(app: &App, tx: &mut Tx, row: &EventRow) -> Result<()> {
    store::insert(tx, row).await.on_taken("events", "title", codes::EVENT_TAKEN)?;
    tokens::create_global(app, tx, row.id).await
}

pub async fn update(ctx: &Ctx, caller: &Caller, id: Id, change: &EventUpdate) -> Result<Event> {
    if change.banner.is_some() || change.thumbnail.is_some() {
        check_managed(ctx, caller, id).await?;
    }
    let images = EventImages::parse(&ctx.app, caller, Some(id), change.banner.as_ref(), change.thumbnail.as_ref()).await?;
    if images.has_new() {
        transaction!(ctx.unit.dry_run(), |tx| {
            let before = lock_managed(tx, caller, id).await?;
            let row = check_change(&ctx.app, tx, caller, &before, change, &images).await?;
            check_title(tx, &row).await
        })?;
        images.store(ctx).await?;
    }
    let changed = transaction!(ctx.unit, |tx| {
        let before = lock_managed(tx, caller, id).await?;
        let row = check_change(&ctx.app, tx, caller, &before, change, &images).await?;
        store::update(tx, &row).await.on_taken("events", "title", codes::EVENT_TAKEN)?;
        if (before.venue_id, before.starts) != (row.venue_id, row.starts) {
            record_staging(tx, &before, ctx.app.clock.now()).await?;
        }
        notices::store_change(tx, &before, &row, ctx.app.clock.now()).await?;
        let event = view_one(&ctx.app, tx, row.clone()).await?;
        Ok::<_, Error>((before, row, event))
    });
    match changed {
        Ok((before, after, event)) => {
            discard_replaced(ctx, &before, Some(&after)).await;
            Ok(event)
        }
        Err(error) => {
            images.discard(ctx).await;
            Err(error)
        }
    }
}

/// Removes an event with its advertisements.
pub async fn delete(ctx: &Ctx, caller: &Caller, id: Id) -> Result<()> {
    let (row, artwork) = transaction!(ctx.unit, |tx| delete_in_tx(&ctx.app, tx, caller, id).await)?;
    discard_replaced(ctx, &row, None).await;
    let app = Arc::clone(&ctx.app);
    ctx.unit.after_commit(async move { media::discard(&app, ImageKind::Artwork, artwork).await }).await;
    Ok(())
}

/// Removes an event. Returns its last row and the identifiers of its advertisements' artwork, to be discarded after the commit.
async fn delete_in_tx(app: &App, tx: &mut Tx, caller: &Caller, id: Id) -> Result<(EventRow, Vec<Id>)> {
    let now = app.clock.now();
    let row = lock_managed(tx, caller, id).await?;
    sections::lock_of_event(tx, id).await?;
    auth::require_not_revoked(tx, caller).await?;
    let event_sections = sections::store::of_events(tx, [id], now).await?;
    if event_sections.iter().any(|section| section.sold > 0) {
        let is_cancelled = row.status == EventStatus::Cancelled;
        let stays = || codes::EVENT_SOLD.with_message("Tickets to this event have been sold, so it stays as a cancelled one.");
        return Err(if is_cancelled { stays() } else { codes::EVENT_SOLD.into() });
    }
    if event_sections.iter().any(|section| section.reserved > 0) {
        return Err(codes::EVENT_SOLD.with_message(
            "Places of this event are reserved for open orders or offers of waiting lists. Withdraw or cancel it instead.",
        ));
    }
    store::delete_expired_reservations(tx, id, now).await?;
    app.clock.require_not_set_back(now)?;
    record_staging(tx, &row, now).await?;
    tokens::end_keys_of_event(tx, id, now).await?;
    review::delete_of_content(tx, SubmissionType::Event, [id]).await?;
    let artwork = advertisements::remove_of_event(tx, id).await?;
    // Void tickets still refer to the event, so a foreign key rejects its removal.
    store::delete(tx, id).await.on_foreign_key(codes::EVENT_SOLD)?;
    Ok((row, artwork))
}

pub async fn submit(ctx: &Ctx, caller: &Caller, id: Id) -> Result<Submission> {
    transaction!(ctx.unit, |tx| {
        let row = lock_managed(tx, caller, id).await?;
        reject_if(row.status != EventStatus::Draft, codes::EVENT_NOT_DRAFT)?;
        hosts::require_active(tx, row.host_id).await?;
        store::transition(tx, id, EventStatus::Draft, EventStatus::UnderReview, ctx.app.clock.now()).await?;
        review::submit(&ctx.app, tx, SubmissionType::Event, id, caller.account).await
    })
}

/// Makes a listed event a draft again. Sold tickets stay valid, and reserved ones can be paid.
pub async fn withdraw(ctx: &Ctx, caller: &Caller, id: Id) -> Result<Event> {
    transaction!(ctx.unit, |tx| unlist(&ctx.app, tx, caller, id, EventStatus::Draft).await)
}

/// Cancels a listed event, or a withdrawn one that can't be removed, also while it is under review again. Sold tickets can be returned,
/// and reserved ones can no longer be paid.
pub async fn cancel(ctx: &Ctx, caller: &Caller, id: Id) -> Result<Event> {
    transaction!(ctx.unit, |tx| unlist(&ctx.app, tx, caller, id, EventStatus::Cancelled).await)
}

async fn unlist(app: &App, tx: &mut Tx, caller: &Caller, id: Id, to: EventStatus) -> Result<Event> {
    let row = lock_managed(tx, caller, id).await?;
    let now = app.clock.now();
    // A withdrawn event that can't be removed need not be published again only to be cancelled.
    let is_withdrawn = to == EventStatus::Cancelled
        && matches!(row.status, EventStatus::Draft | EventStatus::UnderReview)
        && has_orders(tx, id, now).await?;
    let from = if is_withdrawn { row.status } else { EventStatus::Listed };
    reject_if(!store::transition(tx, id, from, to, now).await?, codes::EVENT_NOT_LISTED)?;
    record_staging(tx, &row, now).await?;
    if to == EventStatus::Cancelled {
        review::cancel(tx, SubmissionType::Event, id).await?;
        notices::store_cancellation(tx, &row, now).await?;
    }
    view_one(app, tx, EventRow { status: to, ..row }).await
}

/// Records at the venue that an event has started there, before this can't be seen in the event any more. The API requires that a venue at
/// which an event has been staged can't be removed.
async fn record_staging(tx: &mut Tx, event: &EventRow, now: Timestamp) -> Result<()> {
    if is_staged(event) && event.starts <= now { venues::set_staged(tx, event.venue_id).await } else { Ok(()) }
}

/// Returns whether an event that is not cancelled takes place: it is listed, or it was withdrawn and has valid tickets.
fn is_staged(event: &EventRow) -> bool {
    event.status == EventStatus::Listed || event.popularity > 0
}

/// Returns whether an event has tickets, including void ones, or reserved places.
async fn has_orders(reader: &mut Reader, id: Id, now: Timestamp) -> Result<bool> {
    let sections = sections::store::of_events(reader, [id], now).await?;
    Ok(sections.iter().any(|section| section.reserved > 0) || store::has_tickets(reader, id).await?)
}

/// Applies a review decision to a locked event: an approved event is listed, a rejected one is a draft again. Approval requires a
/// host that has not been removed.
///
/// # Errors
/// [`codes::HOST_REMOVED`] for an approval, [`codes::SUBMISSION_DECIDED`] if the event is not under review.
pub async fn apply_decision(tx: &mut Tx, id: Id, approved: bool, now: Timestamp) -> Result<()> {
    let to = if approved { EventStatus::Listed } else { EventStatus::Draft };
    if approved {
        let host = load(tx, id).await?.host_id;
        hosts::require_active(tx, host).await?;
    }
    let decided = store::transition(tx, id, EventStatus::UnderReview, to, now).await?;
    if decided { Ok(()) } else { Err(codes::SUBMISSION_DECIDED.into()) }
}

/// Validates a new event. A caller who may not act for the host gets a 403 before any other error.
async fn check_new(tx: &mut Tx, caller: &Caller, row: &EventRow, images: &[FieldError]) -> Result<()> {
    let mut problems = Vec::new();
    if hosts::exists(tx, row.host_id).await? {
        hosts::lock_administrator(tx, caller, row.host_id).await?;
    } else {
        problems.push(FieldError::invalid("host", "names no host"));
    }
    problems.extend(problems_of(tx, caller, None, row).await?);
    problems.extend_from_slice(images);
    ensure_no_field_errors(problems)?;
    hosts::require_active(tx, row.host_id).await
}

/// Validates a copy of an event, which the caller may change. The copy has the same host, category and venue.
///
/// # Errors
/// Field errors, and [`codes::HOST_REMOVED`].
pub async fn check_copy(tx: &mut Tx, caller: &Caller, source: &EventRow, copy: &EventRow) -> Result<()> {
    ensure_no_field_errors(problems_of(tx, caller, Some(source), copy).await?)?;
    hosts::require_active(tx, copy.host_id).await
}

/// Validates a change of an event. Returns its row after the change.
async fn check_change(
    app: &App,
    tx: &mut Tx,
    caller: &Caller,
    before: &EventRow,
    change: &EventUpdate,
    images: &EventImages,
) -> Result<EventRow> {
    let row = change.apply(before, app.clock.now(), images);
    let mut problems = problems_of(tx, caller, Some(before), &row).await?;
    if change.host.as_ref().is_some_and(|host| host.id != before.host_id) {
        problems.insert(0, FieldError::invalid("host", "can't be changed"));
    }
    problems.extend_from_slice(&images.problems);
    ensure_no_field_errors(problems)?;
    reject_if(before.status == EventStatus::Cancelled, codes::EVENT_CANCELLED)?;
    // A past event keeps its venue, also if its end was moved.
    let is_over = is_staged(before) && before.ends <= app.clock.now();
    if row.venue_id != before.venue_id && (is_over || store::has_admissions(tx, before.id).await?) {
        return Err(codes::EVENT_OVER.with_message("This event has taken place, so its venue can't be changed any more."));
    }
    Ok(row)
}

/// Rejects the title of another event before an image is stored in vain. The unique index decides in the end.
pub async fn check_title(reader: &mut Reader, row: &EventRow) -> Result<()> {
    if store::is_title_taken(reader, row).await? { Err(codes::EVENT_TAKEN.into()) } else { Ok(()) }
}

/// Returns the field errors of the resulting event, in the contract's order. An event may keep its venue even if the caller may
/// not use it. The category, the subcategory and a new venue can't be removed before the transaction ends.
async fn problems_of(tx: &mut Tx, caller: &Caller, before: Option<&EventRow>, row: &EventRow) -> Result<Vec<FieldError>> {
    let mut problems = Vec::new();
    if !categories::lock_subcategory(tx, row.category_id, &row.subcategory).await? {
        problems.push(if categories::exists(tx, row.category_id).await? {
            FieldError::invalid("subcategory", "is no subcategory of the category")
        } else {
            FieldError::invalid("category", "names no category")
        });
    }
    let venue_changes = before.is_none_or(|before| before.venue_id != row.venue_id);
    if venue_changes && !venues::lock_usable(tx, caller, row.venue_id).await? {
        problems.push(FieldError::invalid("venue", "names no venue you may use"));
    }
    let tags_change = before.is_none_or(|before| before.tags != row.tags);
    let tags: Vec<String> = if tags_change { serde_json::from_str(&row.tags).unwrap_or_default() } else { Vec::new() };
    if let Some(index) = tags.iter().position(|tag| is_blank_text(tag)) {
        problems.push(FieldError::invalid("tags", format!("is blank (at {index})")));
    }
    if row.ends <= row.starts {
        problems.push(FieldError::invalid("end", "must be after start"));
    }
    if row.admission_from.is_some_and(|from| from >= row.ends) {
        problems.push(FieldError::invalid("admissionFrom", "must be before end"));
    }
    Ok(problems)
}
