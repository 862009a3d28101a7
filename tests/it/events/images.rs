//! An event's images.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use super::{cancel_events, change, delete, event, make, read, refusal, uri};
use crate::on_both_databases;
use crate::support::{Answer, World};

on_both_databases![
    an_image_is_served_from_its_event,
    a_large_image_is_taken,
    an_image_is_replaced_and_removed,
    a_blank_image_is_none,
    an_image_is_not_replaced_by_a_change_that_is_refused,
    an_image_goes_with_its_event,
];

/// The smallest PNG.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR42mM4kSICAAM4AUH8/hrTAAAAAElFTkSuQmCC";
/// The smallest lossy WebP.
const WEBP: &str = "UklGRiIAAABXRUJQVlA4IBYAAAAwAQCdASoBAAEADsD+JaQAA3AAAAAA";

async fn image(world: &World, kind: &str, event: &str) -> Answer {
    let id = event.rsplit('/').next().unwrap();
    world.request("GET", &format!("/media/{kind}/{id}")).no_key().version(None).send().await
}

/// A PNG with so many bytes of text in it.
fn png_with(bytes: u32) -> String {
    let mut png = STANDARD.decode(PNG).unwrap();
    let end = png.split_off(png.len() - 12);
    png.extend(bytes.to_be_bytes());
    png.extend(b"teXt");
    png.resize(png.len() + bytes as usize + 4, 0);
    png.extend(end);
    STANDARD.encode(png)
}

async fn an_image_is_served_from_its_event(world: World) {
    let kofi = world.person("kofi").await;
    let mut body = event(&world, &world.host_of(&kofi).await, "Jazz Night").await;
    body["banner"] = format!("data:image/png;base64,{PNG}").into();

    let made = make(&world, &kofi.key, &body).await;

    let uri = uri(&made);
    let id = uri.rsplit('/').next().unwrap();
    assert_eq!((made.status, &made.body["thumbnail"]), (201, &json!("")));
    assert_eq!(made.body["banner"], format!("https://boxoffice.example/media/banner/{id}"));
    let banner = image(&world, "banner", &uri).await;
    assert_eq!((banner.status, banner.header("content-type")), (200, "image/png"));
    assert_eq!(image(&world, "thumbnail", &uri).await.status, 404);
}

async fn a_large_image_is_taken(world: World) {
    let kofi = world.person("kofi").await;
    let mut body = event(&world, &world.host_of(&kofi).await, "Jazz Night").await;
    body["thumbnail"] = png_with(200_000).into();

    let made = make(&world, &kofi.key, &body).await;
    let banner = change(&world, &kofi.key, &uri(&made), json!({ "banner": png_with(5 * 1024 * 1024) })).await;

    assert_eq!(made.status, 201, "{}", made.body);
    assert_eq!((banner.status, banner.complaints()), (400, vec!["banner".to_owned()]), "more than 5 MiB");
}

async fn an_image_is_replaced_and_removed(world: World) {
    let kofi = world.person("kofi").await;
    let mut body = event(&world, &world.host_of(&kofi).await, "Jazz Night").await;
    body["banner"] = PNG.into();
    body["thumbnail"] = PNG.into();
    let uri = uri(&make(&world, &kofi.key, &body).await);

    let changed = change(&world, &kofi.key, &uri, json!({ "banner": WEBP, "thumbnail": "" })).await;
    let kept = change(&world, &kofi.key, &uri, json!({ "banner": null })).await;

    assert_eq!((changed.status, &changed.body["thumbnail"]), (200, &json!("")));
    assert_eq!(image(&world, "banner", &uri).await.header("content-type"), "image/webp");
    assert_eq!(image(&world, "thumbnail", &uri).await.status, 404);
    assert_eq!(kept.body, changed.body);
}

async fn a_blank_image_is_none(world: World) {
    let kofi = world.person("kofi").await;
    let mut body = event(&world, &world.host_of(&kofi).await, "Jazz Night").await;
    body["banner"] = "".into();

    let made = make(&world, &kofi.key, &body).await;

    assert_eq!((made.status, &made.body["banner"]), (201, &json!("")));
}

async fn an_image_is_not_replaced_by_a_change_that_is_refused(world: World) {
    let (kofi, ama) = (world.person("kofi").await, world.person("ama").await);
    let host = world.host_of(&kofi).await;
    make(&world, &kofi.key, &event(&world, &host, "Rock Night").await).await;
    let mut body = event(&world, &host, "Jazz Night").await;
    body["banner"] = PNG.into();
    let uri = uri(&make(&world, &kofi.key, &body).await);

    let stranger = change(&world, &ama.key, &uri, json!({ "banner": WEBP })).await;
    let taken = change(&world, &kofi.key, &uri, json!({ "banner": WEBP, "title": "Rock Night" })).await;
    let wrong = change(&world, &kofi.key, &uri, json!({ "banner": WEBP, "thumbnail": "*", "end": "2000-01-01T00:00" })).await;
    cancel_events(&world).await;
    let cancelled = change(&world, &kofi.key, &uri, json!({ "banner": WEBP })).await;

    assert_eq!(refusal(&stranger), (403, "resource.not-yours"));
    assert_eq!(refusal(&taken), (409, "event.taken"));
    assert_eq!(wrong.complaints(), ["end", "thumbnail"]);
    assert_eq!(refusal(&cancelled), (409, "event.cancelled"));
    assert_eq!(image(&world, "banner", &uri).await.header("content-type"), "image/png");
}

async fn an_image_goes_with_its_event(world: World) {
    let kofi = world.person("kofi").await;
    let mut body = event(&world, &world.host_of(&kofi).await, "Jazz Night").await;
    body["banner"] = PNG.into();
    let uri = uri(&make(&world, &kofi.key, &body).await);
    let name = format!("banner/{}", uri.rsplit('/').next().unwrap());
    assert!(world.app.media.get(&name).await.unwrap().is_some());

    delete(&world, &kofi.key, &uri).await;

    assert_eq!(read(&world, &kofi.key, &uri).await.status, 404);
    assert!(world.app.media.get(&name).await.unwrap().is_none());
}
