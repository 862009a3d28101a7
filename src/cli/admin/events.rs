//! `admin events`.

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::output::Field;
use super::{Admin, PageOptions, encode, filters};
use crate::cli::{not_blank, print};

const COLUMNS: [Field; 6] = [
    ("event", "/self"),
    ("title", "/title"),
    ("status", "/status"),
    ("start", "/start"),
    ("venue", "/venue/name"),
    ("sold", "/popularity"),
];
const PROPERTIES: [Field; 9] = [
    ("event", "/self"),
    ("title", "/title"),
    ("status", "/status"),
    ("public", "/public"),
    ("host", "/host"),
    ("venue", "/venue/name"),
    ("start", "/start"),
    ("end", "/end"),
    ("sold", "/popularity"),
];
const SECTIONS: [Field; 6] = [
    ("section", "/name"),
    ("price", "/price/base"),
    ("capacity", "/capacity"),
    ("sold", "/sold"),
    ("reserved", "/reserved"),
    ("active", "/active"),
];

#[derive(Debug, Subcommand)]
pub enum EventsCommand {
    /// Find events of all hosts
    Find {
        /// Part of the title
        #[arg(long, value_parser = not_blank)]
        title: Option<String>,
        /// Status
        #[arg(long, value_parser = ["Draft", "Under Review", "Listed", "Cancelled"])]
        status: Option<String>,
        /// Identifier or URI of the host
        #[arg(long, value_parser = not_blank)]
        host: Option<String>,
        #[command(flatten)]
        page: PageOptions,
    },
    /// Show an event with its sections
    Show(EventArgument),
    /// Make a listed event a draft again: sales stop, and sold tickets stay valid
    Withdraw(EventArgument),
    /// Cancel a listed event: its open orders are cancelled, and its tickets can be returned but admit no more
    Cancel(EventArgument),
}

#[derive(Debug, Args)]
pub struct EventArgument {
    /// Identifier of the event, the last part of its URI
    #[arg(value_parser = not_blank)]
    event: String,
}

pub async fn run(admin: &Admin, command: EventsCommand) -> anyhow::Result<()> {
    match command {
        EventsCommand::Find { title, status, host, page } => {
            let filters = filters([("title", title), ("status", status), ("host", host)]);
            admin.output.page(&admin.get(&format!("/events?{}{filters}", page.query())).await?, &COLUMNS)
        }
        EventsCommand::Show(EventArgument { event }) => {
            let event = load(admin, &event).await?;
            admin.output.resource(&event, &PROPERTIES)?;
            if admin.output.json {
                return Ok(());
            }
            print("")?;
            admin.output.page(&json!({ "entries": event["sections"] }), &SECTIONS)
        }
        EventsCommand::Withdraw(EventArgument { event }) => {
            let title = title(&load(admin, &event).await?);
            admin.confirm(&format!("stops the sale of {title}"))?;
            let changed = admin.post(&format!("/events/{}/withdrawals", identifier(&event)), None).await?;
            admin.output.done(&changed, &format!("{title} is a draft now."))
        }
        EventsCommand::Cancel(EventArgument { event }) => {
            let title = title(&load(admin, &event).await?);
            admin.confirm(&format!("cancels {title} for good, and its open orders"))?;
            let changed = admin.post(&format!("/events/{}/cancellations", identifier(&event)), None).await?;
            admin.output.done(&changed, &format!("{title} is cancelled."))
        }
    }
}

async fn load(admin: &Admin, event: &str) -> anyhow::Result<Value> {
    admin.get(&format!("/events/{}", identifier(event))).await
}

/// Returns the identifier of an event, of which the operator may have given the URI.
fn identifier(event: &str) -> String {
    encode(event.rsplit('/').next().unwrap_or_default())
}

fn title(event: &Value) -> String {
    format!("the event \"{}\"", event["title"].as_str().unwrap_or_default())
}
