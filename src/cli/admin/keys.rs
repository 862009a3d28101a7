//! `admin keys`.

use std::sync::Arc;

use clap::Subcommand;
use serde_json::json;

use super::output::Field;
use super::{Admin, PageOptions, describe};
use crate::cli::key::expiry;
use crate::cli::not_blank;
use crate::features::identity::accounts::Role;
use crate::features::identity::integrations;
use crate::kernel::http::run_as_operator;
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::Id;
use crate::provisioning;
use crate::state::Ctx;

const COLUMNS: [Field; 7] = [
    ("id", "/id"),
    ("name", "/name"),
    ("role", "/role"),
    ("account", "/account"),
    ("created", "/created"),
    ("last used", "/lastUsed"),
    ("expires", "/expires"),
];

#[derive(Debug, Subcommand)]
pub enum KeysCommand {
    /// List the keys of client programs that have not ended, without the keys themselves
    List {
        #[command(flatten)]
        page: PageOptions,
    },
    /// Create a key and print it; it is shown only once
    Create {
        /// Scope of the key
        #[arg(long)]
        role: Role,
        /// Number of the account that the key acts for; a public key acts for none
        #[arg(long, value_name = "NUMBER", value_parser = not_blank)]
        account: Option<String>,
        /// Name of the key, for its purpose
        #[arg(long, value_parser = not_blank)]
        name: String,
        /// End of the key: a day, or a time, in UTC such as `2027-01-31T18:00` [default: none, it is valid until it is ended]
        #[arg(long, value_name = "TIME", value_parser = expiry)]
        expires: Option<Timestamp>,
    },
    /// End a key: requests with it are rejected from now on
    End {
        /// Identifier of the key, as in `keys list`
        #[arg(value_parser = not_blank)]
        id: String,
    },
}

pub async fn run(admin: &Admin, command: KeysCommand) -> anyhow::Result<()> {
    match command {
        KeysCommand::List { page } => {
            let ctx = Ctx::immediate(Arc::clone(&admin.operator.app));
            let keys = integrations::list_keys(&ctx, page.request()).await?;
            admin.output.page(&serde_json::to_value(keys)?, &COLUMNS)
        }
        KeysCommand::Create { role, account, name, expires } => {
            let create =
                |ctx: Ctx| async move { provisioning::issue_key(&ctx, &name, role.into(), account.as_deref(), expires).await };
            let created = run_as_operator(&admin.operator.app, "integration_create", "/integrations".to_owned(), create).await;
            let (id, key) = created.map_err(|error| describe(&error))?;
            admin.output.done(&json!({ "id": id.to_string(), "key": key }), &key)
        }
        KeysCommand::End { id } => {
            let number = Id::parse(&id).unwrap_or(Id::NONE);
            admin.confirm(&format!("ends the key {id}: its program can't send requests any more"))?;
            let end = |ctx: Ctx| async move { integrations::end_key(&ctx, number).await };
            let ended = run_as_operator(&admin.operator.app, "integration_delete", format!("/integrations/{number}"), end).await;
            ended.map_err(|error| describe(&error))?;
            admin.output.done(&json!({ "id": id }), &format!("The key {id} has ended."))
        }
    }
}
