//! The kinds of callers.

use boxoffice_openapi::Scope;

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
        (MalformedKey, "malf", "the owner's key in capitals, which is malformed"),
        (UnknownKey, "unkn", "a well-formed key that does not exist"),
        (EndedKey, "ended", "the key of an ended session of the owner"),
        (ExpiredKey, "expd", "an expired integration key of the owner's account"),
        (Deactivated, "deact", "an administrator of the host with a deactivated account"),
        (Deleted, "del", "the key of a deleted account"),
        (Public, "publ", "an application without an account"),
        (Stranger, "cust", "a customer without any relation to the resources"),
        (Another, "othr", "a customer with an order of their own for the same event"),
        (Owner, "owner", "the owner of the account, the order, the tickets and the pending venue"),
        (Sender, "sendr", "the sender of the transfer"),
        (Recipient, "recip", "the recipient of the transfer"),
        (HostAdministrator, "host", "an administrator of the event's host"),
        (FormerAdministrator, "formr", "the creator of the host, who is no longer its administrator"),
        (OtherHost, "ohost", "an administrator of another host, with an event, orders and tickets of their own"),
        (Redeemer, "rdm", "a redeemer of the section"),
        (OtherSection, "rdmS", "a redeemer of another section of the event"),
        (OtherEvent, "rdmE", "a redeemer of another event"),
        (Administrator, "admin", "platform staff, with an integration's key"),
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
