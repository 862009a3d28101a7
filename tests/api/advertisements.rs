//! Advertisements: creation, visibility, updates and deletion.

mod artwork;
mod changes;
mod lists;
mod markdown;
mod submissions;

use std::io::Cursor;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures::future::{join, join_all};
use image::{ImageFormat, RgbImage};
use serde_json::{Value, json};

use crate::review::submission_of;
use crate::support::{Event, Response, TestApp, User, id_of, rejection, section, test_on};

/// Returns a PNG of this size in base64.
fn png(width: u32, height: u32) -> String {
    image(width, height, ImageFormat::Png)
}

/// Returns an image of this size in base64.
fn image(width: u32, height: u32, format: ImageFormat) -> String {
    let mut file = Cursor::new(Vec::new());
    RgbImage::new(width, height).write_to(&mut file, format).unwrap();
    STANDARD.encode(file.into_inner())
}

/// Builds an advertisement with all required properties for zones of 300 × 250 pixels, with a schedule of centuries.
pub fn advertisement_body(name: &str, event: &Event, zones: &[&str]) -> Value {
    json!({
        "name": name, "description": "# Jazz\n\nBy the *sea*.", "event": event.id, "artwork": png(300, 250), "zones": zones,
        "schedule": [{ "start": "2020-01-01 00:00", "end": "2998-01-01 00:00" }],
    })
}

pub async fn create(app: &TestApp, key: &str, body: &Value) -> Response {
    app.post(key, "/advertisements", body).await
}

/// Creates an advertisement with all required properties, and returns its URI.
pub async fn create_draft(app: &TestApp, owner: &User, name: &str, event: &Event, zones: &[&str]) -> String {
    create(app, &owner.key, &advertisement_body(name, event, zones)).await.uri().to_owned()
}

async fn submit(app: &TestApp, key: &str, uri: &str) -> Response {
    app.post_empty(key, &format!("{uri}/submissions")).await
}

async fn cancel(app: &TestApp, key: &str, uri: &str) -> Response {
    app.post_empty(key, &format!("{uri}/cancellations")).await
}

async fn decide(app: &TestApp, uri: &str, approved: bool) -> Response {
    let decision = format!("{}?approved={approved}&reason=Because", submission_of(uri));
    app.delete(&app.staff.key, &decision).await
}

/// Submits and approves an advertisement.
pub async fn publish(app: &TestApp, uri: &str) {
    assert_eq!(submit(app, &app.staff.key, uri).await.status, 201);
    assert_eq!(decide(app, uri, true).await.status, 200);
}

/// Returns the stored names of all artwork, with whether its file exists.
async fn stored_artwork(app: &TestApp) -> Vec<String> {
    let rows: Vec<(i64,)> = app.rows("select artwork_id from advertisements order by id").await;
    let names: Vec<String> = rows.into_iter().map(|(id,)| format!("artwork/{id:014}")).collect();
    for name in &names {
        assert!(app.state.media.get(name).await.unwrap().is_some(), "{name}");
    }
    names
}

/// Returns the number of artwork files in the object store, referenced or not.
fn files(app: &TestApp) -> usize {
    let folder = app.state.settings.media.folder().unwrap().join("artwork");
    std::fs::read_dir(folder).map_or(0, Iterator::count)
}

#[test_on(sqlite, postgres)]
async fn creates_draft(app: TestApp) {
    let (kofi, event) = app.sign_up_host("kofi", &[section("Floor", 20.0, 10)]).await;
    let (first, second) = (app.create_zone(300, 250).await, app.create_zone(300, 250).await);
    let number = second.strip_prefix("/zones/").unwrap();
    let mut body = advertisement_body("Jazz by the sea", &event, &[&first, number, &format!("/v3{first}")]);
    body["x-parsed-md-description"] = json!({ "result": "anything" });
    body["status"] = "Listed".into();

    let created = create(&app, &kofi.key, &body).await;

    assert_eq!(created.status, 201, "{}", created.body);
    let uri = created.uri().to_owned();
    assert_eq!(created.header("location"), uri);
    let mut shown = app.read(&event.uri).await;
    shown["category"] = shown["category"]["name"].clone();
    shown.as_object_mut().unwrap().remove("admissionFrom");
    let artwork = created.body["artwork"].as_str().unwrap();
    let bare = format!("https://boxoffice.example/media/artwork/{}", uri.strip_prefix("/advertisements/").unwrap());
    assert!(artwork.starts_with(&format!("{bare}?secret=")), "{artwork}");
    let expected = json!({
        "self": uri, "name": "Jazz by the sea", "description": "# Jazz\n\nBy the *sea*.", "status": "Draft",
        "artwork": artwork,
        "zones": [app.read(&first).await, app.read(&second).await],
        "schedule": body["schedule"],
        "event": shown,
        "x-parsed-md-description": { "result": [
            { "type": "heading", "level": 1, "text": "Jazz" }, { "type": "paragraph", "text": "By the sea." },
        ] },
    });
    assert_eq!(created.body, expected);
    assert!(shown["category"].as_str().unwrap().starts_with("Music") && shown["sections"][0]["name"] == "Floor");
    assert_eq!(app.get(&kofi.key, &uri).await.body, expected);
    assert_eq!(app.fetch_image("artwork", &uri).await.header("content-type"), "image/png");
}

#[test_on(sqlite, postgres)]
async fn normalizes_times_to_utc(app: TestApp) {
    let (kofi, event) = app.sign_up_host_with_draft("kofi").await;
    let mut body = advertisement_body("Jazz", &event, &[&app.create_zone(300, 250).await]);
    body["schedule"] = json!([
        { "start": "2998-12-20T19:30:15.250+01:00", "end": "2998-12-20 19:00" },
        { "start": "2020-01-01T00:00", "end": "2020-01-02 01:00:00Z" },
    ]);

    let created = create(&app, &kofi.key, &body).await;

    let expected = json!([
        { "start": "2998-12-20 18:30", "end": "2998-12-20 19:00" },
        { "start": "2020-01-01 00:00", "end": "2020-01-02 01:00" },
    ]);
    assert_eq!((created.status, &created.body["schedule"]), (201, &expected), "in the order given");
    for slot in [json!({ "start": "tomorrow", "end": "2998-12-20 19:00" }), json!({ "start": "2998-12-20 19:00" }), json!({})] {
        body["schedule"] = json!([slot]);
        assert_eq!(create(&app, &kofi.key, &body).await.invalid_arguments(), ["schedule"], "{slot}");
    }
}

#[test_on(sqlite, postgres)]
async fn only_host_administrators_create_advertisement(app: TestApp) {
    let (_, ama, event) = app.create_sale(&[]).await;
    let zone = app.create_zone(300, 250).await;
    let body = advertisement_body("Jazz", &event, &[&zone]);
    let mut wrong = body.clone();
    wrong["zones"] = json!(["17637000000001"]);
    wrong["artwork"] = "*".into();

    let stranger = create(&app, &ama.key, &wrong).await;
    let before = files(&app);
    let staff = create(&app, &app.staff.key, &body).await;

    assert_eq!(rejection(&stranger), (403, "resource.not-yours"), "before the zone is looked up");
    assert_eq!((before, staff.status), (0, 201));
}

#[test_on(sqlite, postgres)]
async fn names_all_unknown_references(app: TestApp) {
    let (kofi, event) = app.sign_up_host_with_draft("kofi").await;
    let zone = app.create_zone(300, 250).await;
    let whole = advertisement_body("Jazz", &event, &[&zone]);
    let mut wrong = whole.clone();
    wrong["event"] = "17637000000001".into();
    wrong["artwork"] = "aGVsbG8=".into();
    wrong["zones"] = json!([zone, "17637000000001", "nowhere"]);
    wrong["schedule"] = json!([
        { "start": "2998-12-20 19:00", "end": "2998-12-20 19:01" },
        { "start": "2998-12-20 19:00", "end": "2998-12-20 19:00" },
    ]);

    let response = create(&app, &kofi.key, &wrong).await;

    assert_eq!(rejection(&response), (400, "arguments.invalid"));
    assert_eq!(response.invalid_arguments(), ["event", "artwork", "zones", "schedule"]);
    let details: Vec<_> = response.body["fields"].as_array().unwrap().iter().map(|field| &field["detail"]).collect();
    assert_eq!(details[2..], ["names no zone (at 1, 2)", "must end after its start (at 1)"]);
    assert_eq!(files(&app), 0);
    assert_eq!(create(&app, &kofi.key, &whole).await.status, 201, "nothing was made before");
}

#[test_on(sqlite, postgres)]
async fn name_is_unique(app: TestApp) {
    let (kofi, ama) = (app.sign_up("kofi").await, app.sign_up("ama").await);
    let (his, hers) =
        (app.create_draft(&app.create_host(&kofi).await).await, app.create_draft(&app.create_host(&ama).await).await);
    let zone = app.create_zone(300, 250).await;
    create(&app, &kofi.key, &advertisement_body("Jazz", &his, &[&zone])).await;
    let other = create_draft(&app, &ama, "Rock", &hers, &[&zone]).await;

    let same = create(&app, &ama.key, &advertisement_body("Jazz", &hers, &[&zone])).await;
    let renamed = app.put(&ama.key, &other, json!({ "name": "Jazz" })).await;
    let repainted = app.put(&ama.key, &other, json!({ "name": "Jazz", "artwork": png(300, 250) })).await;
    let kept = app.put(&ama.key, &other, json!({ "name": "Rock", "artwork": png(300, 250) })).await;

    for rejected in [same, renamed, repainted] {
        assert_eq!(rejection(&rejected), (409, "advertisement.taken"));
    }
    assert_eq!(kept.status, 200);
    assert_eq!(stored_artwork(&app).await.len(), files(&app), "no image is left over");
    let names = async |name: &str| create(&app, &kofi.key, &advertisement_body(name, &his, &[&zone])).await;
    let (one, other) = join(names("Soul"), names("Soul")).await;
    let mut statuses = [one.status, other.status];
    statuses.sort_unstable();
    assert_eq!(statuses, [201, 409]);
    assert_eq!(stored_artwork(&app).await.len(), files(&app));
}

#[test_on(sqlite, postgres)]
async fn removed_host_cannot_advertise(app: TestApp) {
    let (kofi, event) = app.sign_up_host("kofi", &[]).await;
    let (zone, schedule) = (app.create_zone(300, 250).await, json!([{ "start": "2998-01-01 00:00", "end": "2998-01-02 00:00" }]));
    let draft = create_draft(&app, &kofi, "Draft", &event, &[&zone]).await;
    let waiting = create_draft(&app, &kofi, "Waiting", &event, &[&zone]).await;
    submit(&app, &kofi.key, &waiting).await;
    app.execute_sql("update hosts set removed = true").await;
    let before = app.read(&draft).await;

    let booked = create(&app, &kofi.key, &advertisement_body("New", &event, &[&zone])).await;
    let submitted = submit(&app, &kofi.key, &draft).await;
    let approved = decide(&app, &waiting, true).await;
    let rezoned = app.put(&kofi.key, &draft, json!({ "zones": [zone] })).await;
    let rescheduled = app.put(&kofi.key, &draft, json!({ "schedule": schedule })).await;

    for rejected in [booked, submitted, approved, rezoned, rescheduled] {
        assert_eq!(rejection(&rejected), (409, "host.removed"));
    }
    assert_eq!(app.read(&draft).await, before);
    assert_eq!((app.read(&waiting).await["status"].clone(), files(&app)), (json!("Under Review"), 2));
    let corrected = app.put(&kofi.key, &draft, json!({ "description": "No more." })).await;
    assert_eq!((corrected.status, decide(&app, &waiting, false).await.status), (200, 200), "the rejection cancels the booking");
}

#[test_on(sqlite, postgres)]
async fn rejects_cancelled_or_past_event(app: TestApp) {
    let (kofi, host) = app.sign_up_with_host("kofi").await;
    let (event, cancelled, over) = (app.create_draft(&host).await, app.create_draft(&host).await, app.create_draft(&host).await);
    let zone = app.create_zone(300, 250).await;
    app.end_event(&over).await;
    app.execute("update events set status = 'Cancelled' where id = $1", cancelled.id.parse::<i64>().unwrap()).await;
    let created = create(&app, &kofi.key, &advertisement_body("Jazz", &event, &[&zone])).await;

    for (event, code) in [(&cancelled, "event.cancelled"), (&over, "event.over")] {
        let booked = create(&app, &kofi.key, &advertisement_body("New", event, &[&zone])).await;
        let moved = app.put(&kofi.key, created.uri(), json!({ "event": event.id })).await;
        assert_eq!(rejection(&booked), (409, code));
        assert_eq!(rejection(&moved), (409, code));
    }
    assert_eq!(app.read(created.uri()).await, created.body);
    assert_eq!(files(&app), 1);
    app.execute_sql("update events set ends = 1 where status = 'Draft'").await;
    let rescheduled = app.put(&kofi.key, created.uri(), json!({ "schedule": created.body["schedule"] })).await;
    let renamed = app.put(&kofi.key, created.uri(), json!({ "name": "Late" })).await;
    assert_eq!((rejection(&rescheduled), renamed.status), ((409, "event.over"), 200));
}

#[test_on(sqlite, postgres)]
async fn advertisement_is_visible_to_all_once_approved(app: TestApp) {
    let (kofi, ama, event) = app.create_sale(&[]).await;
    let zone = app.create_zone(300, 250).await;
    let uri = create_draft(&app, &kofi, "Jazz", &event, &[&zone]).await;

    let statuses = async || {
        let mut statuses = Vec::new();
        for key in [&app.public_key, &ama.key, &kofi.key, &app.staff.key] {
            statuses.push(app.get(key, &uri).await.status);
        }
        statuses
    };

    submit(&app, &kofi.key, &uri).await;
    assert_eq!(statuses().await, [403, 403, 200, 200]);
    decide(&app, &uri, true).await;
    cancel(&app, &kofi.key, &uri).await;
    assert_eq!(statuses().await, [200, 200, 200, 200]);
}

#[test_on(sqlite, postgres)]
async fn advertisement_of_private_event_is_private(app: TestApp) {
    let (kofi, event) = app.sign_up_host_with_draft("kofi").await;
    let ama = app.sign_up("ama").await;
    let zone = app.create_zone(300, 250).await;
    let uri = create_draft(&app, &kofi, "Jazz", &event, &[&zone]).await;
    publish(&app, &uri).await;

    let shown = async |key: &str| {
        let total = async |path: &str| app.get(key, path).await.body["total"].clone();
        let lists = (total("/advertisements").await, total(&format!("{zone}/advertisements")).await);
        (app.get(key, &uri).await.status, lists)
    };

    assert_eq!(shown(&ama.key).await, (403, (json!(0), json!(0))));
    assert_eq!(shown(&kofi.key).await, (200, (json!(1), json!(0))));
    app.list_event(&event).await;
    assert_eq!(shown(&ama.key).await, (200, (json!(1), json!(1))));
}

#[test_on(sqlite, postgres)]
async fn delete_removes_everything(app: TestApp) {
    let (kofi, ama, event) = app.create_sale(&[]).await;
    let zone = app.create_zone(300, 250).await;
    let running = create_draft(&app, &kofi, "Jazz", &event, &[&zone]).await;
    let draft = create_draft(&app, &kofi, "Rock", &event, &[&zone]).await;
    publish(&app, &running).await;
    let shown = format!("{zone}/advertisements");
    assert_eq!(app.get(&ama.key, &shown).await.body["total"], 1);

    let removed = app.delete(&kofi.key, &running).await;
    let staff = app.delete(&app.staff.key, &draft).await;

    assert_eq!((removed.status, removed.body, staff.status), (204, Value::Null, 204));
    assert_eq!(app.get(&ama.key, &shown).await.body["total"], 0, "at once");
    assert_eq!(rejection(&app.get(&kofi.key, &running).await), (404, "resource.not-found"));
    assert_eq!(rejection(&app.delete(&kofi.key, &running).await), (404, "resource.not-found"));
    assert_eq!(app.get(&app.staff.key, &submission_of(&running)).await.status, 404);
    let image = format!("/media/artwork/{}", id_of(&running));
    assert_eq!((app.request("GET", &image).anonymous().send().await.status, files(&app)), (404, 0));
}

#[test_on(sqlite, postgres)]
async fn deleting_event_deletes_its_advertisements(app: TestApp) {
    let (kofi, host) = app.sign_up_with_host("kofi").await;
    let (event, other) = (app.create_listed_event(&host, &[]).await, app.create_listed_event(&host, &[]).await);
    let zone = app.create_zone(300, 250).await;
    let first = create_draft(&app, &kofi, "Jazz", &event, &[&zone]).await;
    let second = create_draft(&app, &kofi, "Rock", &event, &[&zone]).await;
    let others = create_draft(&app, &kofi, "Soul", &other, &[&zone]).await;
    publish(&app, &first).await;
    submit(&app, &kofi.key, &second).await;
    submit(&app, &kofi.key, &others).await;

    let removed = app.delete(&kofi.key, &event.uri).await;

    assert_eq!(removed.status, 204);
    for gone in [&first, &second] {
        assert_eq!(app.get(&app.staff.key, gone).await.status, 404);
        assert_eq!(app.get(&app.staff.key, &submission_of(gone)).await.status, 404);
    }
    assert_eq!(app.get(&kofi.key, &others).await.status, 200);
    assert_eq!(app.get(&app.staff.key, &submission_of(&others)).await.body["status"], "Pending");
    assert_eq!((stored_artwork(&app).await.len(), files(&app)), (1, 1));
}

#[test_on(sqlite, postgres)]
async fn event_deletion_waits_for_booking(app: TestApp) {
    let (kofi, host) = app.sign_up_with_host("kofi").await;
    let zone = app.create_zone(300, 250).await;
    for round in 0..6 {
        let event = app.create_draft(&host).await;
        let body = advertisement_body(&format!("Jazz {round}"), &event, &[&zone]);

        let (booked, removed) = join(create(&app, &kofi.key, &body), app.delete(&kofi.key, &event.uri)).await;

        assert_eq!(removed.status, 204, "{}", removed.body);
        assert!([201, 400].contains(&booked.status), "{}", booked.body);
    }
    assert_eq!((stored_artwork(&app).await.len(), files(&app)), (0, 0));
}

#[test_on(sqlite, postgres)]
async fn deletes_event_while_advertisement_is_updated(app: TestApp) {
    let (kofi, host) = app.sign_up_with_host("kofi").await;
    let zone = app.create_zone(300, 250).await;
    for round in 0..4 {
        let event = app.create_draft(&host).await;
        let uri = create_draft(&app, &kofi, &format!("Jazz {round}"), &event, &[&zone]).await;
        let body = json!({ "zones": [zone], "artwork": png(300, 250) });

        let (changed, removed) = join(app.put(&kofi.key, &uri, body), app.delete(&kofi.key, &event.uri)).await;

        assert_eq!(removed.status, 204, "{}", removed.body);
        assert!([200, 404].contains(&changed.status), "{}", changed.body);
    }
    assert_eq!((stored_artwork(&app).await.len(), files(&app)), (0, 0));
}

#[test_on(sqlite, postgres)]
async fn deletes_event_while_advertisements_are_read(app: TestApp) {
    let (kofi, host) = app.sign_up_with_host("kofi").await;
    let zone = app.create_zone(300, 250).await;
    for round in 0..6 {
        let event = app.create_draft(&host).await;
        let uri = create_draft(&app, &kofi, &format!("Jazz {round}"), &event, &[&zone]).await;

        let reading = join_all((0..4).map(|_| join(app.get(&kofi.key, &uri), app.get(&kofi.key, "/advertisements"))));
        let (read, removed) = join(reading, app.delete(&kofi.key, &event.uri)).await;

        assert_eq!(removed.status, 204, "{}", removed.body);
        for (one, all) in read {
            assert!([200, 404].contains(&one.status), "{}", one.body);
            assert_eq!(all.status, 200, "{}", all.body);
        }
    }
}

#[test_on(sqlite, postgres)]
async fn does_not_submit_or_approve_for_cancelled_or_past_event(app: TestApp) {
    let (kofi, host) = app.sign_up_with_host("kofi").await;
    let zone = app.create_zone(300, 250).await;
    let (cancelled, over) = (app.create_listed_event(&host, &[]).await, app.create_draft(&host).await);
    let (mut drafts, mut waiting) = (Vec::new(), Vec::new());
    for (name, event) in [("Cancelled", &cancelled), ("Over", &over)] {
        drafts.push(create_draft(&app, &kofi, &format!("{name} draft"), event, &[&zone]).await);
        let uri = create_draft(&app, &kofi, name, event, &[&zone]).await;
        assert_eq!(submit(&app, &kofi.key, &uri).await.status, 201);
        waiting.push(uri);
    }
    assert_eq!(cancel(&app, &kofi.key, &cancelled.uri).await.status, 200);
    app.end_event(&over).await;

    for (uri, code) in drafts.iter().zip(["event.cancelled", "event.over"]) {
        assert_eq!(rejection(&submit(&app, &kofi.key, uri).await), (409, code));
        assert_eq!(app.read(uri).await["status"], "Draft");
    }
    for (uri, code) in waiting.iter().zip(["event.cancelled", "event.over"]) {
        assert_eq!(rejection(&decide(&app, uri, true).await), (409, code));
        assert_eq!(app.read(&submission_of(uri)).await["status"], "Pending");
        assert_eq!(app.read(uri).await["status"], "Under Review");
        assert_eq!(decide(&app, uri, false).await.status, 200, "it can be rejected");
    }
}
