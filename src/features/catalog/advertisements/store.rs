//! SQL of advertisements, their zones and their schedules.

use boxoffice_http::error::Result;

use super::model::{AdvertisementRow, SlotRow};
use crate::features::catalog::events::{self, EventStatus};
use crate::kernel::auth::Caller;
use crate::kernel::db::{Reader, Statement, Tx, define_sql};
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::folding::fold;
use crate::kernel::types::id::Id;
use crate::kernel::types::paging::{PageRequest, PagedRows};

// The columns of `AdvertisementRow`.
define_sql!(columns, "id, event_id, name, description, status, artwork_id, width, height");

/// Set of advertisements that a list may include.
#[derive(Debug)]
pub enum AdvertisementVisibility<'a> {
    /// All advertisements.
    All,
    /// Advertisements that this caller may see.
    To(&'a Caller),
}

/// Filters of a list.
#[derive(Debug)]
pub struct AdvertisementListFilter<'a> {
    pub visibility: AdvertisementVisibility<'a>,
    pub host: Option<Id>,
    pub event: Option<Id>,
    pub zone: Option<Id>,
    pub status: Option<EventStatus>,
    pub active: Option<bool>,
}

/// Returns a page of advertisements, the oldest first. An advertisement is active if it is listed and within a slot of its
/// schedule, and its event is listed and not over: if its zones show it.
pub async fn list(
    reader: &mut Reader,
    paging: PageRequest,
    filter: AdvertisementListFilter<'_>,
    now: Timestamp,
) -> Result<PagedRows<AdvertisementRow>> {
    const ACTIVE: &str = "(a.status = 'Listed' and e.status = 'Listed' and e.ends > ? and exists (
        select 1 from advertisement_slots s where s.advertisement_id = a.id and s.starts <= ? and s.ends > ?))";
    const BOOKED: &str = "exists (select 1 from advertisement_zones z where z.advertisement_id = a.id and z.zone_id = ?)";
    visibility_clause(
        reader.list(
            "a.id, a.event_id, a.name, a.description, a.status, a.artwork_id, a.width, a.height",
            "from advertisements a join events e on e.id = a.event_id where true",
        ),
        &filter.visibility,
    )
    .and_where("e.host_id = ?", filter.host)
    .and_where("a.event_id = ?", filter.event)
    .and_where(BOOKED, filter.zone)
    .and_where("a.status = ?", filter.status)
    .and_where(ACTIVE, (filter.active == Some(true)).then_some(now))
    .and_where(&format!("not {ACTIVE}"), (filter.active == Some(false)).then_some(now))
    .sized_page("a.id", &bytes_sql(), paging)
    .await
}

/// Returns the SQL expression for the size of an advertisement `a` of an event `e` in a page, in bytes: with the event and its
/// sections, its zones and its schedule. Parsed markup has up to 16 times the size of its text.
fn bytes_sql() -> String {
    format!(
        "(2000 + octet_length(a.name) + 17 * octet_length(a.description) + {}
          + (select 60 * count(*) from advertisement_slots t where t.advertisement_id = a.id)
          + coalesce((select sum(400 + octet_length(n.name) + octet_length(n.description))
                      from advertisement_zones z join zones n on n.id = z.zone_id where z.advertisement_id = a.id), 0))",
        events::bytes_sql()
    )
}

/// Adds the condition for `visibility`. An advertisement includes its event, so every caller may see it only if both are public. All
/// others are visible to their host's administrators and to platform administrators.
fn visibility_clause<'a>(select: Statement<'a>, visibility: &AdvertisementVisibility<'_>) -> Statement<'a> {
    const PUBLIC: &str = "a.status in ('Listed', 'Cancelled') and e.status in ('Listed', 'Cancelled')";
    match visibility {
        AdvertisementVisibility::All => select,
        AdvertisementVisibility::To(caller) if caller.is_administrator() => select,
        AdvertisementVisibility::To(Caller { account: None, .. }) => select.push(&format!(" and {PUBLIC}")),
        AdvertisementVisibility::To(Caller { account, .. }) => select.and_where(
            &format!("(({PUBLIC}) or e.host_id in (select m.host_id from host_administrators m where m.account_id = ?))"),
            *account,
        ),
    }
}

pub async fn find(reader: &mut Reader, id: Id) -> Result<Option<AdvertisementRow>> {
    reader.query(concat!("select ", columns!(), " from advertisements where id = $1")).bind(id).optional().await
}

/// Locks and returns the advertisement. The row includes all earlier changes; later changes by other transactions wait until this
/// one ends.
pub async fn lock(tx: &mut Tx, id: Id) -> Result<Option<AdvertisementRow>> {
    let advertisement = tx.select(concat!(columns!(), " from advertisements where true")).and_where("id = ?", Some(id));
    advertisement.for_update().optional().await
}

/// Returns the zones of these advertisements as `(advertisement, zone)`, each advertisement's in their order.
pub async fn zones(reader: &mut Reader, advertisements: impl IntoIterator<Item = Id>) -> Result<Vec<(Id, Id)>> {
    let select = reader.select("advertisement_id, zone_id from advertisement_zones where true");
    select.and_in("advertisement_id", advertisements).push(" order by advertisement_id, position").all().await
}

/// Returns the slots of these advertisements, each advertisement's in their order.
pub async fn slots(reader: &mut Reader, advertisements: impl IntoIterator<Item = Id>) -> Result<Vec<SlotRow>> {
    let select = reader.select("advertisement_id, starts, ends from advertisement_slots where true");
    select.and_in("advertisement_id", advertisements).push(" order by advertisement_id, position").all().await
}

/// Returns the number of advertisements of an event.
pub async fn count_of_event(reader: &mut Reader, event: Id) -> Result<i64> {
    reader.query("select count(*) from advertisements where event_id = $1").bind(event).scalar().await
}

/// Returns whether another advertisement has this name.
pub async fn is_name_taken(reader: &mut Reader, name: &str, id: Option<Id>) -> Result<bool> {
    let other = "select exists (select 1 from advertisements where folded_name = $1 and id <> $2)";
    reader.query(other).bind(fold(name)).bind(id.unwrap_or(Id::NONE)).scalar().await
}

pub async fn insert(tx: &mut Tx, row: &AdvertisementRow) -> Result<()> {
    tx.query(
        "insert into advertisements (id, event_id, name, description, status, artwork_id, width, height, folded_name)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
    )
    .bind(row.id)
    .bind(row.event_id)
    .bind(row.name.clone())
    .bind(row.description.clone())
    .bind(row.status)
    .bind(row.artwork_id)
    .bind(row.width)
    .bind(row.height)
    .bind(fold(&row.name))
    .execute()
    .await
}

/// Writes the columns that a host may change.
pub async fn update(tx: &mut Tx, row: &AdvertisementRow) -> Result<()> {
    tx.query(
        "update advertisements set event_id = $2, name = $3, description = $4, artwork_id = $5, width = $6, height = $7,
         folded_name = case when name = $3 then folded_name else $8 end
         where id = $1",
    )
    .bind(row.id)
    .bind(row.event_id)
    .bind(row.name.clone())
    .bind(row.description.clone())
    .bind(row.artwork_id)
    .bind(row.width)
    .bind(row.height)
    .bind(fold(&row.name))
    .execute()
    .await
}

/// Books these zones, in this order, with the artwork's dimensions. A foreign key rejects a zone with other dimensions.
pub async fn insert_zones(tx: &mut Tx, row: &AdvertisementRow, zones: Vec<Id>) -> Result<()> {
    let (id, width, height) = (row.id, row.width, row.height);
    let zones: Vec<(i64, Id)> = (0..).zip(zones).collect();
    tx.insert_rows("advertisement_zones (advertisement_id, zone_id, width, height, position)", zones, |columns| {
        columns.add(|_| id).add(|(_, zone)| *zone).add(|_| width).add(|_| height).add(|(position, _)| *position);
    })
    .await
}

/// Removes an advertisement from every zone. Returns the zones that it was in, in their order.
pub async fn delete_zones(tx: &mut Tx, advertisement: Id) -> Result<Vec<Id>> {
    let delete = tx.query("delete from advertisement_zones where advertisement_id = $1 returning position, zone_id");
    let mut rows: Vec<(i64, Id)> = delete.bind(advertisement).all().await?;
    rows.sort_unstable();
    Ok(rows.into_iter().map(|(_, zone)| zone).collect())
}

pub async fn insert_slots(tx: &mut Tx, slots: impl Iterator<Item = SlotRow>) -> Result<()> {
    let slots: Vec<(i64, SlotRow)> = (0..).zip(slots).collect();
    tx.insert_rows("advertisement_slots (advertisement_id, position, starts, ends)", slots, |columns| {
        columns
            .add(|(_, slot)| slot.advertisement_id)
            .add(|(position, _)| *position)
            .add(|(_, slot)| slot.starts)
            .add(|(_, slot)| slot.ends);
    })
    .await
}

pub async fn delete_slots(tx: &mut Tx, advertisement: Id) -> Result<()> {
    tx.query("delete from advertisement_slots where advertisement_id = $1").bind(advertisement).execute().await
}

/// Changes the status from `from` to `to`. Returns false, and changes nothing, if the status isn't `from`.
pub async fn transition(tx: &mut Tx, id: Id, from: EventStatus, to: EventStatus) -> Result<bool> {
    let update = "update advertisements set status = $3 where id = $1 and status = $2";
    Ok(tx.query(update).bind(id).bind(from).bind(to).rows_affected().await? == 1)
}

/// Deletes the advertisement with its schedule, and removes it from every zone.
pub async fn delete(tx: &mut Tx, id: Id) -> Result<()> {
    tx.query("delete from advertisements where id = $1").bind(id).execute().await
}

/// Deletes every advertisement of an event like [`delete`]. Returns the identifiers of each advertisement and its artwork.
pub async fn delete_of_event(tx: &mut Tx, event: Id) -> Result<Vec<(Id, Id)>> {
    tx.query("delete from advertisements where event_id = $1 returning id, artwork_id").bind(event).all().await
}
