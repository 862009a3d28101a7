//! What the removal of an account means.

use futures::FutureExt;
use futures::future::join_all;

use crate::features::identity::accounts::{self, AccountNumber};
use crate::state::App;
use crate::kernel::auth::Caller;
use crate::kernel::types::id::Id;
use crate::kernel::types::secret;
use crate::kernel::db::{self, Tx, transaction};
use boxoffice_http::error::{Code, Result};
use crate::features::identity::verification_codes;
use crate::features::catalog::hosts;
use crate::features::sales::orders;
use crate::kernel::outbox;
use crate::features::sales::payments;
use crate::features::catalog::preferences;
use crate::features::sales::tickets;
use crate::features::sales::transfers;

/// Removes an account. What was paid for its open orders is given back afterwards, because no transaction waits for the
/// gateway; what the gateway fails to give back now, a job asks it for again.
pub async fn delete(app: &App, caller: &Caller, number: &AccountNumber) -> Result<()> {
    accounts::load(&mut app.db.read().await?, caller, number).await?;
    let nobodys = app.passwords.hash(secret::api_key()).await?;
    let cancelled = transaction!(app.db, |tx| erase(app, tx, caller, number, &nobodys).await)?;
    db::after_commit(app, move |app| give_back(app, cancelled).boxed()).await;
    Ok(())
}

async fn give_back(app: &App, orders: Vec<Id>) {
    join_all(orders.into_iter().map(|order| payments::process_refunds(app, order))).await;
}

/// Gives the orders that were cancelled.
async fn erase(app: &App, tx: &mut Tx, caller: &Caller, number: &AccountNumber, password_hash: &str) -> Result<Vec<Id>> {
    let now = app.clock.now();
    let row = accounts::load(tx, caller, number).await?;
    let row = accounts::lock_unless_last_admin(tx, &row).await?;
    let account = row.id;
    // Before its tickets are looked at: an order that is just being settled is waited for here.
    let cancelled = orders::cancel_all(app, tx, account).await?;
    transfers::cancel_for_account(app, tx, account).await?;
    if tickets::has_upcoming(tx, account, now).await? {
        return Err(Code::AccountHasTickets.into());
    }
    hosts::delete_administrator_everywhere(tx, account).await?;
    preferences::forget(tx, account).await?;
    codes::forget(tx, account).await?;
    outbox::forget(tx, &row.email).await?;
    accounts::erase(tx, account, password_hash, now).await?;
    Ok(cancelled)
}
