//! An event as an iCalendar file (RFC 5545), which calendar programs import.

use anyhow::Context as _;
use boxoffice_http::error::Result;
use icalendar::{Calendar, Component, EventLike, EventStatus as CalendarStatus, Property};

use super::model::{EventRow, EventStatus, uri};
use super::permissions;
use crate::features::catalog::venues::{self, EventVenue};
use crate::kernel::auth::Caller;
use crate::kernel::outbox::page_link;
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::Id;
use crate::state::Ctx;

/// Maximum length of the description in characters. Calendars show an excerpt, and the link leads to the rest.
const MAX_DESCRIPTION: usize = 2000;

/// Returns the iCalendar file of an event, if the caller may see the event.
pub async fn get(ctx: &Ctx, caller: &Caller, id: Id) -> Result<String> {
    let mut reader = ctx.unit.read().await?;
    let row = permissions::load_visible(&mut reader, caller, id).await?;
    let venue = venues::event_venues(&ctx.app, &mut reader, [row.venue_id]).await?.remove(&row.venue_id);
    let venue = venue.context("a foreign key holds an event's venue")?;
    let venue_revised = venues::revised(&mut reader, row.venue_id).await?;
    Ok(render(&row, &venue, venue_revised, &page_link(&ctx.app.settings, &uri(id).0)))
}

/// Returns the file. An event without an end has none in the calendar either.
fn render(row: &EventRow, venue: &EventVenue, venue_revised: Option<Timestamp>, link: &str) -> String {
    let status = match row.status {
        EventStatus::Draft | EventStatus::UnderReview => CalendarStatus::Tentative,
        EventStatus::Listed => CalendarStatus::Confirmed,
        EventStatus::Cancelled => CalendarStatus::Cancelled,
    };
    // An identifier is a time in units of 100 microseconds.
    let created = Timestamp(row.id.0 * 100);
    let own = row.revised.or(row.published).unwrap_or(created);
    let revised = venue_revised.map_or(own, |venue| venue.max(own));
    // It need only grow with each change. An identifier of a clock that was ahead can be later than the change.
    let sequence = ((revised.0 - created.0) / 1_000_000).max(0);
    let mut event = icalendar::Event::with_uid(&format!("{}@boxoffice", row.id));
    event
        .timestamp(revised.utc())
        .last_modified(revised.utc())
        .add_property("SEQUENCE", sequence.to_string())
        .created(created.utc())
        .starts(row.starts.utc())
        .summary(&plain(&row.title))
        .description(&excerpt(&plain(&row.description)))
        .location(&plain(&format!("{}, {}", venue.name, venue.address)))
        .add_property("GEO", format!("{};{}", venue.latitude, venue.longitude))
        .url(link)
        .status(status);
    if row.ends != Timestamp::NEVER {
        event.ends(row.ends.utc());
    }
    let mut calendar = Calendar::empty();
    let properties = [("VERSION", "2.0"), ("PRODID", "-//boxoffice//EN"), ("CALSCALE", "GREGORIAN"), ("METHOD", "PUBLISH")];
    for property in properties {
        calendar.append_property(Property::from(property));
    }
    calendar.push(event).to_string()
}

/// Returns a text without control characters but line feeds, which the library escapes.
fn plain(text: &str) -> String {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    text.chars().filter(|letter| *letter == '\n' || !letter.is_control()).collect()
}

fn excerpt(text: &str) -> String {
    match text.char_indices().nth(MAX_DESCRIPTION) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
