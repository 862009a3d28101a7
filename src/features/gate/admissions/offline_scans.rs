//! Upload of scans that gates made without a connection.
//!
//! A gate without a connection admits the tickets in its list, and uploads its scans later. An upload is repeated until the gate
//! has its response, so the decision on a scan is the same, however often it is uploaded. A scan is identified by its ticket, its
//! device and its time.
//!
//! A ticket counts as admitted once: by the first scan that the server learns of. If another gate has admitted the same ticket, a
//! conflict is recorded, which both gates can [list](super::conflicts).

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use anyhow::anyhow;
use boxoffice_http::error::Result;

use super::model::{
    AdmissionRow, ConflictRow, EarlierAdmissionRow, Gate, NewConflict, OfflineScanCreate, OfflineScanResult, ScannedTicketRow,
    UploadedScan,
};
use super::refused_ticket::{EarlierAdmission, RefusalReason, RefusedTicket};
use super::{conflicts, offline_store, redeem, store};
use crate::features::catalog::events::{self, EventRow, EventStatus};
use crate::features::catalog::tokens;
use crate::features::sales::tickets::{self, TicketStatus};
use crate::kernel::auth::Caller;
use crate::kernel::db::{Tx, transaction};
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::Id;
use crate::state::{App, Ctx};

/// Difference between the clocks of a gate and the server up to which the time of a scan is plausible.
const MAX_SKEW: Duration = Duration::from_secs(5 * 60);
/// Largest number of conflicts of a ticket. Further gates that have admitted it get the refusal `redeemed`.
const MAX_CONFLICTS: usize = 20;

/// Records scans that a gate made without a connection.
pub async fn upload(ctx: &Ctx, caller: &Caller, event: Id, new: &OfflineScanCreate) -> Result<OfflineScanResult> {
    transaction!(ctx.unit, |tx| upload_in_tx(&ctx.app, tx, caller, event, new).await)
}

/// Rejects callers who may not admit to the event.
pub async fn check_access(ctx: &Ctx, caller: &Caller, event: Id) -> Result<()> {
    let mut reader = ctx.unit.read().await?;
    let event = events::load(&mut reader, event).await?;
    tokens::authorize(&mut reader, caller, &event).await.map(drop)
}

/// The scan of a ticket that counts, with its ticket and the decision on it.
struct DecidedScan<'a> {
    scan: &'a TicketScans,
    row: Option<&'a ScannedTicketRow>,
    scanned: Timestamp,
    decision: ScanDecision,
}

/// The decision on a scan.
enum ScanDecision {
    /// The ticket is Issued, and becomes Redeemed.
    Admit,
    /// The same gate has admitted the ticket: by an earlier upload of this scan, or by a request whose response was lost.
    Admitted,
    /// Another gate has admitted the ticket, by this admission.
    Conflict(Id),
    Refused(RefusalReason),
}

async fn upload_in_tx(app: &App, tx: &mut Tx, caller: &Caller, event: Id, new: &OfflineScanCreate) -> Result<OfflineScanResult> {
    let scans = by_ticket(&new.scans);
    let serials: Vec<String> = scans.iter().map(|scan| scan.serial.clone()).collect();
    // First, so that the caller's permission and the event are read as they are after the wait for the locks.
    tickets::lock_by_serials(tx, serials.clone()).await?;
    let event = events::load(tx, event).await?;
    let scope = tokens::authorize(tx, caller, &event).await?;
    let gate = Gate {
        redeemer: redeem::redeemer_name(tx, caller, new.redeemer.as_deref()).await?,
        device: new.device.clone(),
        token: caller.admission_claims.map(|claims| claims.token),
    };
    let now = app.clock.now();
    let rows = offline_store::find_scanned(tx, event.id, serials, scope).await?;
    let decided = decide(tx, &scans, &rows, &event, &gate, now).await?;
    record_admissions(app, tx, event.id, &gate, &decided).await?;
    let conflicts = record_conflicts(app, tx, event.id, &gate, &decided, now).await?;
    // The token may have been removed since the tickets were read.
    scope.require_token(tx).await?;
    Ok(result(event.id, decided, &conflicts))
}

/// Decides on the scans of each ticket.
async fn decide<'a>(
    tx: &mut Tx,
    scans: &'a [TicketScans],
    rows: &'a [ScannedTicketRow],
    event: &EventRow,
    gate: &Gate,
    now: Timestamp,
) -> Result<Vec<DecidedScan<'a>>> {
    let ids = rows.iter().map(|row| row.ticket.id).collect();
    let undone = offline_store::undone_admissions(tx, ids, gate.device.clone()).await?;
    let undone: HashMap<Id, Timestamp> = undone.into_iter().collect();
    let rows: HashMap<&str, &ScannedTicketRow> = rows.iter().map(|row| (row.ticket.serial.as_str(), row)).collect();
    let decided = scans.iter().map(|scan| {
        let row = rows.get(scan.serial.as_str()).copied();
        let (scanned, decision) = decide_ticket(scan, |scanned| decide_scan(scanned, row, event, gate, &undone, now));
        DecidedScan { scan, row, scanned, decision }
    });
    Ok(decided.collect())
}

/// Redeems the tickets that are admitted now, and inserts their admissions.
async fn record_admissions(app: &App, tx: &mut Tx, event: Id, gate: &Gate, decided: &[DecidedScan<'_>]) -> Result<()> {
    let is_new = |scan: &&DecidedScan<'_>| matches!(scan.decision, ScanDecision::Admit);
    let new = decided.iter().filter(is_new).filter_map(|scan| Some((&scan.row?.ticket, scan.scanned)));
    let admitted: Vec<AdmissionRow> = new.map(|(ticket, scanned)| gate.admission(app.clock.next_id(), ticket, scanned)).collect();
    store::insert(tx, &admitted.iter().collect::<Vec<_>>()).await?;
    let redeemed = offline_store::redeem(tx, admitted.iter().map(|row| row.ticket_id).collect()).await?;
    if redeemed != admitted.len() as u64 {
        return Err(anyhow!("a locked ticket of the event {event} is no longer Issued").into());
    }
    Ok(())
}

/// Returns the response to an upload. `conflicts` has those of its scans by serial number.
fn result(event: Id, decided: Vec<DecidedScan<'_>>, conflicts: &HashMap<String, ConflictRow>) -> OfflineScanResult {
    let mut result = OfflineScanResult { admitted: 0, refused: Vec::new(), conflicts: Vec::new() };
    for DecidedScan { scan, row, decision, .. } in decided {
        let earlier = || row.and_then(|row| row.admission.view(event));
        match decision {
            ScanDecision::Admit | ScanDecision::Admitted => result.admitted += 1,
            ScanDecision::Refused(reason) => result.refused.push(refused(scan, reason, None)),
            ScanDecision::Conflict(_) => match conflicts.get(&scan.serial) {
                Some(conflict) => result.conflicts.push(conflicts::view(conflict)),
                None => result.refused.push(refused(scan, RefusalReason::Redeemed, earlier())),
            },
        }
    }
    result
}

/// The scans of a serial number in a request.
struct TicketScans {
    /// The serial number as the client sent it.
    given: String,
    /// The serial number as tickets have it.
    serial: String,
    /// The times of the scans: one or more.
    times: BTreeSet<Timestamp>,
}

/// Returns the scans of each serial number, in the order of the request.
fn by_ticket(uploaded: &[UploadedScan]) -> Vec<TicketScans> {
    let mut scans: Vec<TicketScans> = Vec::with_capacity(uploaded.len());
    let mut positions: HashMap<String, usize> = HashMap::with_capacity(uploaded.len());
    for scan in uploaded {
        let (serial, scanned) = (scan.serial.normalized(), scan.scanned.0);
        let position = *positions.entry(serial.clone()).or_insert(scans.len());
        if position == scans.len() {
            scans.push(TicketScans { given: scan.serial.0.clone(), serial, times: BTreeSet::new() });
        }
        scans[position].times.insert(scanned);
    }
    scans
}

/// Returns the time of the earliest scan of a ticket that is not refused, or of the earliest one if all are, and the decision on it.
/// A gate may upload an old scan, which is refused, together with the one by which it has admitted the ticket.
fn decide_ticket(scan: &TicketScans, decide: impl Fn(Timestamp) -> ScanDecision) -> (Timestamp, ScanDecision) {
    let mut decisions: Vec<_> = scan.times.iter().map(|scanned| (*scanned, decide(*scanned))).collect();
    let accepted = decisions.iter().position(|(_, decision)| !matches!(decision, ScanDecision::Refused(_)));
    decisions.swap_remove(accepted.unwrap_or(0))
}

fn decide_scan(
    scanned: Timestamp,
    row: Option<&ScannedTicketRow>,
    event: &EventRow,
    gate: &Gate,
    undone: &HashMap<Id, Timestamp>,
    now: Timestamp,
) -> ScanDecision {
    let is_undone = |row: &ScannedTicketRow| undone.get(&row.ticket.id).is_some_and(|undone| scanned <= *undone);
    let is_admitted = |row: &&ScannedTicketRow| {
        let EarlierAdmissionRow { device, token_id, admitted, .. } = &row.admission;
        let admission = device.as_deref().zip(*admitted);
        let is_own = admission.is_some_and(|(device, admitted)| gate.has_admitted(scanned, device, *token_id, admitted));
        row.ticket.status == TicketStatus::Redeemed && is_own && !is_undone(row)
    };
    // First, because the decision on a scan whose response was lost is the same again, whatever was changed meanwhile.
    if row.filter(is_admitted).is_some() {
        return ScanDecision::Admitted;
    }
    if event.status == EventStatus::Cancelled && !is_before_cancellation(scanned, event, now) {
        return ScanDecision::Refused(RefusalReason::EventCancelled);
    }
    let Some(row) = row else { return ScanDecision::Refused(RefusalReason::Unknown) };
    let is_plausible = row.ticket.issued.minus(MAX_SKEW) <= scanned && scanned <= now.plus(MAX_SKEW);
    if !row.is_covered {
        return ScanDecision::Refused(RefusalReason::OtherSection);
    }
    if !is_plausible {
        return ScanDecision::Refused(RefusalReason::ImplausibleTime);
    }
    if is_undone(row) {
        return ScanDecision::Refused(RefusalReason::Undone);
    }
    if redeem::is_too_early(event, scanned.plus(MAX_SKEW)) {
        return ScanDecision::Refused(RefusalReason::TooEarly);
    }
    match (row.ticket.status, row.admission.admission_id) {
        (TicketStatus::Issued, _) => ScanDecision::Admit,
        (TicketStatus::Pending, _) => ScanDecision::Refused(RefusalReason::Pending),
        (TicketStatus::Void, _) => ScanDecision::Refused(RefusalReason::Void),
        (TicketStatus::Redeemed, Some(admission)) => ScanDecision::Conflict(admission),
        (TicketStatus::Redeemed, None) => ScanDecision::Refused(RefusalReason::Redeemed),
    }
}

/// Returns whether a scan was made before the cancellation of an event, which is its last change.
fn is_before_cancellation(scanned: Timestamp, event: &EventRow, now: Timestamp) -> bool {
    // In the future if the clock of the server that cancelled the event was ahead. Then the time is not known.
    let cancelled = event.revised.filter(|cancelled| *cancelled <= now.plus(MAX_SKEW));
    cancelled.is_some_and(|cancelled| scanned < cancelled)
}

/// Records the conflicts of this gate that are not recorded yet. Returns all conflicts of its scans, by serial number. The locks of
/// the tickets keep two uploads from recording the same conflict.
async fn record_conflicts(
    app: &App,
    tx: &mut Tx,
    event: Id,
    gate: &Gate,
    decided: &[DecidedScan<'_>],
    now: Timestamp,
) -> Result<HashMap<String, ConflictRow>> {
    let in_conflict = |DecidedScan { row, scanned, decision, .. }: &DecidedScan<'_>| match decision {
        ScanDecision::Conflict(admission) => row.map(|row| (row.ticket.id, *admission, *scanned)),
        _ => None,
    };
    let found: Vec<(Id, Id, Timestamp)> = decided.iter().filter_map(in_conflict).collect();
    if found.is_empty() {
        return Ok(HashMap::new());
    }
    let tickets: Vec<Id> = found.iter().map(|(ticket, ..)| *ticket).collect();
    let mut known: HashMap<Id, Vec<ConflictRow>> = HashMap::new();
    for conflict in offline_store::conflicts_of_tickets(tx, tickets.clone()).await? {
        known.entry(conflict.ticket_id).or_default().push(conflict);
    }
    let is_own = |conflict: &ConflictRow, scanned: Timestamp| {
        gate.has_admitted(scanned, &conflict.device, conflict.token_id, conflict.scanned)
    };
    let is_new = |(ticket, _, scanned): &&(Id, Id, Timestamp)| {
        let of_ticket = known.get(ticket).map(Vec::as_slice).unwrap_or_default();
        of_ticket.len() < MAX_CONFLICTS && !of_ticket.iter().any(|conflict| is_own(conflict, *scanned))
    };
    let new: Vec<NewConflict> = found
        .iter()
        .filter(is_new)
        .map(|(ticket, admission, scanned)| NewConflict {
            id: app.clock.next_id(),
            event_id: event,
            ticket_id: *ticket,
            admission_id: *admission,
            redeemer: gate.redeemer.clone(),
            device: gate.device.clone(),
            token_id: gate.token,
            scanned: *scanned,
            recorded: now,
        })
        .collect();
    offline_store::insert_conflicts(tx, &new).await?;
    let all = offline_store::conflicts_of_tickets(tx, tickets).await?;
    let scanned: HashMap<Id, Timestamp> = found.iter().map(|(ticket, _, scanned)| (*ticket, *scanned)).collect();
    let is_of_gate = |conflict: &ConflictRow| scanned.get(&conflict.ticket_id).is_some_and(|scanned| is_own(conflict, *scanned));
    let of_gate = all.into_iter().filter(is_of_gate);
    Ok(of_gate.map(|conflict| (conflict.serial.clone(), conflict)).collect())
}

fn refused(scan: &TicketScans, reason: RefusalReason, admission: Option<EarlierAdmission>) -> RefusedTicket {
    RefusedTicket { serial: scan.given.clone(), reason, admission }
}
