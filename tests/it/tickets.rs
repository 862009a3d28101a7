//! Tickets: a person's wallet, a single ticket, and the list that a gate keeps.

use std::time::Duration;

use serde_json::json;

use crate::on_both_databases;
use crate::support::{Client, Event, Person, Refusal, World, section, types};
use crate::tokens::{gate, global_token, key_of, token_for};

on_both_databases![
    a_wallet_holds_every_ticket_of_an_account,
    a_wallet_is_its_owners_alone,
    a_ticket_is_read_by_its_owner_its_host_and_staff,
    a_gate_lists_the_tickets_of_its_tokens_sections,
    an_events_tickets_are_for_whoever_admits_to_it,
    void_tickets_are_not_valid,
    a_gate_asks_for_what_has_changed_since,
];

/// Free tickets, which are delivered at once; their serials.
pub async fn buy(person: &Person, section: &str, quantity: usize) -> Vec<String> {
    person.order(section, quantity.try_into().unwrap()).await.unwrap();
    let wallet = person.client.account_ticket_list().number(person.number.as_str()).records(100).send().await.unwrap();
    let newest = wallet.entries.iter().skip(wallet.entries.len() - quantity);
    newest.map(|ticket| ticket.serial.to_string()).collect()
}

/// Brings a ticket into a state that nothing in the API leads to yet.
pub async fn set_status(world: &World, serial: &str, status: &'static str) {
    let mut tx = world.app.db.begin().await.unwrap();
    let update = tx.query("update tickets set status = $2 where serial = $1").bind(serial.to_owned()).bind(status);
    assert_eq!(update.execute().await.unwrap(), 1);
    tx.commit().await.unwrap();
}

/// The serials on the first page of an event's tickets.
async fn serials(client: &Client, event: &Event) -> Vec<String> {
    let tickets = client.event_ticket_list().event(&event.id).send().await.unwrap();
    assert_eq!(tickets.total, tickets.entries.len() as i64);
    tickets.entries.iter().map(|ticket| ticket.serial.to_string()).collect()
}

async fn a_wallet_holds_every_ticket_of_an_account(world: World) {
    let (kofi, ama) = (world.person("kofi").await, world.person("ama").await);
    let host = world.host_of(&kofi).await;
    let jazz = world.listed_event(&host, &[section("VIP", 0.0, 10), section("Floor", 0.0, 10)]).await;
    let rock = world.listed_event(&host, &[section("Floor", 0.0, 10)]).await;
    let path = format!("/accounts/{}/tickets", ama.number);
    let empty = world.request("GET", &path).key(&ama.key).send().await;
    assert_eq!(empty.body, json!({ "total": 0, "page": 1, "records": 25, "entries": [] }));

    ama.order_all([(jazz.sections[0].as_str(), 1), (jazz.sections[1].as_str(), 2)]).await.unwrap();
    buy(&ama, &rock.sections[0], 1).await;
    buy(&kofi, &rock.sections[0], 1).await;
    let wallet = world.request("GET", &path).key(&ama.key).send().await;

    assert_eq!((wallet.status, &wallet.body["total"]), (200, &json!(4)));
    let tickets = wallet.body["entries"].as_array().unwrap();
    let mut sections: Vec<_> = tickets.iter().map(|ticket| ticket["section"]["self"].as_str().unwrap()).collect();
    assert_eq!(sections.pop(), Some(rock.sections[0].as_str()), "the newest comes last");
    sections.sort_unstable();
    assert_eq!(sections, [&jazz.sections[0], &jazz.sections[1], &jazz.sections[1]]);
    for ticket in tickets {
        let read = world.request("GET", ticket["self"].as_str().unwrap()).key(&ama.key).send().await;
        assert_eq!(&read.body, ticket);
        assert_eq!((&ticket["status"], &ticket["redeemed"]), (&json!("Issued"), &json!("N/A")));
        assert_eq!(ticket["owner"]["number"], ama.number.as_str());
    }
    assert_eq!((&tickets[3]["section"]["sold"], &tickets[3]["section"]["remaining"]), (&json!(2), &json!(8)));
    let last = world.request("GET", &format!("{path}?records=3&page=2")).key(&ama.key).send().await;
    assert_eq!(last.body["entries"], json!([tickets[3]]));
    let past_the_end = world.request("GET", &format!("{path}?records=3&page=3")).key(&ama.key).send().await;
    assert_eq!((past_the_end.status, past_the_end.code()), (404, "page.past-end"));
}

async fn a_wallet_is_its_owners_alone(world: World) {
    let (kofi, ama) = (world.person("kofi").await, world.person("ama").await);
    let host = world.host_of(&kofi).await;
    let event = world.listed_event(&host, &[section("Floor", 0.0, 10)]).await;
    buy(&ama, &event.sections[0], 1).await;

    let his = kofi.client.account_ticket_list().number(ama.number.as_str()).send().await;
    assert_eq!(his.refusal(), (403, "resource.not-yours".to_owned()));
    let key = key_of(&world, &global_token(&host, &event).await).await;
    let gates = world.client(&key).account_ticket_list().number(ama.number.as_str()).send().await;
    assert_eq!(gates.refusal(), (403, "key.refused".to_owned()));
    let staff = world.staff.client.account_ticket_list().number(ama.number.as_str()).send().await.unwrap();
    assert_eq!(staff.total, 1);
    for key in [&ama.key, &world.staff.key] {
        let unknown = world.request("GET", "/accounts/ZZ-ZZZZZZZZ/tickets").key(key).send().await;
        assert_eq!((unknown.status, unknown.code()), (404, "resource.not-found"));
    }
    let no_number = world.request("GET", "/accounts/ama/tickets").key(&ama.key).send().await;
    assert_eq!((no_number.status, no_number.complaints()), (400, vec!["number".to_owned()]));
}

async fn a_ticket_is_read_by_its_owner_its_host_and_staff(world: World) {
    let (kofi, ama, esi) = (world.person("kofi").await, world.person("ama").await, world.person("esi").await);
    let host = world.host_of(&kofi).await;
    world.host_of(&esi).await;
    let event = world.listed_event(&host, &[section("Floor", 0.0, 10)]).await;
    buy(&ama, &event.sections[0], 1).await;
    let wallet = ama.client.account_ticket_list().number(ama.number.as_str()).send().await.unwrap();
    let uri = wallet.entries[0].self_.clone();
    let read = async |key: &str| world.request("GET", &uri).key(key).send().await;

    let hers = read(&ama.key).await;

    assert_eq!(hers.status, 200);
    assert_eq!(serde_json::from_value::<types::Ticket>(hers.body.clone()).unwrap(), wallet.entries[0]);
    for key in [&kofi.key, &world.staff.key] {
        assert_eq!(read(key).await.body, hers.body);
    }
    let of_another_host = read(&esi.key).await;
    assert_eq!((of_another_host.status, of_another_host.code()), (403, "resource.not-yours"));
    let gate = read(&key_of(&world, &global_token(&host, &event).await).await).await;
    assert_eq!((gate.status, gate.code()), (403, "key.refused"));
    for unknown in ["/tickets/17637000000001", "/tickets/nothing"] {
        let unknown = world.request("GET", unknown).key(&ama.key).send().await;
        assert_eq!((unknown.status, unknown.code()), (404, "resource.not-found"));
    }
}

async fn a_gate_lists_the_tickets_of_its_tokens_sections(world: World) {
    let (kofi, ama) = (world.person("kofi").await, world.person("ama").await);
    let host = world.host_of(&kofi).await;
    let event = world.listed_event(&host, &[section("VIP", 0.0, 10), section("Floor", 0.0, 10)]).await;
    let other = world.listed_event(&host, &[section("Floor", 0.0, 10)]).await;
    buy(&ama, &other.sections[0], 1).await;
    let floor = buy(&ama, &event.sections[1], 2).await;
    let vip = buy(&kofi, &event.sections[0], 1).await;
    let vip_gate = gate(&world, &token_for(&host, &event, &[&event.sections[0]]).await).await;
    let main_gate = gate(&world, &global_token(&host, &event).await).await;

    assert_eq!(serials(&vip_gate, &event).await, vip);
    assert_eq!(serials(&main_gate, &event).await, [floor.clone(), vip.clone()].concat());

    let balcony = world.add_section(&host, &event, &section("Balcony", 0.0, 10)).await;
    let late = buy(&ama, &balcony, 1).await;
    assert_eq!(serials(&vip_gate, &event).await, vip);
    let all = [floor, vip, late].concat();
    for client in [&main_gate, &kofi.client, &world.staff.client] {
        assert_eq!(serials(client, &event).await, all);
    }
    let second = main_gate.event_ticket_list().event(&event.id).records(3).page(2).send().await.unwrap();
    assert_eq!((second.total, second.entries[0].serial.as_str()), (4, all[3].as_str()));
    let past_the_end = vip_gate.event_ticket_list().event(&event.id).page(2).send().await;
    assert_eq!(past_the_end.refusal(), (404, "page.past-end".to_owned()));
}

async fn an_events_tickets_are_for_whoever_admits_to_it(world: World) {
    let (kofi, ama) = (world.person("kofi").await, world.person("ama").await);
    let host = world.host_of(&kofi).await;
    let event = world.listed_event(&host, &[section("Floor", 0.0, 10)]).await;
    let other = world.listed_event(&host, &[section("Floor", 0.0, 10)]).await;
    buy(&ama, &event.sections[0], 1).await;
    let gate_of_another_event = gate(&world, &global_token(&host, &other).await).await;

    for client in [&ama.client, &gate_of_another_event] {
        let refused = client.event_ticket_list().event(&event.id).send().await;
        assert_eq!(refused.refusal(), (403, "resource.not-yours".to_owned()));
        let unknown = client.event_ticket_list().event("17637000000001").send().await;
        assert_eq!(unknown.refusal(), (404, "resource.not-found".to_owned()));
    }
    let public = world.anyone.event_ticket_list().event(&event.id).send().await;
    assert_eq!(public.refusal(), (403, "key.refused".to_owned()));
}

async fn void_tickets_are_not_valid(world: World) {
    let (kofi, ama) = (world.person("kofi").await, world.person("ama").await);
    let host = world.host_of(&kofi).await;
    let event = world.listed_event(&host, &[section("Floor", 0.0, 10)]).await;
    let bought = buy(&ama, &event.sections[0], 3).await;

    set_status(&world, &bought[0], "Void").await;
    set_status(&world, &bought[1], "Pending").await;

    assert_eq!(serials(&kofi.client, &event).await, bought[1..]);
    let wallet = ama.client.account_ticket_list().number(ama.number.as_str()).send().await.unwrap();
    let statuses: Vec<_> = wallet.entries.iter().map(|ticket| ticket.status).collect();
    assert_eq!(statuses, [types::TicketStatus::Void, types::TicketStatus::Pending, types::TicketStatus::Issued]);
}

async fn a_gate_asks_for_what_has_changed_since(world: World) {
    let (kofi, ama) = (world.person("kofi").await, world.person("ama").await);
    let host = world.host_of(&kofi).await;
    let event = world.listed_event(&host, &[section("Floor", 0.0, 10)]).await;
    let gate = gate(&world, &global_token(&host, &event).await).await;
    let early = buy(&ama, &event.sections[0], 2).await;
    let start = world.app.clock.now();
    world.advance(Duration::from_secs(3600));
    let late = buy(&ama, &event.sections[0], 1).await;
    let since = async |since: String| {
        let changed = gate.event_ticket_list().event(&event.id).modified_since(since).send().await.unwrap();
        changed.entries.iter().map(|ticket| ticket.serial.to_string()).collect::<Vec<_>>()
    };
    let in_between = start.plus(Duration::from_secs(1800));

    assert_eq!(since(in_between.to_offset_seconds()).await, late);
    assert_eq!(since(in_between.to_minutes()).await, late, "UTC where no zone is given");
    assert_eq!(since(start.plus(Duration::from_secs(7200)).to_minutes()).await, Vec::<String>::new());
    assert_eq!(since("2020-01-01T00:00:00Z".to_owned()).await, [early.clone(), late.clone()].concat());

    let admit = serde_json::from_value::<types::AdmissionCreate>(json!({ "serials": [early[1]] })).unwrap();
    gate.event_admission_create().event(&event.id).body(admit).send().await.unwrap();
    assert_eq!(since(in_between.to_offset_seconds()).await, [early[1].clone(), late[0].clone()], "redeeming is a change");

    let path = format!("{}/tickets?modified_since=yesterday", event.uri);
    let bad = world.request("GET", &path).key(&kofi.key).send().await;
    assert_eq!((bad.status, bad.complaints()), (400, vec!["modified_since".to_owned()]));
}
