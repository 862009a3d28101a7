//! The Rust client: values of later versions, streams, conditional requests and errors.

mod retries;

use std::fmt::Debug;
use std::time::Duration;

use boxoffice_client::types::{self, VerificationStatus};
use boxoffice_client::{ApiError, Change, ClientBuilder, ClientInfo, Error, HasEtag, IfChanged, List, RetryPolicy};
use futures::{StreamExt, TryStreamExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::support::{Client, Rejection, TestApp, id_of, section, test_on};

const REGION: &str = r#"{"self":"/regions/1","name":"Volta","country":"Ghana","district":"","city":"","icon":"http://x/a.png"}"#;
const NOT_FOUND: &str = r#"{"error":"There is no such resource.","code":"resource.not-found"}"#;

/// The behavior of the server for one request.
#[derive(Clone)]
enum Behavior {
    /// Closes the connection.
    CloseConnection,
    /// Never responds.
    NeverRespond,
    /// Sends half a response and closes the connection.
    TruncateResponse,
    /// Responds with this status line, headers and body.
    Respond(&'static str, &'static str),
    /// Sends so many lines of an export, one each half a second, and announces so many. It sends nothing after them.
    SendLines { sent: usize, announced: usize },
}

use Behavior::{CloseConnection, NeverRespond, Respond, SendLines, TruncateResponse};

const LINE: &str = "17637000000081,Ama\n";

/// Starts a server that treats one request after the other like this. Returns a client of it, and the heads of all requests.
async fn start_server(behaviors: impl IntoIterator<Item = Behavior>) -> (Client, JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = Client::connect(&format!("http://{}", listener.local_addr().unwrap()), "a key").unwrap();
    let heads = tokio::spawn(serve(listener, behaviors.into_iter().collect()));
    (client, heads)
}

async fn serve(listener: TcpListener, behaviors: Vec<Behavior>) -> Vec<String> {
    let (mut heads, mut hanging) = (Vec::new(), Vec::new());
    for behavior in behaviors {
        let (mut stream, _) = listener.accept().await.unwrap();
        heads.push(read_message(&mut stream).await.0);
        let response = match behavior {
            CloseConnection => continue,
            NeverRespond => {
                hanging.push(stream);
                continue;
            }
            SendLines { sent, announced } => {
                let length = announced * LINE.len();
                let head = format!("HTTP/1.1 200 OK\r\nContent-Type: text/csv\r\nContent-Length: {length}\r\n\r\n");
                stream.write_all(head.as_bytes()).await.unwrap();
                for _ in 0..sent {
                    tokio::time::sleep(Duration::from_millis(500)).await;
                    stream.write_all(LINE.as_bytes()).await.unwrap();
                }
                hanging.push(stream);
                continue;
            }
            TruncateResponse => "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n{".to_owned(),
            Respond(head, body) => format!(
                "HTTP/1.1 {head}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
                body.len()
            ),
        };
        stream.write_all(response.as_bytes()).await.unwrap();
    }
    heads
}

/// Reads a request or response, and returns its head and all of its bytes.
async fn read_message(stream: &mut TcpStream) -> (String, Vec<u8>) {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, _)) = text.split_once("\r\n\r\n") {
            let length = header(head, "content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
            if bytes.len() >= head.len() + 4 + length {
                return (head.to_owned(), bytes);
            }
        }
        assert!(stream.read_buf(&mut bytes).await.unwrap() > 0, "the message ends too early: {text}");
    }
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let mut lines = head.lines().filter_map(|line| line.split_once(": "));
    lines.find(|(given, _)| given.eq_ignore_ascii_case(name)).map(|(_, value)| value)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn accepts_values_of_later_versions() {
    const VERIFICATION: &str = r#"{"self":"/verifications/1","email":"ama@example.com","status":"Postponed","later":[1]}"#;
    const REJECTION: &str =
        r#"{"error":"Later.","code":"verification.postponed","fields":[{"name":"a","problem":"odd","detail":""}]}"#;
    let (client, heads) = start_server([Respond("200 OK", VERIFICATION), Respond("404 Not Found", REJECTION)]).await;

    let postponed = client.verification_get().verification("1").send().await.unwrap().into_inner();
    let rejected = client.verification_get().verification("1").send().await;

    assert_eq!(postponed.status, VerificationStatus::Unknown("Postponed".to_owned()));
    let Err(Error::ErrorResponse(rejected)) = rejected else { panic!("{rejected:?}") };
    let rejected = rejected.into_inner();
    assert_eq!(rejected.code.to_string(), "verification.postponed");
    assert_eq!(rejected.fields.unwrap()[0].problem.to_string(), "odd");
    heads.await.unwrap();
}

/// Every enumeration of a response.
#[test]
fn every_enumeration_accepts_other_values() {
    fn accepts<T: DeserializeOwned + Serialize>() {
        let name = std::any::type_name::<T>();
        let value: T = serde_json::from_value(json!("A later value")).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(serde_json::to_value(value).unwrap(), "A later value", "{name}");
        assert!(serde_json::from_value::<T>(json!(7)).is_err(), "{name}");
    }
    accepts::<types::AccountTitle>();
    accepts::<types::AuditOutcome>();
    accepts::<types::ErrorCode>();
    accepts::<types::EventStatus>();
    accepts::<types::FieldProblemProblem>();
    accepts::<types::MarkdownBlockType>();
    accepts::<types::OrderStatus>();
    accepts::<types::PaymentMethod>();
    accepts::<types::PaymentStatus>();
    accepts::<types::ResetStatus>();
    accepts::<types::Role>();
    accepts::<types::SubmissionStatus>();
    accepts::<types::SubmissionType>();
    accepts::<types::TicketStatus>();
    accepts::<types::TransactionType>();
    accepts::<types::TransferStatus>();
    accepts::<types::TransferTicketStatus>();
    accepts::<types::VerificationStatus>();
    assert!("A later value".parse::<types::OrderStatus>().is_err(), "a request with a misspelled value is not sent");
}

#[test]
fn earlier_admission_is_absent_or_null() {
    let admission = json!({ "self": "/events/1/admissions/2", "admitted": "2025-12-20T18:42:10+00:00", "redeemer": "Yaw",
        "device": "Gate 1", "token": null, "tokenName": "Main entrance" });
    for (body, device) in [
        (json!({ "serial": "A-1", "reason": "pending" }), None),
        (json!({ "serial": "A-1", "reason": "pending", "admission": null }), None),
        (json!({ "serial": "A-1", "reason": "redeemed", "admission": admission }), Some("Gate 1")),
    ] {
        let refused: types::RefusedTicket = serde_json::from_value(body).unwrap();
        assert_eq!(refused.admission.as_ref().map(|admission| admission.device.as_str()), device);
    }
}

#[test]
fn blank_values_have_names() {
    assert_eq!(serde_json::to_value(types::AccountTitleInput::NoTitle).unwrap(), "");
    assert_eq!("".parse::<types::AccountTitleInput>().unwrap(), types::AccountTitleInput::NoTitle);
    assert_eq!(serde_json::to_value(types::AccountLanguageInput::DefaultLanguage).unwrap(), "");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn identifier_leads_to_no_other_resource() {
    let (client, heads) = start_server([Respond("404 Not Found", NOT_FOUND), Respond("404 Not Found", NOT_FOUND)]).await;
    let delete = |session: &str| client.account_session_delete().number("17637000000002").session(session).send();

    for identifier in ["", ".", ".."] {
        let error = delete(identifier).await.unwrap_err();
        assert!(matches!(error, Error::InvalidRequest(_)), "{error:?}");
        let text = ApiError::from(error).to_string();
        assert_eq!(text, format!("the request is invalid: {identifier:?} is not the identifier of a resource"));
    }
    for identifier in ["a\\..\\..", "%2e%2e"] {
        assert_eq!(delete(identifier).await.rejection().0, 404);
    }

    let heads = heads.await.unwrap();
    let path = |head: &String| head.split(' ').nth(1).unwrap().to_owned();
    let sessions = "/accounts/17637000000002/sessions";
    let expected = [format!("{sessions}/a%5C..%5C.."), format!("{sessions}/%252e%252e")];
    assert_eq!(heads.iter().map(path).collect::<Vec<_>>(), expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn follows_no_redirect_with_its_key() {
    let other = TcpListener::bind("127.0.0.1:0").await.unwrap();
    for status in ["301 Moved Permanently", "302 Found", "303 See Other", "307 Temporary Redirect", "308 Permanent Redirect"] {
        let location = format!("{status}\r\nLocation: http://{}/regions/1", other.local_addr().unwrap());
        let redirect = Respond(location.leak(), "{}");
        let (client, heads) = start_server([redirect.clone(), redirect]).await;

        let read = client.region_get().region("1").send().await;
        let created = client.region_create().body_map(|body| body.name("Volta").country("Ghana")).send().await;

        for error in [read.unwrap_err(), created.unwrap_err()] {
            assert!(matches!(error, boxoffice_client::Error::UnexpectedResponse(_)), "{error:?}");
        }
        assert_eq!(heads.await.unwrap().len(), 2);
    }
    let followed = timeout(Duration::from_millis(100), other.accept()).await;
    assert!(followed.is_err(), "the other server receives nothing");
}

#[test_on(sqlite, postgres)]
async fn unchanged_resource_is_not_an_error(app: TestApp) {
    let region = app.create_region().await;
    let id = id_of(&region);
    let read = || app.public_client.region_get().region(id);
    let seen = read().send().await.unwrap().etag().unwrap().to_owned();

    let same = read().if_none_match(seen.as_str()).send().await.if_changed().unwrap();
    app.staff.client.region_update().region(id).body_map(|body| body.city("Ho".to_owned())).send().await.unwrap();
    let changed = read().if_none_match(seen.as_str()).send().await.if_changed().unwrap();
    let absent = app.public_client.region_get().region("17637000000000").if_none_match(seen.as_str()).send().await.if_changed();

    assert!(same.is_none(), "{same:?}");
    assert_eq!(changed.unwrap().city, "Ho");
    assert!(matches!(absent, Err(boxoffice_client::Error::ErrorResponse(_))), "{absent:?}");
}

#[test_on(sqlite, postgres)]
async fn stream_returns_entries_of_all_pages(app: TestApp) {
    let mut created = Vec::new();
    for _ in 0..5 {
        created.push(app.create_region().await);
    }
    let list = || app.public_client.region_list().records(2);
    let uris = |region: types::Region| region.self_;

    let all: Vec<_> = list().page(3).stream().map_ok(uris).try_collect().await.unwrap();
    let some: Vec<_> = list().stream().map_ok(uris).take(3).try_collect().await.unwrap();
    let rejected: Result<Vec<_>, _> = list().records(0).stream().try_collect().await;

    assert!(all.ends_with(&created) && some == all[..3], "{all:?} {some:?}");
    assert!(matches!(rejected, Err(boxoffice_client::Error::ErrorResponse(response)) if response.status() == 400));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stream_ends_with_the_last_page() {
    const PAGE: &str = r#"{"entries":[REGION],"page":1,"records":1,"total":TOTAL}"#;
    let page = |total: &str, entries: &str| &*PAGE.replace("REGION", entries).replace("TOTAL", total).leak();
    let past_end =
        Respond("404 Not Found", r#"{"error":"There is presently no resource with the given URI.","code":"page.past-end"}"#);
    for (responses, entries) in [
        (vec![Respond("200 OK", page("1", REGION))], 1),
        // Entries were removed in between.
        (vec![Respond("200 OK", page("2", REGION)), past_end], 1),
        (vec![Respond("200 OK", page("2", REGION)), Respond("200 OK", page("2", ""))], 1),
        (vec![Respond("200 OK", page("0", ""))], 0),
    ] {
        let requests = responses.len();
        let (client, heads) = start_server(responses).await;

        let received: Vec<_> = client.region_list().stream().try_collect().await.unwrap();

        assert_eq!((received.len(), heads.await.unwrap().len()), (entries, requests));
    }
}

#[test_on(sqlite, postgres)]
async fn update_requires_current_etag(app: TestApp) {
    let region = app.create_region().await;
    let id = id_of(&region);
    let read = app.staff.client.region_get().region(id).send().await.unwrap();
    let change = |city: &str, tag: &str| {
        let city = city.to_owned();
        app.staff.client.region_update().region(id).if_match(tag).body_map(|body| body.city(city)).send()
    };

    let first = change("Ho", read.etag().unwrap()).await.unwrap();
    let late = change("Hohoe", read.etag().unwrap()).await;
    let next = change("Hohoe", first.etag().unwrap()).await.unwrap();

    assert_eq!(late.rejection(), (412, "resource.changed".to_owned()));
    assert_eq!(next.city, "Hohoe");
}

#[test_on(sqlite, postgres)]
async fn error_has_one_line_with_code_and_request(app: TestApp) {
    let application = &app.public_client;

    let missing = ApiError::from(application.region_get().region("1").send().await.unwrap_err());
    let invalid = application.account_create().body_map(|body| body.username("a").email("b").password("c"));
    let invalid = ApiError::from(invalid.send().await.unwrap_err());

    let id = missing.request_id().unwrap().to_owned();
    let expected = format!("404 resource.not-found: There is presently no resource with the given URI. (request {id})");
    assert_eq!((missing.status().unwrap().as_u16(), missing.to_string()), (404, expected));
    assert_eq!(missing.code(), Some(&types::ErrorCode::ResourceNotFound));
    let fields: Vec<_> = invalid.fields().iter().map(|field| field.name.as_str()).collect();
    assert_eq!(fields, ["username", "password", "email"]);
    assert!(!invalid.to_string().contains('\n'));
}

#[test_on(sqlite, postgres)]
async fn null_clears_property(app: TestApp) {
    let (kofi, event) = app.sign_up_host("kofi", &[section("VIP", 20.0, 10)]).await;
    let (region, vip) = (app.create_region().await, id_of(&event.sections[0]));
    let limit = async |limit: Change<i64>| {
        let update = kofi.client.section_update().event(&event.id).section(vip);
        update.body_map(|body| body.maximum_per_account(limit)).send().await.unwrap().maximum_per_account
    };
    let prefer = async |region: Change<String>| {
        let update = kofi.client.account_preferences_update().number(kofi.number.as_str());
        update.body_map(|body| body.region(region)).send().await.unwrap().into_inner().region
    };

    assert_eq!((limit(4.into()).await, limit(Change::Unchanged).await, limit(Change::Clear).await), (Some(4), Some(4), None));
    assert_eq!(prefer(region.clone().into()).await.as_deref(), Some(id_of(&region)));
    assert_eq!((prefer(Change::Unchanged).await.is_some(), prefer(Change::Clear).await), (true, None));
}

#[test]
fn null_and_absent_property_differ() {
    for (body, change) in [
        (json!({}), Change::Unchanged),
        (json!({ "maximumPerAccount": null }), Change::Clear),
        (json!({ "maximumPerAccount": 4 }), Change::Set(4)),
    ] {
        let update: types::SectionUpdate = serde_json::from_value(body.clone()).unwrap();
        assert_eq!((update.maximum_per_account, serde_json::to_value(&update).unwrap()), (change, body));
    }
}

#[test_on(sqlite, postgres)]
async fn error_has_reasons_of_refused_tickets(app: TestApp) {
    let (kofi, _, event) = app.create_sale(&[section("VIP", 20.0, 10)]).await;

    let admit = kofi.client.event_admission_create().event(&event.id);
    let refused = admit.body_map(|body| body.serials(vec!["7QK2M9-P0D5V7HJ2C9L".to_owned()])).send().await;
    let error = ApiError::from(refused.unwrap_err());

    let reasons: Vec<_> = error.refused().iter().map(|ticket| (ticket.serial.as_str(), ticket.reason.to_string())).collect();
    assert_eq!(reasons, [("7QK2M9-P0D5V7HJ2C9L", "unknown".to_owned())]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn error_of_load_balancer_has_its_status() {
    let large = Respond("413 Content Too Large\r\nX-Request-Id: 1", "<html>413</html>");
    let (client, _heads) = start_server([large, Respond("502 Bad Gateway", ""), Respond("400 Bad Request", "[]")]).await;

    let texts = ["413: the response is not one of this API (request 1)", "502: the response is not one of this API"];
    for text in texts.into_iter().chain(["400: the response is not one of this API"]) {
        let error = client.region_get().region("1").send().await.unwrap_err();
        let Error::UnexpectedResponse(response) = &error else { panic!("{error:?}") };
        assert_eq!(response.url().as_str(), format!("{}/", client.baseurl()), "the server, without the path");
        assert_eq!(ApiError::from(error).to_string(), text);
    }
}

#[test]
fn key_is_not_in_debug_output() {
    let builder = ClientBuilder::new("http://127.0.0.1:1", "a secret key");
    let text = format!("{builder:?} {:?}", ClientBuilder::new("http://127.0.0.1:1", "a secret key").build().unwrap());
    assert!(!text.contains("secret"), "{text}");
}

#[test]
fn secrets_are_not_in_debug_output() {
    fn received<T: DeserializeOwned + Serialize + Debug>(value: &serde_json::Value) -> [String; 1] {
        let received: T = serde_json::from_value(value.clone()).unwrap();
        assert!(serde_json::to_string(&received).unwrap().contains("SECRET"), "only Debug hides it");
        [format!("{received:#?}")]
    }
    let client = ClientBuilder::new("http://127.0.0.1:1", "a key").build().unwrap();
    let log_in = types::SessionCreate::builder().identification("ama").password("SECRET");
    let verification = types::VerificationUpdate::builder().code("SECRET");
    let built = [
        format!("{log_in:?}"),
        format!("{:?}", types::SessionCreate::try_from(log_in).unwrap()),
        format!("{:?}", client.session_create().body_map(|body| body.identification("ama").password("SECRET"))),
        format!("{:?}", types::AccountCreate::builder().username("ama").password("SECRET")),
        format!("{:?}", types::AccountUpdate::builder().username("ama".to_owned()).password("SECRET".to_owned())),
        format!("{:?}", client.reset_update().reset("SECRET").body_map(|body| body.code("SECRET").password("SECRET"))),
        format!("{:?}", client.verification_update().verification("SECRET").body(verification)),
        format!("{:?}", client.token_authentication_get().code("SECRET")),
    ];
    let examples = &boxoffice::contract::load().unwrap().document["components"]["examples"];
    let with = |example: &str, secret: &str| {
        let mut value = examples[example]["value"].clone();
        value[secret] = json!("SECRET");
        value
    };

    let texts = built.into_iter().chain(received::<types::Session>(&with("Session", "key")));
    let texts = texts.chain(received::<types::IntegrationWithKey>(&with("IntegrationWithKey", "key")));
    let texts = texts.chain(received::<types::Token>(&with("Token", "code")));
    let texts = texts.chain(received::<types::TokenAuthentication>(&with("TokenAuthentication", "key")));
    let texts = texts.chain(received::<types::Verification>(&with("Verification", "self")));
    let texts: Vec<_> = texts.chain(received::<types::Reset>(&with("Reset", "self"))).collect();

    for text in &texts {
        assert!(text.contains("[hidden]") && !text.contains("SECRET"), "{text}");
    }
    assert_eq!(texts[1], r#"SessionCreate { identification: "ama", password: [hidden] }"#);
    let code = types::Error::builder().code(types::ErrorCode::KeyRefused);
    assert!(format!("{code:?}").contains("KeyRefused"), "the code of an error is shown");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn errors_have_address_without_path() {
    let (server, _heads) = start_server([CloseConnection, TruncateResponse, NeverRespond, CloseConnection]).await;
    let address = server.baseurl().to_owned();
    let server = server.with_retries(RetryPolicy { attempt_timeout: Duration::from_millis(500), ..RetryPolicy::NONE });
    let refusing = ClientBuilder::new("http://127.0.0.1:1/boxoffice", "a key").retries(RetryPolicy::NONE).build().unwrap();

    let mut texts = Vec::new();
    for client in [&server, &server, &server, &refusing] {
        let error = client.token_authentication_get().code("SECRET").send().await.unwrap_err();
        let debug = format!("{error:?}");
        texts.push(format!("{debug}\n{:#}", anyhow::Error::from(ApiError::from(error))));
    }

    assert!(texts.iter().all(|text| !text.contains("SECRET")), "{texts:#?}");
    assert!(texts[..3].iter().all(|text| text.contains(&format!("{address}/"))), "{texts:#?}");
    assert!(texts[3].contains("http://127.0.0.1:1/)") && texts[3].contains("refused"), "{texts:#?}");
}

#[tokio::test]
async fn failed_connection_is_source_of_error() {
    let client = ClientBuilder::new("http://127.0.0.1:1", "a key").retries(RetryPolicy::NONE).build().unwrap();
    let error = ApiError::from(client.time_get().send().await.unwrap_err());
    assert_eq!((error.status(), error.request_id(), error.to_string().as_str()), (None, None, "the request failed"));
    assert!(std::error::Error::source(&error).is_some());
    assert!(ClientBuilder::new("http://127.0.0.1:1", "a\nkey").build().is_err());
}
