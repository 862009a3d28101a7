//! Who administers a host, and who says so.

use boxoffice::auth::Scope;
use boxoffice::setup;
use futures::future::{join, join_all};
use serde_json::{Value, json};

use super::change;
use crate::support::{Answer, World, refusal};
use crate::{on_both_databases, race_tests};

on_both_databases![
    an_administrator_adds_another,
    administrators_are_listed_in_pages,
    an_account_is_added_once,
    only_administrators_add_and_remove_administrators,
    a_removed_administrator_acts_no_more,
    the_last_administrator_stays,
    the_staff_appoint_an_administrator_where_none_is_left,
];

race_tests![administrators_who_remove_each_other_at_once_leave_one, administrators_who_all_leave_at_once_leave_one,];

async fn add(world: &World, key: &str, host: &str, account: &str) -> Answer {
    let body = json!({ "account": account });
    world.request("POST", &format!("{host}/administrators")).key(key).json(&body).send().await
}

async fn remove(world: &World, key: &str, host: &str, account: &str) -> Answer {
    world.request("DELETE", &format!("{host}/administrators?account={account}")).key(key).send().await
}

/// The numbers of a host's administrators, as the staff read them.
async fn administrators(world: &World, host: &str) -> Vec<String> {
    let page = world.read(&format!("{host}/administrators")).await;
    let number = |account: &Value| account["number"].as_str().unwrap().to_owned();
    page["entries"].as_array().unwrap().iter().map(number).collect()
}

async fn an_administrator_adds_another(world: World) {
    let (kofi, ama) = (world.person("kofi").await, world.person("ama").await);
    let host = world.host_of(&kofi).await;
    assert_eq!(change(&world, &ama.key, &host.uri, json!({ "phone": "1" })).await.status, 403);

    let added = add(&world, &kofi.key, &host.uri, &ama.number).await;

    let account = format!("/accounts/{}", ama.number);
    assert_eq!((added.status, added.header("location")), (201, account.as_str()));
    assert_eq!(added.body, world.read(&account).await);
    assert_eq!(administrators(&world, &host.uri).await, [kofi.number.clone(), ama.number.clone()]);
    // She acts for the host from now on.
    assert_eq!(change(&world, &ama.key, &host.uri, json!({ "phone": "1" })).await.status, 200);
    assert_eq!(world.anyone.host_list().account(ama.number.as_str()).send().await.unwrap().total, 1);
    let draft = world.draft(&host).await;
    assert_eq!(world.request("GET", &draft.uri).key(&ama.key).send().await.status, 200);
    let yaw = world.person("yaw").await;
    assert_eq!(add(&world, &ama.key, &host.uri, &yaw.number).await.status, 201);
}

async fn administrators_are_listed_in_pages(world: World) {
    let (ama, kofi, yaw) = (world.person("ama").await, world.person("kofi").await, world.person("yaw").await);
    let uri = world.host_of(&kofi).await.uri;
    for person in [&yaw, &ama] {
        add(&world, &kofi.key, &uri, &person.number).await;
    }
    let esi = world.person("esi").await;
    let list = format!("{uri}/administrators");
    let read = |key: &str, path: &str| world.request("GET", path).key(key).send();

    assert_eq!(administrators(&world, &uri).await, [&ama, &kofi, &yaw].map(|person| person.number.clone()));
    let second = read(&yaw.key, &format!("{list}?records=2&page=2")).await;
    assert_eq!((second.status, &second.body["total"], &second.body["records"]), (200, &json!(3), &json!(2)));
    assert_eq!(second.body["entries"], json!([world.read(&format!("/accounts/{}", yaw.number)).await]));
    assert_eq!(refusal(&read(&yaw.key, &format!("{list}?page=2")).await), (404, "page.past-end"));
    assert_eq!(refusal(&read(&esi.key, &list).await), (403, "resource.not-yours"));
    assert_eq!(refusal(&read(&world.public_key, &list).await), (403, "key.refused"));
    assert_eq!(refusal(&read(&esi.key, "/hosts/17637000000001/administrators").await), (404, "resource.not-found"));
}

async fn an_account_is_added_once(world: World) {
    let (kofi, ama) = (world.person("kofi").await, world.person("ama").await);
    let uri = world.host_of(&kofi).await.uri;

    let unknown = add(&world, &kofi.key, &uri, "GH-00000000").await;
    let himself = add(&world, &kofi.key, &uri, &kofi.number).await;
    let both = join_all((0..4).map(|_| add(&world, &kofi.key, &uri, &ama.number))).await;

    assert_eq!((unknown.status, unknown.complaints()), (400, vec!["account".to_owned()]));
    assert_eq!(refusal(&himself), (409, "administrator.taken"));
    assert_eq!(both.iter().filter(|answer| answer.status == 201).count(), 1);
    assert_eq!(both.iter().filter(|answer| refusal(answer) == (409, "administrator.taken")).count(), 3);
    assert_eq!(administrators(&world, &uri).await, [kofi.number, ama.number]);
}

async fn only_administrators_add_and_remove_administrators(world: World) {
    let (kofi, ama) = (world.person("kofi").await, world.person("ama").await);
    let uri = world.host_of(&kofi).await.uri;
    let program = setup::create_key(&world.app, "a program", Scope::Administrator, None).await.unwrap();

    // Not even the platform's staff, and before anything is said of the account.
    for key in [&ama.key, &world.staff.key, &program] {
        for account in [&ama.number, "GH-00000000"] {
            assert_eq!(refusal(&add(&world, key, &uri, account).await), (403, "resource.not-yours"));
        }
        for account in [&kofi.number, "GH-00000000"] {
            assert_eq!(refusal(&remove(&world, key, &uri, account).await), (403, "resource.not-yours"));
        }
    }
    assert_eq!(refusal(&add(&world, &world.public_key, &uri, &ama.number).await), (403, "key.refused"));
    assert_eq!(refusal(&remove(&world, &world.public_key, &uri, &kofi.number).await), (403, "key.refused"));
    let nowhere = "/hosts/17637000000001";
    assert_eq!(refusal(&add(&world, &kofi.key, nowhere, &ama.number).await), (404, "resource.not-found"));
    assert_eq!(refusal(&remove(&world, &kofi.key, nowhere, &kofi.number).await), (404, "resource.not-found"));
    assert_eq!(administrators(&world, &uri).await.join(" "), kofi.number);

    // Staff who administer the host are like anyone who does.
    assert_eq!(add(&world, &kofi.key, &uri, &world.staff.number).await.status, 201);
    assert_eq!(add(&world, &world.staff.key, &uri, &ama.number).await.status, 201);
}

async fn a_removed_administrator_acts_no_more(world: World) {
    let (kofi, ama) = (world.person("kofi").await, world.person("ama").await);
    let host = world.host_of(&kofi).await;
    let draft = world.draft(&host).await;
    add(&world, &kofi.key, &host.uri, &ama.number).await;

    let removed = remove(&world, &ama.key, &host.uri, &kofi.number).await;

    assert_eq!((removed.status, removed.body), (204, Value::Null));
    assert_eq!(administrators(&world, &host.uri).await.join(" "), ama.number);
    assert_eq!(refusal(&change(&world, &kofi.key, &host.uri, json!({ "phone": "1" })).await), (403, "resource.not-yours"));
    assert_eq!(world.request("GET", &draft.uri).key(&kofi.key).send().await.status, 403);
    assert_eq!(world.anyone.host_list().account(kofi.number.as_str()).send().await.unwrap().total, 0);
    for account in [&kofi.number, "GH-00000000"] {
        assert_eq!(refusal(&remove(&world, &ama.key, &host.uri, account).await), (404, "resource.not-found"), "{account}");
    }
    assert_eq!(add(&world, &ama.key, &host.uri, &kofi.number).await.status, 201, "he can come back");
}

async fn the_last_administrator_stays(world: World) {
    let (kofi, ama) = (world.person("kofi").await, world.person("ama").await);
    let uri = world.host_of(&kofi).await.uri;

    let last = remove(&world, &kofi.key, &uri, &kofi.number).await;
    assert_eq!(refusal(&last), (409, "administrator.last"));
    assert_eq!(administrators(&world, &uri).await.join(" "), kofi.number);
    assert_eq!(change(&world, &kofi.key, &uri, json!({ "phone": "1" })).await.status, 200);

    add(&world, &kofi.key, &uri, &ama.number).await;
    assert_eq!(remove(&world, &kofi.key, &uri, &kofi.number).await.status, 204, "now he may go");
    assert_eq!(refusal(&remove(&world, &ama.key, &uri, &ama.number).await), (409, "administrator.last"));
}

async fn administrators_who_remove_each_other_at_once_leave_one(world: World) {
    let (kofi, ama) = (world.person("kofi").await, world.person("ama").await);
    for _ in 0..5 {
        let uri = world.host_of(&kofi).await.uri;
        add(&world, &kofi.key, &uri, &ama.number).await;

        let his = remove(&world, &kofi.key, &uri, &ama.number);
        let (his, hers) = join(his, remove(&world, &ama.key, &uri, &kofi.number)).await;

        let mut statuses = [his.status, hers.status];
        statuses.sort_unstable();
        assert_eq!(statuses, [204, 403], "who was removed may no longer remove");
        assert_eq!(administrators(&world, &uri).await.len(), 1);
    }
}

async fn administrators_who_all_leave_at_once_leave_one(world: World) {
    let kofi = world.person("kofi").await;
    let uri = world.host_of(&kofi).await.uri;
    let mut all = vec![kofi];
    for name in ["ama", "yaw", "esi"] {
        let person = world.person(name).await;
        add(&world, &all[0].key, &uri, &person.number).await;
        all.push(person);
    }

    let left = join_all(all.iter().map(|person| remove(&world, &person.key, &uri, &person.number))).await;

    assert_eq!(left.iter().filter(|answer| answer.status == 204).count(), 3);
    assert_eq!(left.iter().filter(|answer| refusal(answer) == (409, "administrator.last")).count(), 1);
    assert_eq!(administrators(&world, &uri).await.len(), 1);
}

async fn the_staff_appoint_an_administrator_where_none_is_left(world: World) {
    let (kofi, ama, yaw) = (world.person("kofi").await, world.person("ama").await, world.person("yaw").await);
    let uri = world.host_of(&kofi).await.uri;
    let removed = world.request("DELETE", &format!("/accounts/{}", kofi.number)).key(&kofi.key).send().await;
    assert_eq!((removed.status, administrators(&world, &uri).await.len()), (204, 0));

    let herself = add(&world, &ama.key, &uri, &ama.number).await;
    let unknown = add(&world, &world.staff.key, &uri, "GH-00000000").await;
    let appointed = add(&world, &world.staff.key, &uri, &ama.number).await;
    let again = add(&world, &world.staff.key, &uri, &yaw.number).await;

    assert_eq!(refusal(&herself), (403, "resource.not-yours"));
    assert_eq!((unknown.status, unknown.complaints()), (400, vec!["account".to_owned()]));
    assert_eq!(appointed.status, 201, "{}", appointed.body);
    assert_eq!(refusal(&again), (403, "resource.not-yours"), "now it is for her to say");
    assert_eq!(administrators(&world, &uri).await.join(" "), ama.number);
    assert_eq!(add(&world, &ama.key, &uri, &yaw.number).await.status, 201);
}
