//! Faulty servers: `boxoffice compare` finds each broken behavior of a server, and each comparison ends in a report.
//!
//! By default, one fault of each group is tried. `BOXOFFICE_COMPARE=full` tries all, and prints those found and missed by group.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use boxoffice::contract::builtin_document;
use boxoffice_conformance::model::Report;
use boxoffice_conformance::options::CompareOptions;
use clap::Parser;
use futures::StreamExt;

use super::proxy::{self, Fault};
use crate::support::{CONTRACT, TestApp};

mod access;
mod conditions;
mod lists;
mod preparation;
mod protocol;
mod states;
mod statuses;
mod values;
mod writes;

/// Number of faults that share a server.
const FAULTS_PER_SERVER: usize = 12;

/// Largest share of faults that may be missed.
const MAX_MISSED: f64 = 0.05;

#[derive(Parser)]
struct Command {
    #[command(flatten)]
    options: CompareOptions,
}

/// Runs a comparison as the command does.
pub async fn compare(target: &str, key: &str, arguments: &[&str]) -> anyhow::Result<Report> {
    let command = Command::parse_from(["compare", "--target", target, "--key", key, "--seed", "1"].iter().chain(arguments));
    command.options.compare(builtin_document()?, &Arc::new(AtomicBool::new(false)), |_, _| ()).await
}

fn table() -> Vec<Fault> {
    let groups = [
        writes::table(),
        lists::table(),
        values::table(),
        conditions::table(),
        states::table(),
        statuses::table(),
        protocol::table(),
        preparation::table(),
        access::table(),
    ];
    groups.into_iter().flatten().collect()
}

/// Returns the checks that found a fault, or a description of the missing report.
async fn find(app: &TestApp, fault: Arc<Fault>) -> (Arc<Fault>, Result<Vec<&'static str>, String>) {
    let address = proxy::start(&format!("http://{}", app.server), Arc::clone(&fault)).await;
    let only = fault.operations.join(",");
    let found = match compare(&address, &app.staff.key, &["--only", &only]).await {
        Ok(report) => {
            if std::env::var_os("BOXOFFICE_COMPARE_FINDINGS").is_some() {
                eprintln!("{} | {}: {:#?}", fault.group, fault.name, report.findings);
            }
            let mut checks: Vec<_> = report.findings.iter().map(|finding| finding.check.name()).collect();
            checks.dedup();
            Ok(checks)
        }
        Err(error) => Err(format!("{error:#}")),
    };
    (fault, found)
}

#[test]
fn faults_are_many_and_have_distinct_names() {
    let mut names: Vec<_> = table().iter().map(|fault| (fault.group, fault.name)).collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();

    for fault in table() {
        let unknown = fault.operations.iter().find(|operation| **operation != "*" && CONTRACT.operation(operation).is_none());
        assert_eq!(unknown, None, "{}", fault.name);
    }
    assert!(count >= 120, "{count}");
    assert_eq!(names.len(), count);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn faults_are_found_and_every_run_ends_in_a_report() {
    let is_full = std::env::var("BOXOFFICE_COMPARE").is_ok_and(|value| value == "full");
    let filter = std::env::var("BOXOFFICE_COMPARE_FAULT").unwrap_or_default();
    let mut by_group: BTreeMap<&str, Vec<Fault>> = BTreeMap::new();
    for fault in table().into_iter().filter(|fault| format!("{}: {}", fault.group, fault.name).contains(&filter)) {
        by_group.entry(fault.group).or_default().push(fault);
    }
    let faults: Vec<_> = match is_full || !filter.is_empty() {
        true => by_group.into_values().flatten().map(Arc::new).collect(),
        false => by_group.into_values().filter_map(|faults| faults.into_iter().next()).map(Arc::new).collect(),
    };
    let mut results = Vec::new();
    for faults in faults.chunks(FAULTS_PER_SERVER) {
        let app = TestApp::on_sqlite().await;
        let runs = futures::stream::iter(faults).map(|fault| find(&app, Arc::clone(fault))).buffered(2);
        results.extend(runs.collect::<Vec<_>>().await);
    }

    let mut groups: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for (fault, found) in &results {
        let (found_count, count) = groups.entry(fault.group).or_default();
        *count += 1;
        match found {
            Ok(checks) if !checks.is_empty() => {
                *found_count += 1;
                eprintln!("found   {:<12} {}: {}", fault.group, fault.name, checks.join(", "));
            }
            Ok(_) => eprintln!("MISSED  {:<12} {}", fault.group, fault.name),
            Err(error) => eprintln!("NO REPORT {:<12} {}: {error}", fault.group, fault.name),
        }
    }
    for (group, (found, count)) in &groups {
        eprintln!("{group:<14} {found:>3} of {count}");
    }
    let found = groups.values().map(|(found, _)| *found).sum::<usize>();
    eprintln!("{:<14} {found:>3} of {}", "all", results.len());
    assert!(results.iter().all(|(_, found)| found.is_ok()), "a run has no report");
    let missed = results.len() - found;
    assert!(missed as f64 <= results.len() as f64 * MAX_MISSED, "{missed} faults were missed");
}
