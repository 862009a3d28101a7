//! Names: compared regardless of case, white space and Unicode representation.

use std::borrow::Cow;
use std::fs;
use std::path::Path;
use std::time::Duration;

use boxoffice::kernel::types::folding::fold;
use futures::future::join;
use serde_json::{Value, json};
use sqlx::migrate::Migrator;
use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection, SqliteConnection};
use tokio::time::sleep;

use crate::advertisements::advertisement_body;
use crate::support::{Host, Response, Snapshot, TestApp, postgres, rejection, section, test_on};

/// Forms of one name.
const CAFE: [&str; 4] = ["Café Noir", "CAFÉ NOIR", "  Cafe\u{301}  noir ", "Ｃａｆé\u{a0}Noir"];

/// Resources of which no two may have the same name.
struct Collection<'a> {
    path: String,
    /// The property with the name.
    property: &'static str,
    code: &'static str,
    /// The keys and the bodies of two requests that create a resource.
    requests: [(&'a str, Value); 2],
}

impl Collection<'_> {
    /// Sends one of the requests with this name.
    async fn create(&self, app: &TestApp, request: usize, name: &str) -> Response {
        let (key, mut body) = self.requests[request].clone();
        body[self.property] = name.into();
        app.post(key, &self.path, &body).await
    }
}

#[test_on(sqlite, postgres)]
async fn equal_names_are_taken(app: TestApp) {
    let (kofi, event) = app.sign_up_host_with_draft("kofi").await;
    let (ama, other_event) = app.sign_up_host_with_draft("ama").await;
    let floor = app.add_section(&event, &section("Floor", 20.0, 10)).await;
    let balcony = app.add_section(&event, &section("Balcony", 20.0, 10)).await;
    let (region, zone, category, venue) =
        (app.create_region().await, app.create_zone(300, 250).await, app.create_category().await, app.create_venue().await);
    let (staff, kofi, ama) = (app.staff.key.as_str(), kofi.key.as_str(), ama.key.as_str());
    let twice = |key, body: Value| [(key, body.clone()), (key, body)];
    let host = json!({ "contact": "Front office", "email": "office@example.com" });
    let event_of = |host: &Host| {
        json!({
            "host": host.uri, "description": "Jazz.", "type": "Standard", "public": true, "category": category,
            "subcategory": "Jazz", "venue": venue,
        })
    };
    let seats = serde_json::to_value(section("", 20.0, 10)).unwrap();
    let discount = json!({ "priceDelta": -1 });
    let place = json!({ "region": region, "address": "Osu", "longitude": 0, "latitude": 5 });
    let collections = [
        ("/regions".to_owned(), "name", "region.taken", twice(staff, json!({ "country": "Ghana" }))),
        ("/categories".to_owned(), "name", "category.taken", twice(staff, json!({ "subcategories": ["Jazz"] }))),
        ("/venues".to_owned(), "name", "venue.taken", twice(staff, place)),
        ("/hosts".to_owned(), "name", "host.taken", [(kofi, host.clone()), (ama, host)]),
        ("/events".to_owned(), "title", "event.taken", [(kofi, event_of(&event.host)), (ama, event_of(&other_event.host))]),
        ("/advertisements".to_owned(), "name", "advertisement.taken", twice(kofi, advertisement_body("", &event, &[&zone]))),
        (format!("{}/sections", event.uri), "name", "section.taken", twice(kofi, seats.clone())),
        (format!("{floor}/modifiers"), "name", "modifier.taken", twice(kofi, discount.clone())),
    ];
    let collections = collections.map(|(path, property, code, requests)| Collection { path, property, code, requests });
    let mut others = Vec::new();
    for collection in &collections {
        let created = collection.create(&app, 0, CAFE[0]).await;
        assert_eq!((created.status, &created.body[collection.property]), (201, &json!(CAFE[0])), "{created:?}");
        others.push(collection.create(&app, 1, "Cafe Noir").await.uri().to_owned());
    }

    let mut snapshot = Snapshot::take(&app).await;
    for (collection, other) in collections.iter().zip(&others) {
        let Collection { path, property, code, requests: [_, (key, _)] } = collection;
        for name in CAFE {
            assert_eq!(rejection(&collection.create(&app, 1, name).await), (409, *code), "{path} {name}");
            let mut renamed = vec![app.put(key, other, json!({ *property: name })).await];
            if other.starts_with("/sections/") {
                renamed.push(app.put(key, &format!("{}{other}", event.uri), json!({ *property: name })).await);
            }
            renamed.iter().for_each(|renamed| assert_eq!(rejection(renamed), (409, *code), "{other} {name}"));
        }
    }
    assert_eq!(snapshot.changes().await, [""; 0]);

    for (Collection { property, requests: [_, (key, _)], .. }, other) in collections.iter().zip(&others) {
        assert_eq!(app.put(key, other, json!({ *property: "Cafe Noir" })).await.status, 200, "its own");
    }
    // The names of sections are unique in their event, and those of modifiers in their section.
    for (key, path, mut body) in
        [(ama, format!("{}/sections", other_event.uri), seats), (kofi, format!("{balcony}/modifiers"), discount)]
    {
        body["name"] = CAFE[0].into();
        let created = app.post(key, &path, body).await;
        assert_eq!(created.status, 201, "{created:?}");
    }
}

async fn titles(app: &TestApp, query: &str) -> Vec<String> {
    app.list(&app.staff.key, query, if query.starts_with("/venues") { "name" } else { "title" }).await
}

/// Creates listed events with these titles.
async fn listed_events(app: &TestApp, titles: &[&str]) {
    let (kofi, host) = app.sign_up_with_host("kofi").await;
    for title in titles {
        let event = app.create_listed_event(&host, &[]).await;
        assert_eq!(app.put(&kofi.key, &event.uri, json!({ "title": title })).await.status, 200);
    }
}

#[test_on(sqlite, postgres)]
async fn searches_ignore_case_and_representation(app: TestApp) {
    listed_events(&app, &["Soirée Éclair", "Straßenfest", "Ночь Джаза"]).await;
    let venue = app.create_venue().await;
    app.put(&app.staff.key, &venue, json!({ "name": "Théâtre National" })).await;

    for (text, expected) in [
        ("éclair", "Soirée Éclair"),
        ("E%CC%81CLAIR", "Soirée Éclair"),
        ("soir%C3%89e%20%20%C3%A9", "Soirée Éclair"),
        ("STRASSE", "Straßenfest"),
        ("джаза", "Ночь Джаза"),
    ] {
        for list in ["/events", "/published-events"] {
            assert_eq!(titles(&app, &format!("{list}?title={text}")).await, [expected], "{text}");
        }
    }
    assert_eq!(titles(&app, "/venues?name=TH%C3%89%C3%82").await, ["Théâtre National"]);
    assert_eq!(titles(&app, "/events?title=eclair").await, [""; 0]);
}

#[test_on(sqlite, postgres)]
async fn sorts_by_folded_title(app: TestApp) {
    listed_events(&app, &["ÉB", "éa", "Éc"]).await;

    assert_eq!(titles(&app, "/events?sort=alphabetical").await, ["éa", "ÉB", "Éc"]);
    assert_eq!(titles(&app, "/published-events?sort=alphabetical&order=desc").await, ["Éc", "ÉB", "éa"]);
}

#[test_on(sqlite, postgres)]
async fn name_may_change_its_form(app: TestApp) {
    let region = app.create_region().await;

    for name in CAFE {
        let renamed = app.put(&app.staff.key, &region, json!({ "name": name })).await;
        assert_eq!((renamed.status, &renamed.body["name"]), (200, &json!(name)));
    }
}

/// Returns the migrations before names had keys.
async fn old_migrations(folder: &str) -> Migrator {
    let mut migrator = Migrator::new(Path::new(folder)).await.unwrap();
    migrator.migrations = Cow::Owned(migrator.migrations.iter().filter(|migration| migration.version < 25).cloned().collect());
    migrator
}

/// Returns statements that fill an old database: 1,201 regions, four hosts and three events.
fn old_rows() -> Vec<String> {
    let mut rows: Vec<String> =
        (1..=1200).map(|number| format!("insert into regions values ({number}, 'Region {number}', 'Ghana', '', '')")).collect();
    rows.push("insert into regions values (1201, ' REGION 7', 'Ghana', '', '')".to_owned());
    rows.push("insert into venues values (2001, 'Théâtre', 1, 'Osu', 0, 5, true, null)".to_owned());
    rows.push("insert into categories values (3001, 'Music')".to_owned());
    rows.push("insert into subcategories values (3001, 'Jazz', 0)".to_owned());
    for (id, name, removed) in
        [(4001, "Accra Live", true), (4002, "ACCRA LIVE", true), (4003, "accra live", false), (4004, "Accra  Live", false)]
    {
        rows.push(format!(
            "insert into hosts values ({id}, '{name}', '', 'a@example.com', '', '', '', '', '', '', '', '', '', {removed})"
        ));
    }
    for (id, title) in [(17_637_000_000_001_i64, "Éclair"), (17_637_000_000_002, "ÉCLAIR"), (17_637_000_000_003, "Rock")] {
        rows.push(format!(
            "insert into events (id, host_id, title, description, status, type, public, category_id, subcategory, venue_id, starts,
             ends, disclaimer, tags, published, popularity) values ({id}, 4003, '{title}', '', 'Listed', 'Standard', true, 3001,
             'Jazz', 2001, 1700000000000001, 32500000000999999, '', '[]', 1700000000000000, 0)"
        ));
    }
    rows
}

/// Checks the database of an earlier version after a server was started on it.
async fn check_completed(app: &TestApp) {
    let incomplete = "select (select count(*) from regions where folded_name is null)
        + (select count(*) from hosts where folded_name is null and removed = false)
        + (select count(*) from events where folded_title is null or starts % 60000000 <> 0 or ends % 60000000 <> 0)";
    assert_eq!(app.scalar::<i64>(incomplete).await, 0);
    assert_eq!(titles(app, "/published-events?title=éclair").await, ["Éclair", "ÉCLAIR"]);
    assert_eq!(titles(app, "/venues?name=THÉÂTRE").await, ["Théâtre"]);
    let staff = app.staff.key.as_str();
    let taken = app.post(staff, "/regions", json!({ "name": "region 1200", "country": "Ghana" })).await;
    assert_eq!(rejection(&taken), (409, "region.taken"));
    let duplicate = app.put(staff, "/events/17637000000002", json!({ "title": "ÉCLAIR", "description": "New." })).await;
    assert_eq!((duplicate.status, &duplicate.body["title"]), (200, &json!("ÉCLAIR")), "it keeps its title");
    let renamed = app.put(staff, "/events/17637000000002", json!({ "title": "éclair" })).await;
    assert_eq!(rejection(&renamed), (409, "event.taken"));
}

#[tokio::test]
async fn completes_old_sqlite_database() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("boxoffice.db").display());
    fs::write(folder.path().join("boxoffice.db"), "").unwrap();
    let mut connection = SqliteConnection::connect(&url).await.unwrap();
    old_migrations("migrations/sqlite").await.run(&mut connection).await.unwrap();
    connection.execute(AssertSqlSafe(old_rows().join(";"))).await.unwrap();
    connection.close().await.unwrap();

    check_completed(&TestApp::start(&url, folder).await).await;
}

#[tokio::test]
async fn completes_old_postgresql_database() {
    let Some(database) = postgres::new_database().await else { return };
    let mut connection = PgConnection::connect(&database.url).await.unwrap();
    old_migrations("migrations/postgres").await.run(&mut connection).await.unwrap();
    connection.execute(AssertSqlSafe(old_rows().join(";"))).await.unwrap();
    connection.close().await.unwrap();

    check_completed(&TestApp::start(&database.url, tempfile::tempdir().unwrap()).await).await;
}

/// A server that starts writes the keys that a server of an earlier version left out.
#[test_on(sqlite, postgres)]
async fn renaming_during_a_start_keeps_its_key(app: TestApp) {
    app.stop_jobs().await;
    let kofi = app.sign_up("kofi").await;
    app.create_host(&kofi).await;
    app.execute_sql("update hosts set folded_name = null").await;
    let mut renaming = app.state.db.begin().await.unwrap();
    renaming.query("update hosts set name = 'New Name', folded_name = 'new name'").execute().await.unwrap();

    let commit = async {
        if renaming.is_postgres() {
            app.wait_for_lock_waits(1).await;
        } else {
            // The other server waits for the lock of the file, which can't be observed, and reads nothing before it has the lock.
            sleep(Duration::from_millis(500)).await;
        }
        renaming.commit().await.unwrap();
    };
    join(app.start_second_server(app.state.settings.clone()), commit).await;

    assert_eq!(app.scalar::<String>("select folded_name from hosts").await, "new name");
}

#[test]
fn equal_names_have_the_same_key() {
    for [name, same] in [
        ["Café", "CAFÉ"],
        ["Café", " Cafe\u{301}\u{a0}"],
        ["Straße", "STRASSE"],
        ["Ωmega", "ωMEGA"],
        ["ΟΔΟΣ", "οδος"],
        ["Кино", "КИНО"],
        ["Ｊａｚｚ Night", "jazz\u{3000} night"],
        ["ﬁnale", "FINALE"],
        ["İ", "i\u{307}"],
    ] {
        assert_eq!(fold(name), fold(same), "{name}");
        assert_eq!(fold(&fold(name)), fold(name), "{name}");
    }
    for [name, other] in [["Café", "Cafe"], ["Jazz Night", "JazzNight"], ["ı", "i"]] {
        assert_ne!(fold(name), fold(other), "{name}");
    }
}
