//! The table of the jobs' last runs.

use boxoffice_http::error::Result;

use crate::kernel::db::{Reader, Tx};
use crate::kernel::types::clock::{MAX_LEAD, Timestamp};

/// The last run of a job.
#[derive(Debug, Clone, sqlx_macros::FromRow)]
pub struct JobRun {
    /// The job's name.
    pub name: String,
    /// The server or program that ran it.
    pub server: String,
    /// The start.
    pub started: Timestamp,
    /// The end; `None` until the first run has ended.
    pub finished: Option<Timestamp>,
    /// True if it has not failed.
    #[sqlx(rename = "succeeded")]
    pub is_success: bool,
    /// The size of the work that was done.
    pub processed: i64,
    /// The reason of a failure.
    pub error: String,
}

/// Returns the last run of each job that has one.
pub async fn last_runs(reader: &mut Reader) -> Result<Vec<JobRun>> {
    reader.query("select name, server, started, finished, succeeded, processed, error from job_runs order by name").all().await
}

/// Leases a job to this server until a time. Returns false if it is leased to another one. A lease that ends much later was written by
/// a server whose clock was ahead, and counts as ended.
pub async fn lease(tx: &mut Tx, job: &str, server: &str, now: Timestamp, until: Timestamp) -> Result<bool> {
    let lease = "insert into job_runs (name, server, started, finished, succeeded, processed, error, leased_until)
         values ($1, $2, $3, null, true, 0, '', $4)
         on conflict (name) do update set server = excluded.server, leased_until = excluded.leased_until
         where job_runs.leased_until <= $3 or job_runs.leased_until > $5 or job_runs.server = excluded.server";
    let leased = tx.query(lease).bind(job.to_owned()).bind(server.to_owned()).bind(now).bind(until);
    let leased = leased.bind(until.plus(MAX_LEAD)).rows_affected().await?;
    Ok(leased == 1)
}

/// Stores the outcome of a run. Changes no lease.
pub async fn record(tx: &mut Tx, run: &JobRun) -> Result<()> {
    tx.query(
        "insert into job_runs (name, server, started, finished, succeeded, processed, error, leased_until)
         values ($1, $2, $3, $4, $5, $6, $7, 0)
         on conflict (name) do update set server = case when job_runs.leased_until > excluded.started then job_runs.server
             else excluded.server end, started = excluded.started, finished = excluded.finished,
             succeeded = excluded.succeeded, processed = excluded.processed, error = excluded.error",
    )
    .bind(run.name.clone())
    .bind(run.server.clone())
    .bind(run.started)
    .bind(run.finished)
    .bind(run.is_success)
    .bind(run.processed)
    .bind(run.error.clone())
    .execute()
    .await
}

/// Ends the leases of a server that stops, so that another one runs its jobs at once.
pub async fn release(tx: &mut Tx, server: &str) -> Result<u64> {
    tx.query("update job_runs set leased_until = 0 where server = $1 and leased_until > 0")
        .bind(server.to_owned())
        .rows_affected()
        .await
}
