//! Documents of orders.

use boxoffice_http::error::{Error, Result};

use super::model::{DocumentTicket, DocumentTicketRow};
use super::pdf::{self, DocumentStyle};
use super::store;
use crate::features::codes;
use crate::features::identity::accounts::{self, AccountRow};
use crate::features::sales::orders;
use crate::features::sales::tickets;
use crate::kernel::auth::Caller;
use crate::kernel::types::id::Id;
use crate::state::{App, Ctx};

/// Returns the PDF of the Issued tickets of an order that still belong to its customer.
///
/// # Errors
/// [`Error::NOT_FOUND`], [`Error::FORBIDDEN`] for callers other than the customer and platform administrators, and
/// [`codes::TICKET_NOT_ISSUED`] if there are no such tickets. Also like
/// [`AccountWorkerPool::run`](crate::kernel::worker_pool::AccountWorkerPool::run).
pub async fn of_order(ctx: &Ctx, caller: &Caller, order: Id) -> Result<Vec<u8>> {
    let mut reader = ctx.unit.read().await?;
    let order = orders::find(&mut reader, order).await?.ok_or(Error::NOT_FOUND)?;
    caller.require_account(order.account_id)?;
    let rows = store::of_orders(&mut reader, [order.id]).await?;
    if rows.is_empty() {
        return Err(codes::TICKET_NOT_ISSUED.with_message("None of this order's tickets is Issued and belongs to its customer."));
    }
    let owner = accounts::find(&mut reader, order.account_id).await?.ok_or(Error::NOT_FOUND)?;
    // No connection waits for the PDF.
    drop(reader);
    let style = style(&ctx.app, &owner);
    let tickets = rows.into_iter().map(|row| ticket(&ctx.app, row, &owner)).collect::<Result<Vec<DocumentTicket>>>()?;
    Ok(ctx.app.ticket_workers.documents.run(caller.account, move || pdf::render(&tickets, &style)).await??)
}

/// Returns the style of a document for an account.
pub fn style(app: &App, owner: &AccountRow) -> DocumentStyle {
    let mail = &app.settings.mail;
    let language = owner.language.unwrap_or(mail.language);
    DocumentStyle { language, time_zone: mail.time_zone, platform: app.mail_templates.platform().to_owned() }
}

/// Returns the page of a ticket, with its signed code.
///
/// # Errors
/// Returns an error if the ticket has no valid serial number, which the database must not contain.
pub fn ticket(app: &App, row: DocumentTicketRow, owner: &AccountRow) -> Result<DocumentTicket> {
    Ok(DocumentTicket { code: tickets::sign_code(&app.ticket_keys.own, &row.ticket)?, row, owner: full_name(owner) })
}

/// Returns the first and last name of an account, or its username if it has neither.
pub fn full_name(account: &AccountRow) -> String {
    let name = format!("{} {}", account.first_name, account.last_name);
    if name.trim().is_empty() { account.username.clone() } else { name.trim().to_owned() }
}
