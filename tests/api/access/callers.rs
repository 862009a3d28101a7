//! The kinds of callers.

use boxoffice_openapi::Scope;

/// Declares the kinds of callers.
macro_rules! callers {
    ($($(#[$description:meta])* $variant:ident,)*) => {
        /// A kind of caller: the key of the request and the account that it acts for.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Caller {
            $($(#[$description])* $variant,)*
        }

        impl Caller {
            /// Every kind.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];
        }
    };
}

callers! {
    /// No key.
    NoKey,
    /// An empty key.
    EmptyKey,
    /// A key of spaces.
    BlankKey,
    /// The owner's key in capitals, which is malformed.
    MalformedKey,
    /// A well-formed key that does not exist.
    UnknownKey,
    /// The key of an ended session of the owner.
    EndedKey,
    /// An expired integration key of the owner's account.
    ExpiredKey,
    /// An administrator of the host with a deactivated account.
    Deactivated,
    /// The key of a deleted account.
    Deleted,
    /// An application without an account.
    Public,
    /// A program with a customer's key, without an account.
    Program,
    /// A program with an administrator's key, without an account.
    StaffProgram,
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
    /// An administrator of the event's host.
    HostAdministrator,
    /// The creator of the host, who is no longer its administrator.
    FormerAdministrator,
    /// An administrator of another host, with an event, orders and tickets of their own.
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
    /// Returns the scope of the key, if it is valid.
    pub fn scope(self) -> Option<Scope> {
        match self {
            NoKey | EmptyKey | BlankKey | MalformedKey | UnknownKey | EndedKey | ExpiredKey | Deactivated | Deleted => None,
            Public => Some(Scope::Public),
            Redeemer | OtherSection | OtherEvent => Some(Scope::Redeemer),
            StaffProgram | Administrator => Some(Scope::Administrator),
            _ => Some(Scope::Customer),
        }
    }
}
