//! The places of sections, and what else decides if orders can be placed.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use boxoffice_http::error::{Error, Result};
use boxoffice_openapi::counted;

use super::guests::Guests;
use super::model::EventSaleRow;
use super::placement::Draft;
use super::pricing::{Line, check_event_on_sale, check_section_on_sale, sold_out};
use super::store;
use super::waiting_list::{self, OfferRow};
use crate::features::catalog::events;
use crate::features::catalog::hosts;
use crate::features::catalog::sections::{self, Places, SaleTerms, SectionRow};
use crate::features::codes;
use crate::features::identity::accounts::{self, AccountRow, PreparedAccount};
use crate::kernel::auth::Caller;
use crate::kernel::db::{Reader, StaleRead, Tx};
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::Id;
use crate::state::App;

/// Detail of the field error about a deactivated account.
pub const INACTIVE: &str = "names no active account";

/// Largest number of open orders of an account.
const MAX_OPEN_ORDERS: i64 = 10;

/// The data that decides about drafts. It is locked: no other transaction changes it before this one ends.
pub struct Inventory {
    pub accounts: HashMap<Id, AccountRow>,
    /// The accounts among them that don't exist yet.
    pub new_guests: HashMap<Id, PreparedAccount>,
    events: HashMap<Id, EventSaleRow>,
    /// The accounts that issue complimentary tickets, each with the hosts that it administers.
    administrators: HashSet<(Id, Id)>,
    /// The number of open orders of each account.
    open: HashMap<Id, i64>,
    /// The places of each section. Sections that were removed meanwhile are missing.
    available: BTreeMap<Id, Places>,
    /// The open offers of waiting lists, by account and section.
    offers: HashMap<(Id, Id), OfferRow>,
    /// The offers that this batch uses.
    pub accepted: Vec<OfferRow>,
    /// The number of tickets of each account in each section that limits it.
    held: HashMap<(Id, Id), i64>,
    /// The places taken by this batch in each section: reserved, and sold.
    pub taken: BTreeMap<Id, (i64, i64)>,
}

impl Inventory {
    /// Locks the customers of these drafts, then the events of free drafts, then the hosts (see the lock order in
    /// CONTRIBUTING.md).
    ///
    /// The account lock serializes the orders of one account, so that two of them cannot both be the last one allowed. It also
    /// serializes orders with the deletion of the account.
    ///
    /// # Errors
    /// [`StaleRead`] if the account of an e-mail address was removed after it had been looked up. The next attempt creates a guest.
    pub async fn lock(tx: &mut Tx, drafts: &[Result<Draft<'_>>], guests: Guests) -> Result<Self> {
        let customers: BTreeSet<Id> = drafts.iter().flatten().map(|draft| draft.customer).collect();
        let locked = accounts::lock_all(tx, customers.iter().copied()).await?;
        let accounts = locked.into_iter().chain(guests.new.values().map(|guest| guest.row.clone()));
        let accounts: HashMap<Id, AccountRow> = accounts.map(|account| (account.id, account)).collect();
        let has_removed = guests.existing().any(|id| customers.contains(&id) && !accounts.contains_key(&id));
        if has_removed {
            return Err(StaleRead.into());
        }
        let of_accounts = || drafts.iter().flatten().filter(|draft| accounts.contains_key(&draft.customer));
        let to_lock: BTreeSet<Id> =
            of_accounts().filter(|draft| draft.items.is_free()).flat_map(|draft| draft.items.events()).collect();
        if !to_lock.is_empty() {
            events::lock_all(tx, to_lock).await?;
        }
        let event_ids: BTreeSet<Id> = of_accounts().flat_map(|draft| draft.items.events()).collect();
        let events: HashMap<Id, EventSaleRow> =
            store::lock_hosts_and_read_sale_status(tx, event_ids).await?.into_iter().map(|event| (event.id, event)).collect();
        // Again after the locks: a caller may have been removed from the administrators while the order waited.
        let issuers: BTreeSet<Id> = of_accounts()
            .filter(|draft| draft.request.is_complimentary())
            .filter_map(|draft| draft.request.caller.account)
            .collect();
        let administrators = if issuers.is_empty() {
            HashSet::new()
        } else {
            hosts::administrators_among(tx, issuers, events.values().map(|event| event.host_id).collect()).await?
        };
        Ok(Self {
            accounts,
            new_guests: guests.new,
            events,
            administrators,
            open: HashMap::new(),
            available: BTreeMap::new(),
            offers: HashMap::new(),
            accepted: Vec::new(),
            held: HashMap::new(),
            taken: BTreeMap::new(),
        })
    }

    /// Rejects a draft whose tickets are not on sale now. Doesn't check the number of places left.
    pub fn check(&self, draft: &Draft<'_>, now: Timestamp) -> Result<()> {
        match self.accounts.get(&draft.customer) {
            None => return Err(Error::invalid(draft.request.argument(), "names no account")),
            Some(account) if !can_receive(&draft.request.caller, account) => {
                return Err(Error::invalid(draft.request.argument(), INACTIVE));
            }
            Some(_) => {}
        }
        draft.items.require(|line| self.events.contains_key(&line.section.event_id))?;
        draft.items.lines.iter().try_for_each(|line| {
            let event = self.event(line)?;
            if draft.request.is_complimentary() {
                self.require_administrator(&draft.request.caller, event.host_id)?;
            }
            check_event_on_sale(line.section, event, now)?;
            if draft.request.is_complimentary() { Ok(()) } else { check_section_on_sale(line.section, event, now) }
        })
    }

    /// Rejects a caller who may not issue complimentary tickets for a host.
    fn require_administrator(&self, caller: &Caller, host: Id) -> Result<()> {
        let administers = |account| self.administrators.contains(&(account, host));
        if caller.is_administrator() || caller.account.is_some_and(administers) { Ok(()) } else { Err(Error::FORBIDDEN) }
    }

    /// Loads the number of open orders, of places left and of tickets held in sections that limit it, and the offers of waiting
    /// lists. Locks the sections.
    ///
    /// # Errors
    /// [`StaleRead`] if a section has been changed since its tickets were priced.
    pub async fn load_counts(&mut self, app: &App, tx: &mut Tx, drafts: &[Result<Draft<'_>>], now: Timestamp) -> Result<()> {
        let to_pay: BTreeSet<Id> =
            drafts.iter().flatten().filter(|draft| !draft.items.is_free()).map(|draft| draft.customer).collect();
        self.open = store::count_open(tx, to_pay, now).await?.into_iter().collect();
        self.held = held(tx, drafts, now).await?;
        let sections: BTreeSet<Id> =
            drafts.iter().flatten().flat_map(|draft| &draft.items.lines).map(|line| line.section.id).collect();
        self.available = sections::lock_available(app, tx, sections, now).await?;
        let is_outdated = |line: &Line<'_>| {
            let places = self.available.get(&line.section.id);
            places.is_some_and(|places| places.terms != SaleTerms::from(line.section))
        };
        if drafts.iter().flatten().flat_map(|draft| &draft.items.lines).any(is_outdated) {
            return Err(StaleRead.into());
        }
        let offering = self.available.iter().filter(|(_, places)| places.offered > 0).map(|(section, _)| *section);
        let offering: BTreeSet<Id> = offering.collect();
        if !offering.is_empty() {
            let customers: BTreeSet<Id> = drafts.iter().flatten().map(|draft| draft.customer).collect();
            let offers = waiting_list::offers_of(tx, customers, offering, now).await?;
            self.offers = offers.into_iter().map(|offer| ((offer.account_id, offer.section_id), offer)).collect();
        }
        Ok(())
    }

    /// Takes the places of a draft: first those that the waiting list of a section has offered to the customer.
    ///
    /// # Errors
    /// Returns an error if a section was removed meanwhile or has too few places left, or the customer already has the maximum of
    /// open orders or of tickets of a section.
    pub fn reserve(&mut self, draft: &Draft<'_>) -> Result<()> {
        draft.items.require(|line| self.available.contains_key(&line.section.id))?;
        let open = self.open.get(&draft.customer).copied().unwrap_or_default();
        if !draft.items.is_free() && open >= MAX_OPEN_ORDERS {
            let text = format!("This account has {MAX_OPEN_ORDERS} open orders, which is the most allowed.");
            return Err(codes::ORDER_TOO_MANY.with_message(text));
        }
        for line in &draft.items.lines {
            self.check_maximum(draft.customer, line)?;
        }
        // A gift leaves the offer to the account that waits for it.
        let offer = |section: Id| self.offers.get(&(draft.customer, section)).filter(|_| !draft.request.is_complimentary());
        let is_short = |line: &&Line<'_>| {
            let places = self.available.get(&line.section.id);
            places.is_none_or(|places| {
                places.orderable() + offer(line.section.id).map_or(0, |offer| offer.quantity) < line.quantity
            })
        };
        if let Some(line) = draft.items.lines.iter().filter(is_short).min_by_key(|line| line.section.id) {
            let are_awaited = self.available.get(&line.section.id).is_some_and(|places| places.left >= line.quantity);
            return Err(sold_out(line.section, self.event(line)?, are_awaited));
        }
        for line in &draft.items.lines {
            let offer =
                if draft.request.is_complimentary() { None } else { self.offers.remove(&(draft.customer, line.section.id)) };
            let offered = offer.map_or(0, |offer| offer.quantity);
            self.accepted.extend(offer);
            if let Some(places) = self.available.get_mut(&line.section.id) {
                places.left += offered - line.quantity;
            }
            *self.held.entry((draft.customer, line.section.id)).or_default() += line.quantity;
            let (reserved, sold) = self.taken.entry(line.section.id).or_default();
            *reserved -= offered;
            *(if draft.items.is_free() { sold } else { reserved }) += line.quantity;
        }
        if !draft.items.is_free() {
            *self.open.entry(draft.customer).or_default() += 1;
        }
        Ok(())
    }

    /// Rejects tickets that the customer may not buy because it has too many of the section.
    fn check_maximum(&self, customer: Id, line: &Line<'_>) -> Result<()> {
        let held = self.held.get(&(customer, line.section.id)).copied().unwrap_or_default();
        account_maximum(line.section, self.event(line)?, held, line.quantity)
    }

    fn event(&self, line: &Line<'_>) -> Result<&EventSaleRow> {
        Ok(self.events.get(&line.section.event_id).ok_or_else(|| anyhow::anyhow!("a section has no event"))?)
    }
}

/// Rejects a number of tickets that an account may not buy because it has `held` of the section.
///
/// # Errors
/// [`codes::SECTION_ACCOUNT_MAXIMUM`].
pub fn account_maximum(section: &SectionRow, event: &EventSaleRow, held: i64, quantity: i64) -> Result<()> {
    let exceeded = section.maximum_per_account.filter(|maximum| held + quantity > *maximum);
    let Some(maximum) = exceeded else { return Ok(()) };
    let tickets = counted(maximum.unsigned_abs(), "ticket", "tickets");
    let (name, title) = (&section.name, &event.title);
    let text = format!("An account may buy at most {tickets} of the section {name} of {title}, and this one has {held}.");
    Err(codes::SECTION_ACCOUNT_MAXIMUM.with_message(text))
}

/// Returns the number of tickets of these drafts' customers in those of their sections that limit it. Needs no query if no section
/// has a limit. The customers must be locked.
async fn held(reader: &mut Reader, drafts: &[Result<Draft<'_>>], now: Timestamp) -> Result<HashMap<(Id, Id), i64>> {
    let has_limit = |line: &&Line<'_>| line.section.maximum_per_account.is_some();
    let limited = |draft: &Draft<'_>| draft.items.lines.iter().filter(has_limit).map(|line| line.section.id).collect::<Vec<Id>>();
    let (mut accounts, mut sections) = (BTreeSet::new(), BTreeSet::new());
    for draft in drafts.iter().flatten() {
        let limited = limited(draft);
        accounts.extend((!limited.is_empty()).then_some(draft.customer));
        sections.extend(limited);
    }
    if sections.is_empty() {
        return Ok(HashMap::new());
    }
    let held = store::count_held(reader, &accounts, &sections, now).await?;
    Ok(held.into_iter().map(|(account, section, tickets)| ((account, section), tickets)).collect())
}

/// Returns whether the account can get tickets that the caller orders. The tickets of a deactivated account would take places that can't
/// be used.
pub fn can_receive(caller: &Caller, account: &AccountRow) -> bool {
    account.activated || caller.is(account.id)
}
