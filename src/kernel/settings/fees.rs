//! The convenience fees of tickets.

use std::str::FromStr;

use anyhow::{Context, ensure};

use crate::kernel::types::currency::Currency;
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

    /// Returns whether all prices and fees are amounts of this currency.
    pub fn are_in(&self, currency: Currency) -> bool {
        let steps = self.steps.iter().flat_map(|(up_to, fee)| [*up_to, *fee]);
        steps.chain([self.above]).all(|amount| currency.allows(amount))
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
