//! An account's history of transfers.

use serde_json::{Value, json};

use super::{Fixture, cancel, claim, create_fixture, id, offer, read, reject};
use crate::on_both_databases;
use crate::support::{Rejection, Response, TestApp, User, types};

on_both_databases![lists_sent_and_received_transfers, history_requires_owner];

async fn list(app: &TestApp, user: &User, query: &str) -> Response {
    app.request("GET", &format!("/accounts/{}/transfers{query}", user.number)).key(&user.key).send().await
}

/// Returns the URIs of the transfers on a page.
fn uris(page: &Response) -> Vec<&str> {
    assert_eq!(page.status, 200, "{}", page.body);
    page.body["entries"].as_array().unwrap().iter().map(|transfer| transfer["self"].as_str().unwrap()).collect()
}

async fn lists_sent_and_received_transfers(app: TestApp) {
    let fixture = create_fixture(&app, 2).await;
    let Fixture { kofi, ama, esi, event, serials } = &fixture;
    assert_eq!(list(&app, ama, "").await.body, json!({ "total": 0, "page": 1, "records": 25, "entries": [] }));
    let kofis = kofi.order_free_tickets(&event.sections[0], 1).await;
    let rejected = fixture.offer(&app, &serials[..1]).await;
    reject(&app, esi, &rejected).await;
    let received = offer(&app, &kofi.key, ama, &kofis).await.body["self"].as_str().unwrap().to_owned();
    let cancelled = fixture.offer(&app, serials).await;
    cancel(&app, ama, &cancelled).await;
    let claimed = fixture.offer(&app, &serials[..1]).await;
    claim(&app, esi, &claimed).await;
    let pending = fixture.offer(&app, &serials[1..]).await;

    for (query, expected) in [
        ("", vec![&rejected, &received, &cancelled, &claimed, &pending]),
        ("?direction=sent", vec![&rejected, &cancelled, &claimed, &pending]),
        ("?direction=received", vec![&received]),
        ("?status=Pending", vec![&received, &pending]),
        ("?status=Claimed", vec![&claimed]),
        ("?status=Cancelled", vec![&cancelled]),
        ("?status=Rejected", vec![&rejected]),
        ("?status=Pending&direction=sent", vec![&pending]),
        ("?status=Claimed&direction=received", vec![]),
        ("?records=2", vec![&rejected, &received]),
        ("?records=2&page=2", vec![&cancelled, &claimed]),
        ("?records=2&page=3", vec![&pending]),
    ] {
        let page = list(&app, ama, query).await;
        assert_eq!(uris(&page), expected, "{query}");
    }
    assert_eq!(list(&app, ama, "?records=2&page=2").await.body["total"], 5);
    let all = list(&app, ama, "").await;
    for transfer in all.body["entries"].as_array().unwrap() {
        assert_eq!(transfer, &read(&app, ama, transfer["self"].as_str().unwrap()).await);
    }
    assert_eq!(all.body["entries"][2]["tickets"].as_array().map(Vec::len), Some(2));
    assert_eq!(uris(&list(&app, esi, "?direction=sent").await), [""; 0]);
    assert_eq!(uris(&list(&app, esi, "").await), [&rejected, &cancelled, &claimed, &pending]);
    assert_eq!(uris(&list(&app, kofi, "").await), [&received]);
}

async fn history_requires_owner(app: TestApp) {
    let fixture = create_fixture(&app, 1).await;
    let uri = fixture.offer(&app, &fixture.serials).await;
    let path = format!("/accounts/{}/transfers", fixture.ama.number);

    let his = fixture.esi.client.account_transfer_list().number(fixture.ama.number.as_str()).send().await;
    assert_eq!(his.rejection(), (403, "resource.not-yours".to_owned()));
    let public = app.request("GET", &path).send().await;
    assert_eq!((public.status, public.code()), (403, "key.refused"));
    let staff = app.staff.client.account_transfer_list().number(fixture.ama.number.as_str());
    let staff = staff.status(types::TransferStatus::Pending).send().await.unwrap();
    assert_eq!((staff.total, id(&staff.entries[0].self_)), (1, id(&uri)));

    for key in [&fixture.ama.key, &app.staff.key] {
        let unknown = app.request("GET", "/accounts/ZZ-ZZZZZZZZ/transfers").key(key).send().await;
        assert_eq!((unknown.status, unknown.code()), (404, "resource.not-found"));
    }
    let past_the_end = list(&app, &fixture.ama, "?page=2").await;
    assert_eq!((past_the_end.status, past_the_end.code()), (404, "page.past-end"));
    let wrong = list(&app, &fixture.ama, "?status=Open&direction=both").await;
    assert_eq!((wrong.status, wrong.invalid_arguments().join(" ")), (400, "status direction".to_owned()));
    assert_eq!(wrong.body["entries"], Value::Null);
}
