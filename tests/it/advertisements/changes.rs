//! Changes to an advertisement.

use serde_json::json;

use super::{advertisement, change, make, publish, read, refusal, uri};
use crate::on_both_databases;
use crate::support::World;

on_both_databases![
    a_change_leaves_what_it_does_not_name,
    what_was_read_can_be_sent_back,
    a_change_is_held_to_the_rules_of_booking,
    a_listed_advertisement_is_changed_at_once_but_keeps_its_status,
    an_advertisement_is_changed_by_its_hosts_administrators_and_the_staff,
    an_advertisement_moves_to_another_event_of_who_may_act_for_both,
];

async fn a_change_leaves_what_it_does_not_name(world: World) {
    let kofi = world.person("kofi").await;
    let event = world.draft(&world.host_of(&kofi).await).await;
    let before = make(&world, &kofi.key, &advertisement("Jazz", &event, &[&world.zone(300, 250).await])).await;
    let uri = uri(&before);

    let nothing = change(&world, &kofi.key, &uri, json!({ "x-parsed-md-description": { "result": [] } })).await;
    let some = json!({
        "name": "Rock", "description": "- loud\n- long", "status": "Listed", "artwork_id": 1,
        "schedule": [{ "start": "2998-12-20T01:00+01:00", "end": "2998-12-20T01:00" }],
    });
    let after = change(&world, &kofi.key, &uri, some).await;

    assert_eq!((nothing.status, &nothing.body), (200, &before.body));
    let mut expected = before.body;
    expected["name"] = "Rock".into();
    expected["description"] = "- loud\n- long".into();
    expected["schedule"] = json!([{ "start": "2998-12-20 00:00", "end": "2998-12-20 01:00" }]);
    expected["x-parsed-md-description"] = json!({ "result": [{ "type": "list", "items": ["loud", "long"] }] });
    assert_eq!((after.status, &after.body), (200, &expected));
    assert_eq!(read(&world, &kofi.key, &uri).await.body, expected);
}

async fn what_was_read_can_be_sent_back(world: World) {
    let kofi = world.person("kofi").await;
    let event = world.draft(&world.host_of(&kofi).await).await;
    let mut new = advertisement("Jazz", &event, &[&world.zone(300, 250).await]);
    new["description"] = "Play:\n\n```\nla();\n\tla();\n```".into();
    let made = make(&world, &kofi.key, &new).await;

    let parsed = &made.body["x-parsed-md-description"];
    assert_eq!(parsed["result"][1]["text"], "la();\n\tla();");
    let sent = json!({ "description": made.body["description"], "x-parsed-md-description": parsed });
    let same = change(&world, &kofi.key, &uri(&made), sent).await;
    new["name"] = "Another".into();
    new["x-parsed-md-description"] = parsed.clone();
    let copy = make(&world, &kofi.key, &new).await;

    assert_eq!((same.status, &same.body), (200, &made.body));
    assert_eq!((copy.status, &copy.body["x-parsed-md-description"]), (201, parsed), "{}", copy.body);
}

async fn a_change_is_held_to_the_rules_of_booking(world: World) {
    let kofi = world.person("kofi").await;
    let event = world.draft(&world.host_of(&kofi).await).await;
    let made = make(&world, &kofi.key, &advertisement("Jazz", &event, &[&world.zone(300, 250).await])).await;
    let uri = uri(&made);
    let backward = json!([{ "start": "2998-12-20 00:00", "end": "2998-12-19 00:00" }]);

    for (body, complaints) in [
        (json!({ "name": " ", "zones": "", "schedule": null, "event": "" }), vec!["-name", "-event", "-zones", "-schedule"]),
        (json!({ "zones": [], "schedule": [], "event": event.uri }), vec!["event", "zones", "schedule"]),
        (json!({ "event": "17637000000001" }), vec!["event"]),
        (json!({ "artwork": "*", "zones": ["17637000000001"], "schedule": backward }), vec!["artwork", "zones", "schedule"]),
    ] {
        let answer = change(&world, &kofi.key, &uri, body.clone()).await;
        assert_eq!((answer.status, answer.complaints()), (400, complaints.into_iter().map(str::to_owned).collect()), "{body}");
    }
    assert_eq!(read(&world, &kofi.key, &uri).await.body, made.body);
}

async fn a_listed_advertisement_is_changed_at_once_but_keeps_its_status(world: World) {
    let kofi = world.person("kofi").await;
    let event = world.listed_event(&world.host_of(&kofi).await, &[]).await;
    let (zone, other) = (world.zone(300, 250).await, world.zone(300, 250).await);
    let uri = uri(&make(&world, &kofi.key, &advertisement("Jazz", &event, &[&zone])).await);
    publish(&world, &uri).await;

    let changed = change(&world, &kofi.key, &uri, json!({ "name": "Rock", "zones": [other] })).await;

    assert_eq!((&changed.body["name"], &changed.body["status"]), (&json!("Rock"), &json!("Listed")));
    assert_eq!(read(&world, &world.public_key, &uri).await.body, changed.body);
    let shown =
        async |zone: &str| read(&world, &world.public_key, &format!("{zone}/advertisements")).await.body["entries"].clone();
    assert_eq!((shown(&zone).await, shown(&other).await), (json!([]), json!([changed.body])));
}

async fn an_advertisement_is_changed_by_its_hosts_administrators_and_the_staff(world: World) {
    let (kofi, ama) = (world.person("kofi").await, world.person("ama").await);
    let event = world.listed_event(&world.host_of(&kofi).await, &[]).await;
    let uri = uri(&make(&world, &kofi.key, &advertisement("Jazz", &event, &[&world.zone(300, 250).await])).await);
    publish(&world, &uri).await;

    let stranger = change(&world, &ama.key, &uri, json!({ "name": "Mine" })).await;
    let application = change(&world, &world.public_key, &uri, json!({ "name": "Mine" })).await;
    let staff = change(&world, &world.staff.key, &uri, json!({ "name": "Ours" })).await;
    let nothing = change(&world, &kofi.key, "/advertisements/17637000000001", json!({ "name": "Ours" })).await;

    assert_eq!(refusal(&stranger), (403, "resource.not-yours"));
    assert_eq!(refusal(&application), (403, "key.refused"));
    assert_eq!((staff.status, &staff.body["name"]), (200, &json!("Ours")));
    assert_eq!(refusal(&nothing), (404, "resource.not-found"));
}

async fn an_advertisement_moves_to_another_event_of_who_may_act_for_both(world: World) {
    let (kofi, ama) = (world.person("kofi").await, world.person("ama").await);
    let (his, hers) = (world.host_of(&kofi).await, world.host_of(&ama).await);
    let (event, other, foreign) = (world.draft(&his).await, world.draft(&his).await, world.listed_event(&hers, &[]).await);
    let made = make(&world, &kofi.key, &advertisement("Jazz", &event, &[&world.zone(300, 250).await])).await;
    let uri = uri(&made);

    let stolen = change(&world, &kofi.key, &uri, json!({ "event": foreign.id, "zones": ["nowhere"] })).await;
    let moved = change(&world, &kofi.key, &uri, json!({ "event": other.id })).await;
    let given = change(&world, &world.staff.key, &uri, json!({ "event": foreign.id })).await;

    assert_eq!(refusal(&stolen), (403, "resource.not-yours"));
    assert_eq!((moved.status, &moved.body["event"]["self"]), (200, &json!(other.uri)));
    assert_eq!((given.status, &given.body["event"]["host"]), (200, &json!(hers.uri)));
    assert_eq!((read(&world, &kofi.key, &uri).await.status, read(&world, &ama.key, &uri).await.status), (403, 200));
}
