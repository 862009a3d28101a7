//! Administrators of hosts.

use futures::future::{join, join_all};
use serde_json::{Value, json};

use crate::advertisements::{advertisement_body, create as create_advertisement};
use crate::support::{Call, Response, TestApp, User, rejection, section, test_on};

async fn add(app: &TestApp, key: &str, host: &str, account: &str) -> Response {
    app.post(key, &format!("{host}/administrators"), json!({ "account": account })).await
}

async fn remove(app: &TestApp, key: &str, host: &str, account: &str) -> Response {
    app.delete(key, &format!("{host}/administrators?account={account}")).await
}

/// Returns the account numbers of a host's administrators.
async fn administrators(app: &TestApp, host: &str) -> Vec<String> {
    app.list(&app.staff.key, &format!("{host}/administrators"), "number").await
}

#[test_on(sqlite, postgres)]
async fn administrator_adds_another(app: TestApp) {
    let (kofi, ama) = (app.sign_up("kofi").await, app.sign_up("ama").await);
    let host = app.create_host(&kofi).await;
    assert_eq!(app.put(&ama.key, &host.uri, json!({ "phone": "1" })).await.status, 403);

    let added = add(&app, &kofi.key, &host.uri, &ama.number).await;

    let account = format!("/accounts/{}", ama.number);
    assert_eq!((added.status, added.header("location")), (201, account.as_str()));
    assert_eq!(added.body, app.read(&account).await);
    assert_eq!(administrators(&app, &host.uri).await, [kofi.number.clone(), ama.number.clone()]);
    // She has the permissions of an administrator.
    assert_eq!(app.put(&ama.key, &host.uri, json!({ "phone": "1" })).await.status, 200);
    assert_eq!(app.public_client.host_list().account(ama.number.as_str()).send().await.unwrap().total, 1);
    let draft = app.create_draft(&host).await;
    assert_eq!(app.get(&ama.key, &draft.uri).await.status, 200);
    let yaw = app.sign_up("yaw").await;
    assert_eq!(add(&app, &ama.key, &host.uri, &yaw.number).await.status, 201);
}

#[test_on(sqlite, postgres)]
async fn lists_administrators_in_pages(app: TestApp) {
    let (ama, kofi, yaw) = (app.sign_up("ama").await, app.sign_up("kofi").await, app.sign_up("yaw").await);
    let uri = app.create_host(&kofi).await.uri;
    for user in [&yaw, &ama] {
        add(&app, &kofi.key, &uri, &user.number).await;
    }

    assert_eq!(administrators(&app, &uri).await, [&ama, &kofi, &yaw].map(|user| user.number.clone()));
    let second = app.get(&yaw.key, &format!("{uri}/administrators?records=2&page=2")).await;
    assert_eq!((second.status, &second.body["total"], &second.body["records"]), (200, &json!(3), &json!(2)));
    assert_eq!(second.body["entries"], json!([app.read(&format!("/accounts/{}", yaw.number)).await]));
}

#[test_on(sqlite, postgres)]
async fn account_is_added_once(app: TestApp) {
    let (kofi, ama) = (app.sign_up("kofi").await, app.sign_up("ama").await);
    let uri = app.create_host(&kofi).await.uri;

    let unknown = add(&app, &kofi.key, &uri, "GH-00000000").await;
    let himself = add(&app, &kofi.key, &uri, &kofi.number).await;
    let both = join_all((0..4).map(|_| add(&app, &kofi.key, &uri, &ama.number))).await;

    assert_eq!(unknown.invalid_arguments(), ["account"]);
    assert_eq!(rejection(&himself), (409, "administrator.taken"));
    assert_eq!(both.iter().filter(|response| response.status == 201).count(), 1);
    assert_eq!(both.iter().filter(|response| rejection(response) == (409, "administrator.taken")).count(), 3);
    assert_eq!(administrators(&app, &uri).await, [kofi.number, ama.number]);
}

#[test_on(sqlite, postgres)]
async fn only_administrators_manage_administrators(app: TestApp) {
    let (kofi, ama) = (app.sign_up("kofi").await, app.sign_up("ama").await);
    let uri = app.create_host(&kofi).await.uri;

    // Staff are rejected too, before the account is looked up.
    for key in [&ama.key, &app.staff.key] {
        assert_eq!(rejection(&add(&app, key, &uri, "GH-00000000").await), (403, "resource.not-yours"));
        assert_eq!(rejection(&remove(&app, key, &uri, "GH-00000000").await), (403, "resource.not-yours"));
    }

    // Staff who administer the host may do it.
    assert_eq!(add(&app, &kofi.key, &uri, &app.staff.number).await.status, 201);
    assert_eq!(add(&app, &app.staff.key, &uri, &ama.number).await.status, 201);
}

#[test_on(sqlite, postgres)]
async fn removed_administrator_loses_permissions(app: TestApp) {
    let (kofi, draft) = app.sign_up_host_with_draft("kofi").await;
    let ama = app.sign_up("ama").await;
    add(&app, &kofi.key, &draft.host.uri, &ama.number).await;

    let removed = remove(&app, &ama.key, &draft.host.uri, &kofi.number).await;

    assert_eq!((removed.status, removed.body), (204, Value::Null));
    assert_eq!(administrators(&app, &draft.host.uri).await.join(" "), ama.number);
    assert_eq!(rejection(&app.put(&kofi.key, &draft.host.uri, json!({ "phone": "1" })).await), (403, "resource.not-yours"));
    assert_eq!(app.get(&kofi.key, &draft.uri).await.status, 403);
    assert_eq!(app.public_client.host_list().account(kofi.number.as_str()).send().await.unwrap().total, 0);
    for account in [&kofi.number, "GH-00000000"] {
        assert_eq!(rejection(&remove(&app, &ama.key, &draft.host.uri, account).await), (404, "resource.not-found"), "{account}");
    }
    assert_eq!(add(&app, &ama.key, &draft.host.uri, &kofi.number).await.status, 201, "he can come back");
}

#[test_on(sqlite, postgres)]
async fn last_administrator_cannot_be_removed(app: TestApp) {
    let (kofi, ama) = (app.sign_up("kofi").await, app.sign_up("ama").await);
    let uri = app.create_host(&kofi).await.uri;

    assert_eq!(rejection(&remove(&app, &kofi.key, &uri, &kofi.number).await), (409, "administrator.last"));
    assert_eq!(administrators(&app, &uri).await.join(" "), kofi.number);
    assert_eq!(app.put(&kofi.key, &uri, json!({ "phone": "1" })).await.status, 200);

    add(&app, &kofi.key, &uri, &ama.number).await;
    assert_eq!(remove(&app, &kofi.key, &uri, &kofi.number).await.status, 204, "now he may go");
    assert_eq!(rejection(&remove(&app, &ama.key, &uri, &ama.number).await), (409, "administrator.last"));

    let yaw = app.sign_up("yaw").await;
    add(&app, &ama.key, &uri, &yaw.number).await;
    let toggle = async |user: &User| app.post_empty(&app.staff.key, &format!("/accounts/{}/toggles", user.number)).await.status;
    assert_eq!(toggle(&yaw).await, 200);
    assert_eq!(rejection(&remove(&app, &ama.key, &uri, &ama.number).await), (409, "administrator.last"), "he can't act for it");
    app.execute("update accounts set activated = true, guest = true where number = $1", yaw.number.clone()).await;
    assert_eq!(
        rejection(&remove(&app, &ama.key, &uri, &ama.number).await),
        (409, "administrator.last"),
        "nobody has its password"
    );
    assert_eq!(toggle(&ama).await, 200);
    assert_eq!(add(&app, &app.staff.key, &uri, &kofi.number).await.status, 201, "nobody else can");
}

#[test_on(sqlite, postgres, two_servers)]
async fn concurrent_mutual_removals_leave_one_administrator(app: TestApp) {
    let (kofi, ama) = (app.sign_up("kofi").await, app.sign_up("ama").await);
    for _ in 0..5 {
        let uri = app.create_host(&kofi).await.uri;
        add(&app, &kofi.key, &uri, &ama.number).await;

        let his = remove(&app, &kofi.key, &uri, &ama.number);
        let (his, hers) = join(his, remove(&app, &ama.key, &uri, &kofi.number)).await;

        let mut statuses = [his.status, hers.status];
        statuses.sort_unstable();
        assert_eq!(statuses, [204, 403], "a removed administrator can't remove others");
        assert_eq!(administrators(&app, &uri).await.len(), 1);
    }
}

#[test_on(sqlite, postgres, two_servers)]
async fn concurrent_resignations_leave_one_administrator(app: TestApp) {
    let kofi = app.sign_up("kofi").await;
    let uri = app.create_host(&kofi).await.uri;
    let mut all = vec![kofi];
    for name in ["ama", "yaw", "esi"] {
        let user = app.sign_up(name).await;
        add(&app, &all[0].key, &uri, &user.number).await;
        all.push(user);
    }

    let left = join_all(all.iter().map(|user| remove(&app, &user.key, &uri, &user.number))).await;

    assert_eq!(left.iter().filter(|response| response.status == 204).count(), 3);
    assert_eq!(left.iter().filter(|response| rejection(response) == (409, "administrator.last")).count(), 1);
    assert_eq!(administrators(&app, &uri).await.len(), 1);
}

/// If the resignation is first, the deletion leaves the host without an administrator, as any deletion of the last one.
#[test_on(sqlite, postgres, two_servers)]
async fn concurrent_deletion_and_resignation_are_as_one_after_the_other(app: TestApp) {
    let ama = app.sign_up("ama").await;
    for round in 0..5 {
        let kofi = app.sign_up(&format!("kofi{round}")).await;
        let uri = app.create_host(&kofi).await.uri;
        add(&app, &kofi.key, &uri, &ama.number).await;

        let resignation = remove(&app, &ama.key, &uri, &ama.number);
        let (removed, resigned) = join(app.delete(&app.staff.key, &format!("/accounts/{}", kofi.number)), resignation).await;

        assert_eq!(removed.status, 204, "{}", removed.body);
        match rejection(&resigned) {
            (204, _) => {
                assert_eq!(administrators(&app, &uri).await, [""; 0]);
                assert_eq!(add(&app, &app.staff.key, &uri, &ama.number).await.status, 201, "staff appoint another one");
            }
            (409, "administrator.last") => assert_eq!(administrators(&app, &uri).await.join(" "), ama.number),
            other => panic!("{other:?}"),
        }
    }
}

#[test_on(sqlite, postgres)]
async fn staff_appoint_administrator_if_none_is_left(app: TestApp) {
    let (kofi, ama, yaw) = (app.sign_up("kofi").await, app.sign_up("ama").await, app.sign_up("yaw").await);
    let uri = app.create_host(&kofi).await.uri;
    let removed = app.delete(&kofi.key, &format!("/accounts/{}", kofi.number)).await;
    assert_eq!((removed.status, administrators(&app, &uri).await.len()), (204, 0));

    let herself = add(&app, &ama.key, &uri, &ama.number).await;
    let unknown = add(&app, &app.staff.key, &uri, "GH-00000000").await;
    let appointed = add(&app, &app.staff.key, &uri, &ama.number).await;
    let again = add(&app, &app.staff.key, &uri, &yaw.number).await;

    assert_eq!(rejection(&herself), (403, "resource.not-yours"));
    assert_eq!(unknown.invalid_arguments(), ["account"]);
    assert_eq!(appointed.status, 201, "{}", appointed.body);
    assert_eq!(rejection(&again), (403, "resource.not-yours"), "now it is for her to say");
    assert_eq!(administrators(&app, &uri).await.join(" "), ama.number);
    assert_eq!(add(&app, &ama.key, &uri, &yaw.number).await.status, 201);
}

/// Sends a request of Kofi, and removes him from all hosts' administrators while it waits for rows that a transaction has locked. Requires
/// that it is rejected, and has Ama appoint him again.
async fn assert_rejected_after_removal(app: &TestApp, lock: &'static str, call: &Call, (ama, host): (&User, &str), kofi: &User) {
    let mut removal = app.begin_with_lock(lock).await;
    let remove = "delete from host_administrators where account_id = (select id from accounts where username = 'kofi')";
    removal.query(remove).execute().await.unwrap();

    let (response, ()) = join(call.send(app), app.commit_when_awaited(removal, 1)).await;

    assert_eq!(rejection(&response), (403, "resource.not-yours"), "{} {}: {}", call.method, call.path, response.body);
    assert_eq!(add(app, &ama.key, host, &kofi.number).await.status, 201);
}

#[test_on(sqlite, postgres)]
async fn administrator_who_is_removed_while_a_request_waits_is_rejected(app: TestApp) {
    app.stop_jobs().await;
    let (kofi, ama) = (app.sign_up("kofi").await, app.sign_up("ama").await);
    let host = app.create_host(&kofi).await;
    add(&app, &kofi.key, &host.uri, &ama.number).await;
    let event = app.create_listed_event(&host, &[section("Floor", 20.0, 10)]).await;
    let zone = app.create_zone(300, 250).await;
    let advertisement = create_advertisement(&app, &kofi.key, &advertisement_body("Jazz", &event, &[&zone])).await;
    let advertisement = advertisement.uri();
    let at_event = |path: &str| format!("{}{path}", event.uri);
    let token = app.post(&kofi.key, &at_event("/tokens"), json!({ "sections": [event.sections[0]] })).await;
    let copied = json!({
        "host": host.uri, "title": "Once", "description": "Jazz.", "type": "Standard", "public": true,
        "category": app.create_category().await, "subcategory": "Jazz", "venue": app.create_venue().await,
        "start": "2998-12-20T19:00", "end": "2998-12-20T23:00",
    });

    for (method, path, body) in [
        ("PUT", host.uri.clone(), json!({ "phone": "1" })),
        ("POST", "/events".to_owned(), copied),
        ("PUT", event.uri.clone(), json!({ "description": "Blues." })),
        ("POST", at_event("/copies"), json!({ "title": "Twice", "start": "2998-12-21T19:00" })),
        ("POST", at_event("/sections"), serde_json::to_value(section("Balcony", 30.0, 10)).unwrap()),
        ("PUT", event.sections[0].clone(), json!({ "price": 1 })),
        ("POST", format!("{}/modifiers", event.sections[0]), json!({ "name": "Early bird", "priceDelta": -5 })),
        ("POST", at_event("/tokens"), json!({ "sections": [event.sections[0]] })),
        ("PUT", token.header("location").to_owned(), json!({ "name": "Gate B" })),
        ("POST", at_event("/complimentary-orders"), json!({ "account": ama.number, "items": { event.sections[0].as_str(): 1 } })),
        ("POST", "/advertisements".to_owned(), advertisement_body("Blues", &event, &[&zone])),
        ("PUT", advertisement.to_owned(), json!({ "name": "Blues" })),
        ("POST", format!("{advertisement}/submissions"), Value::Null),
        ("DELETE", advertisement.to_owned(), Value::Null),
        ("POST", at_event("/withdrawals"), Value::Null),
        ("POST", at_event("/cancellations"), Value::Null),
        ("DELETE", event.uri.clone(), Value::Null),
    ] {
        let call = Call::new(&kofi.key, method, path, body);
        assert_rejected_after_removal(&app, "select id from hosts for update", &call, (&ama, &host.uri), &kofi).await;
    }
    assert_eq!(app.sold_and_reserved(&event.sections[0]).await, (0, 0));
}

#[test_on(sqlite, postgres)]
async fn administrator_who_is_removed_while_a_ticket_is_locked_is_rejected(app: TestApp) {
    app.stop_jobs().await;
    let (kofi, ama) = (app.sign_up("kofi").await, app.sign_up("ama").await);
    let host = app.create_host(&kofi).await;
    add(&app, &kofi.key, &host.uri, &ama.number).await;
    let event = app.create_listed_event(&host, &[section("Floor", 0.0, 10)]).await;
    let serials = ama.order_free_tickets(&event.sections[0], 2).await;
    let orders = app.read(&format!("/accounts/{}/orders", ama.number)).await;
    let order = orders["entries"][0]["self"].as_str().unwrap();
    let admitted = app.admit(&kofi.key, &event, [&serials[0]]).await;
    let admission = admitted.body[0]["self"].as_str().unwrap();
    let scans = json!({ "device": "Gate A", "scans": [{ "serial": serials[1], "scanned": "2026-01-01T00:00:00Z" }] });

    for (method, path, body) in [
        ("POST", format!("{order}/returns"), json!({})),
        ("POST", format!("{}/offline-scans", event.uri), scans),
        ("POST", format!("{}/admissions", event.uri), json!({ "serials": [serials[1]] })),
        ("POST", format!("{}/scans", event.uri), json!({ "serials": [serials[1]] })),
        ("DELETE", admission.to_owned(), Value::Null),
    ] {
        let call = Call::new(&kofi.key, method, path, body);
        assert_rejected_after_removal(&app, "select id from tickets for update", &call, (&ama, &host.uri), &kofi).await;
    }
    let statuses: Vec<Value> = app.wallet(&ama).await.iter().map(|ticket| ticket["status"].clone()).collect();
    assert_eq!(statuses, ["Redeemed", "Issued"]);
}
