//! Writes log lines in a thread of its own, many at once.

use std::io::{self, ErrorKind, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde_json::json;
use slog::Level;

use crate::log::{level_name, timestamp};

/// Maximum size of the lines that wait, in bytes. Lines beyond that are dropped, and their number is logged.
const MAX_QUEUED_BYTES: usize = 8 * 1024 * 1024;

/// Time between two writes. Waking the thread for each line costs more than the rest of the line.
const PAUSE: Duration = Duration::from_millis(5);

/// Time that a program waits for a thread that writes its last lines.
const LAST_LINES_TIMEOUT: Duration = Duration::from_secs(1);

/// Collects the parts of a line, and queues the line when flushed.
#[derive(Debug)]
pub(crate) struct LineBuffer {
    line: Vec<u8>,
    shared: Arc<Shared>,
}

/// Stops the thread when dropped, as [`wait_for_last_lines`] does, after it has written all queued lines.
#[derive(Debug)]
pub struct LineWriterGuard {
    shared: Arc<Shared>,
    thread: JoinHandle<()>,
}

#[derive(Debug, Default)]
struct Shared {
    queue: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Queue {
    lines: Vec<u8>,
    dropped: u64,
    is_closed: bool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Starts the thread that writes to `output`. If `output` fails, for example because the disk is full, lines are lost and counted, and
/// the program continues.
///
/// # Errors
/// Returns an error if the thread cannot be started.
pub(crate) fn start(output: impl Write + Send + 'static) -> io::Result<(LineBuffer, LineWriterGuard)> {
    let shared = Arc::new(Shared::default());
    let writing = Arc::clone(&shared);
    let thread = thread::Builder::new().name("log".to_owned()).spawn(move || write_lines(&writing, output))?;
    let guard = LineWriterGuard { shared: Arc::clone(&shared), thread };
    Ok((LineBuffer { line: Vec::new(), shared }, guard))
}

fn write_lines(shared: &Shared, mut output: impl Write) {
    // Lines that are lost, and not reported yet.
    let mut lost = 0;
    // True if the output has taken a part of a line.
    let mut is_cut = false;
    loop {
        let Queue { lines, dropped, is_closed } = {
            let is_idle = |queue: &mut Queue| queue.lines.is_empty() && !queue.is_closed;
            let mut queue = shared.changed.wait_while(shared.lock(), is_idle).unwrap_or_else(PoisonError::into_inner);
            Queue { lines: std::mem::take(&mut queue.lines), dropped: std::mem::take(&mut queue.dropped), ..*queue }
        };
        lost += dropped + write(&mut output, &lines, &mut is_cut);
        if lost > 0 {
            let (level, ts) = (level_name(Level::Warning), timestamp());
            let line = json!({ "msg": "log lines dropped", "lines": lost, "level": level, "ts": ts });
            if write(&mut output, format!("{line}\n").as_bytes(), &mut is_cut) == 0 {
                lost = 0;
            }
        }
        _ = output.flush();
        if is_closed {
            return;
        }
        thread::sleep(PAUSE);
    }
}

/// Writes lines, and ends a cut line before. Returns the number of lines that the output doesn't take.
fn write(output: &mut impl Write, lines: &[u8], is_cut: &mut bool) -> u64 {
    if *is_cut && !lines.is_empty() {
        *is_cut = output.write_all(b"\n").is_err();
    }
    let mut written = 0;
    while !*is_cut && written < lines.len() {
        match output.write(&lines[written..]) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Ok(0) | Err(_) => break,
            Ok(length) => written += length,
        }
    }
    let (written, rest) = lines.split_at(written);
    *is_cut |= written.last().is_some_and(|last| *last != b'\n');
    rest.iter().filter(|byte| **byte == b'\n').count() as u64
}

impl Write for LineBuffer {
    fn write(&mut self, part: &[u8]) -> io::Result<usize> {
        self.line.extend_from_slice(part);
        Ok(part.len())
    }

    /// A line has about a hundred parts, of a few bytes each. The provided method has a loop, in case only a part is written.
    fn write_all(&mut self, part: &[u8]) -> io::Result<()> {
        self.line.extend_from_slice(part);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        let mut queue = self.shared.lock();
        if queue.lines.len() + self.line.len() > MAX_QUEUED_BYTES {
            queue.dropped += 1;
        } else {
            // The thread waits only while there is nothing to write.
            if queue.lines.is_empty() {
                self.shared.changed.notify_one();
            }
            queue.lines.extend_from_slice(&self.line);
        }
        drop(queue);
        self.line.clear();
        Ok(())
    }
}

/// Waits until a thread has written the last lines of a program, for a second at most. An output that nobody reads, such as a pipe to a
/// program that is suspended, must not keep the program.
pub fn wait_for_last_lines(thread: &JoinHandle<()>) {
    let start = Instant::now();
    while !thread.is_finished() && start.elapsed() < LAST_LINES_TIMEOUT {
        thread::sleep(Duration::from_millis(1));
    }
}

impl Drop for LineWriterGuard {
    fn drop(&mut self) {
        self.shared.lock().is_closed = true;
        self.shared.changed.notify_one();
        wait_for_last_lines(&self.thread);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;

    /// An output that blocks until the test lets it write.
    struct SlowOutput {
        may_write: Receiver<()>,
        written: Sender<Vec<u8>>,
    }

    impl Write for SlowOutput {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            _ = self.may_write.recv();
            _ = self.written.send(bytes.to_vec());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// An output on a disk with room for some bytes. After it was full once, it has room again.
    struct FullDisk {
        room: usize,
        written: Sender<Vec<u8>>,
    }

    impl Write for FullDisk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.room == 0 {
                self.room = usize::MAX;
                return Err(ErrorKind::StorageFull.into());
            }
            let length = bytes.len().min(self.room);
            self.room -= length;
            _ = self.written.send(bytes[..length].to_vec());
            Ok(length)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn written_lines(written: &Receiver<Vec<u8>>) -> Vec<String> {
        let bytes: Vec<u8> = written.iter().flatten().collect();
        String::from_utf8(bytes).expect("UTF-8").lines().map(str::to_owned).collect()
    }

    #[test]
    fn the_guard_writes_all_lines() {
        let (may_write, gate) = channel();
        let (sent, written) = channel();
        let (mut buffer, guard) = start(SlowOutput { may_write: gate, written: sent }).expect("a thread");
        for number in 0..1000 {
            writeln!(buffer, "line {number}").expect("a line");
            buffer.flush().expect("a line");
        }
        drop(may_write);
        drop(guard);
        let expected: Vec<String> = (0..1000).map(|number| format!("line {number}")).collect();
        assert_eq!(written_lines(&written), expected);
    }

    #[test]
    fn the_guard_does_not_wait_for_an_output_that_blocks() {
        let (may_write, gate) = channel();
        let (sent, written) = channel();
        let (mut buffer, guard) = start(SlowOutput { may_write: gate, written: sent }).expect("a thread");
        writeln!(buffer, "line").expect("a line");
        buffer.flush().expect("a line");
        drop(guard);
        assert_eq!(written.try_iter().count(), 0);
        drop(may_write);
    }

    #[test]
    fn lines_that_a_full_disk_loses_are_counted() {
        let (sent, written) = channel();
        let (mut buffer, guard) = start(FullDisk { room: 10, written: sent }).expect("a thread");
        buffer.write_all(b"line 1\nline 2\nline 3\n").expect("lines");
        buffer.flush().expect("lines");
        drop(guard);
        let lines = written_lines(&written);
        assert_eq!(lines[..2], ["line 1", "lin"]);
        let report: serde_json::Value = serde_json::from_str(&lines[2]).expect("JSON");
        assert_eq!((&report["msg"], &report["lines"]), (&json!("log lines dropped"), &json!(2)));
        assert_eq!(lines.len(), 3);
    }

    #[test]
    fn lines_beyond_the_bound_are_counted() {
        let (may_write, gate) = channel();
        let (sent, written) = channel();
        let (mut buffer, guard) = start(SlowOutput { may_write: gate, written: sent }).expect("a thread");
        let line = [b"x".repeat(1023), b"\n".to_vec()].concat();
        // The thread may have taken the lines once, before the output blocked.
        let total = 2 * MAX_QUEUED_BYTES / line.len() + 10;
        for _ in 0..total {
            buffer.write_all(&line).expect("a line");
            buffer.flush().expect("a line");
        }
        drop(may_write);
        drop(guard);
        let lines = written_lines(&written);
        let (reports, kept): (Vec<_>, Vec<_>) = lines.iter().partition(|line| line.contains("log lines dropped"));
        let dropped: u64 = reports
            .iter()
            .map(|report| serde_json::from_str::<serde_json::Value>(report).expect("JSON")["lines"].as_u64().expect("a number"))
            .sum();
        assert!(dropped >= 10, "{dropped} lines dropped");
        assert_eq!(kept.len() as u64 + dropped, total as u64);
    }
}
