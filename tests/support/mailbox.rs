//! The mail that a server sends: files in the test's folder, until the test switches to an SMTP server.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use boxoffice::features::sales::mail;
use boxoffice::kernel::outbox::{self, DeliveryError, MailTransport, OutgoingMail};
use boxoffice::kernel::settings::{MailSettings, MailTransportSettings, SmtpSettings};
use parking_lot::RwLock;
use tokio::sync::OwnedRwLockWriteGuard;

use super::{MailServer, SmtpBehavior, TestApp};

/// A mail transport that a test can inspect, block and redirect. Clones share their state.
#[derive(Clone)]
pub struct Mailbox(Arc<State>);

struct State {
    settings: MailSettings,
    folder: PathBuf,
    transport: RwLock<Arc<dyn MailTransport>>,
    /// Locked for reading during each delivery.
    delivery: Arc<tokio::sync::RwLock<()>>,
}

/// Blocks the delivery of mail until it is dropped.
pub struct DeliveryGuard(#[expect(dead_code, reason = "holds the lock")] OwnedRwLockWriteGuard<()>);

impl Mailbox {
    /// Creates a mailbox that delivers by these settings and looks for files in `folder`.
    pub fn new(settings: &MailSettings, folder: &Path) -> Self {
        let transport = RwLock::new(Arc::from(outbox::from_settings(settings).unwrap()));
        Self(Arc::new(State { settings: settings.clone(), folder: folder.to_owned(), transport, delivery: Arc::default() }))
    }

    /// Delivers to this SMTP server from now on.
    pub fn use_smtp(&self, server: SmtpSettings) {
        let settings = MailSettings { transport: MailTransportSettings::Smtp(server), ..self.0.settings.clone() };
        *self.0.transport.write() = Arc::from(outbox::from_settings(&settings).unwrap());
    }

    /// Waits for deliveries in progress and blocks new ones.
    pub async fn block(&self) -> DeliveryGuard {
        DeliveryGuard(Arc::clone(&self.0.delivery).write_owned().await)
    }

    /// Returns the folder of the mails.
    pub fn folder(&self) -> &Path {
        &self.0.folder
    }

    /// Returns the files of the mails to an address, oldest first.
    pub fn files_to(&self, address: &str) -> Vec<PathBuf> {
        let Ok(entries) = fs::read_dir(&self.0.folder) else { return Vec::new() };
        let paths = entries.map(|entry| entry.unwrap().path()).filter(|path| path.extension().is_some_and(|end| end == "eml"));
        let mut files: Vec<_> = paths.filter(|path| read(path).contains(&format!("\nTo: {address}\n"))).collect();
        files.sort();
        files
    }

    fn transport(&self) -> Arc<dyn MailTransport> {
        Arc::clone(&self.0.transport.read())
    }
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap().replace("\r\n", "\n")
}

#[async_trait]
impl MailTransport for Mailbox {
    async fn send(&self, letter: &OutgoingMail) -> Result<String, DeliveryError> {
        let _delivery = self.0.delivery.read().await;
        self.transport().send(letter).await
    }

    fn timeout(&self) -> Duration {
        self.transport().timeout()
    }
}

impl TestApp {
    /// Starts an SMTP server with this behavior, to which mail is delivered from now on.
    pub async fn start_mail_server(&self, behavior: SmtpBehavior) -> MailServer {
        let server = MailServer::start(behavior).await;
        self.mailbox.use_smtp(server.settings());
        server
    }

    /// Delivers all due mail, beside the job that does the same.
    pub async fn deliver_mail(&self) {
        while mail::deliver_due(&self.state).await.unwrap() > 0 {}
    }

    /// Returns the last of `count` mails to an address, as [`readable`] text. Waits until they are delivered.
    pub async fn mail_to(&self, address: &str, count: usize) -> String {
        self.deliver_mail().await;
        wait_until(async || self.mailbox.files_to(address).len() >= count).await;
        let files = self.mailbox.files_to(address);
        assert_eq!(files.len(), count);
        readable(&read(files.last().unwrap()))
    }
}

/// Returns the headers and the text alternative of a mail, decoded, with one line for each paragraph and plain spaces.
pub fn readable(mail: &str) -> String {
    let parsed = mailparse::parse_mail(mail.as_bytes()).unwrap();
    let headers: String = parsed.headers.iter().map(|header| format!("{}: {}\n", header.get_key(), header.get_value())).collect();
    let text = parsed.parts().find(|part| part.ctype.mimetype == "text/plain").unwrap().get_body().unwrap();
    let paragraphs: Vec<String> = text.replace("\r\n", "\n").split("\n\n").map(|lines| lines.replace('\n', " ")).collect();
    format!("{headers}\n{}", paragraphs.join("\n")).replace(['\u{a0}', '\u{202f}'], " ")
}

/// Returns the verification code in a mail.
pub fn code_in(mail: &str) -> String {
    let is_code = |line: &&str| line.len() == 6 && line.bytes().all(|byte| byte.is_ascii_digit());
    mail.lines().map(str::trim).find(is_code).unwrap().to_owned()
}

/// Waits until a condition is true, for at most 30 seconds.
pub async fn wait_until(condition: impl AsyncFn() -> bool) {
    for _ in 0..3000 {
        if condition().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the condition did not become true in time");
}
