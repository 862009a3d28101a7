//! Command-line options of `boxoffice compare`.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{bail, ensure};
use boxoffice_openapi::{Contract, Operation};
use chrono::Utc;
use clap::Args;
use http::{HeaderName, HeaderValue};

use super::baseline::Baseline;
use super::comparison::{BuiltinServer, Comparison, is_builtin_document};
use super::currency;
use super::model::{Coverage, Report};
use super::operation_run::KEY_REJECTED;
use super::operation_under_test::first_tag;
use super::report;
use super::server_kind::ServerKind;
use super::target::Target;

/// Least similarity of a suggested name to an unknown one, from 0 to 1.
const MIN_SIMILARITY: f64 = 0.8;

/// Options of `boxoffice compare`.
#[derive(Debug, Args)]
pub struct CompareOptions {
    /// Address of the server to check, such as http://127.0.0.1:8080
    #[arg(long, env = "BOXOFFICE_TARGET", value_name = "URL")]
    target: String,
    /// Address of a second server, such as a mock, that must return the same statuses and shapes
    #[arg(long, env = "BOXOFFICE_REFERENCE", value_name = "URL")]
    reference: Option<String>,
    /// OpenAPI 3 document to compare with [default: the built-in contract]
    #[arg(long, env = "BOXOFFICE_SPEC", value_name = "FILE")]
    spec: Option<PathBuf>,
    /// Key of an administrator, a bearer token, or user:password for basic authentication; a mock accepts any key
    #[arg(long, env = "BOXOFFICE_KEY", hide_env_values = true, value_name = "KEY")]
    key: Option<String>,
    /// Key for the second server
    #[arg(long, env = "BOXOFFICE_REFERENCE_KEY", hide_env_values = true, value_name = "KEY")]
    reference_key: Option<String>,
    /// Header to add to each request, such as "X-Tenant: 7"; can be repeated
    #[arg(long, env = "BOXOFFICE_HEADER", value_parser = parse_header, value_delimiter = '\n', value_name = "NAME: VALUE")]
    header: Vec<(String, String)>,
    /// Check only these operations, by tag or operationId, separated by commas
    #[arg(long, env = "BOXOFFICE_ONLY", value_delimiter = ',', value_name = "NAME")]
    only: Vec<String>,
    /// Leave out these operations, by tag or operationId, separated by commas
    #[arg(long, env = "BOXOFFICE_SKIP", value_delimiter = ',', value_name = "NAME")]
    skip: Vec<String>,
    /// Folder for report.json, junit.xml and report.html
    #[arg(long, env = "BOXOFFICE_REPORT", value_name = "DIR")]
    report: Option<PathBuf>,
    /// Seed for generated requests [default: from the clock]
    #[arg(long, env = "BOXOFFICE_SEED", value_name = "N")]
    seed: Option<u64>,
    /// File of known findings, each with the day on which it expires
    #[arg(long, env = "BOXOFFICE_BASELINE", value_name = "FILE")]
    baseline: Option<PathBuf>,
    /// Number of findings to print; the report contains all
    #[arg(long, env = "BOXOFFICE_MAX_FINDINGS", default_value_t = 50, value_name = "N")]
    pub max_findings: usize,
}

/// The built-in document of the program that runs the comparison.
#[derive(Debug)]
pub struct BuiltinDocument {
    /// Default of `--spec`.
    pub contract: Arc<Contract>,
    /// The program's server.
    pub server: BuiltinServer,
    /// The codes of the currencies without decimals, whose amounts are whole.
    pub whole_currencies: Vec<&'static str>,
}

impl CompareOptions {
    /// Runs the comparison and writes the report's files.
    ///
    /// Calls `on_operation` with each operation, in the document's order, and the number of operations to check. After `stopped`
    /// is set, no more operations are checked, and the fixtures are deleted.
    ///
    /// # Errors
    /// Fails if a server can't be reached, an option is invalid, the report can't be written, no operation was checked and there are
    /// no findings, every operation rejected the key, or the comparison was stopped.
    pub async fn compare(
        &self,
        builtin: BuiltinDocument,
        stopped: &Arc<AtomicBool>,
        mut on_operation: impl FnMut(&Coverage, usize),
    ) -> anyhow::Result<Report> {
        if let Some(folder) = &self.report {
            report::create_folder(folder)?;
        }
        let contract = match &self.spec {
            Some(file) => Arc::new(Contract::read(file)?),
            None => builtin.contract,
        };
        let baseline = self.baseline.as_deref().map(Baseline::read).transpose()?.unwrap_or_default();
        let selected = select_operations(&contract, &self.only, &self.skip)?;
        let seed = self.seed.unwrap_or_else(|| Utc::now().timestamp_millis().unsigned_abs());
        let (mut target, mut reference) = self.connect(stopped).await?;
        let (mut contract, mut server) = (contract, builtin.server);
        if is_builtin_document(&contract) {
            if target.currency(&contract).await.is_some_and(|code| builtin.whole_currencies.contains(&code.as_str())) {
                contract = currency::with_whole_amounts(&contract)?;
                currency::require_whole_amounts(&mut server.emitted, &mut Vec::new());
            }
            for target in [Some(&mut target), reference.as_mut()].into_iter().flatten() {
                target.create_fixtures(&contract, seed, &selected).await?;
            }
        }
        let count = selected.len();
        let mut comparison = Comparison::new(contract, target, reference, seed, selected, server);
        let mut report = comparison.run(|coverage| on_operation(coverage, count)).await;
        let is_stopped = stopped.load(Ordering::Relaxed);
        let mut seen = report.operations.iter().flat_map(|operation| &operation.seen);
        let is_key_rejected = report.findings.iter().any(|finding| finding.summary == KEY_REJECTED);
        let is_key_rejected = is_key_rejected && seen.all(|status| *status == 401);
        report.notes.extend(clean_up(&mut comparison).await);
        let remaining = report.notes.join(" ");
        if is_stopped {
            report.notes.push("The comparison was stopped before it was complete.".to_owned());
        }
        let result = baseline.apply(report.findings, Utc::now().date_naive());
        (report.findings, report.known) = (result.findings, result.known);
        report.notes.extend(result.notes);
        if let Some(folder) = &self.report {
            report::write(folder, &report)?;
        }
        ensure!(!is_stopped, "it was stopped, and its resources were deleted. {remaining}");
        ensure!(!is_key_rejected, "every operation that was requested rejects the key with 401: see --key");
        if !report.findings.is_empty() {
            return Ok(report);
        }
        let selected = report.operations.iter().filter(|operation| comparison.selected.contains(&operation.operation));
        if let Some(reasons) = selected.map(|operation| operation.left_out.as_deref()).collect::<Option<Vec<_>>>() {
            bail!("no operation was checked: {}", reasons.join("; "));
        }
        Ok(report)
    }

    /// Connects to the target and the reference.
    async fn connect(&self, stopped: &Arc<AtomicBool>) -> anyhow::Result<(Target, Option<Target>)> {
        let mut target = Target::connect(&self.target, self.key.as_deref()).await?;
        let mut reference = match &self.reference {
            Some(address) => Some(Target::connect(address, self.reference_key.as_deref()).await?),
            None => None,
        };
        for target in [Some(&mut target), reference.as_mut()].into_iter().flatten() {
            target.client.stopped = Arc::clone(stopped);
            target.client.extra_headers.clone_from(&self.header);
        }
        Ok((target, reference))
    }
}

/// Deletes what a comparison created. Returns sentences about what remains.
async fn clean_up(comparison: &mut Comparison) -> Vec<String> {
    let (mut notes, kind) = (Vec::new(), comparison.kind());
    let Comparison { contract, target, reference, seed, .. } = comparison;
    if kind != ServerKind::StatelessMock {
        notes.extend(target.remove_created(contract, *seed).await);
    }
    notes.extend(target.clean_up().await);
    if let Some(reference) = reference {
        let on_reference = [reference.remove_created(contract, *seed).await, reference.clean_up().await].concat();
        notes.extend(on_reference.into_iter().map(|note| format!("On the reference: {note}")));
    }
    notes
}

/// Parses a header, such as `X-Tenant: 7`.
fn parse_header(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once(':').ok_or("write the name, a colon and the value, such as X-Tenant: 7")?;
    let (name, value) = (name.trim(), value.trim());
    HeaderName::from_bytes(name.as_bytes()).map_err(|_| format!("{name} is not a header name"))?;
    HeaderValue::from_str(value).map_err(|_| format!("the value of {name} contains characters that a header can't have"))?;
    Ok((name.to_owned(), value.to_owned()))
}

/// Returns the operationIds that `--only` and `--skip` select.
///
/// # Errors
/// Fails if a name is neither a tag nor an operationId of the document, with similar names, or if no operation is selected.
pub fn select_operations(contract: &Contract, only: &[String], skip: &[String]) -> anyhow::Result<BTreeSet<String>> {
    let names: BTreeSet<&str> = contract
        .operations()
        .flat_map(|operation| [first_tag(operation), &operation.id])
        .filter(|name| !name.is_empty())
        .collect();
    if let Some(unknown) = only.iter().chain(skip).find(|name| !names.contains(name.as_str())) {
        let is_similar = |name: &&str| strsim::jaro_winkler(&name.to_lowercase(), &unknown.to_lowercase()) >= MIN_SIMILARITY;
        let similar: Vec<_> = names.iter().copied().filter(is_similar).collect();
        let hint = if similar.is_empty() { String::new() } else { format!("; similar names are {}", similar.join(", ")) };
        bail!("{unknown} is neither a tag nor an operationId of the document{hint}");
    }
    let is_listed =
        |names: &[String], operation: &Operation| names.iter().any(|name| name == first_tag(operation) || *name == operation.id);
    let is_selected = |operation: &&Operation| (only.is_empty() || is_listed(only, operation)) && !is_listed(skip, operation);
    let selected: BTreeSet<_> = contract.operations().filter(is_selected).map(|operation| operation.id.clone()).collect();
    ensure!(contract.operations().next().is_some(), "the document has no operations");
    ensure!(!selected.is_empty(), "--only and --skip leave no operation of the document");
    Ok(selected)
}
