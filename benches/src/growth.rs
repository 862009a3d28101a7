//! Growth: the time of each operation in a database where one event, host and account have very many rows, beside a small one.

use std::io::{Write, stdout};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use bytes::Bytes;
use clap::Args;
use http::Method;
use serde_json::{Value, json};

use crate::load::{ClientConnection, LoadRequest};
use crate::server::{self, ServerOptions};
use crate::skewed_database::{Sizes, SkewedDatabase, order, serial};

/// The largest ratio that isn't marked.
const MAX_RATIO: f64 = 1.3;
/// The rows of the small database: each list fills a page.
const SMALL: Sizes = Sizes { tickets: 400, events: 30, transfers: 30, modifiers: 30 };

/// Options of the growth measurement.
#[derive(Debug, Args)]
pub struct GrowthOptions {
    #[command(flatten)]
    server: ServerOptions,
    /// Orders and tickets of one account for one event, whose section has 1,000,000 places
    #[arg(long, default_value_t = 200_000, value_parser = clap::value_parser!(i64).range(1000..=900_000))]
    tickets: i64,
    /// Events of one host
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(i64).range(0..=1_000_000))]
    events: i64,
    /// Transfers of one account
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(i64).range(0..=1_000_000))]
    transfers: i64,
    /// Price modifiers of one section
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(i64).range(0..=10_000))]
    modifiers: i64,
    /// Requests per operation and database; the median counts
    #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u16).range(1..=100))]
    repetitions: u16,
}

/// Results of an operation in one database.
#[derive(Debug, Default, Clone)]
struct Samples {
    durations: Vec<Duration>,
    /// Size of the last response.
    bytes: usize,
}

impl Samples {
    fn median(&self) -> f64 {
        let mut durations = self.durations.clone();
        durations.sort();
        durations.get(durations.len() / 2).map_or(0.0, Duration::as_secs_f64) * 1000.0
    }
}

/// A database and the results of the operations in it, in the order of their first request.
struct Measured {
    database: SkewedDatabase,
    connection: ClientConnection,
    operations: Vec<(&'static str, Samples)>,
}

/// Measures all operations and prints a table for each database.
///
/// # Errors
/// Returns an error if a server doesn't start or rejects a request.
pub async fn run(options: &GrowthOptions) -> anyhow::Result<()> {
    let program = server::path(options.server.program.as_deref())?;
    let GrowthOptions { tickets, events, transfers, modifiers, repetitions, .. } = *options;
    for kind in &options.server.databases {
        let mut databases = Vec::new();
        for sizes in [SMALL, Sizes { tickets, events, transfers, modifiers }] {
            databases.push(SkewedDatabase::create(&program, *kind, &options.server.place, sizes, repetitions.into()).await?);
        }
        let mut measured = Vec::new();
        // Once both databases are complete, because a server closes idle connections.
        for database in databases {
            let connection = ClientConnection::open(database.server.address).await?;
            measured.push(Measured { database, connection, operations: Vec::new() });
        }
        // The databases take turns, because the machine's speed varies.
        for repetition in 0..usize::from(repetitions) {
            for measured in &mut measured {
                measured.read_all().await?;
                measured.write_all(repetition).await?;
            }
        }
        let [small, large] = measured.as_slice() else { bail!("there are two databases") };
        writeln!(stdout(), "{kind:?}\noperation                        small ms  large ms  ratio\n{}", "-".repeat(57))?;
        for ((name, small), (_, large)) in small.operations.iter().zip(&large.operations) {
            let ratio = large.median() / small.median();
            let mark = if ratio <= MAX_RATIO {
                ""
            } else if large.bytes as f64 > small.bytes as f64 * MAX_RATIO {
                "  * with its response"
            } else {
                "  *"
            };
            writeln!(stdout(), "{name:32} {:8.2}  {:8.2}  {ratio:5.2}{mark}", small.median(), large.median())?;
        }
    }
    Ok(())
}

impl Measured {
    /// Sends a request, records its duration and returns the response.
    async fn send(
        &mut self,
        name: &'static str,
        key: &Arc<str>,
        method: Method,
        path: &str,
        body: &Value,
    ) -> anyhow::Result<Value> {
        let body = if body.is_null() { Bytes::new() } else { body.to_string().into() };
        let request = LoadRequest { method, path: format!("/v3{path}"), key: Arc::clone(key), body };
        let started = Instant::now();
        let (status, response) = self.connection.send(&request).await?;
        let duration = started.elapsed();
        if !status.is_success() {
            bail!("{name}: {} {path} returned {status}: {}", request.method, String::from_utf8_lossy(&response));
        }
        let index = self.operations.iter().position(|(operation, _)| *operation == name).unwrap_or_else(|| {
            self.operations.push((name, Samples::default()));
            self.operations.len() - 1
        });
        let (_, samples) = self.operations.get_mut(index).context("the operation was added")?;
        samples.durations.push(duration);
        samples.bytes = response.len();
        Ok(serde_json::from_slice(&response).unwrap_or_default())
    }

    /// Reads everything that can grow with the event, the host or the account.
    async fn read_all(&mut self) -> anyhow::Result<()> {
        let SkewedDatabase { staff_key: staff, holder, event, host, section, admitted, .. } = &self.database;
        let (own, account, order, ticket) =
            (&holder.key, format!("/accounts/{}", holder.number), order(*admitted), order(*admitted));
        let reads = [
            ("account_ticket_list", own, format!("{account}/tickets")),
            ("account_order_list", own, format!("{account}/orders")),
            ("account_order_list, status", own, format!("{account}/orders?status=Placed")),
            ("account_transfer_list", own, format!("{account}/transfers")),
            ("account_transfer_list, sent", own, format!("{account}/transfers?direction=sent")),
            ("account_event_list", own, format!("{account}/events")),
            ("account_get", own, account.clone()),
            ("order_get", own, format!("/orders/{order}")),
            ("order_payment_list", own, format!("/orders/{order}/payments")),
            ("ticket_get", own, format!("/tickets/{ticket}")),
            ("event_get", own, format!("/events/{event}")),
            ("published_event_list", own, "/published-events".to_owned()),
            ("published_event_list, sorted", own, "/published-events?sort=start&order=desc".to_owned()),
            ("event_list", staff, "/events".to_owned()),
            ("event_list, customer", own, "/events".to_owned()),
            ("host_event_list", staff, format!("/hosts/{host}/events")),
            ("host_order_list", staff, format!("/hosts/{host}/orders")),
            ("host_transaction_list", staff, format!("/hosts/{host}/transactions")),
            ("host_statistics_get", staff, format!("/hosts/{host}/statistics")),
            ("event_order_list", staff, format!("/events/{event}/orders")),
            ("event_ticket_list", staff, format!("/events/{event}/tickets")),
            ("event_ticket_list, serial", staff, format!("/events/{event}/tickets?serial={}", serial(*admitted))),
            // After all changes, so that the responses are alike.
            ("event_ticket_list, changes", staff, format!("/events/{event}/tickets?modified_since=2089-01-01T00:00")),
            ("event_gate_list_get, changes", staff, format!("/events/{event}/gate-list?modified_since=2089-01-01T00:00")),
            ("event_statistics_get", staff, format!("/events/{event}/statistics")),
            ("event_sales_get", staff, format!("/events/{event}/sales")),
            ("event_sales_day_list", staff, format!("/events/{event}/sales/days")),
            ("admission_list", staff, format!("/events/{event}/admissions")),
            ("section_get", own, format!("/sections/{section}")),
            ("section_modifier_list", staff, format!("/events/{event}/sections/{section}/modifiers")),
            ("order_list", staff, "/orders".to_owned()),
            ("transaction_list", staff, "/transactions".to_owned()),
            ("account_list", staff, "/accounts".to_owned()),
            ("host_list", staff, "/hosts".to_owned()),
            ("submission_list", staff, "/submissions".to_owned()),
        ];
        let reads = reads.map(|(name, key, path)| (name, Arc::clone(key), path));
        for (name, key, path) in reads {
            self.send(name, &key, Method::GET, &path, &Value::Null).await?;
        }
        Ok(())
    }

    /// Changes rows of the event, the host and the account.
    async fn write_all(&mut self, repetition: usize) -> anyhow::Result<()> {
        let SkewedDatabase { staff_key, holder, recipient, buyers, event, section, admitted, .. } = &self.database;
        let (staff, holder, recipient, event) = (Arc::clone(staff_key), holder.clone(), recipient.number.clone(), event.clone());
        let buyer = Arc::clone(&buyers.get(repetition).context("there is a buyer for each repetition")?.key);
        let (section, ticket) = (format!("/events/{event}/sections/{section}"), serial(admitted + repetition as i64));
        let uri = |response: &Value| response["self"].as_str().map(str::to_owned).context("the response has a URI");
        let items = json!({ "items": { section.as_str(): 1 } });

        let order = uri(&self.send("order_create", &buyer, Method::POST, "/orders", &items).await?)?;
        let card = json!({ "method": "card", "token": "tok_approve" });
        self.send("order_payment_create", &buyer, Method::POST, &format!("{order}/payments"), &card).await?;
        let order = uri(&self.send("order_create", &holder.key, Method::POST, "/orders", &items).await?)?;
        self.send("order_cancellation_create", &holder.key, Method::POST, &format!("{order}/cancellations"), &Value::Null)
            .await?;
        let offer = json!({ "recipient": recipient, "tickets": [ticket] });
        let transfer = uri(&self.send("transfer_create", &holder.key, Method::POST, "/transfers", &offer).await?)?;
        self.send("transfer_delete", &holder.key, Method::DELETE, &transfer, &Value::Null).await?;
        let scan = json!({ "serials": [ticket], "device": "Gate A" });
        let admissions = format!("/events/{event}/admissions");
        let admitted = self.send("admission_create", &staff, Method::POST, &admissions, &scan).await?;
        let admission = uri(admitted.get(0).context("a ticket was admitted")?)?;
        self.send("admission_delete", &staff, Method::DELETE, &admission, &Value::Null).await?;
        let description = json!({ "description": format!("Rows {repetition} to 20") });
        self.send("section_update", &staff, Method::PUT, &section, &description).await?;
        Ok(())
    }
}
