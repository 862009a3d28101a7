//! Failures that the proxy detects during a test: responses that violate the contract, and unexpected 500 responses.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use parking_lot::Mutex;

/// The failures of one test. Clones share their state.
#[derive(Clone, Default)]
pub struct TestFailures {
    failures: Arc<Mutex<Vec<String>>>,
    allows_server_errors: Arc<AtomicBool>,
}

impl TestFailures {
    /// Accepts 500 responses from now on, for tests that break the server on purpose.
    pub fn allow_server_errors(&self) {
        self.allows_server_errors.store(true, Ordering::Relaxed);
    }

    /// Records a 500 response, unless the test allows server errors.
    pub fn record_server_error(&self, request: &str) {
        if !self.allows_server_errors.load(Ordering::Relaxed) {
            self.record([format!("500 ({request}) in a test that doesn't call `allow_server_errors`")]);
        }
    }

    /// Records responses that violate the contract. Each is also printed at once, beside the test's own output.
    pub fn record(&self, failures: impl IntoIterator<Item = String>) {
        for failure in failures {
            eprintln!("wrong response: {failure}");
            self.failures.lock().push(failure);
        }
    }

    /// The recorded failures.
    pub fn list(&self) -> Vec<String> {
        self.failures.lock().clone()
    }
}

/// Fails the test when it is dropped after a failure was recorded, also if the test's own assertions passed.
pub struct FailureCheck(pub TestFailures);

impl Drop for FailureCheck {
    fn drop(&mut self) {
        let failures = self.0.list();
        // A panic during a panic would abort the process.
        if !thread::panicking() {
            assert!(failures.is_empty(), "wrong responses:\n{}", failures.join("\n"));
        }
    }
}
