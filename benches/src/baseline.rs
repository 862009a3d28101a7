//! Baselines, measured in the same run: an endpoint that returns the same bytes, and the statements of an order without a server.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use boxoffice::kernel::db::Db;

use crate::database::Database;
use crate::fixtures::{BUYERS, FIRST_BUYER_ID, FIRST_EVENT_ID, FIRST_SECTION_ID, Fixtures, database_error};
use crate::load::{LoadRequest, RequestSource, send_once};
use crate::server::Server;

/// Numbers of pgbench clients to try; the best result is used.
const PGBENCH_CLIENTS: [u32; 4] = [4, 16, 32, 64];
/// First identifier of the orders: a time in the past that no other data uses.
const FIRST_ORDER_ID: i64 = 16_000_000_000_000;

/// Starts an endpoint that returns the server's response to the first of these requests.
///
/// # Errors
/// Returns an error if the endpoint doesn't start.
pub async fn start_bare_endpoint(server: &Server, requests: &RequestSource, folder: &Path) -> anyhow::Result<Server> {
    let first: LoadRequest = requests(0).context("there is a request")?;
    let body = folder.join("response.json");
    fs::write(&body, send_once(server.address, &first).await?)?;
    Server::bare(&body)
}

/// The sections of the orders.
#[derive(Debug, Clone, Copy)]
pub enum Sections {
    /// A single section.
    One(i64),
    /// A thousand sections.
    Thousand,
}

/// Statements of an order. `$1` is the order, `$2` the account, `$3` the event, `$4` the section, `$5` the current time and `$6`
/// the end of the reservation.
const ORDER_STATEMENTS: [&str; 7] = [
    "select id from accounts where id = $2 for no key update",
    "select count(*) from orders where account_id = $2 and status = 'Placed' and expires > $5",
    "update sections set reserved = reserved + 1 where id = $4 and sold + reserved + 1 <= capacity",
    "insert into orders (id, account_id, status, placed, expires, fulfilled, subtotal, fees)
     values ($1, $2, 'Placed', $5, $6, null, 5000, 99)",
    "insert into order_items (order_id, position, event_id, section_id, quantity, unit_price, unit_fee)
     values ($1, 1, $3, $4, 1, 5000, 99)",
    "insert into reservations (order_id, section_id, quantity, expires) values ($1, $4, 1, $6)",
    "insert into audit (at, key_id, account_id, operation, resource, status, code, request)
     values ($5, $2, $2, 'order_create', '/orders', 201, null, '7b9f4f0e-7c43-4b9e-a8a1-3a2f0a4f1c55')",
];
/// Current time of the orders, in microseconds.
const NOW_MICROS: i64 = FIRST_ORDER_ID * 100;
const RESERVATION_MICROS: i64 = 900_000_000;

/// Places orders with SQL, one order per transaction. Returns the orders per second.
///
/// # Errors
/// Returns an error if the database or pgbench returns an error.
pub async fn measure_orders(
    database: &Database,
    fixtures: &Fixtures,
    sections: Sections,
    duration: Duration,
) -> anyhow::Result<f64> {
    match database.pgbench() {
        Some(_) => run_pgbench(database, fixtures, sections, duration),
        None => run_loop(database, fixtures, sections, duration).await,
    }
}

/// Measures with pgbench and the best number of clients.
fn run_pgbench(database: &Database, fixtures: &Fixtures, sections: Sections, duration: Duration) -> anyhow::Result<f64> {
    let section_variables = match sections {
        Sections::One(section) => format!("\\set section {section}\n\\set event {}\n", fixtures.event),
        Sections::Thousand => {
            format!(
                "\\set index random(0, 999)\n\\set section {FIRST_SECTION_ID} + :index\n\\set event {FIRST_EVENT_ID} + :index\n",
            )
        }
    };
    let variables =
        [("$1", ":order"), ("$2", ":account"), ("$3", ":event"), ("$4", ":section"), ("$5", ":now"), ("$6", ":expires")];
    let statements = ORDER_STATEMENTS.map(|statement| {
        let statement = statement.split_whitespace().collect::<Vec<_>>().join(" ");
        variables.iter().fold(statement, |text, (parameter, variable)| text.replace(parameter, variable)) + ";\n"
    });
    let script = format!(
        "\\set n :n + 1\n\\set order :first + :client_id * 1000000000 + :n\n\\set account random({FIRST_BUYER_ID}, {FIRST_BUYER_ID} + {BUYERS} - 1)\n\
         \\set now {NOW_MICROS} + :n\n\\set expires {NOW_MICROS} + :n + {RESERVATION_MICROS}\n{section_variables}begin;\n{}commit;\n",
        statements.concat()
    );
    let file = database.folder.path().join("order.sql");
    fs::write(&file, script)?;
    // Each run has its own range of identifiers.
    let range = match sections {
        Sections::One(_) => 0,
        Sections::Thousand => 1,
    };
    let mut best: f64 = 0.0;
    for (number, clients) in PGBENCH_CLIENTS.iter().enumerate() {
        let first = FIRST_ORDER_ID + (range * PGBENCH_CLIENTS.len() + number) as i64 * 100_000_000_000;
        let mut command = database.pgbench().context("this is PostgreSQL")?;
        command.args([
            "-n",
            "-M",
            "prepared",
            "-j",
            "2",
            "-c",
            &clients.to_string(),
            "-T",
            &duration.as_secs().max(1).to_string(),
        ]);
        command.args(["-D", "n=0", "-D", &format!("first={first}"), "-f"]).arg(&file);
        let output = command.output().context("cannot run pgbench")?;
        let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
        let rate = stdout.lines().find_map(|line| line.strip_prefix("tps = ")?.split(' ').next()?.parse::<f64>().ok());
        let failed = || anyhow!("pgbench failed:\n{stdout}\n{}", String::from_utf8_lossy(&output.stderr));
        best = best.max(rate.filter(|_| output.status.success()).ok_or_else(failed)?);
    }
    Ok(best)
}

async fn run_loop(database: &Database, fixtures: &Fixtures, sections: Sections, duration: Duration) -> anyhow::Result<f64> {
    let db = Db::open(&database.url).await?;
    let first = match sections {
        Sections::One(_) => FIRST_ORDER_ID,
        Sections::Thousand => FIRST_ORDER_ID + 1_000_000_000,
    };
    let (started, mut placed) = (Instant::now(), 0);
    while started.elapsed() < duration {
        let (event, section) = match sections {
            Sections::One(section) => (fixtures.event.parse()?, section),
            Sections::Thousand => (FIRST_EVENT_ID + placed % 1000, FIRST_SECTION_ID + placed % 1000),
        };
        let mut tx = db.begin().await.map_err(database_error)?;
        for statement in ORDER_STATEMENTS {
            // SQLite locks the whole database.
            let statement = statement.trim_end_matches(" for no key update");
            let statement =
                tx.query(statement).bind(first + placed).bind(FIRST_BUYER_ID + placed * 7919 % BUYERS).bind(event).bind(section);
            statement
                .bind(NOW_MICROS + placed)
                .bind(NOW_MICROS + placed + RESERVATION_MICROS)
                .execute()
                .await
                .map_err(database_error)?;
        }
        tx.commit().await.map_err(database_error)?;
        placed += 1;
    }
    let rate = placed as f64 / started.elapsed().as_secs_f64();
    db.close().await;
    Ok(rate)
}
