//! Handlers of the signals that a server receives.

use std::sync::Arc;

use anyhow::Context;
use boxoffice_http::Certificate;
use boxoffice_http::error::one_line;
use boxoffice_http::log::LevelControl;
use slog::{Logger, info, warn};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Handlers of Ctrl-C, SIGTERM and SIGQUIT. Without them, these signals end the program at once, so a server installs them before
/// it prints its address.
pub struct StopSignals {
    interrupt: Signal,
    terminate: Signal,
    quit: Signal,
}

impl StopSignals {
    pub fn listen() -> anyhow::Result<Self> {
        let listen = |kind| signal(kind).context("cannot listen for stop signals");
        Ok(Self {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
            quit: listen(SignalKind::quit())?,
        })
    }

    /// Waits for the next stop signal.
    pub async fn recv(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            _ = self.quit.recv() => {}
        }
    }
}

/// Handles the signals that would otherwise end the program without a graceful shutdown: SIGHUP reloads the TLS certificate, if
/// there is one, SIGUSR1 sets the log's level to `debug`, and SIGUSR2 back to the configured one. (SIGPIPE is ignored by every Rust
/// program.)
pub fn handle_other_signals(certificate: Option<Arc<Certificate>>, log: &Logger, level: &LevelControl) -> anyhow::Result<()> {
    let listen = |kind| signal(kind).context("cannot listen for signals");
    let mut hangup = listen(SignalKind::hangup())?;
    let mut user_defined = [listen(SignalKind::user_defined1())?, listen(SignalKind::user_defined2())?];
    let (log, level) = (log.clone(), level.clone());
    tokio::spawn(async move {
        let [first, second] = &mut user_defined;
        loop {
            tokio::select! {
                _ = hangup.recv() => reload(certificate.as_deref(), &log),
                _ = first.recv() => set_debug(&level, true, &log),
                _ = second.recv() => set_debug(&level, false, &log),
            }
        }
    });
    Ok(())
}

fn set_debug(level: &LevelControl, is_debug: bool, log: &Logger) {
    let level = level.set_debug(is_debug);
    warn!(log, "the level of the log was changed by a signal"; "to" => level.as_str().to_lowercase());
}

fn reload(certificate: Option<&Certificate>, log: &Logger) {
    match certificate.map(Certificate::reload) {
        None => info!(log, "SIGHUP is ignored: there is no TLS certificate to reload"),
        Some(Ok(())) => info!(log, "certificate reloaded"),
        Some(Err(error)) => {
            warn!(log, "certificate not reloaded; the previous one stays in use"; "cause" => one_line(&error));
        }
    }
}
