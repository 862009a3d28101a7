//! `admin orders`.

use clap::Subcommand;
use serde_json::{Value, json};

use super::output::Field;
use super::{Admin, PageOptions, describe, encode, filters};
use crate::cli::{not_blank, print};
use crate::features::sales::orders::resend_confirmation;
use crate::kernel::http::run_as_operator;
use crate::kernel::types::id::Id;
use crate::state::Ctx;

const COLUMNS: [Field; 7] = [
    ("number", "/number"),
    ("status", "/status"),
    ("placed", "/placed"),
    ("customer", "/customer/number"),
    ("username", "/customer/username"),
    ("total", "/total"),
    ("refunded", "/refunded"),
];
const PROPERTIES: [Field; 10] = [
    ("number", "/number"),
    ("status", "/status"),
    ("placed", "/placed"),
    ("reserved until", "/expires"),
    ("customer", "/customer/number"),
    ("e-mail", "/customer/email"),
    ("subtotal", "/subtotal"),
    ("fees", "/fees"),
    ("total", "/total"),
    ("refunded", "/refunded"),
];
const ITEMS: [Field; 3] = [("section", "/section"), ("quantity", "/quantity"), ("unit price", "/unitPrice")];
const PAYMENTS: [Field; 6] = [
    ("payment", "/number"),
    ("method", "/method"),
    ("amount", "/amount"),
    ("status", "/status"),
    ("reference", "/reference"),
    ("placed", "/placed"),
];

#[derive(Debug, Subcommand)]
pub enum OrdersCommand {
    /// Find orders, the newest first
    Find {
        /// Number of the customer's account
        #[arg(long, value_name = "NUMBER", value_parser = not_blank)]
        customer: Option<String>,
        /// Status: Placed, Cancelled, "Timed Out", Fulfilled, Voided or Returned
        #[arg(long, value_parser = not_blank)]
        status: Option<String>,
        /// Regular expression for the order's number
        #[arg(long, value_name = "PATTERN", value_parser = not_blank)]
        number: Option<String>,
        #[command(flatten)]
        page: PageOptions,
    },
    /// Show an order with its payments
    Show {
        /// Number of the order
        #[arg(value_parser = not_blank)]
        number: String,
    },
    /// Cancel an order that is not paid completely; partial payments are refunded
    Cancel {
        /// Number of the order
        #[arg(value_parser = not_blank)]
        number: String,
    },
    /// Return tickets of a fulfilled order: they become void and are refunded
    Refund {
        /// Number of the order
        #[arg(value_parser = not_blank)]
        number: String,
        /// Serial number of a ticket, once for each [default: all tickets that were not used]
        #[arg(long = "ticket", value_name = "SERIAL", value_parser = not_blank)]
        tickets: Vec<String>,
        /// Reason, which is kept
        #[arg(long, value_parser = not_blank)]
        reason: Option<String>,
    },
    /// Make all unused tickets of a fulfilled order void, without a refund
    Void {
        /// Number of the order
        #[arg(value_parser = not_blank)]
        number: String,
        /// Reason, which is kept
        #[arg(long, value_parser = not_blank)]
        reason: String,
    },
    /// Mail the tickets of a fulfilled order to its customer again
    ResendMail {
        /// Number of the order
        #[arg(value_parser = not_blank)]
        number: String,
    },
}

pub async fn run(admin: &Admin, command: OrdersCommand) -> anyhow::Result<()> {
    match command {
        OrdersCommand::Find { customer, status, number, page } => {
            let filters = filters([("customer", customer), ("status", status), ("number", number)]);
            let orders = admin.get(&format!("/orders?sort=date&order=desc&{}{filters}", page.query())).await?;
            admin.output.page(&orders, &COLUMNS)
        }
        OrdersCommand::Show { number } => show(admin, &number).await,
        OrdersCommand::Cancel { number } => {
            admin.confirm(&format!("cancels the order {number} and refunds what was paid for it"))?;
            change(admin, &number, "cancellations", None, "was cancelled").await
        }
        OrdersCommand::Refund { number, tickets, reason } => {
            let what = if tickets.is_empty() { "all unused tickets".to_owned() } else { format!("{} tickets", tickets.len()) };
            admin.confirm(&format!("makes {what} of the order {number} void and refunds them"))?;
            let mut body = json!({});
            if !tickets.is_empty() {
                body["tickets"] = json!(tickets);
            }
            if let Some(reason) = reason {
                body["reason"] = json!(reason);
            }
            change(admin, &number, "returns", Some(&body), "was changed: its tickets are void, and the refund is on its way")
                .await
        }
        OrdersCommand::Void { number, reason } => {
            admin.confirm(&format!("makes all unused tickets of the order {number} void without a refund"))?;
            change(admin, &number, "voids", Some(&json!({ "reason": reason })), "was voided").await
        }
        OrdersCommand::ResendMail { number } => {
            let id = Id::parse(&number).unwrap_or(Id::NONE);
            let resend = |ctx: Ctx| async move { resend_confirmation(&ctx, id).await };
            let resent = run_as_operator(&admin.operator.app, "order_mail_resend", format!("/orders/{number}"), resend).await;
            resent.map_err(|error| describe(&error))?;
            let done =
                format!("The tickets of the order {number} are mailed again. A running server sends the mail within seconds.");
            admin.output.done(&json!({ "number": number }), &done)
        }
    }
}

async fn show(admin: &Admin, number: &str) -> anyhow::Result<()> {
    let mut order = admin.get(&format!("/orders/{}", encode(number))).await?;
    let payments = admin.get(&format!("/orders/{}/payments?records=100", encode(number))).await?;
    if admin.output.json {
        order["payments"] = payments["entries"].clone();
        return admin.output.resource(&order, &[]);
    }
    admin.output.resource(&order, &PROPERTIES)?;
    print("")?;
    admin.output.page(&json!({ "entries": order["items"] }), &ITEMS)?;
    if payments["total"] != 0 {
        print("")?;
        admin.output.page(&payments, &PAYMENTS)?;
    }
    Ok(())
}

async fn change(admin: &Admin, number: &str, step: &str, body: Option<&Value>, done: &str) -> anyhow::Result<()> {
    let path = format!("/orders/{}/{step}", encode(number));
    let order = admin.post(&path, body).await?;
    admin
        .output
        .done(&order, &format!("The order {number} {done}. Its status is {}.", order["status"].as_str().unwrap_or_default()))
}
