//! The real program, started as an operator starts it.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::Value;

/// The program, with its data in this folder and nothing from this process's environment. Its limits are off, for whoever asks
/// much at once.
pub fn boxoffice(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_boxoffice"));
    command.args(arguments).env_clear().env("BOXOFFICE_DATA_DIR", folder).env("BOXOFFICE_LISTEN", "127.0.0.1:0");
    command.env("BOXOFFICE_RATE_LIMIT", "0").env("BOXOFFICE_LOGIN_RATE_LIMIT", "0");
    command
}

/// A server that was started, and where it answers. It is killed when it is dropped.
pub struct Server {
    child: Child,
    /// With `http://`.
    pub address: String,
    log: Receiver<String>,
}

impl Server {
    /// Starts it and waits until its log tells its address.
    pub fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
        let mut told = Vec::new();
        let address = lines.find_map(|line| {
            let entry = serde_json::from_str::<Value>(&line).unwrap_or_default();
            told.push(line);
            entry["address"].as_str().map(|address| format!("http://{address}"))
        });
        let (log, lines_to_come) = channel();
        // Whatever it logs later must find a reader.
        std::thread::spawn(move || lines.for_each(|line| drop(log.send(line))));
        let address = address.unwrap_or_else(|| panic!("it has not started: {told:#?}"));
        Self { child, address, log: lines_to_come }
    }

    /// Sends it a signal, such as `TERM` or `KILL`.
    pub fn signal(&self, signal: &str) {
        let sent = Command::new("kill").args(["-s", signal, &self.child.id().to_string()]).status().unwrap();
        assert!(sent.success());
    }

    /// What the next entry of its log says in a field that it has; waits for one.
    pub fn logged(&self, field: &str) -> String {
        loop {
            let line =
                self.log.recv_timeout(Duration::from_secs(30)).unwrap_or_else(|_| panic!("nothing with {field} was logged"));
            let entry = serde_json::from_str::<Value>(&line).unwrap_or_default();
            if let Some(told) = entry[field].as_str() {
                return told.to_owned();
            }
        }
    }

    /// What it printed, how it ended, and what it has logged since it began to answer; waits for its end.
    pub fn wait(mut self) -> (String, ExitStatus, Vec<String>) {
        let mut printed = String::new();
        self.child.stdout.take().unwrap().read_to_string(&mut printed).unwrap();
        let ended = self.child.wait().unwrap();
        (printed, ended, self.log.iter().collect())
    }

    /// Asks it to stop, and gives what it printed.
    pub fn stop(self) -> String {
        self.signal("TERM");
        let (printed, ended, log) = self.wait();
        assert!(ended.success(), "asked to stop, it ends with {ended}: {log:#?}");
        printed
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The keys of an administrator and of the public, made beside a server that is yet to be started on this database.
pub fn keys(folder: &Path, database_url: &str) -> (String, String) {
    let print = |arguments: &[&str]| {
        let done = boxoffice(folder, &[arguments, &["--database", database_url]].concat()).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8(done.stdout).unwrap().trim().to_owned()
    };
    let account = ["account", "create", "--username", "head", "--email", "head@example.com", "--role", "administrator"];
    let number = print(&[&account[..], &["--password", super::PASSWORD]].concat());
    let key = print(&["key", "create", "--role", "administrator", "--account", &number]);
    (key, print(&["key", "create", "--role", "public"]))
}

/// The last word of the line with this in it.
pub fn last_word(printed: &str, line: &str) -> String {
    let line = printed.lines().find(|printed| printed.contains(line)).unwrap();
    line.split_whitespace().last().unwrap().to_owned()
}
