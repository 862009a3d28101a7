//! Images: generated icons of regions, and uploaded images of events.

mod bucket;
mod drawing;
mod metadata;
mod object_store;
mod validation;

use std::fs;
use std::process::Command;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use boxoffice::features::catalog::media::{self, icon_name, initials};
use boxoffice::kernel::settings::Settings;
use futures::future::{Either, select};
use serde_json::json;

use super::failures::LogBuffer;
use super::http_limits::attempts::{MINUTE, reach_limit};
use crate::support::{ANY_PORT, TestApp, header, rejection, test_on};

/// A PNG and a WebP of one pixel.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR42mNoAAAAggCB2kUIOwAAAABJRU5ErkJggg==";
const WEBP: &str = "UklGRiIAAABXRUJQVlA4IBYAAAAwAQCdASoBAAEADsD+JaQAA3AAAAAA";

async fn fetch_unless(app: &TestApp, path: &str, known: &str) -> reqwest::Response {
    app.request("GET", path).anonymous().header("If-None-Match", known).send_raw().await
}

#[test_on(sqlite, postgres)]
async fn draws_region_icon(app: TestApp) {
    app.create_region().await;

    let icon = app.fetch("/media/ghana.png").await;

    assert_eq!((icon.status().as_u16(), header(icon.headers(), "content-type")), (200, "image/png"));
    assert_eq!(header(icon.headers(), "cache-control"), "public, max-age=86400");
    assert_eq!(header(icon.headers(), "x-content-type-options"), "nosniff");
    assert!(header(icon.headers(), "etag").starts_with('"'));
    let bytes = icon.bytes().await.unwrap();
    assert!(bytes.starts_with(b"\x89PNG\r\n\x1a\n"));
    assert_eq!(app.fetch("/v3/media/ghana.png").await.bytes().await.unwrap(), bytes);
}

#[test_on(sqlite, postgres)]
async fn icon_depends_on_country(app: TestApp) {
    app.create_region().await;

    let unknown = app.request("GET", "/media/togo.png").anonymous().send().await;
    let odd = app.request("GET", "/media/Ghana.png").anonymous().send().await;

    assert_eq!(rejection(&unknown), (404, "resource.not-found"));
    assert_eq!(rejection(&odd), (404, "resource.not-found"));
}

#[test_on(sqlite, postgres)]
async fn prefers_icon_from_operator_folder(app: TestApp) {
    let own = media::parse("icon", WEBP).unwrap();
    app.state.media.put("icons/ghana.png", &own).await.unwrap();
    let without_region = app.fetch("/media/ghana.png").await;
    app.create_region().await;

    let icon = app.fetch("/media/ghana.png").await;

    assert_eq!(without_region.status().as_u16(), 404);
    assert_eq!(header(icon.headers(), "content-type"), "image/webp");
    assert_eq!(icon.bytes().await.unwrap(), own.bytes);
}

#[test_on(sqlite, postgres)]
async fn serves_event_images_unchanged(app: TestApp) {
    let (ama, event) = app.sign_up_host("ama", &[]).await;

    let banner = format!("data:image/jpeg;base64,{PNG}");
    let changed = app.put(&ama.key, &event.uri, json!({ "banner": banner, "thumbnail": WEBP })).await;

    for (kind, media_type, sent) in [("banner", "image/png", PNG), ("thumbnail", "image/webp", WEBP)] {
        let path = format!("/media/{kind}/{}", event.id);
        assert_eq!(changed.body[kind], format!("https://boxoffice.example{path}"));
        let image = app.fetch(&path).await;
        assert_eq!((image.status().as_u16(), header(image.headers(), "content-type")), (200, media_type));
        assert_eq!(header(image.headers(), "cache-control"), "public, max-age=300");
        assert_eq!(header(image.headers(), "x-content-type-options"), "nosniff");
        assert_eq!(image.bytes().await.unwrap(), BASE64_STANDARD.decode(sent).unwrap());
    }
}

#[test_on(sqlite, postgres)]
async fn private_image_is_not_publicly_cacheable(app: TestApp) {
    let (ama, event) = app.sign_up_host_with_draft("ama").await;
    let changed = app.put(&ama.key, &event.uri, json!({ "banner": PNG })).await;
    let path = changed.body["banner"].as_str().unwrap().strip_prefix("https://boxoffice.example").unwrap();

    let image = app.fetch(path).await;
    let again = fetch_unless(&app, path, header(image.headers(), "etag")).await;

    assert!(path.contains("?secret="), "{path}");
    for (response, status) in [(&image, 200), (&again, 304)] {
        assert_eq!((response.status().as_u16(), header(response.headers(), "cache-control")), (status, "private, max-age=300"));
    }
}

#[test_on(sqlite, postgres)]
async fn known_image_is_not_modified(app: TestApp) {
    app.create_region().await;
    let tag = header(app.fetch("/media/ghana.png").await.headers(), "etag").to_owned();

    for known in [tag.clone(), format!("\"other\", W/{tag}"), "*".to_owned()] {
        let again = fetch_unless(&app, "/media/ghana.png", &known).await;

        assert_eq!((again.status().as_u16(), header(again.headers(), "etag")), (304, tag.as_str()), "{known}");
        assert_eq!(header(again.headers(), "cache-control"), "public, max-age=86400");
        assert!(again.bytes().await.unwrap().is_empty());
    }
    assert_eq!(fetch_unless(&app, "/media/ghana.png", "\"other\"").await.status().as_u16(), 200);
}

#[test_on(sqlite, postgres)]
async fn replaced_image_has_new_etag(app: TestApp) {
    let (ama, event) = app.sign_up_host("ama", &[]).await;
    let path = format!("/media/banner/{}", event.id);
    app.put(&ama.key, &event.uri, json!({ "banner": PNG })).await;
    let before = header(app.fetch(&path).await.headers(), "etag").to_owned();

    app.put(&ama.key, &event.uri, json!({ "banner": WEBP })).await;

    let after = fetch_unless(&app, &path, &before).await;
    let again = fetch_unless(&app, &path, header(after.headers(), "etag")).await;
    assert_eq!((after.status().as_u16(), header(after.headers(), "content-type")), (200, "image/webp"));
    assert_ne!(header(after.headers(), "etag"), before);
    assert_eq!((again.status().as_u16(), header(again.headers(), "etag")), (304, header(after.headers(), "etag")));
}

#[test_on(sqlite, postgres)]
async fn removed_image_is_replaced_by_placeholder(app: TestApp) {
    let (ama, event) = app.sign_up_host("ama", &[]).await;
    app.put(&ama.key, &event.uri, json!({ "banner": WEBP, "thumbnail": WEBP })).await;

    let changed = app.put(&ama.key, &event.uri, json!({ "banner": "" })).await;

    assert_eq!(changed.body["banner"], format!("https://boxoffice.example/media/banner/{}", event.id));
    let media_type = async |kind| {
        let image = app.fetch(&format!("/media/{kind}/{}", event.id)).await;
        (image.status().as_u16(), header(image.headers(), "content-type").to_owned())
    };
    assert_eq!(media_type("banner").await, (200, "image/png".to_owned()));
    assert_eq!(media_type("thumbnail").await, (200, "image/webp".to_owned()));
    ama.client.event_delete().event(event.id.as_str()).send().await.unwrap();
    assert_eq!((media_type("banner").await.0, media_type("thumbnail").await.0), (404, 404));
}

/// Returns the size of a PNG and the number of its white pixels, which are its text.
async fn size_and_ink(response: reqwest::Response) -> (u32, u32, usize) {
    assert_eq!((response.status().as_u16(), header(response.headers(), "content-type")), (200, "image/png"));
    let image = image::load_from_memory(&response.bytes().await.unwrap()).unwrap().into_rgb8();
    (image.width(), image.height(), image.pixels().filter(|pixel| pixel.0 == [0xFF; 3]).count())
}

#[test_on(sqlite, postgres)]
async fn placeholder_has_title_of_public_event_only(app: TestApp) {
    let (ama, event) = app.sign_up_host_with_draft("ama").await;
    let [banner, thumbnail] = ["banner", "thumbnail"].map(|kind| format!("/media/{kind}/{}", event.id));

    let draft_url = app.read(&event.uri).await["banner"].clone();
    let draft_banner = size_and_ink(app.fetch(&banner).await).await;
    let draft_thumbnail = size_and_ink(app.fetch(&thumbnail).await).await;
    app.list_event(&event).await;
    let listed = app.fetch(&banner).await;
    let tag = header(listed.headers(), "etag").to_owned();
    assert_eq!(header(listed.headers(), "cache-control"), "public, max-age=300");
    let (width, height, ink) = size_and_ink(listed).await;
    let again = fetch_unless(&app, &banner, &tag).await;
    app.put(&ama.key, &event.uri, json!({ "title": "Łódź Éclair Ελλάδα Київ" })).await;
    let renamed = fetch_unless(&app, &banner, &tag).await;
    app.put(&ama.key, &event.uri, json!({ "title": "東京" })).await;
    let (.., replaced_letters) = size_and_ink(app.fetch(&banner).await).await;

    assert_eq!(draft_url, format!("https://boxoffice.example{banner}"), "no secret");
    assert_eq!((draft_banner, draft_thumbnail), ((960, 320, 0), (320, 320, 0)));
    assert_eq!((width, height), (960, 320));
    assert!(ink > 500 && replaced_letters > 100, "{ink}, {replaced_letters}");
    assert_eq!((again.status().as_u16(), renamed.status().as_u16()), (304, 200));
    assert_ne!(header(renamed.headers(), "etag"), tag);
}

#[test_on(sqlite, postgres)]
async fn generated_images_are_drawn_once(app: TestApp) {
    let (_, event) = app.sign_up_host("ama", &[]).await;
    let path = format!("/media/banner/{}", event.id);

    let images = futures::future::join_all((0..20).map(|_| app.fetch(&path))).await;
    let icons = futures::future::join_all((0..20).map(|_| app.fetch("/media/ghana.png"))).await;

    for images in [images, icons] {
        let tag = header(images[0].headers(), "etag");
        assert!(images.iter().all(|image| image.status().as_u16() == 200 && header(image.headers(), "etag") == tag));
    }
    assert_eq!(app.state.generated_images.drawn(), 2);
}

#[test_on(sqlite, postgres)]
async fn limits_requests_for_images_per_address(app: TestApp) {
    let (_, event) = app.sign_up_host("ama", &[]).await;
    let mut settings = app.state.settings.clone();
    settings.limits.keys = 1;
    let server = app.start_second_server(settings).await;
    let get = async |path: &str| app.request("GET", path).anonymous().at(server.address).send().await;

    reach_limit((10, MINUTE), |response| response.status == 200, async |_| vec![get("/media/ghana.png").await]).await;
    for path in ["/media/ghana.png".to_owned(), format!("/media/banner/{}", event.id), "/ticket-keys".to_owned()] {
        let rejected = get(&path).await;
        assert_eq!(rejection(&rejected), (429, "requests.too-many"), "{path}");
        assert!(!rejected.header("retry-after").is_empty());
    }
    server.stop().await;
}

#[test_on(sqlite, postgres)]
async fn requests_beyond_the_limit_of_a_hung_store_are_rejected(app: TestApp) {
    app.create_region().await;
    let buffer = LogBuffer::default();
    let settings = Settings { image_accesses: 1, ..app.state.settings.clone() };
    let icons = settings.media.folder().unwrap().join("icons");
    let server = app.start_second_server_on(settings, buffer.logger(), ANY_PORT).await;
    // A named pipe can't be opened until another program writes to it.
    let pipe = icons.join("ghana.png");
    fs::create_dir_all(icons).unwrap();
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    // Without the proxy, which would reject what is read from the pipe.
    let icon = || app.request("GET", "/media/ghana.png").at(server.server).anonymous().send();

    let (rejected, waiting) = match select(Box::pin(icon()), Box::pin(icon())).await {
        Either::Left((first, second)) | Either::Right((first, second)) => (first, second),
    };
    let others = app.request("GET", "/regions").at(server.address).send().await;
    fs::OpenOptions::new().write(true).open(&pipe).unwrap();
    waiting.await;
    fs::remove_file(&pipe).unwrap();

    assert_eq!((rejected.status, rejected.header("retry-after")), (503, "1"), "{}", rejected.body);
    assert!(buffer.text().contains("too many requests wait for it"), "{}", buffer.text());
    assert_eq!((others.status, icon().await.status), (200, 200));
}

#[test_on(sqlite, postgres)]
async fn unknown_image_is_not_found(app: TestApp) {
    let (_, event) = app.sign_up_host_with_draft("ama").await;
    // An image without a committed event, as left by a failed transaction.
    let orphan = media::parse("banner", PNG).unwrap();
    app.state.media.put("banner/17637000000001", &orphan).await.unwrap();
    app.state.media.put(&format!("thumbnail/{}", event.id), &orphan).await.unwrap();

    let placeholder = app.fetch(&format!("/media/thumbnail/{}", event.id)).await;
    assert_ne!(placeholder.bytes().await.unwrap(), orphan.bytes);

    for path in [format!("/media/artwork/{}", event.id), "/media/banner/17637000000001".to_owned()] {
        let response = app.request("GET", &path).anonymous().send().await;
        assert_eq!(rejection(&response), (404, "resource.not-found"), "{path}");
    }
    let odd = app.request("GET", "/media/poster/17").anonymous().send().await;
    assert_eq!(rejection(&odd), (404, "resource.not-found"));
}

#[test_on(sqlite, postgres)]
async fn rejects_invalid_images(app: TestApp) {
    let (ama, event) = app.sign_up_host_with_draft("ama").await;

    let text = app.put(&ama.key, &event.uri, json!({ "banner": "aGVsbG8=", "thumbnail": "*" })).await;
    let cut = app.put(&ama.key, &event.uri, json!({ "thumbnail": &PNG[..60] })).await;

    assert_eq!(text.invalid_arguments(), ["banner", "thumbnail"]);
    assert_eq!(text.body["fields"][0]["detail"], "is no PNG, JPEG or WebP image");
    assert_eq!(cut.body["fields"][0]["detail"], "is a PNG image that is damaged or incomplete");
}

#[test]
fn icon_names_are_lower_case_words() {
    for (country, expected) in [
        ("Germany", "germany.png"),
        ("United States of America", "united_states_of_america.png"),
        ("Côte d'Ivoire", "cote_d_ivoire.png"),
        ("  Korea (the Republic of) ", "korea_the_republic_of.png"),
        ("Åland", "aland.png"),
        ("Türkiye", "turkiye.png"),
        ("Færøerne", "faeroerne.png"),
        ("Guinea-Bissau", "guinea_bissau.png"),
    ] {
        assert_eq!(icon_name(country), expected);
    }
    for odd in ["", "日本", "../..", "Ελλάδα", "\0", "K₂", "e\u{301}"] {
        let stem = icon_name(odd).strip_suffix(".png").unwrap().to_owned();
        let is_plain = |c: char| matches!(c, 'a'..='z' | '0'..='9' | '_');
        assert!(!stem.is_empty() && stem.chars().all(is_plain), "{odd:?} became {stem}");
    }
    assert_ne!(icon_name("日本"), icon_name("中国"));
}

#[test]
fn initials_skip_small_words() {
    for (country, expected) in [
        ("Germany", "G"),
        ("Côte d'Ivoire", "CI"),
        ("Isle of Man", "IM"),
        ("United States of America", "US"),
        ("E\u{301}thiopie", "É"),
        ("Ελλάδα", "Ε"),
        ("the", "T"),
        ("", ""),
    ] {
        assert_eq!(initials(country), expected);
    }
}
