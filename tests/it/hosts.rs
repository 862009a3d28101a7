//! Hosts: who makes them, who may change them, and what is unique of them.

mod administrators;
mod removal;

use boxoffice::auth::Scope;
use boxoffice::setup;
use serde_json::{Value, json};

use crate::on_both_databases;
use crate::support::{Answer, PASSWORD, World};

on_both_databases![
    whoever_makes_a_host_administers_it,
    an_address_may_have_lines,
    a_host_has_at_least_a_name_a_contact_and_an_email,
    a_host_is_made_by_somebody,
    a_name_belongs_to_one_host,
    a_host_is_changed_by_its_administrators_and_the_staff,
    a_change_leaves_what_it_does_not_name,
    hosts_are_listed_in_pages_the_oldest_first,
    an_account_lists_the_hosts_that_it_administers,
    an_accounts_hosts_are_its_own_and_the_staffs,
];

fn host(name: &str) -> Value {
    json!({ "name": name, "contact": "Ama Mensah", "email": "hello@accralive.example" })
}

async fn make(world: &World, key: &str, body: &Value) -> Answer {
    world.request("POST", "/hosts").key(key).json(body).send().await
}

async fn change(world: &World, key: &str, uri: &str, body: Value) -> Answer {
    world.request("PUT", uri).key(key).json(&body).send().await
}

fn names(page: &Answer) -> Vec<&str> {
    page.body["entries"].as_array().unwrap().iter().map(|host| host["name"].as_str().unwrap()).collect()
}

async fn whoever_makes_a_host_administers_it(world: World) {
    let (ama, kofi) = (world.person("ama").await, world.person("kofi").await);
    let mut all = json!({
        "name": "Accra Live", "contact": "Ama Mensah", "email": "hello@accralive.example", "description": "Concerts.",
        "phone": "+233 30 255 0177", "website": "https://accralive.example", "country": "Ghana",
        "firstAddressLine": "7 Liberation Road", "secondAddressLine": "", "city": "Accra", "state": "Greater Accra",
        "businessNo": "CS048211025",
    });

    let made = make(&world, &ama.key, &all).await;

    assert_eq!(made.status, 201);
    let uri = made.body["self"].as_str().unwrap();
    all["self"] = uri.into();
    assert_eq!(made.body, all);
    assert_eq!(made.header("location"), uri);
    assert_eq!(world.request("GET", uri).send().await.body, all);
    let of = |number: &str| world.request("GET", &format!("/hosts?account={number}")).send();
    assert_eq!(names(&of(&ama.number).await), ["Accra Live"]);
    assert!(names(&of(&kofi.number).await).is_empty());
}

/// Many forms have one field for all of a street's address; an account's is like a host's.
async fn an_address_may_have_lines(world: World) {
    let ama = world.person("ama").await;
    let address = json!({ "firstAddressLine": "Jubilee House\r\n7 Liberation Road", "secondAddressLine": "Block B\nOsu" });
    let with_address = |body: Value| {
        let mut body = body;
        body.as_object_mut().unwrap().extend(address.as_object().unwrap().clone());
        body
    };
    let host = json!({ "name": "Accra Live", "contact": "Ama Mensah", "email": "hello@accralive.example" });
    let account = json!({ "username": "esi", "email": "esi@example.com", "password": PASSWORD });
    let own = format!("/accounts/{}", ama.number);

    let made = make(&world, &ama.key, &with_address(host)).await;
    let changed = change(&world, &ama.key, made.body["self"].as_str().unwrap_or_default(), address.clone()).await;
    let signed_up = world.request("POST", "/accounts").json(&with_address(account)).send().await;
    let moved = change(&world, &ama.key, &own, address.clone()).await;

    for (answer, status) in [(&made, 201), (&changed, 200), (&signed_up, 201), (&moved, 200)] {
        assert_eq!(answer.status, status, "{}", answer.body);
        for name in ["firstAddressLine", "secondAddressLine"] {
            assert_eq!(answer.body[name], address[name]);
        }
    }
}

async fn a_host_has_at_least_a_name_a_contact_and_an_email(world: World) {
    let ama = world.person("ama").await;

    let made = make(&world, &ama.key, &host("Accra Live")).await;
    let nothing = make(&world, &ama.key, &json!({})).await;
    let wrong = make(&world, &ama.key, &json!({ "name": " ", "contact": "Ama", "email": "ama", "website": "accralive" })).await;

    assert_eq!(made.status, 201);
    assert_eq!((&made.body["website"], &made.body["businessNo"]), (&json!(""), &json!("")));
    assert_eq!(nothing.complaints(), ["-name", "-contact", "-email"]);
    assert_eq!(wrong.complaints(), ["-name", "email", "website"]);
}

async fn a_host_is_made_by_somebody(world: World) {
    let program = setup::create_key(&world.app, "a program", Scope::Customer, None).await.unwrap();

    let application = make(&world, &world.public_key, &host("Accra Live")).await;
    let nobody = make(&world, &program, &host("Accra Live")).await;

    assert_eq!((application.status, application.code()), (403, "key.refused"));
    assert_eq!((nobody.status, nobody.code()), (403, "resource.not-yours"));
    assert_eq!(world.anyone.host_list().send().await.unwrap().total, 0);
}

async fn a_name_belongs_to_one_host(world: World) {
    let (ama, kofi) = (world.person("ama").await, world.person("kofi").await);
    make(&world, &ama.key, &host("Accra Live")).await;
    let other = make(&world, &kofi.key, &host("Kumasi Live")).await;
    let other = other.body["self"].as_str().unwrap();

    let same = make(&world, &kofi.key, &host("Accra Live")).await;
    let renamed = change(&world, &kofi.key, other, json!({ "name": "Accra Live" })).await;
    let its_own = change(&world, &kofi.key, other, json!({ "name": "Kumasi Live" })).await;

    assert_eq!((same.status, same.code()), (409, "host.taken"));
    assert_eq!((renamed.status, renamed.code()), (409, "host.taken"));
    assert_eq!(its_own.status, 200);
    let of = world.anyone.host_list().account(kofi.number.as_str()).send().await.unwrap();
    assert_eq!(of.total, 1, "a refused host has no administrator");
}

async fn a_host_is_changed_by_its_administrators_and_the_staff(world: World) {
    let (ama, kofi) = (world.person("ama").await, world.person("kofi").await);
    let uri = world.host_of(&ama).await.uri;

    let other = change(&world, &kofi.key, &uri, json!({ "phone": "1" })).await;
    let application = change(&world, &world.public_key, &uri, json!({ "phone": "2" })).await;
    let own = change(&world, &ama.key, &uri, json!({ "phone": "3" })).await;
    let staff = change(&world, &world.staff.key, &uri, json!({ "phone": "4" })).await;
    let unknown = change(&world, &kofi.key, "/hosts/17637000000001", json!({ "phone": "5" })).await;

    assert_eq!((other.status, other.code()), (403, "resource.not-yours"));
    assert_eq!((application.status, application.code()), (403, "key.refused"));
    assert_eq!((own.status, &own.body["phone"]), (200, &json!("3")));
    assert_eq!((staff.status, &staff.body["phone"]), (200, &json!("4")));
    assert_eq!((unknown.status, unknown.code()), (404, "resource.not-found"));
}

async fn a_change_leaves_what_it_does_not_name(world: World) {
    let ama = world.person("ama").await;
    let before = make(&world, &ama.key, &json!({ "name": "A", "contact": "B", "email": "c@example.com", "city": "Accra" })).await;
    let uri = before.body["self"].as_str().unwrap();

    let after = change(&world, &ama.key, uri, json!({ "contact": "Kofi", "phone": null, "city": "", "unknown": 1 })).await;
    let blank = change(&world, &ama.key, uri, json!({ "name": "", "contact": " ", "state": "Volta" })).await;

    let mut expected = before.body.clone();
    expected["contact"] = "Kofi".into();
    expected["city"] = "".into();
    assert_eq!(after.body, expected);
    assert_eq!((blank.status, blank.complaints()), (400, vec!["-name".to_owned(), "-contact".to_owned()]));
    assert_eq!(world.request("GET", uri).send().await.body, expected);
}

async fn hosts_are_listed_in_pages_the_oldest_first(world: World) {
    let ama = world.person("ama").await;
    for name in ["Cape Coast Live", "Accra Live", "Bolgatanga Live"] {
        make(&world, &ama.key, &host(name)).await;
    }

    let first = world.request("GET", "/hosts?records=2").send().await;
    let second = world.request("GET", "/hosts?records=2&page=2").send().await;
    let past = world.request("GET", "/hosts?records=2&page=3").send().await;

    assert_eq!(names(&first), ["Cape Coast Live", "Accra Live"]);
    assert_eq!(names(&second), ["Bolgatanga Live"]);
    assert_eq!((&first.body["total"], &second.body["page"]), (&json!(3), &json!(2)));
    assert_eq!((past.status, past.code()), (404, "page.past-end"));
}

async fn an_account_lists_the_hosts_that_it_administers(world: World) {
    let (ama, kofi) = (world.person("ama").await, world.person("kofi").await);
    let path = format!("/accounts/{}/hosts", ama.number);
    let list = |query: &str, key: &str| world.request("GET", &format!("{path}?{query}")).key(key).send();
    let empty = list("", &ama.key).await;
    assert_eq!(empty.body, json!({ "total": 0, "page": 1, "records": 25, "entries": [] }));
    make(&world, &kofi.key, &host("Kumasi Live")).await;
    let mut made = Vec::new();
    for name in ["Cape Coast Live", "Accra Live", "Bolgatanga Live"] {
        made.push(make(&world, &ama.key, &host(name)).await.body);
    }

    let page = list("", &ama.key).await;

    assert_eq!((page.status, &page.body["total"], &page.body["entries"]), (200, &json!(3), &json!(made)));
    assert_eq!(list("", &world.staff.key).await.body, page.body);
    assert_eq!(names(&list("records=2&page=2", &ama.key).await), ["Bolgatanga Live"]);
    let past = list("records=2&page=3", &ama.key).await;
    assert_eq!((past.status, past.code()), (404, "page.past-end"));
    let mut tx = world.app.db.begin().await.unwrap();
    tx.query("update hosts set removed = true where name = 'Accra Live'").execute().await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(names(&list("", &ama.key).await), ["Cape Coast Live", "Bolgatanga Live"]);
}

async fn an_accounts_hosts_are_its_own_and_the_staffs(world: World) {
    let (ama, kofi) = (world.person("ama").await, world.person("kofi").await);

    for (key, number, expected) in [
        (&kofi.key, ama.number.as_str(), (403, "resource.not-yours")),
        (&world.public_key, &ama.number, (403, "key.refused")),
        (&ama.key, "ZZ-00000000", (404, "resource.not-found")),
    ] {
        let refused = world.request("GET", &format!("/accounts/{number}/hosts")).key(key).send().await;
        assert_eq!((refused.status, refused.code()), expected, "{number}");
    }
}
