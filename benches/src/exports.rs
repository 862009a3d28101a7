//! Exports: the times of a large export, the server's memory, and the latency of other clients meanwhile.

use std::io::{Write, stdout};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use bytes::Bytes;
use clap::Args;
use futures::future::try_join;
use http::Method;
use serde_json::Value;
use tokio::time::Instant;

use crate::database::Database;
use crate::fixtures::{EVENTS, Fixtures};
use crate::load::{ClientConnection, Load, LoadRequest, Measurement, run_load, send_once};
use crate::scenario::Scenario;
use crate::server::{self, Server, ServerOptions};

/// Options of the measurement of exports.
#[derive(Debug, Args)]
pub struct ExportOptions {
    #[command(flatten)]
    server: ServerOptions,
    /// Paid orders of one host
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(i64).range(1000..=10_000_000))]
    orders: i64,
    /// Requests of other clients per second, each for an event
    #[arg(long, default_value_t = 500.0, value_parser = crate::parse_rate)]
    rate: f64,
    /// Seconds to measure the other clients, without an export and during exports
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    seconds: u64,
}

/// A complete response.
struct Export {
    first_byte: Duration,
    duration: Duration,
    lines: usize,
}

/// Measures the CSV of a host's transactions, and the host's statistics, and prints a table.
///
/// # Errors
/// Returns an error if a server doesn't start or rejects a request.
pub async fn run(options: &ExportOptions) -> anyhow::Result<()> {
    let program = server::path(options.server.program.as_deref())?;
    writeln!(stdout(), "database  request       orders  first byte ms   seconds   rows/s  MiB  others' p99 ms: alone  during")?;
    for kind in &options.server.databases {
        let database = Database::new(*kind, &options.server.place)?;
        let fixtures = Arc::new(Fixtures::create(&program, &database.url, database.folder.path(), options.orders, EVENTS).await?);
        let server = Server::platform(&program, &database.url, database.folder.path())?;
        let request = |path: String| LoadRequest {
            method: Method::GET,
            path: format!("/v3{path}"),
            key: Arc::clone(&fixtures.staff_key),
            body: Bytes::new(),
        };
        let hosts: Value = serde_json::from_slice(&send_once(server.address, &request("/hosts".to_owned())).await?)?;
        let host = hosts.pointer("/entries/0/self").and_then(Value::as_str).context("there is a host")?;
        let others = Scenario::ReadEvent.requests(&fixtures, server.address).await?;
        let load = Load {
            address: server.address,
            connections: 16,
            warm_up: Duration::from_secs(1),
            duration: Duration::from_secs(options.seconds),
            rate: Some(options.rate),
        };
        for (name, path) in
            [("transactions", format!("{host}/exports/transactions")), ("statistics", format!("{host}/statistics"))]
        {
            let request = request(path);
            let alone = run_load(&load, &others, || ()).await?;
            server.reset_peak_memory()?;
            let (during, exports) = try_join(run_load(&load, &others, || ()), repeat(&load, &request)).await?;
            let peak = server.peak_memory()?;
            let others = (&alone.others, &during.others);
            ensure!(alone.others.is_empty() && during.others.is_empty(), "requests of other clients failed: {others:?}");
            let last = exports.last().context("there is an export")?;
            ensure!(name != "transactions" || last.lines as i64 == options.orders + 1, "the table has {} lines", last.lines);
            let p99 = |measured: &Measurement| measured.latencies.value_at_quantile(0.99) as f64 / 1000.0;
            let slowest = exports.iter().map(|export| export.first_byte).max().unwrap_or_default();
            let seconds = last.duration.as_secs_f64();
            writeln!(
                stdout(),
                "{:8}  {name:12}  {:7}  {:12.1}  {seconds:8.2}  {:7.0}  {peak:3.0}  {:21.2}  {:6.2}",
                format!("{kind:?}"),
                options.orders,
                slowest.as_secs_f64() * 1000.0,
                last.lines as f64 / seconds,
                p99(&alone),
                p99(&during),
            )?;
        }
    }
    Ok(())
}

/// Sends the request again and again until the load ends.
async fn repeat(load: &Load, request: &LoadRequest) -> anyhow::Result<Vec<Export>> {
    let end = Instant::now() + load.warm_up + load.duration;
    let mut exports = Vec::new();
    while Instant::now() < end {
        let started = Instant::now();
        let (mut first_byte, mut lines) = (None, 0);
        let mut connection = ClientConnection::open(load.address).await?;
        let status = connection
            .receive(request, |part| {
                first_byte.get_or_insert_with(|| started.elapsed());
                lines += part.iter().filter(|byte| **byte == b'\n').count();
            })
            .await?;
        if !status.is_success() {
            bail!("{} returned {status}", request.path);
        }
        let first_byte = first_byte.context("the response has a body")?;
        exports.push(Export { first_byte, duration: started.elapsed(), lines });
    }
    Ok(exports)
}
