//! Computation of ticket prices, which no other module does.
//!
//! A ticket costs the base price plus all price modifiers that apply, and never less than 0. A modifier applies from its start
//! until before its end, just as sales end before their end. It applies to orders with a number of tickets of the section within
//! its bounds, both inclusive.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Serialize;

use super::model::SectionRow;
use crate::kernel::types::api_types::{Minutes, NullableField};
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::Id;
use crate::kernel::types::money::Money;

/// Price of a ticket of a section, before fees.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Price {
    /// Price before price modifiers.
    pub base: Money,
    /// Price of a single ticket bought now.
    pub current: Money,
    /// Time of the next possible change of the current price; the end of sales at the latest.
    pub expires: Minutes,
}

/// The fields of an active price modifier that determine the price of a ticket.
#[derive(Debug, Clone)]
pub struct ActiveModifier {
    /// Identifier of the modifier. If several with the same bounds were added together, of the oldest.
    pub modifier: Id,
    /// Amount added to the price.
    pub delta: Money,
    /// Start of the period in which it applies.
    pub from: Option<Timestamp>,
    /// End of that period, exclusive.
    pub to: Option<Timestamp>,
    /// Minimum number of tickets of the section in one order.
    pub min_order: Option<i64>,
    /// Maximum number of tickets of the section in one order.
    pub max_order: Option<i64>,
}

impl ActiveModifier {
    fn is_available(&self, now: Timestamp) -> bool {
        self.from.is_none_or(|from| from <= now) && self.to.is_none_or(|to| now < to)
    }

    fn applies_to_quantity(&self, quantity: i64) -> bool {
        self.min_order.is_none_or(|min| min <= quantity) && self.max_order.is_none_or(|max| quantity <= max)
    }
}

/// Price of each ticket of a section in an order, before fees, and the price modifiers that were applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnitPrice {
    /// Price of each ticket.
    pub price: Money,
    /// Price modifiers that apply, the oldest first.
    pub modifiers: Vec<Id>,
}

/// Returns the price of each ticket in an order that is placed now with this quantity of the section.
pub fn unit_price(section: &SectionRow, quantity: i64, now: Timestamp) -> UnitPrice {
    let applies = |active: &&ActiveModifier| active.applies_to_quantity(quantity) && active.is_available(now);
    let applied = || section.modifiers.iter().filter(applies);
    let delta: Money = applied().map(|active| active.delta).sum();
    UnitPrice {
        price: (section.base_price + delta).max(Money::ZERO),
        modifiers: applied().map(|active| active.modifier).collect(),
    }
}

/// Returns the price of a single ticket now, and the time until which it is valid.
pub fn price(section: &SectionRow, now: Timestamp) -> Price {
    Price {
        base: section.base_price,
        current: unit_price(section, 1, now).price,
        expires: Minutes::from(next_price_change(section, now)),
    }
}

/// Largest number of tickets in one order.
pub const MAX_ORDER_TICKETS: i64 = 50;

/// Price of each ticket in orders with another number of tickets of the section than one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GroupPrice {
    /// Minimum number of tickets of the section in the order.
    pub min_order: i64,
    /// Maximum number of them; `None` for any number.
    pub max_order: NullableField<i64>,
    /// Price of each ticket now, before fees.
    pub price: Money,
}

/// Returns the prices now for numbers of tickets at which a ticket doesn't cost what a single one does, by ascending number.
pub fn group_prices(section: &SectionRow, now: Timestamp) -> Vec<GroupPrice> {
    let available = || section.modifiers.iter().filter(|active| active.is_available(now));
    // The price changes at the first number within the bounds of a modifier, and after the last one.
    let starts = available().flat_map(|active| [active.min_order, active.max_order.map(|max| max + 1)]).flatten();
    let starts: BTreeSet<i64> = starts.chain([1]).filter(|start| *start <= MAX_ORDER_TICKETS).collect();
    let mut groups: Vec<GroupPrice> = Vec::new();
    for (start, next) in starts.iter().zip(starts.iter().skip(1).map(Some).chain([None])) {
        let price = unit_price(section, *start, now).price;
        let end = next.map(|next| next - 1);
        match groups.last_mut() {
            Some(last) if last.price == price => last.max_order = NullableField(end),
            _ => groups.push(GroupPrice { min_order: *start, max_order: NullableField(end), price }),
        }
    }
    let single = unit_price(section, 1, now).price;
    groups.retain(|group| group.price != single);
    groups
}

/// Returns the next time at which any price modifier begins or ends; the end of sales at the latest.
pub fn next_change(section: &SectionRow, now: Timestamp) -> Timestamp {
    let moments = section.modifiers.iter().flat_map(|active| [active.from, active.to]).flatten();
    moments.filter(|moment| *moment > now).fold(section.sales_end, Timestamp::min)
}

/// Returns the next time at which a price modifier for a single ticket begins or ends; the end of sales at the latest.
pub fn next_price_change(section: &SectionRow, now: Timestamp) -> Timestamp {
    let for_one = section.modifiers.iter().filter(|active| active.applies_to_quantity(1));
    let moments = for_one.flat_map(|active| [active.from, active.to]).flatten();
    moments.filter(|moment| *moment > now).fold(section.sales_end, Timestamp::min)
}
