//! Requests with an `Idempotency-Key`: each has one effect and one response.

mod each;

use std::sync::Arc;
use std::time::Duration;

use boxoffice::kernel::idempotency::{self, ResponseCipher, StoredResponse};
use boxoffice::kernel::types::secret;
use boxoffice::server::RunningApp;
use boxoffice::state::App;
use boxoffice_http::traces::Tracer;
use futures::future::{Either, join, join_all, select};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection};

use crate::races::count_statuses;
use crate::support::{
    ANY_PORT, DAY, PASSWORD, Request, Response, TestApp, User, card_payment, id_of, partial_card_payment, rejection, section,
    test_on, wait_until,
};

/// Builds a zone. Names of zones are not unique.
fn zone() -> Value {
    json!({ "name": "Sidebar", "width": 300, "height": 250 })
}

/// Sends a request that creates a zone, always with the same idempotency key.
async fn make_zone(app: &TestApp, key: &str, body: Value) -> Response {
    let request = app.request("POST", "/zones").key(&app.staff.key).header("Idempotency-Key", key);
    request.json(&body).send().await
}

/// Returns whether the response is a replay.
fn is_replayed(response: &Response) -> bool {
    response.header("idempotency-replayed") == "true"
}

/// Pays for an order with this `Idempotency-Key`.
async fn pay(app: &TestApp, user: &User, order: &str, key: &str, payment: Value) -> Response {
    let request = app.request("POST", &format!("{order}/payments")).key(&user.key).header("Idempotency-Key", key);
    request.json(&payment).send().await
}

#[test_on(sqlite, postgres)]
async fn equivalent_requests_are_replayed(app: TestApp) {
    let first = make_zone(&app, "one", zone()).await;

    let text = r#"{ "width": 300, "name": "Sidebar", "description": null,
        "height": 250 }"#;
    let reordered = app.request("POST", "/v3/zones").key(&app.staff.key).header("Idempotency-Key", "one");
    let same = make_zone(&app, "one", zone()).await;
    let other = reordered.header("Content-Type", "application/json").body(text).send().await;

    assert_eq!((first.status, is_replayed(&first)), (201, false));
    for again in [&same, &other] {
        assert_eq!((again.status, is_replayed(again), &again.body), (201, true, &first.body), "{again:?}");
        assert_eq!(again.header("location"), first.header("location"));
        assert!(again.header("access-control-expose-headers").contains("idempotency-replayed"));
    }
    assert_eq!(app.scalar::<i64>("select count(*) from zones").await, 1);
}

#[test_on(sqlite, postgres)]
async fn idempotency_key_belongs_to_caller(app: TestApp) {
    let lookup = async |key: &str, user: &str| {
        let body = json!({ "identification": user });
        let request = app.request("POST", "/lookups").key(key).header("Idempotency-Key", "one");
        request.json(&body).send().await
    };

    let first = lookup(&app.public_key, "ama").await;
    let of_another = lookup(&app.staff.key, "kofi").await;

    assert_eq!((first.status, of_another.status), (200, 200));
    assert_eq!(of_another.body["identification"], "kofi");
    assert!(!is_replayed(&of_another));
}

/// Stored responses are encrypted with the API key: replacing the owner in the database gives no access.
#[test_on(sqlite, postgres)]
async fn stored_response_belongs_to_api_key(app: TestApp) {
    let ama = app.sign_up("ama").await;
    let look_up = async |key: &str| {
        let request = app.request("POST", "/lookups").key(key).header("Idempotency-Key", "one");
        request.json(&json!({ "identification": "ama" })).send().await
    };
    let first = look_up(&ama.key).await;
    let forged = secret::api_key();
    let mut tx = app.state.db.begin().await.unwrap();
    let update = tx.query("update api_keys set hash = $1 where hash = $2");
    assert_eq!(update.bind(secret::hash(&forged)).bind(secret::hash(&ama.key)).rows_affected().await.unwrap(), 1);
    tx.commit().await.unwrap();

    let stolen = look_up(&forged).await;

    assert_eq!(first.status, 200, "{}", first.body);
    assert_eq!(rejection(&stolen), (422, "idempotency.other-request"), "{}", stolen.body);
}

#[test_on(sqlite, postgres)]
async fn validates_idempotency_key(app: TestApp) {
    for wrong in ["", "two words", &"x".repeat(256)] {
        let rejected = make_zone(&app, wrong, zone()).await;
        assert_eq!(rejected.invalid_arguments(), ["Idempotency-Key"], "{wrong}");
    }
    assert_eq!(make_zone(&app, &"x".repeat(255), zone()).await.status, 201);
}

#[test_on(sqlite, postgres)]
async fn rejection_is_replayed(app: TestApp) {
    let (ama, event, order) = app.create_order(2).await;
    let esi = app.sign_up("esi").await;
    let place = async |key: &str| {
        let request = app.request("POST", "/orders").key(&esi.key).header("Idempotency-Key", key);
        request.json(&json!({ "items": { event.sections[0].as_str(): 1 } })).send().await
    };

    let rejected = place("one").await;
    assert_eq!(app.cancel_order(&ama.key, &order).await.status, 200);
    let (again, anew) = (place("one").await, place("two").await);

    assert_eq!(rejection(&rejected), (409, "section.sold-out"));
    assert_eq!((rejection(&again), &again.body, is_replayed(&again)), (rejection(&rejected), &rejected.body, true));
    assert_eq!((anew.status, is_replayed(&anew)), (201, false));
}

#[test_on(sqlite, postgres)]
async fn declined_payment_is_replayed(app: TestApp) {
    let (ama, _, order) = app.create_order(2).await;
    let declined = json!({ "method": "card", "token": "tok_decline" });

    let first = pay(&app, &ama, &order, "one", declined.clone()).await;
    let again = pay(&app, &ama, &order, "one", declined).await;

    assert_eq!((rejection(&first), is_replayed(&first)), ((402, "payment.declined"), false));
    assert_eq!((rejection(&again), is_replayed(&again)), ((402, "payment.declined"), true));
    assert_eq!(app.payments(&order).await, [(203.98, "Declined".to_owned())]);
}

#[test_on(sqlite, postgres)]
async fn gateway_failure_can_be_retried(app: TestApp) {
    let (ama, _, order) = app.create_order(2).await;
    app.gateway.fail_after_charge(true);
    let failed = pay(&app, &ama, &order, "one", card_payment()).await;
    app.gateway.fail_after_charge(false);

    let paid = pay(&app, &ama, &order, "one", card_payment()).await;
    let again = pay(&app, &ama, &order, "one", card_payment()).await;

    assert_eq!(rejection(&failed), (502, "payment.gateway"));
    assert_eq!((paid.status, is_replayed(&paid)), (201, false));
    assert_eq!((again.status, is_replayed(&again), &again.body), (201, true, &paid.body));
    assert_eq!(app.gateway.total(), 203.98);
}

#[test_on(sqlite, postgres)]
async fn response_is_stored_for_a_day(app: TestApp) {
    let first = make_zone(&app, "one", zone()).await;
    app.advance_clock(DAY - Duration::from_secs(60));
    let within = make_zone(&app, "one", zone()).await;
    assert_eq!(idempotency::delete_expired(&app.state.kernel, app.state.clock.now()).await.unwrap(), 0);
    app.advance_clock(Duration::from_secs(60));

    let after = make_zone(&app, "one", json!({ "name": "Another", "width": 300, "height": 250 })).await;

    assert_eq!((is_replayed(&within), &within.body), (true, &first.body));
    assert_eq!((after.status, is_replayed(&after), after.body["name"].as_str()), (201, false, Some("Another")));
    app.advance_clock(DAY);
    assert_eq!(idempotency::delete_expired(&app.state.kernel, app.state.clock.now()).await.unwrap(), 1);
    assert_eq!(app.scalar::<i64>("select count(*) from idempotency").await, 0);
}

#[test_on(sqlite, postgres)]
async fn stored_response_contains_no_secret(app: TestApp) {
    app.sign_up("ama").await;
    let log_in = || app.request("POST", "/sessions").header("Idempotency-Key", "a-key-of-my-own");
    let body = json!({ "identification": "ama", "password": PASSWORD });
    let session = log_in().json(&body).send().await;

    let again = log_in().json(&body).send().await;

    let key = session.body["key"].as_str().unwrap();
    assert_eq!((again.status, &again.body), (201, &session.body), "the key, too, is in the answer once more");
    assert_eq!(app.get(key, "/sessions/active").await.status, 200);
    // Plain text against which passwords could be tried offline.
    let action = ["POST", "/sessions", "{}", &body.to_string()];
    let plain = action.iter().fold(Sha256::new(), |hash, part| hash.chain_update(part.len().to_be_bytes()).chain_update(part));
    let plain = secret::hex(&plain.finalize());
    let mut reader = app.state.db.read().await.unwrap();
    // The client's earlier requests have stored responses, too.
    let ours =
        reader.query("select hash, fingerprint, answer from idempotency where hash = $1").bind(secret::hash("a-key-of-my-own"));
    let kept: Vec<(String, String, Vec<u8>)> = ours.all().await.unwrap();
    let (hash, fingerprint, response) = &kept[0];
    let shown = format!("{hash} {fingerprint} {}", String::from_utf8_lossy(response));
    for secret in [key, "a-key-of-my-own", PASSWORD, "ama@example.com", "session", &plain] {
        assert!(!shown.contains(secret), "{secret}");
    }
    drop(reader);
    app.request("POST", "/sessions").header("Idempotency-Key", "another").json(&body).send().await;
    let all = app.scalar::<i64>("select count(*) from idempotency").await;
    assert_eq!(
        app.scalar::<i64>("select count(distinct fingerprint) from idempotency").await,
        all,
        "of one request under two keys"
    );
}

/// More requests than the database has connections.
#[test_on(sqlite, postgres)]
async fn different_request_with_same_key_is_rejected(app: TestApp) {
    let keys: Vec<String> = (0..40).map(|number| format!("key-{number}")).collect();
    let created = join_all(keys.iter().map(|key| make_zone(&app, key, zone()))).await;
    let other = json!({ "name": "Another", "width": 300, "height": 250 });

    let rejected = join_all(keys.iter().map(|key| make_zone(&app, key, other.clone()))).await;

    assert_eq!((count_statuses(&created, [201]), count_statuses(&rejected, [422])), ([40], [40]));
    assert_eq!(app.scalar::<i64>("select count(*) from zones").await, 40);
}

#[test_on(sqlite, postgres)]
async fn duplicate_on_second_server_has_one_effect(app: TestApp) {
    let second_server = app.start_second_server(app.state.settings.clone()).await;
    for round in 0..8 {
        let key = format!("round-{round}");
        let send = |request: Request| request.key(&app.staff.key).header("Idempotency-Key", &key).json(&zone()).send();
        let here = send(app.request("POST", "/zones"));
        let there = send(app.request("POST", "/zones").at(second_server.address));

        let (here, there) = join(here, there).await;

        let responses = [&here, &there];
        assert!(responses.iter().any(|response| response.status == 201 && !is_replayed(response)), "{here:?} {there:?}");
        let created = |response: &&&Response| response.status == 201;
        let uris: Vec<&Value> = responses.iter().filter(created).map(|response| &response.body["self"]).collect();
        assert!(uris.iter().all(|uri| *uri == uris[0]), "{here:?} {there:?}");
        let others = responses.iter().filter(|response| response.status != 201);
        assert!(others.into_iter().all(|response| response.code() == "idempotency.under-way"), "{here:?} {there:?}");
        assert_eq!(app.scalar::<i64>("select count(*) from zones").await, round + 1);
    }
    second_server.stop().await;
}

/// Sends two requests with the same key at once, each to another server. Both find no earlier one, and then claim the key.
async fn claim_twice(app: &TestApp, first: Request, second: Request) -> [Response; 2] {
    app.stop_jobs().await;
    let mut lock = app.state.db.begin().await.unwrap();
    lock.query("lock table idempotency in exclusive mode").execute().await.unwrap();
    let send = |request: Request| request.header("Idempotency-Key", "one").send();
    let (first, second, ()) = tokio::join!(send(first), send(second), app.commit_when_awaited(lock, 2));
    [first, second]
}

#[test_on(two_servers)]
async fn duplicate_that_waits_for_claim_is_replayed(app: TestApp) {
    let [ama, esi, kofi] = [app.sign_up("ama").await, app.sign_up("esi").await, app.sign_up("kofi").await];
    let event = app.create_listed_event(&app.create_host(&kofi).await, &[section("Floor", 20.0, 2)]).await;
    let items = |tickets: i64| json!({ "items": { event.sections[0].as_str(): tickets } });
    // In a transaction of its own, in a batch, rejected in a batch, and rejected without a transaction.
    for (path, user, body, expected) in [
        ("/zones", &app.staff, zone(), (201, "")),
        ("/orders", &ama, items(2), (201, "")),
        ("/orders", &esi, items(1), (409, "section.sold-out")),
        ("/sessions", &kofi, json!({ "identification": "kofi", "password": "wrong" }), (401, "session.wrong-password")),
    ] {
        let request = || app.request("POST", path).key(&user.key).json(&body);

        let responses = claim_twice(&app, request(), request()).await;

        let [first, second] = &responses;
        assert_eq!((rejection(first), rejection(second)), (expected, expected), "{path}: {first:?} {second:?}");
        assert_eq!(first.body, second.body);
        assert_eq!(responses.iter().filter(|response| is_replayed(response)).count(), 1, "{path}: {first:?} {second:?}");
    }
    assert_eq!(app.scalar::<i64>("select count(*) from zones").await, 1);
    assert_eq!(app.sold_and_reserved(&event.sections[0]).await, (0, 2));
    let records = "select count(*) from audit where operation in ('zone_create', 'order_create')";
    assert_eq!(app.scalar::<i64>(records).await, 3, "a replay has no record");
}

#[test_on(two_servers)]
async fn different_request_that_waits_for_claim_is_rejected(app: TestApp) {
    let request = |width: i64| {
        let zone = json!({ "name": "Sidebar", "width": width, "height": 250 });
        app.request("POST", "/zones").key(&app.staff.key).json(&zone)
    };

    let audited = async || app.scalar::<i64>("select count(*) from audit where operation = 'zone_create'").await;
    let before = audited().await;

    let responses = claim_twice(&app, request(300), request(400)).await;

    assert_eq!(count_statuses(&responses, [201, 422]), [1, 1]);
    assert_eq!(app.scalar::<i64>("select count(*) from zones").await, 1);
    assert_eq!(audited().await - before, 2, "the success and the rejection");
}

/// A payment stores its response while it holds other locks. A duplicate on another server is in a batch that waits for an order, and
/// must not hold the row of the response meanwhile.
#[test_on(postgres)]
async fn duplicate_in_a_batch_does_not_block_its_payment(app: TestApp) {
    app.stop_jobs().await;
    let (_, ama, event) = app.create_sale(&[section("Floor", 20.0, 10)]).await;
    let mut orders = Vec::new();
    for _ in 0..3 {
        orders.push(ama.order(&event.sections[0], 1).await.unwrap().self_.clone());
    }
    let [paid, other, first] = &orders[..] else { unreachable!() };
    let second = app.start_second_server(app.state.settings.clone()).await;
    let lock = async |order: &str| {
        let mut connection = PgConnection::connect(&app.database_url).await.unwrap();
        let lock = format!("begin; select id from orders where id = {} for update", id_of(order));
        connection.execute(AssertSqlSafe(lock)).await.unwrap();
        connection
    };
    let request = |order: &str| app.request("POST", &format!("{order}/payments")).key(&ama.key).json(&card_payment());
    let at_second = |order: &str| request(order).at(second.server).header("Idempotency-Key", order);
    let [mut of_paid, mut of_other, mut of_first] = [lock(paid).await, lock(other).await, lock(first).await];

    let payment = tokio::spawn(request(paid).header("Idempotency-Key", paid.as_str()).send());
    app.wait_for_lock_waits(1).await;
    // The next batch of the second server waits for the end of this one.
    let before = tokio::spawn(at_second(first).send());
    app.wait_for_lock_waits(2).await;
    let batch = [paid, other].map(|order| tokio::spawn(at_second(order).send()));
    wait_until(async || second.in_flight() == 3).await;
    of_first.execute("commit").await.unwrap();
    app.gateway.wait_for_charges(1).await;
    app.wait_for_lock_waits(2).await;
    of_paid.execute("commit").await.unwrap();
    let payment = payment.await.unwrap();
    of_other.execute("commit").await.unwrap();

    assert_eq!(payment.status, 201, "{}", payment.body);
    let [duplicate, other] = batch;
    assert_eq!([before.await.unwrap().status, other.await.unwrap().status], [201, 201]);
    let duplicate = duplicate.await.unwrap();
    assert!(rejection(&duplicate) == (409, "idempotency.under-way") || is_replayed(&duplicate), "{}", duplicate.body);
    second.stop().await;
}

#[test_on(sqlite, postgres)]
async fn concurrent_duplicates_have_one_effect(app: TestApp) {
    let responses = join_all((0..20).map(|_| make_zone(&app, "one", zone()))).await;

    let [created, under_way] = count_statuses(&responses, [201, 409]);
    assert_eq!(created + under_way, 20);
    assert_eq!(responses.iter().filter(|response| response.status == 201 && !is_replayed(response)).count(), 1);
    assert_eq!(app.scalar::<i64>("select count(*) from zones").await, 1);
    assert!(is_replayed(&make_zone(&app, "one", zone()).await));
}

/// Ama pays at a server whose gateway blocks. She repeats the request with the same key at another server, whose gateway
/// responds.
struct DuplicatePayment {
    ama: User,
    order: String,
    /// The second server's responses: immediately, during the lease of the first request, and after it.
    second: [Response; 3],
    /// The final response of the first server.
    first: Response,
}

/// `meanwhile` runs before the gateway responds to the first server.
async fn pay_twice(app: &TestApp, meanwhile: impl FnOnce()) -> DuplicatePayment {
    let (ama, _, order) = app.create_order(2).await;
    let second =
        App::open(&app.database_url, app.state.settings.clone(), boxoffice_http::log::silent(), Tracer::default()).await.unwrap();
    let server = RunningApp::start(Arc::clone(&second), ANY_PORT).unwrap();
    app.gateway.block();
    let first = pay(app, &ama, &order, "one", partial_card_payment(203.98));
    let again = || {
        let request = app.request("POST", &format!("{order}/payments")).at(server.address()).key(&ama.key);
        request.header("Idempotency-Key", "one").json(&partial_card_payment(203.98)).send()
    };

    let then = async {
        app.gateway.wait_for_charges(1).await;
        let at_once = again().await;
        let advance = |time| {
            app.advance_clock(time);
            second.clock.advance(time);
        };
        advance(Duration::from_secs(150));
        let within_the_lease = again().await;
        advance(Duration::from_secs(30));
        // A job abandons the first payment and undoes the charge.
        app.expire_due().await;
        let anew = again().await;
        meanwhile();
        app.gateway.unblock();
        [at_once, within_the_lease, anew]
    };
    let (first, second) = join(first, then).await;
    server.stop().await.unwrap();
    DuplicatePayment { ama, order, second, first }
}

impl DuplicatePayment {
    /// Checks that the second server's payment counts, and that its response is replayed.
    async fn check(&self, app: &TestApp) {
        let [at_once, within_the_lease, anew] = &self.second;
        assert_eq!(rejection(at_once), (409, "idempotency.under-way"));
        assert_eq!(rejection(within_the_lease), (409, "idempotency.under-way"), "longer than a payment may be pending");
        assert_eq!((anew.status, is_replayed(anew)), (201, false), "{anew:?}");
        let replayed = pay(app, &self.ama, &self.order, "one", partial_card_payment(203.98)).await;
        assert_eq!((replayed.status, is_replayed(&replayed), &replayed.body), (201, true, &anew.body));
        let confirmed = app.payments(&self.order).await.into_iter().filter(|(_, status)| status == "Confirmed").count();
        assert_eq!((app.read(&self.order).await["status"].as_str(), confirmed), (Some("Fulfilled"), 1));
    }
}

#[test_on(sqlite, postgres)]
async fn payment_of_crashed_server_is_repeated(app: TestApp) {
    let paid = pay_twice(&app, || ()).await;

    assert_eq!(rejection(&paid.first), (409, "order.not-open"), "the late payment is refunded");
    paid.check(&app).await;
}

#[test_on(sqlite, postgres)]
async fn late_failure_keeps_stored_response(app: TestApp) {
    let paid = pay_twice(&app, || app.gateway.fail_after_charge(true)).await;
    app.gateway.fail_after_charge(false);

    assert_eq!(rejection(&paid.first), (502, "payment.gateway"));
    paid.check(&app).await;
}

#[test_on(sqlite, postgres)]
async fn change_without_stored_response_is_rolled_back(app: TestApp) {
    app.allow_server_errors();
    let kept = make_zone(&app, "one", zone()).await;
    app.execute_sql("create unique index one_answer on idempotency (key_id) where answer is not null").await;

    let failed = make_zone(&app, "two", zone()).await;

    assert_eq!((kept.status, failed.status), (201, 500));
    assert_eq!(app.scalar::<i64>("select count(*) from zones").await, 1);
    assert_eq!(app.scalar::<i64>("select count(*) from idempotency").await, 1);
    app.execute_sql("drop index one_answer").await;
    assert_eq!(make_zone(&app, "two", zone()).await.status, 201);
}

/// Sends a request twice at once, while the test holds a lock that its change needs. Returns the response to the one that is
/// rejected as in progress, and to the other.
async fn send_twice(app: &TestApp, send: impl AsyncFn() -> Response) -> (Response, Response) {
    let lock = app.begin_with_lock("lock table idempotency in exclusive mode").await;
    match select(Box::pin(send()), Box::pin(send())).await {
        Either::Left((rejected, other)) | Either::Right((rejected, other)) => {
            drop(lock);
            (rejected, other.await)
        }
    }
}

#[test]
fn decrypts_response_for_same_request_only() {
    let response = json!({ "status": 201, "headers": [], "body": r#"{"key":"secret"}"# });
    let response: StoredResponse = serde_json::from_value(response).unwrap();
    let encrypted = ResponseCipher::new("api", "once").unwrap().encrypt(&response, "request").unwrap();

    assert!(!String::from_utf8_lossy(&encrypted).contains("secret"));
    let decrypted = ResponseCipher::new("api", "once").unwrap().decrypt(&encrypted, "request").unwrap();
    assert_eq!(json!(decrypted), json!(response));
    for (api, once, request) in [("other", "once", "request"), ("api", "twice", "request"), ("api", "once", "another")] {
        assert!(ResponseCipher::new(api, once).unwrap().decrypt(&encrypted, request).is_err());
    }
    assert!(ResponseCipher::new("api", "once").unwrap().decrypt(&encrypted[..5], "request").is_err());
}

#[test]
fn fingerprint_depends_on_keys_and_request() {
    let fingerprint = |api, once, parts: &[&[u8]]| ResponseCipher::new(api, once).unwrap().fingerprint(parts);

    let first = fingerprint("api", "once", &[b"POST", b"/zones"]);

    assert_eq!(first, fingerprint("api", "once", &[b"POST", b"/zones"]));
    for (api, once) in [("other", "once"), ("api", "twice")] {
        assert_ne!(first, fingerprint(api, once, &[b"POST", b"/zones"]));
    }
    assert_ne!(first, fingerprint("api", "once", &[b"POST/", b"zones"]));
}
