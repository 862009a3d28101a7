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
        expires: Minutes(next_price_change(section, now).to_minutes()),
    }
}

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
    let starts: BTreeSet<i64> = starts.chain([1]).collect();
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
fn next_price_change(section: &SectionRow, now: Timestamp) -> Timestamp {
    let for_one = section.modifiers.iter().filter(|active| active.applies_to_quantity(1));
    let moments = for_one.flat_map(|active| [active.from, active.to]).flatten();
    moments.filter(|moment| *moment > now).fold(section.sales_end, Timestamp::min)
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::option;
    use proptest::prelude::*;

    use super::*;

    const SALES_END: Timestamp = Timestamp(100);

    fn section(base_price: i64, modifiers: Vec<ActiveModifier>) -> SectionRow {
        SectionRow {
            id: Id(1),
            event_id: Id(2),
            name: String::new(),
            description: String::new(),
            base_price: Money(base_price),
            capacity: 1,
            sold: 0,
            reserved: 0,
            waiting: 0,
            sales_start: Timestamp(0),
            sales_end: SALES_END,
            active: true,
            maximum_per_account: None,
            modifiers,
        }
    }

    fn active(delta: i64) -> ActiveModifier {
        ActiveModifier { modifier: Id(3), delta: Money(delta), from: None, to: None, min_order: None, max_order: None }
    }

    fn modifiers() -> impl Strategy<Value = Vec<ActiveModifier>> {
        let moment = || option::of((-10..110_i64).prop_map(Timestamp));
        let bound = || option::of(1..5_i64);
        let one = (-500..500_i64, moment(), moment(), bound(), bound()).prop_map(|(delta, from, to, min_order, max_order)| {
            ActiveModifier { from, to, min_order, max_order, ..active(delta) }
        });
        vec(one, 0..6).prop_map(|mut modifiers| {
            modifiers.iter_mut().zip(3..).for_each(|(active, id)| active.modifier = Id(id));
            modifiers
        })
    }

    #[test]
    fn modifier_applies_from_start_until_before_end() {
        let window = ActiveModifier { from: Some(Timestamp(10)), to: Some(Timestamp(20)), ..active(-30) };
        let section = section(100, vec![window]);
        for (now, price, expires) in [(9, 100, 10), (10, 70, 20), (19, 70, 20), (20, 100, 100), (100, 100, 100)] {
            assert_eq!(unit_price(&section, 1, Timestamp(now)).price, Money(price), "at {now}");
            assert_eq!(next_price_change(&section, Timestamp(now)), Timestamp(expires), "at {now}");
        }
    }

    #[test]
    fn quantity_bounds_are_inclusive() {
        let section = section(100, vec![ActiveModifier { min_order: Some(2), max_order: Some(3), ..active(-30) }]);
        let prices = [1, 2, 3, 4].map(|quantity| unit_price(&section, quantity, Timestamp(0)).price.0);
        assert_eq!(prices, [100, 70, 70, 100]);
    }

    #[test]
    fn expiry_ignores_modifiers_for_several_tickets() {
        let group = ActiveModifier { from: Some(Timestamp(10)), min_order: Some(2), ..active(-30) };
        let after_sales = ActiveModifier { from: Some(Timestamp(200)), ..active(-30) };
        assert_eq!(next_price_change(&section(100, vec![group, after_sales]), Timestamp(0)), SALES_END);
    }

    proptest! {
        #[test]
        fn price_is_base_plus_applicable_deltas(
            base in 0..1000_i64, modifiers in modifiers(), quantity in 1..6_i64, now in 0..100_i64,
        ) {
            let section = section(base, modifiers);
            let unit = unit_price(&section, quantity, Timestamp(now));
            let alone = |active: &ActiveModifier| SectionRow { modifiers: vec![active.clone()], ..section.clone() };
            let applied: Vec<&ActiveModifier> = section.modifiers.iter()
                .filter(|active| !unit_price(&alone(active), quantity, Timestamp(now)).modifiers.is_empty())
                .collect();
            let sum: i64 = applied.iter().map(|active| active.delta.0).sum();
            prop_assert_eq!(unit.price, Money((base + sum).max(0)));
            prop_assert_eq!(unit.modifiers, applied.iter().map(|active| active.modifier).collect::<Vec<_>>());
        }

        #[test]
        fn group_prices_are_those_of_all_quantities(base in 0..1000_i64, modifiers in modifiers(), now in 0..100_i64) {
            let (section, now) = (section(base, modifiers), Timestamp(now));
            let groups = group_prices(&section, now);
            for quantity in 1..10 {
                let is_within = |group: &&GroupPrice| {
                    group.min_order <= quantity && group.max_order.0.is_none_or(|max| quantity <= max)
                };
                let listed: Vec<Money> = groups.iter().filter(is_within).map(|group| group.price).collect();
                let (price, single) = (unit_price(&section, quantity, now).price, unit_price(&section, 1, now).price);
                prop_assert_eq!(listed, if price == single { vec![] } else { vec![price] }, "for {}", quantity);
            }
        }

        #[test]
        fn price_is_independent_of_modifier_order(
            base in 0..1000_i64, modifiers in modifiers(), quantity in 1..6_i64, now in 0..100_i64,
        ) {
            let reversed = modifiers.iter().rev().cloned().collect();
            let now = Timestamp(now);
            let (one, other) = (section(base, modifiers), section(base, reversed));
            prop_assert_eq!(unit_price(&one, quantity, now).price, unit_price(&other, quantity, now).price);
            prop_assert_eq!(price(&one, now), price(&other, now));
        }

        #[test]
        fn price_is_constant_until_expiry(base in 0..1000_i64, modifiers in modifiers(), now in 0..100_i64) {
            let section = section(base, modifiers);
            let price_at = |moment| unit_price(&section, 1, Timestamp(moment)).price;
            let expires = next_price_change(&section, Timestamp(now)).0;
            prop_assert!(now < expires && expires <= SALES_END.0);
            for moment in now..expires {
                prop_assert_eq!(price_at(moment), price_at(now), "at {}", moment);
            }
            let groups_at = |moment| group_prices(&section, Timestamp(moment));
            for moment in now..next_change(&section, Timestamp(now)).0 {
                prop_assert_eq!(groups_at(moment), groups_at(now), "at {}", moment);
            }
        }
    }
}
