//! What the event operations mean, and who may see or change an event.

use futures::FutureExt;

use super::images::{EventImages, discard_replaced};
use super::model::{Event, EventRow, EventStatus};
use super::requests::{EventCreate, EventFilter, EventQuery, EventUpdate, HostEventQuery};
use super::store::{self, ListFilter, Visibility};
use super::view::{view_one, views};
use crate::features::identity::accounts::{self, AccountNumber};
use crate::state::App;
use crate::kernel::auth::{Caller, Scope};
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::Id;
use crate::kernel::types::paging::Page;
use crate::kernel::db::{self, Tx, ViolationExt, transaction};
use boxoffice_http::error::{Code, Error, FieldError, Result, ensure_no_field_errors};
use crate::kernel::media::{self, ImageKind};
use crate::features::catalog::review::{self, Submission, SubmissionType};
use crate::features::catalog::advertisements;
use crate::features::catalog::categories;
use crate::features::catalog::hosts;
use crate::features::catalog::sections;
use crate::features::catalog::tokens;
use crate::features::catalog::venues;

const TITLE: &str = "events_title_key";

/// An event, whoever asks.
///
/// # Errors
/// [`Error::NOT_FOUND`] where there is none.
pub async fn load(tx: &mut Tx, id: Id) -> Result<EventRow> {
    store::find(tx, id).await?.ok_or(Error::NOT_FOUND)
}

/// An event for who may change it: its host's administrators and the platform's staff.
///
/// # Errors
/// [`Error::NOT_FOUND`] where there is none, [`Error::NOT_YOURS`] for anyone else.
pub async fn load_managed(tx: &mut Tx, caller: &Caller, id: Id) -> Result<EventRow> {
    let row = load(tx, id).await?;
    hosts::require_administrator(tx, caller, row.host_id).await?;
    Ok(row)
}

/// An event for who may see it: anyone once it is Listed or Cancelled, else who may change it. A redeemer's key sees the event
/// of its token, and no other.
///
/// # Errors
/// [`Error::NOT_FOUND`] where there is none, [`Error::NOT_YOURS`] for anyone else.
pub async fn load_visible(tx: &mut Tx, caller: &Caller, id: Id) -> Result<EventRow> {
    let row = load(tx, id).await?;
    require_visible(tx, caller, &row).await?;
    Ok(row)
}

/// Succeeds for who may see an event.
///
/// # Errors
/// [`Error::NOT_YOURS`] for anyone else.
pub async fn require_visible(tx: &mut Tx, caller: &Caller, row: &EventRow) -> Result<()> {
    match caller.redeemer {
        Some(redeemer) if redeemer.event == row.id => Ok(()),
        _ if is_public_for(caller, row) => Ok(()),
        _ if caller.scope == Scope::Redeemer => Err(Error::FORBIDDEN),
        _ => hosts::require_administrator(tx, caller, row.host_id).await,
    }
}

/// Whether an event is there for everyone, among whom redeemers are not.
pub fn is_public_for(caller: &Caller, row: &EventRow) -> bool {
    row.status.is_public() && caller.scope != Scope::Redeemer
}

/// The same as [`load_managed`], for a change that depends on what the event is: others wait until this transaction ends.
async fn lock_managed(tx: &mut Tx, caller: &Caller, id: Id) -> Result<EventRow> {
    let row = store::lock(tx, id).await?.ok_or(Error::NOT_FOUND)?;
    hosts::require_administrator(tx, caller, row.host_id).await?;
    Ok(row)
}

pub async fn list(app: &App, caller: &Caller, query: EventQuery) -> Result<Page<Event>> {
    let host = query.host.map(|host| host.id);
    let narrowing = ListFilter { shown: Visibility::To(caller), host, status: query.status, public: query.public };
    page(app, &mut app.db.read().await?, &query.filter, narrowing).await
}

pub async fn list_of_host(app: &App, caller: &Caller, host: Id, query: HostEventQuery) -> Result<Page<Event>> {
    let mut tx = app.db.read().await?;
    hosts::require_exists(&mut tx, host).await?;
    let narrowing = ListFilter { shown: Visibility::To(caller), host: Some(host), status: query.status, public: query.public };
    page(app, &mut tx, &query.filter, narrowing).await
}

/// The events that an account has tickets for, whatever has become of them.
pub async fn list_of_account(app: &App, caller: &Caller, number: &AccountNumber, filter: &EventFilter) -> Result<Page<Event>> {
    let mut tx = app.db.read().await?;
    let account = accounts::load(&mut tx, caller, number).await?;
    let narrowing = ListFilter { shown: Visibility::HeldBy(account.id), host: None, status: None, public: None };
    page(app, &mut tx, filter, narrowing).await
}

async fn page(app: &App, tx: &mut Tx, filter: &EventFilter, narrowing: ListFilter<'_>) -> Result<Page<Event>> {
    let found = store::list(tx, filter, narrowing, app.clock.now()).await?;
    Ok(filter.paging.page(found.total, views(app, tx, found.rows).await?))
}

pub async fn get(app: &App, caller: &Caller, id: Id) -> Result<Event> {
    let mut tx = app.db.read().await?;
    let row = load_visible(&mut tx, caller, id).await?;
    view_one(app, &mut tx, row).await
}

pub async fn create(app: &App, caller: &Caller, new: &EventCreate) -> Result<Event> {
    let images = EventImages::parse(new.banner.as_ref(), new.thumbnail.as_ref());
    let now = app.clock.now();
    if images.has_new() {
        // Storing an image takes its time, so no transaction waits for it; all that could refuse it is asked before.
        let row = new.row(Id::NONE, now, &images);
        let mut tx = app.db.read().await?;
        check_new(&mut tx, caller, &row, &images.problems).await?;
        check_title(&mut tx, &row).await?;
        drop(tx);
        images.store(app).await?;
    }
    let created = transaction!(app.db, |tx| {
        let row = new.row(app.clock.next_id(), now, &images);
        check_new(tx, caller, &row, &images.problems).await?;
        store::insert(tx, &row).await.on_unique(TITLE, Code::EventTaken)?;
        tokens::create_global(app, tx, row.id).await?;
        view_one(app, tx, row).await
    });
    if created.as_ref().is_err_and(Error::is_definite) {
        images.discard(app).await;
    }
    created
}

pub async fn update(app: &App, caller: &Caller, id: Id, change: &EventUpdate) -> Result<Event> {
    let images = EventImages::parse(change.banner.as_ref(), change.thumbnail.as_ref());
    if images.has_new() {
        let mut tx = app.db.read().await?;
        let before = load_managed(&mut tx, caller, id).await?;
        let row = check_change(app, &mut tx, caller, &before, change, &images).await?;
        check_title(&mut tx, &row).await?;
        drop(tx);
        images.store(app).await?;
    }
    let changed = transaction!(app.db, |tx| {
        let before = lock_managed(tx, caller, id).await?;
        let row = check_change(app, tx, caller, &before, change, &images).await?;
        store::update(tx, &row).await.on_unique(TITLE, Code::EventTaken)?;
        let event = view_one(app, tx, row.clone()).await?;
        Ok::<_, Error>((before, row, event))
    });
    match changed {
        Ok((before, after, event)) => {
            discard_replaced(app, &before, Some(&after)).await;
            Ok(event)
        }
        Err(error) => {
            if error.is_definite() {
                images.discard(app).await;
            }
            Err(error)
        }
    }
}

/// Removes an event with its advertisements, which would promote nothing.
pub async fn delete(app: &App, caller: &Caller, id: Id) -> Result<()> {
    let now = app.clock.now();
    let (row, artwork) = transaction!(app.db, |tx| remove(tx, caller, id, now).await)?;
    discard_replaced(app, &row, None).await;
    db::after_commit(app, move |app| media::discard(app, ImageKind::Artwork, artwork).boxed()).await;
    Ok(())
}

/// The event as it was, and the artwork that nothing shows any more.
async fn remove(tx: &mut Tx, caller: &Caller, id: Id, now: Timestamp) -> Result<(EventRow, Vec<Id>)> {
    let row = lock_managed(tx, caller, id).await?;
    let parts = sections::store::of_events(tx, [id], now).await?;
    if parts.iter().any(|section| section.sold > 0) {
        return Err(Code::EventSold.into());
    }
    if parts.iter().any(|section| section.reserved > 0) {
        return Err(
            Code::EventSold.with_message("Places of this event are reserved for open orders. Withdraw or cancel it instead.")
        );
    }
    store::delete_expired_reservations(tx, id, now).await?;
    tokens::end_keys_of_event(tx, id, now).await?;
    review::forget(tx, SubmissionType::Event, [id]).await?;
    let artwork = advertisements::remove_of_event(tx, id).await?;
    // Tickets that were made void keep their event, which a foreign key says.
    store::delete(tx, id).await.on_foreign_key(Code::EventSold)?;
    Ok((row, artwork))
}

pub async fn submit(app: &App, caller: &Caller, id: Id) -> Result<Submission> {
    transaction!(app.db, |tx| {
        let row = load_managed(tx, caller, id).await?;
        if !store::transition(tx, id, EventStatus::Draft, EventStatus::UnderReview, None).await? {
            return Err(Code::EventNotDraft.into());
        }
        hosts::require_active(tx, row.host_id).await?;
        review::submit(app, tx, SubmissionType::Event, id, caller.account).await
    })
}

/// Makes a Listed event a Draft again. What was sold stays valid, and what is reserved can be paid.
pub async fn withdraw(app: &App, caller: &Caller, id: Id) -> Result<Event> {
    transaction!(app.db, |tx| unlist(app, tx, caller, id, EventStatus::Draft).await)
}

/// Cancels a Listed event. What was sold is left to be returned, and what is reserved can't be paid any more.
pub async fn cancel(app: &App, caller: &Caller, id: Id) -> Result<Event> {
    transaction!(app.db, |tx| unlist(app, tx, caller, id, EventStatus::Cancelled).await)
}

async fn unlist(app: &App, tx: &mut Tx, caller: &Caller, id: Id, to: EventStatus) -> Result<Event> {
    let row = lock_managed(tx, caller, id).await?;
    if !store::transition(tx, id, EventStatus::Listed, to, None).await? {
        return Err(Code::EventNotListed.into());
    }
    view_one(app, tx, EventRow { status: to, ..row }).await
}

/// What the decision on its submission does to an event: it is Listed, or a Draft again. A removed host lists no more events.
///
/// # Errors
/// [`Code::HostRemoved`] for an approval, [`Code::SubmissionDecided`] for an event that is not under review.
pub async fn apply_decision(tx: &mut Tx, id: Id, approved: bool, now: Timestamp) -> Result<()> {
    let (to, published) = if approved { (EventStatus::Listed, Some(now)) } else { (EventStatus::Draft, None) };
    if approved {
        let host = load(tx, id).await?.host_id;
        hosts::require_active(tx, host).await?;
    }
    let decided = store::transition(tx, id, EventStatus::UnderReview, to, published).await?;
    if decided { Ok(()) } else { Err(Code::SubmissionDecided.into()) }
}

/// What stands against a new event. Who may not act for the host learns nothing of the rest.
async fn check_new(tx: &mut Tx, caller: &Caller, row: &EventRow, images: &[FieldError]) -> Result<()> {
    let mut problems = Vec::new();
    if hosts::exists(tx, row.host_id).await? {
        hosts::require_administrator(tx, caller, row.host_id).await?;
    } else {
        problems.push(FieldError::invalid("host", "names no host"));
    }
    problems.extend(problems_of(tx, caller, None, row).await?);
    problems.extend_from_slice(images);
    ensure_no_field_errors(problems)?;
    hosts::require_active(tx, row.host_id).await
}

/// The event as it is to be, unless something stands against its change.
async fn check_change(
    app: &App,
    tx: &mut Tx,
    caller: &Caller,
    before: &EventRow,
    change: &EventUpdate,
    images: &EventImages,
) -> Result<EventRow> {
    let row = change.apply(before, images);
    let mut problems = problems_of(tx, caller, Some(before), &row).await?;
    if change.host.as_ref().is_some_and(|host| host.id != before.host_id) {
        problems.insert(0, FieldError::invalid("host", "can't be changed"));
    }
    problems.extend_from_slice(&images.problems);
    ensure_no_field_errors(problems)?;
    if before.status == EventStatus::Cancelled {
        return Err(Code::EventCancelled.into());
    }
    // A venue where events have been staged stays (requirement), so it is not forgotten where this one was.
    if before.status.is_public() && before.ends <= app.clock.now() && row.venue_id != before.venue_id {
        return Err(Code::EventOver.with_message("This event is over, so its venue can't be changed any more."));
    }
    Ok(row)
}

/// Whether another event has the title, before an image is stored for nothing; the unique index has the last word.
async fn check_title(tx: &mut Tx, row: &EventRow) -> Result<()> {
    if store::is_title_taken(tx, row).await? { Err(Code::EventTaken.into()) } else { Ok(()) }
}

/// What is wrong with the event as it would be, in the contract's order. A venue that it has already may stay.
async fn problems_of(tx: &mut Tx, caller: &Caller, before: Option<&EventRow>, row: &EventRow) -> Result<Vec<FieldError>> {
    let mut problems = Vec::new();
    match categories::views(tx, [row.category_id]).await?.get(&row.category_id) {
        None => problems.push(FieldError::invalid("category", "names no category")),
        Some(category) if !category.subcategories.contains(&row.subcategory) => {
            problems.push(FieldError::invalid("subcategory", "is no subcategory of the category"));
        }
        Some(_) => {}
    }
    let moves = before.is_none_or(|before| before.venue_id != row.venue_id);
    if moves && !venues::is_usable(tx, caller, row.venue_id).await? {
        problems.push(FieldError::invalid("venue", "names no venue you may use"));
    }
    if row.ends <= row.starts {
        problems.push(FieldError::invalid("end", "must be after start"));
    }
    Ok(problems)
}
