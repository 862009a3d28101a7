//! A server that is measured: a process of its own, and what it costs.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;

use anyhow::{Context, bail};
use serde_json::Value;

/// The kernel counts a process's time in these (`sysconf(_SC_CLK_TCK)`, which is 100 wherever Linux runs).
const TICKS_PER_SECOND: f64 = 100.0;

/// A process that answers. It is killed when this is dropped.
pub struct Server {
    /// Where it listens.
    pub address: SocketAddr,
    process: Child,
}

impl Server {
    /// Starts the platform on a database, without limits, and waits until it answers.
    ///
    /// # Errors
    /// When it doesn't.
    pub fn platform(program: &Path, database_url: &str, folder: &Path) -> anyhow::Result<Self> {
        let mut command = Command::new(program);
        command.args(["serve", "--listen", "127.0.0.1:0", "--rate-limit", "0", "--login-rate-limit", "0"]);
        // A mail of each sale would go to the folder.
        command.arg("--data-dir").arg(folder).env("DATABASE_URL", database_url);
        Self::start(command)
    }

    /// Starts a bare endpoint that answers every request with a file's bytes.
    ///
    /// # Errors
    /// When it doesn't answer.
    pub fn bare(answer: &Path) -> anyhow::Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("bare").arg(answer);
        Self::start(command)
    }

    /// Starts a process whose log, on standard error, tells the address that it serves.
    fn start(mut command: Command) -> anyhow::Result<Self> {
        let mut process = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
        let log = process.stderr.take().context("the log was asked for")?;
        let mut lines = BufReader::new(log).lines();
        let mut said = Vec::new();
        let address = loop {
            let Some(Ok(line)) = lines.next() else { bail!("the server ended before it served:\n{}", said.join("\n")) };
            if let Some(address) = served(&line) {
                break address;
            }
            said.push(line);
        };
        // What it says on is read, or it would wait for somebody to do so.
        thread::spawn(move || lines.for_each(drop));
        Ok(Self { address, process })
    }

    /// Seconds of processor time that it has used.
    ///
    /// # Errors
    /// When it has ended.
    pub fn processor_seconds(&self) -> anyhow::Result<f64> {
        let stat = fs::read_to_string(self.about("stat")).context("the server has ended")?;
        // The name of the program, in brackets, may have spaces in it.
        let (_, fields) = stat.rsplit_once(')').context("the name in /proc/PID/stat")?;
        let ticks: Vec<f64> = fields.split_whitespace().skip(11).take(2).filter_map(|ticks| ticks.parse().ok()).collect();
        Ok(ticks.iter().sum::<f64>() / TICKS_PER_SECOND)
    }

    /// Has the most memory counted from now on.
    ///
    /// # Errors
    /// When it has ended.
    pub fn forget_peak(&self) -> anyhow::Result<()> {
        // 5 is for the peak (proc(5)).
        fs::write(self.about("clear_refs"), "5").context("the server has ended")
    }

    /// The most memory that it had since then, in MiB.
    ///
    /// # Errors
    /// When it has ended.
    pub fn peak_memory(&self) -> anyhow::Result<f64> {
        let status = fs::read_to_string(self.about("status")).context("the server has ended")?;
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).context("VmHWM in /proc/PID/status")?;
        Ok(peak.trim().trim_end_matches("kB").trim().parse::<f64>()? / 1024.0)
    }

    fn about(&self, what: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/{what}", self.process.id()))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ended = self.process.kill();
        let _waited = self.process.wait();
    }
}

/// The address in a line of the log that tells it.
fn served(line: &str) -> Option<SocketAddr> {
    serde_json::from_str::<Value>(line).ok()?["address"].as_str()?.parse().ok()
}

/// Builds the platform as it is released, and gives the program.
///
/// # Errors
/// When it can't be built.
pub fn build() -> anyhow::Result<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    // With this package beside it, so that what both are made of is built once.
    let packages = ["build", "--release", "--locked", "-p", "boxoffice", "-p", "boxoffice-load"];
    let built = Command::new(cargo).args(packages).current_dir(&folder).status()?;
    if !built.success() {
        bail!("the server can't be built");
    }
    let this = std::env::current_exe()?;
    let program = this.with_file_name("boxoffice");
    program.is_file().then_some(program).with_context(|| format!("there is no server beside {}", this.display()))
}
