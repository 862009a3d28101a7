//! The command `copy`.

use std::time::Instant;

use anyhow::bail;
use clap::Args;
use slog::Logger;

use super::backup::progress;
use super::print;
use super::signals::StopSignals;
use crate::config::{InvalidSettings, Setting, database_url, setting};
use crate::kernel::db::{self, DatabaseLocation};
use crate::kernel::private_files;

#[derive(Debug, Args)]
pub struct CopyOptions {
    /// The database to copy: `sqlite:PATH` or `postgres://USER@HOST/NAME`. All servers on it must be stopped
    #[arg(long, env = "BOXOFFICE_COPY_FROM", hide_env_values = true, value_name = "URL", value_parser = setting(database_url))]
    from: Setting<String>,
    /// The database to copy to, which must be empty; its tables are created
    #[arg(long, env = "BOXOFFICE_COPY_TO", hide_env_values = true, value_name = "URL", value_parser = setting(database_url))]
    to: Setting<String>,
}

/// Copies a database to another one.
pub async fn copy(options: &CopyOptions, log: &Logger) -> anyhow::Result<()> {
    let mut stop = StopSignals::listen()?;
    InvalidSettings::reject([options.from.problem(), options.to.problem()])?;
    let (from, to) = (options.from.get()?, options.to.get()?);
    private_files::set_umask();
    private_files::restrict_database(to, log);
    let started = Instant::now();
    let summary = tokio::select! {
        copied = db::copy(from, to, progress) => copied?,
        () = stop.recv() => bail!("stopped; run the same command again to continue"),
    };
    let seconds = started.elapsed().as_secs_f64();
    let new = summary.rows - summary.rows_before;
    print(format!(
        "Copied {} rows of {} tables ({new} of them now, in {seconds:.1} s with the comparison). The number of rows and the checksum \
         of each table are equal.",
        summary.rows, summary.tables
    ))?;
    print(next_steps(to.parse()?))
}

fn next_steps(target: DatabaseLocation) -> &'static str {
    match target {
        DatabaseLocation::Postgres(_) => {
            "Next: run `boxoffice check` on the copy and start the servers on it, not on the old database. Images, the key of the \
             mails and the key of the tickets are not in the database: keep --media, --mail-key-file and --ticket-key-file as they are. \
             For several servers, copy the images to a bucket, such as with `aws s3 sync DATA_DIR/media s3://BUCKET/PREFIX`, set --media \
             to it, and give each server the same key of the mails. Each server may have a ticket key of its own."
        }
        DatabaseLocation::Sqlite(_) => {
            "Next: run `boxoffice check` on the copy and start one server on it, not on the old database. Images, the key of the \
             mails and the key of the tickets are not in the database: keep --media, --mail-key-file and --ticket-key-file as they are, or \
             copy the images from the bucket to DATA_DIR/media, such as with `aws s3 sync s3://BUCKET/PREFIX DATA_DIR/media`."
        }
    }
}
