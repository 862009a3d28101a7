//! Overload: more requests than the server can serve, and a steady load for a long time.

use std::io::{Write, stdout};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use clap::Args;
use clap::builder::RangedU64ValueParser;

use crate::database::Database;
use crate::fixtures::{EVENTS, Fixtures};
use crate::load::{Load, in_turn, run_load};
use crate::scenario::Scenario;
use crate::schedule::{self, Interval, Segment};
use crate::server::{self, Server, ServerOptions};

/// Seconds of the closed loop that finds the best rate.
const BEST_SECONDS: u64 = 10;
/// Multiple of the best rate at the peak of the ramp.
const PEAK: f64 = 3.0;
/// Share of the best rate after the ramp, and of a steady load.
const STEADY: f64 = 0.6;
/// Seconds of the steady load after the ramp.
const RECOVERY_SECONDS: f64 = 10.0;

/// Options of the ramp.
#[derive(Debug, Args)]
pub struct RampOptions {
    #[command(flatten)]
    server: ServerOptions,
    /// Scenarios, one after the other
    #[arg(default_value = "mixed")]
    scenarios: Vec<Scenario>,
    /// Seconds from no requests to three times the best rate and back
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    seconds: u64,
    /// Connections of the clients; more than the server's limit of requests in progress
    #[arg(long, default_value_t = 2000, value_parser = RangedU64ValueParser::<usize>::new().range(1..=100_000))]
    connections: usize,
}

/// Options of the steady load.
#[derive(Debug, Args)]
pub struct SoakOptions {
    #[command(flatten)]
    server: ServerOptions,
    /// Scenarios, one after the other
    #[arg(default_value = "mixed")]
    scenarios: Vec<Scenario>,
    /// Requests per second [default: 60 % of the best rate]
    #[arg(long, value_parser = crate::parse_rate)]
    rate: Option<f64>,
    /// Minutes of the load
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    minutes: u64,
    /// Seconds of each row of the table
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    interval: u64,
}

/// Raises the rate to three times the best one and lowers it again, and prints a table by second.
///
/// # Errors
/// Returns an error if a server doesn't start or the requests run out.
pub async fn ramp(options: &RampOptions) -> anyhow::Result<()> {
    let RampOptions { server, scenarios, seconds, connections } = options;
    let half = *seconds as f64 / 2.0;
    run(server, scenarios, *connections, Duration::from_secs(1), |best| {
        let peak = PEAK * best;
        vec![
            Segment { from: 0.0, to: peak, seconds: half },
            Segment { from: peak, to: STEADY * best, seconds: half },
            Segment { from: STEADY * best, to: STEADY * best, seconds: RECOVERY_SECONDS },
        ]
    })
    .await
}

/// Sends requests at a steady rate for a long time, and prints a table by interval.
///
/// # Errors
/// Returns an error if a server doesn't start or the requests run out.
pub async fn soak(options: &SoakOptions) -> anyhow::Result<()> {
    let SoakOptions { server, scenarios, rate, minutes, interval } = options;
    ensure!((minutes * 60).is_multiple_of(*interval), "--interval must divide the {} seconds of the load", minutes * 60);
    run(server, scenarios, 256, Duration::from_secs(*interval), |best| {
        let rate = rate.unwrap_or(STEADY * best);
        vec![Segment { from: rate, to: rate, seconds: (minutes * 60) as f64 }]
    })
    .await
}

async fn run(
    options: &ServerOptions,
    scenarios: &[Scenario],
    connections: usize,
    interval: Duration,
    segments: impl Fn(f64) -> Vec<Segment>,
) -> anyhow::Result<()> {
    let program = server::path(options.program.as_deref())?;
    for kind in &options.databases {
        let database = Database::new(*kind, &options.place)?;
        let fixtures = Arc::new(Fixtures::create(&program, &database.url, database.folder.path(), 1000, EVENTS).await?);
        for scenario in scenarios {
            let server = Server::with_short_reservations(&program, &database.url, database.folder.path())?;
            let requests = in_turn(scenario.repeatable_requests(&fixtures, server.address).await?);
            let duration = Duration::from_secs(BEST_SECONDS);
            let load = Load { address: server.address, connections: 64, warm_up: Duration::from_secs(2), duration, rate: None };
            let best = run_load(&load, &requests, || ()).await?.rate();
            writeln!(stdout(), "\n{scenario} on {kind:?}; best rate of a closed loop with 64 connections: {best:.0}/s\n")?;
            writeln!(stdout(), "seconds   sent/s  served/s  refused  others  p50 ms   p99 ms  p99.9 ms  refused p99 ms   MiB")?;
            let others = schedule::run(server.address, connections, &segments(best), &requests, interval, |number, row| {
                print(&server, interval, number, row)
            })
            .await
            .with_context(|| format!("{scenario} on {kind:?}"))?;
            writeln!(stdout(), "\n{others} others")?;
        }
    }
    Ok(())
}

fn print(server: &Server, interval: Duration, number: usize, row: &Interval) -> anyhow::Result<()> {
    let rate = |count: u64| count as f64 / interval.as_secs_f64();
    let at = |quantile| row.served.value_at_quantile(quantile) as f64 / 1000.0;
    let refused = row.refused.value_at_quantile(0.99) as f64 / 1000.0;
    let end = interval.as_secs() * (number as u64 + 1);
    let (sent, served) = (rate(row.sent), rate(row.served.len()));
    write!(stdout(), "{end:7}  {sent:7.0}  {served:8.0}  {:7}  {:6}  ", row.refused.len(), row.others)?;
    let (p50, p99, p999, memory) = (at(0.5), at(0.99), at(0.999), server.memory()?);
    writeln!(stdout(), "{p50:6.1}  {p99:7.1}  {p999:8.1}  {refused:14.1}  {memory:4.0}")?;
    Ok(())
}
