//! Who plays in the sweeps over all operations, and what is whose.

use std::collections::{BTreeMap, HashMap};
use std::sync::LazyLock;

use regex::{Captures, Regex};
use serde_json::{Value, json};

use super::callers::Caller::{self, *};
use super::rules::Row;
use crate::review::submission_of;
use crate::support::{Operation, PASSWORD, Response, TestApp, User, code_in, operations};

/// What there is of somebody's, and what everyone shares, by the names that the rows put into braces.
pub type Things = BTreeMap<&'static str, String>;

/// A app with everyone in it.
pub struct Cast {
    pub app: TestApp,
    /// Everything of the owner's, the sender's and their host's.
    pub things: Things,
    /// Everything of her who administers the other host, and buys and offers tickets herself.
    pub others: Things,
    /// Whoever has an account that counts.
    pub people: BTreeMap<Caller, User>,
    keys: HashMap<Caller, String>,
    operations: HashMap<String, Operation>,
}

/// The name of a thing, in a row.
static NAMES: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\{([a-z_]+)\}").unwrap());

/// Who makes things.
struct Makers<'a> {
    owner: &'a User,
    sender: &'a User,
    recipient: &'a User,
    host: &'a User,
    colleague: &'a User,
}

impl Cast {
    pub async fn gather(app: TestApp) -> Self {
        let mut people = BTreeMap::new();
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
            people.insert(caller, somebody(&app, name, number).await);
        }
        let (deactivated, deleted) = (app.sign_up("kojo").await, app.sign_up("akua").await);
        let (ended, expired) = spent_keys(&app, &people[&Owner]).await;
        let shared = shared(&app).await;

        let makers = |owner, sender, recipient, host, colleague| Makers { owner, sender, recipient, host, colleague };
        let [owner, sender, recipient, host, nana, esi] =
            [Owner, Sender, Recipient, HostAdministrator, OtherHost, Another].map(|caller| &people[&caller]);
        // The former administrator makes the host, and is removed by one of those whom he has appointed.
        let first = &people[&FormerAdministrator];
        let mut things = self::things(&app, first, &makers(owner, sender, recipient, host, &deactivated), &shared).await;
        let others = self::things(&app, nana, &makers(nana, nana, esi, nana, &deleted), &shared).await;

        let former = format!("/hosts/{}/administrators?account={}", things["host"], people[&FormerAdministrator].number);
        done(&app, &host.key, "DELETE", &former, &Value::Null).await;
        buy(&app, &esi.key, &[&things["sold_section"]]).await;
        let joint = buy(&app, &sender.key, &[&things["sold_section"], &others["sold_section"]]).await;
        things.insert("joint_order", joint);
        let toggles = format!("/accounts/{}/toggles", deactivated.number);
        done(&app, &app.staff.key, "POST", &toggles, &Value::Null).await;
        done(&app, &deleted.key, "DELETE", &format!("/accounts/{}", deleted.number), &Value::Null).await;

        let mut keys: HashMap<_, _> = people.iter().map(|(caller, person)| (*caller, person.key.clone())).collect();
        keys.extend([
            (EmptyKey, String::new()),
            (MalformedKey, owner.key.to_uppercase()),
            (UnknownKey, "abcdefghijklmnopqrstuvwxyz012345".to_owned()),
            (EndedKey, ended),
            (ExpiredKey, expired),
            (Deactivated, deactivated.key),
            (Deleted, deleted.key),
            (Public, app.public_key.clone()),
            (Redeemer, gate(&app, &things["code"]).await),
            (OtherSection, gate(&app, &things["other_code"]).await),
            (OtherEvent, gate(&app, &others["code"]).await),
            (Administrator, app.staff.key.clone()),
        ]);
        let operations = operations().into_iter().map(|operation| (operation.id.clone(), operation)).collect();
        Self { app, things, others, people, keys, operations }
    }

    /// The place of somebody among the people, from which their particulars come.
    pub fn position(&self, caller: Caller) -> usize {
        self.people.keys().position(|person| *person == caller).unwrap()
    }

    /// The contract's operation that a row asks.
    pub fn operation(&self, row: &Row) -> &Operation {
        &self.operations[row.operation]
    }

    /// The body that a row sends about these things.
    pub fn body(&self, row: &Row, things: &Things) -> Value {
        let operation = self.operation(row);
        if operation.body_schema().is_none() {
            return Value::Null;
        }
        let mut body = operation.body();
        let own: Value = serde_json::from_str(&fill(row.body, things)).unwrap();
        own.as_object().unwrap().iter().for_each(|(name, value)| body[name] = value.clone());
        body
    }

    /// What a row says in its path and body of these things.
    pub fn told(&self, row: &Row, things: &Things) -> String {
        format!("{} {}", fill(row.path, things), self.body(row, things))
    }

    /// What a row about these things is answered with somebody's key.
    pub async fn ask(&self, row: &Row, things: &Things, caller: Caller) -> Response {
        self.send(row, things, caller, &self.body(row, things)).await
    }

    /// The same with another body.
    pub async fn send(&self, row: &Row, things: &Things, caller: Caller, body: &Value) -> Response {
        let request = self.app.request(&self.operation(row).method, &fill(row.path, things)).no_key();
        let request = if let Some(key) = self.keys.get(&caller) { request.key(key) } else { request };
        if body.is_null() { request.send().await } else { request.json(body).send().await }
    }

    /// Does what has to be done before an operation can succeed on these things. Nearly always that is nothing.
    pub async fn prepare(&self, row: &Row, things: &Things) {
        if row.operation == "account_delete" {
            // An account that holds tickets stays.
            let returns = format!("/orders/{}/returns", things["order"]);
            done(&self.app, &self.app.staff.key, "POST", &returns, &Value::Null).await;
        }
    }
}

/// A text with these things in the place of their names.
pub fn fill(text: &str, things: &Things) -> String {
    let filled =
        NAMES.replace_all(text, |name: &Captures<'_>| things.get(&name[1]).unwrap_or_else(|| panic!("{}", &name[1])).as_str());
    filled.into_owned()
}

/// The names of the things that a row asks for.
pub fn named(row: &Row) -> Vec<&'static str> {
    let named = [row.path, row.body].into_iter().flat_map(|text| NAMES.captures_iter(text));
    named.filter_map(|name| name.get(1)).map(|name| name.as_str()).collect()
}

/// Somebody with particulars that nobody else has.
async fn somebody(app: &TestApp, name: &str, number: usize) -> User {
    let person = app.sign_up(name).await;
    let particulars = json!({
        "lastName": format!("Of-{name}"), "phone": format!("+233 20 555 70{number:02}"), "dateOfBirth": format!("19{:02}-02-03", 61 + number),
        "firstAddressLine": format!("{number} {name} Lane"), "city": format!("{name}-town"),
    });
    done(app, &person.key, "PUT", &format!("/accounts/{}", person.number), &particulars).await;
    person
}

/// The key of a session of this person's that has been ended, and that of an integration for their account that has expired.
async fn spent_keys(app: &TestApp, person: &User) -> (String, String) {
    let ended = app.sign_in(&person.username, PASSWORD).await.unwrap().key;
    done(app, &ended, "DELETE", "/sessions/active", &Value::Null).await;
    let new = json!({ "name": "Spent", "role": "customer", "account": person.number, "expires": "2998-01-01T00:00:00Z" });
    let expired = done(app, &app.staff.key, "POST", "/integrations", &new).await;
    app.execute_sql("update api_keys set expires = created where name = 'Spent'").await;
    (ended, expired["key"].as_str().unwrap().to_owned())
}

/// What belongs to the platform.
async fn shared(app: &TestApp) -> Things {
    let (zone, spare_zone) = (app.create_zone(728, 90).await, app.create_zone(300, 250).await);
    let things = [
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
    things.into_iter().map(|(name, uri)| (name, last(&uri))).collect()
}

/// What the makers make. The first administrator of the host appoints the others.
async fn things(app: &TestApp, first: &User, makers: &Makers<'_>, shared: &Things) -> Things {
    let mut things = shared.clone();
    account(app, makers, &mut things).await;
    event(app, first, makers, &mut things).await;
    advertisements(app, makers, &mut things).await;
    sales(app, makers, &mut things).await;
    things
}

/// What there is of the owner's account.
async fn account(app: &TestApp, makers: &Makers<'_>, things: &mut Things) {
    let User { number, username, .. } = makers.owner;
    let email = format!("{username}@example.com");
    let session = app.sign_in(username, PASSWORD).await.unwrap();
    let integration = json!({ "name": format!("Kiosk of {username}"), "role": "customer", "account": number });
    let integration = done(app, &app.staff.key, "POST", "/integrations", &integration).await;
    let address = json!({ "email": email });
    let verification = done(app, &app.public_key, "POST", "/verifications", &address).await;
    let verification_code = code_in(&app.mail_to(&email, 1).await);
    let reset = done(app, &app.public_key, "POST", "/resets", &address).await;
    let reset_code = code_in(&app.mail_to(&email, 2).await);
    let venue = json!({
        "name": format!("Garden of {username}"), "region": format!("/regions/{}", things["region"]), "address": "1 Garden Lane",
        "longitude": -0.2, "latitude": 5.55,
    });
    let venue = done(app, &makers.owner.key, "POST", "/venues", &venue).await;
    things.extend([
        ("account", number.clone()),
        ("username", username.clone()),
        ("recipient", makers.recipient.number.clone()),
        ("colleague", makers.colleague.number.clone()),
        ("session", session.id.to_string()),
        ("integration", uri_end(&integration)),
        ("verification", uri_end(&verification)),
        ("verification_code", verification_code),
        ("reset", uri_end(&reset)),
        ("reset_code", reset_code),
        ("pending_venue", uri_end(&venue)),
        ("email", email),
    ]);
}

/// The host with a listed event, a draft and an event that is under review.
async fn event(app: &TestApp, first: &User, makers: &Makers<'_>, things: &mut Things) {
    let host =
        json!({ "name": format!("{} Presents", makers.host.username), "contact": "Front office", "email": "office@example.com" });
    let host = done(app, &first.key, "POST", "/hosts", &host).await;
    things.insert("host", uri_end(&host));
    for appointed in [makers.host, makers.colleague].into_iter().filter(|person| person.number != first.number) {
        let administrators = format!("/hosts/{}/administrators", things["host"]);
        done(app, &first.key, "POST", &administrators, &json!({ "account": appointed.number })).await;
    }
    let banner = example("event_create")["banner"].take();
    let key = &makers.host.key;
    for (kind, section_kind, modifier_kind) in
        [("event", "section", "modifier"), ("draft", "draft_section", "draft_modifier"), ("submitted", "", "")]
    {
        let event = json!({
            "host": things["host"], "title": format!("{} {kind}", makers.host.username), "description": "Jazz, outdoors.",
            "type": "Standard", "public": true, "category": format!("/categories/{}", things["category"]), "subcategory": "Jazz",
            "venue": format!("/venues/{}", things["venue"]), "start": "2998-12-20T19:00", "end": "2998-12-20T23:00",
            "banner": banner,
        });
        let event = done(app, key, "POST", "/events", &event).await;
        let uri = event["self"].as_str().unwrap();
        things.insert(kind, uri_end(&event));
        if kind == "submitted" {
            done(app, key, "POST", &format!("{uri}/submissions"), &Value::Null).await;
            things.insert("submission", last_of_submission(uri));
            continue;
        }
        if let Some((_, secret)) = event["banner"].as_str().and_then(|banner| banner.split_once("?secret=")) {
            things.insert("draft_secret", secret.to_owned());
        }
        things.insert(section_kind, section(app, key, uri, "Spare", 0.0).await);
        let modifiers = format!("{uri}/sections/{}/modifiers", things[section_kind]);
        let modifier = done(app, key, "POST", &modifiers, &json!({ "name": "Group", "priceDelta": -1.0, "minOrder": 4 })).await;
        things.insert(modifier_kind, uri_end(&modifier));
    }
    let uri = format!("/events/{}", things["event"]);
    for (name, code, token, section_name) in
        [("sold_section", "code", "token", "Gold"), ("other_section", "other_code", "other_token", "Balcony")]
    {
        let section = format!("{uri}/sections/{}", section(app, key, &uri, section_name, 20.0).await);
        let made = done(app, key, "POST", &format!("{uri}/tokens"), &json!({ "sections": [section] })).await;
        things.extend([(name, section), (token, uri_end(&made)), (code, made["code"].as_str().unwrap().to_owned())]);
    }
    done(app, key, "POST", &format!("{uri}/submissions"), &Value::Null).await;
    approve(app, &uri).await;
}

/// An advertisement that is shown, and a draft.
async fn advertisements(app: &TestApp, makers: &Makers<'_>, things: &mut Things) {
    let example = example("advertisement_create");
    for kind in ["advertisement", "draft_advertisement"] {
        let mut advertisement = example.clone();
        advertisement["name"] = format!("{kind} of {}", makers.host.username).into();
        advertisement["event"] = things["event"].clone().into();
        advertisement["zones"] = json!([things["zone"]]);
        let made = done(app, &makers.host.key, "POST", "/advertisements", &advertisement).await;
        things.insert(kind, uri_end(&made));
    }
    let uri = format!("/advertisements/{}", things["advertisement"]);
    done(app, &makers.host.key, "POST", &format!("{uri}/submissions"), &Value::Null).await;
    approve(app, &uri).await;
}

/// The owner's orders and tickets, one of which is used, and those that the sender offers.
async fn sales(app: &TestApp, makers: &Makers<'_>, things: &mut Things) {
    let gold = things["sold_section"].clone();
    let key = &makers.owner.key;
    let order = buy(app, key, &[&gold, &gold, &gold]).await;
    let open = done(app, key, "POST", "/orders", &json!({ "items": { &gold: 1 } })).await;
    let payments = app.read(&format!("/orders/{order}/payments")).await;
    let transactions = app.read("/transactions?records=100").await;
    let sold = transactions["entries"].as_array().unwrap().last().unwrap();
    let tickets = app.read(&format!("/accounts/{}/tickets", makers.owner.number)).await;
    let ticket =
        |index: usize| (uri_end(&tickets["entries"][index]), tickets["entries"][index]["serial"].as_str().unwrap().to_owned());
    let ((ticket, serial), (_, used)) = (ticket(0), ticket(2));
    let admissions = format!("/events/{}/admissions", things["event"]);
    let admitted = done(app, &makers.host.key, "POST", &admissions, &json!({ "serials": [used] })).await;
    let bought = buy(app, &makers.sender.key, &[&gold]).await;
    let offered = app.read(&format!("/accounts/{}/tickets?records=100", makers.sender.number)).await;
    let offered = offered["entries"].as_array().unwrap().last().unwrap()["serial"].as_str().unwrap().to_owned();
    let transfer = json!({ "recipient": makers.recipient.number, "tickets": [offered] });
    let transfer = done(app, &makers.sender.key, "POST", "/transfers", &transfer).await;
    things.extend([
        ("order", order),
        ("open_order", uri_end(&open)),
        ("payment", uri_end(&payments["entries"][0])),
        ("transaction", uri_end(sold)),
        ("ticket", ticket),
        ("serial", serial),
        ("used_serial", used),
        ("admission", uri_end(&admitted[0])),
        ("senders_order", bought),
        ("offered_serial", offered),
        ("transfer", uri_end(&transfer)),
    ]);
}

/// The example of an operation's body in the contract.
fn example(operation: &str) -> Value {
    operations().into_iter().find(|one| one.id == operation).unwrap().body()
}

/// A section with these places on sale for centuries; its identifier.
async fn section(app: &TestApp, key: &str, event: &str, name: &str, price: f64) -> String {
    let section = json!({
        "name": name, "basePrice": price, "capacity": 40, "salesStart": "2020-01-01T00:00", "salesEnd": "2998-01-01T00:00",
    });
    uri_end(&done(app, key, "POST", &format!("{event}/sections"), &section).await)
}

/// Buys a ticket to each of these sections, which may be the same; the order's number.
async fn buy(app: &TestApp, key: &str, sections: &[&String]) -> String {
    let mut items = serde_json::Map::new();
    for section in sections {
        let count = items.get(section.as_str()).and_then(Value::as_i64).unwrap_or_default();
        items.insert((*section).clone(), (count + 1).into());
    }
    let order = done(app, key, "POST", "/orders", &json!({ "items": items })).await;
    let number = uri_end(&order);
    let card = json!({ "method": "card", "token": "tok_approve" });
    done(app, key, "POST", &format!("/orders/{number}/payments"), &card).await;
    number
}

async fn approve(app: &TestApp, content: &str) {
    done(app, &app.staff.key, "DELETE", &format!("{}?approved=true", submission_of(content)), &Value::Null).await;
}

async fn gate(app: &TestApp, code: &str) -> String {
    let key = done(app, &app.public_key, "GET", &format!("/tokens/{code}"), &Value::Null).await;
    key["key"].as_str().unwrap().to_owned()
}

/// What is answered to a request that succeeds.
async fn done(app: &TestApp, key: &str, method: &str, path: &str, body: &Value) -> Value {
    let request = app.request(method, path).key(key);
    let request = if body.is_null() { request } else { request.json(body) };
    let answer = request.send().await;
    assert!((200..300).contains(&answer.status), "{method} {path}: {answer:?}");
    answer.body
}

fn uri_end(resource: &Value) -> String {
    last(resource["self"].as_str().unwrap())
}

fn last(text: &str) -> String {
    text.rsplit('/').next().unwrap().to_owned()
}

fn last_of_submission(content: &str) -> String {
    submission_of(content).strip_prefix("/submissions/").unwrap().to_owned()
}
