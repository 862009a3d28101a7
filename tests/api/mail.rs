//! Mail delivery, with every failure of the SMTP server.

use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::Duration;

use boxoffice::features::sales::mail;
use boxoffice::kernel::outbox::{self, DeliveryError, Mail, MailCipher, MailRow, MailTemplate, OutgoingMail, Recipient};
use boxoffice::kernel::settings::{MailSettings, MailTransportSettings, Settings, SmtpSettings, SmtpTls};
use boxoffice::kernel::types::clock::Timestamp;
use boxoffice::kernel::types::id::Id;
use boxoffice::server::RunningApp;
use boxoffice::state::App;
use boxoffice_http::log;
use boxoffice_http::traces::Tracer;
use lettre::Message;
use serde_json::json;
use tokio::time::timeout;

use super::failures::LogBuffer;
use crate::support::{ANY_PORT, DAY, MailServer, SmtpBehavior, TestApp, TlsMode, refusing_socket, test_on, wait_until};

/// The delays after each failed attempt but the last, in seconds.
const RETRY_DELAYS: [u64; 7] = [10, 60, 300, 1800, 7200, 14_400, 28_800];

/// A row of the outbox.
#[derive(Debug, sqlx_macros::FromRow)]
struct Row {
    recipient: String,
    template: Option<String>,
    body: String,
    attempts: i64,
    due: Option<i64>,
    failed: Option<i64>,
}

impl TestApp {
    /// Adds a mail about a cancelled event with this title to the outbox.
    async fn enqueue_mail(&self, recipient: &str, title: &str) {
        let account = self.account().await;
        let mut tx = self.state.db.begin().await.unwrap();
        outbox::push(&self.state, &mut tx, [mail_about(account, recipient, title)]).await.unwrap();
        tx.commit().await.unwrap();
    }

    /// Returns an account to whose addresses the mails are sent.
    async fn account(&self) -> Id {
        self.scalar("select min(id) from accounts").await
    }

    async fn outbox(&self) -> Vec<Row> {
        self.rows("select recipient, template, body, attempts, due, failed from outbox order by id").await
    }

    /// Attempts to deliver the only mail. Requires that this is attempt number `tries`, and that the next one follows after `pause`
    /// seconds. Stop the jobs before the mail is stored: they make attempts, too.
    async fn fail_attempt(&self, tries: i64, pause: u64) -> Row {
        let pause = Duration::from_secs(pause);
        let before = self.state.clock.now();
        assert_eq!(mail::deliver_due(&self.state).await.unwrap(), 1);
        let after = self.state.clock.now();
        let row = self.outbox().await.remove(0);
        assert_eq!(row.attempts, tries);
        assert!((before.plus(pause).0..=after.plus(pause).0).contains(&row.due.unwrap()), "{row:?}");
        row
    }

    async fn wait_until_given_up(&self) -> Row {
        wait_until(async || self.outbox().await[0].failed.is_some()).await;
        self.outbox().await.remove(0)
    }

    async fn wait_until_empty(&self) {
        self.deliver_mail().await;
        wait_until(async || self.outbox().await.is_empty()).await;
    }

    /// Opens another server's state on the same database, which delivers to this SMTP server.
    async fn open_second_state(&self, server: SmtpSettings) -> Arc<App> {
        let mail = MailSettings { transport: MailTransportSettings::Smtp(server), ..self.state.settings.mail.clone() };
        let settings = Settings { mail, ..self.state.settings.clone() };
        App::open(&self.database_url, settings, log::silent(), Tracer::default()).await.unwrap()
    }
}

fn mail_about<'a>(account: Id, email: &'a str, title: &str) -> Mail<'a> {
    let event = json!({ "number": "17630000000001", "title": title, "starts": 0, "venue": "Pier", "address": "Accra" });
    let recipient = Recipient::Address { account, email, language: None };
    Mail { recipient, template: MailTemplate::EventCancelled, values: json!({ "name": "Ama", "event": event }) }
}

fn line<'a>(mail: &'a str, header: &str) -> &'a str {
    mail.lines().find(|line| line.starts_with(header)).unwrap()
}

#[test_on(sqlite, postgres)]
async fn writes_mail_to_file_without_smtp_server(app: TestApp) {
    app.enqueue_mail("ama@example.com", "Good news").await;

    let mail = app.mail_to("ama@example.com", 1).await;

    assert_eq!(line(&mail, "From:"), "From: \"Box office\" <tickets@boxoffice.example>");
    assert_eq!(
        (line(&mail, "Subject:"), line(&mail, "Auto-")),
        ("Subject: Cancelled: Good news", "Auto-Submitted: auto-generated")
    );
    assert!(line(&mail, "Message-ID:").ends_with(".outbox@boxoffice.example>"), "{mail}");
    assert!(mail.contains("“Good news” (Thursday, 1 January 1970, 00:00 UTC, Pier) was cancelled."), "{mail}");
    let file = app.mailbox.files_to("ama@example.com").remove(0);
    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&file), mode(file.parent().unwrap())), (0o600, 0o700));
    app.wait_until_empty().await;
}

#[test_on(sqlite, postgres)]
async fn delivers_mail_once(app: TestApp) {
    let server = app.start_mail_server(SmtpBehavior::Accept).await;

    app.enqueue_mail("ama@example.com", "Good news").await;
    app.wait_until_empty().await;

    app.advance_clock(DAY);
    app.deliver_mail().await;
    let taken = server.accepted();
    assert_eq!((taken.len(), server.connection_count()), (1, 1));
    assert_eq!((line(&taken[0], "To:"), line(&taken[0], "Subject:")), ("To: ama@example.com", "Subject: Cancelled: Good news"));
    assert!(server.commands().contains(&"MAIL FROM:<tickets@boxoffice.example>".to_owned()), "{:?}", server.commands());
    assert!(server.commands().contains(&"RCPT TO:<ama@example.com>".to_owned()));
}

#[test_on(sqlite, postgres)]
async fn rolled_back_transaction_sends_no_mail(app: TestApp) {
    let server = app.start_mail_server(SmtpBehavior::Accept).await;

    let account = app.account().await;
    let mut tx = app.state.db.begin().await.unwrap();
    outbox::push(&app.state, &mut tx, [mail_about(account, "ama@example.com", "Good news")]).await.unwrap();
    drop(tx);

    app.deliver_mail().await;
    assert_eq!((app.outbox().await.len(), server.connection_count()), (0, 0));
}

#[test_on(sqlite, postgres)]
async fn retries_temporary_rejection_with_growing_delays(app: TestApp) {
    app.stop_jobs().await;
    let server = app.start_mail_server(SmtpBehavior::RejectRecipient("451 later")).await;
    app.enqueue_mail("ama@example.com", "Good news").await;

    for (tries, pause) in (1..).zip(RETRY_DELAYS) {
        let row = app.fail_attempt(tries, pause).await;
        assert_eq!((row.failed, row.body.is_empty()), (None, false), "it is not given up after {tries}");
        app.deliver_mail().await;
        assert_eq!(server.connection_count(), usize::try_from(tries).unwrap(), "nothing is tried before its time");
        app.advance_clock(Duration::from_secs(pause));
    }
    app.deliver_mail().await;
    let row = app.wait_until_given_up().await;

    assert_eq!((row.attempts, row.due, row.template.as_deref(), row.body.as_str()), (8, None, Some("event-cancelled"), ""));
    let metrics = app.state.metrics.encode().unwrap();
    for (result, count) in [("sent", 0), ("delayed", 7), ("given_up", 1)] {
        let metric = format!("boxoffice_mail_attempts_total{{result=\"{result}\"}} {count}\n");
        assert!(metrics.contains(&metric), "no {metric} in {metrics}");
    }
    server.set_behavior(SmtpBehavior::Accept);
    app.advance_clock(DAY * 7);
    app.deliver_mail().await;
    assert_eq!((server.connection_count(), server.accepted().len()), (8, 0));
}

#[test_on(sqlite, postgres)]
async fn permanent_rejection_is_final(app: TestApp) {
    let server = app.start_mail_server(SmtpBehavior::RejectRecipient("550 nobody of that name")).await;

    app.enqueue_mail("ama@example.com", "Good news").await;
    let row = app.wait_until_given_up().await;

    assert_eq!((row.attempts, row.due, row.body.as_str(), server.connection_count()), (1, None, "", 1));
}

#[test_on(sqlite, postgres)]
async fn invalid_address_is_final(app: TestApp) {
    let server = app.start_mail_server(SmtpBehavior::Accept).await;

    app.enqueue_mail("ama@example.com\r\nBcc: kofi@example.com", "Good news").await;
    let row = app.wait_until_given_up().await;

    assert_eq!((row.attempts, row.body.as_str(), server.connection_count()), (1, "", 0));
}

/// Stores a mail, and requires that an attempt to deliver it fails before each of these delays, in seconds. The mail must be delivered
/// after the last one, when this server accepts it and its settings are used.
async fn deliver_after(app: &TestApp, server: &MailServer, delays: &[u64]) {
    app.stop_jobs().await;
    app.enqueue_mail("ama@example.com", "Good news").await;
    for (tries, pause) in (1..).zip(delays) {
        app.fail_attempt(tries, *pause).await;
        app.advance_clock(Duration::from_secs(*pause));
    }
    server.set_behavior(SmtpBehavior::Accept);
    app.mailbox.use_smtp(server.settings());
    app.wait_until_empty().await;
}

#[test_on(sqlite, postgres)]
async fn retries_server_that_requires_authentication(app: TestApp) {
    let server = app.start_mail_server(SmtpBehavior::RejectSender("530 sign in first")).await;

    deliver_after(&app, &server, &[10]).await;

    assert_eq!(server.accepted().len(), 1);
}

/// Such a rejection is an error of the settings. Its text may quote the mail, so the reason has only its codes.
#[test_on(sqlite, postgres)]
async fn retries_rejection_by_a_rule(app: TestApp) {
    let answer = "550 5.7.1 sender not allowed, mail to ama@example.com refused";
    let server = MailServer::start(SmtpBehavior::RejectSender(answer)).await;
    let transport = MailTransportSettings::Smtp(server.settings());
    let transport = outbox::from_settings(&MailSettings { transport, ..app.state.settings.mail.clone() }).unwrap();
    let message = Message::builder().from("tickets@example.com".parse().unwrap()).to("ama@example.com".parse().unwrap());
    let mail = OutgoingMail { name: "a mail".to_owned(), message: message.body(String::new()).unwrap() };

    let rejected = transport.send(&mail).await;

    assert_eq!(rejected, Err(DeliveryError::Temporary("refused with 550 5.7.1".to_owned())));
    server.set_behavior(SmtpBehavior::RejectRecipient("550 5.1.1 nobody of that name"));
    let rejected = transport.send(&mail).await;
    assert_eq!(rejected, Err(DeliveryError::Permanent("refused with 550 5.1.1".to_owned())));
}

#[test_on(sqlite, postgres)]
async fn retries_unreachable_server(app: TestApp) {
    let nobody = refusing_socket();
    let server = MailServer::start(SmtpBehavior::Accept).await;
    app.mailbox.use_smtp(SmtpSettings { port: nobody.local_addr().unwrap().port(), ..server.settings() });

    deliver_after(&app, &server, &[10]).await;

    assert_eq!(server.accepted().len(), 1);
}

#[test_on(sqlite, postgres)]
async fn retries_unresponsive_server(app: TestApp) {
    let server = MailServer::start(SmtpBehavior::Unresponsive).await;
    app.mailbox.use_smtp(SmtpSettings { timeout: Duration::from_millis(300), ..server.settings() });

    deliver_after(&app, &server, &[10]).await;

    assert_eq!((server.accepted().len(), server.connection_count()), (1, 2));
}

#[test_on(sqlite, postgres)]
async fn retries_connection_closed_during_data(app: TestApp) {
    let server = app.start_mail_server(SmtpBehavior::CloseDuringData).await;

    deliver_after(&app, &server, &[10, 60]).await;

    assert_eq!((server.accepted().len(), server.connection_count()), (1, 3));
}

#[test_on(sqlite, postgres)]
async fn retries_connection_closed_before_acceptance(app: TestApp) {
    let server = app.start_mail_server(SmtpBehavior::CloseBeforeAccept).await;

    deliver_after(&app, &server, &[10]).await;

    assert_eq!(server.accepted(), server.discarded(), "the second is the first to the last letter, and names itself as it");
    assert_eq!(server.accepted().len(), 1);
}

#[test_on(sqlite, postgres)]
async fn missing_goodbye_does_not_cause_retry(app: TestApp) {
    let server = MailServer::start(SmtpBehavior::HangAfterAccept).await;
    app.mailbox.use_smtp(SmtpSettings { timeout: Duration::from_secs(600), ..server.settings() });

    app.enqueue_mail("ama@example.com", "Good news").await;
    app.wait_until_empty().await;

    assert_eq!((server.accepted().len(), server.connection_count()), (1, 1));
}

#[test_on(sqlite, postgres)]
async fn rejected_mail_does_not_block_others(app: TestApp) {
    let server = app.start_mail_server(SmtpBehavior::Accept).await;

    for number in 0..12 {
        app.enqueue_mail(if number == 0 { "no address" } else { "ama@example.com" }, &format!("Number {number}")).await;
    }
    app.deliver_mail().await;

    wait_until(async || app.outbox().await.len() == 1).await;
    assert_eq!((app.wait_until_given_up().await.recipient.as_str(), server.accepted().len()), ("no address", 11));
}

/// The mail server checks one address for longer than the test takes. More mails follow than are delivered at the same time.
#[test_on(sqlite, postgres)]
async fn hanging_mail_does_not_block_others(app: TestApp) {
    let server = MailServer::start(SmtpBehavior::HangForRecipient("slow@example.com")).await;
    app.mailbox.use_smtp(SmtpSettings { timeout: Duration::from_secs(600), ..server.settings() });

    app.enqueue_mail("slow@example.com", "Good news").await;
    wait_until(async || server.commands().iter().any(|command| command.contains("slow@example.com"))).await;
    for _ in 0..20 {
        app.enqueue_mail("ama@example.com", "Good news").await;
    }

    wait_until(async || server.accepted().len() == 20).await;
    wait_until(async || app.outbox().await.len() == 1).await;
    assert_eq!(app.outbox().await[0].recipient, "slow@example.com");
}

#[test_on(sqlite, postgres)]
async fn two_servers_deliver_each_mail_once(app: TestApp) {
    let server = app.start_mail_server(SmtpBehavior::Accept).await;
    let second = app.open_second_state(server.settings()).await;
    for number in 0..40 {
        app.enqueue_mail("ama@example.com", &format!("Number {number}")).await;
    }

    let work = async |state: &Arc<App>| while mail::deliver_due(state).await.unwrap() > 0 {};
    tokio::join!(work(&app.state), work(&second), work(&app.state), work(&second));
    app.wait_until_empty().await;

    let mut subjects: Vec<_> = server.accepted().iter().map(|mail| line(mail, "Subject:").to_owned()).collect();
    assert_eq!(subjects.len(), 40);
    subjects.sort();
    subjects.dedup();
    assert_eq!(subjects.len(), 40);
}

/// A large sale stores more mails than can be sent before a code expires.
#[test_on(sqlite, postgres)]
async fn codes_are_sent_before_other_mails(app: TestApp) {
    app.stop_jobs().await;
    let server = app.start_mail_server(SmtpBehavior::Accept).await;
    app.sign_up("ama").await;
    for number in 0..20 {
        app.enqueue_mail("esi@example.com", &format!("Number {number}")).await;
    }
    let asked = app.request("POST", "/resets").json(&json!({ "email": "ama@example.com" })).send().await;

    let sent = mail::deliver_due(&app.state).await.unwrap();

    let first = server.accepted();
    assert_eq!((asked.status, sent, first.len()), (201, 8, 8));
    assert!(first.iter().any(|mail| line(mail, "To:").contains("ama@example.com")), "{first:?}");
}

#[test_on(sqlite, postgres)]
async fn mail_of_hanging_server_is_delivered_by_another_once(app: TestApp) {
    let (silent, server) = (MailServer::start(SmtpBehavior::Unresponsive).await, MailServer::start(SmtpBehavior::Accept).await);
    app.mailbox.use_smtp(SmtpSettings { timeout: Duration::from_secs(2), ..silent.settings() });
    let second = app.open_second_state(server.settings()).await;
    app.enqueue_mail("ama@example.com", "Good news").await;
    wait_until(async || silent.connection_count() == 1).await;

    assert_eq!(mail::deliver_due(&second).await.unwrap(), 0, "the mail is taken");
    second.clock.advance(Duration::from_secs(2 + 2 * 60));
    assert_eq!(mail::deliver_due(&second).await.unwrap(), 1, "and comes back");

    assert_eq!((server.accepted().len(), app.outbox().await.len()), (1, 0));
    // A late failure on the first server does not restore the mail.
    let failed = "boxoffice_mail_attempts_total{result=\"delayed\"} 1\n";
    wait_until(async || app.state.metrics.encode().unwrap().contains(failed)).await;
    app.stop_jobs().await;
    assert_eq!((silent.connection_count(), server.accepted().len(), app.outbox().await.len()), (1, 1, 0));
}

#[test_on(sqlite, postgres)]
async fn delivers_over_tls(app: TestApp) {
    for (secure, tls) in [(TlsMode::Implicit, SmtpTls::Tls), (TlsMode::Starttls, SmtpTls::Starttls)] {
        let server = MailServer::start_with_tls(secure).await;
        app.mailbox.use_smtp(server.tls_settings(tls));

        app.enqueue_mail("ama@example.com", "Good news").await;
        app.wait_until_empty().await;

        assert_eq!(server.accepted().len(), 1, "{secure:?}");
        let records = server.commands();
        let place = |what: &str| records.iter().position(|command| command.starts_with(what));
        assert_eq!(place("STARTTLS").is_some(), secure == TlsMode::Starttls);
        assert!(place("AUTH PLAIN ") > place("STARTTLS") && place("MAIL") > place("AUTH"), "{records:?}");
    }
}

#[test_on(sqlite, postgres)]
async fn sends_no_credentials_to_untrusted_server(app: TestApp) {
    app.stop_jobs().await;
    let (secure, plain) = (MailServer::start_with_tls(TlsMode::Starttls).await, MailServer::start(SmtpBehavior::Accept).await);
    let other = MailServer::start_with_tls(TlsMode::Starttls).await;
    let strange = SmtpSettings { port: secure.address.port(), ..other.tls_settings(SmtpTls::Starttls) };
    let clear = SmtpSettings { port: plain.address.port(), ..secure.tls_settings(SmtpTls::Starttls) };

    for (server, settings) in [(&secure, strange), (&plain, clear)] {
        app.mailbox.use_smtp(settings);
        app.enqueue_mail("ama@example.com", "Good news").await;
        app.fail_attempt(1, 10).await;
        let records = server.commands();
        assert!(records[0].starts_with("EHLO"), "{records:?}");
        assert!(records.iter().all(|command| !["AUTH", "MAIL"].iter().any(|name| command.starts_with(name))), "{records:?}");
        app.execute_sql("delete from outbox").await;
    }
}

#[test_on(sqlite, postgres)]
async fn unresponsive_server_does_not_block_shutdown(app: TestApp) {
    let server = app.start_mail_server(SmtpBehavior::Unresponsive).await;
    let second = app.open_second_state(SmtpSettings { timeout: Duration::from_secs(600), ..server.settings() }).await;
    let platform = RunningApp::start(Arc::clone(&second), ANY_PORT).unwrap();
    for number in 0..9 {
        app.enqueue_mail("ama@example.com", &format!("Number {number}")).await;
    }
    wait_until(async || server.connection_count() > 8).await;

    // Sooner than the timeout of the mail server.
    timeout(Duration::from_secs(300), platform.stop()).await.unwrap().unwrap();

    assert_eq!(app.outbox().await.len(), 9, "no mail is lost");
}

#[test_on(sqlite, postgres)]
async fn stored_mail_is_encrypted(app: TestApp) {
    // A job moves SQLite's log to its file.
    app.stop_jobs().await;
    app.enqueue_mail("ama@example.com", "Good news").await;
    let row = app.outbox().await.remove(0);

    assert!(row.body.len() > 20 && !row.body.contains("Good news"), "{}", row.body);
    if let Some(path) = app.database_url.strip_prefix("sqlite:") {
        for suffix in ["", "-wal"] {
            let bytes = std::fs::read(format!("{path}{suffix}")).unwrap();
            let contains = |text: &[u8]| bytes.windows(text.len()).any(|window| window == text);
            assert!(!contains(b"Good news"), "{suffix}");
            assert!(suffix.is_empty() || contains(b"event-cancelled"), "the template is not secret");
        }
    }
    assert!(app.mail_to("ama@example.com", 1).await.contains("Good news"));
    app.wait_until_empty().await;
}

#[test_on(sqlite, postgres)]
async fn mail_of_another_key_is_left_to_its_server(app: TestApp) {
    let server = MailServer::start(SmtpBehavior::Accept).await;
    let folder = tempfile::tempdir().unwrap();
    let transport = MailTransportSettings::Smtp(server.settings());
    let mail = MailSettings { key_file: folder.path().join("other.key"), transport, ..app.state.settings.mail.clone() };
    let settings = Settings { mail, ..app.state.settings.clone() };
    let log = LogBuffer::default();
    let other = App::open(&app.database_url, settings, log.logger(), Tracer::default()).await.unwrap();
    app.stop_jobs().await;
    outbox::warn_of_other_keys(&other).await.unwrap();
    assert!(!log.text().contains("another key"), "{}", log.text());
    app.enqueue_mail("ama@example.com", "Good news").await;

    outbox::warn_of_other_keys(&other).await.unwrap();
    let warnings = log.lines().into_iter().filter(|line| line["msg"].as_str().unwrap().contains("another key"));
    assert_eq!(warnings.map(|line| line["mails"].clone()).collect::<Vec<_>>(), [1]);
    other.clock.advance(Duration::from_secs(23 * 60 * 60));
    assert_eq!(mail::deliver_due(&other).await.unwrap(), 0, "it can't read the mail");
    other.clock.advance(Duration::from_secs(60 * 60));
    assert_eq!(mail::deliver_due(&other).await.unwrap(), 1);

    let row = app.wait_until_given_up().await;
    assert_eq!((row.body.as_str(), row.due, server.connection_count()), ("", None, 0), "no server has its key any more");
}

#[test_on(sqlite, postgres)]
async fn mail_is_given_up_when_its_code_expires(app: TestApp) {
    app.stop_jobs().await;
    let _server = app.start_mail_server(SmtpBehavior::RejectRecipient("451 later")).await;
    app.sign_up("ama").await;
    assert_eq!(app.request("POST", "/resets").json(&json!({ "email": "ama@example.com" })).send().await.status, 201);

    for (tries, pause) in (1..).zip(&RETRY_DELAYS[..3]) {
        app.fail_attempt(tries, *pause).await;
        app.advance_clock(Duration::from_secs(*pause));
    }

    // The next attempt would follow in 30 minutes. The code is valid for 15, of which 6 have passed: attempts follow after half of the
    // time that is left, until less than two minutes are left.
    for tries in 4..6 {
        assert_eq!(mail::deliver_due(&app.state).await.unwrap(), 1);
        let row = app.outbox().await.remove(0);
        let pause = Timestamp(row.due.unwrap()).since(app.state.clock.now());
        assert_eq!(row.attempts, tries);
        assert!((Duration::from_secs(100)..Duration::from_secs(280)).contains(&pause), "{pause:?}");
        app.advance_clock(pause + Duration::from_secs(1));
    }
    app.deliver_mail().await;
    app.advance_clock(Duration::from_secs(80));
    app.deliver_mail().await;
    let row = app.wait_until_given_up().await;
    assert_eq!((row.due, row.body.as_str()), (None, ""));
    assert!([6, 7].contains(&row.attempts), "a slow machine comes to the end after the sixth");
}

#[test_on(sqlite, postgres)]
async fn mail_of_earlier_version_is_delivered(app: TestApp) {
    let server = app.start_mail_server(SmtpBehavior::Accept).await;
    let text = "insert into outbox (id, recipient, subject, body, created, attempts, due)
        values (1, 'ama@example.com', 'Good news', 'It is well.\n.\nStill.\n', 0, 0, 0)";
    app.execute_sql(text).await;

    app.wait_until_empty().await;

    let mail = server.accepted().remove(0);
    assert_eq!(line(&mail, "Subject:"), "Subject: Good news");
    assert!(mail.contains("\n\nIt is well.\n..\nStill.\n"), "{mail}");
}

fn encrypted(cipher: &MailCipher) -> MailRow {
    let (id, recipient) = (Id(17_637_000_000_001), "ama@example.com".to_owned());
    let body = cipher.encrypt(id, &recipient, None, "Your code is 123456.").unwrap();
    let (subject, created, due) = (String::new(), Timestamp(0), Timestamp(0));
    let key_id = Some(cipher.key_ids.earlier.clone());
    let (account_id, template) = (None, None);
    MailRow { id, recipient, account_id, template, subject, body, key_id, expires: None, created, attempts: 0, due }
}

#[test]
fn decrypts_the_same_mail_with_the_same_key_only() {
    let folder = tempfile::tempdir().unwrap();
    let (file, other) = (folder.path().join("new/mail.key"), folder.path().join("other.key"));
    let cipher = MailCipher::open(&file, true).unwrap();

    let mail = encrypted(&cipher);

    assert!(!mail.body.contains("123456") && mail.body != encrypted(&cipher).body);
    assert_eq!(MailCipher::open(&file, true).unwrap().decrypt(&mail).unwrap(), "Your code is 123456.");
    assert!(MailCipher::open(&other, true).unwrap().decrypt(&mail).is_err());
    assert!(cipher.decrypt(&MailRow { recipient: "kofi@example.com".to_owned(), ..encrypted(&cipher) }).is_err());
    assert!(cipher.decrypt(&MailRow { account_id: Some(Id(1)), ..encrypted(&cipher) }).is_err());
    assert!(cipher.decrypt(&MailRow { body: "AAAA".to_owned(), ..encrypted(&cipher) }).is_err());
    let plain = MailRow { body: "Good news.".to_owned(), key_id: None, ..encrypted(&cipher) };
    assert_eq!(cipher.decrypt(&plain).unwrap(), "Good news.");
}
