//! API representation of advertisements.

use std::collections::HashMap;

use boxoffice_http::error::{Error, Result};

use super::markdown;
use super::model::{AdvertisedEvent, Advertisement, AdvertisementRow, AdvertisementSlot};
use super::store;
use crate::features::catalog::events;
use crate::features::catalog::media::{self, ImageKind};
use crate::features::catalog::zones::{self, Zone};
use crate::kernel::db::Reader;
use crate::kernel::types::api_types::{PlainMinutes, Uri};
use crate::kernel::types::id::Id;
use crate::state::App;

/// Related data of the advertisements of a page: events by event identifier, the rest by advertisement identifier.
struct AdvertisementRelations {
    zones: HashMap<Id, Vec<Zone>>,
    slots: HashMap<Id, Vec<AdvertisementSlot>>,
    events: HashMap<Id, AdvertisedEvent>,
}

/// Returns the representation of these advertisements, in their order. Advertisements whose event was removed after they were
/// read are left out, because they were removed with it. Related data is loaded for all of them at once.
pub async fn views(app: &App, reader: &mut Reader, rows: Vec<AdvertisementRow>) -> Result<Vec<Advertisement>> {
    let ids = || rows.iter().map(|row| row.id);
    let mut relations = AdvertisementRelations {
        zones: zones_of(reader, ids()).await?,
        slots: HashMap::new(),
        events: events_of(app, reader, rows.iter().map(|row| row.event_id)).await?,
    };
    for slot in store::slots(reader, ids()).await? {
        let (start, end) = (PlainMinutes::from(slot.starts), PlainMinutes::from(slot.ends));
        relations.slots.entry(slot.advertisement_id).or_default().push(AdvertisementSlot { start, end });
    }
    Ok(rows.into_iter().filter_map(|row| view(app, row, &mut relations)).collect())
}

/// Returns the representation of one advertisement.
///
/// # Errors
/// [`Error::NOT_FOUND`] if its event was removed after it was read.
pub async fn view_one(app: &App, reader: &mut Reader, row: AdvertisementRow) -> Result<Advertisement> {
    views(app, reader, vec![row]).await?.pop().ok_or(Error::NOT_FOUND)
}

async fn zones_of(reader: &mut Reader, advertisements: impl Iterator<Item = Id>) -> Result<HashMap<Id, Vec<Zone>>> {
    let bookings = store::zones(reader, advertisements).await?;
    let views = zones::views(reader, bookings.iter().map(|(_, zone)| *zone)).await?;
    let mut zones: HashMap<Id, Vec<Zone>> = HashMap::new();
    for (advertisement, zone) in bookings {
        zones.entry(advertisement).or_default().extend(views.get(&zone).cloned());
    }
    Ok(zones)
}

async fn events_of(app: &App, reader: &mut Reader, ids: impl Iterator<Item = Id>) -> Result<HashMap<Id, AdvertisedEvent>> {
    let rows = events::find_all(reader, ids).await?;
    let ids: Vec<Id> = rows.iter().map(|row| row.id).collect();
    let views = events::views(app, reader, rows).await?;
    Ok(ids.into_iter().zip(views.into_iter().map(AdvertisedEvent::from)).collect())
}

fn view(app: &App, row: AdvertisementRow, relations: &mut AdvertisementRelations) -> Option<Advertisement> {
    let event = relations.events.get(&row.event_id).cloned()?;
    let is_public = row.status.is_public() && event.status.is_public();
    Some(Advertisement {
        uri: Uri(format!("/advertisements/{}", row.id)),
        status: row.status,
        artwork: media::image_uri(app, ImageKind::Artwork, row.id, Some(row.artwork_id), is_public),
        zones: relations.zones.remove(&row.id).unwrap_or_default(),
        schedule: relations.slots.remove(&row.id).unwrap_or_default(),
        event,
        parsed: markdown::parse(&row.description),
        name: row.name,
        description: row.description,
    })
}
