//! Hostile load: clients that try to exhaust the server's memory, while another client measures its latency.

use std::fmt::Write as _;
use std::io::{Write, stdout};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, bail};
use boxoffice::kernel::db::Db;
use bytes::Bytes;
use clap::Args;
use http::Method;
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::{sleep, timeout};

use crate::database::{Database, DatabaseKind};
use crate::fixtures::{self, Buyer, EVENTS, FIRST_ORDER_ID, FIRST_TICKET_ID, Fixtures};
use crate::load::{Load, LoadRequest, RequestSource, run_load};
use crate::server::{self, Server};

/// Upper bound of the other client's 99th percentile.
const MAX_P99: Duration = Duration::from_millis(200);
/// Upper bound of the server's memory in MiB.
const MAX_MEBIBYTES: f64 = 250.0;
/// Requests per second of the other client, below the default rate limit of its keys together.
const RATE: f64 = 40.0;
/// Number of keys of the other client.
const KEYS: usize = 8;
/// Number of listed events with 100 sections each.
const LARGE_EVENTS: i64 = 100;
/// Length of the description of each of these sections, which is the maximum.
const DESCRIPTION_BYTES: usize = 5_000;
/// Announced size of an upload that never ends.
const UPLOAD_BYTES: usize = 7 << 20;
/// Size of the socket's buffer of a client that reads slowly.
const SLOW_BUFFER_BYTES: u32 = 4096;
/// Bytes per second that it reads.
const SLOW_BYTES_PER_SECOND: usize = 100;
/// Pause of an attacker before it connects again.
const PAUSE: Duration = Duration::from_millis(500);

/// Options of the hostile load.
#[derive(Debug, Args)]
pub struct HostileOptions {
    /// Seconds of the load
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    seconds: u64,
    /// Database to use
    #[arg(long, default_value = "sqlite")]
    database: DatabaseKind,
    /// Server program [default: built with the profile `dist`]
    #[arg(long)]
    program: Option<PathBuf>,
    /// Folder of the database
    #[arg(long, default_value = "target/load")]
    place: PathBuf,
}

/// A kind of attack.
#[derive(Debug, Clone, Copy)]
enum Attack {
    /// Requests for the PDF of an order with 50 tickets.
    TicketDocuments,
    /// Requests for a QR code of the largest size.
    QrCodes,
    /// Uploads that send most of a large body and then nothing.
    Uploads,
    /// Requests for large pages.
    LargePages,
    /// Requests for large pages, whose responses are read at less than the least rate.
    SlowReaders,
    /// Heads, HTTP/2 prefaces and TLS handshakes that don't end.
    UnfinishedHeads,
    /// Connections without a request.
    IdleConnections,
}

/// The attacks with their numbers of connections. Together less than the usual limit of open files, which is 1024.
const ATTACKS: [(Attack, usize); 7] = [
    (Attack::TicketDocuments, 32),
    (Attack::QrCodes, 16),
    (Attack::Uploads, 300),
    (Attack::LargePages, 16),
    (Attack::SlowReaders, 50),
    (Attack::UnfinishedHeads, 250),
    (Attack::IdleConnections, 300),
];

/// Connections of one address.
const CONNECTIONS_OF_ADDRESS: usize = 200;

/// Counts what happened to the connections of an attack.
#[derive(Debug, Default)]
struct Counts {
    opened: AtomicU64,
    closed: AtomicU64,
    responses: AtomicU64,
    /// The last error of a connection that could not be opened.
    connect_error: Mutex<Option<std::io::Error>>,
}

/// Runs the load and prints the figures. Returns whether they are within the bounds, and all attacks took place.
///
/// # Errors
/// Returns an error if the server or its database can't be started.
pub async fn run(options: &HostileOptions) -> anyhow::Result<bool> {
    let program = server::path(options.program.as_deref())?;
    let database = Database::new(options.database, &options.place)?;
    let fixtures = create_fixtures(&program, &database).await?;
    let server = Server::with_default_limits(&program, &database.url, database.folder.path())?;
    let (address, duration) = (server.address, Duration::from_secs(options.seconds));
    let load = Load { address, connections: 4, warm_up: Duration::from_secs(2), duration, rate: Some(RATE) };
    let requests = requests(&fixtures);
    let alone = run_load(&Load { duration: duration / 6, ..load.clone() }, &requests, || ()).await?;
    server.reset_peak_memory()?;
    let counts: Vec<Arc<Counts>> = ATTACKS.iter().map(|_| Arc::default()).collect();
    attack(address, fixtures.buyers, counts.clone())?;
    let measurement = run_load(&load, &requests, || ()).await?;
    let mebibytes = server.peak_memory()?;

    let p99 = |latencies: &hdrhistogram::Histogram<u64>| Duration::from_micros(latencies.value_at_quantile(0.99));
    let (p99_alone, p99) = (p99(&alone.latencies), p99(&measurement.latencies));
    let mut report = String::from("attack              connections  opened  closed  responses\n");
    let mut missing = String::new();
    for ((attack, connections), counts) in ATTACKS.iter().zip(&counts) {
        let [opened, closed, responses] =
            [&counts.opened, &counts.closed, &counts.responses].map(|count| count.load(Ordering::Relaxed));
        writeln!(report, "{:<18}  {connections:>11}  {opened:>6}  {closed:>6}  {responses:>9}", format!("{attack:?}"))?;
        if opened < *connections as u64 {
            let error = counts.connect_error.lock();
            writeln!(missing, "{attack:?}: only {opened} of {connections} connections were opened; the last error: {error:?}")?;
        }
        if matches!(attack, Attack::TicketDocuments | Attack::QrCodes | Attack::LargePages) && responses == 0 {
            writeln!(missing, "{attack:?}: no client has read its responses")?;
        }
    }
    let failures: u64 = measurement.others.values().sum();
    writeln!(
        report,
        "\nother client: {} responses in {} s, {failures} failures {:?}",
        measurement.latencies.len(),
        options.seconds,
        measurement.others
    )?;
    writeln!(report, "p99: {p99:?} (alone: {p99_alone:?}; at most {MAX_P99:?})")?;
    writeln!(report, "memory of the server: {mebibytes:.0} MiB at its peak (at most {MAX_MEBIBYTES:.0})")?;
    report.push_str(&missing);
    stdout().write_all(report.as_bytes())?;
    Ok(p99 <= MAX_P99 && mebibytes <= MAX_MEBIBYTES && failures == 0 && missing.is_empty())
}

/// Creates the test data with events that are as large as possible, and orders with 50 tickets.
async fn create_fixtures(program: &Path, database: &Database) -> anyhow::Result<Fixtures> {
    const INSERT: &str = "with recursive g (n) as (select cast($1 as bigint) union all select n + 1 from g where n < $2)
        insert into sections (id, event_id, name, description, base_price, capacity, sold, reserved, sales_start, sales_end, active)
        select 14300000000000 + n, 14100000000000 + n / 100, 'Part ' || n, $3, 5000, 10, 0, 0, sales_start, sales_end, active
        from g, sections where sections.id = 14200000000000 and n % 100 > 0";
    // The tickets to admit belong to the first 1000 orders, and most of them to other buyers.
    const OWN: &str = "update tickets set owner_id = (select account_id from orders o where o.id = order_id)
        where id between $1 and $1 + 49999 and (id - $1) % 1000 <= 100";
    let fixtures = Fixtures::create(program, &database.url, database.folder.path(), 1000, EVENTS).await?;
    let db = Db::open(&database.url).await?;
    let insert = async {
        let mut tx = db.begin().await?;
        let description = "x".repeat(DESCRIPTION_BYTES);
        tx.query(INSERT).bind(0_i64).bind(LARGE_EVENTS * 100 - 1).bind(description).execute().await?;
        tx.query(OWN).bind(FIRST_TICKET_ID).execute().await?;
        tx.commit().await
    };
    insert.await.map_err(fixtures::database_error)?;
    db.close().await;
    Ok(fixtures)
}

/// Returns the requests of the other client: single events and small pages.
fn requests(fixtures: &Fixtures) -> RequestSource {
    let keys: Vec<Arc<str>> = fixtures.buyers.iter().rev().take(KEYS).map(|buyer| Arc::clone(&buyer.key)).collect();
    let event = fixtures.event.clone();
    Arc::new(move |number| {
        let path = match number % 4 {
            0 => format!("/published-events?records=5&page={}", 1000 + number % 500),
            1 => "/time".to_owned(),
            2 => "/regions".to_owned(),
            _ => format!("/events/{event}"),
        };
        let key = Arc::clone(&keys[number as usize % KEYS]);
        Some(LoadRequest { method: Method::GET, path, key, body: Bytes::new() })
    })
}

/// Starts all attacks in a thread of their own, so that they don't delay the other client. They end with the program.
fn attack(address: SocketAddr, buyers: Vec<Buyer>, counts: Vec<Arc<Counts>>) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    thread::spawn(move || {
        runtime.block_on(async {
            let mut number = 0;
            for ((attack, connections), counts) in ATTACKS.into_iter().zip(counts) {
                for _ in 0..connections {
                    number += 1;
                    // All uploads with one key; the others are below the rate limit of their keys.
                    let key = match attack {
                        Attack::Uploads => &buyers[0].key,
                        _ => &buyers[number].key,
                    };
                    let from = Ipv4Addr::new(127, 0, 1, (number / CONNECTIONS_OF_ADDRESS) as u8);
                    tokio::spawn(repeat((attack, number as i64), address, from, Arc::clone(key), Arc::clone(&counts)));
                }
            }
            std::future::pending::<()>().await;
        });
    });
    Ok(())
}

/// Repeats the attack of a client, the one with this number, on new connections.
async fn repeat((attack, number): (Attack, i64), address: SocketAddr, from: Ipv4Addr, key: Arc<str>, counts: Arc<Counts>) {
    loop {
        match connect(attack, address, from).await {
            Ok(mut connection) => {
                counts.opened.fetch_add(1, Ordering::Relaxed);
                if let Ok(true) = attempt(attack, number, &mut connection, &key).await {
                    counts.responses.fetch_add(1, Ordering::Relaxed);
                }
                counts.closed.fetch_add(1, Ordering::Relaxed);
            }
            Err(error) => *counts.connect_error.lock() = Some(error),
        }
        sleep(PAUSE).await;
    }
}

async fn connect(attack: Attack, address: SocketAddr, from: Ipv4Addr) -> std::io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    if matches!(attack, Attack::SlowReaders) {
        socket.set_recv_buffer_size(SLOW_BUFFER_BYTES)?;
    }
    socket.bind((from, 0).into())?;
    socket.connect(address).await
}

/// Attacks on one connection until the server closes it. Returns whether there was a response; of tickets, one that shows them.
async fn attempt(attack: Attack, number: i64, connection: &mut TcpStream, key: &str) -> anyhow::Result<bool> {
    let head = format!("Host: x\r\nX-API-Key: {key}\r\nX-Client-Version: 3.0.0\r\n");
    let list = |page: usize| format!("GET /published-events?records=100&page={page} HTTP/1.1\r\n{head}\r\n");
    let mut buffer = vec![0; 64 * 1024];
    match attack {
        Attack::TicketDocuments | Attack::QrCodes => {
            let path = match attack {
                Attack::TicketDocuments => format!("/orders/{}/tickets.pdf", FIRST_ORDER_ID + number),
                _ => format!("/tickets/{}/code/png?size=1000", FIRST_TICKET_ID + number),
            };
            let request = format!("GET {path} HTTP/1.1\r\n{head}");
            let last = format!("{request}Connection: close\r\n\r\n");
            connection.write_all([format!("{request}\r\n").repeat(9), last].concat().as_bytes()).await?;
            let length = connection.read(&mut buffer).await?;
            let is_success = buffer[..length].starts_with(b"HTTP/1.1 200");
            while connection.read(&mut buffer).await? > 0 {}
            Ok(is_success)
        }
        Attack::Uploads => {
            let head = format!(
                "POST /events HTTP/1.1\r\n{head}Content-Type: application/json\r\nContent-Length: {UPLOAD_BYTES}\r\n\r\n"
            );
            connection.write_all(head.as_bytes()).await?;
            let part = vec![b' '; 128 * 1024];
            for _ in 0..UPLOAD_BYTES / part.len() - 1 {
                connection.write_all(&part).await?;
                if let Ok(read) = timeout(Duration::from_millis(200), connection.read(&mut buffer)).await {
                    return Ok(read? > 0);
                }
            }
            Ok(connection.read(&mut buffer).await? > 0)
        }
        Attack::LargePages => {
            for page in 1..=10 {
                connection.write_all(list(page).as_bytes()).await?;
                // A pause of the data is the end of the response.
                while let Ok(read) = timeout(Duration::from_millis(200), connection.read(&mut buffer)).await {
                    if read? == 0 {
                        bail!("closed");
                    }
                }
            }
            Ok(true)
        }
        Attack::SlowReaders => {
            connection.write_all((1..=10).map(list).collect::<String>().as_bytes()).await?;
            loop {
                sleep(Duration::from_secs(1)).await;
                let part = buffer.get_mut(..SLOW_BYTES_PER_SECOND).context("the buffer is too small")?;
                if connection.read(part).await? == 0 {
                    bail!("closed");
                }
            }
        }
        Attack::UnfinishedHeads => {
            const BEGINNINGS: [&[u8]; 4] =
                [b"G", b"GET /time HTTP/1.1\r\nHost: x\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"\x16\x03\x01"];
            let beginning = BEGINNINGS[usize::from(connection.local_addr()?.port()) % BEGINNINGS.len()];
            connection.write_all(beginning).await?;
            Ok(connection.read(&mut buffer).await? > 0)
        }
        Attack::IdleConnections => Ok(connection.read(&mut buffer).await.context("closed")? > 0),
    }
}
