//! Traces: spans of requests, statements, batches and mails, which a collector receives.

use std::net::TcpListener;

use boxoffice::features::sales::mail::deliver_due;
use boxoffice::kernel::db::statement_summary;
use boxoffice::kernel::settings::{LimitSettings, Settings};
use boxoffice_http::log;
use boxoffice_http::traces::{SpanKind, Tracer};
use futures::future::join_all;
use opentelemetry_proto::tonic::trace::v1::Span;
use serde_json::json;

use super::failures::LogBuffer;
use crate::support::collector::{Collector, attribute};
use crate::support::{TestApp, section, test_on};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT: &str = "00f067aa0ba902b7";

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns settings that trust proxies on this machine, such as the one of the tests.
fn trusting_settings(app: &TestApp) -> Settings {
    let limits = LimitSettings { trusted_proxies: "127.0.0.0/8".parse().unwrap(), ..LimitSettings::default() };
    Settings { limits, ..app.state.settings.clone() }
}

fn find<'a>(spans: &'a [Span], name: &str) -> &'a Span {
    let names = || spans.iter().map(|span| span.name.as_str()).collect::<Vec<_>>();
    spans.iter().find(|span| span.name == name).unwrap_or_else(|| panic!("no span {name}: {:?}", names()))
}

#[test_on(sqlite, postgres)]
async fn order_has_spans_of_batch_and_statements(app: TestApp) {
    let (_, ama, event) = app.create_sale(&[section("Floor", 10.0, 100)]).await;
    let collector = Collector::start().await;
    let (tracer, exporter) = Tracer::open(&collector.url, 1, &log::silent()).unwrap();
    let server = app.start_traced_server(trusting_settings(&app), tracer).await;
    let traceparent = format!("00-{TRACE}-{PARENT}-01");

    let order = app.request("POST", "/orders").at(server.address).key(&ama.key).header("traceparent", &traceparent);
    let order = order.json(&json!({ "items": { &event.sections[0]: 2 } })).send().await;
    let unknown = app.request("GET", "/tokens/4K7QW2MZ").at(server.address).header("traceparent", &traceparent).send().await;
    server.stop().await;
    exporter.stop().await;

    let spans: Vec<Span> = collector.spans().into_iter().filter(|span| hex(&span.trace_id) == TRACE).collect();
    let request = find(&spans, "POST /orders");
    assert_eq!((order.status, hex(&request.parent_span_id).as_str()), (201, PARENT));
    assert_eq!(order.header("traceparent"), format!("00-{TRACE}-{}-01", hex(&request.span_id)));
    let expected = [
        ("http.request.method", "POST"),
        ("http.route", "/orders"),
        ("http.response.status_code", "201"),
        ("boxoffice.operation", "order_create"),
        ("boxoffice.request", order.header("x-request-id")),
        ("url.scheme", "http"),
    ];
    assert_eq!(expected.map(|(name, _)| attribute(request, name)), expected.map(|(_, value)| value.to_owned()));
    let batch = find(&spans, "batch");
    assert_eq!((&batch.parent_span_id, attribute(batch, "boxoffice.batch.requests")), (&request.span_id, "1".to_owned()));
    let statements: Vec<&Span> = spans.iter().filter(|span| span.parent_span_id == batch.span_id).collect();
    let names: Vec<&str> = statements.iter().map(|span| span.name.as_str()).collect();
    assert!(names.contains(&"insert orders") && names.contains(&"insert audit") && names.last() == Some(&"commit"), "{names:?}");
    let insert = find(&spans, "insert orders");
    let is_postgres = app.database_url.starts_with("postgres");
    let (system, placeholder) = if is_postgres { ("postgresql", "$1") } else { ("sqlite", "(?,?,") };
    assert_eq!(attribute(insert, "db.system.name"), system);
    assert!(attribute(insert, "db.query.text").contains(placeholder), "{insert:?}");
    let lookup = find(&spans, "key lookup");
    assert!(spans.iter().any(|span| span.parent_span_id == lookup.span_id), "the look-up has a statement");
    let rejected = find(&spans, "GET /tokens/{code}");
    assert_eq!((unknown.status, attribute(rejected, "error.type").as_str()), (404, unknown.body["code"].as_str().unwrap()));
    // No secrets and no values.
    let text = format!("{spans:?}");
    for secret in [ama.key.as_str(), app.public_key.as_str(), "4K7QW2MZ", "@example.com"] {
        assert!(!text.contains(secret), "{secret}: {text}");
    }
}

#[test_on(sqlite, postgres)]
async fn trace_is_continued_for_trusted_proxy_only(app: TestApp) {
    let collector = Collector::start().await;
    let (tracer, exporter) = Tracer::open(&collector.url, 1, &log::silent()).unwrap();
    let trusting = app.start_traced_server(trusting_settings(&app), tracer.clone()).await;
    let untrusting = app.start_traced_server(app.state.settings.clone(), tracer).await;
    let time = async |address, traceparent: &str| {
        let response = app.request("GET", "/time").at(address).header("traceparent", traceparent).send().await;
        response.header("traceparent").to_owned()
    };

    let sampled = time(trusting.address, &format!("00-{TRACE}-{PARENT}-01")).await;
    let unsampled = time(trusting.address, &format!("00-{TRACE}-{PARENT}-00")).await;
    let malformed = time(trusting.address, "00-0-0-01").await;
    let of_client = time(untrusting.address, &format!("00-{TRACE}-{PARENT}-00")).await;
    for server in [trusting, untrusting] {
        server.stop().await;
    }
    exporter.stop().await;

    assert!(sampled.contains(TRACE) && sampled.ends_with("-01"), "{sampled}");
    assert!(unsampled.contains(TRACE) && unsampled.ends_with("-00"), "{unsampled}");
    for begun in [malformed, of_client] {
        assert!(!begun.contains(TRACE) && begun.ends_with("-01"), "{begun}");
    }
    let requests = collector.spans().into_iter().filter(|span| span.name == "GET /time").count();
    assert_eq!(requests, 3, "all but the one that the proxy has not sampled");
    let without = app.request("GET", "/time").header("traceparent", &sampled).send().await;
    assert!(!without.headers.contains_key("traceparent"), "traces are off by default");
}

#[test_on(sqlite, postgres)]
async fn mail_has_span(app: TestApp) {
    let ama = app.sign_up("ama").await;
    let collector = Collector::start().await;
    let (tracer, exporter) = Tracer::open(&collector.url, 1, &log::silent()).unwrap();
    let server = app.start_traced_server(trusting_settings(&app), tracer).await;

    // The job of the other server may deliver a mail first.
    let mut delivered = 0;
    for _ in 0..20 {
        let mail = app.request("POST", "/verifications").json(&json!({ "email": format!("{}@example.com", ama.username) }));
        assert_eq!(mail.send().await.status, 201);
        delivered += deliver_due(&server.state).await.unwrap();
        if delivered > 0 {
            break;
        }
    }
    server.stop().await;
    exporter.stop().await;

    let spans = collector.spans();
    assert!(delivered > 0 && !format!("{spans:?}").contains("@example.com"), "{spans:?}");
    assert!(!attribute(find(&spans, "send mail"), "boxoffice.mail").is_empty());
}

#[test_on(sqlite, postgres)]
async fn silent_collector_blocks_no_request(app: TestApp) {
    // Accepts connections and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1/traces", silent.local_addr().unwrap());
    let buffer = LogBuffer::default();
    let (tracer, exporter) = Tracer::open(&url, 1, &buffer.logger()).unwrap();
    let server = app.start_traced_server(trusting_settings(&app), tracer).await;

    // More spans than the queue has room for.
    let tracer = &server.state.tracer;
    (0..5000).for_each(|_| drop(tracer.root("filling", SpanKind::Internal)));
    let requests = (0..64).map(|_| app.request("GET", "/time").at(server.address).send());
    let responses = join_all(requests).await;
    server.stop().await;
    drop(silent);
    exporter.stop().await;

    assert!(responses.iter().all(|response| response.status == 200));
    assert!(buffer.text().contains("traces could not be sent"), "{}", buffer.text());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn log_names_reason_of_lost_traces_without_password() {
    let buffer = LogBuffer::default();
    let (tracer, exporter) = Tracer::open("http://me:sekrit@127.0.0.1:1/v1/traces", 1, &buffer.logger()).unwrap();

    drop(tracer.root("lost", SpanKind::Internal));
    exporter.stop().await;

    let text = buffer.text();
    assert!(text.contains("traces could not be sent") && text.contains("Connection refused"), "{text}");
    assert!(!text.contains("sekrit"), "{text}");
}

#[test]
fn names_operation_and_table() {
    for (text, expected) in [
        ("select id, number from orders where id = $1", "select orders"),
        ("insert into tickets (id) values ($1)", "insert tickets"),
        ("update sections set sold = $1", "update sections"),
        ("delete from outbox where id = $1", "delete outbox"),
        ("with statement_1 as (\ninsert into orders (id) select $1\n)\nupdate sections set sold = $2", "insert orders"),
        ("select count from (select 1)", "select"),
        ("commit", "commit"),
        ("", ""),
    ] {
        assert_eq!(statement_summary(text), expected, "{text}");
    }
}
