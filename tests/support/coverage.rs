//! Records which of the contract's declared responses the tests have seen, for `tests/coverage`.
//!
//! Each process appends an `operationId status` line to a file of its own when it sees a pair for the first time. The folder is
//! never cleared here, because several test processes write to it: remove it before a run whose coverage is to be judged.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use parking_lot::Mutex;

/// The folder of the files, below cargo's target folder.
const FOLDER: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/coverage");

/// The pairs of operationId and status that this process has seen, and the file to which it appends them.
type Recorded = (BTreeSet<(String, u16)>, Option<File>);

static SEEN: Mutex<Recorded> = Mutex::new((BTreeSet::new(), None));

/// Records a response that conforms to the contract.
pub fn record(operation: &str, status: u16) {
    let (seen, file) = &mut *SEEN.lock();
    if seen.insert((operation.to_owned(), status)) {
        let file = file.get_or_insert_with(|| {
            fs::create_dir_all(FOLDER).unwrap();
            let path = Path::new(FOLDER).join(std::process::id().to_string());
            File::options().append(true).create(true).open(path).unwrap()
        });
        file.write_all(format!("{operation} {status}\n").as_bytes()).unwrap();
    }
}
