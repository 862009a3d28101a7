//! Test data of the load tests: single resources are created through the API, mass data with SQL.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, anyhow, bail};
use boxoffice::kernel::db::Db;
use boxoffice::kernel::types::clock::Timestamp;
use boxoffice::kernel::types::secret;
use boxoffice_client::{Client, Error, types};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::progress::Progress;
use crate::server::{self, Server};

/// Number of buyers. Each may have 10 open orders.
pub const BUYERS: i64 = 40_000;
/// Number of buyers who have sent five transfers.
pub const SENDERS: i64 = 1000;
/// Default number of further listed events, each with one section.
pub const EVENTS: i64 = 10_000;
/// Number of tickets that can be admitted.
pub const ADMISSIBLE_TICKETS: i64 = 250_000;
/// Number of rows per statement and transaction. On PostgreSQL, each update of a row by the same transaction takes longer: a counter
/// that a trigger increases 10,000 times takes more than the 10 seconds a statement has.
const CHUNK_ROWS: i64 = 2_000;
/// Password of all accounts.
pub const PASSWORD: &str = "four horses and a cart";

/// First identifier of the buyers and of their keys. Identifiers of rows inserted with SQL encode times in the past, so that the
/// platform never generates them again.
pub const FIRST_BUYER_ID: i64 = 14_000_000_000_000;
/// First identifier of the further events.
pub const FIRST_EVENT_ID: i64 = 14_100_000_000_000;
/// First identifier of their sections.
pub const FIRST_SECTION_ID: i64 = 14_200_000_000_000;

/// First identifier of the paid orders.
pub const FIRST_ORDER_ID: i64 = 15_000_000_000_000;
/// First identifier of the tickets that can be admitted.
pub const FIRST_TICKET_ID: i64 = 15_200_000_000_000;

/// A buyer's account.
#[derive(Debug, Clone)]
pub struct Buyer {
    /// The account's number.
    pub number: String,
    /// The key of the account's session.
    pub key: Arc<str>,
}

/// A database with test data.
pub struct Fixtures {
    /// The database's URL.
    pub database_url: String,
    /// An application's key.
    pub public_key: Arc<str>,
    /// A staff key.
    pub staff_key: Arc<str>,
    /// The identifier of an event with five sections.
    pub event: String,
    /// The URI, with its event, of the section that all buyers order in [`OnSaleHot`](crate::scenario::Scenario::OnSaleHot).
    pub hot_section: String,
    /// The identifier of that section.
    pub hot_section_id: i64,
    /// The identifier of the events' host.
    pub host: i64,
    /// The number of paid orders. The `n`th is of the `n`th buyer, and after the last buyer again of the first one.
    pub orders: i64,
    /// The number of further listed events.
    pub events: i64,
    /// The buyers.
    pub buyers: Vec<Buyer>,
}

impl Fixtures {
    /// Fills an empty database with these numbers of paid orders and further listed events, and the other test data.
    ///
    /// # Errors
    /// Returns an error if the API or the database returns an error.
    pub async fn create(program: &Path, database_url: &str, folder: &Path, orders: i64, events: i64) -> anyhow::Result<Self> {
        let mut progress = Progress::new(&format!("creating test data with {orders} orders"));
        let server = Server::platform(program, database_url, folder)?;
        let staff_key = create_key(program, database_url, folder, "administrator")?;
        let public_key = create_key(program, database_url, folder, "public")?;
        let address = format!("http://{}", server.address);
        let staff = Client::connect(&address, &staff_key)?;
        let application = Client::connect(&address, &public_key)?;
        let (host, event, sections) = create_event(&address, &staff, &application).await?;
        drop(server);

        let db = Db::open(database_url).await?;
        let hot_section = sections.first().context("the event has sections")?;
        let hot_section_id = last_id(hot_section)?;
        let buyers: Vec<_> =
            (0..BUYERS).map(|n| Buyer { number: format!("LD-{}", 10_000_000 + n), key: secret::api_key().into() }).collect();
        insert_buyers(&db, &buyers).await.map_err(database_error)?;
        progress.update("buyers", BUYERS, BUYERS);
        let event_id = last_id(&event)?;
        for (part, count, origin, statements) in [
            ("events", events, event_id, [INSERT_EVENTS, INSERT_SECTIONS].as_slice()),
            (
                "orders",
                orders,
                event_id,
                &[INSERT_ORDERS, INSERT_ITEMS, INSERT_PAYMENTS, INSERT_TRANSACTIONS, INSERT_SHARES, INSERT_TICKETS],
            ),
            ("tickets to admit", ADMISSIBLE_TICKETS, hot_section_id, &[INSERT_ADMISSIBLE_TICKETS]),
            ("transfers", 5 * SENDERS, FIRST_BUYER_ID, &[INSERT_TRANSFERS, INSERT_OFFERED_TICKETS]),
        ] {
            insert_rows(&db, &mut progress, part, count, origin, statements).await?;
        }
        // SQL can't write the words by which events are found.
        run_command(program, database_url, folder, &["admin", "jobs", "run", "complete the search index"])?;
        update_counters(&db).await?;
        db.close().await;
        progress.finish();
        let event = event.rsplit('/').next().unwrap_or_default().to_owned();
        let database_url = database_url.to_owned();
        Ok(Self {
            database_url,
            public_key: public_key.into(),
            staff_key: staff_key.into(),
            event,
            hot_section: hot_section.clone(),
            hot_section_id,
            host,
            orders,
            events,
            buyers,
        })
    }

    /// Returns the URI, with its event, of the only section of the `n`th further event.
    pub fn section(&self, n: u64) -> String {
        format!("/events/{}/sections/{}", FIRST_EVENT_ID + n as i64, FIRST_SECTION_ID + n as i64)
    }

    /// Returns the serial of the `n`th ticket that can be admitted.
    pub fn serial(&self, n: u64) -> String {
        format!("GATE00-{}", 100_000_000_000 + n)
    }
}

/// Executes `insert`s for the numbers below `count`, some of them per transaction.
pub async fn insert_rows(
    db: &Db,
    progress: &mut Progress,
    part: &str,
    count: i64,
    origin: i64,
    statements: &[&'static str],
) -> anyhow::Result<()> {
    let mut done = 0;
    while done < count {
        let end = (done + CHUNK_ROWS).min(count);
        let mut tx = db.begin().await.map_err(database_error)?;
        for statement in statements {
            tx.query(statement).bind(done).bind(end - 1).bind(origin).execute().await.map_err(database_error)?;
        }
        tx.commit().await.map_err(database_error)?;
        done = end;
        progress.update(part, done, count);
    }
    Ok(())
}

/// Executes statements without values in one transaction.
///
/// # Errors
/// Returns an error if the database fails.
pub async fn execute_all(db: &Db, statements: &[&'static str]) -> anyhow::Result<()> {
    let mut tx = db.begin().await.map_err(database_error)?;
    for statement in statements {
        tx.query(statement).execute().await.map_err(database_error)?;
    }
    tx.commit().await.map_err(database_error)
}

/// Updates the counters that the platform maintains, and the statistics of PostgreSQL.
pub async fn update_counters(db: &Db) -> anyhow::Result<()> {
    execute_all(db, &UPDATE_COUNTERS).await?;
    let mut tx = db.read().await.map_err(database_error)?;
    if tx.is_postgres() {
        // Otherwise autovacuum would run during the measurement.
        tx.query("vacuum analyze").execute().await.map_err(database_error)?;
    }
    Ok(())
}

/// An `insert` with a row for each `n` from `$1` to `$2`, for both databases. `$3` is the identifier of the row to copy.
macro_rules! for_each_number {
    ($insert:literal) => {
        concat!(
            "with recursive g (n) as (select cast($1 as bigint) union all select n + 1 from g where n < $2), ",
            "origin (id) as (select cast($3 as bigint)) ",
            $insert
        )
    };
}
pub(crate) use for_each_number;

/// Inserts copies of an event.
pub const INSERT_EVENTS: &str = for_each_number!(
    "insert into events (id, host_id, title, description, status, type, public, category_id, subcategory, venue_id, starts, ends,
         disclaimer, tags, banner_id, thumbnail_id, published, popularity)
     select 14100000000000 + n, host_id, title || ' ' || n, description, status, type, public, category_id, subcategory, venue_id,
         starts + n * 60000000, ends + n * 60000000, disclaimer, tags, banner_id, thumbnail_id, published, 0
     from g, events where events.id = (select id from origin)"
);
/// Inserts a section for each of them.
pub const INSERT_SECTIONS: &str = for_each_number!(
    "insert into sections (id, event_id, name, description, base_price, capacity, sold, reserved, sales_start, sales_end, active)
     select 14200000000000 + n, 14100000000000 + n, 'Floor', '', 5000, 1000000, 0, 0, sales_start, sales_end, active
     from g, sections where sections.id = (select min(id) from sections where event_id = (select id from origin))"
);
const INSERT_ORDERS: &str = for_each_number!(
    "insert into orders (id, account_id, status, placed, expires, fulfilled, subtotal, fees)
     select 15000000000000 + n, 14000000000000 + n % 40000, 'Fulfilled', (15000000000000 + n) * 100, (15000000000000 + n) * 100,
         (15000000000000 + n) * 100, 5000, 99
     from g, origin"
);
const INSERT_ITEMS: &str = for_each_number!(
    "insert into order_items (order_id, position, event_id, section_id, quantity, unit_price, unit_fee)
     select 15000000000000 + n, 1, 14100000000000 + n % 1000, 14200000000000 + n % 1000, 1, 5000, 99 from g, origin"
);
pub const INSERT_PAYMENTS: &str = for_each_number!(
    "insert into payments (id, order_id, method, amount, status, reference, placed)
     select 15000000000000 + n, 15000000000000 + n, 'card', 5099, 'Confirmed', 'load', (15000000000000 + n) * 100 from g, origin"
);
pub const INSERT_TRANSACTIONS: &str = for_each_number!(
    "insert into transactions (id, type, order_id, payment_id, refund_id, amount, fees, placed)
     select 15000000000000 + n, 'Sale', 15000000000000 + n, 15000000000000 + n, null, 5099, 99, (15000000000000 + n) * 100
     from g, origin"
);
pub const INSERT_SHARES: &str = for_each_number!(
    "insert into transaction_shares (transaction_id, host_id, amount, fees)
     select 15000000000000 + n, (select min(id) from hosts), 5099, 99 from g, origin"
);
const INSERT_TICKETS: &str = for_each_number!(
    "insert into tickets (id, serial, order_id, event_id, section_id, owner_id, status, issued, redeemed, modified)
     select 15100000000000 + n, 'LOAD00-' || (100000000000 + n), 15000000000000 + n, 14100000000000 + n % 1000,
         14200000000000 + n % 1000, 14000000000000 + n % 40000, 'Issued', (15000000000000 + n) * 100, null,
         (15000000000000 + n) * 100
     from g, origin"
);
/// Time of the change of the first of [`INSERT_ADMISSIBLE_TICKETS`], each a second after the one before: after all admissions.
pub const FIRST_CHANGE: Timestamp = Timestamp(3_755_289_600_000_000);
/// Tickets of the hot section. They belong to orders of other sections, which admissions don't check.
const INSERT_ADMISSIBLE_TICKETS: &str = for_each_number!(
    "insert into tickets (id, serial, order_id, event_id, section_id, owner_id, status, issued, redeemed, modified)
     select 15200000000000 + n, 'GATE00-' || (100000000000 + n), 15000000000000 + n % 1000, event_id, sections.id,
         14000000000000 + n % 40000, 'Issued', 1500000000000000, null, 3755289600000000 + n * 1000000
     from g, sections where sections.id = (select id from origin)"
);
/// Transfers of the first buyers.
const INSERT_TRANSFERS: &str = for_each_number!(
    "insert into transfers (id, status, sender_id, recipient_id)
     select 15300000000000 + n, 'Cancelled', origin.id + n % 1000, origin.id + n % 1000 + 1 from g, origin"
);
const INSERT_OFFERED_TICKETS: &str = for_each_number!(
    "insert into transfer_tickets (transfer_id, ticket_id) select 15300000000000 + n, 15200000000000 + n from g, origin"
);
/// Updates the counters that the platform maintains.
const UPDATE_COUNTERS: [&str; 2] = [
    "update sections set sold = n from (select section_id, count(*) as n from tickets group by section_id) counts
     where section_id = sections.id",
    "update events set popularity = n from (select event_id, sum(sold) as n from sections group by event_id) sums
     where event_id = events.id",
];

/// Creates a key with the command line.
pub fn create_key(program: &Path, database_url: &str, folder: &Path, role: &str) -> anyhow::Result<String> {
    run_command(program, database_url, folder, &["key", "create", "--role", role])
}

/// Runs a command of the program and returns its output.
fn run_command(program: &Path, database_url: &str, folder: &Path, arguments: &[&str]) -> anyhow::Result<String> {
    let output = server::command(program, database_url, folder).args(arguments).output()?;
    if !output.status.success() {
        bail!("{} failed: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

/// Inserts the buyers' accounts with the host's password, and a session key for each.
pub async fn insert_buyers(db: &Db, buyers: &[Buyer]) -> boxoffice_http::error::Result<()> {
    let mut tx = db.begin().await?;
    let password: String = tx.query("select password_hash from accounts where username = 'kofi'").scalar().await?;
    let into =
        "accounts (id, number, username, email, password_hash, role, verified, activated, first_name, last_name, title, phone,
        country, first_address_line, second_address_line, city, state, removed)";
    tx.insert_rows(into, buyers.iter().zip(0_i64..), |columns| {
        columns.add(|(_, n)| FIRST_BUYER_ID + n).add(|(buyer, _)| buyer.number.clone());
        columns.add(|(_, n)| format!("buyer-{n}")).add(|(_, n)| format!("buyer-{n}@example.com"));
        columns.add(|_| password.clone()).add(|_| "customer").add(|_| true).add(|_| true);
        columns.add(|_| "Ama").add(|_| "Mensah").add(|_| "").add(|_| "");
        columns.add(|_| "Ghana").add(|_| "").add(|_| "").add(|_| "Accra").add(|_| "").add(|_| false);
    })
    .await?;
    let into = "api_keys (id, hash, kind, name, role, account_id, created, expires, last_used)";
    let now: i64 = tx.query("select max(created) from api_keys").scalar().await?;
    tx.insert_rows(into, buyers.iter().zip(0_i64..), |columns| {
        columns.add(|(_, n)| FIRST_BUYER_ID + n).add(|(buyer, _)| secret::hash(&buyer.key));
        columns.add(|_| "session").add(|_| "session").add(|_| "customer").add(|(_, n)| FIRST_BUYER_ID + n);
        columns.add(|_| now).add(|_| now + 30 * 24 * 60 * 60 * 1_000_000).add(|_| now);
    })
    .await?;
    tx.commit().await
}

/// Creates a listed event with five sections. Returns the identifier of its host, its URI, and the sections' URIs with their event.
pub async fn create_event(address: &str, staff: &Client, application: &Client) -> anyhow::Result<(i64, String, Vec<String>)> {
    let region = json!({ "name": "Greater Accra", "country": "Ghana", "city": "Accra" });
    let region = staff.region_create().body(parse::<types::RegionCreate>(region)?).send().await.map_err(api_error)?;
    let venue = json!({
        "name": "National Theatre", "region": region.self_, "address": "Liberia Road, Accra", "longitude": -0.2009,
        "latitude": 5.5527,
    });
    let venue = staff.venue_create().body(parse::<types::VenueCreate>(venue)?).send().await.map_err(api_error)?;
    let category = json!({ "name": "Music", "subcategories": ["Highlife"] });
    let category = staff.category_create().body(parse::<types::CategoryCreate>(category)?).send().await.map_err(api_error)?;
    let account = json!({
        "username": "kofi", "password": PASSWORD, "email": "kofi@example.com", "firstName": "Kofi", "lastName": "Boateng",
    });
    application.account_create().body(parse::<types::AccountCreate>(account)?).send().await.map_err(api_error)?;
    let session = json!({ "identification": "kofi", "password": PASSWORD });
    let session = application.session_create().body(parse::<types::SessionCreate>(session)?).send().await.map_err(api_error)?;
    let owner = Client::connect(address, &session.key)?;
    let host = json!({ "name": "Accra Live", "contact": "Front office", "email": "office@example.com" });
    let host = owner.host_create().body(parse::<types::HostCreate>(host)?).send().await.map_err(api_error)?;
    let event = json!({
        "host": host.self_, "title": "Highlife on the Lawn", "description": "An evening on the lawn. ".repeat(20),
        "type": "Standard", "public": true, "category": category.self_, "subcategory": "Highlife", "venue": venue.self_,
        "tags": ["highlife"], "start": "2090-12-01T19:00", "end": "2090-12-01T23:00",
    });
    let event = owner.event_create().body(parse::<types::EventCreate>(event)?).send().await.map_err(api_error)?.into_inner();
    let id = event.self_.rsplit('/').next().unwrap_or_default();
    let mut sections = Vec::new();
    for (name, price) in [("Lawn", 45.0), ("Terrace", 60.0), ("Balcony", 80.0), ("Box", 150.0), ("Stage", 199.99)] {
        let section = json!({
            "name": name, "basePrice": price, "capacity": 1_000_000, "salesStart": "2020-01-01T00:00",
            "salesEnd": "2090-12-01T23:00",
        });
        let section = owner.section_create().event(id).body(parse::<types::SectionCreate>(section)?).send().await;
        sections.push(format!("{}{}", event.self_, section.map_err(api_error)?.self_));
    }
    let submission = owner.event_submission_create().event(id).send().await.map_err(api_error)?;
    let submission = submission.self_.rsplit('/').next().unwrap_or_default();
    staff.submission_delete().submission(submission).approved(true).send().await.map_err(api_error)?;
    Ok((last_id(&host.self_)?, event.self_.clone(), sections))
}

/// Returns the identifier at the end of a URI.
pub fn last_id(uri: &str) -> anyhow::Result<i64> {
    uri.rsplit('/').next().and_then(|id| id.parse().ok()).with_context(|| format!("no identifier in {uri}"))
}

fn parse<T: DeserializeOwned>(value: Value) -> anyhow::Result<T> {
    serde_json::from_value(value).context("the test data is invalid by the contract")
}

/// Converts an error of the database.
pub fn database_error(error: boxoffice_http::error::Error) -> anyhow::Error {
    anyhow!("the database: {error:?}")
}

/// Converts an error response of the API.
fn api_error(error: Error<types::Error>) -> anyhow::Error {
    anyhow!("the API: {error:?}")
}
