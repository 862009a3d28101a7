//! Copying an event. The copy is inserted in one transaction.

use std::collections::HashMap;

use anyhow::anyhow;
use boxoffice_http::error::{Error, Result};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::features::catalog::events::{self, Event, EventRow, EventStatus};
use crate::features::catalog::media::{self, ImageKind};
use crate::features::catalog::price_modifiers::{self, ModifierRow};
use crate::features::catalog::sections::{self, SectionRow};
use crate::kernel::auth::Caller;
use crate::kernel::db::{Tx, transaction};
use crate::kernel::types::api_types::MinuteInput;
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::Id;
use crate::state::{App, Ctx};

#[derive(Debug, Deserialize, JsonSchema)]
pub struct EventCopyCreate {
    #[schemars(length(min = 1, max = 200))]
    pub title: String,
    pub start: MinuteInput,
    pub end: Option<MinuteInput>,
}

/// Number of times that the images are copied, if they are replaced meanwhile.
const MAX_ATTEMPTS: usize = 5;

/// Identifiers of an event's banner and thumbnail, or of their copies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Images {
    banner: Option<Id>,
    thumbnail: Option<Id>,
}

impl Images {
    fn are_as_many_as(self, other: Self) -> bool {
        (self.banner.is_some(), self.thumbnail.is_some()) == (other.banner.is_some(), other.thumbnail.is_some())
    }
}

/// Moves times by the difference between two starts.
#[derive(Debug, Clone, Copy)]
struct Shift(i64);

impl Shift {
    /// Returns the moved time. [`Timestamp::NEVER`] stays as it is.
    ///
    /// # Errors
    /// A field error if the time would be before [`Timestamp::EARLIEST`], or [`Timestamp::NEVER`] or after it.
    fn apply(self, time: Timestamp) -> Result<Timestamp> {
        if time == Timestamp::NEVER {
            return Ok(time);
        }
        let moved = time.0.saturating_add(self.0);
        if (Timestamp::EARLIEST.0..Timestamp::NEVER.0).contains(&moved) {
            return Ok(Timestamp(moved));
        }
        Err(Error::invalid("start", "is too far from the start of the event: another time of the copy would be out of range"))
    }
}

/// Copies an event. The images are copied before the transaction, because that is slow.
pub async fn create(ctx: &Ctx, caller: &Caller, event: Id, new: &EventCopyCreate) -> Result<Event> {
    let images = check_and_copy_images(ctx, caller, event, new).await?;
    let copied = transaction!(ctx.unit, |tx| create_in_tx(&ctx.app, tx, caller, event, new, images).await);
    if copied.is_err() {
        discard(&ctx.app, images).await;
    }
    copied
}

/// Checks the request, and copies the images of the event.
///
/// # Errors
/// [`Error::Unavailable`] if the images are replaced all the time.
async fn check_and_copy_images(ctx: &Ctx, caller: &Caller, event: Id, new: &EventCopyCreate) -> Result<Images> {
    let mut missing = None;
    for _ in 0..MAX_ATTEMPTS {
        let source = check(ctx, caller, event, new).await?;
        let images = copy_images(&ctx.app, &source).await?;
        let of_source = Images { banner: source.banner_id, thumbnail: source.thumbnail_id };
        // An image may be replaced after the row was read. Then the row already refers to the new one. An image that the store has
        // lost stays missing.
        if images.are_as_many_as(of_source) || missing == Some(of_source) {
            return Ok(images);
        }
        discard(&ctx.app, images).await;
        missing = Some(of_source);
    }
    Err(Error::Unavailable(anyhow!("the images of the event are replaced all the time")))
}

/// Checks the request. Returns the event to be copied.
async fn check(ctx: &Ctx, caller: &Caller, event: Id, new: &EventCopyCreate) -> Result<EventRow> {
    transaction!(ctx.unit.dry_run(), |tx| {
        let source = events::load_managed(tx, caller, event).await?;
        let copy = copied_row(&source, new, Id::NONE)?;
        events::check_copy(tx, caller, &source, &copy).await?;
        events::check_title(tx, &copy).await?;
        Ok::<_, Error>(source)
    })
}

async fn create_in_tx(
    app: &App,
    tx: &mut Tx,
    caller: &Caller,
    event: Id,
    new: &EventCopyCreate,
    images: Images,
) -> Result<Event> {
    // Locked, so that its sections and price modifiers don't change while they are copied.
    let source = events::lock_managed(tx, caller, event).await?;
    let row = copied_row(&source, new, app.clock.next_id())?;
    let row = EventRow { banner_id: images.banner, thumbnail_id: images.thumbnail, ..row };
    events::check_copy(tx, caller, &source, &row).await?;
    let shift = Shift(row.starts.0.saturating_sub(source.starts.0));
    let before = sections::store::of_events(tx, [source.id], app.clock.now()).await?;
    let modifiers = price_modifiers::of_event(tx, source.id).await?;

    events::insert(app, tx, &row).await?;
    let copies: HashMap<Id, Id> = before.iter().map(|section| (section.id, app.clock.next_id())).collect();
    let copied = before.into_iter().filter_map(|section| Some((*copies.get(&section.id)?, section)));
    let copied = copied.map(|(id, section)| {
        let (sales_start, sales_end) = (shift.apply(section.sales_start)?, shift.apply(section.sales_end)?);
        Ok(SectionRow { id, event_id: row.id, sales_start, sales_end, ..section })
    });
    let copied: Vec<SectionRow> = copied.collect::<Result<_>>()?;
    sections::store::insert(tx, &copied).await?;
    let modifiers = modifiers.into_iter().filter_map(|modifier| Some((*copies.get(&modifier.section_id)?, modifier)));
    let modifiers = modifiers.map(|(section_id, modifier)| {
        let available_from = modifier.available_from.map(|time| shift.apply(time)).transpose()?;
        let available_to = modifier.available_to.map(|time| shift.apply(time)).transpose()?;
        Ok(ModifierRow { id: app.clock.next_id(), section_id, available_from, available_to, ..modifier })
    });
    price_modifiers::insert(tx, &modifiers.collect::<Result<Vec<_>>>()?).await?;
    events::view_one(app, tx, row).await
}

/// Returns the row of the copy, without images. Without an end, it lasts as long as the event. A shorter copy may end before the time
/// from which its gates would admit; it then has no such time.
///
/// # Errors
/// A field error if the end would be out of range.
fn copied_row(source: &EventRow, new: &EventCopyCreate, id: Id) -> Result<EventRow> {
    let starts = new.start.0;
    let shift = Shift(starts.0.saturating_sub(source.starts.0));
    let ends = new.end.map_or_else(|| shift.apply(source.ends), |end| Ok(end.0))?;
    let admission_from = source.admission_from.map(|time| shift.apply(time)).transpose()?;
    Ok(EventRow {
        id,
        title: new.title.clone(),
        status: EventStatus::Draft,
        starts,
        ends,
        admission_from: admission_from.filter(|from| *from < ends),
        banner_id: None,
        thumbnail_id: None,
        published: None,
        revised: None,
        popularity: 0,
        ..source.clone()
    })
}

/// Copies the images of an event that the store has. If that fails, no copy remains.
async fn copy_images(app: &App, source: &EventRow) -> Result<Images> {
    let banner = media::copy(app, ImageKind::Banner, source.banner_id).await?;
    match media::copy(app, ImageKind::Thumbnail, source.thumbnail_id).await {
        Ok(thumbnail) => Ok(Images { banner, thumbnail }),
        Err(error) => {
            discard(app, Images { banner, thumbnail: None }).await;
            Err(error)
        }
    }
}

/// Removes copied images to which no row refers.
async fn discard(app: &App, images: Images) {
    media::discard(app, ImageKind::Banner, images.banner).await;
    media::discard(app, ImageKind::Thumbnail, images.thumbnail).await;
}
