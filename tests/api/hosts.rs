//! Hosts: creation, updates, unique names.

mod administrators;
mod removal;

use serde_json::{Value, json};

use crate::support::{PASSWORD, Response, TestApp, test_on, texts};

fn host(name: &str) -> Value {
    json!({ "name": name, "contact": "Ama Mensah", "email": "hello@accralive.example" })
}

async fn create(app: &TestApp, key: &str, body: &Value) -> Response {
    app.post(key, "/hosts", body).await
}

fn names(page: &Response) -> Vec<&str> {
    texts(&page.body, "name")
}

#[test_on(sqlite, postgres)]
async fn creator_administers_host(app: TestApp) {
    let (ama, kofi) = (app.sign_up("ama").await, app.sign_up("kofi").await);
    let mut all = json!({
        "name": "Accra Live", "contact": "Ama Mensah", "email": "hello@accralive.example", "description": "Concerts.",
        "phone": "+233 30 255 0177", "website": "https://accralive.example", "country": "Ghana",
        "firstAddressLine": "7 Liberation Road", "secondAddressLine": "", "city": "Accra", "state": "Greater Accra",
        "businessNo": "CS048211025",
    });

    let created = create(&app, &ama.key, &all).await;

    assert_eq!(created.status, 201);
    let uri = created.uri();
    all["self"] = uri.into();
    assert_eq!(created.body, all);
    assert_eq!(created.header("location"), uri);
    assert_eq!(app.request("GET", uri).send().await.body, all);
    let of = |number: &str| app.request("GET", &format!("/hosts?account={number}")).send();
    assert_eq!(names(&of(&ama.number).await), ["Accra Live"]);
    assert!(names(&of(&kofi.number).await).is_empty());
}

/// Many forms have a single field for the address. Accounts follow the same rule.
#[test_on(sqlite, postgres)]
async fn address_may_have_several_lines(app: TestApp) {
    let ama = app.sign_up("ama").await;
    let address = json!({ "firstAddressLine": "Jubilee House\r\n7 Liberation Road", "secondAddressLine": "Block B\nOsu" });
    let with_address = |body: Value| {
        let mut body = body;
        body.as_object_mut().unwrap().extend(address.as_object().unwrap().clone());
        body
    };
    let host = json!({ "name": "Accra Live", "contact": "Ama Mensah", "email": "hello@accralive.example" });
    let account = json!({ "username": "esi", "email": "esi@example.com", "password": PASSWORD });
    let own = format!("/accounts/{}", ama.number);

    let created = create(&app, &ama.key, &with_address(host)).await;
    let changed = app.put(&ama.key, created.body["self"].as_str().unwrap_or_default(), address.clone()).await;
    let signed_up = app.request("POST", "/accounts").json(&with_address(account)).send().await;
    let moved = app.put(&ama.key, &own, address.clone()).await;

    for (response, status) in [(&created, 201), (&changed, 200), (&signed_up, 201), (&moved, 200)] {
        assert_eq!(response.status, status, "{}", response.body);
        for name in ["firstAddressLine", "secondAddressLine"] {
            assert_eq!(response.body[name], address[name]);
        }
    }
}

#[test_on(sqlite, postgres)]
async fn other_properties_are_optional(app: TestApp) {
    let ama = app.sign_up("ama").await;

    let created = create(&app, &ama.key, &host("Accra Live")).await;

    assert_eq!(created.status, 201);
    assert_eq!((&created.body["website"], &created.body["businessNo"]), (&json!(""), &json!("")));
}

/// A website is an address with or without its scheme. Another scheme, such as that of a script, is rejected.
#[test_on(sqlite, postgres)]
async fn website_may_have_no_scheme(app: TestApp) {
    let (ama, live) = app.sign_up_with_host("ama").await;
    for (website, status) in [
        ("www.accralive.example", 200),
        ("accralive.example:8080/shows?page=1", 200),
        ("HTTPS://accralive.example", 200),
        ("javascript:alert(1.5)", 400),
        ("mailto:ama@accralive.example", 400),
        ("accralive", 400),
    ] {
        let changed = app.put(&ama.key, &live.uri, json!({ "website": website })).await;
        assert_eq!(changed.status, status, "{website}: {}", changed.body);
        if status == 200 {
            assert_eq!(app.read(&live.uri).await["website"], website);
        }
    }
}

#[test_on(sqlite, postgres)]
async fn update_keeps_omitted_properties(app: TestApp) {
    let ama = app.sign_up("ama").await;
    let before = create(&app, &ama.key, &json!({ "name": "A", "contact": "B", "email": "c@example.com", "city": "Accra" })).await;
    let uri = before.uri();

    let after = app.put(&ama.key, uri, json!({ "contact": "Kofi", "phone": null, "city": "", "unknown": 1 })).await;

    let mut expected = before.body.clone();
    expected["contact"] = "Kofi".into();
    expected["city"] = "".into();
    assert_eq!(after.body, expected);
    assert_eq!(app.request("GET", uri).send().await.body, expected);
}

#[test_on(sqlite, postgres)]
async fn lists_hosts_of_administrator(app: TestApp) {
    let (ama, kofi) = (app.sign_up("ama").await, app.sign_up("kofi").await);
    let path = format!("/accounts/{}/hosts", ama.number);
    let list = |query: &str, key: &str| app.request("GET", &format!("{path}?{query}")).key(key).send();
    let empty = list("", &ama.key).await;
    assert_eq!(empty.body, json!({ "total": 0, "page": 1, "records": 25, "entries": [] }));
    create(&app, &kofi.key, &host("Kumasi Live")).await;
    let mut created = Vec::new();
    for name in ["Cape Coast Live", "Accra Live", "Bolgatanga Live"] {
        created.push(create(&app, &ama.key, &host(name)).await.body);
    }

    let page = list("", &ama.key).await;

    assert_eq!((page.status, &page.body["total"], &page.body["entries"]), (200, &json!(3), &json!(created)));
    assert_eq!(list("", &app.staff.key).await.body, page.body);
    assert_eq!(names(&list("records=2&page=2", &ama.key).await), ["Bolgatanga Live"]);
    app.execute_sql("update hosts set removed = true where name = 'Accra Live'").await;
    assert_eq!(names(&list("", &ama.key).await), ["Cape Coast Live", "Bolgatanga Live"]);
}
