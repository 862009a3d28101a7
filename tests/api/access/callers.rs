//! Every kind of caller.

use boxoffice::auth::Scope;

/// A kind of caller, by the key that the request comes with and by whom it acts for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Caller {
    /// No key.
    NoKey,
    /// An empty one.
    EmptyKey,
    /// The owner's in capitals, which no key has.
    MalformedKey,
    /// One of a key's shape, which nobody was given.
    UnknownKey,
    /// That of a session of the owner's that has been ended.
    EndedKey,
    /// That of an integration for the owner's account that has expired.
    ExpiredKey,
    /// That of another administrator of the host, whose account is deactivated.
    Deactivated,
    /// That of somebody whose account has been deleted.
    Deleted,
    /// An application's, with no person behind it.
    Public,
    /// A person who has to do with nothing here.
    Stranger,
    /// A customer with an order of their own to the same event.
    Another,
    /// Whose the account, the order, the tickets and the venue that waits for review are.
    Owner,
    /// Who offers tickets.
    Sender,
    /// To whom they are offered.
    Recipient,
    /// Who administers the host.
    HostAdministrator,
    /// Who made the host, and administers it no more.
    FormerAdministrator,
    /// Who administers another host.
    OtherHost,
    /// The key for a token of the event that covers the section.
    Redeemer,
    /// The key for a token of the event that covers another section alone.
    OtherSection,
    /// The key for another event's global token.
    OtherEvent,
    /// The platform's staff, by an integration's key.
    Administrator,
}

use Caller::*;

impl Caller {
    /// All of them, with the heads of their columns in the matrix.
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

    /// How far the key reaches; nothing where it opens nothing.
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
