//! The retention: a job that deletes rows and files that are no longer needed, in small transactions.
//!
//! The books stay for ever: accounts, paid orders with their tickets, payments and refunds, and the ledger. Stored responses of
//! idempotent requests and addresses of log-ins have jobs of their own, because the API fixes how long they are kept.

use boxoffice_http::error::Result;

use crate::clock_watch;
use crate::features::catalog::tokens;
use crate::features::identity::{sessions, verification_codes};
use crate::features::insight::audit_log;
use crate::features::sales::orders;
use crate::kernel::outbox;
use crate::kernel::types::clock::{DAY_MICROS, Timestamp};
use crate::state::{App, Ctx};

/// Job step: deletes some rows and files that are past their retention. Returns their number; call it until it returns 0. A failure
/// of one kind of data doesn't keep the others.
///
/// While the clock seems to be ahead, it deletes only what had expired before, see [`clock_watch::deletion_time`].
///
/// # Errors
/// Returns an error if the database fails or a file can't be written, once there is nothing else to delete.
pub async fn delete_expired(ctx: &Ctx) -> Result<u64> {
    let app: &App = &ctx.app;
    let Some(now) = clock_watch::deletion_time(app).await? else { return Ok(0) };
    let keep = &app.settings.retention;
    let mut outcomes = vec![
        sessions::delete_expired_before(ctx, now.minus(keep.sessions)).await,
        tokens::delete_expired_keys_before(ctx, now.minus(keep.sessions)).await,
        verification_codes::delete_expired_before(ctx, now.minus(keep.codes)).await,
        outbox::delete_old(&app.kernel, now.minus(keep.mail)).await,
    ];
    if let Some(age) = keep.unpaid_orders {
        outcomes.push(orders::delete_unpaid_before(ctx, now.minus(age)).await);
    }
    if let Some(age) = keep.audit {
        // Whole days, so that each day has one file.
        let before = Timestamp(now.minus(age).0.div_euclid(DAY_MICROS) * DAY_MICROS);
        outcomes.push(audit_log::delete_before(ctx, before, keep.audit_archive.clone()).await);
    }
    let deleted: u64 = outcomes.iter().filter_map(|outcome| outcome.as_ref().ok()).sum();
    match outcomes.into_iter().find_map(Result::err) {
        Some(error) if deleted == 0 => Err(error),
        _ => Ok(deleted),
    }
}
