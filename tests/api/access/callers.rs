//! The kinds of callers.

use boxoffice_openapi::Scope;

/// Declares the kinds of callers, each with its column and its description in the matrix.
macro_rules! callers {
    ($($variant:ident = $column:literal: $description:literal,)*) => {
        /// A kind of caller: the key of the request and the account that it acts for.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Caller {
            $(#[doc = $description] $variant,)*
        }

        /// Every kind.
        pub const EVERYONE: &[Caller] = &[$(Caller::$variant,)*];

        impl Caller {
            /// Every kind, with its column and its description in the matrix.
            pub const ALL: [(Self, &'static str, &'static str); EVERYONE.len()] =
                [$((Self::$variant, $column, $description),)*];
        }
    };
}

callers! {
    NoKey = "none": "no key",
    EmptyKey = "empty": "an empty key",
    MalformedKey = "malf": "the owner's key in capitals, which is malformed",
    UnknownKey = "unkn": "a well-formed key that does not exist",
    EndedKey = "ended": "the key of an ended session of the owner",
    ExpiredKey = "expd": "an expired integration key of the owner's account",
    Deactivated = "deact": "an administrator of the host with a deactivated account",
    Deleted = "del": "the key of a deleted account",
    Public = "publ": "an application without an account",
    Stranger = "cust": "a customer without any relation to the resources",
    Another = "othr": "a customer with an order of their own for the same event",
    Owner = "owner": "the owner of the account, the order, the tickets and the pending venue",
    Sender = "sendr": "the sender of the transfer",
    Recipient = "recip": "the recipient of the transfer",
    HostAdministrator = "host": "an administrator of the event's host",
    FormerAdministrator = "formr": "the creator of the host, who is no longer its administrator",
    OtherHost = "ohost": "an administrator of another host, with an event, orders and tickets of their own",
    Redeemer = "rdm": "a redeemer of the section",
    OtherSection = "rdmS": "a redeemer of another section of the event",
    OtherEvent = "rdmE": "a redeemer of another event",
    Administrator = "admin": "platform staff, with an integration's key",
}

use Caller::*;

impl Caller {
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
