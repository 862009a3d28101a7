//! The mail of the tests: files in the world's folder, until a test sends it through a server of its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, RwLock};
use std::time::Duration;

use async_trait::async_trait;
use boxoffice::config::{MailSettings, MailTransportSettings, SmtpSettings};
use boxoffice::outbox::{self, DeliveryError, MailTransport, OutgoingMail};
use tokio::sync::OwnedRwLockWriteGuard;

use super::World;

/// The carrier, and what a test does with it.
#[derive(Clone)]
pub struct Post(Arc<State>);

struct State {
    settings: MailSettings,
    folder: PathBuf,
    carrier: RwLock<Arc<dyn MailTransport>>,
    /// Read by whoever carries a mail.
    way: Arc<Way>,
}

type Way = tokio::sync::RwLock<()>;

/// No mail leaves before this is dropped.
pub struct Held(#[expect(dead_code, reason = "it is held")] OwnedRwLockWriteGuard<()>);

impl Post {
    /// What these settings say; `folder` is where files are looked for.
    pub fn of(settings: &MailSettings, folder: &Path) -> Self {
        let carrier = RwLock::new(Arc::from(outbox::from_settings(settings).unwrap()));
        Self(Arc::new(State { settings: settings.clone(), folder: folder.to_owned(), carrier, way: Arc::default() }))
    }

    /// From now on mail goes to this server.
    pub fn go_through(&self, server: SmtpSettings) {
        let settings = MailSettings { route: MailTransportSettings::Smtp(server), ..self.0.settings.clone() };
        *self.0.carrier.write().unwrap() = Arc::from(outbox::from_settings(&settings).unwrap());
    }

    /// Keeps all mail back from here on.
    pub async fn hold(&self) -> Held {
        Held(Arc::clone(&self.0.way).write_owned().await)
    }

    /// The files of the mails to an address, the oldest first.
    pub fn files_to(&self, address: &str) -> Vec<PathBuf> {
        let Ok(entries) = fs::read_dir(&self.0.folder) else { return Vec::new() };
        let paths = entries.map(|entry| entry.unwrap().path()).filter(|path| path.extension().is_some_and(|end| end == "eml"));
        let mut files: Vec<_> = paths.filter(|path| read(path).contains(&format!("\nTo: {address}\n"))).collect();
        files.sort();
        files
    }

    fn carrier(&self) -> Arc<dyn MailTransport> {
        Arc::clone(&self.0.carrier.read().unwrap())
    }
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap().replace("\r\n", "\n")
}

#[async_trait]
impl MailTransport for Post {
    async fn send(&self, letter: &OutgoingMail) -> Result<String, DeliveryError> {
        let _free = self.0.way.read().await;
        self.carrier().send(letter).await
    }

    fn timeout(&self) -> Duration {
        self.carrier().timeout()
    }
}

impl World {
    /// Hands over all mail that is due, beside the job that does so too.
    pub async fn deliver(&self) {
        while outbox::deliver_due(&self.app).await.unwrap() > 0 {}
    }

    /// The last of `count` mails to an address, once they are written.
    pub async fn letter_to(&self, address: &str, count: usize) -> String {
        self.deliver().await;
        eventually(async || self.post.files_to(address).len() >= count).await;
        let files = self.post.files_to(address);
        assert_eq!(files.len(), count);
        read(files.last().unwrap())
    }
}

/// The code in a mail.
pub fn code_in(letter: &str) -> String {
    let is_code = |line: &&str| line.len() == 6 && line.bytes().all(|byte| byte.is_ascii_digit());
    letter.lines().map(str::trim).find(is_code).unwrap().to_owned()
}

/// Waits until it is so.
pub async fn eventually(is_so: impl AsyncFn() -> bool) {
    for _ in 0..1500 {
        if is_so().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("it has not come to that in time");
}
