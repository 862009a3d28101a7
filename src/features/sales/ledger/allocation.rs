//! Allocation of an amount to convenience fees and to hosts.
//!
//! The cost of an order is a line of amounts: the prices of its items, then their fees. Payments fill the line from its start.
//! Once it is full, the fees of all payments add up to the order's fees, and each host has the cost of its tickets, exact to the
//! cent, no matter how the payments were split. A return has a line of its own. Its refunds start with the newest payment and
//! take the line from its end: fees first.

use std::collections::BTreeMap;

use crate::kernel::types::id::Id;
use crate::kernel::types::money::Money;

/// The tickets of one section in an order, with their cost.
#[derive(Debug, Clone, Copy, sqlx_macros::FromRow)]
pub struct TicketCosts {
    /// The section.
    pub section_id: Id,
    /// The host of the event.
    pub host_id: Id,
    /// The number of tickets.
    pub quantity: i64,
    /// The price of each ticket, without fees.
    pub unit_price: Money,
    /// The convenience fee of each ticket.
    pub unit_fee: Money,
}

/// The cost of an order as a sequence of prices and fees.
#[derive(Debug)]
pub struct AllocationLine(Vec<LineItem>);

#[derive(Debug, Clone, Copy)]
struct LineItem {
    host: Id,
    amount: Money,
    is_fee: bool,
}

/// An amount and its division into fees and hosts' shares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allocation {
    /// The whole amount.
    pub amount: Money,
    /// The convenience fees in it.
    pub fees: Money,
    /// The hosts' shares of it, by ascending host, without hosts whose share would be zero.
    pub shares: Vec<HostShare>,
}

/// A host's share of an amount.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostShare {
    /// The host.
    pub host: Id,
    /// The host's share, with fees.
    pub amount: Money,
    /// The convenience fees in the host's share.
    pub fees: Money,
}

impl AllocationLine {
    /// Creates the line that payments fill: all prices, then all fees.
    pub fn of(tickets: &[TicketCosts]) -> Self {
        let line_items = |is_fee: bool, unit: fn(&TicketCosts) -> Money| {
            tickets.iter().map(move |item| LineItem { host: item.host_id, amount: unit(item) * item.quantity, is_fee })
        };
        Self(line_items(false, |item| item.unit_price).chain(line_items(true, |item| item.unit_fee)).collect())
    }

    /// Returns the same line in reverse order.
    pub fn reversed(mut self) -> Self {
        self.0.reverse();
        self
    }

    /// Returns the sum of the line.
    pub fn total(&self) -> Money {
        self.0.iter().map(|item| item.amount).sum()
    }

    /// Returns the allocation of the part of the line that begins at `start` and is `amount` long. A part beyond the end of the
    /// line is allocated neither to fees nor to a host.
    pub fn slice(&self, start: Money, amount: Money) -> Allocation {
        let end = start + amount;
        let mut shares: BTreeMap<Id, HostShare> = BTreeMap::new();
        let mut offset = Money::ZERO;
        for item in &self.0 {
            let overlap = end.min(offset + item.amount) - start.max(offset);
            offset += item.amount;
            if overlap > Money::ZERO {
                let empty = HostShare { host: item.host, amount: Money::ZERO, fees: Money::ZERO };
                let share = shares.entry(item.host).or_insert(empty);
                share.amount += overlap;
                if item.is_fee {
                    share.fees += overlap;
                }
            }
        }
        let shares: Vec<HostShare> = shares.into_values().collect();
        Allocation { amount, fees: shares.iter().map(|share| share.fees).sum(), shares }
    }
}

impl Allocation {
    /// Returns the allocation of an amount that pays for no order. It is refunded as a whole, so it has neither fees nor shares.
    pub fn unallocated(amount: Money) -> Self {
        Self { amount, fees: Money::ZERO, shares: Vec::new() }
    }
}
