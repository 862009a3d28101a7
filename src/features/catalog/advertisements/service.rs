//! Operations on advertisements, and the permissions to see and change them.

use std::sync::Arc;

use boxoffice_http::error::{Error, FieldError, Result, ensure_no_field_errors, reject_if};

use super::booking::AdvertisementDraft;
use super::model::{Advertisement, AdvertisementRow};
use super::requests::{AdvertisementCreate, AdvertisementFilter, AdvertisementQuery, AdvertisementUpdate};
use super::store::{self, AdvertisementListFilter, AdvertisementVisibility};
use super::view::{view_one, views};
use crate::features::catalog::events::{self, EventRow, EventStatus};
use crate::features::catalog::hosts;
use crate::features::catalog::media::{self, ImageKind};
use crate::features::catalog::review::{self, Submission, SubmissionType};
use crate::features::catalog::zones;
use crate::features::codes;
use crate::kernel::auth::Caller;
use crate::kernel::db::{Reader, StaleRead, Tx, ViolationExt, transaction};
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::Id;
use crate::kernel::types::paging::{Page, PageRequest};
use crate::kernel::types::secret;
use crate::state::{App, Ctx};

/// Maximum number of advertisements of an event.
const MAX_ADVERTISEMENTS: i64 = 1000;

pub async fn list(ctx: &Ctx, caller: &Caller, query: &AdvertisementQuery) -> Result<Page<Advertisement>> {
    let host = query.host.map(|host| host.0);
    page(&ctx.app, &mut ctx.unit.read().await?, &query.filter, AdvertisementVisibility::To(caller), host).await
}

pub async fn list_of_host(ctx: &Ctx, caller: &Caller, host: Id, filter: &AdvertisementFilter) -> Result<Page<Advertisement>> {
    let mut reader = ctx.unit.read().await?;
    hosts::require_can_manage(&mut reader, caller, host).await?;
    page(&ctx.app, &mut reader, filter, AdvertisementVisibility::All, Some(host)).await
}

/// Returns a page of the advertisements that a zone shows now. It is the same for every caller.
pub async fn list_running(ctx: &Ctx, zone: Id, paging: PageRequest) -> Result<Page<Advertisement>> {
    let mut reader = ctx.unit.read().await?;
    reject_if(!zones::exists(&mut reader, zone).await?, Error::NOT_FOUND)?;
    let list_filter = AdvertisementListFilter {
        visibility: AdvertisementVisibility::All,
        host: None,
        event: None,
        zone: Some(zone),
        status: None,
        active: Some(true),
    };
    let page = store::list(&mut reader, paging, list_filter, ctx.app.clock.now()).await?;
    Ok(paging.page(page.total, views(&ctx.app, &mut reader, page.rows).await?))
}

/// Returns an advertisement, if the caller may see it: every caller once both it and its event are public, before that only the
/// callers who may change it.
pub async fn get(ctx: &Ctx, caller: &Caller, id: Id) -> Result<Advertisement> {
    let mut reader = ctx.unit.read().await?;
    let row = load(&mut reader, id).await?;
    let event = events::load(&mut reader, row.event_id).await?;
    if !(row.status.is_public() && event.status.is_public()) {
        hosts::require_administrator(&mut reader, caller, event.host_id).await?;
    }
    view_one(&ctx.app, &mut reader, row).await
}

pub async fn create(ctx: &Ctx, caller: &Caller, new: AdvertisementCreate) -> Result<Advertisement> {
    check_event(ctx, caller, new.event.0).await?;
    let booking = AdvertisementDraft::parse(&ctx.app, caller, Some(&new.artwork), Some(&new.zones), Some(&new.schedule)).await?;
    let artwork = secret::image_id();
    if let Some(image) = booking.image() {
        // Storing an image is slow, so it happens before the transaction. All checks run first, so that no image is stored for a
        // request that will be rejected.
        transaction!(ctx.unit.dry_run(), |tx| {
            let event = events::find(tx, new.event.0).await?;
            check_new(&ctx.app, tx, caller, event, &booking).await?;
            check_name(tx, &new.name, None).await
        })?;
        media::put_image(ctx, ImageKind::Artwork, artwork, image).await?;
    }
    let created = transaction!(ctx.unit, |tx| create_in_tx(&ctx.app, tx, caller, &new, &booking, artwork).await);
    if created.is_err() {
        media::discard(&ctx.app, ImageKind::Artwork, [artwork]).await;
    }
    created
}

async fn create_in_tx(
    app: &App,
    tx: &mut Tx,
    caller: &Caller,
    new: &AdvertisementCreate,
    booking: &AdvertisementDraft,
    artwork: Id,
) -> Result<Advertisement> {
    // Locked, so that it can't be removed or cancelled before the commit.
    let event = events::lock(tx, new.event.0).await?;
    check_new(app, tx, caller, event, booking).await?;
    require_space(tx, new.event.0).await?;
    let (width, height) = booking.dimensions(None);
    let row = AdvertisementRow {
        id: app.clock.next_id(),
        event_id: new.event.0,
        name: new.name.clone(),
        description: new.description.clone(),
        status: EventStatus::Draft,
        artwork_id: artwork,
        width,
        height,
    };
    store::insert(tx, &row).await.on_taken("advertisements", "name", codes::ADVERTISEMENT_TAKEN)?;
    booking.write(tx, &row).await?;
    view_one(app, tx, row).await
}

pub async fn update(ctx: &Ctx, caller: &Caller, id: Id, change: AdvertisementUpdate) -> Result<Advertisement> {
    let (zones, schedule) = (change.zones.as_deref(), change.schedule.as_deref());
    // A client may send back the advertisement that it has read.
    let artwork = change.artwork.as_ref().filter(|text| !media::is_uri_of(&ctx.app, ImageKind::Artwork, id, text));
    if artwork.is_some() {
        check_managed(ctx, caller, id).await?;
    }
    let booking = AdvertisementDraft::parse(&ctx.app, caller, artwork, zones, schedule).await?;
    let artwork_id = booking.image().map(|_| secret::image_id());
    if let (Some(image), Some(artwork)) = (booking.image(), artwork_id) {
        transaction!(ctx.unit.dry_run(), |tx| {
            let before = load(tx, id).await?;
            check_change(&ctx.app, tx, caller, &before, &change, &booking).await?;
            match &change.name {
                Some(name) => check_name(tx, name, Some(id)).await,
                None => Ok(()),
            }
        })?;
        media::put_image(ctx, ImageKind::Artwork, artwork, image).await?;
    }
    let changed = transaction!(ctx.unit, |tx| update_in_tx(&ctx.app, tx, caller, id, &change, &booking, artwork_id).await);
    match changed {
        Ok((advertisement, before)) => {
            let replaced = artwork_id.map(|_| before);
            let app = Arc::clone(&ctx.app);
            ctx.unit.after_commit(async move { media::discard(&app, ImageKind::Artwork, replaced).await }).await;
            Ok(advertisement)
        }
        Err(error) => {
            media::discard(&ctx.app, ImageKind::Artwork, artwork_id).await;
            Err(error)
        }
    }
}

/// Changes an advertisement. Returns it and the identifier of its previous artwork.
async fn update_in_tx(
    app: &App,
    tx: &mut Tx,
    caller: &Caller,
    id: Id,
    change: &AdvertisementUpdate,
    booking: &AdvertisementDraft,
    artwork: Option<Id>,
) -> Result<(Advertisement, Id)> {
    let before = lock(tx, id, change.event.map(|event| event.0)).await?;
    check_change(app, tx, caller, &before, change, booking).await?;
    let (width, height) = booking.dimensions(Some(&before));
    let row = AdvertisementRow {
        event_id: change.event.map_or(before.event_id, |event| event.0),
        name: change.name.clone().unwrap_or(before.name),
        description: change.description.clone().unwrap_or(before.description),
        artwork_id: artwork.unwrap_or(before.artwork_id),
        width,
        height,
        ..before
    };
    if row.event_id != before.event_id {
        require_space(tx, row.event_id).await?;
    }
    store::update(tx, &row).await.on_taken("advertisements", "name", codes::ADVERTISEMENT_TAKEN)?;
    booking.write(tx, &row).await?;
    Ok((view_one(app, tx, row).await?, before.artwork_id))
}

pub async fn delete(ctx: &Ctx, caller: &Caller, id: Id) -> Result<()> {
    let artwork = transaction!(ctx.unit, |tx| delete_in_tx(tx, caller, id).await)?;
    let app = Arc::clone(&ctx.app);
    ctx.unit.after_commit(async move { media::discard(&app, ImageKind::Artwork, [artwork]).await }).await;
    Ok(())
}

/// Removes an advertisement. Returns the identifier of its artwork, to be discarded after the commit.
async fn delete_in_tx(tx: &mut Tx, caller: &Caller, id: Id) -> Result<Id> {
    let row = lock(tx, id, None).await?;
    managed_event(tx, caller, &row).await?;
    review::delete_of_content(tx, SubmissionType::Advertisement, [id]).await?;
    store::delete(tx, id).await?;
    Ok(row.artwork_id)
}

/// Removes every advertisement of an event that is about to be removed, with their submissions. Returns the identifiers of their
/// artwork, to be discarded after the commit.
pub async fn remove_of_event(tx: &mut Tx, event: Id) -> Result<Vec<Id>> {
    let removed = store::delete_of_event(tx, event).await?;
    review::delete_of_content(tx, SubmissionType::Advertisement, removed.iter().map(|(id, _)| *id)).await?;
    Ok(removed.into_iter().map(|(_, artwork)| artwork).collect())
}

pub async fn submit(ctx: &Ctx, caller: &Caller, id: Id) -> Result<Submission> {
    transaction!(ctx.unit, |tx| {
        let row = lock(tx, id, None).await?;
        let event = managed_event(tx, caller, &row).await?;
        reject_if(row.status != EventStatus::Draft, codes::ADVERTISEMENT_NOT_DRAFT)?;
        require_bookable(tx, &event, ctx.app.clock.now()).await?;
        store::transition(tx, id, EventStatus::Draft, EventStatus::UnderReview).await?;
        review::submit(&ctx.app, tx, SubmissionType::Advertisement, id, caller.account).await
    })
}

/// Applies a review decision to a [locked](lock) advertisement: an approved one is listed, a rejected one is a draft again.
/// Approval requires a host that has not been removed, and an event that is neither cancelled nor over.
///
/// # Errors
/// [`codes::HOST_REMOVED`], [`codes::EVENT_CANCELLED`] or [`codes::EVENT_OVER`] for an approval, [`codes::SUBMISSION_DECIDED`] if the
/// advertisement is not under review.
pub async fn decide(tx: &mut Tx, id: Id, approved: bool, now: Timestamp) -> Result<()> {
    let to = if approved { EventStatus::Listed } else { EventStatus::Draft };
    if approved {
        let event = load(tx, id).await?.event_id;
        let event = events::load(tx, event).await?;
        require_bookable(tx, &event, now).await?;
    }
    let decided = store::transition(tx, id, EventStatus::UnderReview, to).await?;
    if decided { Ok(()) } else { Err(codes::SUBMISSION_DECIDED.into()) }
}

pub async fn cancel(ctx: &Ctx, caller: &Caller, id: Id) -> Result<Advertisement> {
    transaction!(ctx.unit, |tx| {
        let row = lock(tx, id, None).await?;
        managed_event(tx, caller, &row).await?;
        if !store::transition(tx, id, EventStatus::Listed, EventStatus::Cancelled).await? {
            return Err(codes::ADVERTISEMENT_NOT_LISTED.into());
        }
        view_one(&ctx.app, tx, AdvertisementRow { status: EventStatus::Cancelled, ..row }).await
    })
}

async fn page(
    app: &App,
    reader: &mut Reader,
    filter: &AdvertisementFilter,
    visibility: AdvertisementVisibility<'_>,
    host: Option<Id>,
) -> Result<Page<Advertisement>> {
    let event = filter.event.map(|event| event.0);
    let list_filter =
        AdvertisementListFilter { visibility, host, event, zone: None, status: filter.status, active: filter.active };
    let result = store::list(reader, filter.paging, list_filter, app.clock.now()).await?;
    Ok(filter.paging.page(result.total, views(app, reader, result.rows).await?))
}

async fn load(reader: &mut Reader, id: Id) -> Result<AdvertisementRow> {
    store::find(reader, id).await?.ok_or(Error::NOT_FOUND)
}

/// Locks and returns an advertisement. Locks its event first, and the event to which it is to be moved.
///
/// # Errors
/// [`Error::NOT_FOUND`] if there is no such advertisement. [`StaleRead`] if it has been moved to another event before that event was
/// locked.
pub async fn lock(tx: &mut Tx, id: Id, target: Option<Id>) -> Result<AdvertisementRow> {
    let event = load(tx, id).await?.event_id;
    events::lock_all(tx, [event].into_iter().chain(target)).await?;
    let row = store::lock(tx, id).await?.ok_or(Error::NOT_FOUND)?;
    if row.event_id == event { Ok(row) } else { Err(StaleRead.into()) }
}

/// Requires an advertisement that the caller may change; see [`managed_event`].
pub async fn check_managed(ctx: &Ctx, caller: &Caller, id: Id) -> Result<()> {
    let mut reader = ctx.unit.read().await?;
    let row = load(&mut reader, id).await?;
    let event = events::load(&mut reader, row.event_id).await?;
    hosts::require_administrator(&mut reader, caller, event.host_id).await
}

/// Returns the event of an advertisement, if the caller may change both: an administrator of its host or a platform administrator.
async fn managed_event(tx: &mut Tx, caller: &Caller, row: &AdvertisementRow) -> Result<EventRow> {
    let event = events::load(tx, row.event_id).await?;
    hosts::lock_administrator(tx, caller, event.host_id).await?;
    Ok(event)
}

/// Requires a caller who may act for the host of an event, before artwork is decoded. An unknown event is a field error, which is
/// reported with all others.
async fn check_event(ctx: &Ctx, caller: &Caller, event: Id) -> Result<()> {
    let mut reader = ctx.unit.read().await?;
    match events::find(&mut reader, event).await? {
        Some(event) => hosts::require_administrator(&mut reader, caller, event.host_id).await,
        None => Ok(()),
    }
}

/// Validates a new advertisement of an event. A caller who may not act for the event's host gets a 403 before any other error.
async fn check_new(app: &App, tx: &mut Tx, caller: &Caller, event: Option<EventRow>, booking: &AdvertisementDraft) -> Result<()> {
    let event = check_arguments(tx, caller, event, booking, None).await?;
    require_bookable(tx, &event, app.clock.now()).await
}

/// Validates a change of an advertisement.
async fn check_change(
    app: &App,
    tx: &mut Tx,
    caller: &Caller,
    before: &AdvertisementRow,
    change: &AdvertisementUpdate,
    booking: &AdvertisementDraft,
) -> Result<()> {
    let target = change.event.map(|event| event.0);
    let event = managed_event(tx, caller, before).await?;
    let event = match target {
        Some(target) if target != event.id => events::find(tx, target).await?,
        _ => Some(event),
    };
    let event = check_arguments(tx, caller, event, booking, Some(before)).await?;
    reject_if(before.status == EventStatus::Cancelled, codes::ADVERTISEMENT_CANCELLED)?;
    if booking.is_booking() || event.id != before.event_id {
        require_bookable(tx, &event, app.clock.now()).await?;
    }
    Ok(())
}

/// Validates the fields of the resulting advertisement and returns its event. The caller must be allowed to act for the event's
/// host.
async fn check_arguments(
    tx: &mut Tx,
    caller: &Caller,
    event: Option<EventRow>,
    booking: &AdvertisementDraft,
    before: Option<&AdvertisementRow>,
) -> Result<EventRow> {
    const NO_EVENT: &str = "names no event";
    let mut problems = Vec::new();
    match &event {
        Some(event) => hosts::lock_administrator(tx, caller, event.host_id).await?,
        None => problems.push(FieldError::invalid("event", NO_EVENT)),
    }
    problems.extend(booking.problems(tx, before).await?);
    ensure_no_field_errors(problems)?;
    event.ok_or_else(|| Error::invalid("event", NO_EVENT))
}

/// Rejects the name of another advertisement before an image is stored in vain. The unique index decides in the end.
async fn check_name(reader: &mut Reader, name: &str, id: Option<Id>) -> Result<()> {
    if store::is_name_taken(reader, name, id).await? { Err(codes::ADVERTISEMENT_TAKEN.into()) } else { Ok(()) }
}

/// Requires a [locked](events::lock) event with fewer advertisements than the maximum. Without the lock, concurrent requests could
/// exceed it.
async fn require_space(reader: &mut Reader, event: Id) -> Result<()> {
    let is_full = store::count_of_event(reader, event).await? >= MAX_ADVERTISEMENTS;
    if is_full { Err(codes::ADVERTISEMENT_TOO_MANY.into()) } else { Ok(()) }
}

/// Requires an event that is neither cancelled nor over, of a host that has not been removed. Checked when advertising is booked,
/// submitted and approved.
async fn require_bookable(tx: &mut Tx, event: &EventRow, now: Timestamp) -> Result<()> {
    hosts::require_active(tx, event.host_id).await?;
    event.check_changeable()?;
    if event.ends <= now { Err(codes::EVENT_OVER.into()) } else { Ok(()) }
}
