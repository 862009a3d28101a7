//! Which part of an amount is convenience fees, and which part is whose.
//!
//! What an order costs is laid out as a line: the prices of its items side by side, then their fees. Its payments fill the line
//! from its beginning, so that once it is full their fees are the order's fees and each host has what its tickets cost, to the
//! cent, however it was paid. What a return gives back is a line of its own, taken from the newest payment on and from the end:
//! fees first.

use std::collections::BTreeMap;

use crate::kernel::types::id::Id;
use crate::kernel::types::money::Money;

/// Tickets of one section, and what they cost.
#[derive(Debug, Clone, Copy, sqlx::FromRow)]
pub struct TicketCosts {
    /// Where they admit to.
    pub section_id: Id,
    /// The host of their event.
    pub host_id: Id,
    /// How many.
    pub quantity: i64,
    /// The price of each, before fees.
    pub unit_price: Money,
    /// The convenience fee of each.
    pub unit_fee: Money,
}

/// Prices and fees side by side.
#[derive(Debug)]
pub struct AllocationLine(Vec<LineItem>);

#[derive(Debug, Clone, Copy)]
struct LineItem {
    host: Id,
    amount: Money,
    is_fee: bool,
}

/// An amount, and what is known of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allocation {
    /// All of it.
    pub amount: Money,
    /// As much of it as is convenience fees.
    pub fees: Money,
    /// As much of it as is each host's, by ascending host; a host that has nothing of it is not there.
    pub shares: Vec<HostShare>,
}

/// A host's part of an amount.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostShare {
    /// The host.
    pub host: Id,
    /// All of its part, fees too.
    pub amount: Money,
    /// As much of its part as is convenience fees.
    pub fees: Money,
}

impl AllocationLine {
    /// The line that payments fill: all prices, then all fees.
    pub fn of(tickets: &[TicketCosts]) -> Self {
        let pieces = |is_fee: bool, unit: fn(&TicketCosts) -> Money| {
            tickets.iter().map(move |item| LineItem { host: item.host_id, amount: unit(item) * item.quantity, is_fee })
        };
        Self(pieces(false, |item| item.unit_price).chain(pieces(true, |item| item.unit_fee)).collect())
    }

    /// The same line from its end.
    pub fn reversed(mut self) -> Self {
        self.0.reverse();
        self
    }

    /// What all of it comes to.
    pub fn total(&self) -> Money {
        self.0.iter().map(|piece| piece.amount).sum()
    }

    /// The part of the line that begins after `start` and is `amount` long. What lies beyond the line's end is neither fees nor
    /// anyone's.
    pub fn slice(&self, start: Money, amount: Money) -> Allocation {
        let end = start + amount;
        let mut shares: BTreeMap<Id, HostShare> = BTreeMap::new();
        let mut reached = Money::ZERO;
        for piece in &self.0 {
            let inside = end.min(reached + piece.amount) - start.max(reached);
            reached = reached + piece.amount;
            if inside > Money::ZERO {
                let none = HostShare { host: piece.host, amount: Money::ZERO, fees: Money::ZERO };
                let share = shares.entry(piece.host).or_insert(none);
                share.amount = share.amount + inside;
                share.fees = share.fees + if piece.is_fee { inside } else { Money::ZERO };
            }
        }
        let shares: Vec<HostShare> = shares.into_values().collect();
        Allocation { amount, fees: shares.iter().map(|share| share.fees).sum(), shares }
    }
}

impl Allocation {
    /// An amount that no order has a use for: it is given back whole, and is neither fees nor anyone's meanwhile.
    pub fn unallocated(amount: Money) -> Self {
        Self { amount, fees: Money::ZERO, shares: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ACCRA: Id = Id(1);
    const LEGON: Id = Id(2);

    /// Two tickets at 100.00 with 1.99 each of one host, a free one and one at 30.00 with 0.99 of another: 234.97 in all.
    fn tickets() -> Vec<TicketCosts> {
        let tickets = |section_id, host_id, quantity, (unit_price, unit_fee)| TicketCosts {
            section_id: Id(section_id),
            host_id,
            quantity,
            unit_price: Money(unit_price),
            unit_fee: Money(unit_fee),
        };
        vec![tickets(11, ACCRA, 2, (10_000, 199)), tickets(12, LEGON, 1, (0, 0)), tickets(13, LEGON, 1, (3000, 99))]
    }

    fn part(amount: i64, fees: i64, shares: &[(Id, i64, i64)]) -> Allocation {
        let share = |&(host, amount, fees): &_| HostShare { host, amount: Money(amount), fees: Money(fees) };
        Allocation { amount: Money(amount), fees: Money(fees), shares: shares.iter().map(share).collect() }
    }

    #[test]
    fn payments_fill_the_prices_first_and_then_the_fees() {
        let line = AllocationLine::of(&tickets());

        assert_eq!(line.total(), Money(23_497));
        assert_eq!(line.slice(Money(0), Money(19_999)), part(19_999, 0, &[(ACCRA, 19_999, 0)]));
        assert_eq!(line.slice(Money(19_999), Money(3002)), part(3002, 1, &[(ACCRA, 2, 1), (LEGON, 3000, 0)]));
        assert_eq!(line.slice(Money(23_001), Money(496)), part(496, 496, &[(ACCRA, 397, 397), (LEGON, 99, 99)]));
        assert_eq!(line.slice(Money(0), Money(23_497)), part(23_497, 497, &[(ACCRA, 20_398, 398), (LEGON, 3099, 99)]));
    }

    #[test]
    fn what_lies_beyond_the_line_is_nobodys() {
        let line = AllocationLine::of(&tickets());

        assert_eq!(line.slice(Money(23_490), Money(100)), part(100, 7, &[(LEGON, 7, 7)]));
        assert_eq!(line.slice(Money(30_000), Money(100)), Allocation::unallocated(Money(100)));
    }

    #[test]
    fn however_it_is_cut_the_pieces_add_up() {
        let line = AllocationLine::of(&tickets()).reversed();
        for step in [1, 7, 99, 1999, 10_000, 23_497] {
            let (mut amount, mut fees, mut of_accra) = (Money::ZERO, Money::ZERO, Money::ZERO);
            while amount < line.total() {
                let piece = line.slice(amount, Money(step).min(line.total() - amount));
                assert_eq!(piece.shares.iter().map(|share| share.amount).sum::<Money>(), piece.amount);
                amount = amount + piece.amount;
                fees = fees + piece.fees;
                of_accra = of_accra + piece.shares.iter().filter(|share| share.host == ACCRA).map(|share| share.amount).sum();
            }
            assert_eq!((amount, fees, of_accra), (Money(23_497), Money(497), Money(20_398)), "{step}");
        }
    }

    #[test]
    fn a_return_takes_the_fees_first() {
        let line = AllocationLine::of(&tickets()).reversed();

        assert_eq!(line.slice(Money(0), Money(497)), part(497, 497, &[(ACCRA, 398, 398), (LEGON, 99, 99)]));
    }
}
