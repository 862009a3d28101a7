//! Two servers hand over the same mail, and one of them is killed again and again: every mail arrives, and none twice but those
//! that the killed one had in its hands, eight at the most.
//!
//! `BOXOFFICE_KILLS` says how often.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use boxoffice_client::Client;
use futures::future::join_all;

use super::kills::Site;
use super::{figure, setting};
use crate::plain_tests;
use crate::support::program::Server;
use crate::support::{MailServer, Mood, Till, eventually, postgres};

plain_tests![async every_mail_arrives_whoever_is_killed];

/// Mails between one kill and the next.
const MAILS: usize = 40;
/// Mails that one server hands over at the same time.
const AT_ONCE: usize = 8;
/// After this a killed server's mails are anybody's again.
const RELEASED: Duration = Duration::from_secs(3 * 60);

async fn every_mail_arrives_whoever_is_killed() {
    let Some(database) = postgres::new_database().await else { return };
    let (site, post, till) = (Site::open(Some(&database.url)), MailServer::start(Mood::TakesItsTime).await, Till::default());
    let till = till.open().await;
    let start = |ahead| {
        let mut command = site.with_till(till, ahead);
        command.env("BOXOFFICE_SMTP", post.address.to_string()).env("BOXOFFICE_SMTP_TLS", "none");
        Server::start(command)
    };
    let kills: usize = setting("BOXOFFICE_KILLS", 3);
    let survivor = start(Duration::ZERO);
    let anyone = Client::connect(&survivor.address, &site.public_key).unwrap();
    anyone
        .account_create()
        .body_map(|body| body.username("ama").email("ama@example.com").password("correct horse"))
        .send()
        .await
        .unwrap();
    let ask = async || {
        let asked = anyone.verification_create().body_map(|body| body.email("ama@example.com"));
        asked.send().await.unwrap();
    };

    for kill in 0..kills {
        let doomed = start(Duration::ZERO);
        let before = post.taken().len();
        join_all((0..MAILS).map(|_| ask())).await;
        eventually(async || post.taken().len() > before).await;
        doomed.signal("KILL");
        doomed.wait();
        assert!(post.taken().len() <= (kill + 1) * (MAILS + AT_ONCE));
    }
    // Not dropped, which kills it: what it has in its hands would be sent again.
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
    for mail in post.taken() {
        *times.entry(mail.lines().find(|line| line.starts_with("Message-ID:")).unwrap().to_owned()).or_default() += 1;
    }
    let again: usize = times.values().map(|times| times - 1).sum();
    assert_eq!(times.len(), kills * MAILS, "each mail has arrived");
    assert!(again <= kills * AT_ONCE && times.values().all(|times| *times <= 2), "{times:?}");
    figure(format!("two servers, one killed {kills} times: {} mails promised, 0 lost, {again} sent again", times.len()));
}
