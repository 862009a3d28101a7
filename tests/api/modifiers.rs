//! Price modifiers: rules and access.

mod price_rules;
mod prices;

use boxoffice_client::Change;
use futures::future::join_all;
use serde_json::{Value, json};

use crate::support::{Event, Rejection, Response, TestApp, entries_of, id_of, rejection, section, test_on};

async fn add(app: &TestApp, key: &str, section: &str, body: &Value) -> Response {
    app.post(key, &format!("{section}/modifiers"), body).await
}

/// Creates a modifier, and returns its URI.
async fn modifier(app: &TestApp, key: &str, section: &str, body: Value) -> String {
    let created = add(app, key, section, &body).await;
    assert_eq!(created.status, 201, "{}", created.body);
    created.uri().to_owned()
}

/// Returns the number of all modifiers.
async fn count(app: &TestApp) -> i64 {
    app.scalar("select count(*) from modifiers").await
}

#[test_on(sqlite, postgres)]
async fn new_modifier_is_active_and_unbounded(app: TestApp) {
    let (kofi, event) = app.sign_up_host("kofi", &[section("Floor", 20.0, 10)]).await;

    let created = add(&app, &kofi.key, &event.sections[0], &json!({ "name": "Gate", "priceDelta": 5 })).await;

    assert_eq!(created.status, 201, "{}", created.body);
    let uri = created.uri();
    let id = uri.strip_prefix(&format!("{}/modifiers/", event.sections[0])).unwrap();
    assert_eq!((id.len(), created.header("location")), (14, uri));
    let expected = json!({
        "self": uri, "name": "Gate", "priceDelta": 5.0, "availableFrom": null, "availableTo": null, "minOrder": null,
        "maxOrder": null, "active": true,
    });
    assert_eq!(created.body, expected);
    assert_eq!(app.get(&app.public_key, uri).await.body, expected);
}

#[test_on(sqlite, postgres)]
async fn created_modifier_is_returned_unchanged(app: TestApp) {
    let (kofi, event) = app.sign_up_host("kofi", &[section("Floor", 20.0, 10)]).await;
    let mut expected = json!({
        "name": "Early groups", "priceDelta": -7.25, "availableFrom": "2026-01-01 02:00:30+02:00",
        "availableTo": "2998-12-01T12:00", "minOrder": 6, "maxOrder": 6, "active": false,
    });

    let created = add(&app, &kofi.key, &event.sections[0], &expected).await;

    expected["self"] = created.body["self"].clone();
    expected["availableFrom"] = "2026-01-01T00:00".into();
    assert_eq!((created.status, &created.body), (201, &expected));
    assert_eq!(app.get(&kofi.key, expected["self"].as_str().unwrap()).await.body, expected);
}

#[test_on(sqlite, postgres)]
async fn client_supports_modifiers(app: TestApp) {
    let (kofi, event) = app.sign_up_host("kofi", &[section("Floor", 20.0, 10)]).await;
    let floor = id_of(&event.sections[0]);
    let create = kofi.client.section_modifier_create().event(&event.id).section(floor);
    let created = create.body_map(|body| body.name("Early bird").price_delta(-2.5).min_order(2)).send().await.unwrap();
    let id = id_of(&created.self_);

    let update = || kofi.client.section_modifier_update().event(&event.id).section(floor).modifier(id);
    let changed = update().body_map(|body| body.max_order(3).available_to("2998-12-01T12:00".to_owned())).send().await.unwrap();
    let get = || app.public_client.section_modifier_get().event(&event.id).section(floor).modifier(id);

    assert_eq!((created.price_delta, created.min_order, created.max_order), (-2.5, Some(2), None));
    assert_eq!(*get().send().await.unwrap(), *changed);
    assert_eq!((changed.name.as_str(), changed.min_order, changed.max_order), ("Early bird", Some(2), Some(3)));
    let cleared = update().body_map(|body| body.max_order(Change::Clear).available_to(Change::Clear)).send().await.unwrap();
    assert_eq!((changed.available_to.as_deref(), &cleared.available_to), (Some("2998-12-01T12:00"), &None));
    assert_eq!((cleared.min_order, cleared.max_order), (Some(2), None));
    assert_eq!(*get().send().await.unwrap(), *cleared);
    kofi.client.section_modifier_delete().event(&event.id).section(floor).modifier(id).send().await.unwrap();
    assert_eq!(get().send().await.rejection(), (404, "resource.not-found".to_owned()));
}

#[test_on(sqlite, postgres)]
async fn names_both_reversed_bounds(app: TestApp) {
    let (kofi, event) = app.sign_up_host("kofi", &[section("Floor", 20.0, 10)]).await;
    let reversed = json!({
        "name": "Never", "priceDelta": 1, "availableFrom": "2026-02-01T00:00", "availableTo": "2026-01-01T00:00",
        "minOrder": 3, "maxOrder": 2,
    });

    let reversed = add(&app, &kofi.key, &event.sections[0], &reversed).await;

    assert_eq!(reversed.invalid_arguments(), ["availableTo", "maxOrder"]);
    assert_eq!(count(&app).await, 0);
}

#[test_on(sqlite, postgres)]
async fn delta_is_positive_or_negative(app: TestApp) {
    let (kofi, event) = app.sign_up_host("kofi", &[section("Floor", 20.0, 10)]).await;
    let uri = modifier(&app, &kofi.key, &event.sections[0], json!({ "name": "Any", "priceDelta": 0 })).await;

    for delta in [-1_000_000.0, -999_999.99, -12.34, -0.29, -0.01, 0.0, 0.07, 1.1, 999_999.99, 1_000_000.0] {
        let changed = app.put(&kofi.key, &uri, json!({ "priceDelta": delta })).await;
        assert_eq!((changed.status, &changed.body["priceDelta"]), (200, &json!(delta)), "{}", changed.body);
    }
    for delta in [-1_000_000.01, -0.005, 0.001, 1_000_000.01] {
        let rejected = app.put(&kofi.key, &uri, json!({ "priceDelta": delta })).await;
        assert_eq!(rejected.invalid_arguments(), ["priceDelta"], "{delta}");
    }
}

#[test_on(sqlite, postgres)]
async fn rejects_reversed_bounds(app: TestApp) {
    let (kofi, event) = app.sign_up_host("kofi", &[section("Floor", 20.0, 10)]).await;
    let body = json!({
        "name": "May", "priceDelta": 1, "availableFrom": "2026-05-01T00:00", "availableTo": "2026-05-31T00:00", "minOrder": 2,
        "maxOrder": 4,
    });
    let uri = modifier(&app, &kofi.key, &event.sections[0], body).await;
    let before = app.get(&kofi.key, &uri).await.body;

    for (body, wrong) in [
        (json!({ "availableTo": "2026-05-01T00:00" }), vec!["availableTo"]),
        (json!({ "availableFrom": "2026-06-01T00:00" }), vec!["availableTo"]),
        (json!({ "minOrder": 5 }), vec!["maxOrder"]),
        (json!({ "maxOrder": 1, "availableTo": "2026-01-01T00:00", "name": "June" }), vec!["availableTo", "maxOrder"]),
    ] {
        let rejected = app.put(&kofi.key, &uri, body.clone()).await;
        assert_eq!(rejected.invalid_arguments(), wrong, "{body}");
    }
    let stranger = app.put(&app.sign_up("ama").await.key, &uri, json!({ "minOrder": 5 })).await;
    assert_eq!(rejection(&stranger), (403, "resource.not-yours"), "before the bounds are compared");
    assert_eq!(app.get(&kofi.key, &uri).await.body, before);
    let moved = json!({ "availableFrom": "2026-06-01T00:00", "availableTo": "2026-06-01T00:01", "minOrder": 4 });
    assert_eq!(app.put(&kofi.key, &uri, moved).await.status, 200);
}

#[test_on(sqlite, postgres)]
async fn concurrent_updates_keep_bounds_in_order(app: TestApp) {
    let (kofi, event) = app.sign_up_host("kofi", &[section("Floor", 20.0, 10)]).await;
    let body = json!({ "name": "Groups", "priceDelta": 1, "minOrder": 1, "maxOrder": 10 });
    let uri = modifier(&app, &kofi.key, &event.sections[0], body).await;

    for _ in 0..10 {
        app.put(&kofi.key, &uri, json!({ "minOrder": 1, "maxOrder": 10 })).await;
        let changes = [json!({ "minOrder": 7 }), json!({ "maxOrder": 3 })].map(|body| app.put(&kofi.key, &uri, body));
        let statuses: Vec<_> = futures::future::join_all(changes).await.iter().map(|response| response.status).collect();

        assert!(statuses == [200, 400] || statuses == [400, 200], "{statuses:?}");
    }
}

#[test_on(sqlite, postgres)]
async fn modifiers_of_draft_are_hidden(app: TestApp) {
    let (kofi, event) = app.sign_up_host_with_draft("kofi").await;
    let ama = app.sign_up("ama").await;
    let floor = app.add_section(&event, &section("Floor", 20.0, 10)).await;
    let uri = modifier(&app, &kofi.key, &floor, json!({ "name": "Gate", "priceDelta": 5 })).await;

    let before = [&ama.key, &app.public_key].map(|key| app.get(key, &uri));
    let before = futures::future::join_all(before).await;
    let to_its_own = app.get(&kofi.key, &uri).await;
    app.list_event(&event).await;
    let listed = app.get(&ama.key, &uri).await;
    app.execute_sql("update events set status = 'Cancelled'").await;
    let cancelled = app.get(&app.public_key, &uri).await;

    assert!(before.iter().all(|response| rejection(response) == (403, "resource.not-yours")), "{before:?}");
    assert_eq!([to_its_own.status, listed.status, cancelled.status], [200; 3]);
}

#[test_on(sqlite, postgres)]
async fn modifier_has_one_path(app: TestApp) {
    let (kofi, event) = app.sign_up_host("kofi", &[section("Floor", 20.0, 10), section("VIP", 90.0, 10)]).await;
    let other = app.create_listed_event(&event.host, &[]).await;
    let [floor, vip] = [&event.sections[0], &event.sections[1]];
    let gate = json!({ "name": "Gate", "priceDelta": 5 });
    let uri = modifier(&app, &kofi.key, floor, gate.clone()).await;
    let id = id_of(&uri);
    let of_other = |long: &str| long.replace(&event.uri, &other.uri);

    for nothing in [
        format!("{floor}/modifiers/17637000000001"),
        format!("{floor}/modifiers/gate"),
        format!("{vip}/modifiers/{id}"),
        format!("{}/modifiers/{id}", of_other(floor)),
        format!("{}/sections/17637000000001/modifiers/{id}", event.uri),
        format!("/events/17637000000001{}", uri.strip_prefix(&event.uri).unwrap()),
    ] {
        assert_eq!(rejection(&app.get(&kofi.key, &nothing).await), (404, "resource.not-found"), "{nothing}");
        let changed = app.put(&kofi.key, &nothing, json!({ "priceDelta": 7 })).await;
        assert_eq!(rejection(&changed), (404, "resource.not-found"), "{nothing}");
        assert_eq!(rejection(&app.delete(&kofi.key, &nothing).await), (404, "resource.not-found"), "{nothing}");
    }
    let nowhere = [of_other(floor), format!("{}/sections/17637000000001", event.uri), "/events/x/sections/y".to_owned()];
    for nowhere in nowhere {
        assert_eq!(rejection(&add(&app, &kofi.key, &nowhere, &gate).await), (404, "resource.not-found"), "{nowhere}");
    }
    assert_eq!(app.get(&kofi.key, &uri).await.body["priceDelta"], 5.0);
    assert_eq!(count(&app).await, 1);
}

#[test_on(sqlite, postgres)]
async fn update_keeps_omitted_properties(app: TestApp) {
    let (kofi, event) = app.sign_up_host("kofi", &[section("Floor", 20.0, 10)]).await;
    let body = json!({
        "name": "May", "priceDelta": -1.5, "availableFrom": "2026-05-01T00:00", "availableTo": "2026-05-31T00:00",
        "minOrder": 2, "maxOrder": 4,
    });
    let uri = modifier(&app, &kofi.key, &event.sections[0], body).await;
    let mut expected = app.get(&kofi.key, &uri).await.body;

    let nothing = app.put(&kofi.key, &uri, json!({})).await;
    let nulls = app.put(&kofi.key, &uri, json!({ "active": null })).await;
    let some = json!({ "priceDelta": 3, "availableTo": "2026-06-30T00:00", "active": false, "self": "/elsewhere" });
    let some = app.put(&kofi.key, &uri, some).await;

    assert_eq!((nothing.status, &nothing.body), (200, &expected));
    assert_eq!((nulls.status, &nulls.body), (200, &expected));
    expected["priceDelta"] = 3.0.into();
    expected["availableTo"] = "2026-06-30T00:00".into();
    expected["active"] = false.into();
    assert_eq!((some.status, &some.body), (200, &expected));
    assert_eq!(app.get(&kofi.key, &uri).await.body, expected);
}

#[test_on(sqlite, postgres)]
async fn update_clears_bounds(app: TestApp) {
    let (kofi, event) = app.sign_up_host("kofi", &[section("Floor", 20.0, 10)]).await;
    let body = json!({
        "name": "May", "priceDelta": -1.5, "availableFrom": "2026-05-01T00:00", "availableTo": "2026-05-31T00:00",
        "minOrder": 2, "maxOrder": 4,
    });
    let uri = modifier(&app, &kofi.key, &event.sections[0], body).await;
    let mut expected = app.get(&kofi.key, &uri).await.body;

    for (change_to, cleared) in [
        (json!({ "availableFrom": null, "minOrder": "" }), ["availableFrom", "minOrder"]),
        (json!({ "availableTo": "", "maxOrder": null }), ["availableTo", "maxOrder"]),
    ] {
        let changed = app.put(&kofi.key, &uri, change_to).await;
        cleared.iter().for_each(|bound| expected[bound] = Value::Null);
        assert_eq!((changed.status, &changed.body), (200, &expected));
    }
    assert_eq!(app.get(&kofi.key, &uri).await.body, expected);
    let order = app.sign_up("ama").await.order(&event.sections[0], 1).await.unwrap();
    assert_eq!(order.subtotal, 18.5, "it applies at any time and to any number");
}

#[test_on(sqlite, postgres)]
async fn lists_modifiers(app: TestApp) {
    let (kofi, event) = app.sign_up_host("kofi", &[section("Floor", 20.0, 10), section("Stage", 20.0, 10)]).await;
    let draft = app.create_draft(&event.host).await;
    let hidden = app.add_section(&draft, &section("Floor", 20.0, 10)).await;
    let mut uris = Vec::new();
    for body in [
        json!({ "name": "Early bird", "priceDelta": -5 }),
        json!({ "name": "Off", "priceDelta": -1, "active": false }),
        json!({ "name": "Groups", "priceDelta": -2, "minOrder": 3, "maxOrder": 4 }),
    ] {
        uris.push(modifier(&app, &kofi.key, &event.sections[0], body).await);
    }
    // An order has at most 50 tickets.
    modifier(&app, &kofi.key, &event.sections[1], json!({ "name": "Stage", "priceDelta": 1, "minOrder": 51 })).await;
    let list = async |key: &str, section: &str, query: &str| app.get(key, &format!("{section}/modifiers{query}")).await;

    let all = list(&app.public_key, &event.sections[0], "").await;

    assert_eq!((all.status, &all.body["total"]), (200, &json!(3)), "{}", all.body);
    for (entry, uri) in entries_of(&all.body).iter().zip(&uris) {
        assert_eq!(entry, &app.get(&app.public_key, uri).await.body);
    }
    let second = list(&app.public_key, &event.sections[0], "?records=2&page=2").await;
    assert_eq!(second.body["entries"], json!([all.body["entries"][2]]));
    let elsewhere = event.sections[0].replace(&event.uri, &draft.uri);
    assert_eq!(rejection(&list(&kofi.key, &elsewhere, "").await), (404, "resource.not-found"));
    assert_eq!(rejection(&list(&app.public_key, &hidden, "").await), (403, "resource.not-yours"));
    assert_eq!(list(&kofi.key, &hidden, "").await.body["total"], 0);
    let shown = app.read(&event.uri).await;
    let groups = json!([{ "minOrder": 3, "maxOrder": 4, "price": 13.0 }]);
    assert_eq!((&shown["sections"][0]["groupPrices"], &shown["sections"][1]["groupPrices"]), (&groups, &json!([])));
    assert_eq!(app.read(&event.sections[0]).await["groupPrices"], groups);
}

#[test_on(sqlite, postgres)]
async fn cancelled_event_is_immutable(app: TestApp) {
    let (kofi, event) = app.sign_up_host("kofi", &[section("Floor", 20.0, 10)]).await;
    let gate = json!({ "name": "Gate", "priceDelta": 5 });
    let uri = modifier(&app, &kofi.key, &event.sections[0], gate).await;
    app.execute_sql("update events set status = 'Cancelled'").await;

    let added = add(&app, &kofi.key, &event.sections[0], &json!({ "name": "Early bird", "priceDelta": -5 })).await;
    let changed = app.put(&kofi.key, &uri, json!({ "priceDelta": 7 })).await;

    assert_eq!(rejection(&added), (409, "event.cancelled"));
    assert_eq!(rejection(&changed), (409, "event.cancelled"));
    assert_eq!(app.get(&kofi.key, &uri).await.body["priceDelta"], 5.0);
    assert_eq!(count(&app).await, 1);
}

#[test_on(sqlite, postgres)]
async fn deleting_section_deletes_its_modifiers(app: TestApp) {
    let (kofi, event) = app.sign_up_host("kofi", &[section("Floor", 20.0, 10), section("VIP", 90.0, 10)]).await;
    for section in &event.sections {
        modifier(&app, &kofi.key, section, json!({ "name": "Gate", "priceDelta": 5 })).await;
    }

    assert_eq!(app.delete(&kofi.key, &event.sections[0]).await.status, 204);
    assert_eq!(count(&app).await, 1);
    assert_eq!(app.delete(&kofi.key, &event.uri).await.status, 204);
    assert_eq!(count(&app).await, 0);
}

/// Creates a listed event of Kofi, with sections at 20.00 and 40.00.
async fn create_concert(app: &TestApp) -> (crate::support::User, Event) {
    let sections = [section("Floor", 20.0, 100), section("Balcony", 40.0, 100)];
    app.sign_up_host("kofi", &sections).await
}

#[test_on(sqlite, postgres)]
async fn active_modifiers_are_counted(app: TestApp) {
    let (kofi, event) = create_concert(&app).await;
    let floor = &event.sections[0];
    let off = modifier(&app, &kofi.key, floor, json!({ "name": "Off", "priceDelta": 1, "active": false })).await;
    let on = modifier(&app, &kofi.key, floor, json!({ "name": "On", "priceDelta": 2 })).await;
    let shown = async || {
        app.assert_invariants().await;
        app.read(floor).await["price"]["current"].as_f64().unwrap()
    };
    assert_eq!(shown().await, 22.0);
    for (uri, body, price) in [
        (&off, json!({ "active": true }), 23.0),
        (&off, json!({ "active": true, "priceDelta": 3 }), 25.0),
        (&on, json!({ "active": false }), 23.0),
        (&off, json!({ "active": false }), 20.0),
        (&on, json!({ "active": true, "availableFrom": "2998-12-01T12:00" }), 20.0),
    ] {
        assert_eq!(app.put(&kofi.key, uri, body.clone()).await.status, 200);
        assert_eq!(shown().await, price, "{uri} {body}");
    }
    for uri in [&off, &on] {
        assert_eq!(app.delete(&kofi.key, uri).await.status, 204);
        assert_eq!(shown().await, 20.0);
    }
    let deleted = modifier(&app, &kofi.key, floor, json!({ "name": "Off", "priceDelta": 1 })).await;
    assert_eq!((shown().await, app.delete(&kofi.key, floor).await.status), (21.0, 204), "{deleted}");
    app.assert_invariants().await;
}

#[test_on(sqlite, postgres)]
async fn section_has_at_most_fifty_modifiers(app: TestApp) {
    let sections = [section("Floor", 20.0, 10), section("Balcony", 20.0, 10)];
    let (kofi, event) = app.sign_up_host("kofi", &sections).await;
    let named = |number: i32| json!({ "name": format!("Rate {number}"), "priceDelta": 1 });
    let mut last = String::new();
    for number in 0..48 {
        last = modifier(&app, &kofi.key, &event.sections[0], named(number)).await;
    }

    let more: Vec<Value> = (48..53).map(named).collect();
    let at_once = join_all(more.iter().map(|body| add(&app, &kofi.key, &event.sections[0], body))).await;

    assert_eq!(at_once.iter().filter(|response| response.status == 201).count(), 2);
    assert_eq!(at_once.iter().filter(|response| rejection(response) == (409, "modifier.too-many")).count(), 3);
    assert_eq!(count(&app).await, 50);
    modifier(&app, &kofi.key, &event.sections[1], named(0)).await;
    assert_eq!(app.delete(&kofi.key, &last).await.status, 204);
    modifier(&app, &kofi.key, &event.sections[0], named(54)).await;
}
