//! Loads a server of its own and measures it, side by side with what the machine allows. `README.md` says how to read it.

mod bare;
mod database;
mod drive;
#[path = "../../tests/it/support/programs.rs"]
mod programs;
mod progress;
mod report;
mod scenario;
mod server;
mod world;
mod yardstick;

use std::io::{Write, stdout};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::database::{Database, Kind};
use crate::drive::{Load, Measured, drive};
use crate::progress::Progress;
use crate::report::{HEADS, Row, Yardstick};
use crate::scenario::Scenario;
use crate::server::Server;
use crate::world::World;
use crate::yardstick::Sections;

/// Loads a boxoffice server of its own and measures it
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
    /// Answer everything with the bytes of a file, to be measured beside the server
    #[command(hide = true)]
    Bare { file: PathBuf },
}

#[derive(Debug, Args)]
struct Options {
    /// What the server is loaded with [default: all, one after the other]
    scenarios: Vec<Scenario>,
    /// Databases to measure on
    #[arg(long, value_delimiter = ',', default_value = "sqlite,postgres")]
    databases: Vec<Kind>,
    /// Orders that there are before
    #[arg(long, value_delimiter = ',', default_value = "1000", value_parser = clap::value_parser!(i64).range(1000..=10_000_000))]
    orders: Vec<i64>,
    /// Requests under way at the same time
    #[arg(long, default_value_t = 64)]
    connections: usize,
    /// Requests a second, however fast they are answered [default: each connection asks as soon as it is answered]
    #[arg(long)]
    rate: Option<f64>,
    /// What the server is loaded with at the same time, by an eighth as many connections
    #[arg(long)]
    beside: Option<Scenario>,
    /// Seconds that are measured of each scenario, after two to warm up
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// Folder for the databases, which decides what a commit costs
    #[arg(long, default_value = "target/load")]
    place: PathBuf,
    /// File for the figures
    #[arg(long)]
    json: Option<PathBuf>,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let Cli { command, options } = Cli::parse();
    match command {
        // As many threads as the platform's own server has.
        Some(Command::Bare { file }) => tokio::task::spawn_blocking(move || serve_bare(&file)).await?,
        None => measure_all(&options).await,
    }
}

fn serve_bare(file: &Path) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(bare::serve(std::fs::read(file)?.into()))
}

async fn measure_all(options: &Options) -> anyhow::Result<()> {
    let program = server::build()?;
    let scenarios = if options.scenarios.is_empty() { Scenario::value_variants() } else { &options.scenarios };
    let mut rows = Vec::new();
    writeln!(stdout(), "{HEADS}")?;
    for kind in &options.databases {
        for orders in &options.orders {
            let database = Database::new(*kind, &options.place)?;
            let world = Arc::new(World::fill(&program, &database.url, database.folder.path(), *orders).await?);
            for scenario in scenarios {
                let row = measure(options, &program, &database, &world, *scenario).await;
                let mut row = row.with_context(|| format!("{scenario} on {}", name(*kind)))?;
                (row.database, row.orders) = (name(*kind), *orders);
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

fn name(kind: Kind) -> &'static str {
    match kind {
        Kind::Sqlite => "SQLite",
        Kind::Postgres => "PostgreSQL",
    }
}

/// How often a server and its bare endpoint take turns.
const ROUNDS: u32 = 10;

/// Loads a server that has just been started.
async fn measure(
    options: &Options,
    program: &Path,
    database: &Database,
    world: &Arc<World>,
    scenario: Scenario,
) -> anyhow::Result<Row> {
    let progress = Progress::new(&scenario.to_string());
    let server = Server::platform(program, &database.url, database.folder.path())?;
    let asks = scenario.asks(world, server.address).await?;
    let time = Duration::from_secs(options.seconds);
    let load = Load {
        address: server.address,
        connections: options.connections,
        warm_up: Duration::from_secs(2),
        time,
        rate: options.rate,
    };
    server.forget_peak()?;
    let bare = match scenario {
        Scenario::ReadEvent | Scenario::ListPublished | Scenario::ListDeep | Scenario::Wallet => {
            Some(yardstick::bare(&server, &asks, database.folder.path()).await?)
        }
        _ => None,
    };
    // The machine may be faster in one second than in the next: server and bare endpoint are asked in turn.
    let rounds = if bare.is_some() { ROUNDS } else { 1 };
    let (mut measured, mut by_bare, mut processor_seconds) = (Measured::nothing()?, Measured::nothing()?, 0.0);
    for round in 0..rounds {
        let warm_up = if round == 0 { load.warm_up } else { load.warm_up / ROUNDS };
        let load = Load { warm_up, time: time / rounds, ..load.clone() };
        let mut used = Vec::new();
        let measuring = drive(&load, &asks, || used.push(server.processor_seconds()));
        measured.add(&match options.beside {
            Some(beside) => {
                let others = Load { connections: (load.connections / 8).max(1), rate: None, ..load.clone() };
                let asks = beside.asks(world, server.address).await?;
                let (measured, _beside) = futures::future::try_join(measuring, drive(&others, &asks, || ())).await?;
                measured
            }
            None => measuring.await?,
        })?;
        let used = used.into_iter().collect::<anyhow::Result<Vec<f64>>>()?;
        processor_seconds += used.last().unwrap_or(&0.0) - used.first().unwrap_or(&0.0);
        if let Some(bare) = &bare {
            by_bare.add(&drive(&Load { address: bare.address, ..load }, &asks, || ()).await?)?;
        }
    }
    let peak_mebibytes = server.peak_memory()?;
    let beside = match scenario {
        Scenario::OnSaleHot | Scenario::OnSaleSpread => {
            let sections = match scenario {
                Scenario::OnSaleHot => Sections::One(world.hot_section),
                _ => Sections::Thousand,
            };
            let name = if database.pgbench().is_some() { "pgbench" } else { "loop" };
            Some((name, yardstick::orders(database, world, sections, time).await?))
        }
        _ => bare.map(|_| ("bare", by_bare.rate())),
    };
    progress.end();
    let answers = measured.latencies.len() + measured.others.values().sum::<u64>();
    Ok(Row {
        scenario: options.beside.map_or_else(|| scenario.to_string(), |beside| format!("{scenario} beside {beside}")),
        database: "",
        orders: 0,
        connections: options.connections,
        asked_per_second: options.rate,
        per_second: measured.rate(),
        milliseconds: (&measured).into(),
        processor_seconds_per_1000: processor_seconds * 1000.0 / answers as f64,
        peak_mebibytes,
        seconds: measured.time.as_secs_f64(),
        is_exhausted: measured.is_exhausted,
        others: measured.others.clone(),
        yardstick: beside.map(|(name, per_second)| Yardstick { name, per_second, ratio: measured.rate() / per_second }),
    })
}
