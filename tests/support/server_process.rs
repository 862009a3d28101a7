//! The `boxoffice` program as a process.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::Value;

/// Returns the command for the program, with its data in this folder and an empty environment. Rate limits are off.
pub fn boxoffice(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_boxoffice"));
    command.args(arguments).env_clear().env("BOXOFFICE_DATA_DIR", folder).env("BOXOFFICE_LISTEN", "127.0.0.1:0");
    for limit in ["RATE", "LOGIN_RATE", "FAILED_LOGIN", "CREDENTIAL_CHANGE", "CODE"] {
        command.env(format!("BOXOFFICE_{limit}_LIMIT"), "0");
    }
    command
}

/// The output and the exit code of a command that has ended.
#[derive(Debug)]
pub struct CommandOutput {
    /// Its exit code; none after a signal.
    pub code: Option<i32>,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
}

impl CommandOutput {
    /// Returns whether the exit code is 0.
    pub fn succeeded(&self) -> bool {
        self.code == Some(0)
    }
}

impl From<Output> for CommandOutput {
    fn from(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Self { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }
}

/// Runs commands.
pub trait Run {
    /// Runs the command until it ends.
    fn run(&mut self) -> CommandOutput;
}

impl Run for Command {
    fn run(&mut self) -> CommandOutput {
        self.output().unwrap().into()
    }
}

/// A running server process. Dropping it kills the process.
pub struct ServerProcess {
    child: Child,
    /// Its URL.
    pub address: String,
    log: Receiver<String>,
}

impl ServerProcess {
    /// Starts it, and waits until it logs its address.
    pub fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
        let mut log = Vec::new();
        let address = lines.find_map(|line| {
            let entry = serde_json::from_str::<Value>(&line).unwrap_or_default();
            log.push(line);
            entry["address"].as_str().map(|address| format!("http://{address}"))
        });
        let (sender, receiver) = channel();
        // The pipe must be read until the process ends, or its log would block it.
        std::thread::spawn(move || lines.for_each(|line| drop(sender.send(line))));
        let address = address.unwrap_or_else(|| panic!("the server has not started: {log:#?}"));
        Self { child, address, log: receiver }
    }

    /// Sends a signal, such as `TERM` or `KILL`.
    pub fn signal(&self, signal: &str) {
        let sent = Command::new("kill").args(["-s", signal, &self.child.id().to_string()]).status().unwrap();
        assert!(sent.success());
    }

    /// Waits for the next log entry with a field that contains this text, and returns the field's value.
    pub fn wait_for_log(&self, field: &str, text: &str) -> String {
        loop {
            let line =
                self.log.recv_timeout(Duration::from_secs(30)).unwrap_or_else(|_| panic!("no {field} with {text:?} was logged"));
            let entry = serde_json::from_str::<Value>(&line).unwrap_or_default();
            if let Some(value) = entry[field].as_str().filter(|value| value.contains(text)) {
                return value.to_owned();
            }
        }
    }

    /// Waits until the process ends, and returns its standard output, its exit status and its log since the address.
    pub fn wait(mut self) -> (String, ExitStatus, Vec<String>) {
        let mut printed = String::new();
        self.child.stdout.take().unwrap().read_to_string(&mut printed).unwrap();
        let ended = self.child.wait().unwrap();
        (printed, ended, self.log.iter().collect())
    }

    /// Stops it gracefully, and returns its standard output.
    pub fn stop(self) -> String {
        self.signal("TERM");
        let (printed, ended, log) = self.wait();
        assert!(ended.success(), "SIGTERM ended it with {ended}: {log:#?}");
        printed
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        // It may have exited already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Creates an administrator's key and a public key on the command line, before a server is started on this database.
pub fn create_keys(folder: &Path, database_url: &str) -> (String, String) {
    let print = |arguments: &[&str]| {
        let done = boxoffice(folder, &[arguments, &["--database", database_url]].concat()).run();
        assert!(done.succeeded(), "{}", done.stderr);
        done.stdout.trim().to_owned()
    };
    print(&["migrate"]);
    let account = ["account", "create", "--username", "head", "--email", "head@example.com", "--role", "administrator"];
    let number = print(&[&account[..], &["--password", super::PASSWORD]].concat());
    let key = print(&["key", "create", "--role", "administrator", "--account", &number]);
    (key, print(&["key", "create", "--role", "public"]))
}

/// Returns the credentials of the first start, which a server without a terminal writes to a file in this folder.
pub fn first_credentials(folder: &Path) -> String {
    std::fs::read_to_string(folder.join("first-start.txt")).unwrap()
}

/// Returns the last word of the first line that contains a text.
pub fn last_word(printed: &str, text: &str) -> String {
    let line = printed.lines().find(|printed| printed.contains(text)).unwrap();
    line.split_whitespace().last().unwrap().to_owned()
}
