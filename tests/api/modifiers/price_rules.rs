//! The price of a ticket and the time until which it is valid, for any price modifiers.

use boxoffice::features::catalog::sections::{
    ActiveModifier, GroupPrice, SectionRow, group_prices, next_change, next_price_change, price, unit_price,
};
use boxoffice::kernel::types::clock::Timestamp;
use boxoffice::kernel::types::id::Id;
use boxoffice::kernel::types::money::Money;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

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
    let one = (-500..500_i64, moment(), moment(), bound(), bound())
        .prop_map(|(delta, from, to, min_order, max_order)| ActiveModifier { from, to, min_order, max_order, ..active(delta) });
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
