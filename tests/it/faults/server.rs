//! The platform as a process of its own that can be killed, whose money is in a till outside of it and whose clock is ahead: the
//! test program itself, started again.

use std::env;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::time::Duration;

use boxoffice::app::{App, Platform};
use boxoffice::config::PlatformOptions;
use boxoffice::log;
use clap::Parser;
use slog::Level;
use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};

use crate::support::FarTill;
use crate::support::program::boxoffice;

/// What tells the test program to be a server.
const TILL: &str = "TEST_TILL";

#[derive(Parser)]
struct Options {
    #[command(flatten)]
    platform: PlatformOptions,
    /// Where the till is.
    #[arg(long, env = TILL)]
    till: SocketAddr,
    /// How many seconds the clock is ahead.
    #[arg(long, env = "TEST_AHEAD")]
    ahead: u64,
}

/// The command for a server with its data in this folder, which takes money into the till at this address.
pub fn command(folder: &Path, till: SocketAddr, ahead: Duration) -> Command {
    let like = boxoffice(folder, &[]);
    let mut command = Command::new(env::current_exe().unwrap());
    command.env_clear().envs(like.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.env(TILL, till.to_string()).env("TEST_AHEAD", ahead.as_secs().to_string());
    command
}

/// Is a server until it is killed or asked to stop, where it was started as one.
pub fn run_if_asked() -> Option<ExitCode> {
    env::var_os(TILL)?;
    Some(match Runtime::new().unwrap().block_on(serve(Options::parse_from(["server"]))) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    })
}

async fn serve(options: Options) -> anyhow::Result<()> {
    let (log, _written_when_dropped) = log::open(Level::Warning);
    let mut app = App::open(&options.platform.database_url(), options.platform.settings(), log).await?;
    let parts = Arc::get_mut(&mut app).unwrap();
    parts.gateway = Box::new(FarTill(options.till));
    parts.clock.advance(Duration::from_secs(options.ahead));
    let mut asked_to_stop = signal(SignalKind::terminate())?;
    let platform = Platform::start(app, options.platform.listener()?)?;
    // As the program's log tells it.
    eprintln!("{}", serde_json::json!({ "address": platform.address() }));
    asked_to_stop.recv().await;
    platform.stop().await
}
