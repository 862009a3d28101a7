//! Artwork, zones and schedule of an advertisement in a request, and their validation.

use boxoffice_http::error::{FieldError, Result};

use super::model::{AdvertisementRow, SlotRow};
use super::requests::AdvertisementSlotCreate;
use super::store;
use crate::features::catalog::media::{self, Image, ImageText};
use crate::features::catalog::zones::{self, Zone};
use crate::kernel::auth::Caller;
use crate::kernel::db::Tx;
use crate::kernel::types::api_types::ResourceRef;
use crate::kernel::types::id::Id;
use crate::state::App;

/// Artwork, zones and schedule in a request. `None` leaves the current value unchanged.
pub struct AdvertisementDraft {
    artwork: Option<Result<Image, FieldError>>,
    zones: Option<Vec<Id>>,
    schedule: Option<Vec<AdvertisementSlotCreate>>,
}

impl AdvertisementDraft {
    /// Parses the artwork, zones and schedule of a request. `None` leaves the current value unchanged.
    ///
    /// # Errors
    /// 429 or 503 if too many images wait to be decoded. Artwork that is not an image is in [`problems`](Self::problems) instead.
    pub async fn parse(
        app: &App,
        caller: &Caller,
        artwork: Option<&ImageText>,
        zones: Option<&[ResourceRef<Zone>]>,
        schedule: Option<&[AdvertisementSlotCreate]>,
    ) -> Result<Self> {
        let artwork = match artwork {
            Some(text) => Some(media::parse_upload(app, caller, "artwork", text).await?),
            None => None,
        };
        let zones = zones.map(|zones| zones.iter().map(|zone| zone.id).collect());
        Ok(Self { artwork, zones, schedule: schedule.map(<[_]>::to_vec) })
    }

    /// Returns the new artwork, if it is a valid image.
    pub fn image(&self) -> Option<&Image> {
        self.artwork.as_ref().and_then(|artwork| artwork.as_ref().ok())
    }

    /// Returns whether the request changes the zones or the schedule.
    pub fn is_booking(&self) -> bool {
        self.zones.is_some() || self.schedule.is_some()
    }

    /// Returns the width and height of the resulting artwork; zeros if it isn't a valid image.
    pub fn dimensions(&self, before: Option<&AdvertisementRow>) -> (i64, i64) {
        match (self.image(), before) {
            (Some(image), _) => (image.width.into(), image.height.into()),
            (None, Some(row)) => (row.width, row.height),
            (None, None) => (0, 0),
        }
    }

    /// Returns the field errors of the resulting artwork, zones and schedule, in the contract's order. The zones can be neither
    /// removed nor resized before the transaction ends.
    pub async fn problems(&self, tx: &mut Tx, before: Option<&AdvertisementRow>) -> Result<Vec<FieldError>> {
        let ids = match (&self.zones, before) {
            (Some(ids), _) => ids.clone(),
            (None, Some(row)) => store::zones(tx, [row.id]).await?.into_iter().map(|(_, zone)| zone).collect(),
            (None, None) => Vec::new(),
        };
        let by_id = zones::lock_shared(tx, ids.iter().copied()).await?;
        let unknown = indexes_where(&ids, |zone| !by_id.contains_key(zone));
        let mut artwork = Vec::new();
        let mut zones = Vec::new();
        if !unknown.is_empty() {
            zones.push(format!("names no zone (at {unknown})"));
        }
        if let Some(Err(problem)) = &self.artwork {
            artwork.push(problem.detail.clone());
        } else if let Some(mismatch) = dimension_mismatch(self.dimensions(before), ids.iter().filter_map(|id| by_id.get(id))) {
            // Report the error for the field in the request: the artwork if it is new, otherwise the zones.
            if self.artwork.is_some() {
                artwork.push(mismatch);
            } else {
                zones.push(format!("does not fit: the artwork {mismatch}"));
            }
        }
        let backward = indexes_where(self.schedule.as_deref().unwrap_or_default(), |slot| slot.end.0 <= slot.start.0);
        let schedule = if backward.is_empty() { vec![] } else { vec![format!("must end after its start (at {backward})")] };
        let problems = [("artwork", artwork), ("zones", zones), ("schedule", schedule)];
        let invalid = problems.into_iter().filter(|(_, details)| !details.is_empty());
        Ok(invalid.map(|(name, details)| FieldError::invalid(name, details.join("; "))).collect())
    }

    /// Writes the zones and the schedule of an advertisement without [problems](Self::problems). Its row must already have the
    /// artwork's dimensions.
    pub async fn write(&self, tx: &mut Tx, row: &AdvertisementRow) -> Result<()> {
        if self.zones.is_some() || self.artwork.is_some() {
            let previous = store::delete_zones(tx, row.id).await?;
            let zones = self.zones.clone().unwrap_or(previous);
            store::insert_zones(tx, row, deduplicated(zones)).await?;
        }
        if let Some(schedule) = &self.schedule {
            let slot =
                |slot: &AdvertisementSlotCreate| SlotRow { advertisement_id: row.id, starts: slot.start.0, ends: slot.end.0 };
            store::delete_slots(tx, row.id).await?;
            store::insert_slots(tx, schedule.iter().map(slot)).await?;
        }
        Ok(())
    }
}

/// Returns the 0-based indexes of the items for which `is_so` holds, as text.
fn indexes_where<T>(items: &[T], is_so: impl Fn(&T) -> bool) -> String {
    let indexes = items.iter().enumerate().filter(|(_, item)| is_so(item)).map(|(index, _)| index.to_string());
    indexes.collect::<Vec<_>>().join(", ")
}

/// Returns a message about the zones with other dimensions, or `None` if the artwork fits all of them.
fn dimension_mismatch<'a>((width, height): (i64, i64), zones: impl Iterator<Item = &'a Zone>) -> Option<String> {
    let mismatched = zones.filter(|zone| (zone.width, zone.height) != (width, height));
    let mismatched: Vec<_> =
        mismatched.map(|zone| format!("zone {} ({}) takes {} × {}", zone.number, zone.name, zone.width, zone.height)).collect();
    (!mismatched.is_empty()).then(|| format!("is {width} × {height} pixels, but {}", deduplicated(mismatched).join(", ")))
}

/// Returns the items without duplicates, in the order of their first occurrence.
fn deduplicated<T: PartialEq>(items: Vec<T>) -> Vec<T> {
    let mut unique = Vec::with_capacity(items.len());
    for item in items {
        if !unique.contains(&item) {
            unique.push(item);
        }
    }
    unique
}
