//! What there is before anything is measured: made through the API where there is one of it, and with SQL where there are many.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use anyhow::{Context, anyhow, bail};
use boxoffice::kernel::types::secret;
use boxoffice::kernel::db::Db;
use boxoffice_client::{Client, Error, types};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::progress::Progress;
use crate::server::Server;

/// Buyers, each of whom may have 10 open orders.
pub const BUYERS: i64 = 40_000;
/// Listed events beside the one that is read, each with one section.
pub const EVENTS: i64 = 10_000;
/// Tickets that wait at the gate.
pub const GATE: i64 = 250_000;
/// Rows of a kind that are made in one transaction.
const CHUNK: i64 = 50_000;
/// The password of everyone.
pub const PASSWORD: &str = "four horses and a cart";

/// The identifier of the first buyer, and of the key. What is made with SQL has moments of the past, so that the platform never
/// gives one of them again.
pub const BUYER: i64 = 14_000_000_000_000;
/// The identifier of the first of the many events.
pub const EVENT: i64 = 14_100_000_000_000;
/// The identifier of its section.
pub const SECTION: i64 = 14_200_000_000_000;

/// Somebody who buys.
#[derive(Debug, Clone)]
pub struct Buyer {
    /// The account's number.
    pub number: String,
    /// The key of its session.
    pub key: Arc<str>,
}

/// A filled database.
pub struct World {
    /// Where it is.
    pub database_url: String,
    /// A key of an application.
    pub public_key: Arc<str>,
    /// A key of the platform's staff.
    pub staff_key: Arc<str>,
    /// The identifier of an event with five sections.
    pub event: String,
    /// The long URI of a section that everyone wants.
    pub hot: String,
    /// Its identifier.
    pub hot_section: i64,
    /// Those who buy.
    pub buyers: Vec<Buyer>,
}

impl World {
    /// Fills an empty database with so many paid orders.
    ///
    /// # Errors
    /// When anything of it can't be made.
    pub async fn fill(program: &Path, database_url: &str, folder: &Path, orders: i64) -> anyhow::Result<Self> {
        let mut progress = Progress::new(&format!("filling, with {orders} orders"));
        let server = Server::platform(program, database_url, folder)?;
        let staff_key = new_key(program, database_url, folder, "administrator")?;
        let public_key = new_key(program, database_url, folder, "public")?;
        let address = format!("http://{}", server.address);
        let maker =
            Maker { staff: Client::connect(&address, &staff_key)?, anyone: Client::connect(&address, &public_key)?, address };
        let (event, sections) = maker.event().await?;
        drop(server);

        let db = Db::open(database_url).await?;
        let hot = sections.first().context("the event has sections")?;
        let hot_section = number(hot)?;
        let buyers: Vec<_> =
            (0..BUYERS).map(|n| Buyer { number: format!("LD-{}", 10_000_000 + n), key: secret::api_key().into() }).collect();
        insert_buyers(&db, &buyers).await.map_err(refused)?;
        progress.tell("buyers", BUYERS, BUYERS);
        let template = number(&event)?;
        for (what, count, origin, statements) in [
            ("events", EVENTS, template, [LISTED, PLACES].as_slice()),
            ("orders", orders, template, &[ORDERS, ITEMS, PAYMENTS, TRANSACTIONS, SHARES, TICKETS]),
            ("tickets at the gate", GATE, hot_section, &[WAITING_TICKETS]),
        ] {
            let mut done = 0;
            while done < count {
                let upto = (done + CHUNK).min(count);
                let mut tx = db.begin().await.map_err(refused)?;
                for statement in statements {
                    tx.query(statement).bind(done).bind(upto - 1).bind(origin).execute().await.map_err(refused)?;
                }
                tx.commit().await.map_err(refused)?;
                done = upto;
                progress.tell(what, done, count);
            }
        }
        let mut tx = db.begin().await.map_err(refused)?;
        for statement in COUNTS {
            tx.query(statement).execute().await.map_err(refused)?;
        }
        if !tx.is_postgres() {
            tx.query("analyze").execute().await.map_err(refused)?;
        }
        tx.commit().await.map_err(refused)?;
        let mut tx = db.read().await.map_err(refused)?;
        if tx.is_postgres() {
            // As PostgreSQL does by itself, some time later.
            tx.query("vacuum analyze").execute().await.map_err(refused)?;
        }
        drop(tx);
        db.close().await;
        progress.end();
        let event = event.rsplit('/').next().unwrap_or_default().to_owned();
        let database_url = database_url.to_owned();
        Ok(Self {
            database_url,
            public_key: public_key.into(),
            staff_key: staff_key.into(),
            event,
            hot: hot.clone(),
            hot_section,
            buyers,
        })
    }

    /// The long URI of one of the sections that there is one of in each event.
    pub fn spread(&self, n: u64) -> String {
        format!("/events/{}/sections/{}", EVENT + n as i64, SECTION + n as i64)
    }

    /// The serial of a ticket at the gate, to the event of five sections.
    pub fn serial(&self, n: u64) -> String {
        format!("GATE00-{}", 100_000_000_000 + n)
    }
}

/// Whole numbers from `$1` to `$2` as `n`, on both databases. `$3` is what the rows are made of.
macro_rules! for_each_number {
    ($insert:literal) => {
        concat!(
            "with recursive g (n) as (select cast($1 as bigint) union all select n + 1 from g where n < $2), ",
            "origin (id) as (select cast($3 as bigint)) ",
            $insert
        )
    };
}

const LISTED: &str = for_each_number!(
    "insert into events (id, host_id, title, description, status, type, public, category_id, subcategory, venue_id, starts, ends,
         disclaimer, tags, banner_id, thumbnail_id, published, popularity)
     select 14100000000000 + n, host_id, title || ' ' || n, description, status, type, public, category_id, subcategory, venue_id,
         starts + n * 60000000, ends + n * 60000000, disclaimer, tags, banner_id, thumbnail_id, published, 0
     from g, events where events.id = (select id from origin)"
);
const PLACES: &str = for_each_number!(
    "insert into sections (id, event_id, name, description, base_price, capacity, sold, reserved, sales_start, sales_end, active)
     select 14200000000000 + n, 14100000000000 + n, 'Floor', '', 5000, 1000000, 0, 0, sales_start, sales_end, active
     from g, sections where sections.id = (select min(id) from sections where event_id = (select id from origin))"
);
const ORDERS: &str = for_each_number!(
    "insert into orders (id, account_id, status, placed, expires, fulfilled, subtotal, fees)
     select 15000000000000 + n, 14000000000000 + n % 40000, 'Fulfilled', (15000000000000 + n) * 100, (15000000000000 + n) * 100,
         (15000000000000 + n) * 100, 5000, 99
     from g, origin"
);
const ITEMS: &str = for_each_number!(
    "insert into order_items (order_id, position, event_id, section_id, quantity, unit_price, unit_fee)
     select 15000000000000 + n, 1, 14100000000000 + n % 1000, 14200000000000 + n % 1000, 1, 5000, 99 from g, origin"
);
const PAYMENTS: &str = for_each_number!(
    "insert into payments (id, order_id, method, amount, status, reference, placed)
     select 15000000000000 + n, 15000000000000 + n, 'card', 5099, 'Confirmed', 'load', (15000000000000 + n) * 100 from g, origin"
);
const TRANSACTIONS: &str = for_each_number!(
    "insert into transactions (id, type, order_id, payment_id, refund_id, amount, fees, placed)
     select 15000000000000 + n, 'Sale', 15000000000000 + n, 15000000000000 + n, null, 5099, 99, (15000000000000 + n) * 100
     from g, origin"
);
const SHARES: &str = for_each_number!(
    "insert into transaction_shares (transaction_id, host_id, amount, fees)
     select 15000000000000 + n, (select min(id) from hosts), 5099, 99 from g, origin"
);
const TICKETS: &str = for_each_number!(
    "insert into tickets (id, serial, order_id, event_id, section_id, owner_id, status, issued, redeemed, modified)
     select 15100000000000 + n, 'LOAD00-' || (100000000000 + n), 15000000000000 + n, 14100000000000 + n % 1000,
         14200000000000 + n % 1000, 14000000000000 + n % 40000, 'Issued', (15000000000000 + n) * 100, null,
         (15000000000000 + n) * 100
     from g, origin"
);
/// Of the section that everyone wants, by orders of the others, which is enough for a gate.
const WAITING_TICKETS: &str = for_each_number!(
    "insert into tickets (id, serial, order_id, event_id, section_id, owner_id, status, issued, redeemed, modified)
     select 15200000000000 + n, 'GATE00-' || (100000000000 + n), 15000000000000 + n % 1000, event_id, sections.id,
         14000000000000 + n % 40000, 'Issued', 1500000000000000, null, 1500000000000000
     from g, sections where sections.id = (select id from origin)"
);
/// What the platform counts along.
const COUNTS: [&str; 2] = [
    "update sections set sold = (select count(*) from tickets where tickets.section_id = sections.id)",
    "update events set popularity = (select coalesce(sum(sold), 0) from sections where sections.event_id = events.id)",
];

/// Makes a key by the command line.
fn new_key(program: &Path, database_url: &str, folder: &Path, role: &str) -> anyhow::Result<String> {
    let mut command = Command::new(program);
    command.args(["key", "create", "--role", role, "--data-dir"]).arg(folder).env("DATABASE_URL", database_url);
    let made = command.output()?;
    if !made.status.success() {
        bail!("no key was made: {}", String::from_utf8_lossy(&made.stderr));
    }
    Ok(String::from_utf8(made.stdout)?.trim().to_owned())
}

/// Accounts like the one that signed up, with the key of a session each.
async fn insert_buyers(db: &Db, buyers: &[Buyer]) -> boxoffice_http::error::Result<()> {
    let mut tx = db.begin().await?;
    let password: String = tx.query("select password_hash from accounts where username = 'kofi'").scalar().await?;
    let into =
        "accounts (id, number, username, email, password_hash, role, verified, activated, first_name, last_name, title, phone,
        country, first_address_line, second_address_line, city, state, removed)";
    tx.insert_rows(into, buyers.iter().zip(0_i64..), |(buyer, n), values| {
        values.bind(BUYER + n).bind(buyer.number.clone()).bind(format!("buyer-{n}")).bind(format!("buyer-{n}@example.com"));
        values.bind(password.clone()).bind("customer").bind(true).bind(true).bind("Ama").bind("Mensah").bind("").bind("");
        values.bind("Ghana").bind("").bind("").bind("Accra").bind("").bind(false);
    })
    .await?;
    let into = "api_keys (id, hash, kind, name, role, account_id, created, expires, last_used)";
    let now: i64 = tx.query("select max(created) from api_keys").scalar().await?;
    tx.insert_rows(into, buyers.iter().zip(0_i64..), |(buyer, n), values| {
        values.bind(BUYER + n).bind(secret::hash(&buyer.key)).bind("session").bind("session").bind("customer").bind(BUYER + n);
        values.bind(now).bind(now + 30 * 24 * 60 * 60 * 1_000_000).bind(now);
    })
    .await?;
    tx.commit().await
}

/// Who makes what there is one of.
struct Maker {
    address: String,
    staff: Client,
    anyone: Client,
}

impl Maker {
    /// A listed event with five sections: its URI, and their long ones. The first has room for everyone.
    async fn event(&self) -> anyhow::Result<(String, Vec<String>)> {
        let region = json!({ "name": "Greater Accra", "country": "Ghana", "city": "Accra" });
        let region = self.staff.region_create().body(read::<types::RegionCreate>(region)?).send().await.map_err(told)?;
        let venue = json!({
            "name": "National Theatre", "region": region.self_, "address": "Liberia Road, Accra", "longitude": -0.2009,
            "latitude": 5.5527,
        });
        let venue = self.staff.venue_create().body(read::<types::VenueCreate>(venue)?).send().await.map_err(told)?;
        let category = json!({ "name": "Music", "subcategories": ["Highlife"] });
        let category = self.staff.category_create().body(read::<types::CategoryCreate>(category)?).send().await.map_err(told)?;
        let account = json!({
            "username": "kofi", "password": PASSWORD, "email": "kofi@example.com", "firstName": "Kofi", "lastName": "Boateng",
        });
        self.anyone.account_create().body(read::<types::AccountCreate>(account)?).send().await.map_err(told)?;
        let session = json!({ "identification": "kofi", "password": PASSWORD });
        let session = self.anyone.session_create().body(read::<types::SessionCreate>(session)?).send().await.map_err(told)?;
        let owner = Client::connect(&self.address, &session.key)?;
        let host = json!({ "name": "Accra Live", "contact": "Front office", "email": "office@example.com" });
        let host = owner.host_create().body(read::<types::HostCreate>(host)?).send().await.map_err(told)?;
        let event = json!({
            "host": host.self_, "title": "Highlife on the Lawn", "description": "An evening on the lawn. ".repeat(20),
            "type": "Standard", "public": true, "category": category.self_, "subcategory": "Highlife", "venue": venue.self_,
            "tags": ["highlife"], "start": "2090-12-01T19:00", "end": "2090-12-01T23:00",
        });
        let event = owner.event_create().body(read::<types::EventCreate>(event)?).send().await.map_err(told)?.into_inner();
        let id = event.self_.rsplit('/').next().unwrap_or_default();
        let mut sections = Vec::new();
        for (name, price) in [("Lawn", 45.0), ("Terrace", 60.0), ("Balcony", 80.0), ("Box", 150.0), ("Stage", 199.99)] {
            let section = json!({
                "name": name, "basePrice": price, "capacity": 1_000_000, "salesStart": "2020-01-01T00:00",
                "salesEnd": "2090-12-01T23:00",
            });
            let section = owner.section_create().event(id).body(read::<types::SectionCreate>(section)?).send().await;
            sections.push(format!("{}{}", event.self_, section.map_err(told)?.self_));
        }
        let submission = owner.event_submission_create().event(id).send().await.map_err(told)?;
        let submission = submission.self_.rsplit('/').next().unwrap_or_default();
        self.staff.submission_delete().submission(submission).approved(true).send().await.map_err(told)?;
        Ok((event.self_.clone(), sections))
    }
}

/// The identifier at the end of a URI.
fn number(uri: &str) -> anyhow::Result<i64> {
    uri.rsplit('/').next().and_then(|id| id.parse().ok()).with_context(|| format!("no identifier in {uri}"))
}

fn read<T: DeserializeOwned>(value: Value) -> anyhow::Result<T> {
    serde_json::from_value(value).context("what is made doesn't fit the contract")
}

/// What the database refused.
pub fn refused(error: boxoffice_http::error::Error) -> anyhow::Error {
    anyhow!("the database: {error:?}")
}

/// What the API refused, in words.
fn told(error: Error<types::Error>) -> anyhow::Error {
    anyhow!("the API: {error:?}")
}
