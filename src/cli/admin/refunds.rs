//! `admin refunds`.

use clap::Subcommand;
use serde_json::{Value, json};

use super::output::Field;
use super::{Admin, PageOptions};
use crate::bootstrap::plain;
use crate::features::sales::payments::{self, WaitingRefundRow};

const COLUMNS: [Field; 6] =
    [("id", "/id"), ("type", "/type"), ("payment", "/payment"), ("order", "/order"), ("amount", "/amount"), ("since", "/since")];

#[derive(Debug, Subcommand)]
pub enum RefundsCommand {
    /// List refunds, and cancellations of charges with an unknown result, that the payment gateway has not made
    List {
        #[command(flatten)]
        page: PageOptions,
    },
}

pub async fn run(admin: &Admin, command: RefundsCommand) -> anyhow::Result<()> {
    match command {
        RefundsCommand::List { page } => {
            let mut tx = admin.operator.app.db.read().await.map_err(plain)?;
            let refunds = payments::list_unsettled(&mut tx, page.request()).await.map_err(plain)?;
            let entries: Vec<Value> = refunds.rows.iter().map(view).collect();
            admin.output.page(&json!({ "total": refunds.total, "entries": entries }), &COLUMNS)
        }
    }
}

fn view(refund: &WaitingRefundRow) -> Value {
    json!({
        "id": refund.id.to_string(),
        "type": if refund.is_refund { "refund" } else { "cancellation" },
        "payment": refund.payment_id.to_string(),
        "order": refund.order_id.to_string(),
        "amount": refund.amount,
        "since": refund.since.format_rfc3339(),
    })
}
