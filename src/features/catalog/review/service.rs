//! Operations on submissions. They are for platform administrators, as checked by the contract's scopes (`x-scopes`).

use anyhow::Context;
use boxoffice_http::error::{Error, Result, reject_if};
use serde_json::json;

use super::model::{
    Content, Decision, Submission, SubmissionFilter, SubmissionId, SubmissionRow, SubmissionStatus, SubmissionType,
};
use super::store;
use crate::features::catalog::advertisements;
use crate::features::catalog::events;
use crate::features::catalog::hosts;
use crate::features::catalog::venues;
use crate::features::codes;
use crate::features::identity::accounts;
use crate::kernel::db::{Reader, Tx, transaction};
use crate::kernel::outbox::{self, Mail, MailTemplate, Recipient};
use crate::kernel::types::id::Id;
use crate::kernel::types::paging::Page;
use crate::state::{App, Ctx};

/// Submits content for review.
///
/// # Errors
/// A unique constraint violation if a submission of this content is pending already.
pub async fn submit(app: &App, tx: &mut Tx, kind: SubmissionType, id: Id, submitter: Option<Id>) -> Result<Submission> {
    let content = Content { kind, id };
    store::insert(tx, app.clock.next_id(), content, app.clock.now(), submitter).await?;
    let row = store::find(tx, content).await?;
    Ok(row.context("what was inserted is there")?.into())
}

pub async fn list(ctx: &Ctx, filter: &SubmissionFilter) -> Result<Page<Submission>> {
    Ok(store::list(&mut ctx.unit.read().await?, filter).await?.map(Submission::from))
}

pub async fn get(ctx: &Ctx, id: &SubmissionId) -> Result<Submission> {
    Ok(load(&mut ctx.unit.read().await?, id).await?.into())
}

pub async fn decide(ctx: &Ctx, id: &SubmissionId, decision: &Decision) -> Result<Submission> {
    transaction!(ctx.unit, |tx| decide_in_tx(&ctx.app, tx, id, decision).await)
}

async fn decide_in_tx(app: &App, tx: &mut Tx, id: &SubmissionId, decision: &Decision) -> Result<Submission> {
    let row = load(tx, id).await?;
    lock_content(tx, &row).await?;
    let status = if decision.approved { SubmissionStatus::Approved } else { SubmissionStatus::Rejected };
    let reason = decision.reason.clone().unwrap_or_default();
    // A venue can't be submitted again, so a rejected one can be approved later.
    let is_revision =
        (row.kind, row.status, status) == (SubmissionType::Venue, SubmissionStatus::Rejected, SubmissionStatus::Approved);
    let from = if is_revision { SubmissionStatus::Rejected } else { SubmissionStatus::Pending };
    reject_if(!store::decide(tx, row.id, from, status, reason.clone()).await?, codes::SUBMISSION_DECIDED)?;
    match row.kind {
        SubmissionType::Event => events::apply_decision(tx, row.content_id, decision.approved, app.clock.now()).await?,
        SubmissionType::Venue if decision.approved => venues::approve(tx, row.content_id).await?,
        // A rejected venue stays visible only to its creator and platform administrators.
        SubmissionType::Venue => {}
        SubmissionType::Advertisement => advertisements::decide(tx, row.content_id, decision.approved, app.clock.now()).await?,
    }
    let row = SubmissionRow { status, reason, ..row };
    notify(app, tx, &row).await?;
    Ok(row.into())
}

/// Locks the content of a submission. Its removal locks the content first, and then removes the submission.
///
/// # Errors
/// [`Error::NOT_FOUND`] if the content has been removed.
async fn lock_content(tx: &mut Tx, row: &SubmissionRow) -> Result<()> {
    let exists = match row.kind {
        SubmissionType::Event => events::lock(tx, row.content_id).await?.is_some(),
        SubmissionType::Venue => venues::lock(tx, row.content_id).await?,
        SubmissionType::Advertisement => advertisements::lock(tx, row.content_id, None).await.map(|_| true)?,
    };
    if exists { Ok(()) } else { Err(Error::NOT_FOUND) }
}

/// Mails the decision and its reason to the administrators of the host, or to the submitter of a venue. They may not read submissions.
async fn notify(app: &App, tx: &mut Tx, row: &SubmissionRow) -> Result<()> {
    let content = Content { kind: row.kind, id: row.content_id };
    let recipients = match (store::host(tx, content).await?, &row.submitter) {
        (Some(host), _) => hosts::administrator_ids(tx, host).await?,
        (None, Some(number)) => accounts::id_of(tx, number).await?.into_iter().collect(),
        (None, None) => Vec::new(),
    };
    let title = store::title(tx, content).await?.unwrap_or_default();
    let approved = row.status == SubmissionStatus::Approved;
    let mails = recipients.into_iter().map(|account| {
        let values = json!({
            "kind": row.kind.noun(), "title": title, "path": content.uri(), "approved": approved, "reason": row.reason,
        });
        Mail { recipient: Recipient::Account(account), template: MailTemplate::ReviewDecision, values }
    });
    outbox::push(app, tx, mails.collect::<Vec<_>>()).await
}

/// Returns the latest submission with this identifier.
async fn load(reader: &mut Reader, id: &SubmissionId) -> Result<SubmissionRow> {
    let content = Content::parse(&id.0).ok_or(Error::NOT_FOUND)?;
    store::find(reader, content).await?.ok_or(Error::NOT_FOUND)
}
