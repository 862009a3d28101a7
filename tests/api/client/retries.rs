//! When the client sends a request again.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use boxoffice_client::{Error, RetryPolicy};
use futures::TryStreamExt;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use super::{Behavior, LINE, NOT_FOUND, REGION, header, read_message, serve, start_server};
use crate::support::{Client, Rejection, TestApp, id_of, operations, refusing_socket, section, test_on};
use Behavior::{CloseConnection, NeverRespond, Respond, SendLines, TruncateResponse};

const NOT_OPEN: &str = r#"{"error":"This transfer is no longer open.","code":"transfer.not-open"}"#;
const BUSY: &str = r#"{"error":"Try again.","code":"server.unavailable"}"#;

/// Returns the idempotency keys of requests.
fn idempotency_keys(heads: &[String]) -> Vec<&str> {
    heads.iter().map(|head| header(head, "idempotency-key").unwrap_or("none")).collect()
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
async fn waits_until_date() {
    // The clock of the server is wrong.
    let until = "503 Service Unavailable\r\nDate: Wed, 21 Oct 2015 07:28:00 GMT\r\nRetry-After: Wed, 21 Oct 2015 07:28:02 GMT";
    let past = "503 Service Unavailable\r\nRetry-After: Wed, 21 Oct 2015 07:28:00 GMT";
    let endless = "503 Service Unavailable\r\nRetry-After: 18446744073709551615";
    let (client, heads) =
        start_server([Respond(until, BUSY), Respond(past, BUSY), Respond("200 OK", REGION), Respond(endless, BUSY)]).await;
    let started = Instant::now();

    client.region_get().region("1").send().await.unwrap();
    assert!(started.elapsed() >= Duration::from_secs(2), "{:?}", started.elapsed());
    assert_eq!(client.region_get().region("1").send().await.rejection(), (503, "server.unavailable".to_owned()));

    assert_eq!(heads.await.unwrap().len(), 4);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn does_not_retry_without_policy() {
    let (client, _heads) = start_server([CloseConnection, Respond("200 OK", REGION)]).await;
    let client = client.with_retries(RetryPolicy::NONE);

    let lost = client.region_get().region("1").send().await;

    assert!(matches!(lost, Err(Error::CommunicationError(_))), "{lost:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn retried_delete_accepts_not_found() {
    let absent = Respond("404 Not Found", NOT_FOUND);
    let (client, heads) = start_server([CloseConnection, absent.clone(), absent]).await;
    let delete = || client.region_delete().region("1");

    delete().send().await.unwrap();
    assert_eq!(delete().send().await.rejection(), (404, "resource.not-found".to_owned()), "nothing was lost");

    assert_eq!(idempotency_keys(&heads.await.unwrap()), ["none"; 3]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn retries_after_timeout() {
    let (client, heads) = start_server([NeverRespond, Respond("200 OK", REGION)]).await;
    let client = client.with_retries(RetryPolicy { attempt_timeout: Duration::from_secs(2), ..RetryPolicy::default() });

    let read = timeout(Duration::from_secs(30), client.region_get().region("1").send()).await.expect("retried");

    assert_eq!(read.unwrap().name, "Volta");

    assert_eq!(heads.await.unwrap().len(), 2);
    let RetryPolicy { attempt_timeout: attempt, retry_window: total, .. } = RetryPolicy::default();
    assert!(attempt * 3 < total, "by default, too, there is time for a second and third");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn download_may_take_longer_than_timeout() {
    let (complete, stalled) = (SendLines { sent: 6, announced: 6 }, SendLines { sent: 1, announced: 6 });
    let (client, heads) = start_server([complete, stalled, Respond("200 OK", REGION)]).await;
    let client = client.with_retries(RetryPolicy { attempt_timeout: Duration::from_secs(2), ..RetryPolicy::default() });
    let export = async || {
        let response = client.event_order_export_get().event("1").send().await.unwrap();
        response.into_inner().into_inner().try_collect::<Vec<_>>().await.map(|parts| parts.concat())
    };

    assert_eq!(export().await.unwrap(), LINE.repeat(6).as_bytes());
    let stalled = timeout(Duration::from_secs(30), export()).await.expect("ends").unwrap_err();

    assert!(stalled.is_timeout(), "{stalled:?}");
    client.region_get().region("1").send().await.unwrap();
    assert_eq!(heads.await.unwrap().len(), 3, "the caller has received a part, so there is no retry");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reports_timeout_of_last_attempt() {
    let (client, heads) = start_server([NeverRespond, Respond("200 OK", REGION)]).await;
    let client = client.with_retries(RetryPolicy { attempt_timeout: Duration::from_secs(2), ..RetryPolicy::NONE });

    let failed = timeout(Duration::from_secs(30), client.region_get().region("1").send()).await.expect("ends").unwrap_err();

    let Error::CommunicationError(failed) = failed else { panic!("{failed:?}") };
    assert!(failed.is_timeout(), "{failed:?}");
    client.region_get().region("1").send().await.unwrap();
    assert_eq!(heads.await.unwrap().len(), 2);
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

#[test_on(sqlite, postgres)]
async fn lost_response_is_retried_without_second_effect(app: TestApp) {
    let (_, ama, event) = app.create_sale(&[section("Floor", 20.0, 10)]).await;
    let server = app.address.trim_start_matches("http://").parse().unwrap();
    let client = Client::connect(&format!("http://{}", drop_first_response(server).await), &ama.key).unwrap();

    let items = std::collections::HashMap::from([(event.sections[0].clone(), 2)]);
    let order = client.order_create().body_map(|body| body.items(items)).send().await.unwrap();

    assert_eq!(order.headers()["idempotency-replayed"], "true");
    let orders = ama.client.account_order_list().number(&ama.number).send().await.unwrap();
    assert_eq!((orders.total, &orders.entries[0].number), (1, &order.number));
    assert_eq!(app.sold_and_reserved(&event.sections[0]).await, (0, 2), "reserved once");
}

#[test_on(sqlite, postgres)]
async fn lost_response_counts_code_attempt_once(app: TestApp) {
    let ama = app.sign_up("ama").await;
    let server = app.address.trim_start_matches("http://").parse().unwrap();
    let before = async || {
        let address = format!("http://{}", drop_first_response(server).await);
        Client::connect(&address, &app.public_key).unwrap()
    };
    let (verification, code) = app.request_code("/verifications", "ama@example.com", 1).await;
    let (first, second) = (before().await, before().await);
    let verify = first.verification_update().verification(id_of(&verification));
    let verified = verify.body_map(|body| body.code(code)).send().await.unwrap();
    let (reset, code) = app.request_code("/resets", "ama@example.com", 2).await;
    let change = second.reset_update().reset(id_of(&reset));
    let changed = change.body_map(|body| body.code(code).password("another horse battery")).send().await.unwrap();

    for headers in [verified.headers(), changed.headers()] {
        assert_eq!(headers["idempotency-replayed"], "true");
    }
    assert_eq!([app.verification_status(&verification).await, app.verification_status(&reset).await], ["Verified", "Used"]);
    assert!(app.sign_in(&ama.username, "another horse battery").await.is_ok());
}
