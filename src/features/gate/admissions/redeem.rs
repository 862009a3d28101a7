//! Redemption of tickets. Redeemers admit to the sections of their admission token, host administrators to the whole event.
//!
//! Tickets that are scanned at the same time are redeemed in one batch. If two requests of a batch have the same ticket, the
//! first one redeems it.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use boxoffice_http::error::{Code, Error, Result};
use futures::FutureExt;
use futures::future::BoxFuture;

use super::model::{Admission, AdmissionCreate, AdmissionRow};
use super::{service, store};
use crate::features::catalog::events::{self, EventRow, EventStatus};
use crate::features::catalog::tokens::{self, AdmissionScope};
use crate::features::identity::accounts::{self, AccountRow};
use crate::features::sales::tickets::{self, TicketRow};
use crate::kernel::auth::Caller;
use crate::kernel::db::BatchOperation;
use crate::kernel::db::Tx;
use crate::kernel::types::id::Id;
use crate::state::{App, Ctx};

/// Largest number of tickets in a batch.
const MAX_TICKETS: usize = 1000;

/// A request to redeem scanned tickets.
pub struct ScanRequest {
    caller: Caller,
    event: Id,
    new: AdmissionCreate,
}

/// Redeems the tickets that can be redeemed. Returns their admissions in the order of the first occurrence of their serial
/// numbers.
pub async fn admit(ctx: &Ctx, caller: Caller, event: Id, new: AdmissionCreate) -> Result<Vec<Admission>> {
    ctx.app.redeemer.submit(ctx, ScanRequest { caller, event, new }).await
}

impl BatchOperation<App> for ScanRequest {
    type Output = Vec<Admission>;

    const MAX_WEIGHT: usize = MAX_TICKETS;

    fn weight(&self) -> usize {
        self.new.serials.len()
    }

    fn execute<'a>(app: &'a App, tx: &'a mut Tx, batch: &'a [&'a Self]) -> BoxFuture<'a, Result<Vec<Result<Vec<Admission>>>>> {
        admit_all(app, tx, batch).boxed()
    }
}

async fn admit_all(app: &App, tx: &mut Tx, scans: &[&ScanRequest]) -> Result<Vec<Result<Vec<Admission>>>> {
    let now = app.clock.now();
    let scopes = authorize_scans(tx, scans).await?;
    let mut serials_by_scope: BTreeMap<(Id, AdmissionScope), Vec<String>> = BTreeMap::new();
    for (scan, scope) in scans.iter().zip(&scopes) {
        if let Ok(scope) = scope {
            let serials = scan.new.serials.iter().map(|serial| serial.0.clone());
            serials_by_scope.entry((scan.event, *scope)).or_default().extend(serials);
        }
    }
    tickets::lock_all(tx, serials_by_scope.values().flatten().cloned()).await?;
    let mut redeemed: HashMap<(Id, AdmissionScope, String), TicketRow> = HashMap::new();
    for ((event, scope), serials) in serials_by_scope {
        let tickets = tickets::redeem(tx, event, serials, scope, now).await?;
        redeemed.extend(tickets.into_iter().map(|ticket| ((event, scope, ticket.serial.clone()), ticket)));
    }
    let account_numbers = account_numbers(tx, scans).await?;
    let mut outcomes: Vec<Result<Vec<AdmissionRow>>> = Vec::with_capacity(scans.len());
    for (scan, scope) in scans.iter().zip(scopes) {
        outcomes.push(scope.and_then(|scope| {
            let device = non_blank(scan.new.device.as_ref()).unwrap_or_default();
            let redeemer = non_blank(scan.new.redeemer.as_ref()).unwrap_or_else(|| redeemer(&scan.caller, &account_numbers));
            // A redeemed ticket is removed, so that a repeated serial number is admitted once.
            let tickets = scan.new.serials.iter().filter_map(|serial| redeemed.remove(&(scan.event, scope, serial.0.clone())));
            let admitted: Vec<AdmissionRow> = tickets
                .map(|ticket| AdmissionRow {
                    id: app.clock.next_id(),
                    event_id: scan.event,
                    section_id: ticket.section_id,
                    ticket_id: ticket.id,
                    serial: ticket.serial,
                    patron_id: ticket.owner_id,
                    redeemer: redeemer.clone(),
                    device: device.clone(),
                    admitted: now,
                })
                .collect();
            if admitted.is_empty() {
                return Err(Code::AdmissionNone.with_message("None of these tickets can be admitted."));
            }
            Ok(admitted)
        }));
    }
    let admitted: Vec<&AdmissionRow> = outcomes.iter().flatten().flatten().collect();
    store::insert(tx, &admitted).await?;
    let relations = service::Relations::load(tx, admitted, now).await?;
    let views = scans
        .iter()
        .zip(outcomes)
        .map(|(scan, rows)| rows.and_then(|rows| rows.into_iter().map(|row| relations.view(&scan.caller, row)).collect()));
    Ok(views.collect())
}

/// Returns the admission scope of each request, or its error. Authorizes each pair of key and event once.
async fn authorize_scans(tx: &mut Tx, scans: &[&ScanRequest]) -> Result<Vec<Result<AdmissionScope>>> {
    let ids: BTreeSet<Id> = scans.iter().map(|scan| scan.event).collect();
    let events: HashMap<Id, EventRow> = events::of_ids(tx, ids).await?.into_iter().map(|event| (event.id, event)).collect();
    let mut cache: HashMap<(Id, Id), Result<AdmissionScope>> = HashMap::new();
    for scan in scans {
        if let Entry::Vacant(entry) = cache.entry((scan.caller.key, scan.event)) {
            let scope = match events.get(&scan.event) {
                Some(event) => authorize(tx, &scan.caller, event).await,
                None => Err(Error::NOT_FOUND),
            };
            entry.insert(Error::split_rejection(scope)?);
        }
    }
    let scope = |scan: &&ScanRequest| match cache.get(&(scan.caller.key, scan.event)) {
        Some(Ok(scope)) => Ok(*scope),
        Some(Err(error)) => Err(error.clone_lossy()),
        None => Err(Error::NOT_FOUND),
    };
    Ok(scans.iter().map(scope).collect())
}

/// Returns the sections to which the caller may admit.
///
/// # Errors
/// [`Error::FORBIDDEN`] for a caller who may not admit to the event, [`Code::AdmissionNone`] if the event is cancelled.
async fn authorize(tx: &mut Tx, caller: &Caller, event: &EventRow) -> Result<AdmissionScope> {
    let scope = tokens::authorize(tx, caller, event).await?;
    if event.status == EventStatus::Cancelled {
        return Err(Code::AdmissionNone.with_message("This event is cancelled, so none of its tickets can be admitted."));
    }
    Ok(scope)
}

/// Returns the text unless it is blank.
fn non_blank(text: Option<&String>) -> Option<String> {
    text.filter(|text| !text.trim().is_empty()).cloned()
}

/// Returns the account numbers of the callers.
async fn account_numbers(tx: &mut Tx, scans: &[&ScanRequest]) -> Result<HashMap<Id, String>> {
    let accounts: BTreeSet<Id> = scans.iter().filter_map(|scan| scan.caller.account).collect();
    let accounts: Vec<AccountRow> = accounts::find_all(tx, accounts).await?;
    Ok(accounts.into_iter().map(|account| (account.id, account.number)).collect())
}

/// Returns the default redeemer of an admission: the URI of the caller's admission token, or its account number.
fn redeemer(caller: &Caller, account_numbers: &HashMap<Id, String>) -> String {
    match (caller.redeemer, caller.account) {
        (Some(redeemer), _) => tokens::uri(redeemer.event, redeemer.token).0,
        (None, Some(account)) => account_numbers.get(&account).cloned().unwrap_or_default(),
        (None, None) => String::new(),
    }
}
