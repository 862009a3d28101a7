//! The Rust client: idempotency keys, retries and conditional requests.

use std::net::SocketAddr;
use std::time::Duration;

use boxoffice_client::types::{self, VerificationStatus};
use boxoffice_client::{ApiError, ClientBuilder, Error, HasEtag, IfChanged, List, RetryPolicy};
use futures::{StreamExt, TryStreamExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::on_both_databases;
use crate::support::{Client, Rejection, TestApp, operations, refusing_socket, section};

on_both_databases![
    lost_response_is_retried_without_second_effect,
    lost_response_counts_code_attempt_once,
    unchanged_resource_is_not_an_error,
    update_requires_current_etag,
    error_has_one_line_with_code_and_request,
    stream_returns_entries_of_all_pages,
];

const REGION: &str = r#"{"self":"/regions/1","name":"Volta","country":"Ghana","district":"","city":"","icon":"http://x/a.png"}"#;
const NOT_FOUND: &str = r#"{"error":"There is no such resource.","code":"resource.not-found"}"#;
const NOT_OPEN: &str = r#"{"error":"This transfer is not open any more.","code":"transfer.not-open"}"#;
const BUSY: &str = r#"{"error":"Try again.","code":"server.unavailable"}"#;

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
}

use Behavior::{CloseConnection, NeverRespond, Respond, TruncateResponse};

/// Starts a server that treats one request after the other like this. Returns a client of it, and the heads of all requests.
async fn start_server(behaviors: impl IntoIterator<Item = Behavior>) -> (Client, JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = Client::connect(&format!("http://{}", listener.local_addr().unwrap()), "a key").unwrap();
    let heads = tokio::spawn(serve(listener, behaviors.into_iter().collect()));
    (client, heads)
}

async fn serve(listener: TcpListener, behaviors: Vec<Behavior>) -> Vec<String> {
    let (mut heads, mut hanging) = (Vec::new(), Vec::new());
    for behaviors in behaviors {
        let (mut stream, _) = listener.accept().await.unwrap();
        heads.push(read_message(&mut stream).await.0);
        let response = match behaviors {
            CloseConnection => continue,
            NeverRespond => {
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

/// Returns the idempotency keys of requests.
fn idempotency_keys(heads: &[String]) -> Vec<&str> {
    heads.iter().map(|head| header(head, "idempotency-key").unwrap_or("none")).collect()
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn retries_post_with_same_idempotency_key() {
    let created = Respond("201 Created\r\nLocation: /regions/1", REGION);
    let (client, heads) = start_server([CloseConnection, CloseConnection, created.clone(), created]).await;
    let create = || client.region_create().body_map(|body| body.name("Volta").country("Ghana"));

    assert_eq!(create().send().await.unwrap().name, "Volta");
    assert_eq!(create().send().await.unwrap().name, "Volta");

    let heads = heads.await.unwrap();
    let [first, second, third, other] = idempotency_keys(&heads)[..] else { panic!("{heads:?}") };
    assert_eq!([first, first], [second, third]);
    assert!(first.len() == 32 && other.len() == 32 && first != other, "{first} {other}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sends_idempotency_key_of_caller() {
    let (client, heads) = start_server([CloseConnection, Respond("201 Created\r\nLocation: /regions/1", REGION)]).await;

    let create = client.region_create().idempotency_key("mine").body_map(|body| body.name("Volta").country("Ghana"));
    create.send().await.unwrap();

    assert_eq!(idempotency_keys(&heads.await.unwrap()), ["mine", "mine"]);
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn retries_truncated_response() {
    let (client, heads) = start_server([TruncateResponse, Respond("200 OK", REGION)]).await;

    assert_eq!(client.region_get().region("1").send().await.unwrap().name, "Volta");

    assert_eq!(idempotency_keys(&heads.await.unwrap()), ["none", "none"], "a GET needs none");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn retries_overloaded_server() {
    let (many, unavailable) = ("429 Too Many Requests\r\nRetry-After: 1", "503 Service Unavailable\r\nRetry-After: 1");
    let without = "503 Service Unavailable";
    let responses = [Respond(many, BUSY), Respond(unavailable, BUSY), Respond(without, BUSY), Respond("200 OK", REGION)];
    let (client, heads) = start_server(responses).await;

    assert_eq!(client.region_get().region("1").send().await.unwrap().name, "Volta");

    assert_eq!(heads.await.unwrap().len(), 4);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn retries_request_in_progress() {
    let under_way = r#"{"error":"Still under way.","code":"idempotency.under-way"}"#;
    let created = Respond("201 Created\r\nLocation: /regions/1", REGION);
    let (client, heads) = start_server([CloseConnection, Respond("409 Conflict", under_way), created]).await;

    client.region_create().body_map(|body| body.name("Volta").country("Ghana")).send().await.unwrap();

    assert_eq!(heads.await.unwrap().len(), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn does_not_retry_rejection() {
    let taken = r#"{"error":"Another region has this name.","code":"region.taken"}"#;
    let (client, heads) = start_server([Respond("409 Conflict", taken)]).await;

    let rejected = client.region_create().body_map(|body| body.name("Volta").country("Ghana")).send().await;

    assert_eq!(rejected.rejection(), (409, "region.taken".to_owned()));
    assert_eq!(heads.await.unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stops_after_last_attempt() {
    let (client, heads) = start_server([const { Respond("503 Service Unavailable", BUSY) }; 3]).await;
    let client = client.with_retries(RetryPolicy { max_attempts: 3, ..RetryPolicy::default() });

    assert_eq!(client.region_get().region("1").send().await.rejection(), (503, "server.unavailable".to_owned()));

    assert_eq!(heads.await.unwrap().len(), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn does_not_wait_longer_than_limit() {
    let (client, heads) = start_server([Respond("429 Too Many Requests\r\nRetry-After: 3600", BUSY)]).await;
    let client =
        client.with_retries(RetryPolicy { max_attempts: 100, retry_window: Duration::from_secs(3599), ..RetryPolicy::default() });

    let actual = timeout(Duration::from_secs(30), client.region_get().region("1").send()).await.expect("an answer at once");

    assert_eq!(actual.rejection(), (429, "server.unavailable".to_owned()));
    assert_eq!(heads.await.unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn does_not_retry_without_policy() {
    let (client, _heads) = start_server([CloseConnection, Respond("200 OK", REGION)]).await;
    let client = client.with_retries(RetryPolicy::NONE);

    let lost = client.region_get().region("1").send().await;

    assert!(matches!(lost, Err(boxoffice_client::Error::CommunicationError(_))), "{lost:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn retries_after_timeout() {
    let absent = Respond("404 Not Found", NOT_FOUND);
    let (client, heads) = start_server([CloseConnection, absent.clone(), absent]).await;
    let delete = || client.region_delete().region("1");

    delete().send().await.unwrap();
    assert_eq!(delete().send().await.rejection(), (404, "resource.not-found".to_owned()), "nothing was lost");

    assert_eq!(idempotency_keys(&heads.await.unwrap()), ["none"; 3]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn retried_delete_accepts_not_found() {
    let (client, heads) = start_server([NeverRespond, Respond("200 OK", REGION)]).await;
    let client = client.with_retries(RetryPolicy { attempt_timeout: Duration::from_secs(2), ..RetryPolicy::default() });

    let read = timeout(Duration::from_secs(30), client.region_get().region("1").send()).await.expect("retried");

    assert_eq!(read.unwrap().name, "Volta");

    assert_eq!(heads.await.unwrap().len(), 2);
    let RetryPolicy { attempt_timeout: attempt, retry_window: total, .. } = RetryPolicy::default();
    assert!(attempt * 3 < total, "by default, too, there is time for a second and third");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn retried_cancellation_accepts_not_open() {
    let ended = Respond("409 Conflict", r#"{"error":"This session has ended already.","code":"session.ended"}"#);
    let rejected = Respond("403 Forbidden", r#"{"error":"You are restricted.","code":"key.refused"}"#);
    let cancelled = Respond("200 OK", r#"{"self":"/transfers/1","status":"Cancelled"}"#);
    let (client, heads) = start_server([
        CloseConnection,
        ended.clone(),
        ended,
        CloseConnection,
        rejected.clone(),
        rejected.clone(),
        CloseConnection,
        rejected,
        CloseConnection,
        Respond("409 Conflict", NOT_OPEN),
        cancelled,
        Respond("503 Service Unavailable", BUSY),
        Respond("404 Not Found", NOT_FOUND),
    ])
    .await;
    let end = || client.account_session_delete().number("17637000000002").session("17637000000003").send();

    end().await.unwrap();
    assert_eq!(end().await.rejection(), (409, "session.ended".to_owned()), "nothing was lost");
    client.session_active_delete().send().await.unwrap();
    assert_eq!(client.session_active_delete().send().await.rejection(), (403, "key.refused".to_owned()), "nothing was lost");
    assert_eq!(client.region_delete().region("1").send().await.rejection(), (403, "key.refused".to_owned()));
    client.transfer_delete().transfer("1").send().await.unwrap();
    client.region_delete().region("1").send().await.unwrap();

    assert_eq!(heads.await.unwrap().len(), 13);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn first_delete_reports_not_found() {
    let claimed = Respond("200 OK", r#"{"self":"/transfers/1","status":"Claimed"}"#);
    let absent = Respond("404 Not Found", NOT_FOUND);
    let (client, heads) =
        start_server([CloseConnection, Respond("409 Conflict", NOT_OPEN), claimed, CloseConnection, absent]).await;

    let too_late = client.transfer_delete().transfer("1").send().await;
    let unknown = client.submission_delete().submission("1").approved(true).send().await;

    assert_eq!(too_late.rejection(), (409, "transfer.not-open".to_owned()));
    assert_eq!(unknown.rejection(), (404, "resource.not-found".to_owned()), "the response contains the decision");
    let heads = heads.await.unwrap();
    assert!(heads[2].starts_with("GET /transfers/1 ") && header(&heads[2], "x-api-key") == Some("a key"), "{}", heads[2]);
    let operations = operations();
    let others = operations.iter().filter(|operation| operation.method == "DELETE" && !operation.declares(204));
    assert_eq!(others.map(|operation| operation.id.as_str()).collect::<Vec<_>>(), ["submission_delete"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refused_connection_does_not_count_as_lost_response() {
    let socket = refusing_socket();
    let client = Client::connect(&format!("http://{}", socket.local_addr().unwrap()), "a key").unwrap();
    let heads = tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(50)).await;
        serve(socket.listen(8).unwrap(), vec![Respond("404 Not Found", NOT_FOUND)]).await
    });

    assert_eq!(client.region_delete().region("1").send().await.rejection(), (404, "resource.not-found".to_owned()));

    assert_eq!(heads.await.unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rate_limited_request_does_not_count_as_lost_response() {
    let (client, heads) = start_server([Respond("429 Too Many Requests", BUSY), Respond("404 Not Found", NOT_FOUND)]).await;

    assert_eq!(client.region_delete().region("1").send().await.rejection(), (404, "resource.not-found".to_owned()));

    assert_eq!(heads.await.unwrap().len(), 2);
}

/// Starts a proxy that forwards the first request and drops its response. Returns its address.
async fn drop_first_response(server: SocketAddr) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let mut is_first = true;
        while let Ok((mut client, _)) = listener.accept().await {
            let (_, request) = read_message(&mut client).await;
            let mut way = TcpStream::connect(server).await.unwrap();
            way.write_all(&request).await.unwrap();
            let (_, response) = read_message(&mut way).await;
            if !std::mem::take(&mut is_first) {
                client.write_all(&response).await.unwrap();
            }
        }
    });
    address
}

async fn lost_response_is_retried_without_second_effect(app: TestApp) {
    let (kofi, ama) = (app.sign_up("kofi").await, app.sign_up("ama").await);
    let event = app.create_listed_event(&app.create_host(&kofi).await, &[section("Floor", 20.0, 10)]).await;
    let server = app.address.trim_start_matches("http://").parse().unwrap();
    let client = Client::connect(&format!("http://{}", drop_first_response(server).await), &ama.key).unwrap();

    let items = std::collections::HashMap::from([(event.sections[0].clone(), 2)]);
    let order = client.order_create().body_map(|body| body.items(items)).send().await.unwrap();

    assert_eq!(order.headers()["idempotency-replayed"], "true");
    let orders = ama.client.account_order_list().number(&ama.number).send().await.unwrap();
    assert_eq!((orders.total, &orders.entries[0].number), (1, &order.number));
    assert_eq!(app.sold_and_reserved(&event.sections[0]).await, (0, 2), "reserved once");
}

async fn lost_response_counts_code_attempt_once(app: TestApp) {
    let ama = app.sign_up("ama").await;
    let server = app.address.trim_start_matches("http://").parse().unwrap();
    let before = async || {
        let address = format!("http://{}", drop_first_response(server).await);
        Client::connect(&address, &app.public_key).unwrap()
    };
    let (verification, code) = app.request_code("/verifications", "ama@example.com", 1).await;
    let (first, second) = (before().await, before().await);
    let verify = first.verification_update().verification(verification.rsplit('/').next().unwrap());
    let verified = verify.body_map(|body| body.code(code)).send().await.unwrap();
    let (reset, code) = app.request_code("/resets", "ama@example.com", 2).await;
    let change = second.reset_update().reset(reset.rsplit('/').next().unwrap());
    let changed = change.body_map(|body| body.code(code).password("another horse battery")).send().await.unwrap();

    for headers in [verified.headers(), changed.headers()] {
        assert_eq!(headers["idempotency-replayed"], "true");
    }
    assert_eq!([app.verification_status(&verification).await, app.verification_status(&reset).await], ["Verified", "Used"]);
    assert!(app.sign_in(&ama.username, "another horse battery").await.is_ok());
}

async fn unchanged_resource_is_not_an_error(app: TestApp) {
    let region = app.create_region().await;
    let id = region.rsplit('/').next().unwrap();
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
    let past_end = Respond("404 Not Found", r#"{"error":"There is no such page.","code":"page.past-end"}"#);
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

async fn update_requires_current_etag(app: TestApp) {
    let region = app.create_region().await;
    let id = region.rsplit('/').next().unwrap();
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

#[tokio::test]
async fn failed_connection_is_source_of_error() {
    let client = ClientBuilder::new("http://127.0.0.1:1", "a key").retries(RetryPolicy::NONE).build().unwrap();
    let error = ApiError::from(client.time_get().send().await.unwrap_err());
    assert_eq!((error.status(), error.request_id(), error.to_string().as_str()), (None, None, "the request failed"));
    assert!(std::error::Error::source(&error).is_some());
    assert!(ClientBuilder::new("http://127.0.0.1:1", "a\nkey").build().is_err());
}
