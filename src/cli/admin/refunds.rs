//! `admin refunds`.

use anyhow::Context as _;
use clap::Subcommand;
use serde_json::{Value, json};

use super::output::Field;
use super::{Admin, PageOptions, describe};
use crate::features::sales::payments::{self, OpenRefundRow};
use crate::kernel::http::run_as_operator;
use crate::kernel::types::id::Id;
use crate::state::Ctx;

const COLUMNS: [Field; 6] =
    [("id", "/id"), ("type", "/type"), ("payment", "/payment"), ("order", "/order"), ("amount", "/amount"), ("since", "/since")];

#[derive(Debug, Subcommand)]
pub enum RefundsCommand {
    /// List refunds, and cancellations of charges with an unknown result, that the payment gateway has not made
    List {
        #[command(flatten)]
        page: PageOptions,
    },
    /// Record that a refund or a cancellation was made by other means, so that the payment gateway is not asked again
    Settle {
        /// Identifier of the refund or the cancellation
        id: String,
    },
}

pub async fn run(admin: &Admin, command: RefundsCommand) -> anyhow::Result<()> {
    match command {
        RefundsCommand::List { page } => {
            let mut reader = admin.operator.app.db.read().await?;
            let refunds = payments::list_open_refunds(&mut reader, page.request()).await?;
            let entries: Vec<Value> = refunds.rows.iter().map(view).collect();
            admin.output.page(&json!({ "total": refunds.total, "entries": entries }), &COLUMNS)
        }
        RefundsCommand::Settle { id } => settle(admin, &id).await,
    }
}

async fn settle(admin: &Admin, id: &str) -> anyhow::Result<()> {
    let mut reader = admin.operator.app.db.read().await?;
    let refund = payments::find_open_refund(&mut reader, Id::parse(id).unwrap_or(Id::NONE)).await?;
    drop(reader);
    let refund = refund
        .with_context(|| format!("no refund or cancellation with the identifier {id} waits; `refunds list` has those that do"))?;
    let OpenRefundRow { payment_id, amount, .. } = refund;
    let amount = admin.operator.app.settings.currency.format(amount);
    let what = format!("{} of {amount} of the payment {payment_id}", kind(&refund));
    admin.confirm(&format!("records the {what} as made by other means. Nothing is sent to the payment gateway, now or later"))?;
    let settle = |ctx: Ctx| async move { payments::settle(&ctx, refund.id).await };
    let settled = run_as_operator(&admin.operator.app, "refund_settle", format!("/refunds/{id}"), settle).await;
    settled.map_err(|error| describe(&error))?;
    admin.output.done(&json!({ "id": id }), &format!("The {what} is recorded as made."))
}

fn kind(refund: &OpenRefundRow) -> &'static str {
    if refund.is_refund { "refund" } else { "cancellation" }
}

fn view(refund: &OpenRefundRow) -> Value {
    json!({
        "id": refund.id.to_string(),
        "type": kind(refund),
        "payment": refund.payment_id.to_string(),
        "order": refund.order_id.to_string(),
        "amount": refund.amount,
        "since": refund.since.format_rfc3339(),
    })
}
