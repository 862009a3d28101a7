//! Amounts of money in requests and responses, and the convenience fees of tickets by their price.

use boxoffice::kernel::settings::FeeSchedule;
use boxoffice::kernel::types::money::{AmountInput, Money, PriceDelta};
use proptest::collection::btree_map;
use proptest::prelude::*;

#[test]
fn amounts_round_trip_to_the_cent() {
    for cents in [0, 1, 99, 199, 12_000, 12_345_678, 99_999_999] {
        let text = serde_json::to_string(&Money(cents)).unwrap();
        let parsed: AmountInput = serde_json::from_str(&text).unwrap();
        assert_eq!(parsed.0, Money(cents), "{text}");
        let text = serde_json::to_string(&Money(-cents)).unwrap();
        let parsed: PriceDelta = serde_json::from_str(&text).unwrap();
        assert_eq!(parsed.0, Money(-cents), "{text}");
    }
}

#[test]
fn fee_depends_on_the_price_step() {
    let steps: FeeSchedule = "50:0.99,100:1.99,150:2.99,200:3.99,4.99".parse().unwrap();
    for (price, fee) in [(0, 0), (1, 99), (5000, 99), (5001, 199), (10000, 199), (20000, 399), (20001, 499)] {
        assert_eq!(steps.fee(Money(price)), Money(fee), "{price}");
    }
    assert!("50:0.99".parse::<FeeSchedule>().is_err());
    assert!("100:1,50:2,3".parse::<FeeSchedule>().is_err());
}

fn amount() -> impl Strategy<Value = Money> {
    (0..10_000_000_i64).prop_map(Money)
}

fn fee_steps() -> impl Strategy<Value = FeeSchedule> {
    let steps = btree_map(amount(), amount(), 0..8).prop_map(|steps| steps.into_iter().collect());
    (steps, amount()).prop_map(|(steps, above)| FeeSchedule { steps, above })
}

proptest! {
    #[test]
    fn fee_is_that_of_the_first_step_at_or_above_the_price(steps in fee_steps(), price in amount()) {
        let fee = steps.fee(price);

        let below = steps.steps.iter().filter(|(up_to, _)| *up_to < price).count();
        let expected = steps.steps.get(below).map_or(steps.above, |(_, fee)| *fee);
        prop_assert_eq!(fee, if price == Money::ZERO { Money::ZERO } else { expected });
    }

    #[test]
    fn fee_steps_round_trip_as_text(steps in fee_steps()) {
        let amount = |money: Money| format!("{}.{:02}", money.0 / 100, money.0 % 100);
        let written = steps.steps.iter().map(|(up_to, fee)| format!("{}:{}", amount(*up_to), amount(*fee)));
        let written: Vec<String> = written.chain([amount(steps.above)]).collect();

        prop_assert_eq!(written.join(",").parse::<FeeSchedule>().ok(), Some(steps));
    }
}
