//! The Grafana dashboard and the alert rules name metrics that the server has.

use std::collections::BTreeSet;
use std::sync::Arc;

use boxoffice::server::RunningApp;
use boxoffice_http::Listener;
use regex::Regex;
use serde_json::Value;

use super::http_limits::tls::Pair;
use crate::support::{ANY_PORT, TestApp, fetch_url, test_on};

const DASHBOARD: &str = include_str!("../../packaging/grafana/boxoffice.json");
const ALERTS: &str = include_str!("../../packaging/prometheus/boxoffice.rules.yml");

/// Returns the names of metrics and of labels in these expressions.
fn names(text: &str) -> (BTreeSet<String>, BTreeSet<String>) {
    let metric = Regex::new(r"\bboxoffice_[a-z_]+").unwrap();
    let label = Regex::new(r#"([a-z_]+)\s*(?:=~|!~|!=|=)\s*\\?""#).unwrap();
    let grouping = Regex::new(r"\b(?:by|without) \(([a-z_, ]*)\)").unwrap();
    let grouped = grouping.captures_iter(text).flat_map(|found| found[1].split(", ").map(str::to_owned).collect::<Vec<_>>());
    let metrics = metric.find_iter(text).map(|found| found.as_str().to_owned()).collect();
    (metrics, label.captures_iter(text).map(|found| found[1].to_owned()).chain(grouped).collect())
}

#[test_on(sqlite, postgres)]
async fn dashboard_and_alerts_name_existing_metrics(app: TestApp) {
    let folder = tempfile::tempdir().unwrap();
    let listener = Listener { certificate: Some(Pair::write(folder.path()).open()), ..ANY_PORT.into() };
    let platform = RunningApp::start_with_admin(Arc::clone(&app.state), listener, Some(ANY_PORT.into())).unwrap();
    let served = fetch_url(&format!("http://{}/time", app.server)).await;
    assert_eq!(served.status().as_u16(), 412);
    // A metric with labels is there after its first use.
    let (_, event) = app.sign_up_host("kofi", &[]).await;
    app.read(&event.uri).await;
    let metrics = fetch_url(&format!("http://{}/metrics", platform.admin_address().unwrap())).await;
    let metrics = metrics.text().await.unwrap();
    let dashboard: Value = serde_json::from_str(DASHBOARD).unwrap();

    let panels = dashboard["panels"].as_array().unwrap();
    let ids: BTreeSet<i64> = panels.iter().map(|panel| panel["id"].as_i64().unwrap()).collect();
    assert!(ids.len() == panels.len() && dashboard["uid"].is_string() && dashboard["schemaVersion"].is_i64());
    let alerts: Value = serde_yaml_ng::from_str(ALERTS).unwrap();
    let rules = alerts["groups"].as_array().unwrap().iter().flat_map(|group| group["rules"].as_array().unwrap());
    let mut expressions: Vec<String> = rules.map(|rule| rule["expr"].as_str().unwrap().to_owned()).collect();
    for panel in panels {
        for (field, is_right) in [
            ("title", panel["title"].is_string()),
            ("type", panel["type"].is_string()),
            ("datasource", panel["datasource"]["type"] == "prometheus"),
            ("gridPos", ["x", "y", "w", "h"].iter().all(|name| panel["gridPos"][name].is_u64())),
        ] {
            assert!(is_right, "{field} of {panel}");
        }
        for target in panel["targets"].as_array().unwrap() {
            expressions.push(target["expr"].as_str().unwrap().to_owned());
        }
    }
    // Samples of counters and histograms have suffixes.
    let types = metrics.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '));
    let existing: BTreeSet<String> = types
        .flat_map(|(name, kind)| match kind {
            "counter" => vec![format!("{name}_total")],
            "histogram" => ["bucket", "count", "sum"].map(|suffix| format!("{name}_{suffix}")).to_vec(),
            _ => vec![name.to_owned()],
        })
        .collect();
    let (used, labels) = names(&expressions.join("\n"));
    let unknown: Vec<&String> = used.difference(&existing).collect();
    assert!(used.len() > 10 && unknown.is_empty(), "{unknown:?} are not in {existing:#?}");
    // `le` is of every histogram. Prometheus adds the job and the instance, and renames the label `job` of a metric.
    let of_prometheus = ["exported_job", "instance", "job", "le"].map(str::to_owned);
    let without_sample: Vec<&String> =
        labels.iter().filter(|label| !of_prometheus.contains(label) && !metrics.contains(&format!("{label}=\""))).collect();
    assert!(without_sample.is_empty(), "no metric has the labels {without_sample:?}");
}
