//! The convenience fees of tickets.

use std::str::FromStr;

use anyhow::{Context, ensure};

use crate::kernel::types::money::Money;

/// The convenience fees of tickets by unit price. A free ticket has no fee.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeeSchedule {
    /// Pairs of the highest unit price of a step and its fee, by ascending price.
    pub steps: Vec<(Money, Money)>,
    /// The fee above the last step.
    pub above: Money,
}

impl FeeSchedule {
    /// Returns the fee of one ticket with this price.
    pub fn fee(&self, unit_price: Money) -> Money {
        if unit_price == Money::ZERO {
            return Money::ZERO;
        }
        let step = self.steps.iter().find(|(up_to, _)| unit_price <= *up_to);
        step.map_or(self.above, |(_, fee)| *fee)
    }
}

impl FromStr for FeeSchedule {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let mut items: Vec<&str> = text.split(',').map(str::trim).collect();
        let above = parse_money(items.pop().context("it is empty")?).context("the last value is the fee above all steps")?;
        let steps = items.into_iter().map(|item| {
            let (up_to, fee) = item.split_once(':').with_context(|| format!("`{item}` has no fee"))?;
            Ok((parse_money(up_to)?, parse_money(fee)?))
        });
        let steps = steps.collect::<anyhow::Result<Vec<_>>>()?;
        ensure!(steps.is_sorted_by(|a, b| a.0 < b.0), "the prices must rise");
        Ok(Self { steps, above })
    }
}

/// Parses an amount such as `12`, `12.5` or `12.50`.
fn parse_money(text: &str) -> anyhow::Result<Money> {
    let text = text.trim();
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let is_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    ensure!(is_digits(whole) && is_digits(fraction) && !whole.is_empty(), "`{text}` is not an amount");
    ensure!(fraction.len() <= 2, "`{text}` has more than two decimals");
    let minor = format!("{whole}{fraction:0<2}").parse().with_context(|| format!("`{text}` is too large"))?;
    Ok(Money(minor))
}

#[cfg(test)]
mod tests {
    use proptest::collection::btree_map;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn fee_depends_on_the_price_step() -> anyhow::Result<()> {
        let steps: FeeSchedule = "50:0.99,100:1.99,150:2.99,200:3.99,4.99".parse()?;
        for (price, fee) in [(0, 0), (1, 99), (5000, 99), (5001, 199), (10000, 199), (20000, 399), (20001, 499)] {
            assert_eq!(steps.fee(Money(price)), Money(fee), "{price}");
        }
        assert!("50:0.99".parse::<FeeSchedule>().is_err());
        assert!("100:1,50:2,3".parse::<FeeSchedule>().is_err());
        Ok(())
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
}
