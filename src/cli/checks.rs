//! The commands that look for differences: `drift`, `diff` and `compare`.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::anyhow;
use boxoffice_conformance::options::CompareOptions;
use boxoffice_conformance::progress::ComparisonProgress;
use boxoffice_conformance::report;
use boxoffice_openapi::diff::{self, Impact};
use boxoffice_openapi::{Contract, drift};
use clap::{Args, ValueEnum};

use super::signals::StopSignals;
use super::{print, print_error};
use crate::contract;
use crate::routes::routes;

#[derive(Debug, Args)]
pub struct DriftOptions {
    /// OpenAPI document to compare [default: the built-in contract]
    #[arg(long, env = "BOXOFFICE_SPEC", value_name = "FILE")]
    spec: Option<PathBuf>,
    /// Output format of the differences
    #[arg(long, env = "BOXOFFICE_FORMAT", default_value = "text")]
    format: DriftFormat,
}

#[derive(Debug, Args)]
pub struct DiffOptions {
    /// The older OpenAPI document
    old: PathBuf,
    /// The newer OpenAPI document [default: the built-in contract]
    new: Option<PathBuf>,
    /// Output format of the changes
    #[arg(long, default_value = "text")]
    format: DiffFormat,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum DiffFormat {
    /// A line for each change
    Text,
    /// An array with an object for each change
    Json,
    /// A section of the change log
    Markdown,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum DriftFormat {
    Text,
    Json,
}

/// Stops a comparison at the first stop signal, so that it deletes the data that it created. Returns at the second signal.
async fn stop_comparing(mut stop: StopSignals, stopped: &AtomicBool) -> anyhow::Error {
    for message in ["Stopping. The data created on the server is deleted first; a second signal leaves it there.", "Stopped."] {
        stop.recv().await;
        print_error(message);
        stopped.store(true, Ordering::Relaxed);
    }
    anyhow!("it was stopped by a second signal, and the data that it created stays on the server")
}

/// Runs a comparison and prints its findings. Returns whether there are none.
pub async fn compare(options: &CompareOptions) -> anyhow::Result<bool> {
    let builtin = contract::builtin_document()?;
    let mut progress = ComparisonProgress::default();
    let stopped = Arc::default();
    let compared = tokio::select! {
        compared = options.compare(builtin, &stopped, |coverage, count| progress.update(coverage, count)) => compared,
        second_signal = stop_comparing(StopSignals::listen()?, &stopped) => Err(second_signal),
    };
    progress.finish();
    let report = compared?;
    print(report::text(&report, options.max_findings).trim_end())?;
    Ok(report.findings.is_empty())
}

/// Prints all differences between contract and code. Returns whether there are none.
pub fn find_drift(options: &DriftOptions) -> anyhow::Result<bool> {
    let contract = options.spec.as_deref().map_or_else(contract::load, |file| Contract::read(file).map(Arc::new))?;
    let mut differences = drift::compare(&contract.document, &routes().openapi()?);
    differences.extend(drift::compare_policies(&contract.document, &contract::load()?.document));
    match options.format {
        DriftFormat::Json => print(serde_json::to_string_pretty(&differences)?)?,
        DriftFormat::Text => {
            for difference in &differences {
                print(difference)?;
            }
            print(format!("{} operations, {} differences", contract.operations().count(), differences.len()))?;
        }
    }
    Ok(differences.is_empty())
}

/// Prints all changes between two documents. Returns whether none is breaking.
pub fn find_changes(options: &DiffOptions) -> anyhow::Result<bool> {
    let old = Contract::read(&options.old)?;
    let new = options.new.as_deref().map_or_else(contract::load, |file| Contract::read(file).map(Arc::new))?;
    let changes = diff::diff(&old.document, &new.document);
    let count = |impact: Impact| changes.iter().filter(|change| change.impact == impact).count();
    match options.format {
        DiffFormat::Json => print(serde_json::to_string_pretty(&changes)?)?,
        DiffFormat::Markdown => print(diff::to_markdown(&changes).trim_end())?,
        DiffFormat::Text => {
            for change in &changes {
                print(change)?;
            }
            let [breaking, compatible, prose] = [Impact::Breaking, Impact::NonBreaking, Impact::Prose].map(count);
            print(format!("{breaking} breaking, {compatible} non-breaking, {prose} prose"))?;
        }
    }
    Ok(count(Impact::Breaking) == 0)
}
