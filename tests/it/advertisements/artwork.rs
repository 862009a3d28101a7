//! An advertisement's artwork: its zones tell its dimensions, and it is an image by its content.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use super::{advertisement, change, files, make, png, read, stored_artwork, uri};
use crate::on_both_databases;
use crate::support::{Answer, World};

on_both_databases![
    artwork_fits_every_zone_that_it_is_booked_in,
    artwork_and_zones_are_checked_as_they_will_be,
    artwork_is_told_by_its_content,
    artwork_is_replaced_at_once,
    artwork_is_not_replaced_by_a_change_that_is_refused,
    large_artwork_is_taken,
];

/// A JPEG of these dimensions, whose pixels are another one's.
fn jpeg(width: u16, height: u16) -> Vec<u8> {
    const PIXEL: &str = "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAP//////////////////////////////////////////////////////////////////////////////////////wAALCAABAAEBAREA/8QAFAABAAAAAAAAAAAAAAAAAAAAA//EABQQAQAAAAAAAAAAAAAAAAAAAAD/2gAIAQEAAD8AN//Z";
    let mut jpeg = STANDARD.decode(PIXEL).unwrap();
    let frame = jpeg.windows(4).position(|bytes| bytes == [0xFF, 0xC0, 0x00, 0x0B]).unwrap();
    jpeg[frame + 5..frame + 7].copy_from_slice(&height.to_be_bytes());
    jpeg[frame + 7..frame + 9].copy_from_slice(&width.to_be_bytes());
    jpeg
}

/// A lossy WebP likewise.
fn webp(width: u16, height: u16) -> Vec<u8> {
    const PIXEL: &str = "UklGRiIAAABXRUJQVlA4IBYAAAAwAQCdASoBAAEADsD+JaQAA3AAAAAA";
    let mut webp = STANDARD.decode(PIXEL).unwrap();
    webp[26..28].copy_from_slice(&width.to_le_bytes());
    webp[28..30].copy_from_slice(&height.to_le_bytes());
    webp
}

fn detail(answer: &Answer) -> &str {
    answer.body["fields"][0]["detail"].as_str().unwrap_or_else(|| panic!("{answer:?}"))
}

async fn artwork_fits_every_zone_that_it_is_booked_in(world: World) {
    let kofi = world.person("kofi").await;
    let event = world.draft(&world.host_of(&kofi).await).await;
    let (first, second) = (world.zone(300, 250).await, world.zone(300, 250).await);
    let (wide, turned) = (world.zone(728, 90).await, world.zone(250, 300).await);

    let same = make(&world, &kofi.key, &advertisement("Same", &event, &[&first, &second])).await;
    let others = make(&world, &kofi.key, &advertisement("Others", &event, &[&first, &wide, &turned])).await;
    let mut larger = advertisement("Larger", &event, &[&first, &second]);
    larger["artwork"] = png(600, 500).into();
    let larger = make(&world, &kofi.key, &larger).await;

    assert_eq!((same.status, same.body["zones"].as_array().unwrap().len()), (201, 2));
    assert_eq!((others.status, others.complaints()), (400, vec!["artwork".to_owned()]));
    let number = |zone: &str| zone.rsplit('/').next().unwrap().to_owned();
    let expected = format!(
        "is 300 × 250 pixels, but zone {} (Sidebar) takes 728 × 90, zone {} (Sidebar) takes 250 × 300",
        number(&wide),
        number(&turned),
    );
    assert_eq!(detail(&others), expected);
    assert_eq!((larger.status, larger.complaints()), (400, vec!["artwork".to_owned()]));
    assert!(detail(&larger).contains(&number(&first)) && detail(&larger).contains(&number(&second)));
    assert_eq!(files(&world), 1);
}

async fn artwork_and_zones_are_checked_as_they_will_be(world: World) {
    let kofi = world.person("kofi").await;
    let event = world.draft(&world.host_of(&kofi).await).await;
    let (small, second, wide) = (world.zone(300, 250).await, world.zone(300, 250).await, world.zone(728, 90).await);
    let made = make(&world, &kofi.key, &advertisement("Jazz", &event, &[&small])).await;
    let uri = uri(&made);

    for (body, complaint) in [
        (json!({ "zones": [wide] }), "zones"),
        (json!({ "zones": [small, wide] }), "zones"),
        (json!({ "zones": [small, "nowhere"] }), "zones"),
        (json!({ "artwork": png(728, 90) }), "artwork"),
        (json!({ "artwork": png(728, 90), "zones": [wide, small] }), "artwork"),
    ] {
        let refused = change(&world, &kofi.key, &uri, body.clone()).await;
        assert_eq!((refused.status, refused.complaints()), (400, vec![complaint.to_owned()]), "{body}");
    }
    assert_eq!(read(&world, &kofi.key, &uri).await.body, made.body);
    assert_eq!(files(&world), 1);

    let added = change(&world, &kofi.key, &uri, json!({ "zones": [second, small] })).await;
    let repainted = change(&world, &kofi.key, &uri, json!({ "artwork": png(300, 250) })).await;
    let both = change(&world, &kofi.key, &uri, json!({ "artwork": png(728, 90), "zones": [wide] })).await;
    let zones = |answer: &Answer| answer.body["zones"].as_array().unwrap().clone();
    assert_eq!(zones(&added), [world.read(&second).await, world.read(&small).await], "in the order given");
    assert_eq!((repainted.status, zones(&repainted)), (200, zones(&added)), "the zones stay");
    assert_eq!((both.status, zones(&both)), (200, vec![world.read(&wide).await]));
    assert_eq!(world.request("DELETE", &small).key(&world.staff.key).send().await.status, 204, "it is free again");
}

async fn artwork_is_told_by_its_content(world: World) {
    let kofi = world.person("kofi").await;
    let event = world.draft(&world.host_of(&kofi).await).await;
    let zone = world.zone(320, 50).await;
    let png = png(320, 50);
    let (jpeg, webp) = (STANDARD.encode(jpeg(320, 50)), STANDARD.encode(webp(320, 50)));

    for (name, artwork, media_type) in [
        ("png", png.clone(), "image/png"),
        ("png called jpeg", format!("data:image/jpeg;base64,{png}"), "image/png"),
        ("jpeg", format!("data:image/png;base64,{jpeg}"), "image/jpeg"),
        ("webp", webp, "image/webp"),
    ] {
        let mut body = advertisement(name, &event, &[&zone]);
        body["artwork"] = artwork.into();
        let made = make(&world, &kofi.key, &body).await;
        assert_eq!(made.status, 201, "{name}: {}", made.body);
        assert_eq!(world.image("artwork", &uri(&made)).await.header("content-type"), media_type, "{name}");
    }
    for (artwork, expected) in
        [("aGVsbG8=", "is no PNG, JPEG or WebP image"), (&jpeg[..80], "is a JPEG image that is damaged or incomplete")]
    {
        let mut body = advertisement("wrong", &event, &[&zone]);
        body["artwork"] = artwork.into();
        let refused = make(&world, &kofi.key, &body).await;
        assert_eq!((refused.status, refused.complaints(), detail(&refused)), (400, vec!["artwork".to_owned()], expected));
    }
}

async fn artwork_is_replaced_at_once(world: World) {
    let kofi = world.person("kofi").await;
    let event = world.listed_event(&world.host_of(&kofi).await, &[]).await;
    let zone = world.zone(300, 250).await;
    let made = make(&world, &kofi.key, &advertisement("Jazz", &event, &[&zone])).await;
    let uri = uri(&made);
    super::publish(&world, &uri).await;
    let shown = world.read(&uri).await;
    let (before, stored) = (world.image("artwork", &uri).await, stored_artwork(&world).await);

    let changed = change(&world, &kofi.key, &uri, json!({ "artwork": STANDARD.encode(webp(300, 250)) })).await;

    let after = world.image("artwork", &uri).await;
    assert_eq!((changed.status, &changed.body["artwork"]), (200, &shown["artwork"]), "its address stays");
    assert_eq!((before.header("content-type"), after.header("content-type")), ("image/png", "image/webp"));
    assert_ne!(before.header("etag"), after.header("etag"));
    assert_ne!(stored_artwork(&world).await, stored);
    assert_eq!(files(&world), 1, "the one before is gone");
}

async fn artwork_is_not_replaced_by_a_change_that_is_refused(world: World) {
    let (kofi, ama) = (world.person("kofi").await, world.person("ama").await);
    let event = world.listed_event(&world.host_of(&kofi).await, &[]).await;
    let zone = world.zone(300, 250).await;
    let uri = uri(&make(&world, &kofi.key, &advertisement("Jazz", &event, &[&zone])).await);
    let webp = STANDARD.encode(webp(300, 250));
    let slots = json!([{ "start": "2998-01-01 00:00", "end": "2997-01-01 00:00" }]);

    let stranger = change(&world, &ama.key, &uri, json!({ "artwork": webp })).await;
    let wrong = change(&world, &kofi.key, &uri, json!({ "artwork": webp, "event": "17637000000001", "schedule": slots })).await;
    let blank = change(&world, &kofi.key, &uri, json!({ "artwork": "" })).await;
    let nothing = change(&world, &kofi.key, "/advertisements/17637000000001", json!({ "artwork": webp })).await;
    super::publish(&world, &uri).await;
    super::cancel(&world, &kofi.key, &uri).await;
    let cancelled = change(&world, &kofi.key, &uri, json!({ "artwork": webp })).await;

    assert_eq!(super::refusal(&stranger), (403, "resource.not-yours"));
    assert_eq!(wrong.complaints(), ["event", "schedule"]);
    assert_eq!(blank.complaints(), ["-artwork"]);
    assert_eq!(super::refusal(&nothing), (404, "resource.not-found"));
    assert_eq!(super::refusal(&cancelled), (409, "advertisement.cancelled"));
    assert_eq!((world.image("artwork", &uri).await.header("content-type"), files(&world)), ("image/png", 1));
}

async fn large_artwork_is_taken(world: World) {
    let kofi = world.person("kofi").await;
    let event = world.draft(&world.host_of(&kofi).await).await;
    let zone = world.zone(300, 250).await;
    // A PNG may carry any text.
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
    let mut body = advertisement("Jazz", &event, &[&zone]);
    body["artwork"] = png_with(200_000).into();

    let made = make(&world, &kofi.key, &body).await;
    let larger = change(&world, &kofi.key, &uri(&made), json!({ "artwork": png_with(5 * 1024 * 1024) })).await;

    assert_eq!(made.status, 201, "{}", made.body);
    assert_eq!((larger.status, larger.complaints(), detail(&larger)), (400, vec!["artwork".to_owned()], "is larger than 5 MiB"));
}
