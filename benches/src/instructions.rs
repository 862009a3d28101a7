//! Instructions of a request: counted by valgrind, so that they are almost the same on every machine and however busy it is.

use std::fs;
use std::io::{Write, stdout};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use clap::{Args, ValueEnum};

use crate::database::Database;
use crate::database_name;
use crate::fixtures::{EVENTS, Fixtures};
use crate::load::{Load, run_load};
use crate::progress::Progress;
use crate::scenario::Scenario;
use crate::server::{self, Server, ServerOptions};

/// Concurrent requests. The server executes one instruction at a time here, so that more would only wait.
const CONNECTIONS: usize = 8;

/// Options of the count.
#[derive(Debug, Args)]
pub struct InstructionOptions {
    /// Scenarios to measure [default: all]
    scenarios: Vec<Scenario>,
    #[command(flatten)]
    server: ServerOptions,
    /// Measured seconds per scenario, after a quarter as many of warm-up
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    seconds: u64,
    /// Folder for the profiles, which `callgrind_annotate` and KCachegrind read
    #[arg(long, default_value = "target/load")]
    profiles: PathBuf,
}

/// Counts the instructions of each scenario's requests, without those of the database server and the kernel, and prints a table.
///
/// # Errors
/// Returns an error if valgrind isn't installed, or a server doesn't start or rejects the requests.
pub async fn run(options: &InstructionOptions) -> anyhow::Result<()> {
    let program = server::path(options.server.program.as_deref())?;
    fs::create_dir_all(&options.profiles)?;
    let folder = options.profiles.canonicalize()?;
    let scenarios = if options.scenarios.is_empty() { Scenario::value_variants() } else { &options.scenarios };
    writeln!(stdout(), "scenario        database    requests  thousand instructions per request")?;
    for kind in &options.server.databases {
        let name = database_name(*kind);
        let database = Database::new(*kind, &options.server.place)?;
        let fixtures = Fixtures::create(&program, &database.url, database.folder.path(), 1000, EVENTS).await?;
        let fixtures = Arc::new(fixtures);
        for scenario in scenarios {
            let progress = Progress::new(&scenario.to_string());
            database.delete_unsent_mail().await?;
            let profile = folder.join(format!("{scenario}-{name}.callgrind"));
            let server = Server::under_callgrind(&program, &database.url, database.folder.path(), &profile)?;
            let requests = scenario.requests(&fixtures, server.address).await?;
            let duration = Duration::from_secs(options.seconds);
            let load = Load { address: server.address, connections: CONNECTIONS, warm_up: duration / 4, duration, rate: None };
            let mut commands = ["zero", "dump"].into_iter();
            let mut results = Vec::new();
            let measurement = run_load(&load, &requests, || {
                results.extend(commands.next().map(|command| send_command(server.process_id(), command)));
            });
            let measurement = measurement.await.with_context(|| format!("{scenario} on {name}"))?;
            results.into_iter().collect::<anyhow::Result<()>>()?;
            progress.finish();
            ensure!(measurement.others.is_empty(), "{scenario} on {name}: requests failed: {:?}", measurement.others);
            let count = total(&profile)? as f64 / measurement.responses as f64 / 1000.0;
            writeln!(stdout(), "{scenario:<14}  {name:10}  {:8}  {count:10.1}", measurement.responses)?;
        }
    }
    Ok(())
}

/// Sends a command to the valgrind that runs a server.
fn send_command(process: u32, command: &str) -> anyhow::Result<()> {
    let output = Command::new("vgdb").arg(format!("--pid={process}")).arg(command).output().context("cannot run vgdb")?;
    ensure!(output.status.success(), "vgdb {command} failed: {}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

/// Renames the profile that the dump has written, and returns the instructions in it.
fn total(profile: &Path) -> anyhow::Result<u64> {
    let dumped = profile.with_added_extension("1");
    fs::rename(&dumped, profile).with_context(|| format!("valgrind has not written {}", dumped.display()))?;
    let text = fs::read_to_string(profile)?;
    let summary = text.lines().find_map(|line| line.strip_prefix("summary: ")).context("the profile has a summary")?;
    Ok(summary.trim().parse()?)
}
