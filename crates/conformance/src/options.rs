//! `boxoffice compare`, as it is asked for on the command line.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;
use anyhow::{bail, ensure};
use chrono::Utc;
use clap::Args;

use super::baseline::Baseline;
use super::comparison::{Comparison, is_own};
use super::model::{Coverage, Report};
use super::report;
use super::target::Target;
use super::operation_under_test::Subject;
use boxoffice_openapi::Contract;

/// How alike two names are, from 0 to 1, where one may have been meant for the other.
const ALIKE: f64 = 0.8;

/// What is compared with what, and where it is told.
#[derive(Debug, Args)]
pub struct CompareOptions {
    /// Address of the server to compare, such as http://127.0.0.1:8080
    #[arg(long, env = "BOXOFFICE_TARGET", value_name = "URL")]
    target: String,
    /// Address of a second server, such as a mock, that has to answer the same requests alike
    #[arg(long, env = "BOXOFFICE_REFERENCE", value_name = "URL")]
    reference: Option<String>,
    /// OpenAPI 3.0 document to compare with [default: the one that this program was built from]
    #[arg(long, env = "BOXOFFICE_SPEC", value_name = "FILE")]
    spec: Option<PathBuf>,
    /// Key to ask with, an administrator's; a mock takes any
    #[arg(long, env = "BOXOFFICE_KEY", hide_env_values = true, value_name = "KEY")]
    key: Option<String>,
    /// Key to ask the second server with
    #[arg(long, env = "BOXOFFICE_REFERENCE_KEY", hide_env_values = true, value_name = "KEY")]
    reference_key: Option<String>,
    /// Ask nothing but these operations, by tag or operationId, separated by commas
    #[arg(long, env = "BOXOFFICE_ONLY", value_delimiter = ',', value_name = "NAME")]
    only: Vec<String>,
    /// Leave these operations out, by tag or operationId, separated by commas
    #[arg(long, env = "BOXOFFICE_SKIP", value_delimiter = ',', value_name = "NAME")]
    skip: Vec<String>,
    /// Folder to write report.json, junit.xml and report.html to
    #[arg(long, env = "BOXOFFICE_REPORT", value_name = "DIR")]
    report: Option<PathBuf>,
    /// What generated requests follow from: the same seed makes the same ones [default: from the clock]
    #[arg(long, env = "BOXOFFICE_SEED", value_name = "N")]
    seed: Option<u64>,
    /// Findings that are known, each with a day on which it expires
    #[arg(long, env = "BOXOFFICE_BASELINE", value_name = "FILE")]
    baseline: Option<PathBuf>,
    /// How many findings to print; the report's files have all
    #[arg(long, env = "BOXOFFICE_MAX_FINDINGS", default_value_t = 50, value_name = "N")]
    pub max_findings: usize,
}

/// The document of the program that runs the comparison.
#[derive(Debug)]
pub struct BuiltinDocument {
    /// The document that is used if the options name none.
    pub contract: Contract,
    /// The document that the program's server emits for its endpoints.
    pub emitted: Value,
}

impl CompareOptions {
    /// Compares, and writes the report's files where they are asked for. `done` is told of each operation, in the document's
    /// order, and how many there are. As soon as `stopped` is set nothing more is asked, and what was made is removed.
    ///
    /// # Errors
    /// When it could not run: a server can't be reached or prepared, an option names nothing, nothing could be asked, or it was
    /// stopped.
    pub async fn compare(
        &self,
        builtin: BuiltinDocument,
        stopped: &Arc<AtomicBool>,
        mut done: impl FnMut(&Coverage, usize),
    ) -> anyhow::Result<Report> {
        let contract = match &self.spec {
            Some(file) => Contract::read(file)?,
            None => builtin.contract,
        };
        let baseline = self.baseline.as_deref().map(Baseline::read).transpose()?.unwrap_or_default();
        let asked = asked(&contract, &self.only, &self.skip)?;
        let seed = self.seed.unwrap_or_else(|| Utc::now().timestamp_millis().unsigned_abs());
        let mut target = Target::open(&self.target, self.key.as_deref()).await?;
        let mut reference = match &self.reference {
            Some(address) => Some(Target::open(address, self.reference_key.as_deref()).await?),
            None => None,
        };
        for side in [Some(&mut target), reference.as_mut()].into_iter().flatten() {
            side.server.stopped = Arc::clone(stopped);
        }
        if is_own(&contract) {
            target.create_fixtures(&contract, seed).await?;
            if let Some(side) = &mut reference
                && let Err(error) = side.create_fixtures(&contract, seed).await
            {
                let left = target.clean_up().await.join(" ");
                return Err(error.context(format!("on the reference. On the target: {left}")));
            }
        }
        let count = asked.len();
        let mut comparison = Comparison::new(contract, target, reference, seed, asked, &builtin.emitted);
        let mut report = comparison.run(|coverage| done(coverage, count)).await;
        let is_stopped = stopped.load(Ordering::Relaxed);
        report.notes.extend(comparison.target.clean_up().await);
        if let Some(side) = &mut comparison.reference {
            report.notes.extend(side.clean_up().await.into_iter().map(|note| format!("On the reference: {note}")));
        }
        ensure!(!is_stopped, "it was stopped, and what it had made is removed. {}", report.notes.join(" "));
        let applied = baseline.apply(report.findings, Utc::now().date_naive());
        (report.findings, report.known) = (applied.findings, applied.known);
        report.notes.extend(applied.notes);
        if let Some(folder) = &self.report {
            report::write(folder, &report)?;
        }
        let asked = report.operations.iter().filter(|operation| comparison.asked.contains(&operation.operation));
        if let Some(reasons) = asked.map(|operation| operation.left_out.as_deref()).collect::<Option<Vec<_>>>() {
            bail!("nothing was asked: {}", reasons.join("; "));
        }
        Ok(report)
    }
}

/// The operations that are asked, by operationId.
///
/// # Errors
/// When a name is neither a tag nor an operationId of the document; names those that are like it. When none is left.
pub fn asked(contract: &Contract, only: &[String], skip: &[String]) -> anyhow::Result<BTreeSet<String>> {
    let subjects: Vec<_> = contract.operations().map(|operation| Subject::new(contract, operation)).collect();
    let known: BTreeSet<&str> = subjects
        .iter()
        .flat_map(|subject| [subject.tag.as_str(), &subject.operation.id])
        .filter(|name| !name.is_empty())
        .collect();
    for name in only.iter().chain(skip) {
        if !known.contains(name.as_str()) {
            let like = |known: &&&str| strsim::jaro_winkler(&known.to_lowercase(), &name.to_lowercase()) >= ALIKE;
            let near: Vec<_> = known.iter().filter(like).copied().collect();
            let hint = if near.is_empty() { String::new() } else { format!("; near it are {}", near.join(", ")) };
            bail!("{name} is neither a tag nor an operationId of the document{hint}");
        }
    }
    let is_named =
        |names: &[String], subject: &Subject<'_>| names.iter().any(|name| *name == subject.tag || *name == subject.operation.id);
    let chosen = subjects.iter().filter(|subject| (only.is_empty() || is_named(only, subject)) && !is_named(skip, subject));
    let chosen: BTreeSet<_> = chosen.map(|subject| subject.operation.id.clone()).collect();
    ensure!(!chosen.is_empty(), "there is nothing to ask: --only and --skip leave no operation of the document");
    Ok(chosen)
}
