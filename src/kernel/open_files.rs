//! The limit of open files.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use slog::{Logger, info, warn};

/// Raises the soft limit of open files to the hard limit, because each connection takes an open file. Logs the change.
pub fn raise_limit(log: &Logger) {
    let before = getrlimit(Resource::Nofile);
    if before.current == before.maximum {
        return;
    }
    let [old, new] =
        [before.current, before.maximum].map(|limit| limit.map_or("unlimited".to_owned(), |limit| limit.to_string()));
    match setrlimit(Resource::Nofile, Rlimit { current: before.maximum, ..before }) {
        Ok(()) => info!(log, "raised the limit of open files"; "from" => old, "to" => new),
        Err(error) => warn!(log, "cannot raise the limit of open files"; "from" => old, "to" => new, "error" => %error),
    }
}
