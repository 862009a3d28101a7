//! A running platform on an empty database.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use boxoffice::app::{App, Platform};
use boxoffice::config::{FeeSchedule, MailSettings, MailTransportSettings, Settings};
use boxoffice::http::{LimitSettings, Listener};
use boxoffice::{log, setup};
use slog::Logger;
use tempfile::TempDir;

use super::notes::Notes;
use super::{Client, Person, Post, Till, postgres, proxy};

/// Any free port of this machine.
pub const ANYWHERE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// Another server beside a world's, on its database.
pub struct Neighbour {
    /// Its inside. Its clock is its own.
    pub app: Arc<App>,
    /// Where it answers, through a proxy that holds every answer to the contract.
    pub address: SocketAddr,
    /// Where it answers itself.
    pub server: SocketAddr,
    platform: Platform,
}

impl Neighbour {
    /// Stops it.
    pub async fn stop(self) {
        self.platform.stop().await.unwrap();
    }
}

/// A platform that answers on a port of its own, with its first administrator and keys.
pub struct World {
    /// The platform's inside, for what no request can do, such as moving the clock.
    pub app: Arc<App>,
    /// Where it answers, through a proxy that holds every answer to the contract.
    pub address: String,
    /// Where it answers itself: for what no proxy passes on, and for answers that no operation declares.
    pub server: SocketAddr,
    /// The address of its database, for another server beside it.
    pub database_url: String,
    /// The platform's staff.
    pub staff: Person,
    /// An application with no person behind it.
    pub anyone: Client,
    /// That application's key.
    pub public_key: String,
    /// The payment gateway.
    pub till: Till,
    /// For plain HTTP.
    pub(super) http: reqwest::Client,
    /// The mail.
    pub post: Post,
    /// The other server, where there are two.
    pub other: Option<Arc<App>>,
    notes: Notes,
    _platforms: Vec<Platform>,
    _folder: TempDir,
    _database: Option<postgres::Database>,
}

impl World {
    /// On a fresh embedded database.
    pub async fn on_sqlite() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite:{}", folder.path().join("boxoffice.db").display());
        Self::start(&url, folder).await
    }

    /// On a fresh PostgreSQL database, where there is a PostgreSQL.
    pub async fn on_postgres() -> Option<Self> {
        Self::on_servers(1).await
    }

    /// On a fresh PostgreSQL database that two servers share: each answers every other request. The till and the post are one.
    pub async fn on_two_servers() -> Option<Self> {
        Self::on_servers(2).await
    }

    async fn on_servers(servers: usize) -> Option<Self> {
        let database = postgres::new_database().await?;
        let world = Self::start_servers(servers, &database.url, tempfile::tempdir().unwrap()).await;
        Some(Self { _database: Some(database), ..world })
    }

    /// On an empty database of the test's own, with images and mail in this folder.
    pub async fn start(database_url: &str, folder: TempDir) -> Self {
        Self::start_servers(1, database_url, folder).await
    }

    async fn start_servers(servers: usize, database_url: &str, folder: TempDir) -> Self {
        let settings = Settings {
            public_url: "https://boxoffice.example".to_owned(),
            media: folder.path().join("media").display().to_string(),
            currency: "GHS".to_owned(),
            reservation: Duration::from_secs(15 * 60),
            fee_steps: "50:0.99,100:1.99,150:2.99,200:3.99,4.99".parse::<FeeSchedule>().unwrap(),
            minimum_client_version: "3.0.0".parse().unwrap(),
            limits: LimitSettings::default(),
            mail: MailSettings {
                from: "Box office <tickets@boxoffice.example>".parse().unwrap(),
                route: MailTransportSettings::Folder(folder.path().join("mail")),
            },
        };
        let post = Post::of(&settings.mail, &folder.path().join("mail"));
        let till = Till::default();
        let app = open(database_url, settings.clone(), log::silent(), &till, &post).await;
        let other = if servers == 2 { Some(open(database_url, settings, log::silent(), &till, &post).await) } else { None };
        let welcome = setup::first_start(&app).await.unwrap().unwrap();
        let start = |app: &Arc<App>| Platform::start(Arc::clone(app), ANYWHERE).unwrap();
        let platforms: Vec<Platform> = [&app].into_iter().chain(&other).map(start).collect();
        let notes = Notes::of_this_thread();
        let addresses = platforms.iter().map(Platform::address).collect();
        let address = format!("http://{}", proxy::before_all(addresses, notes.clone()).await.unwrap());
        let staff = Client::connect(&address, &welcome.administrator_key).unwrap();
        let number = staff.account_list().username(&welcome.username).send().await.unwrap().entries[0].number.to_string();
        Self {
            staff: Person { client: staff, number, username: welcome.username, key: welcome.administrator_key },
            anyone: Client::connect(&address, &welcome.public_key).unwrap(),
            public_key: welcome.public_key,
            till,
            post,
            notes,
            database_url: database_url.to_owned(),
            app,
            address,
            server: platforms[0].address(),
            http: reqwest::Client::new(),
            other,
            _platforms: platforms,
            _folder: folder,
            _database: None,
        }
    }

    /// From here on the server may fail: the test breaks what it stands on. Without this a 500 fails the test.
    pub fn expects_failures(&self) {
        self.notes.expect_failures();
    }

    /// Another server on the same database, with settings and a log of its own. The till and the post are the world's.
    pub async fn neighbour(&self, settings: Settings, log: Logger) -> Neighbour {
        self.neighbour_at(settings, log, ANYWHERE).await
    }

    /// Such a server that listens in a way of its own. The proxy before it speaks in clear.
    pub async fn neighbour_at(&self, settings: Settings, log: Logger, listener: impl Into<Listener>) -> Neighbour {
        let app = open(&self.database_url, settings, log, &self.till, &self.post).await;
        let platform = Platform::start(Arc::clone(&app), listener).unwrap();
        let server = platform.address();
        let address = proxy::before(server, self.notes.clone()).await.unwrap();
        Neighbour { app, address, server, platform }
    }

    /// Does to the database at once what would take many requests, or what no operation does.
    pub async fn run_sql(&self, sql: &'static str) {
        let mut tx = self.app.db.begin().await.unwrap();
        tx.query(sql).execute().await.unwrap();
        tx.commit().await.unwrap();
    }

    /// Every server's inside.
    pub fn apps(&self) -> impl Iterator<Item = &Arc<App>> {
        [&self.app].into_iter().chain(&self.other)
    }

    /// Moves the platform's clock forward, on every server.
    pub fn advance(&self, duration: Duration) {
        self.apps().for_each(|app| app.clock.advance(duration));
    }
}

/// A platform's inside, with the till and the post of a test.
async fn open(database_url: &str, settings: Settings, log: Logger, till: &Till, post: &Post) -> Arc<App> {
    let mut app = App::open(database_url, settings, log).await.unwrap();
    let parts = Arc::get_mut(&mut app).unwrap();
    parts.gateway = Box::new(till.clone());
    parts.mailer = Box::new(post.clone());
    app
}
