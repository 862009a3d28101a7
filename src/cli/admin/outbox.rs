//! `admin outbox`.

use std::sync::Arc;

use anyhow::{Context as _, bail};
use boxoffice_openapi::counted;
use clap::Subcommand;
use serde_json::{Value, json};

use super::output::Field;
use super::{Admin, PageOptions, describe};
use crate::kernel::http::run_as_operator;
use crate::kernel::outbox::{self, QueuedMail};
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::Id;
use crate::state::Ctx;

const PROPERTIES: &[Field] = &[
    ("id", "/id"),
    ("state", "/state"),
    ("key", "/key"),
    ("recipient", "/recipient"),
    ("template", "/template"),
    ("created", "/created"),
    ("attempts", "/attempts"),
    ("next attempt", "/due"),
    ("given up", "/failed"),
    ("useless after", "/expires"),
];
/// The columns of the list: the first of the properties.
const COLUMNS: &[Field] = PROPERTIES.split_at(8).0;

#[derive(Debug, Subcommand)]
pub enum OutboxCommand {
    /// List mails that wait to be sent or were given up, the newest first
    List {
        /// Only mails that were given up
        #[arg(long)]
        failed: bool,
        #[command(flatten)]
        page: PageOptions,
    },
    /// Show a mail without its text, which may contain a code
    Show {
        /// Identifier of the mail
        id: String,
    },
    /// Have a server send a mail that waits for its next attempt now
    Retry {
        /// Identifier of the mail
        #[arg(required_unless_present = "all")]
        id: Option<String>,
        /// All mails that wait for a later attempt, for example after an outage of the mail server
        #[arg(long, conflicts_with = "id")]
        all: bool,
    },
    /// Delete a mail that waits or was given up; it is not sent
    Drop {
        /// Identifier of the mail
        id: String,
    },
}

pub async fn run(admin: &Admin, command: OutboxCommand) -> anyhow::Result<()> {
    match command {
        OutboxCommand::List { failed, page } => {
            let mut reader = admin.operator.app.db.read().await?;
            let mails = outbox::list(&mut reader, failed, page.request()).await?;
            let entries: Vec<Value> = mails.rows.iter().map(|mail| view(admin, mail)).collect();
            admin.output.page(&json!({ "total": mails.total, "entries": entries }), COLUMNS)
        }
        OutboxCommand::Show { id } => admin.output.resource(&view(admin, &load(admin, &id).await?), PROPERTIES),
        OutboxCommand::Retry { id: None, .. } => {
            let app = Arc::clone(&admin.operator.app);
            let retry = |ctx: Ctx| async move { outbox::make_all_due(&app, &ctx.unit).await };
            let retried = run_as_operator(&admin.operator.app, "outbox_retry", "/outbox".to_owned(), retry).await;
            let count = retried.map_err(|error| describe(&error))?;
            let mails = counted(count, "mail is", "mails are");
            let text = format!("{mails} due. Servers with their keys send them, at most 100 per second each.");
            admin.output.done(&json!({ "mails": count }), &text)
        }
        OutboxCommand::Retry { id: Some(id), .. } => {
            let mail = load(admin, &id).await?;
            if mail.failed.is_some() {
                bail!(
                    "the mail {id} was given up, and its text was deleted then. Have a new one sent: a code with `accounts \
                     reset-password`, tickets with `orders resend-mail`"
                );
            }
            let sender = if has_other_key(admin, &mail) { "A server with the key of this mail" } else { "A running server" };
            let now = admin.operator.app.clock.now();
            let retry = |ctx: Ctx| async move { outbox::make_due(&ctx.unit, mail.id, now).await };
            let retried = run_as_operator(&admin.operator.app, "outbox_retry", format!("/outbox/{id}"), retry).await;
            retried.map_err(|error| describe(&error))?;
            admin.output.done(&json!({ "id": id }), &format!("The mail {id} is due. {sender} sends it within seconds."))
        }
        OutboxCommand::Drop { id } => {
            let mail = load(admin, &id).await?;
            admin.confirm(&format!("deletes the mail \"{}\" to {} without sending it", mail.template, mail.recipient))?;
            let discard = |ctx: Ctx| async move { outbox::discard(&ctx.unit, mail.id).await };
            let dropped = run_as_operator(&admin.operator.app, "outbox_delete", format!("/outbox/{id}"), discard).await;
            dropped.map_err(|error| describe(&error))?;
            admin.output.done(&json!({ "id": id }), &format!("The mail {id} was deleted."))
        }
    }
}

async fn load(admin: &Admin, id: &str) -> anyhow::Result<QueuedMail> {
    let mut reader = admin.operator.app.db.read().await?;
    let mail = outbox::find(&mut reader, Id::parse(id).unwrap_or(Id::NONE)).await?;
    mail.with_context(|| format!("no mail with the identifier {id} waits or was given up; a mail that was sent is deleted"))
}

/// Returns whether the key of this command, which is that of the servers with the same settings, can't decrypt a waiting mail.
fn has_other_key(admin: &Admin, mail: &QueuedMail) -> bool {
    let key_ids = &admin.operator.app.mail_cipher.key_ids;
    mail.failed.is_none() && mail.key_id.as_deref().is_some_and(|key_id| key_ids.is_other(key_id))
}

fn view(admin: &Admin, mail: &QueuedMail) -> Value {
    let time = |time: Option<Timestamp>| time.map(Timestamp::format_rfc3339);
    json!({
        "id": mail.id.to_string(),
        "state": if mail.failed.is_some() { "given up" } else { "waiting" },
        "key": if has_other_key(admin, mail) { "encrypted with another key" } else { "" },
        "recipient": mail.recipient,
        "template": mail.template,
        "created": mail.created.format_rfc3339(),
        "attempts": mail.attempts,
        "due": time(mail.due),
        "failed": time(mail.failed),
        "expires": time(mail.expires),
    })
}
