//! Images of events.

use std::fs;
use std::sync::mpsc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use boxoffice::features::catalog::media::image_uploads;
use boxoffice::kernel::types::id::Id;
use boxoffice::kernel::worker_pool::AccountWorkerPool;
use boxoffice_http::error::Error;
use futures::FutureExt;
use futures::future::{BoxFuture, join, join_all};
use serde_json::{Value, json};

use super::{cancel_events, create, event_body, rejection};
use crate::advertisements::{advertisement_body, create as create_advertisement};
use crate::support::{Response, TestApp, id_of, test_on};

/// The smallest PNG.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR42mM4kSICAAM4AUH8/hrTAAAAAElFTkSuQmCC";
/// The smallest lossy WebP.
const WEBP: &str = "UklGRiIAAABXRUJQVlA4IBYAAAAwAQCdASoBAAEADsD+JaQAA3AAAAAA";

/// Returns the number of stored image files of this kind, referenced or not.
fn files(app: &TestApp, kind: &str) -> usize {
    fs::read_dir(app.state.settings.media.folder().unwrap().join(kind)).map_or(0, Iterator::count)
}

/// Returns a PNG with this many bytes of text.
fn png_with(bytes: u32) -> String {
    let mut png = STANDARD.decode(PNG).unwrap();
    let end = png.split_off(png.len() - 12);
    png.extend(bytes.to_be_bytes());
    png.extend(b"teXt");
    png.resize(png.len() + bytes as usize + 4, 0);
    png.extend(end);
    STANDARD.encode(png)
}

#[test_on(sqlite, postgres)]
async fn serves_image_of_event(app: TestApp) {
    let kofi = app.sign_up("kofi").await;
    let mut body = event_body(&app, &app.create_host(&kofi).await, "Jazz Night").await;
    body["banner"] = format!("data:image/png;base64,{PNG}").into();

    let created = create(&app, &kofi.key, &body).await;

    let uri = created.uri().to_owned();
    let id = id_of(&uri);
    let thumbnail = format!("https://boxoffice.example/media/thumbnail/{id}");
    assert_eq!((created.status, &created.body["thumbnail"]), (201, &json!(thumbnail)));
    assert!(
        created.body["banner"].as_str().unwrap().starts_with(&format!("https://boxoffice.example/media/banner/{id}?secret="))
    );
    let banner = app.fetch_image("banner", &uri).await;
    assert_eq!((banner.status, banner.header("content-type")), (200, "image/png"));
    assert_eq!(app.fetch_image("thumbnail", &uri).await.status, 200, "a placeholder");
}

#[test_on(sqlite, postgres)]
async fn serves_image_of_draft_at_secret_url_only(app: TestApp) {
    let (kofi, host) = app.sign_up_with_host("kofi").await;
    let mut body = event_body(&app, &host, "Jazz Night").await;
    body["banner"] = PNG.into();
    let created = create(&app, &kofi.key, &body).await;
    let secret = path(&created.body["banner"]);
    let bare = secret.split('?').next().unwrap().to_owned();
    let fetch = async |path: &str| app.request("GET", path).anonymous().send().await;

    let guessed = fetch(&bare).await;
    let wrong = fetch(&format!("{bare}?secret=4611686018427387904")).await;
    let replaced = app.put(&kofi.key, created.uri(), json!({ "banner": WEBP })).await;
    let former = fetch(&secret).await;
    let present = fetch(&path(&replaced.body["banner"])).await;
    app.execute_sql("update events set status = 'Listed'").await;
    let listed = app.get(&app.public_key, created.uri()).await;
    let open = fetch(&bare).await;

    for rejected in [guessed, wrong, former] {
        assert_eq!(rejection(&rejected), (404, "resource.not-found"));
    }
    assert_eq!((present.status, path(&listed.body["banner"]), open.status), (200, bare, 200));
}

/// Returns whether the image of a draft was uploaded: then its URL has a secret.
fn is_uploaded(draft: &Response, kind: &str) -> bool {
    path(&draft.body[kind]).contains("?secret=")
}

/// Returns the path and query of an image's URL.
fn path(address: &Value) -> String {
    address.as_str().unwrap().strip_prefix("https://boxoffice.example").unwrap().to_owned()
}

#[test_on(sqlite, postgres)]
async fn accepts_large_image(app: TestApp) {
    let kofi = app.sign_up("kofi").await;
    let mut body = event_body(&app, &app.create_host(&kofi).await, "Jazz Night").await;
    body["thumbnail"] = png_with(200_000).into();

    let created = create(&app, &kofi.key, &body).await;
    let banner = app.put(&kofi.key, created.uri(), json!({ "banner": png_with(5 * 1024 * 1024) })).await;

    assert_eq!(created.status, 201, "{}", created.body);
    assert_eq!(banner.invalid_arguments(), ["banner"], "more than 5 MiB");
}

#[test_on(sqlite, postgres)]
async fn replaces_and_removes_image(app: TestApp) {
    let kofi = app.sign_up("kofi").await;
    let mut body = event_body(&app, &app.create_host(&kofi).await, "Jazz Night").await;
    body["banner"] = PNG.into();
    body["thumbnail"] = PNG.into();
    let uri = create(&app, &kofi.key, &body).await.uri().to_owned();

    let changed = app.put(&kofi.key, &uri, json!({ "banner": WEBP, "thumbnail": "" })).await;
    let kept = app.put(&kofi.key, &uri, json!({ "banner": null })).await;

    assert_eq!((changed.status, is_uploaded(&changed, "banner"), is_uploaded(&changed, "thumbnail")), (200, true, false));
    assert_eq!(app.fetch_image("banner", &uri).await.header("content-type"), "image/webp");
    assert_eq!(app.fetch_image("thumbnail", &uri).await.status, 200, "a placeholder");
    assert_eq!(kept.body, changed.body);
    assert_eq!((files(&app, "banner"), files(&app, "thumbnail")), (1, 0));
}

#[test_on(sqlite, postgres)]
async fn blank_image_removes_image(app: TestApp) {
    let kofi = app.sign_up("kofi").await;
    let mut body = event_body(&app, &app.create_host(&kofi).await, "Jazz Night").await;
    body["banner"] = "".into();

    let created = create(&app, &kofi.key, &body).await;

    assert_eq!((created.status, is_uploaded(&created, "banner")), (201, false));
}

#[test_on(sqlite, postgres)]
async fn own_url_of_image_changes_nothing(app: TestApp) {
    let (kofi, host) = app.sign_up_with_host("kofi").await;
    let mut body = event_body(&app, &host, "Jazz Night").await;
    body["banner"] = PNG.into();
    let created = create(&app, &kofi.key, &body).await;
    let other = create(&app, &kofi.key, &event_body(&app, &host, "Rock Night").await).await;

    let images = json!({ "banner": created.body["banner"], "thumbnail": created.body["thumbnail"] });
    let sent_back = app.put(&kofi.key, created.uri(), images).await;
    let foreign = app.put(&kofi.key, created.uri(), json!({ "banner": other.body["banner"] })).await;

    assert_eq!((sent_back.status, &sent_back.body), (200, &created.body));
    assert_eq!(foreign.invalid_arguments(), ["banner"]);
    assert_eq!((files(&app, "banner"), files(&app, "thumbnail")), (1, 0));
}

#[test_on(sqlite, postgres)]
async fn rejected_update_keeps_image(app: TestApp) {
    let (kofi, ama) = (app.sign_up("kofi").await, app.sign_up("ama").await);
    let host = app.create_host(&kofi).await;
    create(&app, &kofi.key, &event_body(&app, &host, "Rock Night").await).await;
    let mut body = event_body(&app, &host, "Jazz Night").await;
    body["banner"] = PNG.into();
    let uri = create(&app, &kofi.key, &body).await.uri().to_owned();

    let stranger = app.put(&ama.key, &uri, json!({ "banner": WEBP })).await;
    let taken = app.put(&kofi.key, &uri, json!({ "banner": WEBP, "title": "Rock Night" })).await;
    let wrong = app.put(&kofi.key, &uri, json!({ "banner": WEBP, "thumbnail": "*", "end": "2000-01-01T00:00" })).await;
    cancel_events(&app).await;
    let cancelled = app.put(&kofi.key, &uri, json!({ "banner": WEBP })).await;

    assert_eq!(rejection(&stranger), (403, "resource.not-yours"));
    assert_eq!(rejection(&taken), (409, "event.taken"));
    assert_eq!(wrong.invalid_arguments(), ["end", "thumbnail"]);
    assert_eq!(rejection(&cancelled), (409, "event.cancelled"));
    assert_eq!(app.fetch_image("banner", &uri).await.header("content-type"), "image/png");
    assert_eq!((files(&app, "banner"), files(&app, "thumbnail")), (1, 0));
}

#[test_on(sqlite, postgres)]
async fn deleting_event_deletes_its_image(app: TestApp) {
    let kofi = app.sign_up("kofi").await;
    let mut body = event_body(&app, &app.create_host(&kofi).await, "Jazz Night").await;
    body["banner"] = PNG.into();
    let uri = create(&app, &kofi.key, &body).await.uri().to_owned();
    assert_eq!(files(&app, "banner"), 1);

    app.delete(&kofi.key, &uri).await;

    assert_eq!(app.get(&kofi.key, &uri).await.status, 404);
    assert_eq!(files(&app, "banner"), 0);
}

#[test_on(sqlite, postgres)]
async fn concurrent_upload_and_removal_leave_consistent_state(app: TestApp) {
    let kofi = app.sign_up("kofi").await;
    let body = event_body(&app, &app.create_host(&kofi).await, "Jazz Night").await;
    let uri = create(&app, &kofi.key, &body).await.uri().to_owned();

    for round in 0..40 {
        let put = app.put(&kofi.key, &uri, json!({ "banner": PNG }));
        let removed = app.put(&kofi.key, &uri, json!({ "banner": "" }));
        // Each is sent first in turn.
        let (one, other) = if round % 2 == 0 { join(put, removed).await } else { join(removed, put).await };

        assert_eq!((one.status, other.status), (200, 200));
        let is_named = is_uploaded(&app.get(&kofi.key, &uri).await, "banner");
        assert_eq!(app.fetch_image("banner", &uri).await.status, 200, "round {round}");
        assert_eq!(files(&app, "banner"), usize::from(is_named), "round {round}");
    }
}

#[test_on(sqlite, postgres)]
async fn concurrent_uploads_leave_one_image(app: TestApp) {
    let kofi = app.sign_up("kofi").await;
    let body = event_body(&app, &app.create_host(&kofi).await, "Jazz Night").await;
    let uri = create(&app, &kofi.key, &body).await.uri().to_owned();
    // The URL of a draft's image changes when the event is listed.
    app.execute_sql("update events set status = 'Listed'").await;

    for _ in 0..5 {
        let puts = [PNG, WEBP, PNG, WEBP].map(|banner| app.put(&kofi.key, &uri, json!({ "banner": banner })));
        let responses = join_all(puts).await;

        assert!(responses.iter().all(|response| response.status == 200), "{responses:?}");
        assert_eq!(files(&app, "banner"), 1);
        let (_, shown) = join(app.put(&kofi.key, &uri, json!({ "banner": PNG })), app.fetch_image("banner", &uri)).await;
        assert_eq!(shown.status, 200, "while it is replaced");
    }
}

#[test_on(sqlite, postgres)]
async fn update_that_loses_title_race_discards_image(app: TestApp) {
    let (kofi, host) = app.sign_up_with_host("kofi").await;
    let mut events = Vec::new();
    for title in ["Jazz Night", "Rock Night"] {
        events.push(create(&app, &kofi.key, &event_body(&app, &host, title).await).await.uri().to_owned());
    }

    for round in 0..10 {
        let body = json!({ "title": format!("Night {round}"), "banner": PNG });
        let changes = join_all(events.iter().map(|uri| app.put(&kofi.key, uri, body.clone()))).await;

        let mut statuses: Vec<_> = changes.iter().map(|response| response.status).collect();
        for (uri, change) in events.iter().zip(&changes) {
            let draft = app.get(&kofi.key, uri).await;
            assert_eq!(is_uploaded(&draft, "banner"), change.status == 200, "round {round}");
            assert_eq!(app.fetch_image("banner", uri).await.status, 200, "round {round}");
        }
        statuses.sort_unstable();
        assert_eq!(statuses, [200, 409], "round {round}");
        assert_eq!(files(&app, "banner"), 1, "round {round}");
        for uri in &events {
            app.put(&kofi.key, uri, json!({ "banner": "" })).await;
        }
    }
}

#[test_on(sqlite, postgres)]
async fn image_uploaded_during_event_deletion_is_discarded(app: TestApp) {
    let (kofi, host) = app.sign_up_with_host("kofi").await;

    for round in 0..10 {
        let uri = create(&app, &kofi.key, &event_body(&app, &host, &format!("Night {round}")).await).await.uri().to_owned();
        let put = app.put(&kofi.key, &uri, json!({ "banner": PNG, "thumbnail": PNG }));
        let (put, removed) = join(put, app.delete(&kofi.key, &uri)).await;

        assert!([200, 404].contains(&put.status), "{put:?}");
        assert_eq!(removed.status, 204);
        assert_eq!(app.get(&kofi.key, &uri).await.status, 404);
        assert_eq!((files(&app, "banner"), files(&app, "thumbnail")), (0, 0), "round {round}");
    }
}

/// Begins an upload that runs until the returned sender is dropped.
fn block(uploads: &AccountWorkerPool) -> (mpsc::Sender<()>, BoxFuture<'_, boxoffice_http::error::Result<()>>) {
    let (release, released) = mpsc::channel();
    let mut blocked = uploads.run(None, move || _ = released.recv()).boxed();
    assert!((&mut blocked).now_or_never().is_none());
    (release, blocked)
}

#[test_on(sqlite, postgres)]
async fn image_of_caller_without_permission_is_not_decoded(app: TestApp) {
    let (kofi, event) = app.sign_up_host("kofi", &[]).await;
    let ama = app.sign_up("ama").await;
    let zone = app.create_zone(300, 250).await;
    let advertisement = create_advertisement(&app, &kofi.key, &advertisement_body("Jazz", &event, &[&zone])).await;
    let mut new_event = event_body(&app, &event.host, "Rock Night").await;
    new_event["banner"] = PNG.into();
    let new_advertisement = advertisement_body("Rock", &event, &[&zone]);
    let artwork = json!({ "artwork": new_advertisement["artwork"] });
    // No image can be decoded.
    let (release, blocked) = block(&app.state.image_uploads);
    let mut waiting = join_all((0..100).map(|_| app.state.image_uploads.run(None, || ())));
    assert!((&mut waiting).now_or_never().is_none());

    for (method, path, body) in [
        ("POST", "/events", &new_event),
        ("PUT", event.uri.as_str(), &json!({ "banner": PNG })),
        ("POST", "/advertisements", &new_advertisement),
        ("PUT", advertisement.uri(), &artwork),
    ] {
        let send = async |key: &str| app.request(method, path).key(key).json(body).send().await;
        let (by_ama, by_kofi) = (send(&ama.key).await, send(&kofi.key).await);
        assert_eq!(rejection(&by_ama), (403, "resource.not-yours"), "{method} {path}");
        assert_eq!(rejection(&by_kofi), (503, "server.unavailable"), "{method} {path}");
    }
    drop(release);
    blocked.await.unwrap();
    waiting.await;
    assert_eq!(app.put(&kofi.key, &event.uri, json!({ "banner": PNG })).await.status, 200);
}

#[tokio::test]
async fn one_account_cannot_keep_others_from_uploading() {
    let uploads = image_uploads();
    let (release, blocked) = block(&uploads);
    let mut own = join_all((0..8).map(|_| uploads.run(Some(Id(1)), || ())));
    assert!((&mut own).now_or_never().is_none());

    let same_account = uploads.run(Some(Id(1)), || ()).await;
    let mut other = uploads.run(Some(Id(2)), || ()).boxed();

    assert!(matches!(same_account, Err(Error::TooMany(_))), "{same_account:?}");
    assert!((&mut other).now_or_never().is_none(), "it waits");
    drop((own, release));
    blocked.await.unwrap();
    assert!(other.await.is_ok());
    assert!(uploads.run(Some(Id(1)), || ()).await.is_ok(), "cancelled uploads release their shares");
}
