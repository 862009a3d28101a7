//! Maximum numbers of what an account can store.

use serde_json::json;

use crate::advertisements::{advertisement_body, create as create_advertisement};
use crate::support::{TestApp, rejection, section, test_on};

#[test_on(sqlite, postgres)]
async fn account_administers_at_most_thousand_hosts(app: TestApp) {
    let (kofi, ama) = (app.sign_up("kofi").await, app.sign_up("ama").await);
    let first = app.create_host(&kofi).await;
    app.execute_sql(
        "with recursive g (n) as (select 1 union all select n + 1 from g where n < 999)
         insert into hosts (id, name, contact, email, description, phone, website, country, first_address_line,
             second_address_line, city, state, business_no, removed)
         select 15000000000000 + n, 'Host ' || n, '', '', '', '', '', '', '', '', '', '', '', false from g",
    )
    .await;
    app.execute_sql(
        "insert into host_administrators (host_id, account_id)
         select h.id, a.id from hosts h, accounts a where a.username = 'kofi' and h.id < 16000000000000",
    )
    .await;
    let create = async |key: &str, name: &str| {
        let host = json!({ "name": name, "contact": "Front office", "email": "office@example.com" });
        app.post(key, "/hosts", &host).await
    };

    assert_eq!(rejection(&create(&kofi.key, "One More").await), (409, "host.too-many"));
    assert_eq!(create(&ama.key, "Hers").await.status, 201);
    assert_eq!(app.delete(&kofi.key, &first.uri).await.status, 204);
    assert_eq!(create(&kofi.key, "One More").await.status, 201, "after another was removed");
}

#[test_on(sqlite, postgres)]
async fn event_has_at_most_thousand_tokens(app: TestApp) {
    let (kofi, event) = app.sign_up_host("kofi", &[section("Floor", 20.0, 10)]).await;
    // With the global token, one less than the maximum.
    app.execute_sql(
        "with recursive g (n) as (select 1 union all select n + 1 from g where n < 998)
         insert into tokens (id, event_id, code, global)
         select 15000000000000 + n, (select min(id) from events), 'T' || (1000000 + n), false from g",
    )
    .await;
    let create = async || {
        let tokens = format!("{}/tokens", event.uri);
        app.post(&kofi.key, &tokens, json!({ "sections": event.sections })).await
    };

    assert_eq!(create().await.status, 201);
    assert_eq!(rejection(&create().await), (409, "token.too-many"));
}

#[test_on(sqlite, postgres)]
async fn event_has_at_most_thousand_advertisements(app: TestApp) {
    let (kofi, event) = app.sign_up_host("kofi", &[section("Floor", 20.0, 10)]).await;
    let zone = app.create_zone(300, 250).await;
    app.execute_sql(
        "with recursive g (n) as (select 1 union all select n + 1 from g where n < 999)
         insert into advertisements (id, event_id, name, description, status, artwork_id, width, height)
         select 15000000000000 + n, (select min(id) from events), 'Banner ' || n, 'x', 'Draft', 15000000000000 + n, 300, 250
         from g",
    )
    .await;

    let last = create_advertisement(&app, &kofi.key, &advertisement_body("Last", &event, &[&zone])).await;
    let one_more = create_advertisement(&app, &kofi.key, &advertisement_body("One More", &event, &[&zone])).await;
    let other_event = app.create_listed_event(&event.host, &[section("Floor", 20.0, 10)]).await;
    let other = create_advertisement(&app, &kofi.key, &advertisement_body("Other", &other_event, &[&zone])).await;
    let move_to_event = json!({ "event": event.id });
    let moved = app.put(&kofi.key, other.uri(), &move_to_event).await;

    assert_eq!(last.status, 201, "{}", last.body);
    assert_eq!(rejection(&one_more), (409, "advertisement.too-many"));
    assert_eq!(rejection(&moved), (409, "advertisement.too-many"));
}
