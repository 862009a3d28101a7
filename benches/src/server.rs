//! Measured server: a separate process and its resource usage.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::{env, fs, thread};

use anyhow::{Context, bail};
use clap::Args;
use serde_json::Value;

use crate::database::DatabaseKind;

/// The unit of a process's CPU time (`sysconf(_SC_CLK_TCK)`, which is 100 on every Linux).
const TICKS_PER_SECOND: f64 = 100.0;

/// Options that say which program is measured, and on which databases.
#[derive(Debug, Args)]
pub struct ServerOptions {
    /// Databases to measure
    #[arg(long, value_delimiter = ',', default_value = "sqlite,postgres")]
    pub databases: Vec<DatabaseKind>,
    /// Server program [default: built with the profile `dist`]
    #[arg(long)]
    pub program: Option<PathBuf>,
    /// Folder of the databases; its disk determines the cost of a commit
    #[arg(long, default_value = "target/load")]
    pub place: PathBuf,
}

/// A server process, killed on drop.
pub struct Server {
    /// The address on which it listens.
    pub address: SocketAddr,
    process: Child,
}

impl Server {
    /// Starts the platform on a database, without limits of one client, and waits until it listens.
    ///
    /// # Errors
    /// Returns an error if the server doesn't start.
    pub fn platform(program: &Path, database_url: &str, folder: &Path) -> anyhow::Result<Self> {
        Self::start(without_rate_limits(program, database_url, folder))
    }

    /// Starts the platform like [`platform`](Self::platform), but an open order expires after a minute. So the buyers, who have a
    /// maximum of open orders, can order for as long as the load lasts.
    ///
    /// # Errors
    /// Returns an error if the server doesn't start.
    pub fn with_short_reservations(program: &Path, database_url: &str, folder: &Path) -> anyhow::Result<Self> {
        let mut command = without_rate_limits(program, database_url, folder);
        command.args(["--reservation-minutes", "1"]);
        Self::start(command)
    }

    /// Starts the platform on a database, with all its default limits, and waits until it listens.
    ///
    /// # Errors
    /// Returns an error if the server doesn't start.
    pub fn with_default_limits(program: &Path, database_url: &str, folder: &Path) -> anyhow::Result<Self> {
        Self::start(serve(program, database_url, folder))
    }

    /// Starts the platform like [`platform`](Self::platform) under valgrind, which counts its instructions. A dump is written to the
    /// profile's path with the extension `.1`.
    ///
    /// # Errors
    /// Returns an error if valgrind isn't installed or the server doesn't start.
    pub fn under_callgrind(program: &Path, database_url: &str, folder: &Path, profile: &Path) -> anyhow::Result<Self> {
        let server = without_rate_limits(program, database_url, folder);
        let mut command = Command::new("valgrind");
        command.arg("--tool=callgrind").arg(format!("--callgrind-out-file={}", profile.display()));
        command.arg(server.get_program()).args(server.get_args());
        command.env_clear().envs(server.get_envs().filter_map(|(name, value)| Some((name, value?))));
        Self::start(command).context("valgrind must be installed")
    }

    /// Starts an endpoint that returns a file's bytes to every request.
    ///
    /// # Errors
    /// Returns an error if the endpoint doesn't start.
    pub fn bare(body: &Path) -> anyhow::Result<Self> {
        let mut command = Command::new(env::current_exe()?);
        command.arg("bare").arg(body);
        Self::start(command)
    }

    /// Starts a process that logs its address to standard error.
    fn start(mut command: Command) -> anyhow::Result<Self> {
        let mut process = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
        let log = process.stderr.take().context("standard error is piped")?;
        let mut lines = BufReader::new(log).lines();
        let mut log_lines = Vec::new();
        let address = loop {
            let Some(Ok(line)) = lines.next() else { bail!("the server ended before it listened:\n{}", log_lines.join("\n")) };
            if let Some(address) = logged_address(&line) {
                break address;
            }
            log_lines.push(line);
        };
        // The rest must be read too: the server would block on a full pipe.
        thread::spawn(move || lines.for_each(drop));
        Ok(Self { address, process })
    }

    /// Returns the number of its process.
    pub fn process_id(&self) -> u32 {
        self.process.id()
    }

    /// Returns the CPU time used so far, in seconds.
    ///
    /// # Errors
    /// Returns an error if the server has ended.
    pub fn processor_seconds(&self) -> anyhow::Result<f64> {
        let stat = fs::read_to_string(self.proc_file("stat")).context("the server has ended")?;
        // The program's name, in parentheses, may contain spaces.
        let (_, fields) = stat.rsplit_once(')').context("/proc/PID/stat has a name")?;
        let ticks: Vec<f64> = fields.split_whitespace().skip(11).take(2).filter_map(|ticks| ticks.parse().ok()).collect();
        Ok(ticks.iter().sum::<f64>() / TICKS_PER_SECOND)
    }

    /// Resets the peak of its memory usage.
    ///
    /// # Errors
    /// Returns an error if the server has ended.
    pub fn reset_peak_memory(&self) -> anyhow::Result<()> {
        // 5 resets the peak (proc(5)).
        fs::write(self.proc_file("clear_refs"), "5").context("the server has ended")
    }

    /// Returns the peak of its memory usage since the last reset, in MiB.
    ///
    /// # Errors
    /// Returns an error if the server has ended.
    pub fn peak_memory(&self) -> anyhow::Result<f64> {
        self.mebibytes("VmHWM:")
    }

    /// Returns its memory usage, in MiB.
    ///
    /// # Errors
    /// Returns an error if the server has ended.
    pub fn memory(&self) -> anyhow::Result<f64> {
        self.mebibytes("VmRSS:")
    }

    fn mebibytes(&self, name: &str) -> anyhow::Result<f64> {
        let status = fs::read_to_string(self.proc_file("status")).context("the server has ended")?;
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let kibibytes = line.with_context(|| format!("/proc/PID/status has no {name}"))?;
        Ok(kibibytes.trim().trim_end_matches("kB").trim().parse::<f64>()? / 1024.0)
    }

    fn proc_file(&self, name: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/{name}", self.process.id()))
    }
}

/// Returns the command for the platform with a database and a folder. Of the variables of this process it has `PATH` only: others may be
/// settings, such as a mail server.
pub fn command(program: &Path, database_url: &str, folder: &Path) -> Command {
    let mut command = Command::new(program);
    command.env_clear().envs(env::var_os("PATH").map(|path| ("PATH", path)));
    command.env("BOXOFFICE_DATA_DIR", folder).env("DATABASE_URL", database_url);
    command
}

/// Returns the command that serves the platform on a free port. Mails are written to the folder.
fn serve(program: &Path, database_url: &str, folder: &Path) -> Command {
    let mut command = command(program, database_url, folder);
    command.args(["serve", "--listen", "127.0.0.1:0"]);
    command
}

/// Returns the command that serves the platform like [`serve`], for more requests than the limits of one client allow.
fn without_rate_limits(program: &Path, database_url: &str, folder: &Path) -> Command {
    let mut command = serve(program, database_url, folder);
    command.args(["--rate-limit", "0", "--login-rate-limit", "0", "--max-connections-per-address", "0"]);
    command
}

impl Drop for Server {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ended = self.process.kill();
        let _waited = self.process.wait();
    }
}

/// Returns the address in a line of the log, if it has one.
fn logged_address(line: &str) -> Option<SocketAddr> {
    serde_json::from_str::<Value>(line).ok()?["address"].as_str()?.parse().ok()
}

/// Returns the path of the program to measure. Without one, builds the platform with the profile `dist`.
///
/// # Errors
/// Returns an error if the program doesn't exist or the build fails.
pub fn path(program: Option<&Path>) -> anyhow::Result<PathBuf> {
    match program {
        Some(program) => program.canonicalize().with_context(|| format!("cannot find {}", program.display())),
        None => build(),
    }
}

fn build() -> anyhow::Result<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    // Together with this package, so that common dependencies are built once.
    let arguments = ["build", "--profile", "dist", "--locked", "-p", "boxoffice", "-p", "boxoffice-load"];
    let status = Command::new(cargo).args(arguments).current_dir(&folder).status()?;
    if !status.success() {
        bail!("the build of the server failed");
    }
    let this = env::current_exe()?;
    let program = this.with_file_name("boxoffice");
    program.is_file().then_some(program).with_context(|| format!("there is no server next to {}", this.display()))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use std::path::Path;

    use super::command;

    #[test]
    fn platform_has_no_variables_of_this_process() {
        let printed = command(Path::new("/usr/bin/env"), "sqlite:x.db", Path::new("data")).output().unwrap().stdout;

        let printed = String::from_utf8(printed).unwrap();
        let mut variables: Vec<_> = printed.lines().filter_map(|line| line.split('=').next()).collect();
        variables.sort_unstable();
        assert_eq!(variables, ["BOXOFFICE_DATA_DIR", "DATABASE_URL", "PATH"]);
    }
}
