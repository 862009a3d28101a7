//! References to other accounts' resources: a user who may call an operation for her own resources calls it with each identifier
//! and URI of the owner.
//!
//! Nana administers her own host, and buys and transfers tickets. In each of her requests, one of her identifiers at a time is
//! replaced by the owner's: in the path, in the query and in the body.

use std::collections::BTreeSet;

use serde_json::Value;

use super::callers::Caller;
use super::fixtures::{AccessFixtures, ResourceIds, resource_names};
use super::privacy::{ALL, Secrets, WHO};
use super::rules::{ROWS, Row};
use crate::support::{Response, Snapshot, TestApp, test_on};

/// Filters and references that the matrix doesn't have.
const ADDITIONAL_ROWS: &[Row] = &[
    more("event_admission_list", "/events/{event}/admissions?patron={account}"),
    more("event_admission_list", "/events/{event}/admissions?ticket={used_serial}"),
    more("event_admission_list", "/events/{event}/admissions?section={sold_section}"),
    more("event_sales_get", "/events/{event}/sales?section={sold_section}"),
    more("event_create", "/events").with(
        r#"{"host": "{host}", "category": "/categories/{category}", "venue": "/venues/{pending_venue}", "start": "2998-12-20T19:00",
            "end": "2998-12-20T23:00"}"#,
    ),
    more("event_update", "/events/{event}").with(r#"{"host": "{host}", "venue": "/venues/{pending_venue}"}"#),
    more("advertisement_update", "/advertisements/{draft_advertisement}").with(r#"{"event": "{draft}"}"#),
    more("order_return_create", "/orders/{order}/returns").with(r#"{"tickets": ["{serial}"]}"#),
    more("event_token_update", "/events/{event}/tokens/{other_token}").with(r#"{"sections": ["{other_section}"]}"#),
    more("host_list", "/hosts?account={account}"),
    more("event_list", "/events?host={host}&status=Draft"),
    more("advertisement_list", "/advertisements?host={host}&status=Draft"),
    more("host_advertisement_list", "/hosts/{host}/advertisements?event={draft}"),
    more("order_create", "/orders").with(r#"{"items": {"/sections/{draft_section}": 1}}"#),
    more("quote_create", "/quotes").with(r#"{"items": {"/sections/{draft_section}": 1}}"#),
    more("event_order_list", "/events/{event}/orders?customer={account}"),
    more("event_order_list", "/events/{event}/orders?number={order}"),
    more("event_order_list", "/events/{event}/orders?ticket={serial}"),
    more("host_order_list", "/hosts/{host}/orders?number={order}"),
    more("order_create", "/orders").with(r#"{"items": {"{sold_section}": 1}, "customer": "{account}"}"#),
];

const fn more(operation: &'static str, path: &'static str) -> Row {
    Row { operation, variant: "", path, body: "{}", may: &[&[Caller::OtherHost]], others: (403, ""), except: &[] }
}

impl Row {
    const fn with(mut self, body: &'static str) -> Self {
        self.body = body;
        self
    }
}

/// References to other accounts' resources that are allowed, and the reason.
const ALLOWED: &[(&str, &str, &str)] = &[
    ("host_get", "host", "every host can be read"),
    ("host_event_list", "host", "every host's listed events can be read"),
    ("host_list", "account", "the hosts of listed events are public"),
    ("event_list", "host", "listed events can be read; others are omitted"),
    ("advertisement_list", "host", "listed advertisements can be read; others are omitted"),
    ("event_get", "event", "a listed event can be read"),
    ("event_get", "cancelled", "a cancelled event can be read"),
    ("event_calendar_get", "event", "a listed event can be read"),
    ("section_shorthand_get", "section", "its sections can be read"),
    ("advertisement_get", "advertisement", "its advertisements can be read"),
    ("media_image_get", "event", "images are public"),
    ("order_create", "sold_section", "tickets are for sale to anyone"),
    ("order_create", "draft_section", "the id of a draft's section is known, and rejected"),
    ("quote_create", "sold_section", "tickets are for sale to anyone"),
    ("quote_create", "draft_section", "the id of a draft's section is known, and rejected"),
    ("event_complimentary_order_create", "account", "tickets can be given to anyone"),
    ("lookup_create", "username", "lookups reveal whether an account exists"),
    ("session_create", "username", "all users of the test have the same password"),
    ("verification_create", "email", "the code goes to the account's own address"),
    ("reset_create", "email", "the code goes to the account's own address"),
    ("verification_get", "verification", "its URI gives access"),
    ("verification_update", "verification", "its URI and the code give access; a wrong code counts as an attempt"),
    ("verification_update", "verification_code", "a wrong code counts as an attempt"),
    ("reset_get", "reset", "its URI gives access"),
    ("reset_update", "reset", "its URI and the code give access; a wrong code counts as an attempt"),
    ("reset_update", "reset_code", "a wrong code counts as an attempt"),
    ("token_authentication_get", "code", "the code gives access"),
    ("host_administrator_create", "account", "any account can become an administrator"),
    ("transfer_create", "recipient", "tickets can be offered to anyone"),
];

/// Properties of other accounts that may be readable through a reference.
const READABLE: &[(&str, &str, &[&str])] = &[
    ("event_complimentary_order_create", "account", WHO),
    ("host_administrator_create", "account", WHO),
    // The event of the section. Its id may be known, its content not.
    ("order_create", "draft_section", &["draft"]),
    ("quote_create", "draft_section", &["draft"]),
    ("reset_get", "reset", WHO),
    ("session_create", "username", ALL),
    ("transfer_create", "recipient", WHO),
    ("verification_get", "verification", WHO),
];

/// The caller, Nana.
const NANA: Caller = Caller::OtherHost;

#[test_on(sqlite, postgres)]
async fn rejects_references_to_foreign_resources(app: TestApp) {
    let fixtures = AccessFixtures::create(app).await;
    let mut before = Snapshot::take(&fixtures.app).await;
    let secrets = Secrets::of(&fixtures);
    let mut wrong = Vec::new();
    let mut tried = BTreeSet::new();
    for row in ROWS.iter().chain(ADDITIONAL_ROWS).filter(|row| may_call(row)) {
        for name in resource_names(row) {
            let theirs = &fixtures.ids[name];
            if theirs == &fixtures.others[name] {
                continue;
            }
            let is_free = ALLOWED.iter().any(|(operation, free, _)| (*operation, *free) == (row.operation, name));
            tried.insert((row.operation, name));

            let response = fixtures.request(row, &with(&fixtures.others, name, theirs), NANA).send().await;

            let about = format!("{} with another's {name} ({theirs}): {} {}", row.name(), response.status, response.body);
            let readable = READABLE.iter().find(|(operation, of, _)| (*operation, *of) == (row.operation, name));
            let mut seen = secrets.of_others(NANA, theirs, &response);
            seen.retain(|what| readable.is_none_or(|(.., open)| !open.contains(what)));
            if !seen.is_empty() {
                wrong.push(format!("{about}\n  reveals {seen:?}"));
            }
            let changes = before.changes().await;
            if !is_free && !changes.is_empty() {
                wrong.push(format!("{about}\n  has changed {changes:#?}"));
            }
            if !changes.is_empty() {
                before.restore().await;
            }
            // A 400, a 404 or an empty list doesn't reveal that the resource exists.
            if !is_free && response.status != 403 {
                let nothing = unknown_like(theirs);
                let unknown = fixtures.request(row, &with(&fixtures.others, name, &nothing), NANA).send().await;
                if without_identifier(&response, theirs) != without_identifier(&unknown, &nothing) {
                    wrong.push(format!(
                        "{about}\n  differs from the response for an unknown identifier: {} {}",
                        unknown.status, unknown.body
                    ));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} are wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert!(ALLOWED.iter().all(|(operation, free, _)| tried.contains(&(*operation, *free))), "every exception is used");
    assert!(tried.len() > 130, "only {}", tried.len());
}

/// Returns whether Nana may call the operation for her own resources.
fn may_call(row: &Row) -> bool {
    let others = [Caller::Administrator, Caller::StaffProgram, Caller::Redeemer, Caller::OtherSection];
    row.allowed().iter().any(|caller| !others.contains(caller))
}

fn with(ids: &ResourceIds, name: &'static str, thing: &str) -> ResourceIds {
    let mut ids = ids.clone();
    ids.insert(name, thing.to_owned());
    ids
}

/// Returns an identifier of the same shape that does not exist.
fn unknown_like(name: &str) -> String {
    let (start, end) = name.split_at(name.rfind('/').map_or(0, |slash| slash + 1));
    let other = |letter: char| match letter {
        '0'..='8' => char::from(letter as u8 + 1),
        '9' => '1',
        'A'..='Y' | 'a'..='y' => char::from(letter as u8 + 1),
        other => other,
    };
    // Not only the last digits: identifiers of neighbors differ little.
    format!("{start}{}", end.chars().map(other).collect::<String>())
}

/// Returns a response without the identifier that was requested.
fn without_identifier(response: &Response, name: &str) -> (u16, String) {
    (response.status, Value::to_string(&response.body).replace(name, ""))
}
