//! Artwork of advertisements: its size must match the zones, its type is detected by its content.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use image::ImageFormat;
use serde_json::json;

use super::{advertisement_body, create, create_draft, files, image, png, stored_artwork};
use crate::support::{Response, TestApp, id_of, test_on};

/// Returns a WebP of this size in base64.
fn webp(width: u32, height: u32) -> String {
    image(width, height, ImageFormat::WebP)
}

fn detail(response: &Response) -> &str {
    response.body["fields"][0]["detail"].as_str().unwrap_or_else(|| panic!("{response:?}"))
}

#[test_on(sqlite, postgres)]
async fn artwork_must_fit_every_booked_zone(app: TestApp) {
    let (kofi, event) = app.sign_up_host_with_draft("kofi").await;
    let (first, second) = (app.create_zone(300, 250).await, app.create_zone(300, 250).await);
    let (wide, turned) = (app.create_zone(728, 90).await, app.create_zone(250, 300).await);

    let same = create(&app, &kofi.key, &advertisement_body("Same", &event, &[&first, &second])).await;
    let others = create(&app, &kofi.key, &advertisement_body("Others", &event, &[&first, &wide, &turned])).await;
    let mut larger = advertisement_body("Larger", &event, &[&first, &second]);
    larger["artwork"] = png(600, 500).into();
    let larger = create(&app, &kofi.key, &larger).await;

    assert_eq!((same.status, same.body["zones"].as_array().unwrap().len()), (201, 2));
    assert_eq!(others.invalid_arguments(), ["artwork"]);
    let number = |zone: &str| id_of(zone).to_owned();
    let expected = format!(
        "is 300 × 250 pixels, but zone {} (Sidebar) takes 728 × 90, zone {} (Sidebar) takes 250 × 300",
        number(&wide),
        number(&turned),
    );
    assert_eq!(detail(&others), expected);
    assert_eq!(larger.invalid_arguments(), ["artwork"]);
    assert!(detail(&larger).contains(&number(&first)) && detail(&larger).contains(&number(&second)));
    assert_eq!(files(&app), 1);
}

/// Returns a JPEG of this size in base64, with this orientation in its Exif data.
fn photo(width: u32, height: u32, orientation: u8) -> String {
    let mut file = STANDARD.decode(image(width, height, ImageFormat::Jpeg)).unwrap();
    let exif = [
        b"\xFF\xE1\0\x22Exif\0\0".as_slice(),
        b"II*\0\x08\0\0\0\x01\0",
        &[0x12, 1, 3, 0, 1, 0, 0, 0, orientation, 0, 0, 0],
        b"\0\0\0\0",
    ];
    file.splice(2..2, exif.concat());
    STANDARD.encode(file)
}

#[test_on(sqlite, postgres)]
async fn turned_photo_must_fit_as_browsers_show_it(app: TestApp) {
    let (kofi, event) = app.sign_up_host_with_draft("kofi").await;
    let zone = app.create_zone(300, 250).await;

    for (orientation, is_turned) in [(1, false), (3, false), (4, false), (5, true), (6, true), (7, true), (8, true)] {
        for (width, height) in [(300, 250), (250, 300)] {
            let mut body = advertisement_body(&format!("Jazz {orientation} {width}"), &event, &[&zone]);
            body["artwork"] = photo(width, height, orientation).into();
            let created = create(&app, &kofi.key, &body).await;
            let expected = if (width == 300) == is_turned { 400 } else { 201 };
            assert_eq!(created.status, expected, "{width} × {height} {orientation}: {}", created.body);
        }
    }
}

#[test_on(sqlite, postgres)]
async fn validates_artwork_and_zones_after_update(app: TestApp) {
    let (kofi, event) = app.sign_up_host_with_draft("kofi").await;
    let (small, second, wide) =
        (app.create_zone(300, 250).await, app.create_zone(300, 250).await, app.create_zone(728, 90).await);
    let created = create(&app, &kofi.key, &advertisement_body("Jazz", &event, &[&small])).await;
    let uri = created.uri().to_owned();

    for (body, complaint) in [
        (json!({ "zones": [wide] }), "zones"),
        (json!({ "zones": [small, wide] }), "zones"),
        (json!({ "zones": [small, "nowhere"] }), "zones"),
        (json!({ "artwork": png(728, 90) }), "artwork"),
        (json!({ "artwork": png(728, 90), "zones": [wide, small] }), "artwork"),
    ] {
        let rejected = app.put(&kofi.key, &uri, body.clone()).await;
        assert_eq!(rejected.invalid_arguments(), [complaint], "{body}");
    }
    assert_eq!(app.get(&kofi.key, &uri).await.body, created.body);
    assert_eq!(files(&app), 1);

    let added = app.put(&kofi.key, &uri, json!({ "zones": [second, small] })).await;
    let repainted = app.put(&kofi.key, &uri, json!({ "artwork": png(300, 250) })).await;
    let both = app.put(&kofi.key, &uri, json!({ "artwork": png(728, 90), "zones": [wide] })).await;
    let zones = |response: &Response| response.body["zones"].as_array().unwrap().clone();
    assert_eq!(zones(&added), [app.read(&second).await, app.read(&small).await], "in the order given");
    assert_eq!((repainted.status, zones(&repainted)), (200, zones(&added)), "the zones stay");
    assert_eq!((both.status, zones(&both)), (200, vec![app.read(&wide).await]));
    assert_eq!(app.delete(&app.staff.key, &small).await.status, 204, "it is free again");
}

#[test_on(sqlite, postgres)]
async fn detects_artwork_type_by_content(app: TestApp) {
    let (kofi, event) = app.sign_up_host_with_draft("kofi").await;
    let zone = app.create_zone(320, 50).await;
    let png = png(320, 50);
    let (jpeg, webp) = (image(320, 50, ImageFormat::Jpeg), webp(320, 50));

    for (name, artwork, media_type) in [
        ("png", png.clone(), "image/png"),
        ("png called jpeg", format!("data:image/jpeg;base64,{png}"), "image/png"),
        ("jpeg", format!("data:image/png;base64,{jpeg}"), "image/jpeg"),
        ("webp", webp, "image/webp"),
    ] {
        let mut body = advertisement_body(name, &event, &[&zone]);
        body["artwork"] = artwork.into();
        let created = create(&app, &kofi.key, &body).await;
        assert_eq!(created.status, 201, "{name}: {}", created.body);
        assert_eq!(app.fetch_image("artwork", created.uri()).await.header("content-type"), media_type, "{name}");
    }
    for (artwork, expected) in
        [("aGVsbG8=", "is no PNG, JPEG or WebP image"), (&jpeg[..80], "is a JPEG image that is damaged or incomplete")]
    {
        let mut body = advertisement_body("wrong", &event, &[&zone]);
        body["artwork"] = artwork.into();
        let rejected = create(&app, &kofi.key, &body).await;
        assert_eq!(
            (rejected.status, rejected.invalid_arguments(), detail(&rejected)),
            (400, vec!["artwork".to_owned()], expected)
        );
    }
}

#[test_on(sqlite, postgres)]
async fn replaces_artwork_atomically(app: TestApp) {
    let (kofi, event) = app.sign_up_host("kofi", &[]).await;
    let zone = app.create_zone(300, 250).await;
    let created = create(&app, &kofi.key, &advertisement_body("Jazz", &event, &[&zone])).await;
    let uri = created.uri().to_owned();
    super::publish(&app, &uri).await;
    let shown = app.read(&uri).await;
    let (before, stored) = (app.fetch_image("artwork", &uri).await, stored_artwork(&app).await);

    let changed = app.put(&kofi.key, &uri, json!({ "artwork": webp(300, 250) })).await;

    let after = app.fetch_image("artwork", &uri).await;
    assert_eq!((changed.status, &changed.body["artwork"]), (200, &shown["artwork"]), "its address stays");
    assert_eq!((before.header("content-type"), after.header("content-type")), ("image/png", "image/webp"));
    assert_ne!(before.header("etag"), after.header("etag"));
    assert_ne!(stored_artwork(&app).await, stored);
    assert_eq!(files(&app), 1, "the one before is gone");
}

#[test_on(sqlite, postgres)]
async fn rejected_update_keeps_artwork(app: TestApp) {
    let (kofi, ama, event) = app.create_sale(&[]).await;
    let zone = app.create_zone(300, 250).await;
    let uri = create_draft(&app, &kofi, "Jazz", &event, &[&zone]).await;
    let webp = webp(300, 250);
    let slots = json!([{ "start": "2998-01-01 00:00", "end": "2997-01-01 00:00" }]);

    let stranger = app.put(&ama.key, &uri, json!({ "artwork": webp })).await;
    let wrong = app.put(&kofi.key, &uri, json!({ "artwork": webp, "event": "17637000000001", "schedule": slots })).await;
    let blank = app.put(&kofi.key, &uri, json!({ "artwork": "" })).await;
    super::publish(&app, &uri).await;
    super::cancel(&app, &kofi.key, &uri).await;
    let cancelled = app.put(&kofi.key, &uri, json!({ "artwork": webp })).await;

    assert_eq!(super::rejection(&stranger), (403, "resource.not-yours"));
    assert_eq!(wrong.invalid_arguments(), ["event", "schedule"]);
    assert_eq!(blank.invalid_arguments(), ["-artwork"]);
    assert_eq!(super::rejection(&cancelled), (409, "advertisement.cancelled"));
    assert_eq!((app.fetch_image("artwork", &uri).await.header("content-type"), files(&app)), ("image/png", 1));
}

#[test_on(sqlite, postgres)]
async fn accepts_large_artwork(app: TestApp) {
    let (kofi, event) = app.sign_up_host_with_draft("kofi").await;
    let zone = app.create_zone(300, 250).await;
    // A PNG may contain any text.
    let png_with = |bytes: u32| {
        let mut png = STANDARD.decode(png(300, 250)).unwrap();
        let end = png.split_off(png.len() - 12);
        let text = [b"teXt".as_slice(), &vec![0; bytes as usize]].concat();
        png.extend(bytes.to_be_bytes());
        png.extend(&text);
        png.extend(crc32fast::hash(&text).to_be_bytes());
        png.extend(end);
        STANDARD.encode(png)
    };
    let mut body = advertisement_body("Jazz", &event, &[&zone]);
    body["artwork"] = png_with(200_000).into();

    let created = create(&app, &kofi.key, &body).await;
    let larger = app.put(&kofi.key, created.uri(), json!({ "artwork": png_with(5 * 1024 * 1024) })).await;

    assert_eq!(created.status, 201, "{}", created.body);
    assert_eq!(
        (larger.status, larger.invalid_arguments(), detail(&larger)),
        (400, vec!["artwork".to_owned()], "is larger than 5 MiB")
    );
}
