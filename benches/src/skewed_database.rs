//! A database in which one event, one host and one account have most of the rows, and its server.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use boxoffice::kernel::db::Db;
use boxoffice::kernel::types::secret;
use boxoffice_client::Client;

use crate::database::{Database, DatabaseKind};
use crate::fixtures::{
    self, Buyer, FIRST_BUYER_ID, INSERT_EVENTS, INSERT_PAYMENTS, INSERT_SECTIONS, INSERT_SHARES, INSERT_TRANSACTIONS,
    for_each_number, last_id,
};
use crate::progress::Progress;
use crate::server::Server;

/// Numbers of rows.
#[derive(Debug, Clone, Copy)]
pub struct Sizes {
    /// The orders and tickets of the account, all for the event; a quarter of the tickets are admitted.
    pub tickets: i64,
    /// The further events of the host.
    pub events: i64,
    /// The transfers of the account.
    pub transfers: i64,
    /// The modifiers of a section.
    pub modifiers: i64,
}

/// A server with its database.
pub struct SkewedDatabase {
    /// The server, which ends before its database.
    pub server: Server,
    _database: Database,
    /// A staff key.
    pub staff_key: Arc<str>,
    /// The account with the rows.
    pub holder: Buyer,
    /// The recipient of its transfers.
    pub recipient: Buyer,
    /// Other accounts, each of which may order.
    pub buyers: Vec<Buyer>,
    /// The event's identifier.
    pub event: String,
    /// The host's identifier.
    pub host: String,
    /// The identifier of the section with the rows.
    pub section: String,
    /// Number of admitted tickets; the following ones are not.
    pub admitted: i64,
}

impl SkewedDatabase {
    /// Creates a database and starts its server.
    ///
    /// # Errors
    /// Returns an error if the API or the database returns an error.
    pub async fn create(program: &Path, kind: DatabaseKind, place: &Path, sizes: Sizes, buyers: usize) -> anyhow::Result<Self> {
        let mut progress = Progress::new(&format!("creating a database with {} tickets", sizes.tickets));
        let database = Database::new(kind, place)?;
        let (url, folder) = (&database.url, database.folder.path());
        let server = Server::platform(program, url, folder)?;
        let staff_key: Arc<str> = fixtures::create_key(program, url, folder, "administrator")?.into();
        let public_key = fixtures::create_key(program, url, folder, "public")?;
        let address = format!("http://{}", server.address);
        let (staff, application) = (Client::connect(&address, &staff_key)?, Client::connect(&address, &public_key)?);
        let (host, event, sections) = fixtures::create_event(&address, &staff, &application).await?;
        drop(server);

        let section = last_id(sections.first().context("the event has sections")?)?;
        let db = Db::open(url).await?;
        let buyer = |n| Buyer { number: format!("LD-{}", 10_000_000 + n), key: secret::api_key().into() };
        let mut accounts: Vec<Buyer> = (0..buyers + 2).map(buyer).collect();
        fixtures::insert_buyers(&db, &accounts).await.map_err(fixtures::database_error)?;
        let admitted = sizes.tickets / 4;
        for (part, count, origin, statements) in [
            ("events", sizes.events, last_id(&event)?, [INSERT_EVENTS, INSERT_SECTIONS].as_slice()),
            ("orders", sizes.tickets, section, &INSERT_SALES),
            ("admissions", admitted, section, &[INSERT_ADMISSIONS]),
            ("transfers", sizes.transfers, FIRST_BUYER_ID, &INSERT_TRANSFERS),
            ("modifiers", sizes.modifiers, section, &[INSERT_MODIFIERS]),
        ] {
            fixtures::insert_rows(&db, &mut progress, part, count, origin, statements).await?;
        }
        let redeemed = "update tickets set status = 'Redeemed', redeemed = issued where id in (select ticket_id from admissions)";
        fixtures::execute_all(&db, &[redeemed]).await?;
        fixtures::update_counters(&db).await?;
        db.close().await;
        progress.finish();

        let server = Server::platform(program, url, folder)?;
        let buyers = accounts.split_off(2);
        let [holder, recipient]: [Buyer; 2] = accounts.try_into().ok().context("two accounts")?;
        let (event, host, section) = (last_id(&event)?.to_string(), host.to_string(), section.to_string());
        Ok(Self { server, _database: database, staff_key, holder, recipient, buyers, event, host, section, admitted })
    }
}

/// Returns the number of an order.
pub fn order(n: i64) -> String {
    (15_000_000_000_000 + n).to_string()
}

/// Returns the serial of a ticket.
pub fn serial(n: i64) -> String {
    format!("LOAD00-{}", 100_000_000_000 + n)
}

/// Paid orders of one account, each of a ticket for one section.
const INSERT_SALES: [&str; 6] = [
    for_each_number!(
        "insert into orders (id, account_id, status, placed, expires, fulfilled, subtotal, fees)
         select 15000000000000 + n, 14000000000000, 'Fulfilled', (15000000000000 + n) * 100, (15000000000000 + n) * 100,
             (15000000000000 + n) * 100, 5000, 99
         from g, origin"
    ),
    for_each_number!(
        "insert into order_items (order_id, position, event_id, section_id, quantity, unit_price, unit_fee)
         select 15000000000000 + n, 1, event_id, sections.id, 1, 5000, 99
         from g, sections where sections.id = (select id from origin)"
    ),
    INSERT_PAYMENTS,
    INSERT_TRANSACTIONS,
    INSERT_SHARES,
    for_each_number!(
        "insert into tickets (id, serial, order_id, event_id, section_id, owner_id, status, issued, redeemed, modified)
         select 15000000000000 + n, 'LOAD00-' || (100000000000 + n), 15000000000000 + n, event_id, sections.id, 14000000000000,
             'Issued', (15000000000000 + n) * 100, null, (15000000000000 + n) * 100
         from g, sections where sections.id = (select id from origin)"
    ),
];
const INSERT_ADMISSIONS: &str = for_each_number!(
    "insert into admissions (id, event_id, section_id, ticket_id, patron_id, redeemer, device, admitted)
     select 15000000000000 + n, event_id, sections.id, 15000000000000 + n, 14000000000000, 'Yaw', 'Gate A',
         (15000000000000 + n) * 100
     from g, sections where sections.id = (select id from origin)"
);
/// Cancelled transfers from the first to the second account, each of one ticket.
const INSERT_TRANSFERS: [&str; 2] = [
    for_each_number!(
        "insert into transfers (id, status, sender_id, recipient_id)
         select 15000000000000 + n, 'Cancelled', origin.id, origin.id + 1 from g, origin"
    ),
    for_each_number!(
        "insert into transfer_tickets (transfer_id, ticket_id)
         select 15000000000000 + n, 15000000000000 + n % (select count(*) from tickets) from g, origin"
    ),
];
/// Modifiers that apply to no ordinary order.
const INSERT_MODIFIERS: &str = for_each_number!(
    "insert into modifiers (id, section_id, name, price_delta, available_from, available_to, min_order, max_order, active)
     select 15000000000000 + n, sections.id, 'Group ' || n, -100, null, null, 40, 50, true
     from g, sections where sections.id = (select id from origin)"
);
