//! `admin jobs`.

use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::Subcommand;
use serde_json::{Value, json};

use super::output::Field;
use super::{Admin, describe, encode};
use crate::bootstrap;
use crate::clock_watch;
use crate::kernel::http::run_as_operator;
use crate::kernel::jobs::{self, JobRun};
use crate::kernel::outbox;
use crate::kernel::settings::{MailTransportSettings, RetentionSettings, Settings};
use crate::kernel::types::clock::Timestamp;
use crate::server::{APPLY_RETENTION, JOBS};
use crate::state::Ctx;

/// Hint with the command that runs a job with the settings of the server.
const SETTINGS_HINT: &str = "These are the settings of this command. If the server has others, such as those in \
                             /etc/boxoffice/environment, run it with them: `systemd-run --pipe --wait --quiet --uid=boxoffice \
                             --property=EnvironmentFile=-/etc/boxoffice/environment \
                             --setenv=BOXOFFICE_CONFIG=/etc/boxoffice/boxoffice.toml boxoffice admin …`";

const COLUMNS: [Field; 6] = [
    ("job", "/name"),
    ("every", "/every"),
    ("last run", "/finished"),
    ("outcome", "/outcome"),
    ("done", "/processed"),
    ("server", "/server"),
];

#[derive(Debug, Subcommand)]
pub enum JobsCommand {
    /// List all jobs with their last runs
    List,
    /// Run a job now, in this program and with its settings
    Run {
        /// Name of the job, as in `jobs list`
        #[arg(value_parser = JOBS.map(|job| job.name))]
        name: String,
        /// Confirm that the machine's clock is right, although it is much later than when a server last ran. What has expired is then
        /// deleted at once instead of after a day.
        #[arg(long)]
        accept_time: bool,
    },
}

pub async fn run(admin: &Admin, command: JobsCommand) -> anyhow::Result<()> {
    let app = &admin.operator.app;
    match command {
        JobsCommand::List => {
            let runs = jobs::last_runs(&mut app.db.read().await?).await?;
            let entry = |name: &str, seconds: u64| {
                let run = runs.iter().find(|run| run.name == name);
                let mut entry = json!({ "name": name, "every": every(seconds) });
                if let (Some(run), Some(properties)) = (run, entry.as_object_mut()) {
                    properties.extend(view(run));
                }
                entry
            };
            let entries: Vec<Value> = JOBS.iter().map(|job| entry(job.name, job.interval.as_secs())).collect();
            admin.output.page(&json!({ "total": entries.len(), "entries": entries }), &COLUMNS)
        }
        JobsCommand::Run { name, accept_time } => {
            let job = JOBS.into_iter().find(|job| job.name == name);
            let job = job.with_context(|| format!("no job has the name `{name}`"))?;
            if job.is_in_memory {
                let seconds = every(job.interval.as_secs());
                bail!(
                    "the work of this job is in the memory of each server, which does it every {seconds}: a command can't run it"
                );
            }
            if let Some(effect) = effect(&name, &app.settings) {
                admin.confirm(&format!("{effect}. {SETTINGS_HINT}"))?;
            }
            // Mails have tickets with codes, which other servers verify.
            bootstrap::store_ticket_key(app).await?;
            // Before the job runs, because it commits its changes one by one.
            let begin = |_: Ctx| async { Ok(()) };
            let begun = run_as_operator(app, "job_run", format!("/jobs/{}", encode(&name)), begin).await;
            begun.map_err(|error| describe(&error))?;
            if accept_time {
                clock_watch::accept_time(app).await?;
            }
            let run = jobs::run_now(&job, app).await;
            if !run.is_success {
                bail!("the job failed: {}", run.error);
            }
            let done = json!({ "name": name, "processed": run.processed });
            admin.output.done(&done, &format!("The job has done its work: {} items.", run.processed))
        }
    }
}

/// Returns what a job does by the settings of the command, if it can't be undone.
fn effect(job: &str, settings: &Settings) -> Option<String> {
    match job {
        outbox::DELIVER_MAIL => Some(match &settings.mail.transport {
            MailTransportSettings::Smtp(server) => {
                format!("sends the mails that are due to the mail server {}:{}", server.host, server.port)
            }
            MailTransportSettings::Folder(folder) => format!(
                "sends no mail, because no mail server is set: it moves the mails that are due from the outbox to files in {}",
                folder.display()
            ),
        }),
        APPLY_RETENTION => {
            let RetentionSettings { audit, audit_archive, sessions, codes, mail, unpaid_orders } = &settings.retention;
            let or_kept = |age: Option<Duration>| age.map_or_else(|| "never".to_owned(), days);
            let archive = audit_archive.as_ref().map(|folder| format!(", with a copy in {}", folder.display()));
            Some(format!(
                "deletes sessions {}, codes {}, mails {}, unpaid orders {} and entries of the audit log {}{}",
                days(*sessions),
                days(*codes),
                days(*mail),
                or_kept(*unpaid_orders),
                or_kept(*audit),
                archive.unwrap_or_default()
            ))
        }
        _ => None,
    }
}

fn days(age: Duration) -> String {
    match age.as_secs() / (24 * 60 * 60) {
        1 => "after a day".to_owned(),
        days => format!("after {days} days"),
    }
}

fn view(run: &JobRun) -> serde_json::Map<String, Value> {
    let outcome = if run.is_success { "done".to_owned() } else { format!("failed: {}", run.error) };
    let properties = json!({
        "finished": run.finished.map(Timestamp::format_rfc3339),
        "outcome": run.finished.map(|_| outcome),
        "processed": run.processed,
        "server": run.server,
    });
    properties.as_object().cloned().unwrap_or_default()
}

fn every(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min", seconds / 60),
        _ => format!("{} h", seconds / 3600),
    }
}
