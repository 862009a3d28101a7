//! Two servers deliver the same mail, and one of them is killed repeatedly: every mail is delivered, and none twice except the at
//! most eight that were in progress on the killed server.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use boxoffice_client::Client;
use futures::future::join_all;

use super::kills::Site;
use super::{print_figure, short_or_full};
use crate::support::server_process::ServerProcess;
use crate::support::{FakeGateway, MailServer, SmtpBehavior, postgres, wait_until};

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
