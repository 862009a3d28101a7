//! Names: compared regardless of case, white space and Unicode representation.

use std::borrow::Cow;
use std::fs;
use std::path::Path;
use std::time::Duration;

use boxoffice::kernel::types::folding::fold;
use futures::future::join;
use serde_json::json;
use sqlx::migrate::Migrator;
use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection, SqliteConnection};
use tokio::time::sleep;

use crate::advertisements::advertisement_body;
use crate::support::{Response, TestApp, postgres, rejection};

on_both_databases![
    equal_names_are_taken,
    searches_ignore_case_and_representation,
    sorts_by_folded_title,
    name_may_change_its_form,
    renaming_during_a_start_keeps_its_key,
];

/// Forms of one name.
const CAFE: [&str; 4] = ["Café Noir", "CAFÉ NOIR", "  Cafe\u{301}  noir ", "Ｃａｆé\u{a0}Noir"];

fn uri(response: &Response) -> String {
    response.uri().to_owned()
}

async fn equal_names_are_taken(app: TestApp) {
    let (kofi, event) = app.sign_up_host_with_draft("kofi").await;
    let floor = json!({
        "name": "Floor", "basePrice": 20, "capacity": 10, "salesStart": "2020-01-01T00:00", "salesEnd": "2998-12-20T19:00",
    });
    let section = uri(&app.post(&kofi.key, &format!("{}/sections", event.uri), &floor).await);
    let (region, zone, category, venue) =
        (app.create_region().await, app.create_zone(300, 250).await, app.create_category().await, app.create_venue().await);
    let staff = app.staff.key.as_str();
    let collections = [
        (staff, "/regions".to_owned(), "name", "region.taken", json!({ "country": "Ghana" })),
        (staff, "/categories".to_owned(), "name", "category.taken", json!({ "subcategories": ["Jazz"] })),
        (
            staff,
            "/venues".to_owned(),
            "name",
            "venue.taken",
            json!({ "region": region, "address": "Osu", "longitude": 0, "latitude": 5 }),
        ),
        (&kofi.key, "/hosts".to_owned(), "name", "host.taken", json!({ "contact": "Kofi", "email": "kofi@example.com" })),
        (
            &kofi.key,
            "/events".to_owned(),
            "title",
            "event.taken",
            json!({
                "host": event.host.uri, "description": "Jazz.", "type": "Standard", "public": true, "category": category,
                "subcategory": "Jazz", "venue": venue,
            }),
        ),
        (&kofi.key, "/advertisements".to_owned(), "name", "advertisement.taken", advertisement_body("", &event, &[&zone])),
        (&kofi.key, format!("{}/sections", event.uri), "name", "section.taken", floor),
        (&kofi.key, format!("{}{section}/modifiers", event.uri), "name", "modifier.taken", json!({ "priceDelta": -1 })),
    ];
    for (key, path, property, code, body) in collections {
        let named = |name: &str| {
            let mut body = body.clone();
            body[property] = name.into();
            body
        };
        let created = app.post(key, &path, &named(CAFE[0])).await;
        assert_eq!((created.status, &created.body[property]), (201, &json!(CAFE[0])), "{path}: {}", created.body);
        let other = app.post(key, &path, &named("Cafe Noir")).await;
        let other_uri = if path.ends_with("sections") { format!("{}{}", event.uri, uri(&other)) } else { uri(&other) };
        for name in CAFE {
            assert_eq!(rejection(&app.post(key, &path, &named(name)).await), (409, code), "{path} {name}");
            let renamed = app.put(key, &other_uri, json!({ property: name })).await;
            assert_eq!(rejection(&renamed), (409, code), "{other_uri} {name}");
        }
        assert_eq!(app.put(key, &other_uri, json!({ property: "Cafe Noir" })).await.status, 200, "its own");
    }
}

async fn titles(app: &TestApp, query: &str) -> Vec<String> {
    app.list(&app.staff.key, query, if query.starts_with("/venues") { "name" } else { "title" }).await
}

/// Creates listed events with these titles.
async fn listed_events(app: &TestApp, titles: &[&str]) {
    let kofi = app.sign_up("kofi").await;
    let host = app.create_host(&kofi).await;
    for title in titles {
        let event = app.create_listed_event(&host, &[]).await;
        assert_eq!(app.put(&kofi.key, &event.uri, json!({ "title": title })).await.status, 200);
    }
}

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

async fn sorts_by_folded_title(app: TestApp) {
    listed_events(&app, &["ÉB", "éa", "Éc"]).await;

    assert_eq!(titles(&app, "/events?sort=alphabetical").await, ["éa", "ÉB", "Éc"]);
    assert_eq!(titles(&app, "/published-events?sort=alphabetical&order=desc").await, ["Éc", "ÉB", "éa"]);
}

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
