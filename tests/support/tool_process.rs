//! A mock server or a proxy as a process, which prints its address when it listens.

use std::io::{BufRead, BufReader, sink};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};

/// A running `boxoffice mock` or `boxoffice proxy`. Dropping it kills the process.
pub struct ToolProcess {
    child: Child,
    output: BufReader<ChildStdout>,
    /// Its URL.
    pub address: String,
}

impl ToolProcess {
    /// Starts it, and waits until it prints its address.
    pub fn start(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).stdin(Stdio::null()).spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        let address = line.split_whitespace().find(|word| word.starts_with("http://"));
        let address = address.unwrap_or_else(|| panic!("it doesn't start: {line}")).trim_end_matches('.').to_owned();
        Self { child, output, address }
    }

    /// Stops it by SIGTERM.
    pub fn stop(mut self) -> ExitStatus {
        assert!(Command::new("kill").arg(self.child.id().to_string()).status().unwrap().success());
        let status = self.child.wait().unwrap();
        std::io::copy(&mut self.output, &mut sink()).unwrap();
        status
    }
}

impl Drop for ToolProcess {
    fn drop(&mut self) {
        // It may have exited already.
        let _stopped = self.child.kill().and_then(|()| self.child.wait());
    }
}
