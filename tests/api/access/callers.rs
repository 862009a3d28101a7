//! The kinds of callers.

use boxoffice::auth::Scope;

/// A kind of caller: the key of the request and the account that it acts for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Caller {
    /// No key.
    NoKey,
    /// An empty key.
    EmptyKey,
    /// The owner's key in capitals, which is malformed.
    MalformedKey,
    /// A well-formed key that does not exist.
    UnknownKey,
    /// The key of an ended session of the owner.
    EndedKey,
    /// An expired integration key of the owner's account.
    ExpiredKey,
    /// The key of another administrator of the host, whose account is deactivated.
    Deactivated,
    /// The key of a deleted account.
    Deleted,
    /// An application's key, without an account.
    Public,
    /// A customer without any relation to the resources.
    Stranger,
    /// A customer with an order of their own for the same event.
    Another,
    /// The owner of the account, the order, the tickets and the pending venue.
    Owner,
    /// The sender of the transfer.
    Sender,
    /// The recipient of the transfer.
    Recipient,
    /// An administrator of the host.
    HostAdministrator,
    /// The creator of the host, who is no longer its administrator.
    FormerAdministrator,
    /// The administrator of another host.
    OtherHost,
    /// A redeemer of the section.
    Redeemer,
    /// A redeemer of another section of the event.
    OtherSection,
    /// A redeemer of another event.
    OtherEvent,
    /// Platform staff, with an integration's key.
    Administrator,
}

use Caller::*;

impl Caller {
    /// Every kind, with its column and its description in the matrix.
    pub const ALL: [(Self, &'static str, &'static str); 21] = [
        (NoKey, "none", "no key"),
        (EmptyKey, "empty", "an empty key"),
        (MalformedKey, "malf", "the owner's key in capitals, which no key has"),
        (UnknownKey, "unkn", "a key that nobody was given"),
        (EndedKey, "ended", "the key of a session of the owner's that has been ended"),
        (ExpiredKey, "expd", "the key of an integration for the owner's account that has expired"),
        (Deactivated, "deact", "an administrator of the host whose account is deactivated"),
        (Deleted, "del", "somebody whose account has been deleted"),
        (Public, "publ", "an application, with no person behind it"),
        (Stranger, "cust", "a customer who has to do with nothing here"),
        (Another, "othr", "another customer, with an order to the same event"),
        (Owner, "owner", "the customer whose the account, the order, the tickets, and the venue that waits for review are"),
        (Sender, "sendr", "the customer who offers tickets to another"),
        (Recipient, "recip", "the customer to whom they are offered"),
        (HostAdministrator, "host", "an administrator of the event's host"),
        (FormerAdministrator, "formr", "who made the host, and administers it no more"),
        (OtherHost, "ohost", "an administrator of another host, with an event, orders and tickets of their own"),
        (Redeemer, "rdm", "the key for a token of the event that covers the section"),
        (OtherSection, "rdmS", "the key for a token of the event that covers another section alone"),
        (OtherEvent, "rdmE", "the key for another event's global token"),
        (Administrator, "admin", "the platform's staff, by an integration's key"),
    ];

    /// Returns the scope of the key, if it is valid.
    pub fn scope(self) -> Option<Scope> {
        match self {
            NoKey | EmptyKey | MalformedKey | UnknownKey | EndedKey | ExpiredKey | Deactivated | Deleted => None,
            Public => Some(Scope::Public),
            Redeemer | OtherSection | OtherEvent => Some(Scope::Redeemer),
            Administrator => Some(Scope::Administrator),
            _ => Some(Scope::Customer),
        }
    }
}
