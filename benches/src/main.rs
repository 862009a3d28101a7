//! Load test: starts a server, measures it under load and compares it with baselines. `README.md` explains the results.

mod bare_endpoint;
mod baseline;
mod database;
mod exports;
mod fixtures;
mod growth;
mod hostile;
mod instructions;
mod load;
mod overload;
#[path = "../../tests/support/pg_binaries.rs"]
mod pg_binaries;
mod progress;
mod report;
mod scenario;
mod schedule;
mod server;
mod skewed_database;

use std::io::{Write, stdout};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use clap::builder::RangedU64ValueParser;
use clap::{Args, Parser, Subcommand, ValueEnum};
use http::Method;

use crate::baseline::Sections;
use crate::database::{Database, DatabaseKind};
use crate::exports::ExportOptions;
use crate::fixtures::{EVENTS, Fixtures};
use crate::growth::GrowthOptions;
use crate::hostile::HostileOptions;
use crate::instructions::InstructionOptions;
use crate::load::{Load, Measurement, ending_together, in_turn, run_load};
use crate::overload::{RampOptions, SoakOptions};
use crate::progress::Progress;
use crate::report::{Baseline, Beside, HEADINGS, Parts, Row};
use crate::scenario::Scenario;
use crate::server::{Server, ServerOptions};

/// Measures a boxoffice server under load
#[derive(Debug, Parser)]
#[command(args_conflicts_with_subcommands = true)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    options: Options,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Return the bytes of a file to every request, as a baseline
    #[command(hide = true)]
    Bare { file: PathBuf },
    /// Measure another client's latency and the server's memory under hostile load; exit code 1 if a bound is exceeded
    Hostile(HostileOptions),
    /// Measure how the time of each operation grows from a small to a large event, host and account
    Growth(GrowthOptions),
    /// Measure a large export, the server's memory and the latency of other clients meanwhile
    Exports(ExportOptions),
    /// Count the instructions of a request with valgrind, to compare two builds on a machine whose speed varies
    Instructions(InstructionOptions),
    /// Send up to three times as many requests as the server can serve
    Ramp(RampOptions),
    /// Send requests at a steady rate for a long time
    Soak(SoakOptions),
}

#[derive(Debug, Args)]
struct Options {
    /// Scenarios to run, one after the other [default: all]
    scenarios: Vec<Scenario>,
    #[command(flatten)]
    server: ServerOptions,
    /// Paid orders in the database beforehand; several values run one after the other
    #[arg(long, value_delimiter = ',', default_value = "1000", value_parser = clap::value_parser!(i64).range(1000..=10_000_000))]
    orders: Vec<i64>,
    /// Published events in the database, besides one with five sections
    #[arg(long, default_value_t = EVENTS, value_parser = clap::value_parser!(i64).range(10_000..=1_000_000))]
    events: i64,
    /// Concurrent requests
    #[arg(long, default_value_t = 64, value_parser = RangedU64ValueParser::<usize>::new().range(1..=100_000))]
    connections: usize,
    /// Requests per second (open loop) [default: each connection sends its next request when it has a response]
    #[arg(long, value_parser = parse_rate)]
    rate: Option<f64>,
    /// Second scenario to run at the same time, on an eighth as many connections
    #[arg(long)]
    beside: Option<Scenario>,
    /// Measured seconds per scenario, after 2 seconds of warm-up
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    seconds: u64,
    /// File for the results as JSON
    #[arg(long)]
    json: Option<PathBuf>,
}

/// Parses a rate: a number of requests per second.
fn parse_rate(text: &str) -> Result<f64, String> {
    let rate = text.parse().ok().filter(|rate: &f64| rate.is_finite() && *rate > 0.0);
    rate.ok_or_else(|| "a rate is a number of requests per second above 0".to_owned())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<ExitCode> {
    let Cli { command, options } = Cli::parse();
    match command {
        // On a multi-threaded runtime like the platform's server.
        Some(Command::Bare { file }) => tokio::task::spawn_blocking(move || serve_bare(&file)).await??,
        Some(Command::Hostile(options)) => {
            return Ok(if hostile::run(&options).await? { ExitCode::SUCCESS } else { ExitCode::FAILURE });
        }
        Some(Command::Growth(options)) => growth::run(&options).await?,
        Some(Command::Exports(options)) => exports::run(&options).await?,
        Some(Command::Instructions(options)) => instructions::run(&options).await?,
        Some(Command::Ramp(options)) => overload::ramp(&options).await?,
        Some(Command::Soak(options)) => overload::soak(&options).await?,
        None => measure_all(&options).await?,
    }
    Ok(ExitCode::SUCCESS)
}

fn serve_bare(file: &Path) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(bare_endpoint::serve(std::fs::read(file)?.into()))
}

async fn measure_all(options: &Options) -> anyhow::Result<()> {
    let program = server::path(options.server.program.as_deref())?;
    let scenarios = if options.scenarios.is_empty() { Scenario::value_variants() } else { &options.scenarios };
    let mut rows = Vec::new();
    writeln!(stdout(), "{HEADINGS}")?;
    for kind in &options.server.databases {
        for orders in &options.orders {
            let database = Database::new(*kind, &options.server.place)?;
            let fixtures = Fixtures::create(&program, &database.url, database.folder.path(), *orders, options.events).await?;
            let fixtures = Arc::new(fixtures);
            for scenario in scenarios {
                let row = measure(options, &program, &database, &fixtures, *scenario).await;
                let mut row = row.with_context(|| format!("{scenario} on {}", database_name(*kind)))?;
                (row.database, row.orders) = (database_name(*kind), *orders);
                writeln!(stdout(), "{row}")?;
                rows.push(row);
            }
        }
    }
    if let Some(file) = &options.json {
        std::fs::write(file, serde_json::to_vec_pretty(&rows)?).with_context(|| format!("cannot write {}", file.display()))?;
    }
    Ok(())
}

fn database_name(kind: DatabaseKind) -> &'static str {
    match kind {
        DatabaseKind::Sqlite => "SQLite",
        DatabaseKind::Postgres => "PostgreSQL",
    }
}

/// Number of rounds in which the server and its baseline take turns.
const ROUNDS: u32 = 10;

/// Measures a scenario on a newly started server.
async fn measure(
    options: &Options,
    program: &Path,
    database: &Database,
    fixtures: &Arc<Fixtures>,
    scenario: Scenario,
) -> anyhow::Result<Row> {
    let progress = Progress::new(&scenario.to_string());
    database.delete_unsent_mail().await?;
    let server = Server::platform(program, &database.url, database.folder.path())?;
    let requests = scenario.requests(fixtures, server.address).await?;
    let (load_requests, beside_requests) = match options.beside {
        Some(beside) => {
            // One source for all rounds, because some requests can't be repeated.
            let beside_requests = in_turn(beside.requests(fixtures, server.address).await?);
            let [first, second] = ending_together([Arc::clone(&requests), beside_requests]);
            (first, Some(second))
        }
        None => (Arc::clone(&requests), None),
    };
    let duration = Duration::from_secs(options.seconds);
    let load = Load {
        address: server.address,
        connections: options.connections,
        warm_up: Duration::from_secs(2),
        duration,
        rate: options.rate,
    };
    server.reset_peak_memory()?;
    let reads_only = scenario.parts().is_none() && requests(0).is_some_and(|first| first.method == Method::GET);
    let bare = match reads_only {
        true => Some(baseline::start_bare_endpoint(&server, &requests, database.folder.path()).await?),
        false => None,
    };
    // Server and bare endpoint take turns, because the machine's speed varies.
    let rounds = if bare.is_some() { ROUNDS } else { 1 };
    let (mut measurement, mut bare_measurement, mut processor_seconds) = (Measurement::empty()?, Measurement::empty()?, 0.0);
    let mut beside_measurement = Measurement::empty()?;
    for round in 0..rounds {
        let warm_up = if round == 0 { load.warm_up } else { load.warm_up / ROUNDS };
        let load = Load { warm_up, duration: duration / rounds, ..load.clone() };
        let mut used = Vec::new();
        let running = run_load(&load, &load_requests, || used.push(server.processor_seconds()));
        match &beside_requests {
            Some(requests) => {
                let beside_load = Load { connections: (load.connections / 8).max(1), rate: None, ..load.clone() };
                let beside = async { run_load(&beside_load, requests, || ()).await.context("the second scenario") };
                match futures::future::try_join(running, beside).await {
                    Ok((round, beside)) => {
                        measurement.add(&round)?;
                        beside_measurement.add(&beside)?;
                    }
                    // The requests ran out before the measurement of a later round began.
                    Err(_) if round > 0 && load_requests(0).is_none() => {
                        measurement.is_exhausted = true;
                        break;
                    }
                    Err(error) => return Err(error),
                }
            }
            None => measurement.add(&running.await?)?,
        }
        let used = used.into_iter().collect::<anyhow::Result<Vec<f64>>>()?;
        processor_seconds += used.last().unwrap_or(&0.0) - used.first().unwrap_or(&0.0);
        if let Some(bare) = &bare {
            // Always as fast as it can, to be the upper bound.
            let bare_load = Load { address: bare.address, rate: None, ..load };
            bare_measurement.add(&run_load(&bare_load, &requests, || ()).await?)?;
        }
        if measurement.is_exhausted {
            break;
        }
    }
    let peak_mebibytes = server.peak_memory()?;
    let baseline = match scenario {
        Scenario::OnSaleHot | Scenario::OnSaleSpread => {
            let sections = match scenario {
                Scenario::OnSaleHot => Sections::One(fixtures.hot_section_id),
                _ => Sections::Thousand,
            };
            let name = if database.pgbench().is_some() { "pgbench" } else { "loop" };
            Some((name, baseline::measure_orders(database, fixtures, sections, duration).await?))
        }
        _ => bare.map(|_| ("bare", bare_measurement.rate())),
    };
    progress.finish();
    let without_log_ins = measurement.latencies_without_log_ins()?;
    let parts = (!without_log_ins.is_empty() && !measurement.log_in_latencies.is_empty())
        .then(|| Parts { log_ins: (&measurement.log_in_latencies).into(), without_log_ins: (&without_log_ins).into() });
    let responses = measurement.responses + beside_measurement.responses;
    Ok(Row {
        scenario: options.beside.map_or_else(|| scenario.to_string(), |beside| format!("{scenario} beside {beside}")),
        database: "",
        orders: 0,
        connections: options.connections,
        target_rate: options.rate,
        per_second: measurement.rate(),
        milliseconds: (&measurement.latencies).into(),
        parts,
        processor_seconds_per_1000: processor_seconds * 1000.0 / responses as f64,
        peak_mebibytes,
        seconds: measurement.duration.as_secs_f64(),
        is_exhausted: measurement.is_exhausted,
        others: measurement.others.clone(),
        beside: beside_requests
            .is_some()
            .then(|| Beside { per_second: beside_measurement.rate(), others: beside_measurement.others.clone() }),
        baseline: baseline.map(|(name, per_second)| Baseline { name, per_second, ratio: measurement.rate() / per_second }),
    })
}

#[cfg(test)]
mod tests {
    use super::{Cli, Parser};

    #[test]
    fn zeros_are_rejected() {
        for (command, option) in [
            ("", "--rate"),
            ("", "--connections"),
            ("", "--seconds"),
            ("exports", "--rate"),
            ("exports", "--seconds"),
            ("hostile", "--seconds"),
            ("instructions", "--seconds"),
            ("ramp", "--connections"),
            ("ramp", "--seconds"),
            ("soak", "--rate"),
            ("soak", "--minutes"),
            ("soak", "--interval"),
        ] {
            let parse = |value: &str| {
                let arguments = ["boxoffice-load", command, option, value];
                Cli::try_parse_from(arguments.into_iter().filter(|argument| !argument.is_empty()))
            };
            let error = parse("0").map(|_| ()).map_err(|error| error.to_string());
            let is_clear = |text: &String| text.contains(option) && (text.contains("above 0") || text.contains("not in 1.."));
            assert!(error.as_ref().is_err_and(is_clear), "{command} {option}: {error:?}");
            assert!(parse("1").is_ok(), "{command} {option}");
        }
        for rate in ["-1", "NaN", "inf", "fast"] {
            assert!(Cli::try_parse_from(["boxoffice-load", &format!("--rate={rate}")]).is_err(), "{rate}");
        }
    }

    /// `tests/api/documents` checks the options of Cargo.
    #[test]
    fn commands_of_readme_are_valid() {
        let readme = include_str!("../README.md");
        let commands = readme.lines().filter_map(|line| line.strip_prefix("cargo run --profile dist -p boxoffice-load"));
        let mut count = 0;
        for command in commands {
            let arguments = command.split_whitespace().skip(1).filter(|argument| *argument != "--help");
            let parsed = Cli::try_parse_from(std::iter::once("boxoffice-load").chain(arguments));
            assert!(parsed.is_ok(), "{command}: {}", parsed.err().map(|error| error.to_string()).unwrap_or_default());
            count += 1;
        }
        assert_eq!(count, readme.matches("-p boxoffice-load").count());
    }
}
