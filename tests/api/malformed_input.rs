//! Unusual JSON, Unicode and images in requests.

use boxoffice_client::Error;
use boxoffice_mock::MockSettings;
use reqwest::header::CONTENT_TYPE;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::advertisements::advertisement_body;
use crate::support::{Client, PASSWORD, Response, TestApp, operations, rejection, section, test_on};
use crate::support::{MockServer, mock_request};

impl TestApp {
    /// Sends a body unchanged.
    async fn post_unchanged(&self, path: &str, body: impl Into<reqwest::Body>) -> Response {
        let request = self.request("POST", path).key(&self.staff.key).header(CONTENT_TYPE.as_str(), "application/json");
        request.body(body).send().await
    }

    async fn new_region(&self, name: &str) -> Response {
        self.post(&self.staff.key, "/regions", json!({ "name": name, "country": "Ghana" })).await
    }
}

#[test_on(sqlite, postgres)]
async fn deeply_nested_body_is_malformed(app: TestApp) {
    for (path, bytes) in [("/regions", 64 * 1024), ("/events", 1024 * 1024)] {
        for brackets in ["[", "{\"a\":", "{\"name\":["] {
            let rejected = app.post_unchanged(path, brackets.repeat(bytes / brackets.len())).await;
            assert_eq!(rejection(&rejected), (400, "body.malformed"), "{path} {brackets}");
        }
        let closed = format!("{{\"name\":{}{}}}", "[".repeat(1000), "]".repeat(1000));
        assert_eq!(app.post_unchanged(path, closed).await.code(), "body.malformed", "{path}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mock_rejects_deeply_nested_body() {
    let mock = MockServer::start(MockSettings::default());
    for body in ["[".repeat(64 * 1024), "{\"name\":".repeat(7000)] {
        let mut nested = mock_request("POST", "/regions").with_header(CONTENT_TYPE.as_str(), "application/json");
        nested.body = Some(body.into_bytes());

        let rejected = mock.send(&nested).await;

        assert_eq!((rejected.status, &rejected.json()["code"]), (400, &json!("body.malformed")));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn client_survives_deeply_nested_response() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let server = tokio::spawn(async move {
        for known in ["{\"utc\":", "{\"unknown\":"] {
            let (mut stream, _) = listener.accept().await.unwrap();
            assert!(stream.read(&mut [0; 4096]).await.unwrap() > 0);
            let body = format!("{known}{}", "[".repeat(1 << 20));
            let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n";
            let response = format!("{head}Content-Length: {}\r\n\r\n{body}", body.len());
            stream.write_all(response.as_bytes()).await.unwrap();
        }
    });
    let client = Client::connect(&address, "any").unwrap();

    for _ in 0..2 {
        let rejected = client.time_get().send().await.unwrap_err();
        assert!(matches!(rejected, Error::InvalidResponsePayload(..)), "{rejected:?}");
    }
    server.await.unwrap();
}

#[test_on(sqlite, postgres)]
async fn duplicate_key_makes_body_malformed(app: TestApp) {
    for body in [
        r#"{"name":"Volta","country":"Ghana","name":"Oti"}"#,
        r#"{"name":"Volta","country":"Ghana","n\u0061me":"Volta"}"#,
        r#"{"name":"Volta","country":"Ghana","x":[{"name":1,"name":1}]}"#,
    ] {
        let rejected = app.post_unchanged("/regions", body).await;

        assert_eq!(rejection(&rejected), (400, "body.malformed"), "{body}");
        assert!(rejected.body["error"].as_str().unwrap().contains("\"name\" is in one object more than once"), "{body}");
    }
    assert_eq!(app.read("/regions").await["total"], 0);
}

/// Every number in every body, one at a time.
#[test_on(sqlite, postgres)]
async fn validates_unusual_numbers(app: TestApp) {
    const ODD: [&str; 10] = [
        "1e400",
        "-1e400",
        "1e-400",
        "-0",
        "-0.0",
        "9223372036854775808",
        "-9223372036854775809",
        "100000000000000000000",
        "1E5",
        "0.1e1",
    ];
    let mut tried = 0;
    for operation in operations() {
        let Some(schema) = operation.body_schema() else { continue };
        let numbers = schema["properties"].as_object().unwrap().iter();
        for (name, _) in numbers.filter(|(_, property)| property["type"] == "integer" || property["type"] == "number") {
            for number in ODD {
                let mut body = operation.body();
                body[name] = json!("the number");
                let body = body.to_string().replace("\"the number\"", number);
                let request = app.request(&operation.method, &operation.path_with(&[])).key(&app.staff.key);
                let response = request.header(CONTENT_TYPE.as_str(), "application/json").body(body).send().await;

                let about = format!("{} {name} = {number}: {response:?}", operation.id);
                assert!(response.status < 500, "{about}");
                // The amount of a payment has no maximum: it is compared with what is outstanding.
                let is_too_large = number.len() > 15 && operation.id != "order_payment_create";
                if number.contains("e400") || is_too_large {
                    assert_eq!(response.invalid_arguments(), [name.as_str()], "{about}");
                }
                tried += 1;
            }
        }
    }
    assert!(tried >= 100, "only {tried}");
}

#[test_on(sqlite, postgres)]
async fn integer_has_any_notation(app: TestApp) {
    for (number, width, height) in [(0, "300.0", "2.5e2"), (1, "3e2", "250"), (2, "30000e-2", "250.000")] {
        let zone = format!(r#"{{"name": "Zone {number}", "width": {width}, "height": {height}}}"#);
        let created = app.post_unchanged("/zones", zone).await;
        assert_eq!((created.status, &created.body["width"], &created.body["height"]), (201, &json!(300), &json!(250)));
    }
    let fraction = app.post_unchanged("/zones", r#"{"name": "Zone", "width": 300.5, "height": 1e999}"#).await;
    let details: Vec<_> = fraction.body["fields"].as_array().unwrap().iter().map(|field| &field["detail"]).collect();
    assert_eq!(fraction.invalid_arguments(), ["width", "height"]);
    assert_eq!(details, ["must be an integer", "is a number out of range"]);
    assert_eq!(app.post_unchanged("/zones", r#"{"name": -1e999, "width": 1, "height": 1}"#).await.invalid_arguments(), ["name"]);

    for query in ["records=1e1&page=1.0", "records=10.0&page=1"] {
        let page = app.get(&app.staff.key, &format!("/zones?{query}")).await;
        assert_eq!((page.status, &page.body["records"], &page.body["total"]), (200, &json!(10), &json!(3)), "{query}");
    }
    for query in ["records=1.5", "records=1e999", "records=1e", "records=0x10", "records=NaN"] {
        let rejected = app.get(&app.staff.key, &format!("/zones?{query}")).await;
        assert_eq!(rejected.invalid_arguments(), ["records"], "{query}");
    }
}

#[test_on(sqlite, postgres)]
async fn order_quantity_has_any_notation(app: TestApp) {
    let (kofi, event) = app.sign_up_host("kofi", &[section("Floor", 20.0, 10)]).await;
    let order = async |quantity: &str| {
        let request = app.request("POST", "/orders").key(&kofi.key).header(CONTENT_TYPE.as_str(), "application/json");
        request.body(format!(r#"{{"items": {{"{}": {quantity}}}}}"#, event.sections[0])).send().await
    };

    let (whole, fraction, huge) = (order("2.0").await, order("1.5").await, order("1e999").await);

    assert_eq!((whole.status, &whole.body["items"][0]["quantity"]), (201, &json!(2)));
    assert_eq!(fraction.invalid_arguments(), ["items"]);
    assert_eq!(huge.invalid_arguments(), ["items"]);
}

#[test_on(sqlite, postgres)]
async fn lone_surrogate_makes_body_malformed(app: TestApp) {
    for name in [r"\ud800", r"\udc00", r"\ud83c\ud83c", r"\u12"] {
        let rejected = app.post_unchanged("/regions", format!(r#"{{"name":"{name}","country":"Ghana"}}"#)).await;
        assert_eq!(rejection(&rejected), (400, "body.malformed"), "{name}");
    }
    let bytes: &[u8] = b"{\"name\":\"\xff\xfe\",\"country\":\"Ghana\"}";
    assert_eq!(app.post_unchanged("/regions", bytes).await.code(), "body.malformed");
    let whole = app.post_unchanged("/regions", r#"{"name":"\ud83c\udfb7","country":"Ghana"}"#).await;
    assert_eq!((whole.status, &whole.body["name"]), (201, &json!("🎷")));
}

#[test_on(sqlite, postgres)]
async fn only_descriptions_may_have_several_lines(app: TestApp) {
    let zone = |name: &str, description: &str| json!({ "name": name, "width": 300, "height": 250, "description": description });
    let make = async |zone: Value| app.post(&app.staff.key, "/zones", zone).await;

    let lines = make(zone("Front page", "Seen first.\r\n\n\tBy everyone.")).await;
    let name = make(zone("Front\npage", "Seen first.")).await;
    let both = make(zone("Front\u{202e}egap", "Seen\u{8}first.")).await;

    assert_eq!((lines.status, &lines.body["description"]), (201, &json!("Seen first.\r\n\n\tBy everyone.")));
    assert_eq!(name.body["fields"][0]["detail"], "must not contain the character U+000A");
    assert_eq!(both.invalid_arguments(), ["name", "description"]);
    assert_eq!(both.body["fields"][0]["detail"], "must not contain the character U+202E");
}

#[test_on(sqlite, postgres)]
async fn undeclared_properties_may_have_any_characters(app: TestApp) {
    let (kofi, event) = app.sign_up_host("kofi", &[section("Floor", 20.0, 10)]).await;
    let zone = app.create_zone(300, 250).await;
    let mut body = advertisement_body("Spring", &event, &[&zone]);
    body["schedule"][0]["note"] = json!("Two\nlines");
    body["note\n"] = json!({ "of": "two\nlines" });

    let created = app.post(&kofi.key, "/advertisements", &body).await;

    assert_eq!(created.status, 201, "{}", created.body);
}

#[test_on(sqlite, postgres)]
async fn details_describe_valid_values(app: TestApp) {
    let account =
        json!({ "username": "a b", "password": "Harmattan-2025", "email": "esi@example.com", "dateOfBirth": "1990-2-1" });
    let account = app.request("POST", "/accounts").json(&account).send().await;
    let (kofi, event) = app.sign_up_host("kofi", &[section("Floor", 20.0, 10)]).await;
    let event = app.put(&kofi.key, &event.uri, json!({ "title": ["two\nlines"], "end": "tomorrow" })).await;
    let token = app.post(&kofi.key, "/transfers", json!({ "recipient": "esi", "tickets": ["1"] })).await;

    let details = [account, event, token].map(|rejected| {
        let fields = rejected.body["fields"].as_array().unwrap();
        let detail = |field: &Value| format!("{} {}", field["name"].as_str().unwrap(), field["detail"].as_str().unwrap());
        fields.iter().map(detail).collect::<Vec<_>>()
    });
    let expected: [&[&str]; 3] = [
        &[
            "username has the wrong form; a valid example is ama.mensah",
            "dateOfBirth must be a date from 1900-01-01 to today, such as 1990-02-28 or 28-02-1990",
        ],
        &["title must be a string", "end must be a date and time, such as 2025-12-20T19:00"],
        &[
            "recipient has the wrong form; a valid example is GH-8T3NB6XR",
            "tickets has the wrong form; a valid example is 7QK2M9-X4T8R1ZB6N3W (at 0)",
        ],
    ];
    assert_eq!(details.map(|details| details.join("\n")), expected.map(|lines| lines.join("\n")));
}

#[test_on(sqlite, postgres)]
async fn accepts_bidirectional_text(app: TestApp) {
    for name in ["\u{200f}أكرا", "תל אביב", "می\u{200c}خواهم", "東京", "Kpɔeta"] {
        let created = app.new_region(name).await;
        assert_eq!((created.status, &created.body["name"]), (201, &json!(name)));
    }
    for name in ["Ac\u{200b}cra", "\u{feff}Accra", "Accra\u{2069}", "\u{202b}Accra", "Ac\u{80}cra", "Ac\u{7f}cra"] {
        let rejected = app.new_region(name).await;
        assert_eq!(rejected.invalid_arguments(), ["name"], "{name:?}");
    }
}

#[test_on(sqlite, postgres)]
async fn invisible_name_counts_as_missing(app: TestApp) {
    for name in ["\u{200b}", "\u{3164}", "\u{2800}", "\u{ad}\u{200d}", "\u{115f} \u{fe0f}", "\u{e0041}", "\u{feff}\u{2060}"] {
        let rejected = app.new_region(name).await;
        assert_eq!(rejected.invalid_arguments(), ["-name"], "{name:?}");
    }
    assert_eq!(app.new_region("\u{3164}Ho").await.status, 201);
}

#[test_on(sqlite, postgres)]
async fn unicode_blank_counts_as_missing(app: TestApp) {
    let region = app.new_region("Volta").await.uri().to_owned();
    let change = async |change: Value| app.put(&app.staff.key, &region, &change).await;
    change(json!({ "district": "Ho" })).await;

    let odd = change(json!({ "district": "\t\u{85}" })).await;
    let plain = change(json!({ "district": " " })).await;

    assert_eq!((odd.status, &odd.body["district"]), (200, &json!("Ho")));
    assert_eq!((plain.status, &plain.body["district"]), (200, &json!(" ")), "where a blank fits, it is set");
}

/// SQLite's `lower` supports ASCII only, PostgreSQL's more. Both find the same addresses if only ASCII is allowed.
#[test_on(sqlite, postgres)]
async fn email_address_must_be_ascii(app: TestApp) {
    let sign_up = async |email: &str| {
        let body = json!({ "username": "emile", "email": email, "password": PASSWORD });
        app.request("POST", "/accounts").json(&body).send().await
    };

    for email in
        ["Émile@example.com", "emile@exämple.com", "emile\u{ff20}example.com", "\u{435}mile@example.com", "a\tb@example.com"]
    {
        let rejected = sign_up(email).await;
        assert_eq!(rejected.invalid_arguments(), ["email"], "{email}");
    }

    assert_eq!(sign_up("Emile@Example.com").await.status, 201);
    assert!(app.sign_in("eMILE@example.COM", PASSWORD).await.is_ok());
    let odd = app.request("POST", "/sessions").json(&json!({ "identification": "Émile", "password": PASSWORD })).send().await;
    assert_eq!(rejection(&odd), (404, "account.unknown"));
}

#[test_on(sqlite, postgres)]
async fn limits_filter_expression(app: TestApp) {
    let (kofi, event) = app.sign_up_host("kofi", &[section("Floor", 20.0, 10)]).await;
    kofi.order(&event.sections[0], 1).await.unwrap();
    let list = async |number: &str| {
        let encoded: String = form_urlencoded::byte_serialize(number.as_bytes()).collect();
        app.get(&app.staff.key, &format!("/orders?number={encoded}")).await
    };

    for bomb in ["(a{1000}){1000}", "((a{100}){100}){100}", r"\pL{900}", "(?:(?:(?:a?){99}){99}){99}", &"(".repeat(100)] {
        let rejected = list(bomb).await;
        assert_eq!(rejected.invalid_arguments(), ["number"], "{bomb}");
    }
    // Patterns that cause exponential backtracking in other engines.
    for harmless in ["(1*)*(1*)*(1*)*$x", "(.*)*(.*)*y", "^(1|1?)+$", "(?i)[a-z]*$"] {
        assert_eq!(list(harmless).await.status, 200, "{harmless}");
    }
}

/// Returns a PNG with this size in its header, and one more chunk before its end.
fn png(width: u32, height: u32, kind: &[u8], chunk: &[u8]) -> String {
    use base64::Engine;
    let mut file = b"\x89PNG\r\n\x1a\n".to_vec();
    let header = [&width.to_be_bytes()[..], &height.to_be_bytes(), &[8, 0, 0, 0, 0]].concat();
    for (kind, data) in
        [(&b"IHDR"[..], &header[..]), (kind, chunk), (b"IDAT", &[0x78, 0x9c, 0x63, 0x60, 0, 0, 0, 2, 0, 1]), (b"IEND", &[])]
    {
        let body = [kind, data].concat();
        file.extend(u32::try_from(data.len()).unwrap().to_be_bytes());
        file.extend(&body);
        file.extend(crc32fast::hash(&body).to_be_bytes());
    }
    base64::prelude::BASE64_STANDARD.encode(file)
}

#[test_on(sqlite, postgres)]
async fn rejects_decompression_bomb(app: TestApp) {
    let (ama, event) = app.sign_up_host_with_draft("ama").await;
    let put = async |banner: &str| app.put(&ama.key, &event.uri, json!({ "banner": banner })).await;
    let svg = "data:image/svg+xml;base64,PHN2ZyB4bWxucz0iaHR0cDovL3d3dy53My5vcmcvMjAwMC9zdmciIG9ubG9hZD0iYWxlcnQoMSkiLz4=";
    // As a zlib stream this would decompress without end; the server doesn't decompress it.
    let bomb = [b"a\0\0".as_slice(), &[0x78, 0xda], &[0xff; 4096]].concat();

    for (picture, detail) in [
        (png(60_000, 60_000, b"tEXt", b"a\0b"), "is 60000 × 60000 pixels"),
        (png(u32::MAX, 1, b"tEXt", b"a\0b"), "is a PNG image that is damaged"),
        (png(0, 9, b"tEXt", b"a\0b"), "is a PNG image that is damaged"),
        (svg.to_owned(), "is no PNG, JPEG or WebP image"),
        ("data:text/html;base64,PGI+".to_owned(), "is no PNG, JPEG or WebP image"),
        ("data:text/html,<b>".to_owned(), "is not an image in base64"),
    ] {
        let rejected = put(&picture).await;
        assert_eq!(rejected.invalid_arguments(), ["banner"], "{detail}");
        assert!(rejected.body["fields"][0]["detail"].as_str().unwrap().starts_with(detail), "{}", rejected.body);
    }
    for kind in [b"iCCP", b"zTXt"] {
        assert_eq!(put(&png(1, 1, kind, &bomb)).await.status, 200, "it is returned unchanged");
    }
}
