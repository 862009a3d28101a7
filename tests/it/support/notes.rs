//! What goes wrong during a test: panics on any of its threads, answers that the contract doesn't describe, and failures of the
//! server that nobody expects.
//!
//! A test's threads know its notes, so that neither a panic's text nor an answer comes up in the output of another test.

use std::any::Any;
use std::backtrace::{Backtrace, BacktraceStatus};
use std::cell::RefCell;
use std::env;
use std::panic;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use libtest_mimic::Completion;

use super::harness::Outcome;

thread_local! {
    static HERE: RefCell<Option<Notes>> = const { RefCell::new(None) };
}

/// The notes of one test.
#[derive(Clone, Default)]
pub struct Notes {
    panics: Arc<Mutex<Vec<String>>>,
    wrong_answers: Arc<Mutex<Vec<String>>>,
    expects_failures: Arc<AtomicBool>,
}

impl Notes {
    /// Those of the test that this thread works for; of none where it works for none.
    pub fn of_this_thread() -> Self {
        HERE.with_borrow(Option::clone).unwrap_or_default()
    }

    /// From here on this thread works for the test whose notes these are.
    pub fn belong_to_this_thread(&self) {
        HERE.set(Some(self.clone()));
    }

    /// From here on the server may fail: the test breaks what it stands on.
    pub fn expect_failures(&self) {
        self.expects_failures.store(true, Ordering::Relaxed);
    }

    /// Notes that the server failed, though it answered as the contract says: unless that is expected, the test will fail.
    pub fn failed(&self, request: impl FnOnce() -> String) {
        if !self.expects_failures.load(Ordering::Relaxed) {
            self.answered_wrong([format!("{} is a failure that the test doesn't expect", request())]);
        }
    }

    /// Notes answers that the contract doesn't describe: the test will fail.
    pub fn answered_wrong(&self, what: impl IntoIterator<Item = String>) {
        self.wrong_answers.lock().unwrap_or_else(PoisonError::into_inner).extend(what);
    }

    /// How the test ended, all told. A panic that didn't end the test itself was the server's to handle, and is of interest
    /// only when the test failed.
    pub fn outcome(&self, ended: Result<Completion, Box<dyn Any + Send>>) -> Outcome {
        let wrong = self.wrong_answers.lock().unwrap_or_else(PoisonError::into_inner);
        let mut text = wrong.iter().map(|wrong| format!("wrong answer: {wrong}")).collect::<Vec<_>>();
        match ended {
            Ok(completion) if text.is_empty() => return Ok(completion),
            Ok(_) => {}
            Err(_) => text.extend(self.panics.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned()),
        }
        Err(text.join("\n\n").into())
    }
}

/// Has panics noted for their test, with their place, and with a backtrace where `RUST_BACKTRACE` asks for it (the frames of
/// this repository, or all for `full`). Those of no test are printed as ever, and with `print` all are.
pub fn take_panics(print: bool) {
    let usual = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        let notes = HERE.with_borrow(Option::clone);
        if print || notes.is_none() {
            usual(info);
        }
        if let Some(notes) = notes {
            let text = format!("{info}\n{}", frames(&Backtrace::capture()));
            notes.panics.lock().unwrap_or_else(PoisonError::into_inner).push(text.trim_end().to_owned());
        }
    }));
}

fn frames(backtrace: &Backtrace) -> String {
    let text = if backtrace.status() == BacktraceStatus::Captured { backtrace.to_string() } else { String::new() };
    if env::var("RUST_BACKTRACE").is_ok_and(|wanted| wanted == "full") {
        return text;
    }
    // A frame is a line with its function and one with its place.
    let lines: Vec<_> = text.lines().collect();
    let ours = lines.windows(2).filter(|frame| frame[1].trim_start().starts_with("at ./"));
    ours.map(|frame| format!("{}\n{}\n", frame[0], frame[1])).collect()
}
