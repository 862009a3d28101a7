//! Redemption of tickets. Redeemers admit to the sections of their admission token, host administrators to the whole event.
//!
//! Tickets that are scanned at the same time are redeemed in one batch. If two requests of a batch have the same ticket, the
//! first one redeems it.

use std::borrow::Cow;
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use boxoffice_http::error::{Code, DetailedRejection, Error, FieldError, Result};
use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::{Map, json};

use super::model::{Admission, AdmissionCreate, AdmissionRow, Gate, RefusedTicketRow, Scan, ScannedSerial};
use super::refused_ticket::{RefusalReason, RefusedTicket};
use super::{service, store};
use crate::features::catalog::events::{self, EventRow, EventStatus};
use crate::features::catalog::tokens::{self, AdmissionScope};
use crate::features::codes;
use crate::features::identity::accounts::{self, AccountRow};
use crate::features::sales::tickets::{self, TicketRow};
use crate::kernel::auth::Caller;
use crate::kernel::db::{Reader, Tx};
use crate::kernel::types::api_types::non_blank;
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::Id;
use crate::kernel::unit_of_work::BatchOperation;
use crate::state::{App, Ctx};

/// Largest number of tickets in a batch.
const MAX_TICKETS: usize = 1000;

/// Property of the error body with the tickets that are not admitted.
pub const REFUSED: &str = "refused";

/// A request to redeem scanned tickets.
pub struct ScanRequest {
    caller: Caller,
    event: Id,
    new: AdmissionCreate,
    /// The serial numbers in `new`, as tickets have them.
    serials: Vec<String>,
    /// True if the response has the reasons for which tickets are not admitted. An error has them in any case.
    needs_reasons: bool,
}

/// The identifiers of an event and of the sections to which a request may admit.
type EventScope = (Id, AdmissionScope);
/// The redeemed tickets of a batch, by scope and serial number.
type RedeemedTickets = HashMap<(EventScope, String), TicketRow>;
/// The admissions of a request, or its error.
type ScanOutcome = Result<(EventScope, Vec<AdmissionRow>)>;

/// Redeems the tickets that can be redeemed. Returns their admissions in the order of the first occurrence of their serial
/// numbers.
pub async fn admit(ctx: &Ctx, caller: Caller, event: Id, new: AdmissionCreate) -> Result<Vec<Admission>> {
    let request = ScanRequest::new(ctx, caller, event, new, false).await?;
    Ok(ctx.app.scan_commits.submit(ctx, request).await?.admitted)
}

/// Redeems tickets like [`admit`]. Also returns the other serial numbers, with the reasons for which they are not admitted.
pub async fn scan(ctx: &Ctx, caller: Caller, event: Id, new: AdmissionCreate) -> Result<Scan> {
    let request = ScanRequest::new(ctx, caller, event, new, true).await?;
    ctx.app.scan_commits.submit(ctx, request).await
}

impl BatchOperation<App> for ScanRequest {
    type Output = Scan;

    const MAX_WEIGHT: usize = MAX_TICKETS;

    fn weight(&self) -> usize {
        self.new.serials.len()
    }

    fn execute<'a>(app: &'a App, tx: &'a mut Tx, batch: &'a [&'a Self]) -> BoxFuture<'a, Result<Vec<Result<Scan>>>> {
        admit_all(app, tx, batch).boxed()
    }
}

async fn admit_all(app: &App, tx: &mut Tx, scans: &[&ScanRequest]) -> Result<Vec<Result<Scan>>> {
    // First, so that the callers' permissions and the events are read as they are after the wait for the locks. Tickets of a caller
    // without permission are locked, too, until the batch ends.
    tickets::lock_by_serials(tx, scans.iter().flat_map(|scan| scan.serials())).await?;
    let now = app.clock.now();
    let scopes = authorize_scans(tx, scans, now).await?;
    let redeemed = redeem_tickets(tx, scans, &scopes, now).await?;
    let outcomes = record_admissions(app, tx, scans, scopes, redeemed, now).await?;
    // After the insert, because another request of the batch may have redeemed the ticket.
    let refusals = Refusals::load(tx, scans, &outcomes).await?;
    answer(tx, scans, outcomes, &refusals, now).await
}

/// Redeems the tickets of the authorized requests that can be redeemed, and returns them.
async fn redeem_tickets(
    tx: &mut Tx,
    scans: &[&ScanRequest],
    scopes: &[Result<AdmissionScope>],
    now: Timestamp,
) -> Result<RedeemedTickets> {
    let mut serials_by_scope: BTreeMap<EventScope, Vec<String>> = BTreeMap::new();
    for (scan, scope) in scans.iter().zip(scopes) {
        if let Ok(scope) = scope {
            serials_by_scope.entry((scan.event, *scope)).or_default().extend(scan.serials());
        }
    }
    let mut redeemed = HashMap::new();
    for ((event, scope), serials) in serials_by_scope {
        let tickets = tickets::redeem(tx, event, serials, scope, now).await?;
        redeemed.extend(tickets.into_iter().map(|ticket| (((event, scope), ticket.serial.clone()), ticket)));
    }
    Ok(redeemed)
}

/// Inserts the admissions of redeemed tickets. Returns those of each request, or its error.
async fn record_admissions(
    app: &App,
    tx: &mut Tx,
    scans: &[&ScanRequest],
    scopes: Vec<Result<AdmissionScope>>,
    mut redeemed: RedeemedTickets,
    now: Timestamp,
) -> Result<Vec<ScanOutcome>> {
    let account_numbers = account_numbers(tx, scans).await?;
    let mut outcomes = Vec::with_capacity(scans.len());
    for (scan, scope) in scans.iter().zip(scopes) {
        outcomes.push(scope.map(|scope| {
            let name = non_blank(scan.new.redeemer.as_deref()).map(str::to_owned);
            let gate = Gate {
                redeemer: name.unwrap_or_else(|| redeemer(&scan.caller, &account_numbers)),
                device: non_blank(scan.new.device.as_deref()).unwrap_or_default().to_owned(),
                token: scan.caller.admission_claims.map(|claims| claims.token),
            };
            // A redeemed ticket is removed, so that a repeated serial number is admitted once.
            let tickets = scan.serials().filter_map(|serial| redeemed.remove(&((scan.event, scope), serial)));
            let admitted = tickets.map(|ticket| gate.admission(app.clock.next_id(), &ticket, now));
            ((scan.event, scope), admitted.collect())
        }));
    }
    store::insert(tx, &admitted_in(&outcomes).collect::<Vec<_>>()).await?;
    Ok(outcomes)
}

/// Returns the response to each request.
async fn answer(
    tx: &mut Tx,
    scans: &[&ScanRequest],
    outcomes: Vec<ScanOutcome>,
    refusals: &Refusals,
    now: Timestamp,
) -> Result<Vec<Result<Scan>>> {
    let relations = service::AdmissionRelations::load(tx, admitted_in(&outcomes), now).await?;
    let refused = outcomes.iter().flatten().filter(|(_, admitted)| admitted.is_empty());
    let removed_tokens = tokens::removed(tx, refused.filter_map(|((_, scope), _)| scope.token()).collect()).await?;
    let result = |(scan, outcome): (&&ScanRequest, ScanOutcome)| {
        let (scope, admitted) = outcome?;
        if admitted.is_empty() {
            if scope.1.token().is_some_and(|token| removed_tokens.contains(&token)) {
                return Err(Code::KEY_REFUSED.into());
            }
            return Err(none_admitted("None of these tickets can be admitted.", refusals.of(scan, scope, &admitted)));
        }
        let refused = if scan.needs_reasons { refusals.of(scan, scope, &admitted) } else { Vec::new() };
        let admitted = admitted.into_iter().map(|row| relations.view(&scan.caller, row)).collect::<Result<_>>()?;
        Ok(Scan { admitted, refused })
    };
    Ok(scans.iter().zip(outcomes).map(result).collect())
}

/// Returns the admissions of all requests of a batch.
fn admitted_in(outcomes: &[ScanOutcome]) -> impl Iterator<Item = &AdmissionRow> {
    outcomes.iter().flatten().flat_map(|(_, admitted)| admitted)
}

impl ScanRequest {
    /// Reads the serial numbers of the scanned texts, which may be codes.
    async fn new(ctx: &Ctx, caller: Caller, event: Id, new: AdmissionCreate, needs_reasons: bool) -> Result<Self> {
        let mut serials: Vec<String> = new.serials.iter().map(ScannedSerial::normalized).collect();
        tickets::replace_codes(ctx, &mut serials).await?;
        Ok(Self { caller, event, new, serials, needs_reasons })
    }

    /// Returns the normalized serial numbers.
    fn serials(&self) -> impl Iterator<Item = String> {
        self.serials.iter().cloned()
    }

    /// Returns the serial numbers that are not among these admissions, each once: as the client sent them, and normalized.
    fn refused(&self, admitted: &[AdmissionRow]) -> impl Iterator<Item = (&ScannedSerial, String)> {
        let mut seen: HashSet<String> = admitted.iter().map(|admission| admission.serial.clone()).collect();
        let serials = self.new.serials.iter().zip(self.serials());
        serials.filter(move |(_, normalized)| seen.insert(normalized.clone()))
    }
}

/// The tickets that a batch does not admit.
struct Refusals(HashMap<(EventScope, String), RefusedTicketRow>);

impl Refusals {
    /// Loads the refused tickets of the requests that return reasons. A batch without refused tickets needs no query.
    async fn load(reader: &mut Reader, scans: &[&ScanRequest], outcomes: &[ScanOutcome]) -> Result<Self> {
        let mut serials_by_scope: BTreeMap<EventScope, Vec<String>> = BTreeMap::new();
        for (scan, outcome) in scans.iter().zip(outcomes) {
            if let Ok((scope, admitted)) = outcome
                && (scan.needs_reasons || admitted.is_empty())
            {
                let refused = scan.refused(admitted).map(|(_, serial)| serial);
                serials_by_scope.entry(*scope).or_default().extend(refused);
            }
        }
        let mut refused = HashMap::new();
        for ((event, scope), serials) in serials_by_scope.into_iter().filter(|(_, serials)| !serials.is_empty()) {
            let rows = store::find_refused(reader, event, serials, scope).await?;
            refused.extend(rows.into_iter().map(|row| (((event, scope), row.serial.clone()), row)));
        }
        Ok(Self(refused))
    }

    /// Returns the serial numbers of a request that are not among its admissions, with their reasons.
    fn of(&self, scan: &ScanRequest, scope: EventScope, admitted: &[AdmissionRow]) -> Vec<RefusedTicket> {
        let refused = |(given, serial): (&ScannedSerial, String)| {
            let ticket = self.0.get(&(scope, serial));
            let reason = ticket.map_or(RefusalReason::Unknown, RefusedTicketRow::reason);
            let admission =
                ticket.filter(|_| reason == RefusalReason::Redeemed).and_then(|ticket| ticket.admission.view(scan.event));
            RefusedTicket { serial: given.0.clone(), reason, admission }
        };
        scan.refused(admitted).map(refused).collect()
    }
}

/// Returns the admission scope of each request, or its error. Authorizes each pair of key and event once. Tickets of a cancelled
/// event are not admitted, nor those of an event that admits tickets later.
async fn authorize_scans(reader: &mut Reader, scans: &[&ScanRequest], now: Timestamp) -> Result<Vec<Result<AdmissionScope>>> {
    let ids: BTreeSet<Id> = scans.iter().map(|scan| scan.event).collect();
    let events: HashMap<Id, EventRow> = events::find_all(reader, ids).await?.into_iter().map(|event| (event.id, event)).collect();
    let mut cache: HashMap<(Id, Id), Result<AdmissionScope>> = HashMap::new();
    for scan in scans {
        if let Entry::Vacant(entry) = cache.entry((scan.caller.key, scan.event)) {
            let scope = match events.get(&scan.event) {
                Some(event) => tokens::authorize(reader, &scan.caller, event).await,
                None => Err(Error::NOT_FOUND),
            };
            entry.insert(Error::split_rejection(scope)?);
        }
    }
    let scope = |scan: &&ScanRequest| match (cache.get(&(scan.caller.key, scan.event)), events.get(&scan.event)) {
        (Some(Ok(scope)), Some(event)) => match closed_error(scan, event, now) {
            Some(error) => Err(error),
            None => Ok(*scope),
        },
        (Some(Err(error)), _) => Err(error.clone_lossy()),
        _ => Err(Error::NOT_FOUND),
    };
    Ok(scans.iter().map(scope).collect())
}

/// Returns the error for the tickets of an event that has no admission now.
fn closed_error(scan: &ScanRequest, event: &EventRow, now: Timestamp) -> Option<Error> {
    let reason = closed_reason(event, now)?;
    let text = match reason {
        RefusalReason::TooEarly => {
            let from = event.admission_from.map(Timestamp::format_minutes).unwrap_or_default();
            format!("Tickets of this event are admitted from {from} (UTC) on.")
        }
        _ => "This event is cancelled, so none of its tickets can be admitted.".to_owned(),
    };
    let refused = scan.refused(&[]).map(|(given, _)| RefusedTicket { serial: given.0.clone(), reason, admission: None });
    Some(none_admitted(text, refused.collect()))
}

/// Creates the error of a request that admits no ticket, with the reason for each serial number.
fn none_admitted(text: impl Into<Cow<'static, str>>, refused: Vec<RefusedTicket>) -> Error {
    Error::Detailed(Box::new(DetailedRejection {
        code: codes::ADMISSION_NONE,
        text: text.into(),
        fields: vec![FieldError::invalid("serials", "name no ticket that can be admitted")],
        properties: Map::from_iter([(REFUSED.to_owned(), json!(refused))]),
    }))
}

/// Returns the reason for which an event has no admission now.
fn closed_reason(event: &EventRow, now: Timestamp) -> Option<RefusalReason> {
    if event.status == EventStatus::Cancelled {
        return Some(RefusalReason::EventCancelled);
    }
    is_too_early(event, now).then_some(RefusalReason::TooEarly)
}

/// Returns whether an event has no admission yet at this time.
pub fn is_too_early(event: &EventRow, at: Timestamp) -> bool {
    event.admission_from.is_some_and(|from| at < from)
}

/// Returns the redeemer of a caller's admissions: the name in the request, or the default.
pub async fn redeemer_name(reader: &mut Reader, caller: &Caller, given: Option<&str>) -> Result<String> {
    if let Some(name) = non_blank(given) {
        return Ok(name.to_owned());
    }
    let accounts = accounts::find_all(reader, caller.account).await?;
    Ok(redeemer(caller, &accounts.into_iter().map(|account| (account.id, account.number)).collect()))
}

/// Returns the account numbers of the callers.
async fn account_numbers(reader: &mut Reader, scans: &[&ScanRequest]) -> Result<HashMap<Id, String>> {
    let accounts: BTreeSet<Id> = scans.iter().filter_map(|scan| scan.caller.account).collect();
    let accounts: Vec<AccountRow> = accounts::find_all(reader, accounts).await?;
    Ok(accounts.into_iter().map(|account| (account.id, account.number)).collect())
}

/// Returns the default redeemer of an admission: the URI of the caller's admission token, or its account number.
fn redeemer(caller: &Caller, account_numbers: &HashMap<Id, String>) -> String {
    match (caller.admission_claims, caller.account) {
        (Some(claims), _) => tokens::uri(claims.event, claims.token).0,
        (None, Some(account)) => account_numbers.get(&account).cloned().unwrap_or_default(),
        (None, None) => String::new(),
    }
}
