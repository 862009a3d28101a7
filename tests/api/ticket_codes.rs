//! Codes of tickets, their QR codes, and the public keys with which a device checks them.

use aws_lc_rs::signature::{ED25519, UnparsedPublicKey};
use boxoffice::features::sales::tickets::serial_of_bytes;
use boxoffice::kernel::settings::Settings;
use data_encoding::{BASE32_NOPAD, BASE64URL_NOPAD};
use serde_json::{Value, json};

use crate::support::{Response, TestApp, User, id_of, pdf, rejection, section, test_on};
use crate::tickets::set_status;
use crate::tokens::{global_token, redeemer_key};

/// Returns the URI of the newest ticket of a user.
async fn ticket(app: &TestApp, user: &User) -> String {
    app.wallet(user).await.last().unwrap()["self"].as_str().unwrap().to_owned()
}

/// Returns the code of a ticket.
async fn code(app: &TestApp, user: &User, ticket: &str) -> String {
    let response = app.get(&user.key, &format!("{ticket}/code")).await;
    assert_eq!((response.status, &response.body["ticket"]), (200, &json!(ticket)), "{response:?}");
    response.body["code"].as_str().unwrap().to_owned()
}

/// Returns the reason for which the first ticket of a response was refused.
fn reason(response: &Response) -> &str {
    response.body["refused"][0]["reason"].as_str().unwrap()
}

#[test_on(sqlite, postgres)]
async fn code_admits_like_its_serial(app: TestApp) {
    let (kofi, ama, event) = app.create_sale(&[section("VIP", 0.0, 10)]).await;
    let other = app.create_listed_event(&event.host, &[section("VIP", 0.0, 10)]).await;
    let first = ama.order_free_tickets(&event.sections[0], 1).await.remove(0);
    let first_code = code(&app, &ama, &ticket(&app, &ama).await).await;
    let second = ama.order_free_tickets(&event.sections[0], 1).await.remove(0);
    let second_code = code(&app, &ama, &ticket(&app, &ama).await).await;
    let key = redeemer_key(&app, &global_token(&event).await).await;

    assert_eq!(reason(&app.admit(&kofi.key, &other, [&first_code]).await), "unknown", "it is of another event");
    let admitted = app.admit(&key, &event, [&first_code, &first]).await;
    assert_eq!((admitted.status, admitted.body.as_array().unwrap().len()), (201, 1), "the same ticket, once");
    assert_eq!(admitted.body[0]["ticket"], first);
    let again = app.admit(&key, &event, [&first_code]).await;
    assert_eq!((reason(&again), &again.body["refused"][0]["serial"]), ("redeemed", &json!(first_code)));
    let lower = app.admit(&key, &event, [&format!(" {} ", second_code.to_lowercase())]).await;
    assert_eq!((lower.status, &lower.body[0]["ticket"]), (201, &json!(second)), "{lower:?}");
}

#[test_on(sqlite, postgres)]
async fn device_checks_code_without_server(app: TestApp) {
    let (_, ama, event) = app.create_sale(&[section("VIP", 0.0, 10)]).await;
    let serial = ama.order_free_tickets(&event.sections[0], 1).await.remove(0);
    let code = code(&app, &ama, &ticket(&app, &ama).await).await;
    let keys = app.request("GET", "/ticket-keys").anonymous().send().await;

    // As the contract describes it.
    let bytes = BASE32_NOPAD.decode(code.as_bytes()).unwrap();
    let (content, signature) = bytes.split_at(29);
    let kid: String = content[1..5].iter().map(|byte| format!("{byte:02x}")).collect();
    let key = keys.body["keys"].as_array().unwrap().iter().find(|key| key["kid"] == kid).unwrap();
    let public = BASE64URL_NOPAD.decode(key["x"].as_str().unwrap().as_bytes()).unwrap();
    UnparsedPublicKey::new(&ED25519, public).verify(&[b"boxoffice ticket", content].concat(), signature).unwrap();
    let number =
        |range: std::ops::Range<usize>| content[range].iter().fold(0_u128, |number, byte| number << 8 | u128::from(*byte));
    assert_eq!((number(0..1), number(5..11).to_string()), (1, event.id.clone()));
    assert_eq!(number(11..17).to_string(), id_of(&event.sections[0]));
    assert_eq!(number(17..29), u128::from_str_radix(&serial.replace('-', ""), 36).unwrap());
}

#[test_on(sqlite, postgres)]
async fn altered_code_admits_nobody(app: TestApp) {
    let (kofi, ama, event) = app.create_sale(&[section("VIP", 0.0, 10)]).await;
    ama.order_free_tickets(&event.sections[0], 1).await;
    let code = code(&app, &ama, &ticket(&app, &ama).await).await;
    let bytes = BASE32_NOPAD.decode(code.as_bytes()).unwrap();

    let altered = |index: usize| {
        let mut altered = bytes.clone();
        altered[index] ^= 1;
        BASE32_NOPAD.encode(&altered)
    };

    // The version, the key, the event, the section, the serial number, the signature.
    for index in [0, 1, 6, 12, 20, 28, 29, 92] {
        let response = app.admit(&kofi.key, &event, [&altered(index)]).await;
        assert_eq!((response.status, reason(&response)), (400, "unknown"), "byte {index}");
    }
    for text in [&code[1..], &format!("{code}A"), &"1".repeat(149), &"é".repeat(70)] {
        assert_eq!(reason(&app.admit(&kofi.key, &event, [text]).await), "unknown", "{text}");
    }
    // Two keys that no server has, a signature that is wrong, and the code.
    let admitted = app.admit(&kofi.key, &event, [&altered(1), &altered(2), &altered(92), &code]).await;
    assert_eq!((admitted.status, admitted.body.as_array().unwrap().len()), (201, 1), "{}", admitted.body);
}

#[test_on(sqlite, postgres)]
async fn claimed_ticket_has_another_code(app: TestApp) {
    let (kofi, ama, event) = app.create_sale(&[section("VIP", 0.0, 10)]).await;
    let esi = app.sign_up("esi").await;
    let serials = ama.order_free_tickets(&event.sections[0], 1).await;
    let hers = ticket(&app, &ama).await;
    let before = code(&app, &ama, &hers).await;
    let body = json!({ "recipient": esi.number, "tickets": serials });
    let transfer = app.post(&ama.key, "/transfers", &body).await.body["self"].clone();

    assert_eq!(rejection(&app.get(&ama.key, &format!("{hers}/code")).await), (409, "ticket.not-issued"));
    let claim = app.post_empty(&esi.key, &format!("{}/claims", transfer.as_str().unwrap())).await;
    assert_eq!(claim.status, 200, "{claim:?}");

    let after = code(&app, &esi, &ticket(&app, &esi).await).await;
    assert_eq!(rejection(&app.get(&ama.key, &format!("{hers}/code")).await), (404, "resource.not-found"));
    assert_ne!(before, after);
    assert_eq!(reason(&app.admit(&kofi.key, &event, [&before]).await), "void");
    assert_eq!(app.admit(&kofi.key, &event, [&after]).await.status, 201);
}

#[test_on(sqlite, postgres)]
async fn only_issued_ticket_has_code(app: TestApp) {
    let (kofi, ama, event) = app.create_sale(&[section("VIP", 0.0, 10)]).await;
    let serial = ama.order_free_tickets(&event.sections[0], 1).await.remove(0);
    let uri = ticket(&app, &ama).await;
    assert_eq!(code(&app, &ama, &uri).await, code(&app, &kofi, &uri).await, "the host can print it");

    for status in ["Pending", "Redeemed", "Void"] {
        set_status(&app, &serial, status).await;
        for path in ["code", "code/png", "code/svg"] {
            let response = app.get(&ama.key, &format!("{uri}/{path}")).await;
            assert_eq!(rejection(&response), (409, "ticket.not-issued"), "{status}");
            assert_eq!(response.body["error"], "Only a ticket that is Issued has a code.");
        }
    }
}

/// Requests an image of a ticket's code.
async fn image(app: &TestApp, user: &User, ticket: &str, path: &str) -> reqwest::Response {
    app.request("GET", &format!("{ticket}/code/{path}")).key(&user.key).send_raw().await
}

/// Returns the text of a QR code in an image, whose pixels have a brightness.
fn read_qr_code(side: usize, brightness: impl Fn(usize, usize) -> u8) -> String {
    let mut image = rqrr::PreparedImage::prepare_from_greyscale(side, side, brightness);
    let grids = image.detect_grids();
    assert_eq!(grids.len(), 1);
    grids[0].decode().unwrap().1
}

#[test_on(sqlite, postgres)]
async fn images_show_code_in_requested_size(app: TestApp) {
    let (_, ama, event) = app.create_sale(&[section("VIP", 0.0, 10)]).await;
    ama.order_free_tickets(&event.sections[0], 1).await;
    let ticket = ticket(&app, &ama).await;
    let code = code(&app, &ama, &ticket).await;

    for (path, size) in [("png", 392), ("png?size=100", 100), ("png?size=523", 523), ("png?size=1000", 1000)] {
        let response = image(&app, &ama, &ticket, path).await;
        assert_eq!(response.headers()["content-type"], "image/png");
        assert_eq!(response.headers()["cache-control"], "private, max-age=300");
        let bytes = response.bytes().await.unwrap();
        let pixels = image::load_from_memory(&bytes).unwrap().into_luma8();
        assert_eq!(pixels.dimensions(), (size, size));
        assert_eq!(read_qr_code(size as usize, |x, y| pixels.get_pixel(x as u32, y as u32).0[0]), code);
    }
    let svg = image(&app, &ama, &ticket, "svg?size=200").await;
    assert_eq!(svg.headers()["content-type"], "image/svg+xml");
    let svg = svg.text().await.unwrap();
    assert!(svg.starts_with(r#"<svg xmlns="http://www.w3.org/2000/svg" width="200" height="200" viewBox="0 0 49 49""#), "{svg}");
    // Each run of dark modules, such as `M4 4h7v1h-7z`.
    let path = svg.rsplit_once("<path d=\"").unwrap().1.split_once('"').unwrap().0;
    let mut dark = vec![[false; 49]; 49];
    for run in path.split('M').skip(1) {
        let numbers: Vec<usize> = run.split(|c: char| !c.is_ascii_digit()).take(3).map(|text| text.parse().unwrap()).collect();
        (numbers[0]..numbers[0] + numbers[2]).for_each(|column| dark[numbers[1]][column] = true);
    }
    assert_eq!(read_qr_code(49 * 4, |x, y| if dark[y / 4][x / 4] { 0 } else { 255 }), code);
    for size in ["99", "1001", "x"] {
        let response = app.get(&ama.key, &format!("{ticket}/code/png?size={size}")).await;
        assert_eq!(response.invalid_arguments(), ["size"]);
    }
    assert_eq!(app.get(&ama.key, &format!("{ticket}/code/gif")).await.status, 404);
}

#[test_on(sqlite, postgres)]
async fn document_shows_code(app: TestApp) {
    let (_, ama, event) = app.create_sale(&[section("VIP", 10.0, 10)]).await;
    let order = ama.order(&event.sections[0], 1).await.unwrap();
    ama.pay(&order).await.unwrap();
    let code = code(&app, &ama, &ticket(&app, &ama).await).await;

    let document =
        app.request("GET", &format!("{}/tickets.pdf", order.self_)).key(&ama.key).send_raw().await.bytes().await.unwrap();

    let page = pdf::streams(&document).into_iter().find(|stream| stream.contains(" cm\n")).unwrap();
    let numbers = |line: &str| line.split(' ').filter_map(|text| text.parse().ok()).collect::<Vec<f32>>();
    // A4 in points. The page is drawn with two pixels for each.
    let (width, height) = (596 * 2, 842 * 2);
    let mut dark = vec![false; width * height];
    let [scale, _, _, _, left, bottom] = numbers(page.lines().find(|line| line.ends_with(" cm")).unwrap())[..] else {
        panic!("{page}")
    };
    let (_, modules) = page.split_once(" cm\n").unwrap();
    for line in modules.lines().take_while(|line| line.ends_with(" re")) {
        let [x, y, columns, rows] = numbers(line)[..] else { panic!("{line}") };
        let pixels = |start: f32, from: f32, count: f32| {
            let pixel = |at: f32| ((start + at * scale) * 2.0).round() as usize;
            pixel(from)..pixel(from + count)
        };
        for row in pixels(bottom, y, rows) {
            let start = (height - 1 - row) * width;
            pixels(left, x, columns).for_each(|column| dark[start + column] = true);
        }
    }
    let read = read_qr_code(height, |x, y| if x < width && dark[y * width + x] { 0 } else { 255 });
    assert_eq!(read, code);
}

#[test_on(sqlite, postgres)]
async fn servers_accept_codes_of_each_other(app: TestApp) {
    let (kofi, ama, event) = app.create_sale(&[section("VIP", 0.0, 10)]).await;
    let serial = ama.order_free_tickets(&event.sections[0], 1).await.remove(0);
    let uri = ticket(&app, &ama).await;
    let folder = tempfile::tempdir().unwrap();
    let settings = Settings { ticket_key_file: folder.path().join("ticket.key"), ..app.state.settings.clone() };
    let second = app.start_second_server(settings).await;

    let path = format!("{uri}/code");
    let of_second = app.request("GET", &path).key(&ama.key).at(second.address).send().await;
    let keys = app.request("GET", "/ticket-keys").no_key().send().await;
    assert_ne!(of_second.body["code"], code(&app, &ama, &uri).await);
    let of_both = app.request("GET", "/ticket-keys").no_key().at(second.address).send().await;
    assert_eq!(keys.body, of_both.body);
    assert!(keys.body["keys"].as_array().unwrap().len() >= 2);
    second.stop().await;

    let admitted = app.admit(&kofi.key, &event, [of_second.body["code"].as_str().unwrap()]).await;
    assert_eq!((admitted.status, &admitted.body[0]["ticket"]), (201, &Value::from(serial)), "also after it was stopped");
}

#[test]
fn serial_survives_its_bytes() {
    for serial in ["000000-000000000000", "7QK2M9-X4T8R1ZB6N3W", "ZZZZZZ-ZZZZZZZZZZZZ"] {
        let number = u128::from_str_radix(&serial.replace('-', ""), 36).unwrap();
        assert_eq!(serial_of_bytes(&number.to_be_bytes()[4..]).unwrap(), serial);
    }
    assert_eq!(serial_of_bytes(&[0xff; 12]), None, "it would have more digits");
}
