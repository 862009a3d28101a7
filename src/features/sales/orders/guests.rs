//! E-mail addresses that are given tickets. For those without an account, their orders create guests.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use boxoffice_http::error::Result;

use super::placement::OrderRequest;
use crate::features::identity::accounts::{self, PreparedAccount};
use crate::kernel::db::Reader;
use crate::kernel::types::id::Id;
use crate::state::App;

/// The recipient of a complimentary order.
pub enum TicketRecipient {
    Account(Id),
    /// An e-mail address, with the guest that it gets unless it has an account when the order is placed.
    Email(Box<PreparedAccount>),
}

impl TicketRecipient {
    /// The argument that names it.
    pub fn argument(&self) -> &'static str {
        match self {
            Self::Account(_) => "account",
            Self::Email(_) => "email",
        }
    }
}

/// The accounts of the addresses in a batch of orders.
#[derive(Default)]
pub struct Guests {
    /// The account of each address in lower case: one that exists by now, or a new one.
    ids: HashMap<String, Id>,
    /// The new accounts. They are inserted with their orders.
    pub new: HashMap<Id, PreparedAccount>,
}

impl Guests {
    /// Finds the accounts that these addresses have by now, and makes the others.
    pub async fn of(app: &App, reader: &mut Reader, requests: &[&OrderRequest]) -> Result<Self> {
        let guest = |request: &&OrderRequest| match &request.recipient {
            Some(TicketRecipient::Email(guest)) => Some((**guest).clone()),
            _ => None,
        };
        let prepared: Vec<PreparedAccount> = requests.iter().filter_map(guest).collect();
        if prepared.is_empty() {
            return Ok(Self::default());
        }
        let existing = accounts::find_by_emails(reader, prepared.iter().map(|guest| &*guest.row.email)).await?;
        let ids = existing.into_iter().map(|account| (account.email.to_ascii_lowercase(), account.id)).collect();
        let mut guests = Self { ids, new: HashMap::new() };
        for mut guest in prepared {
            if let Entry::Vacant(entry) = guests.ids.entry(guest.row.email.to_ascii_lowercase()) {
                guest.row.id = app.clock.next_id();
                guests.new.insert(*entry.insert(guest.row.id), guest);
            }
        }
        Ok(guests)
    }

    /// Returns the accounts that exist.
    pub fn existing(&self) -> impl Iterator<Item = Id> {
        self.ids.values().copied().filter(|id| !self.new.contains_key(id))
    }

    /// Returns the account of a recipient.
    pub fn id_of(&self, recipient: &TicketRecipient) -> Result<Id> {
        match recipient {
            TicketRecipient::Account(account) => Ok(*account),
            TicketRecipient::Email(guest) => {
                let id = self.ids.get(&guest.row.email.to_ascii_lowercase());
                Ok(*id.ok_or_else(|| anyhow::anyhow!("an address has no account"))?)
            }
        }
    }
}
