//! A server process with a remote gateway and a clock that is ahead: this test program, started again.

use std::env;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use boxoffice::config::PlatformOptions;
use boxoffice::server::RunningApp;
use boxoffice::state::App;
use boxoffice_http::log;
use boxoffice_http::traces::Tracer;
use clap::Parser;
use slog::Level;
use tokio::signal::unix::{SignalKind, signal};

use crate::support::RemoteFakeGateway;
use crate::support::server_process::boxoffice;

/// The variable with the address of the payment gateway.
const GATEWAY: &str = "TEST_GATEWAY";

#[derive(Parser)]
struct Options {
    #[command(flatten)]
    platform: PlatformOptions,
    /// The address of the payment gateway.
    #[arg(long, env = GATEWAY)]
    gateway: SocketAddr,
    /// The number of seconds by which the clock is ahead.
    #[arg(long, env = "TEST_AHEAD")]
    ahead: u64,
}

/// Returns the command of a server with its data in this folder and the gateway at this address.
pub fn command(folder: &Path, gateway: SocketAddr, ahead: Duration) -> Command {
    let like = boxoffice(folder, &[]);
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["server::server_process", "--exact", "--ignored", "--nocapture"]);
    command.env_clear().envs(like.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.env(GATEWAY, gateway.to_string()).env("TEST_AHEAD", ahead.as_secs().to_string());
    command
}

/// Runs the server. The tests start this program with this test alone, in a process that they can kill.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "the server process of other tests"]
async fn server_process() {
    serve(Options::parse_from(["server"])).await.unwrap();
}

async fn serve(options: Options) -> anyhow::Result<()> {
    let (log, _, _written_when_dropped) = log::open(Level::Warning)?;
    let mut state = App::open(&options.platform.database_url()?, options.platform.settings()?, log, Tracer::default()).await?;
    let parts = Arc::get_mut(&mut state).unwrap();
    parts.gateway = Box::new(RemoteFakeGateway(options.gateway));
    parts.clock.advance(Duration::from_secs(options.ahead));
    let mut asked_to_stop = signal(SignalKind::terminate())?;
    let platform = RunningApp::start(state, options.platform.listener()?)?;
    // In the format of the program's log.
    eprintln!("{}", serde_json::json!({ "address": platform.address() }));
    asked_to_stop.recv().await;
    platform.stop().await
}
