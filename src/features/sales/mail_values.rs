//! The values with which the outbox stores mails about orders, transfers and offers of places.
//!
//! They are the identifiers of a [`MailReference`], which `mail` loads when it sends the mail, and what the database does not have.
//! Servers of other versions send the same mails, so the JSON must keep its form.

use std::collections::BTreeMap;

use serde_json::json;

use crate::kernel::outbox::{DueMail, Mail, MailTemplate, Recipient};
use crate::kernel::types::id::Id;
use crate::kernel::types::money::Money;

/// The value with the sections of returned tickets, as pairs of a section and its number of tickets.
pub const RETURNED_SECTIONS: &str = "sections";

/// A mail to be stored.
#[derive(Debug)]
pub enum SalesMail<'a> {
    /// An order is fulfilled.
    OrderConfirmation { order: Id },
    /// An open order was cancelled.
    OrderCancelled { order: Id, cause: CancellationCause },
    /// These numbers of tickets were returned, by section. The amount is that of all refunds, and the reason may be empty.
    TicketsReturned { order: Id, tickets: &'a BTreeMap<Id, i64>, amount: Money, reason: &'a str },
    /// An order was voided.
    OrderVoided { order: Id, reason: &'a str },
    /// To a holder of transferred tickets: this number of tickets for an event is void.
    TicketsVoided { order: Id, event: Id, tickets: i64 },
    /// A payment was refunded, but not for returned tickets.
    Refund { order: Id, amount: Money },
    /// An account is offered tickets.
    TransferReceived { transfer: Id },
    /// An account has accepted tickets.
    TransferClaimed { transfer: Id },
    /// Places are reserved for an entry of a waiting list.
    PlacesOffered { entry: Id },
}

/// The cause of the cancellation of an order.
#[derive(Debug, Clone, Copy)]
pub enum CancellationCause {
    /// The customer has cancelled it.
    Customer,
    /// An event in it was cancelled.
    Event,
}

impl SalesMail<'_> {
    /// Returns the mail to an account.
    pub fn to(self, account: Id) -> Mail<'static> {
        let (template, values) = match self {
            Self::OrderConfirmation { order } => (MailTemplate::OrderConfirmation, json!({ "order": order.0 })),
            Self::OrderCancelled { order, cause } => {
                let because = match cause {
                    CancellationCause::Customer => "customer",
                    CancellationCause::Event => "event",
                };
                (MailTemplate::OrderCancelled, json!({ "order": order.0, "because": because }))
            }
            Self::TicketsReturned { order, tickets, amount, reason } => {
                let sections: Vec<(i64, i64)> = tickets.iter().map(|(section, tickets)| (section.0, *tickets)).collect();
                let returned: i64 = tickets.values().sum();
                let values = json!({
                    "order": order.0, "returned": returned, RETURNED_SECTIONS: sections, "amount": amount.0, "reason": reason,
                });
                (MailTemplate::TicketsReturned, values)
            }
            Self::OrderVoided { order, reason } => (MailTemplate::OrderVoided, json!({ "order": order.0, "reason": reason })),
            Self::TicketsVoided { order, event, tickets } => {
                (MailTemplate::TicketsVoided, json!({ "order": order.0, "event": event.0, "voided": tickets }))
            }
            Self::Refund { order, amount } => (MailTemplate::Refund, json!({ "order": order.0, "amount": amount.0 })),
            Self::TransferReceived { transfer } => (MailTemplate::TransferReceived, json!({ "transfer": transfer.0 })),
            Self::TransferClaimed { transfer } => (MailTemplate::TransferClaimed, json!({ "transfer": transfer.0 })),
            Self::PlacesOffered { entry } => (MailTemplate::PlacesOffered, json!({ "offer": entry.0 })),
        };
        Mail { recipient: Recipient::Account(account), template, values }
    }
}

/// The order, transfer or entry that a stored mail is about. It is loaded when the mail is sent.
#[derive(Debug, Clone, Copy)]
pub enum MailReference {
    /// An order.
    Order(Id),
    /// The tickets of an order for one event.
    TicketsOfEvent { order: Id, event: Id },
    /// A transfer.
    Transfer(Id),
    /// An entry of a waiting list, for which places are reserved.
    Entry(Id),
}

impl MailReference {
    /// Returns the reference of a mail, or `None` if the mail was stored with all that it shows.
    pub fn of(mail: &DueMail) -> Option<Self> {
        let id = |name: &str| mail.values.get(name)?.as_i64().map(Id);
        match mail.template {
            MailTemplate::OrderConfirmation
            | MailTemplate::OrderCancelled
            | MailTemplate::TicketsReturned
            | MailTemplate::OrderVoided
            | MailTemplate::Refund => id("order").map(Self::Order),
            MailTemplate::TicketsVoided => Some(Self::TicketsOfEvent { order: id("order")?, event: id("event")? }),
            MailTemplate::TransferReceived | MailTemplate::TransferClaimed => id("transfer").map(Self::Transfer),
            MailTemplate::PlacesOffered => id("offer").map(Self::Entry),
            MailTemplate::VerificationCode
            | MailTemplate::PasswordReset
            | MailTemplate::CredentialsChanged
            | MailTemplate::DeletionRequested
            | MailTemplate::ReviewDecision
            | MailTemplate::EventChanged
            | MailTemplate::EventCancelled => None,
        }
    }
}
