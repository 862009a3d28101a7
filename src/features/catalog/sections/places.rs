//! SQL of the counts of places in sections: sold, reserved, and offered to the accounts of a waiting list.

use std::collections::BTreeMap;

use boxoffice_http::error::Result;

use super::SectionRow;
use crate::kernel::db::{Tx, Writes};
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::Id;
use crate::kernel::types::money::Money;
use crate::state::App;

/// The places of a locked section.
#[derive(Debug, Clone, Copy, sqlx_macros::FromRow)]
pub struct Places {
    id: Id,
    /// The number of places that are neither sold nor reserved.
    #[sqlx(rename = "places_left")]
    pub left: i64,
    /// The number of entries of the waiting list that wait. While it isn't 0, only the list gets the places that are left.
    pub waiting: i64,
    /// The number of places in open offers to accounts of the waiting list. They are reserved.
    pub offered: i64,
    /// The terms of its sale.
    #[sqlx(flatten)]
    pub terms: SaleTerms,
    /// True if it has expired reservations.
    has_expired: bool,
}

/// The columns of a section that decide whether it may be ordered, and at what price.
#[derive(Debug, Clone, Copy, PartialEq, Eq, sqlx_macros::FromRow)]
pub struct SaleTerms {
    base_price: Money,
    sales_start: Timestamp,
    sales_end: Timestamp,
    active: bool,
    maximum_per_account: Option<i64>,
}

impl From<&SectionRow> for SaleTerms {
    fn from(row: &SectionRow) -> Self {
        let SectionRow { base_price, sales_start, sales_end, active, maximum_per_account, .. } = *row;
        Self { base_price, sales_start, sales_end, active, maximum_per_account }
    }
}

impl Places {
    /// Returns the number of places that an account without an offer can order.
    pub fn orderable(&self) -> i64 {
        orderable(self.left, self.waiting)
    }
}

/// Returns how many of the places that are left can be ordered without an offer: none while accounts wait for them.
pub(super) fn orderable(left: i64, waiting: i64) -> i64 {
    if waiting > 0 { 0 } else { left }
}

/// Locks these sections like [`lock_all`](super::lock_all), deletes their expired reservations, and returns the places of each.
/// Leaves out sections that no longer exist.
///
/// # Errors
/// Returns an error if the clock was set back since it has returned `now`, so that the reservations may not have expired.
pub async fn lock_available(
    app: &App,
    tx: &mut Tx,
    sections: impl IntoIterator<Item = Id>,
    now: Timestamp,
) -> Result<BTreeMap<Id, Places>> {
    let locked = tx.select(
        "id, capacity - sold - reserved as places_left, waiting, offered, base_price, sales_start, sales_end, active,
         maximum_per_account, ",
    );
    let locked = locked.push_bind(
        "exists (select 1 from reservations r where r.section_id = sections.id and r.expires <= ?) as has_expired
         from sections where true",
        now,
    );
    let locked: Vec<Places> = locked.and_in("id", sections).for_update().all().await?;
    let mut available: BTreeMap<Id, Places> = locked.into_iter().map(|places| (places.id, places)).collect();
    if !available.values().any(|places| places.has_expired) {
        return Ok(available);
    }
    app.clock.require_not_set_back(now)?;
    let expired = tx.delete("reservations where true").and_where("expires <= ?", Some(now));
    let expired = expired.and_in("section_id", available.keys().copied());
    let expired: Vec<(Id, i64)> = expired.push(" returning section_id, quantity").all().await?;
    let mut changes: BTreeMap<Id, (i64, i64)> = BTreeMap::new();
    for (section, quantity) in expired {
        if let Some(places) = available.get_mut(&section) {
            places.left += quantity;
        }
        let (reserved, _) = changes.entry(section).or_default();
        *reserved -= quantity;
    }
    adjust_counts(tx.writes(), &changes).execute().await?;
    Ok(available)
}

/// Adds to the numbers of reserved and of sold places of sections. The sections must be [locked](super::lock_all).
pub fn adjust_counts<'a>(writes: Writes<'a>, changes: &BTreeMap<Id, (i64, i64)>) -> Writes<'a> {
    if changes.is_empty() {
        return writes;
    }
    let change = "update sections set reserved = sections.reserved + v.column2, sold = sections.sold + v.column3 from (";
    let changes: Vec<_> = changes.iter().collect();
    writes.statement(|update| {
        let update = update.push(change).values(&changes, |columns| {
            columns.add(|(section, _)| **section).add(|(_, (reserved, _))| *reserved).add(|(_, (_, sold))| *sold);
        });
        update.push(") as v where sections.id = v.column1")
    })
}

/// Adds to the counts of the waiting lists of locked sections: the section, and the changes of the number of entries that wait and
/// of the number of offered places.
pub async fn adjust_waiting(tx: &mut Tx, changes: &[(Id, i64, i64)]) -> Result<()> {
    if changes.is_empty() {
        return Ok(());
    }
    let change = "sections set waiting = sections.waiting + v.column2, offered = sections.offered + v.column3,
         reserved = sections.reserved + v.column3 from (";
    let update = tx.update(change).values(changes, |columns| {
        columns.add(|(section, ..)| *section).add(|(_, waiting, _)| *waiting).add(|(.., offered)| *offered);
    });
    update.push(") as v where sections.id = v.column1").execute().await
}

/// Subtracts the places of used offers from the offered places of locked sections. The places stay reserved.
pub async fn end_offers(tx: &mut Tx, offers: impl IntoIterator<Item = (Id, i64)>) -> Result<()> {
    let mut places: BTreeMap<Id, i64> = BTreeMap::new();
    for (section, quantity) in offers {
        *places.entry(section).or_default() += quantity;
    }
    let places: Vec<(Id, i64)> = places.into_iter().collect();
    let update = tx.update("sections set offered = sections.offered - v.column2 from (").values(&places, |columns| {
        columns.add(|(section, _)| *section).add(|(_, quantity)| *quantity);
    });
    update.push(") as v where sections.id = v.column1").execute().await
}

/// Sets the counts of the waiting list of a locked section to 0, and frees its offered places.
pub async fn close_waiting(tx: &mut Tx, section: Id) -> Result<()> {
    let update = "update sections set reserved = reserved - offered, waiting = 0, offered = 0 where id = $1";
    tx.query(update).bind(section).execute().await
}
