//! Prices of the items of an order or a quote, and the rules of their sale that depend on neither the customer nor other orders.

use std::collections::{HashMap, HashSet};

use boxoffice_http::error::{Error, FieldError, Result};

use super::model::{EventSaleRow, Items};
use crate::features::catalog::events::EventStatus;
use crate::features::catalog::sections::{self, MAX_ORDER_TICKETS, SectionRow, SectionUri, UnitPrice};
use crate::features::codes;
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::Id;
use crate::kernel::types::money::Money;
use crate::state::App;

/// The items of a request with their prices, and the sums.
pub struct PricedItems<'a> {
    /// The items, in the order of the request.
    pub lines: Vec<Line<'a>>,
    /// The price of all tickets, without fees.
    pub subtotal: Money,
    /// The convenience fees of all tickets.
    pub fees: Money,
}

/// The tickets of one section.
pub struct Line<'a> {
    /// The section's URI in the request.
    key: &'a str,
    /// The section.
    pub section: &'a SectionRow,
    /// The number of tickets.
    pub quantity: i64,
    /// The price of each ticket.
    pub unit: UnitPrice,
    /// The convenience fee of each ticket.
    pub unit_fee: Money,
}

/// Returns the identifiers of the sections that the items name.
pub fn section_ids(items: &Items) -> impl Iterator<Item = Id> {
    items.0.iter().filter_map(|(key, _)| Some(SectionUri::parse(key)?.section))
}

/// Returns the items with the prices of an order that is placed now: for sections of any events, or only of `event`. Orders and quotes
/// both call it.
pub fn price_items<'a>(
    app: &App,
    event: Option<Id>,
    sections: &'a HashMap<Id, SectionRow>,
    items: &'a Items,
    now: Timestamp,
) -> Result<PricedItems<'a>, FieldError> {
    let (mut unknown, mut repeated, mut seen) = (Vec::new(), Vec::new(), HashSet::new());
    let mut lines = Vec::new();
    for (key, quantity) in &items.0 {
        let uri = SectionUri::parse(key);
        let section = uri.and_then(|uri| sections.get(&uri.section).filter(|section| uri.names(section)));
        match section.filter(|section| event.is_none_or(|event| section.event_id == event)) {
            None => unknown.push(key.as_str()),
            Some(section) if !seen.insert(section.id) => repeated.push(key.as_str()),
            Some(section) => {
                let unit = sections::unit_price(section, *quantity, now);
                let unit_fee = app.settings.fee_steps.fee(unit.price);
                lines.push(Line { key, section, quantity: *quantity, unit, unit_fee });
            }
        }
    }
    let mut details = Vec::new();
    if !unknown.is_empty() {
        details.push(no_section(event, &unknown));
    }
    if !repeated.is_empty() {
        details.push(format!("names a section again (at {})", repeated.join(", ")));
    }
    if items.0.iter().map(|(_, quantity)| quantity).sum::<i64>() > MAX_ORDER_TICKETS {
        details.push(format!("must have at most {MAX_ORDER_TICKETS} tickets in all"));
    }
    if !details.is_empty() {
        return Err(FieldError::invalid("items", details.join("; ")));
    }
    let subtotal = lines.iter().map(|line| line.unit.price * line.quantity).sum();
    let fees = lines.iter().map(|line| line.unit_fee * line.quantity).sum();
    Ok(PricedItems { lines, subtotal, fees })
}

/// Returns the detail of a field error about these keys of the items, which should name sections of any event, or of this one.
fn no_section(event: Option<Id>, keys: &[&str]) -> String {
    let of_event = if event.is_some() { " of this event" } else { "" };
    format!("names no section{of_event} (at {})", keys.join(", "))
}

impl<'a> PricedItems<'a> {
    /// Rejects the items if a section for which `exists` is false was removed after it was loaded.
    ///
    /// # Errors
    /// A field error that names the sections.
    pub fn require(&self, exists: impl Fn(&Line<'_>) -> bool) -> Result<()> {
        let removed: Vec<&str> = self.lines.iter().filter(|line| !exists(line)).map(|line| line.key).collect();
        if removed.is_empty() { Ok(()) } else { Err(Error::invalid("items", no_section(None, &removed))) }
    }

    /// Returns the items at a price of 0, without price modifiers and fees.
    pub fn without_charge(self) -> Self {
        let free = |line: Line<'a>| Line {
            unit: UnitPrice { price: Money::ZERO, modifiers: Vec::new() },
            unit_fee: Money::ZERO,
            ..line
        };
        Self { lines: self.lines.into_iter().map(free).collect(), subtotal: Money::ZERO, fees: Money::ZERO }
    }

    /// Returns whether there is nothing to pay. Tickets of a free order are issued at once.
    pub fn is_free(&self) -> bool {
        self.subtotal + self.fees == Money::ZERO
    }

    /// Returns the events of the items.
    pub fn events(&self) -> impl Iterator<Item = Id> {
        self.lines.iter().map(|line| line.section.event_id)
    }
}

/// Returns the rejection of tickets of a section with too few places left, or with accounts that wait for those that are left.
pub fn sold_out(section: &SectionRow, event: &EventSaleRow, are_awaited: bool) -> Error {
    let reason = if are_awaited { "Accounts on the waiting list come first" } else { "Too few places are left" };
    let text = format!("{reason} in the section {} of {}.", section.name, event.title);
    codes::SECTION_SOLD_OUT.with_message(text)
}

/// Rejects tickets of a section that is not on sale now. Doesn't check the number of places left.
///
/// # Errors
/// The code says which rule of sale rejects them.
pub fn check_on_sale(section: &SectionRow, event: &EventSaleRow, now: Timestamp) -> Result<()> {
    check_event_on_sale(section, event, now)?;
    check_section_on_sale(section, event, now)
}

/// Rejects tickets of an event for which none can be issued now.
///
/// # Errors
/// The code says which rule of sale rejects them.
pub fn check_event_on_sale(section: &SectionRow, event: &EventSaleRow, now: Timestamp) -> Result<()> {
    let (name, title) = (&section.name, &event.title);
    if event.status != EventStatus::Listed {
        // The title of an event that is not public must not be disclosed.
        let section =
            if event.status.is_public() { format!("{name}, {title},") } else { sections::uri(section.event_id, section.id).0 };
        return Err(codes::EVENT_NOT_LISTED.with_message(format!("The event of the section {section} is not listed.")));
    }
    if event.ends <= now {
        return Err(codes::EVENT_OVER.with_message(format!("The event of the section {name}, {title}, is over.")));
    }
    if event.host_removed {
        return Err(
            codes::HOST_REMOVED.with_message(format!("The host of the section {name} of {title} can no longer sell tickets."))
        );
    }
    Ok(())
}

/// Rejects tickets of a section that is inactive or not on sale at this time.
///
/// # Errors
/// [`codes::SECTION_INACTIVE`] or [`codes::SECTION_NOT_ON_SALE`].
pub fn check_section_on_sale(section: &SectionRow, event: &EventSaleRow, now: Timestamp) -> Result<()> {
    let (name, title) = (&section.name, &event.title);
    if !section.active {
        return Err(codes::SECTION_INACTIVE.with_message(format!("The section {name} of {title} is not active.")));
    }
    if now < section.sales_start || section.sales_end <= now {
        return Err(codes::SECTION_NOT_ON_SALE.with_message(format!("The section {name} of {title} is not on sale now.")));
    }
    Ok(())
}
