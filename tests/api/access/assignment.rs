//! Mass assignment: every request with a body is sent once as it is, and once with every property of every schema that is not its
//! own. The second request must have the effect and the response of the first.

use std::collections::BTreeSet;

use boxoffice_openapi::EXTENSIBLE_ENUM;
use regex::{Captures, Regex};
use serde_json::{Map, Value, json};

use super::fixtures::AccessFixtures;
use super::rules::{ROWS, Row};
use crate::support::{CONTRACT, Response, Snapshot, TestApp, test_on};

/// The columns of the tables, by their own names.
const COLUMNS: [&str; 16] = [
    "id",
    "account_id",
    "owner_id",
    "customer_id",
    "creator_id",
    "submitter_id",
    "host_id",
    "event_id",
    "is_admin",
    "password_hash",
    "token_id",
    "created",
    "modified",
    "ended",
    "hash",
    "number",
];

#[test_on(sqlite, postgres)]
async fn ignores_properties_outside_schema(app: TestApp) {
    let fixtures = AccessFixtures::create(app).await;
    let mut before = Snapshot::take(&fixtures.app).await;
    let volatile = VolatileValues::since(&fixtures);
    let mut wrong = Vec::new();
    let mut tried = 0;
    for row in ROWS.iter().filter(|row| fixtures.operation(row).body_schema().is_some()) {
        let bodies = [Map::new(), extra_properties(&fixtures, row, true), extra_properties(&fixtures, row, false)];
        tried += bodies.iter().map(Map::len).sum::<usize>();
        wrong.extend(find_difference(&fixtures, &mut before, &volatile, row, &bodies).await);
    }
    assert!(wrong.is_empty(), "{} do more than they should:\n{}", wrong.len(), wrong.join("\n"));
    assert!(tried > 5000, "only {tried}");
}

/// Sends a request with each of these properties in addition. Returns how the effects or the responses differ from those of the first.
async fn find_difference(
    fixtures: &AccessFixtures,
    before: &mut Snapshot,
    volatile: &VolatileValues,
    row: &Row,
    bodies: &[Map<String, Value>],
) -> Option<String> {
    let mut done: Vec<(String, Vec<String>)> = Vec::new();
    for extras in bodies {
        let mut body = fixtures.body(row, &fixtures.ids);
        body.as_object_mut().unwrap().extend(extras.clone());

        let response = fixtures.request_with(row, &fixtures.ids, row.allowed()[0], &body).send().await;

        assert!(response.status < 300, "{} with more: {response:?}", row.name());
        done.push((volatile.without(&normalized(&response)), volatile.without_all(before.changes().await)));
        before.restore().await;
    }
    let (plain, more) = done.split_first().unwrap();
    let other = more.iter().find(|other| *other != plain)?;
    Some(format!("{}\n  alone {plain:#?}\n  with more {other:#?}", row.name()))
}

fn normalized(response: &Response) -> String {
    format!("{} {}", response.status, response.body)
}

/// Returns every property that the request's schema doesn't have, with one of two values that would have an effect.
fn extra_properties(fixtures: &AccessFixtures, row: &Row, first: bool) -> Map<String, Value> {
    let own: BTreeSet<&String> =
        fixtures.operation(row).body_schema().unwrap()["properties"].as_object().unwrap().keys().collect();
    let schemas = CONTRACT.document["components"]["schemas"].as_object().unwrap().values();
    let properties = schemas.filter_map(|schema| schema["properties"].as_object()).flatten();
    let columns = COLUMNS.iter().map(|column| ((*column).to_owned(), json!(fixtures.others["host"].parse::<i64>().unwrap())));
    let all = properties.map(|(name, schema)| (name.clone(), value(fixtures, name, schema, first))).chain(columns);
    all.filter(|(name, _)| !own.contains(name)).collect()
}

/// Returns a value for a property of this name: another account's resource, or a value that this schema allows.
fn value(fixtures: &AccessFixtures, name: &str, schema: &Value, first: bool) -> Value {
    let others = &fixtures.others;
    match name {
        "role" => json!("administrator"),
        "status" if first => json!("Listed"),
        "status" => json!("Fulfilled"),
        "self" => json!(format!("/accounts/{}", others["account"])),
        "customer" | "account" | "owner" | "sender" | "recipient" | "patron" | "submitter" => json!(others["account"]),
        "host" => json!(format!("/hosts/{}", others["host"])),
        "event" => json!(others["draft"]),
        "order" | "payments" => json!(format!("/orders/{}", others["order"])),
        "section" => json!(others["sold_section"]),
        "number" | "id" => json!(others["order"]),
        _ => match (schema["type"].as_str(), &schema[EXTENSIBLE_ENUM]) {
            (_, Value::Array(values)) => if first { values.first() } else { values.last() }.cloned().unwrap_or_default(),
            (Some("boolean"), _) => json!(first),
            (Some("integer"), _) => json!(if first { 7 } else { 0 }),
            (Some("number"), _) => json!(if first { 0.01 } else { 0.0 }),
            (Some("array"), _) => json!([]),
            (Some("object"), _) => json!({}),
            _ => json!("2001-01-01T00:00:00+00:00"),
        },
    }
}

/// Replaces values that differ between two equal requests: identifiers, times and random values. Values that existed before, or
/// that the requests contain, are kept.
struct VolatileValues {
    pattern: Regex,
    /// The last identifier that existed before.
    last_id: String,
    known: BTreeSet<String>,
}

impl VolatileValues {
    fn since(fixtures: &AccessFixtures) -> Self {
        let ids = [&fixtures.ids, &fixtures.others].into_iter().flat_map(|ids| ids.values());
        let users = fixtures.users.values().map(|user| &user.number);
        // Encrypted mails, times, account numbers, serials, hashes of keys and passwords, keys, token codes, identifiers,
        // timestamps and secrets, mailed codes.
        let pattern = r"[A-Za-z0-9+/]{80,}={0,2}|202\d-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?|[A-Z]{2}-[A-Z0-9]{8}|[0-9A-Z]{6}-[0-9A-Z]{12}|\b[0-9a-f]{64}\b|\$argon2id(\$[A-Za-z0-9+/=,]+){4}|\b[a-z0-9]{32}\b|\b[0-9A-Z]{8}\b|\b\d{14,19}\b|\b\d{6}\b";
        Self {
            pattern: Regex::new(pattern).unwrap(),
            last_id: fixtures.app.state.clock.next_id().to_string(),
            known: ids.chain(users).cloned().collect(),
        }
    }

    fn without(&self, text: &str) -> String {
        // An identifier, or a timestamp, which starts like one. Longer values are secrets of images.
        let is_old = |found: &str| found.len() <= 16 && found.get(..14).is_some_and(|start| start <= self.last_id.as_str());
        let is_number = |found: &str| found.len() >= 14 && found.bytes().all(|byte| byte.is_ascii_digit());
        let keep = |found: &str| self.known.contains(found) || is_number(found) && is_old(found);
        let shown = |found: &Captures<'_>| if keep(&found[0]) { found[0].to_owned() } else { "#".to_owned() };
        self.pattern.replace_all(text, shown).into_owned()
    }

    fn without_all(&self, changes: Vec<String>) -> Vec<String> {
        // The version of the events is a random number.
        let without_version = |change: &str| change.split_once("event_changes: ").map(|(sign, _)| format!("{sign}event_changes"));
        let mut actual: Vec<_> =
            changes.iter().map(|change| without_version(change).unwrap_or_else(|| self.without(change))).collect();
        actual.sort_unstable();
        actual
    }
}
