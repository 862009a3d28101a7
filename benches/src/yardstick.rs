//! What the machine allows, measured in the same run: a bare endpoint that answers the same bytes, and the statements of an order
//! without a server.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use boxoffice::kernel::db::Db;

use crate::database::Database;
use crate::drive::{Ask, Asks, ask_once};
use crate::server::Server;
use crate::world::{BUYER, BUYERS, EVENT, SECTION, World, refused};

/// Clients that pgbench is tried with; the best counts.
const CLIENTS: [u32; 4] = [4, 16, 32, 64];
/// Identifiers of the orders that are placed here: moments of the past that nothing else has.
const ORDER: i64 = 16_000_000_000_000;

/// An endpoint that does nothing but answer what the server answers to the first of these requests.
///
/// # Errors
/// When it can't be started.
pub async fn bare(server: &Server, asks: &Asks, folder: &Path) -> anyhow::Result<Server> {
    let first: Ask = asks(0).context("there is a request")?;
    let answer = folder.join("answer.json");
    fs::write(&answer, ask_once(server.address, &first).await?)?;
    Server::bare(&answer)
}

/// Whose places are taken.
#[derive(Debug, Clone, Copy)]
pub enum Sections {
    /// Those of one section.
    One(i64),
    /// Those of a thousand.
    Thousand,
}

/// What is asked of the database for one order. `$1` is the order, `$2` the account, `$3` the event, `$4` the section, `$5` now, and
/// `$6` the end of the reservation.
const STATEMENTS: [&str; 7] = [
    "update accounts set activated = activated where id = $2",
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
/// In microseconds, and some time that they have not reached.
const NOW: i64 = ORDER * 100;
const RESERVATION: i64 = 900_000_000;

/// Orders a second that are placed with the statements of an order, one order in a transaction.
///
/// # Errors
/// When they can't be placed.
pub async fn orders(database: &Database, world: &World, sections: Sections, time: Duration) -> anyhow::Result<f64> {
    match database.pgbench() {
        Some(_) => by_pgbench(database, world, sections, time),
        None => in_a_loop(database, world, sections, time).await,
    }
}

/// By PostgreSQL's own program for that, with the number of clients that is best.
fn by_pgbench(database: &Database, world: &World, sections: Sections, time: Duration) -> anyhow::Result<f64> {
    let place = match sections {
        Sections::One(section) => format!("\\set section {section}\n\\set event {}\n", world.event),
        Sections::Thousand => {
            format!("\\set which random(0, 999)\n\\set section {SECTION} + :which\n\\set event {EVENT} + :which\n",)
        }
    };
    let names = [("$1", ":order"), ("$2", ":account"), ("$3", ":event"), ("$4", ":section"), ("$5", ":now"), ("$6", ":expires")];
    let statements = STATEMENTS.map(|statement| {
        let statement = statement.split_whitespace().collect::<Vec<_>>().join(" ");
        names.iter().fold(statement, |text, (number, name)| text.replace(number, name)) + ";\n"
    });
    let script = format!(
        "\\set n :n + 1\n\\set order :first + :client_id * 1000000000 + :n\n\\set account random({BUYER}, {BUYER} + {BUYERS} - 1)\n\
         \\set now {NOW} + :n\n\\set expires {NOW} + :n + {RESERVATION}\n{place}begin;\n{}commit;\n",
        statements.concat()
    );
    let file = database.folder.path().join("order.sql");
    fs::write(&file, script)?;
    // Each run's orders, and each section's, are others.
    let kind = match sections {
        Sections::One(_) => 0,
        Sections::Thousand => 1,
    };
    let mut best: f64 = 0.0;
    for (number, clients) in CLIENTS.iter().enumerate() {
        let first = ORDER + (kind * CLIENTS.len() + number) as i64 * 100_000_000_000;
        let mut command = database.pgbench().context("this is PostgreSQL")?;
        command.args(["-n", "-M", "prepared", "-j", "2", "-c", &clients.to_string(), "-T", &time.as_secs().max(1).to_string()]);
        command.args(["-D", "n=0", "-D", &format!("first={first}"), "-f"]).arg(&file);
        let output = command.output().context("cannot run pgbench")?;
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let rate = said.lines().find_map(|line| line.strip_prefix("tps = ")?.split(' ').next()?.parse::<f64>().ok());
        let failed = || anyhow!("pgbench has failed:\n{said}\n{}", String::from_utf8_lossy(&output.stderr));
        best = best.max(rate.filter(|_| output.status.success()).ok_or_else(failed)?);
    }
    Ok(best)
}

async fn in_a_loop(database: &Database, world: &World, sections: Sections, time: Duration) -> anyhow::Result<f64> {
    let db = Db::open(&database.url).await?;
    let first = match sections {
        Sections::One(_) => ORDER,
        Sections::Thousand => ORDER + 1_000_000_000,
    };
    let (begun, mut placed) = (Instant::now(), 0);
    while begun.elapsed() < time {
        let (event, section) = match sections {
            Sections::One(section) => (world.event.parse()?, section),
            Sections::Thousand => (EVENT + placed % 1000, SECTION + placed % 1000),
        };
        let mut tx = db.begin().await.map_err(refused)?;
        for statement in STATEMENTS {
            let statement =
                tx.query(statement).bind(first + placed).bind(BUYER + placed * 7919 % BUYERS).bind(event).bind(section);
            statement.bind(NOW + placed).bind(NOW + placed + RESERVATION).execute().await.map_err(refused)?;
        }
        tx.commit().await.map_err(refused)?;
        placed += 1;
    }
    let rate = placed as f64 / begun.elapsed().as_secs_f64();
    db.close().await;
    Ok(rate)
}
