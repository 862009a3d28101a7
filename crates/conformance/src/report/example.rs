//! Example reports for tests.

use std::collections::BTreeMap;

use crate::model::{Check, Counts, Coverage, Finding, KnownFinding, Report};

/// Returns a report with three tags, findings, a known finding, an operation that was left out, and a note.
pub fn report() -> Report {
    let create = [(Check::Reachable, 1, 0), (Check::Body, 6, 2), (Check::Header, 6, 1)];
    let read = [(Check::Reachable, 1, 0), (Check::Body, 2, 0)];
    let ticket = [(Check::Reachable, 1, 0), (Check::Status, 2, 1)];
    Report {
        document: "boxoffice 3.0.0".to_owned(),
        target: "http://127.0.0.1:8080/v3".to_owned(),
        reference: Some("http://127.0.0.1:8081/v3".to_owned()),
        seed: 42,
        started: "2026-11-21T16:30:00Z".parse().unwrap(),
        seconds: 12.34,
        requests: 321,
        operations: vec![
            operation("POST", "/orders", "order_create", "Orders", &create, (&[201, 400, 409], &[201, 400, 500])),
            operation("GET", "/orders/{order}", "order_read", "Orders", &read, (&[200, 400, 404], &[200])),
            operation("GET", "/tickets/{ticket}", "ticket_read", "Tickets", &ticket, (&[200, 404], &[200, 404])),
            Coverage {
                left_out: Some("It was left out by --skip account_deletion_create.".to_owned()),
                ..operation("POST", "/tickets", "ticket_create", "Tickets", &[], (&[201], &[]))
            },
        ],
        findings: vec![
            Finding {
                check: Check::Status,
                pointer: "/paths/~1tickets~1{ticket}/get/responses".to_owned(),
                summary: "The status is 204, which the document doesn't declare.".to_owned(),
                expected: "200, 404".to_owned(),
                actual: "204 No Content".to_owned(),
                ..finding("ticket_read")
            },
            finding("order_create"),
            Finding { summary: "The property `total` is a number.".to_owned(), ..finding("order_create") },
            Finding {
                check: Check::Undocumented,
                pointer: "/paths".to_owned(),
                summary: "The server has `GET /debug`, which the document doesn't describe.".to_owned(),
                expected: String::new(),
                actual: "GET /debug returns 200".to_owned(),
                curl: String::new(),
                ..finding("")
            },
        ],
        known: vec![KnownFinding {
            finding: Finding {
                check: Check::Header,
                summary: "The header `Location` is missing.".to_owned(),
                ..finding("order_create")
            },
            reason: "Fixed in 3.1.".to_owned(),
            expires: "2026-12-31".parse().unwrap(),
        }],
        notes: vec!["The host H-100 could not be removed: its events have sold tickets.".to_owned()],
    }
}

/// Returns a report in which every text is this one, except the operationId of the operation that was left out.
pub fn report_of(text: &str) -> Report {
    let finding = Finding {
        check: Check::Body,
        operation: text.to_owned(),
        pointer: text.to_owned(),
        summary: text.to_owned(),
        expected: text.to_owned(),
        actual: text.to_owned(),
        curl: text.to_owned(),
        occurrences: 1,
    };
    let whole = Finding { operation: String::new(), ..finding.clone() };
    let checked = operation(text, text, text, text, &[(Check::Body, 1, 1)], (&[200], &[200]));
    let left_out = Coverage { left_out: Some(text.to_owned()), ..operation(text, text, "left_out", text, &[], (&[200], &[])) };
    Report {
        document: text.to_owned(),
        target: text.to_owned(),
        reference: Some(text.to_owned()),
        operations: vec![checked, left_out],
        known: vec![KnownFinding { finding: finding.clone(), reason: text.to_owned(), expires: "2026-12-31".parse().unwrap() }],
        findings: vec![finding, whole],
        notes: vec![text.to_owned()],
        ..report()
    }
}

fn operation(
    method: &str,
    path: &str,
    id: &str,
    tag: &str,
    checks: &[(Check, usize, usize)],
    (declared, seen): (&[u16], &[u16]),
) -> Coverage {
    let checks: BTreeMap<Check, Counts> = checks.iter().map(|&(check, made, failed)| (check, Counts { made, failed })).collect();
    Coverage {
        operation: id.to_owned(),
        method: method.to_owned(),
        path: path.to_owned(),
        tag: tag.to_owned(),
        checks,
        declared: declared.iter().copied().collect(),
        seen: seen.iter().copied().collect(),
        left_out: None,
        seconds: 1.5,
    }
}

fn finding(operation: &str) -> Finding {
    Finding {
        check: Check::Body,
        operation: operation.to_owned(),
        pointer: "/paths/~1orders/post/responses/201/content/application~1json/schema".to_owned(),
        summary: "The property `number` is missing.".to_owned(),
        expected: "an object with number, state, items and total".to_owned(),
        actual: "{\n  \"state\": \"Open\",\n  \"total\": 120.5\n}".to_owned(),
        curl: "curl -i http://127.0.0.1:8080/v3/orders -H \"X-API-Key: $KEY\" -H 'Content-Type: application/json' \\\n  -d \
               '{\"items\": {\"/sections/S-1\": 2}}'"
            .to_owned(),
        occurrences: 1,
    }
}
