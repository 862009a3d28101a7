//! Personal data: every response of the matrix is searched for the data of other accounts.

use std::collections::{BTreeMap, BTreeSet};

use super::callers::Caller;
use super::fixtures::AccessFixtures;
use super::rules::Row;
use crate::support::Response;

/// Personal data by account and property. Each text is unique.
pub struct Secrets(Vec<(Caller, &'static str, String)>);

/// An operation's row, its caller, and the property of another account in its response.
pub type Read = (&'static str, Caller, &'static str);

/// Personal data that other accounts may read, and the reason. Everything else is private.
const OPEN: &[(&str, &[&str], &str)] = &[
    ("account_export_get", &["draft"], "its audit log has the paths of the account's own requests, also of rejected ones"),
    ("session_create", ALL, "the password proves the identity"),
    ("verification", &["e-mail address"], "its URI gives access"),
    ("reset", &["e-mail address"], "its URI gives access"),
    ("host_administrator", WHO, "administrators of a host know each other"),
    ("order_return", WHO, "hosts know the recipients of refunds"),
    ("order_return", &["order"], "hosts know their orders"),
    ("order_get", WHO, "hosts know their customers"),
    ("order_get", &["order"], "hosts know their orders"),
    ("order_payment", &["order"], "hosts know their orders"),
    ("event_complimentary_order", WHO, "hosts know their customers"),
    ("event_order", WHO, "hosts know their customers"),
    ("event_order", &["order"], "hosts know their orders"),
    ("host_order", WHO, "hosts know their customers"),
    ("host_order", &["order"], "hosts know their orders"),
    ("section_waiting_entry", WHO, "hosts know who waits for their tickets"),
    ("ticket_get", TICKET, "hosts know their ticket holders"),
    ("ticket_get", &["order"], "a ticket names its order"),
    ("event_ticket", TICKET, "redeemers see the ticket holder"),
    ("event_ticket", &["order"], "a ticket names its order"),
    ("event_admission", TICKET, "redeemers see the ticket holder"),
    ("event_scan", TICKET, "redeemers see the ticket holder"),
    ("host_transaction", &["order"], "hosts know their orders"),
    ("transfer", WHO, "sender and recipient know each other"),
];
pub const ALL: &[&str] = &["e-mail address", "surname", "address", "date of birth", "telephone"];
pub const WHO: &[&str] = &["e-mail address", "surname"];
const TICKET: &[&str] = &["e-mail address", "surname", "serial"];

impl Secrets {
    pub fn of(fixtures: &AccessFixtures) -> Self {
        let mut secrets = Vec::new();
        for (caller, user) in &fixtures.users {
            let name = &user.username;
            secrets.extend([
                (*caller, "e-mail address", format!("{name}@example.com")),
                (*caller, "surname", format!("Of-{name}")),
                (*caller, "address", format!("{name} Lane")),
                (*caller, "address", format!("{name}-town")),
                (*caller, "date of birth", format!("\"dateOfBirth\":\"19{:02}-02-03\"", 61 + fixtures.index(*caller))),
                (*caller, "telephone", format!("+233 20 555 70{:02}", fixtures.index(*caller))),
                (*caller, "key", user.key.clone()),
            ]);
        }
        let ids = [
            (Caller::Owner, "serial", "serial"),
            (Caller::Owner, "serial", "used_serial"),
            (Caller::Sender, "serial", "offered_serial"),
            (Caller::HostAdministrator, "token's code", "code"),
            (Caller::HostAdministrator, "token's code", "other_code"),
            (Caller::HostAdministrator, "draft", "draft"),
            (Caller::HostAdministrator, "draft", "draft_secret"),
            (Caller::HostAdministrator, "draft", "submitted"),
            (Caller::HostAdministrator, "draft", "draft_advertisement"),
            (Caller::Owner, "draft", "pending_venue"),
            (Caller::Owner, "order", "order"),
            (Caller::Owner, "order", "open_order"),
        ];
        let username = |caller: Caller| fixtures.users[&caller].username.as_str();
        let (host, owner) = (username(Caller::HostAdministrator), username(Caller::Owner));
        secrets.extend([
            (Caller::HostAdministrator, "draft's name", format!("{host} draft")),
            (Caller::HostAdministrator, "draft's name", format!("{host} submitted")),
            (Caller::HostAdministrator, "draft's name", format!("draft_advertisement of {host}")),
            (Caller::Owner, "draft's name", format!("Garden of {owner}")),
        ]);
        secrets.extend(ids.map(|(whose, what, name)| (whose, what, fixtures.ids[name].clone())));
        Self(secrets)
    }

    /// Returns the other accounts' data in a response that was not in the request.
    pub fn of_others(&self, caller: Caller, request: &str, response: &Response) -> BTreeSet<&'static str> {
        let text = response.body.to_string();
        let is_revealed = |secret: &str| text.contains(secret) && !request.contains(secret);
        self.0.iter().filter(|(whose, _, secret)| *whose != caller && is_revealed(secret)).map(|(_, what, _)| *what).collect()
    }

    /// Returns the same for the response to a rule's request. Staff may read everything.
    pub fn in_response(&self, row: &Row, caller: Caller, request: &str, response: &Response) -> Vec<Read> {
        if [Caller::StaffProgram, Caller::Administrator].contains(&caller) {
            return Vec::new();
        }
        self.of_others(caller, request, response).into_iter().map(|what| (row.operation, caller, what)).collect()
    }
}

/// Returns the reads that are not allowed.
pub fn forbidden_reads(read: &[Read]) -> Vec<&Read> {
    let is_open =
        |(operation, _, what): &&Read| OPEN.iter().any(|(open, whats, _)| operation.starts_with(open) && whats.contains(what));
    read.iter().filter(|read| !is_open(read)).collect()
}

/// Returns the table of all reads in Markdown.
pub fn table(read: &[Read]) -> String {
    let mut rows: BTreeMap<(&str, &str), BTreeSet<Caller>> = BTreeMap::new();
    for (operation, caller, what) in read {
        rows.entry((operation, what)).or_default().insert(*caller);
    }
    let mut text = "# Personal data of other accounts\n\n\
        Data of accounts other than the caller's in the responses to the requests of `tests/api/access/rules.rs`, unless it was in the request.\n\
        `tests/api/access/callers.rs` describes the callers. Staff may read everything.\n\n\
        `BOXOFFICE_WRITE=1 cargo test --test api access::matrix::` updates this file.\n\n\
        | operation | data | callers |\n| --- | --- | --- |\n"
        .to_owned();
    for ((operation, what), callers) in rows {
        let callers: Vec<_> = callers.iter().map(|caller| format!("`{caller:?}`")).collect();
        text.push_str(&format!("| `{operation}` | {what} | {} |\n", callers.join(" ")));
    }
    text
}
