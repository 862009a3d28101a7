//! Plays the life of an event on a running server: group prices, review, search, sale, waiting list, transfer, two gates of which one
//! has no connection, an admission that is undone, a second event that is cancelled and refunded, and the export of the books. It
//! checks every amount.
//!
//! ```sh
//! cargo run --release -- serve        # in another terminal; its first start creates the administrator's key
//! cargo run -p boxoffice-client --example event_day -- http://127.0.0.1:8080 ADMINISTRATOR_KEY data/mail
//! ```
//!
//! The last argument is the folder in which the server writes mails when it has no mail server.

#![expect(clippy::print_stdout, reason = "the example prints each step")]

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, ensure};
use boxoffice_client::{ByteStream, Client, ResponseValue, types};
use chrono::Utc;
use futures::TryStreamExt;

#[path = "offline_gate.rs"]
#[expect(dead_code, reason = "this example doesn't call the main function of the gate")]
mod offline_gate;

use offline_gate::{Decision, Gate};

/// Time limit for what the server does in the background: offers, mails, returns and refunds.
const BACKGROUND_TIMEOUT: Duration = Duration::from_secs(60);

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    const USAGE: &str = "usage: event_day ADDRESS ADMINISTRATOR_KEY MAIL_FOLDER";
    let mut arguments = std::env::args().skip(1);
    let [address, key, mails] = [(); 3].map(|()| arguments.next());
    play(&address.context(USAGE)?, &key.context(USAGE)?, &PathBuf::from(mails.context(USAGE)?)).await
}

/// A person with an account.
struct Person {
    client: Client,
    number: String,
    email: String,
}

/// The staff's client, and what the people of the day have in common.
struct Day {
    address: String,
    staff: Client,
    mails: PathBuf,
    /// Makes names unique, also when the example runs again.
    run: u128,
}

/// Plays the day.
///
/// # Errors
/// Returns an error if the server rejects a request, or an amount is wrong.
pub async fn play(address: &str, key: &str, mails: &Path) -> anyhow::Result<()> {
    let run = SystemTime::now().duration_since(UNIX_EPOCH)?.as_micros();
    let day = Day { address: address.to_owned(), staff: Client::connect(address, key)?, mails: mails.to_owned(), run };
    let [kofi, ama, yaw, esi, efua] = [
        day.sign_up("kofi").await?,
        day.sign_up("ama").await?,
        day.sign_up("yaw").await?,
        day.sign_up("esi").await?,
        day.sign_up("efua").await?,
    ];
    let host = kofi.client.host_create();
    let host = host.body_map(|body| body.name(format!("Accra Live {run}")).contact("Kofi").email(kofi.email.clone()));
    let host = host.send().await?.self_.clone();
    let place = day.place().await?;
    let (first, floor) = day.event(&kofi, &host, &place, "Harmattan Jazz Night").await?;
    let (second, other_floor) = day.event(&kofi, &host, &place, "Harmattan Jazz Night, second date").await?;
    let found = ama.client.published_event_list().search(format!("{run} night harm")).send().await?;
    let found: HashSet<&str> = found.entries.iter().map(|event| event.self_.as_str()).collect();
    ensure!(found == HashSet::from([first.as_str(), second.as_str()]), "the search finds {found:?}");

    // The price of a group of four is lower by 5.00, and the fee of each ticket is 1.99.
    let items = HashMap::from([(floor.clone(), 4)]);
    let quote = ama.client.quote_create().body_map(|body| body.items(items)).send().await?;
    check("the quote", quote.total, 4.0 * (55.0 + 1.99))?;
    let order = day.buy(&ama, &floor, 4).await?;
    check("Ama's order", order.total, quote.total)?;
    let mail = day.mail(&ama, &order.number).await?;
    ensure!(mail.contains("tickets.pdf"), "the confirmation has no tickets");

    // Yaw reserves the last two places, so Esi waits for them.
    let reserved = day.order(&yaw, &floor, 2).await?;
    check("Yaw's order", reserved.total, 2.0 * (60.0 + 1.99))?;
    let [event_id, section_id] = [id_of(&first), id_of(&floor)];
    let entry = esi.client.section_waiting_entry_create().event(event_id).section(section_id);
    let entry = entry.body_map(|body| body.quantity(2)).send().await?;
    println!("The event is sold out. Esi is number {:?} on the waiting list.", entry.position);
    yaw.client.order_cancellation_create().order(reserved.number.as_str()).send().await?;
    ensure!(day.order(&yaw, &floor, 1).await.is_err(), "Yaw overtakes Esi");
    day.wait_for_offer(&esi, event_id, section_id, id_of(&entry.self_)).await?;
    day.mail(&esi, "2 places are").await?;
    let hers = day.buy(&esi, &floor, 2).await?;
    check("Esi's order", hers.total, 123.98)?;

    let serials = day.transfer_one(&ama, &efua).await?;
    day.admit(&kofi, &first, &serials, &day.serials(&efua).await?[0]).await?;

    let lost = [day.buy(&ama, &other_floor, 2).await?, day.buy(&yaw, &other_floor, 1).await?];
    day.cancel(&kofi, id_of(&second)).await?;
    day.check_books(&kofi, id_of(&host), [id_of(&first), id_of(&second)]).await?;
    for (buyer, order) in [&ama, &yaw].into_iter().zip(&lost) {
        let returned = buyer.client.order_get().order(order.number.as_str()).send().await?;
        ensure!(returned.status == types::OrderStatus::Returned, "the order of the cancelled event is {}", returned.status);
        check("the refund", returned.refunded, order.total)?;
    }
    println!("The books are right.");
    Ok(())
}

impl Day {
    /// Creates an account and logs in.
    async fn sign_up(&self, name: &str) -> anyhow::Result<Person> {
        let (name, password) = (format!("{name}{}", self.run), "correct horse battery");
        let email = format!("{name}@example.com");
        let account = self.staff.account_create();
        let account = account.body_map(|body| body.username(name.as_str()).email(email.as_str()).password(password));
        let number = account.send().await?.number.clone();
        let session = self.staff.session_create().body_map(|body| body.identification(name.as_str()).password(password));
        Ok(Person { client: Client::connect(&self.address, &session.send().await?.key)?, number, email })
    }

    /// Creates a venue and a category.
    async fn place(&self) -> anyhow::Result<(String, String)> {
        let region = self.staff.region_create();
        let region = region.body_map(|body| body.name(format!("Greater Accra {}", self.run)).country("Ghana")).send().await?;
        let venue = self.staff.venue_create().body_map(|body| {
            let location = body.longitude(-0.2009).latitude(5.5527).address("Liberia Road, Accra");
            location.name(format!("National Theatre {}", self.run)).region(region.self_.clone())
        });
        let category = self.staff.category_create();
        let category = category.body_map(|body| body.name(format!("Music {}", self.run)).subcategories(vec!["Jazz".to_owned()]));
        Ok((venue.send().await?.self_.clone(), category.send().await?.self_.clone()))
    }

    /// Creates an event with a section of six places, has the staff approve it, and returns the URIs of both.
    async fn event(
        &self,
        kofi: &Person,
        host: &str,
        (venue, category): &(String, String),
        title: &str,
    ) -> anyhow::Result<(String, String)> {
        let event = kofi.client.event_create().body_map(|body| {
            let description = body.host(host).title(format!("{title} {}", self.run)).description("Jazz, outdoors.");
            let details = description.type_("Standard").public(true).category(category.as_str()).subcategory("Jazz");
            details.venue(venue.as_str()).start("2999-12-20T19:00".to_owned()).end("2999-12-20T23:00".to_owned())
        });
        let event = event.send().await?.self_.clone();
        let section = kofi.client.section_create().event(id_of(&event)).body_map(|body| {
            let sales = body.sales_start("2020-01-01T00:00").sales_end("2999-12-20T19:00");
            sales.name("VIP").base_price(60.0).capacity(6)
        });
        let section = format!("{event}{}", section.send().await?.self_);
        let group = kofi.client.section_modifier_create().event(id_of(&event)).section(id_of(&section));
        group.body_map(|body| body.name("Groups").price_delta(-5.0).min_order(4)).send().await?;
        let submission = kofi.client.event_submission_create().event(id_of(&event)).send().await?;
        self.staff.submission_delete().submission(id_of(&submission.self_)).approved(true).send().await?;
        println!("{title} is on sale.");
        Ok((event, section))
    }

    /// Places an order.
    async fn order(&self, person: &Person, section: &str, quantity: i64) -> anyhow::Result<types::Order> {
        let items = HashMap::from([(section.to_owned(), quantity)]);
        Ok(person.client.order_create().body_map(|body| body.items(items)).send().await?.into_inner())
    }

    /// Places an order, pays it by card, and returns it.
    async fn buy(&self, person: &Person, section: &str, quantity: i64) -> anyhow::Result<types::Order> {
        let order = self.order(person, section, quantity).await?;
        let payment = person.client.order_payment_create().order(order.number.as_str());
        let payment = payment.body_map(|body| body.method(types::PaymentMethod::Card).token("tok_approve".to_owned()));
        check("the payment", payment.send().await?.amount, order.total)?;
        let order = person.client.order_get().order(order.number.as_str()).send().await?.into_inner();
        ensure!(order.status == types::OrderStatus::Fulfilled, "the paid order is {}", order.status);
        println!("{} has bought {quantity} tickets for {:.2}.", person.email, order.total);
        Ok(order)
    }

    /// Waits until places are offered to an entry of the waiting list.
    async fn wait_for_offer(&self, person: &Person, event: &str, section: &str, entry: &str) -> anyhow::Result<()> {
        let offered = async || {
            let read = person.client.section_waiting_entry_get().event(event).section(section).entry(entry).send().await?;
            Ok((read.status == types::WaitingStatus::Offered).then(|| read.into_inner()))
        };
        let entry = wait_until("an offer", offered).await?;
        println!("{} has an offer until {:?}.", person.email, entry.expires);
        Ok(())
    }

    /// Waits for a mail to a person that contains a text, and returns it.
    async fn mail(&self, person: &Person, text: &str) -> anyhow::Result<String> {
        let find = async || {
            // The folder doesn't exist before the first mail.
            let files = fs::read_dir(&self.mails).into_iter().flatten().filter_map(|file| Some(file.ok()?.path()));
            let mut mails = files.filter_map(|file| fs::read_to_string(file).ok());
            Ok(mails.find(|mail| mail.contains(&person.email) && mail.contains(text)))
        };
        wait_until(&format!("a mail with {text}"), find).await
    }

    /// Returns the serial numbers of a person's Issued tickets.
    async fn serials(&self, person: &Person) -> anyhow::Result<Vec<String>> {
        let wallet = person.client.account_ticket_list().number(person.number.as_str()).records(100).send().await?;
        let issued = wallet.entries.iter().filter(|ticket| ticket.status == types::TicketStatus::Issued);
        Ok(issued.map(|ticket| ticket.serial.to_string()).collect())
    }

    /// Transfers the last ticket of one person to another, and returns the serial numbers of the other tickets.
    async fn transfer_one(&self, from: &Person, to: &Person) -> anyhow::Result<Vec<String>> {
        let mut serials = self.serials(from).await?;
        let serial = serials.pop().context("there is no ticket")?;
        let offer =
            from.client.transfer_create().body_map(|body| body.recipient(to.number.as_str()).tickets(vec![serial.clone()]));
        let transfer = offer.send().await?;
        to.client.transfer_claim_create().transfer(id_of(&transfer.self_)).send().await?;
        ensure!(!self.serials(to).await?.contains(&serial), "the sender's copy of the ticket still admits");
        println!("{} has transferred a ticket to {}.", from.email, to.email);
        Ok(serials)
    }

    /// Admits at two gates. Gate B loads its list, works without a connection, and uploads its scans later.
    async fn admit(&self, kofi: &Person, event: &str, serials: &[String], transferred: &str) -> anyhow::Result<()> {
        let event = id_of(event);
        let tokens = kofi.client.event_token_list().event(event).global(true).send().await?;
        let code = tokens.entries.first().context("the event has no global token")?.code.clone();
        let key = self.staff.token_authentication_get().code(code).send().await?.key.clone();
        let gate = |name: &str| anyhow::Ok(Gate::new(Client::connect(&self.address, &key)?, event, name));
        let (mut a, mut b) = (gate("Gate A")?, gate("Gate B")?);
        a.sync().await?;
        b.sync().await?;

        let scanned = [b.scan(transferred, Utc::now()), b.scan(&serials[0], Utc::now())];
        ensure!(scanned == [Decision::Admitted; 2], "gate B decides {scanned:?}");
        let scanned = [a.scan(&serials[0], Utc::now()), a.scan(&serials[1], Utc::now())];
        ensure!(scanned == [Decision::Admitted; 2], "gate A decides {scanned:?}");
        a.sync().await?;
        let (of_b, of_a) = (b.sync().await?, a.sync().await?);
        ensure!((of_a.len(), of_b.len()) == (1, 1), "both gates learn of the copy of one ticket");
        println!("Gate B had no connection. It admitted a copy of the ticket {}.", of_b[0].ticket);

        // Gate A has admitted the wrong person: it undoes that, and admits the ticket again.
        let admissions = kofi.client.event_admission_list().event(event).ticket(serials[1].as_str()).send().await?;
        let admission = admissions.entries.first().context("there is no admission")?;
        kofi.client.event_admission_delete().event(event).admission(id_of(&admission.self_)).send().await?;
        let again = kofi.client.event_admission_create().event(event);
        let again = again.body_map(|body| body.serials(vec![serials[1].clone()]).device("Gate A".to_owned())).send().await?;
        ensure!(again.len() == 1, "the ticket is not admitted again");
        println!("An admission was undone and made again.");
        Ok(())
    }

    /// Cancels the event that has sold two tickets to Ama and one to Yaw, and returns their orders.
    async fn cancel(&self, kofi: &Person, event: &str) -> anyhow::Result<()> {
        kofi.client.event_cancellation_create().event(event).send().await?;
        let run = kofi.client.event_return_create().event(event).body_map(|body| body.reason("A storm.".to_owned()));
        let run = run.send().await?;
        let done = async || {
            let read = kofi.client.event_return_get().event(event).entry(run.number.as_str()).send().await?;
            Ok((read.status == types::EventReturnStatus::Done).then(|| read.into_inner()))
        };
        let done = wait_until("the returns", done).await?;
        ensure!((done.orders, done.tickets) == (2, 3), "{} orders and {} tickets are returned", done.orders, done.tickets);
        println!("The second date is cancelled, and {:.2} is returned.", done.amount);
        check("the amount of the returns", done.amount, 3.0 * (60.0 + 1.99))
    }

    /// Waits for the refunds, and compares the ledger, its export and the reports of both events.
    async fn check_books(&self, kofi: &Person, host: &str, [first, second]: [&str; 2]) -> anyhow::Result<()> {
        let ledger = async || {
            let read = kofi.client.host_transaction_list().host(host).records(100).send().await?;
            // Four payments and two refunds.
            Ok((read.total == 6).then(|| read.into_inner()))
        };
        let ledger = wait_until("the refunds", ledger).await?;
        let amount = |entry: &types::Transaction| {
            if entry.type_ == types::TransactionType::Sale { entry.amount } else { -entry.amount }
        };
        let kept = 227.96 + 123.98;
        check("the ledger", ledger.entries.iter().map(amount).sum(), kept)?;
        let exported = rows(kofi.client.host_transaction_export_get().host(host).send().await?).await?;
        ensure!(exported.len() == ledger.entries.len(), "the export has {} rows", exported.len());
        check("the export of the ledger", sum(&exported, "amount")?, kept)?;

        let sold = kofi.client.event_sales_get().event(first).send().await?;
        check("the sales", sold.sales + sold.fees, kept)?;
        check("the fees in the export of the ledger", sum(&exported, "fees")?, sold.fees)?;
        let orders = rows(kofi.client.event_order_export_get().event(first).send().await?).await?;
        let paid: Vec<Row> = orders.into_iter().filter(|order| order["status"] == "Fulfilled").collect();
        check("the total of the exported orders", sum(&paid, "total")?, kept)?;
        for (event, tickets) in [(first, 6), (second, 0)] {
            let sold = kofi.client.event_statistics_get().event(event).send().await?;
            ensure!(sold.tickets == tickets, "{} tickets are sold", sold.tickets);
            let door_list = rows(kofi.client.event_ticket_export_get().event(event).send().await?).await?;
            ensure!(i64::try_from(door_list.len())? == tickets, "the door list has {} tickets", door_list.len());
        }
        Ok(())
    }
}

/// Calls `read` until it returns a value.
async fn wait_until<T>(what: &str, read: impl AsyncFn() -> anyhow::Result<Option<T>>) -> anyhow::Result<T> {
    let end = SystemTime::now() + BACKGROUND_TIMEOUT;
    loop {
        if let Some(value) = read().await? {
            return Ok(value);
        }
        ensure!(SystemTime::now() < end, "waited in vain for {what}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// A row of an export: its values by the names of the columns.
type Row = HashMap<String, String>;

/// Reads an export.
async fn rows(export: ResponseValue<ByteStream>) -> anyhow::Result<Vec<Row>> {
    let chunks: Vec<_> = export.into_inner().into_inner().try_collect().await?;
    Ok(csv::Reader::from_reader(chunks.concat().as_slice()).deserialize().collect::<Result<_, _>>()?)
}

/// Returns the sum of a column.
fn sum(rows: &[Row], column: &str) -> anyhow::Result<f64> {
    Ok(rows.iter().map(|row| row[column].parse::<f64>()).sum::<Result<_, _>>()?)
}

/// Compares an amount to the cent.
fn check(what: &str, amount: f64, expected: f64) -> anyhow::Result<()> {
    ensure!((amount - expected).abs() < 0.005, "{what} is {amount:.2} instead of {expected:.2}");
    Ok(())
}

/// Returns the last segment of a URI.
fn id_of(uri: &str) -> &str {
    uri.rsplit('/').next().unwrap_or_default()
}
