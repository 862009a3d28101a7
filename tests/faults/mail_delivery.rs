//! Two servers deliver the same mail, and one of them is killed repeatedly: every mail is delivered, and none twice except the at
//! most eight that were in progress on the killed server.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use boxoffice::kernel::outbox::{self, Mail, MailTemplate, Recipient};
use boxoffice::kernel::types::id::Id;
use boxoffice_client::Client;
use futures::future::join_all;
use serde_json::json;

use super::kills::Site;
use super::{print_figure, short_or_full};
use crate::support::server_process::ServerProcess;
use crate::support::{FakeGateway, MailServer, SmtpBehavior, TestApp, postgres, section, wait_until};

/// The number of mails per kill.
const MAILS: usize = 40;
/// The number of mails that one server delivers concurrently.
const CONCURRENCY: usize = 8;
/// The time after which another server takes over a killed server's mail.
const RELEASED: Duration = Duration::from_secs(3 * 60);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_mail_is_delivered_despite_kills() {
    let Some(database) = postgres::new_database().await else { return };
    let (site, post, gateway) =
        (Site::open(Some(&database.url)), MailServer::start(SmtpBehavior::AcceptSlowly).await, FakeGateway::default());
    let gateway = gateway.listen().await;
    let start = |ahead| {
        let mut command = site.command_with_gateway(gateway, ahead);
        command.env("BOXOFFICE_SMTP", post.address.to_string()).env("BOXOFFICE_SMTP_TLS", "none");
        ServerProcess::start(command)
    };
    let kills: usize = short_or_full(3, 50);
    let survivor = start(Duration::ZERO);
    let public_client = Client::connect(&survivor.address, &site.public_key).unwrap();
    public_client
        .account_create()
        .body_map(|body| body.username("ama").email("ama@example.com").password("correct horse"))
        .send()
        .await
        .unwrap();
    let ask = async || {
        let requests = public_client.verification_create().body_map(|body| body.email("ama@example.com"));
        requests.send().await.unwrap();
    };

    for kill in 0..kills {
        let killed = start(Duration::ZERO);
        let before = post.accepted().len();
        join_all((0..MAILS).map(|_| ask())).await;
        wait_until(async || post.accepted().len() > before).await;
        killed.signal("KILL");
        killed.wait();
        assert!(post.accepted().len() <= (kill + 1) * (MAILS + CONCURRENCY));
    }
    // Stopped gracefully: a kill would deliver its mail in progress twice.
    survivor.stop();
    let last = start(RELEASED);
    let db = site.db().await;
    let waiting = async || db.read().await.unwrap().query("select count(*) from outbox").scalar::<i64>().await.unwrap();
    let limit = Instant::now() + Duration::from_secs(30 + 5 * u64::try_from(kills).unwrap());
    while waiting().await > 0 {
        assert!(Instant::now() < limit, "mails are left");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    drop(last);

    let mut times: BTreeMap<String, usize> = BTreeMap::new();
    for mail in post.accepted() {
        *times.entry(mail.lines().find(|line| line.starts_with("Message-ID:")).unwrap().to_owned()).or_default() += 1;
    }
    let again: usize = times.values().map(|times| times - 1).sum();
    assert_eq!(times.len(), kills * MAILS, "each mail has arrived");
    assert!(again <= kills * CONCURRENCY && times.values().all(|times| *times <= 2), "{times:?}");
    print_figure(format!("two servers, one killed {kills} times: {} mails promised, 0 lost, {again} sent again", times.len()));
}

/// The confirmations of a sale, each with a PDF of two tickets. It prints the rate and the memory of the process, in which the mail
/// server of the test keeps every mail.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn confirmations_of_a_sale_are_delivered() {
    let orders: i64 = short_or_full(40, 10_000);
    let app = TestApp::on_sqlite().await;
    // So that no mail is delivered before the mail server is set.
    app.stop_jobs().await;
    let server = MailServer::start(SmtpBehavior::Accept).await;
    let (kofi, _) = (app.sign_up("kofi").await, app.sign_up("ama").await);
    app.create_listed_event(&app.create_host(&kofi).await, &[section("Floor", 20.0, 50_000)]).await;
    for insert in [
        "insert into orders (id, account_id, status, placed, expires, fulfilled, subtotal, fees)
         with recursive numbers (n) as (select 1 union all select n + 1 from numbers where n < $1)
         select 10000000000000 + n, (select id from accounts where username = 'ama'), 'Fulfilled', 0, 0, 0, 4000, 198 from numbers",
        "insert into order_items (order_id, position, event_id, section_id, quantity, unit_price, unit_fee)
         select o.id, 1, s.event_id, s.id, 2, 2000, 99 from orders o cross join sections s where o.id <= 10000000000000 + $1",
        "insert into tickets (id, serial, order_id, event_id, section_id, owner_id, status, issued, modified)
         select o.id * 2 + t.n, 'AAAAAA-' || printf('%012d', o.id * 2 + t.n - 20000000000000), o.id, s.event_id, s.id, o.account_id,
             'Issued', 0, 0
         from orders o cross join sections s cross join (select 0 as n union all select 1) t where o.id <= 10000000000000 + $1",
    ] {
        let mut tx = app.state.db.begin().await.unwrap();
        tx.query(insert).bind(orders).execute().await.unwrap();
        tx.commit().await.unwrap();
    }
    app.mailbox.use_smtp(server.settings());
    let mut tx = app.state.db.begin().await.unwrap();
    let ama: Id = tx.query("select id from accounts where username = 'ama'").scalar().await.unwrap();
    let mail = |order: i64| {
        let (recipient, values) = (Recipient::Account(ama), json!({ "order": 10_000_000_000_000 + order }));
        Mail { recipient, template: MailTemplate::OrderConfirmation, values }
    };
    outbox::push(&app.state, &mut tx, (1..=orders).map(mail)).await.unwrap();
    tx.commit().await.unwrap();

    let before = Instant::now();
    app.deliver_mail().await;
    let seconds = before.elapsed().as_secs_f64();

    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let memory = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap().trim().to_owned();
    let mails: usize = server.accepted().iter().map(String::len).sum();
    let all = usize::try_from(orders).unwrap();
    // The host's mail about the review has no tickets.
    assert_eq!(server.accepted().iter().filter(|mail| mail.contains("application/pdf")).count(), all);
    print_figure(format!(
        "{orders} confirmations with PDF: {:.0} mails per second, {} KB each; at most {memory} of memory, of which {} MB are the mails",
        orders as f64 / seconds,
        mails / all / 1000,
        mails / 1_000_000
    ));
}
