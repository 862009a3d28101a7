//! The events for which an account has tickets.

use serde_json::json;

use crate::support::{Event, Response, TestApp, section, test_on, uris};
use crate::tickets::set_status;

async fn get(app: &TestApp, key: &str, number: &str, query: &str) -> Response {
    app.get(key, &format!("/accounts/{number}/events?{query}")).await
}

/// Creates events of Kofi, each with a free section, in order of creation.
async fn events<const N: usize>(app: &TestApp) -> [Event; N] {
    let (_, host) = app.sign_up_with_host("kofi").await;
    let mut events = Vec::new();
    for _ in 0..N {
        events.push(app.create_listed_event(&host, &[section("Floor", 0.0, 10)]).await);
    }
    events.try_into().ok().unwrap()
}

#[test_on(sqlite, postgres)]
async fn lists_events_of_ticket_holder(app: TestApp) {
    let [first, second, third, fourth, not_hers] = events(&app).await;
    let (ama, esi) = (app.sign_up("ama").await, app.sign_up("esi").await);
    let empty = get(&app, &ama.key, &ama.number, "").await;
    assert_eq!(empty.body, json!({ "total": 0, "page": 1, "records": 25, "entries": [] }));
    esi.order_free_tickets(&not_hers.sections[0], 1).await;
    for (event, status) in [(&third, "Redeemed"), (&second, "Pending"), (&fourth, "Void")] {
        let serials = ama.order_free_tickets(&event.sections[0], 1).await;
        set_status(&app, &serials[0], status).await;
    }
    let serials = ama.order_free_tickets(&first.sections[0], 3).await;
    set_status(&app, &serials[0], "Void").await;

    let page = get(&app, &ama.key, &ama.number, "").await;

    assert_eq!(uris(&page), [&first.uri, &second.uri, &third.uri], "each once, in the order of making");
    assert_eq!(page.body["entries"][0], app.read(&first.uri).await);
    assert_eq!(get(&app, &app.staff.key, &ama.number, "").await.body, page.body);
    let last = get(&app, &ama.key, &ama.number, "records=2&page=2").await;
    assert_eq!((uris(&last), &last.body["total"]), (vec![third.uri.as_str()], &json!(3)));

    // Ticket holders find their events in every status.
    app.execute_sql("update events set status = 'Draft', public = false").await;
    assert_eq!(uris(&get(&app, &ama.key, &ama.number, "").await).len(), 3);
}

#[test_on(sqlite, postgres)]
async fn filters_and_sorts_attended_events(app: TestApp) {
    let [first, second, not_hers] = events(&app).await;
    let ama = app.sign_up("ama").await;
    ama.order_free_tickets(&first.sections[0], 1).await;
    ama.order_free_tickets(&second.sections[0], 2).await;
    app.end_event(&first).await;
    app.end_event(&not_hers).await;
    let list = async |query: &str| {
        let page = get(&app, &ama.key, &ama.number, query).await;
        uris(&page).into_iter().map(str::to_owned).collect::<Vec<_>>()
    };

    assert_eq!(list("active=true").await, [second.uri.as_str()]);
    assert_eq!(list("active=false").await, [first.uri.as_str()]);
    assert_eq!(list("sort=popularity").await, [first.uri.as_str(), &second.uri]);
    assert_eq!(list("sort=popularity&order=desc").await, [second.uri.as_str(), &first.uri]);
    assert_eq!(list("sort=start&order=desc").await, [second.uri.as_str(), &first.uri]);
    assert_eq!(list(&format!("section={}", first.sections[0])).await, [first.uri.as_str()]);
    assert_eq!(list("title=no%20such").await, [""; 0]);
    assert_eq!(list("region=17637000000001").await, [""; 0]);
}
