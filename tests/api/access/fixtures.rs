//! The callers of the access tests, and their resources.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, LazyLock};

use boxoffice::features::sales::{event_returns, mail};
use boxoffice::kernel::context::Context;
use boxoffice::provisioning;
use boxoffice_openapi::Scope;
use regex::{Captures, Regex};
use serde_json::{Value, json};

use super::callers::Caller::{self, *};
use super::rules::Row;
use crate::advertisements::publish;
use crate::review::submission_of;
use crate::support::{Event, Host, Operation, PASSWORD, Request, TestApp, User, code_in, entries_of, id_of, operations, section};
use crate::tokens::create_token;

/// The identifiers of one account's resources and of shared ones, by the names that the rules put in braces.
pub type ResourceIds = BTreeMap<&'static str, String>;

/// A server with all callers and resources.
pub struct AccessFixtures {
    pub app: TestApp,
    /// The resources of the owner, the sender and their host.
    pub ids: ResourceIds,
    /// The resources of the other host's administrator, who also buys and transfers tickets.
    pub others: ResourceIds,
    /// The callers with an active account.
    pub users: BTreeMap<Caller, User>,
    keys: HashMap<Caller, String>,
    operations: HashMap<String, &'static Operation>,
}

/// A resource's name in a rule.
static NAMES: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\{([a-z_]+)\}").unwrap());

/// The users who create the resources.
struct Owners<'a> {
    owner: &'a User,
    sender: &'a User,
    recipient: &'a User,
    host: &'a User,
    colleague: &'a User,
}

impl AccessFixtures {
    pub async fn create(app: TestApp) -> Self {
        // They would change rows between a snapshot and its comparison.
        app.stop_jobs().await;
        let mut users = BTreeMap::new();
        for (number, (caller, name)) in [
            (Stranger, "adjoa"),
            (Another, "esi"),
            (Owner, "kofi"),
            (Sender, "yaw"),
            (Recipient, "abena"),
            (HostAdministrator, "ama"),
            (FormerAdministrator, "kwame"),
            (OtherHost, "nana"),
        ]
        .into_iter()
        .enumerate()
        {
            users.insert(caller, create_user(&app, name, number).await);
        }
        let (deactivated, deleted) = (app.sign_up("kojo").await, app.sign_up("akua").await);
        let (ended, expired) = create_invalid_keys(&app, &users[&Owner]).await;
        let shared = create_shared(&app).await;

        let owners = |owner, sender, recipient, host, colleague| Owners { owner, sender, recipient, host, colleague };
        let [owner, sender, recipient, host, nana, esi] =
            [Owner, Sender, Recipient, HostAdministrator, OtherHost, Another].map(|caller| &users[&caller]);
        // The former administrator creates the host, and is removed by an administrator whom he has added.
        let first = &users[&FormerAdministrator];
        let mut ids = create_resources(&app, first, &owners(owner, sender, recipient, host, &deactivated), &shared).await;
        let mut others = create_resources(&app, nana, &owners(nana, nana, esi, nana, &deleted), &shared).await;

        let former = format!("/hosts/{}/administrators?account={}", ids["host"], users[&FormerAdministrator].number);
        app.delete(&host.key, &former).await.success();
        esi.buy(&[(&ids["sold_section"], 1)]).await;
        let joint = sender.buy(&[(&ids["sold_section"], 1), (&others["sold_section"], 1)]).await;
        others.insert("joint_order", joint.number.clone());
        ids.insert("joint_order", joint.number);
        let toggles = format!("/accounts/{}/toggles", deactivated.number);
        app.post_empty(&app.staff.key, &toggles).await.success();
        app.delete(&deleted.key, &format!("/accounts/{}", deleted.number)).await.success();

        let program = async |scope| provisioning::create_key(&app.state, "a program", scope, None, None).await.unwrap();
        let mut keys: HashMap<_, _> = users.iter().map(|(caller, user)| (*caller, user.key.clone())).collect();
        keys.extend([
            (EmptyKey, String::new()),
            (BlankKey, "  ".to_owned()),
            (MalformedKey, owner.key.to_uppercase()),
            (UnknownKey, "abcdefghijklmnopqrstuvwxyz012345".to_owned()),
            (EndedKey, ended),
            (ExpiredKey, expired),
            (Deactivated, deactivated.key),
            (Deleted, deleted.key),
            (Public, app.public_key.clone()),
            (Program, program(Scope::Customer).await),
            (StaffProgram, program(Scope::Administrator).await),
            (Redeemer, gate(&app, &ids["code"]).await),
            (OtherSection, gate(&app, &ids["other_code"]).await),
            (OtherEvent, gate(&app, &others["code"]).await),
            (Administrator, app.staff.key.clone()),
        ]);
        let operations = operations().iter().map(|operation| (operation.id.clone(), operation)).collect();
        Self { app, ids, others, users, keys, operations }
    }

    /// Returns a caller's index, from which their personal data is derived.
    pub fn index(&self, caller: Caller) -> usize {
        self.users.keys().position(|user| *user == caller).unwrap()
    }

    /// Returns the operation of a rule.
    pub fn operation(&self, row: &Row) -> &Operation {
        self.operations[row.operation]
    }

    /// Returns the body of a rule's request for these resources.
    pub fn body(&self, row: &Row, ids: &ResourceIds) -> Value {
        let operation = self.operation(row);
        if operation.body_schema().is_none() {
            return Value::Null;
        }
        let mut body = operation.body();
        let own: Value = serde_json::from_str(&fill(row.body, ids)).unwrap();
        own.as_object().unwrap().iter().for_each(|(name, value)| body[name] = value.clone());
        body
    }

    /// Returns the path and the body of a rule's request for these resources.
    pub fn request_text(&self, row: &Row, ids: &ResourceIds) -> String {
        format!("{} {}", fill(row.path, ids), self.body(row, ids))
    }

    /// Builds a rule's request for these resources with a caller's key.
    pub fn request(&self, row: &Row, ids: &ResourceIds, caller: Caller) -> Request {
        self.request_with(row, ids, caller, &self.body(row, ids))
    }

    /// Builds a rule's request with another body.
    pub fn request_with(&self, row: &Row, ids: &ResourceIds, caller: Caller, body: &Value) -> Request {
        let request = self.app.request(&self.operation(row).method, &fill(row.path, ids)).no_key();
        let request = if let Some(key) = self.keys.get(&caller) { request.key(key) } else { request };
        if body.is_null() { request } else { request.json(body) }
    }

    /// Establishes the state in which a rule's operation can succeed. Most operations need nothing.
    pub async fn prepare(&self, row: &Row, ids: &ResourceIds) {
        if row.operation == "account_delete" {
            // An account with tickets can't be deleted.
            let returns = format!("/orders/{}/returns", ids["order"]);
            self.app.post_empty(&self.app.staff.key, &returns).await.success();
        }
    }
}

/// Replaces the names in braces by the identifiers of these resources.
pub fn fill(text: &str, ids: &ResourceIds) -> String {
    let filled =
        NAMES.replace_all(text, |name: &Captures<'_>| ids.get(&name[1]).unwrap_or_else(|| panic!("{}", &name[1])).as_str());
    filled.into_owned()
}

/// Returns the names of the resources in a rule.
pub fn resource_names(row: &Row) -> Vec<&'static str> {
    let resource_names = [row.path, row.body].into_iter().flat_map(|text| NAMES.captures_iter(text));
    resource_names.filter_map(|name| name.get(1)).map(|name| name.as_str()).collect()
}

/// Creates a user with unique personal data.
async fn create_user(app: &TestApp, name: &str, number: usize) -> User {
    let user = app.sign_up(name).await;
    let particulars = json!({
        "lastName": format!("Of-{name}"), "phone": format!("+233 20 555 70{number:02}"), "dateOfBirth": format!("19{:02}-02-03", 61 + number),
        "firstAddressLine": format!("{number} {name} Lane"), "city": format!("{name}-town"),
    });
    app.put(&user.key, &format!("/accounts/{}", user.number), &particulars).await.success();
    user
}

/// Returns the key of an ended session of this user, and an expired integration key of their account.
async fn create_invalid_keys(app: &TestApp, user: &User) -> (String, String) {
    let ended = app.sign_in(&user.username, PASSWORD).await.unwrap().key;
    app.delete(&ended, "/sessions/active").await.success();
    let new = json!({ "name": "Spent", "role": "customer", "account": user.number, "expires": "2998-01-01T00:00:00Z" });
    let expired = app.post(&app.staff.key, "/integrations", &new).await.success();
    app.execute_sql("update api_keys set expires = created where name = 'Spent'").await;
    (ended, expired["key"].as_str().unwrap().to_owned())
}

/// Creates the resources of the platform.
async fn create_shared(app: &TestApp) -> ResourceIds {
    let (zone, spare_zone) = (app.create_zone(728, 90).await, app.create_zone(300, 250).await);
    let ids = [
        ("password", PASSWORD.to_owned()),
        ("region", app.create_region().await),
        ("spare_region", app.create_region().await),
        ("category", app.create_category().await),
        ("spare_category", app.create_category().await),
        ("venue", app.create_venue().await),
        ("spare_venue", app.create_venue().await),
        ("zone", zone),
        ("spare_zone", spare_zone),
    ];
    ids.into_iter().map(|(name, uri)| (name, id_of(&uri).to_owned())).collect()
}

/// Creates the resources of these owners. The first administrator of the host adds the others.
async fn create_resources(app: &TestApp, first: &User, owners: &Owners<'_>, shared: &ResourceIds) -> ResourceIds {
    let mut ids = shared.clone();
    create_account_resources(app, owners, &mut ids).await;
    create_event(app, first, owners, &mut ids).await;
    create_advertisements(app, owners, &mut ids).await;
    create_sales(app, owners, &mut ids).await;
    ids
}

/// Creates the resources of the owner's account.
async fn create_account_resources(app: &TestApp, owners: &Owners<'_>, ids: &mut ResourceIds) {
    let User { number, username, .. } = owners.owner;
    let email = format!("{username}@example.com");
    let session = app.sign_in(username, PASSWORD).await.unwrap();
    let integration = json!({ "name": format!("Kiosk of {username}"), "role": "customer", "account": number });
    let integration = app.post(&app.staff.key, "/integrations", &integration).await.success();
    let address = json!({ "email": email });
    let verification = app.post(&app.public_key, "/verifications", &address).await.success();
    let verification_code = code_in(&app.mail_to(&email, 1).await);
    let reset = app.post(&app.public_key, "/resets", &address).await.success();
    let reset_code = code_in(&app.mail_to(&email, 2).await);
    let venue = json!({
        "name": format!("Garden of {username}"), "region": format!("/regions/{}", ids["region"]), "address": "1 Garden Lane",
        "longitude": -0.2, "latitude": 5.55,
    });
    let venue = app.post(&owners.owner.key, "/venues", &venue).await.success();
    ids.extend([
        ("account", number.clone()),
        ("username", username.clone()),
        ("recipient", owners.recipient.number.clone()),
        ("colleague", owners.colleague.number.clone()),
        ("session", session.id.to_string()),
        ("integration", id_in(&integration)),
        ("verification", id_in(&verification)),
        ("verification_code", verification_code),
        ("reset", id_in(&reset)),
        ("reset_code", reset_code),
        ("pending_venue", id_in(&venue)),
        ("email", email),
    ]);
}

/// Creates the host with a listed event, a draft, a cancelled event whose orders were returned, and a submitted event.
async fn create_event(app: &TestApp, first: &User, owners: &Owners<'_>, ids: &mut ResourceIds) {
    let host =
        json!({ "name": format!("{} Presents", owners.host.username), "contact": "Front office", "email": "office@example.com" });
    let host = app.post(&first.key, "/hosts", &host).await.uri().to_owned();
    ids.insert("host", id_of(&host).to_owned());
    for appointed in [owners.host, owners.colleague].into_iter().filter(|user| user.number != first.number) {
        app.post(&first.key, &format!("{host}/administrators"), &json!({ "account": appointed.number })).await.success();
    }
    let host = Host { uri: host, owner: owners.host.clone() };
    let key = &host.owner.key;
    let event = create_draft(app, &host, "event", ids).await;
    let draft = create_draft(app, &host, "draft", ids).await;
    if let Some((_, secret)) = app.read(&draft.uri).await["banner"].as_str().and_then(|banner| banner.split_once("?secret=")) {
        ids.insert("draft_secret", secret.to_owned());
    }
    for (event, section_kind, modifier_kind) in [(&event, "section", "modifier"), (&draft, "draft_section", "draft_modifier")] {
        let section = app.add_section(event, &section("Spare", 0.0, 40)).await;
        let modifier = json!({ "name": "Group", "priceDelta": -1.0, "minOrder": 4 });
        let modifier = app.post(key, &format!("{section}/modifiers"), &modifier).await.success();
        ids.extend([(section_kind, id_of(&section).to_owned()), (modifier_kind, id_in(&modifier))]);
    }

    let cancelled = create_draft(app, &host, "cancelled", ids).await;
    app.list_event(&cancelled).await;
    app.post_empty(key, &format!("{}/cancellations", cancelled.uri)).await.success();
    let run = app.post(key, &format!("{}/returns", cancelled.uri), &json!({})).await.success();
    ids.insert("event_return", id_in(&run));
    let ctx = Context::immediate(Arc::clone(&app.state));
    while mail::report_events(&ctx).await.unwrap() > 0 {}
    while event_returns::return_next(&ctx).await.unwrap() > 0 {}

    let submitted = create_draft(app, &host, "submitted", ids).await;
    app.post_empty(key, &format!("{}/submissions", submitted.uri)).await.success();
    ids.insert("submission", submission_of(&submitted.uri).replace("/submissions/", ""));

    for (name, code, token, section_name) in
        [("sold_section", "code", "token", "Gold"), ("other_section", "other_code", "other_token", "Balcony")]
    {
        let section = app.add_section(&event, &section(section_name, 20.0, 40)).await;
        let created = create_token(&event, &[&section]).await;
        ids.extend([(name, section), (token, id_of(&created.self_).to_owned()), (code, created.code.to_string())]);
    }
    for (name, section_name) in [("full_section", "Lounge"), ("taken_section", "Terrace")] {
        let section = app.add_section(&event, &section(section_name, 0.0, 2)).await;
        ids.insert(name, id_of(&section).to_owned());
    }
    app.list_event(&event).await;
}

/// Creates an event without sections, whose title names its host's administrator and this kind.
async fn create_draft(app: &TestApp, host: &Host, kind: &'static str, ids: &mut ResourceIds) -> Event {
    let event = json!({
        "host": host.uri, "title": format!("{} {kind}", host.owner.username), "description": "Jazz, outdoors.",
        "type": "Standard", "public": true, "category": format!("/categories/{}", ids["category"]), "subcategory": "Jazz",
        "venue": format!("/venues/{}", ids["venue"]), "start": "2998-12-20T19:00", "end": "2998-12-20T23:00",
        "banner": example("event_create")["banner"],
    });
    let event = Event::new(host, app.post(&host.owner.key, "/events", &event).await.uri());
    ids.insert(kind, event.id.clone());
    event
}

/// Creates a listed advertisement and a draft.
async fn create_advertisements(app: &TestApp, owners: &Owners<'_>, ids: &mut ResourceIds) {
    let example = example("advertisement_create");
    for kind in ["advertisement", "draft_advertisement"] {
        let mut advertisement = example.clone();
        advertisement["name"] = format!("{kind} of {}", owners.host.username).into();
        advertisement["event"] = ids["event"].clone().into();
        advertisement["zones"] = json!([ids["zone"]]);
        let created = app.post(&owners.host.key, "/advertisements", &advertisement).await.success();
        ids.insert(kind, id_in(&created));
    }
    let uri = format!("/advertisements/{}", ids["advertisement"]);
    publish(app, &uri).await;
}

/// Creates the owner's orders and tickets, one of them redeemed, and the tickets that the sender transfers.
async fn create_sales(app: &TestApp, owners: &Owners<'_>, ids: &mut ResourceIds) {
    let gold = ids["sold_section"].clone();
    let key = &owners.owner.key;
    let order = owners.owner.buy(&[(&gold, 3)]).await.number;
    let open = owners.owner.order(&gold, 1).await.unwrap().number;
    let payments = app.read(&format!("/orders/{order}/payments")).await;
    let transactions = app.read("/transactions?records=100").await;
    let sold = entries_of(&transactions).last().unwrap();
    let tickets = app.wallet(owners.owner).await;
    let ticket = |index: usize| (id_in(&tickets[index]), tickets[index]["serial"].as_str().unwrap().to_owned());
    let ((ticket, serial), (_, used)) = (ticket(0), ticket(2));
    let admissions = format!("/events/{}/admissions", ids["event"]);
    let admitted = app.post(&owners.host.key, &admissions, &json!({ "serials": [used] })).await.success();
    let bought = owners.sender.buy(&[(&gold, 1)]).await.number;
    let offered = app.wallet(owners.sender).await.last().unwrap()["serial"].as_str().unwrap().to_owned();
    let transfer = json!({ "recipient": owners.recipient.number, "tickets": [offered] });
    let transfer = app.post(&owners.sender.key, "/transfers", &transfer).await.success();
    let section = |name: &str| format!("/events/{}/sections/{}", ids["event"], ids[name]);
    let full = section("full_section");
    let items = json!({ &full: 2, section("taken_section"): 2 });
    app.place_order(&app.staff.key, items).await.success();
    let waiting = format!("{full}/waiting-list");
    let waiting = app.post(key, &waiting, &json!({ "quantity": 1 })).await.success();
    let returned = owners.owner.buy(&[(&gold, 1)]).await;
    app.return_tickets(&owners.host.key, &returned.self_, json!({})).await.success();
    ids.extend([
        ("waiting_entry", id_in(&waiting)),
        ("entry", id_in(&app.read(&format!("{}/returns", returned.self_)).await["entries"][0])),
        ("returned_order", returned.number),
        ("order", order),
        ("open_order", open),
        ("payment", id_in(&payments["entries"][0])),
        ("transaction", id_in(sold)),
        ("ticket", ticket),
        ("serial", serial),
        ("used_serial", used),
        ("admission", id_in(&admitted[0])),
        ("senders_order", bought),
        ("offered_serial", offered),
        ("transfer", id_in(&transfer)),
    ]);
}

/// Returns the contract's example of an operation's body.
fn example(operation: &str) -> Value {
    operations().iter().find(|one| one.id == operation).unwrap().body()
}

/// Exchanges a token's code for a key.
async fn gate(app: &TestApp, code: &str) -> String {
    let key = app.get(&app.public_key, &format!("/tokens/{code}")).await.success();
    key["key"].as_str().unwrap().to_owned()
}

/// Returns the identifier of this resource.
fn id_in(resource: &Value) -> String {
    id_of(resource["self"].as_str().unwrap()).to_owned()
}
