//! `admin orders`.

use std::sync::Arc;

use anyhow::Context as _;
use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::output::Field;
use super::{Admin, PageOptions, describe, encode, filters};
use crate::cli::{not_blank, print};
use crate::features::sales::orders::resend_confirmation;
use crate::features::sales::payments::{self, Payment, PaymentMethod};
use crate::kernel::http::{Operator, run_as_operator};
use crate::kernel::types::id::Id;
use crate::kernel::types::money::Money;
use crate::kernel::types::paging::PageRequest;
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
const TICKETS: [Field; 5] = [
    ("ticket", "/serial"),
    ("section", "/section/name"),
    ("status", "/status"),
    ("holder", "/owner/number"),
    ("username", "/owner/username"),
];
const PAYMENTS: [Field; 7] = [
    ("payment", "/number"),
    ("method", "/method"),
    ("amount", "/amount"),
    ("refunded", "/refunded"),
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
        /// Status
        #[arg(long, value_parser = ["Placed", "Cancelled", "Timed Out", "Fulfilled", "Voided", "Returned"])]
        status: Option<String>,
        /// Regular expression for the order's number
        #[arg(long, value_name = "PATTERN", value_parser = not_blank)]
        number: Option<String>,
        #[command(flatten)]
        page: PageOptions,
    },
    /// Show an order with its payments and its tickets
    Show(OrderArgument),
    /// Cancel an order that is not paid completely; partial payments are refunded
    Cancel(OrderArgument),
    /// Return tickets of a fulfilled order: they become void and are refunded
    Refund {
        #[command(flatten)]
        order: OrderArgument,
        /// Serial number of a ticket, as in `orders show`, once for each [default: all tickets that were not used]
        #[arg(long = "ticket", value_name = "SERIAL", value_parser = not_blank)]
        tickets: Vec<String>,
        /// Reason, which is kept
        #[arg(long, value_parser = not_blank)]
        reason: Option<String>,
    },
    /// Make all unused tickets of a fulfilled order void, without a refund
    Void {
        #[command(flatten)]
        order: OrderArgument,
        /// Reason, which is kept
        #[arg(long, value_parser = not_blank)]
        reason: String,
    },
    /// Mail the tickets of a fulfilled order to its customer again
    ResendMail(OrderArgument),
}

#[derive(Debug, Args)]
pub struct OrderArgument {
    /// Number of the order
    #[arg(value_parser = not_blank)]
    number: String,
}

pub async fn run(admin: &Admin, command: OrdersCommand) -> anyhow::Result<()> {
    match command {
        OrdersCommand::Find { customer, status, number, page } => {
            let filters = filters([("customer", customer), ("status", status), ("number", number)]);
            let orders = admin.get(&format!("/orders?sort=date&order=desc&{}{filters}", page.query())).await?;
            admin.output.page(&orders, &COLUMNS)
        }
        OrdersCommand::Show(OrderArgument { number }) => show(admin, &number).await,
        OrdersCommand::Cancel(OrderArgument { number }) => {
            admin.confirm(&format!("cancels the order {number} and refunds what was paid for it"))?;
            refund(admin, &number, "cancellations", None, "was cancelled").await
        }
        OrdersCommand::Refund { order: OrderArgument { number }, tickets, reason } => {
            let what = if tickets.is_empty() { "all unused tickets".to_owned() } else { format!("{} tickets", tickets.len()) };
            admin.confirm(&format!("makes {what} of the order {number} void and refunds them"))?;
            let mut body = json!({});
            if !tickets.is_empty() {
                body["tickets"] = json!(tickets);
            }
            if let Some(reason) = reason {
                body["reason"] = json!(reason);
            }
            refund(admin, &number, "returns", Some(&body), "was changed: its tickets are void").await
        }
        OrdersCommand::Void { order: OrderArgument { number }, reason } => {
            admin.confirm(&format!("makes all unused tickets of the order {number} void without a refund"))?;
            let order = change(admin, &number, "voids", Some(&json!({ "reason": reason }))).await?;
            admin.output.done(&order, &changed(&order, &number, "was voided"))
        }
        OrdersCommand::ResendMail(OrderArgument { number }) => {
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
    // It has all tickets: an order has at most 50.
    let mut history = admin.get(&format!("/orders/{}/history", encode(number))).await?;
    let [mut order, tickets] = ["order", "tickets"].map(|name| history[name].take());
    let payments = payments_of(admin, number).await?;
    let payments = json!({ "total": payments.len(), "entries": payments });
    if admin.output.json {
        order["payments"] = payments["entries"].clone();
        order["tickets"] = tickets["entries"].clone();
        return admin.output.resource(&order, &[]);
    }
    admin.output.resource(&order, &PROPERTIES)?;
    print("")?;
    admin.output.page(&json!({ "entries": order["items"] }), &ITEMS)?;
    for (page, columns) in [(payments, &PAYMENTS[..]), (tickets, &TICKETS[..])] {
        if page["total"] != 0 {
            print("")?;
            admin.output.page(&page, columns)?;
        }
    }
    Ok(())
}

async fn change(admin: &Admin, number: &str, step: &str, body: Option<&Value>) -> anyhow::Result<Value> {
    admin.post(&format!("/orders/{}/{step}", encode(number)), body).await
}

fn changed(order: &Value, number: &str, done: &str) -> String {
    format!("The order {number} {done}. Its status is {}.", order["status"].as_str().unwrap_or_default())
}

/// Changes an order and prints who makes its refunds: the gateway makes those of card payments, and the operator those of external
/// ones.
async fn refund(admin: &Admin, number: &str, step: &str, body: Option<&Value>, done: &str) -> anyhow::Result<()> {
    let currency = admin.operator.app.settings.currency;
    let before = payments_of(admin, number).await?;
    let mut order = change(admin, number, step, body).await?;
    let mut sentence = changed(&order, number, done);
    let (mut by_gateway, mut external, mut refunds) = (Money::ZERO, String::new(), Vec::new());
    let after = payments_of(admin, number).await.with_context(|| format!("{sentence} Its refunds can't be read"))?;
    for payment in after {
        let earlier = before.iter().find(|earlier| earlier.number == payment.number);
        let amount = payment.refunded - earlier.map_or(Money::ZERO, |earlier| earlier.refunded);
        if amount == Money::ZERO {
            continue;
        }
        let Payment { number: payment, method, reference, .. } = payment;
        match method {
            PaymentMethod::Card => by_gateway += amount,
            PaymentMethod::External => {
                let amount = currency.format(amount);
                external += &format!("\n  {amount} of the payment {}, reference {reference}", payment.0);
            }
        }
        refunds.push(json!({ "payment": payment, "method": method, "reference": reference, "amount": amount }));
    }
    if by_gateway > Money::ZERO {
        let by_gateway = currency.format(by_gateway);
        sentence += &format!("\nThe payment gateway refunds {by_gateway}; `refunds list` shows what it has not made yet.");
    }
    if !external.is_empty() {
        sentence += &format!("\nRefund these payments yourself, because they were made outside of the platform:{external}");
    }
    order["refunds"] = refunds.into();
    admin.output.done(&order, &sentence)
}

/// Returns all payments of an order. Declined ones make them many.
async fn payments_of(admin: &Admin, number: &str) -> anyhow::Result<Vec<Payment>> {
    let Operator { app, caller, .. } = &admin.operator;
    let (ctx, order) = (Ctx::immediate(Arc::clone(app)), Id::parse(number).unwrap_or(Id::NONE));
    let mut all = Vec::new();
    for page in 1.. {
        let page = payments::list(&ctx, caller, order, PageRequest::new(page, 100)).await;
        let page = page.map_err(|error| describe(&error.into()))?;
        all.extend(page.entries);
        if all.len() as i64 >= page.total {
            break;
        }
    }
    Ok(all)
}
