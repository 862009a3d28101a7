//! Tickets: wallets, single tickets, and the tickets of an event.

use std::time::Duration;

use boxoffice::kernel::types::clock::Timestamp;
use futures::future::{join, join_all};
use serde_json::{Value, json};

use crate::support::{Client, Event, Rejection, Response, TestApp, User, entries_of, rejection, section, test_on, types};
use crate::tokens::{create_token, global_token, redeemer_client, redeemer_key};

/// Sets a ticket's status in the database.
pub async fn set_status(app: &TestApp, serial: &str, status: &'static str) {
    let mut tx = app.state.db.begin().await.unwrap();
    let update = tx.query("update tickets set status = $2 where serial = $1").bind(serial.to_owned()).bind(status);
    assert_eq!(update.rows_affected().await.unwrap(), 1);
    if status == "Void" {
        // The place of a void ticket is free.
        let section = "update sections set sold = sold - 1 where id = (select section_id from tickets where serial = $1)";
        assert_eq!(tx.query(section).bind(serial.to_owned()).rows_affected().await.unwrap(), 1);
    }
    tx.commit().await.unwrap();
}

/// Returns the serials on the first page of an event's tickets.
async fn serials(client: &Client, event: &Event) -> Vec<String> {
    let tickets = client.event_ticket_list().event(&event.id).send().await.unwrap();
    assert_eq!(tickets.total, tickets.entries.len() as i64);
    tickets.entries.iter().map(|ticket| ticket.serial.to_string()).collect()
}

#[test_on(sqlite, postgres)]
async fn wallet_contains_all_tickets_of_account(app: TestApp) {
    let (kofi, ama, jazz) = app.create_sale(&[section("VIP", 0.0, 10), section("Floor", 0.0, 10)]).await;
    let rock = app.create_listed_event(&jazz.host, &[section("Floor", 0.0, 10)]).await;
    let path = format!("/accounts/{}/tickets", ama.number);
    let empty = app.get(&ama.key, &path).await;
    assert_eq!(empty.body, json!({ "total": 0, "page": 1, "records": 25, "entries": [] }));

    ama.order_items([(jazz.sections[0].as_str(), 1), (jazz.sections[1].as_str(), 2)]).await.unwrap();
    ama.order_free_tickets(&rock.sections[0], 1).await;
    kofi.order_free_tickets(&rock.sections[0], 1).await;
    let wallet = app.get(&ama.key, &path).await;

    assert_eq!((wallet.status, &wallet.body["total"]), (200, &json!(4)));
    let tickets = entries_of(&wallet.body);
    let mut sections: Vec<_> = tickets.iter().map(|ticket| ticket["section"]["self"].as_str().unwrap()).collect();
    assert_eq!(sections.pop(), Some(rock.sections[0].as_str()), "the newest comes last");
    sections.sort_unstable();
    assert_eq!(sections, [&jazz.sections[0], &jazz.sections[1], &jazz.sections[1]]);
    for ticket in tickets {
        let read = app.get(&ama.key, ticket["self"].as_str().unwrap()).await;
        assert_eq!(&read.body, ticket);
        assert_eq!((&ticket["status"], &ticket["redeemed"]), (&json!("Issued"), &json!("N/A")));
        assert_eq!(ticket["owner"]["number"], ama.number.as_str());
    }
    assert_eq!((&tickets[3]["section"]["sold"], &tickets[3]["section"]["remaining"]), (&json!(2), &json!(8)));
    let last = app.get(&ama.key, &format!("{path}?records=3&page=2")).await;
    assert_eq!(last.body["entries"], json!([tickets[3]]));
}

/// Concurrent requests share statements.
#[test_on(sqlite, postgres)]
async fn concurrent_wallets_have_own_tickets(app: TestApp) {
    let (_, event) = app.sign_up_host("kofi", &[section("Floor", 0.0, 100)]).await;
    let mut buyers = Vec::new();
    for number in 0..12 {
        let buyer = app.sign_up(&format!("buyer-{number}")).await;
        let serials = if number == 0 { Vec::new() } else { buyer.order_free_tickets(&event.sections[0], number).await };
        buyers.push((buyer, serials));
    }
    let wallet = async |number: &str, key: &str, page: usize| {
        app.get(key, &format!("/accounts/{number}/tickets?records=5&page={page}")).await
    };

    let requests = buyers.iter().flat_map(|(buyer, serials)| {
        let (wallet, key) = (&wallet, buyer.key.as_str());
        [1, 2].map(async move |page| {
            let own = wallet(&buyer.number, key, page).await;
            let expected: Vec<&String> = serials.iter().skip((page - 1) * 5).take(5).collect();
            if expected.is_empty() && page > 1 {
                return assert_eq!(rejection(&own), (404, "page.past-end"));
            }
            assert_eq!((own.status, &own.body["total"]), (200, &json!(serials.len())), "{}", own.body);
            let entries = entries_of(&own.body);
            assert_eq!(entries.iter().map(|ticket| &ticket["serial"]).collect::<Vec<_>>(), expected);
            assert!(entries.iter().all(|ticket| ticket["owner"]["number"] == buyer.number.as_str()));
        })
    });
    let of_others = [(&buyers[1], &buyers[2]), (&buyers[2], &buyers[1])].map(async |((owner, _), (other, _))| {
        assert_eq!(rejection(&wallet(&owner.number, &other.key, 1).await), (403, "resource.not-yours"));
        assert_eq!(rejection(&wallet("ZZ-ZZZZZZZZ", &other.key, 1).await), (404, "resource.not-found"));
    });
    join(join_all(requests), join_all(of_others)).await;
}

/// The tickets of another event have the lower identifiers. PostgreSQL knows that half of all tickets are of the event.
#[test_on(two_servers)]
async fn page_of_large_event_reads_no_other_tickets(app: TestApp) {
    let (kofi, ama) = (app.sign_up("kofi").await, app.sign_up("ama").await);
    let host = app.create_host(&kofi).await;
    let create_large_event = async || {
        let large = app.create_listed_event(&host, &[section("Floor", 0.0, 10_000)]).await;
        ama.order_free_tickets(&large.sections[0], 1).await;
        app.execute_sql(
            "insert into tickets (id, serial, order_id, event_id, section_id, owner_id, status, issued, modified)
             select t.id + n, 'COPY00-' || right((t.id + n)::text, 12), order_id, event_id, section_id, owner_id, status, issued, modified
             from (select * from tickets order by id desc limit 1) t, generate_series(1, 4000) n",
        )
        .await;
        app.advance_clock(Duration::from_secs(3600));
        large
    };
    create_large_event().await;
    let event = create_large_event().await;
    app.execute_sql("analyze tickets").await;

    let path = format!("{}/tickets?records=5", event.uri);
    let check = |page: &Response| {
        assert_eq!((page.status, entries_of(&page.body).len()), (200, 5), "{}", page.body);
    };
    let rows = app.rows_read_by_50_requests("tickets", &kofi.key, &path, check).await;

    assert!((250..50_000).contains(&rows), "50 pages of 5 tickets have read {rows} rows");
}

#[test_on(sqlite, postgres)]
async fn owner_host_and_staff_read_the_same_ticket(app: TestApp) {
    let (kofi, ama, event) = app.create_sale(&[section("Floor", 0.0, 10)]).await;
    ama.order_free_tickets(&event.sections[0], 1).await;
    let wallet = ama.client.account_ticket_list().number(ama.number.as_str()).send().await.unwrap();
    let uri = wallet.entries[0].self_.clone();
    let read = async |key: &str| app.get(key, &uri).await;

    let hers = read(&ama.key).await;

    assert_eq!(hers.status, 200);
    assert_eq!(serde_json::from_value::<types::Ticket>(hers.body.clone()).unwrap(), wallet.entries[0]);
    for key in [&kofi.key, &app.staff.key] {
        assert_eq!(read(key).await.body, hers.body);
    }
}

#[test_on(sqlite, postgres)]
async fn redeemer_lists_tickets_of_own_sections(app: TestApp) {
    let (kofi, ama, event) = app.create_sale(&[section("VIP", 0.0, 10), section("Floor", 0.0, 10)]).await;
    let other = app.create_listed_event(&event.host, &[section("Floor", 0.0, 10)]).await;
    ama.order_free_tickets(&other.sections[0], 1).await;
    let floor = ama.order_free_tickets(&event.sections[1], 2).await;
    let vip = kofi.order_free_tickets(&event.sections[0], 1).await;
    let vip_gate = redeemer_client(&app, &create_token(&event, &[&event.sections[0]]).await).await;
    let main_gate = redeemer_client(&app, &global_token(&event).await).await;

    assert_eq!(serials(&vip_gate, &event).await, vip);
    assert_eq!(serials(&main_gate, &event).await, [floor.clone(), vip.clone()].concat());

    let balcony = app.add_section(&event, &section("Balcony", 0.0, 10)).await;
    let late = ama.order_free_tickets(&balcony, 1).await;
    assert_eq!(serials(&vip_gate, &event).await, vip);
    let all = [floor, vip, late].concat();
    for client in [&main_gate, &kofi.client, &app.staff.client] {
        assert_eq!(serials(client, &event).await, all);
    }
    let second = main_gate.event_ticket_list().event(&event.id).records(3).page(2).send().await.unwrap();
    assert_eq!((second.total, second.entries[0].serial.as_str()), (4, all[3].as_str()));
    let past_the_end = vip_gate.event_ticket_list().event(&event.id).page(2).send().await;
    assert_eq!(past_the_end.rejection(), (404, "page.past-end".to_owned()));
}

/// Concurrent requests share statements, but only with callers who see the same tickets. A page that doesn't exist fails by itself.
#[test_on(sqlite, postgres)]
async fn concurrent_lists_of_event_have_own_pages(app: TestApp) {
    let (kofi, ama, event) = app.create_sale(&[section("VIP", 0.0, 10), section("Floor", 0.0, 10)]).await;
    ama.order_free_tickets(&event.sections[1], 2).await;
    app.advance_clock(Duration::from_secs(3600));
    let changed = format!("modified_since={}", app.state.clock.now().format_minutes());
    kofi.order_free_tickets(&event.sections[0], 1).await;
    let vip_gate = redeemer_key(&app, &create_token(&event, &[&event.sections[0]]).await).await;
    let main_gate = redeemer_key(&app, &global_token(&event).await).await;
    let list = async |key: &str, query: &str| {
        let list = app.get(key, &format!("{}/tickets?{query}", event.uri)).await;
        (list.status, list.body)
    };
    let mut lists = Vec::new();
    for key in [&vip_gate, &main_gate, &kofi.key, &app.staff.key, &ama.key] {
        for query in ["records=100", "records=1", changed.as_str(), "holder=kofi", "page=9"] {
            // By itself.
            lists.push((key, query, list(key, query).await));
        }
    }
    let totals: Vec<_> = lists.iter().map(|(.., (status, body))| (*status, body["total"].as_i64().unwrap_or(-1))).collect();
    let (of_vip, of_all) = ([1, 1, 1, 1], [3, 3, 1, 1]);
    let of = |totals: [i64; 4]| totals.map(|total| (200, total)).into_iter().chain([(404, -1)]);
    let expected = [of_vip, of_all, of_all, of_all].into_iter().flat_map(of).chain([(403, -1); 5]);
    assert_eq!(totals, expected.collect::<Vec<_>>());

    let concurrent =
        async |(key, query, alone): &(&String, &str, (u16, Value))| assert_eq!(list(key, query).await, *alone, "{query}");
    join_all(lists.iter().cycle().take(300).map(concurrent)).await;
}

#[test_on(sqlite, postgres)]
async fn void_tickets_are_not_valid(app: TestApp) {
    let (kofi, ama, event) = app.create_sale(&[section("Floor", 0.0, 10)]).await;
    let bought = ama.order_free_tickets(&event.sections[0], 3).await;

    set_status(&app, &bought[0], "Void").await;
    set_status(&app, &bought[1], "Pending").await;

    assert_eq!(serials(&kofi.client, &event).await, bought[1..]);
    let wallet = ama.client.account_ticket_list().number(ama.number.as_str()).send().await.unwrap();
    let statuses: Vec<_> = wallet.entries.iter().map(|ticket| ticket.status.clone()).collect();
    assert_eq!(statuses, [types::TicketStatus::Void, types::TicketStatus::Pending, types::TicketStatus::Issued]);
}

#[test_on(sqlite, postgres)]
async fn redeemer_requests_changes_since_time(app: TestApp) {
    let (kofi, ama, event) = app.create_sale(&[section("Floor", 0.0, 10)]).await;
    let gate = redeemer_client(&app, &global_token(&event).await).await;
    let early = ama.order_free_tickets(&event.sections[0], 2).await;
    let start = app.state.clock.now();
    app.advance_clock(Duration::from_secs(3600));
    let late = ama.order_free_tickets(&event.sections[0], 1).await;
    let since = async |since: String| {
        let changed = gate.event_ticket_list().event(&event.id).modified_since(since).send().await.unwrap();
        changed.entries.iter().map(|ticket| ticket.serial.to_string()).collect::<Vec<_>>()
    };
    let in_between = start.plus(Duration::from_secs(1800));

    assert_eq!(since(in_between.format_rfc3339()).await, late);
    assert_eq!(since(in_between.format_minutes()).await, late, "UTC where no zone is given");
    app.advance_clock(Duration::from_secs(2));
    assert_eq!(since(app.state.clock.now().format_rfc3339()).await, Vec::<String>::new());
    let all = [early.clone(), late.clone()].concat();
    assert_eq!(since("2020-01-01T00:00:00Z".to_owned()).await, all);
    assert_eq!(since(start.plus(Duration::from_secs(7200)).format_minutes()).await, all, "the clock of a server was ahead");

    let admit = serde_json::from_value::<types::AdmissionCreate>(json!({ "serials": [early[1]] })).unwrap();
    gate.event_admission_create().event(&event.id).body(admit).send().await.unwrap();
    assert_eq!(since(in_between.format_rfc3339()).await, [early[1].clone(), late[0].clone()], "redeeming is a change");

    // As `curl` sends it.
    let unencoded = app.get(&kofi.key, &format!("{}/tickets?modified_since=2026-01-01T00:00:00+00:00", event.uri)).await;
    assert_eq!(unencoded.status, 200, "{}", unencoded.body);
}

/// Returns the serial and the status of each ticket of an event that has changed since.
async fn changes(client: &Client, event: &Event, since: Timestamp) -> Vec<(String, String)> {
    let changed = client.event_ticket_list().event(&event.id).modified_since(since.format_rfc3339()).records(100);
    let changed = changed.send().await.unwrap().into_inner();
    assert_eq!(changed.total, changed.entries.len() as i64);
    changed.entries.iter().map(|ticket| (ticket.serial.to_string(), ticket.status.to_string())).collect()
}

#[test_on(sqlite, postgres)]
async fn changes_include_tickets_that_became_void(app: TestApp) {
    let (kofi, ama, event) = app.create_sale(&[section("VIP", 0.0, 10), section("Floor", 0.0, 10)]).await;
    let returned = ama.order(&event.sections[0], 2).await.unwrap().self_.clone();
    let voided = ama.order(&event.sections[1], 1).await.unwrap().self_.clone();
    let [one, other, floor] = serials(&kofi.client, &event).await.try_into().unwrap();
    let vip_gate = redeemer_client(&app, &create_token(&event, &[&event.sections[0]]).await).await;
    app.advance_clock(Duration::from_secs(3600));
    let before = app.state.clock.now();
    assert_eq!(changes(&kofi.client, &event, before).await, []);

    assert_eq!(app.return_tickets(&kofi.key, &returned, json!({ "tickets": [one] })).await.status, 200);
    assert_eq!(app.void_order(&app.staff.key, &voided, json!({ "reason": "A stolen card." })).await.status, 200);

    let void = |serial: &String| (serial.clone(), "Void".to_owned());
    assert_eq!(changes(&kofi.client, &event, before).await, [void(&one), void(&floor)]);
    assert_eq!(changes(&vip_gate, &event, before).await, [void(&one)], "only of its sections");
    assert_eq!(
        serials(&kofi.client, &event).await,
        std::slice::from_ref(&other),
        "the list without a time has valid tickets only"
    );
    let all = changes(&kofi.client, &event, Timestamp(0)).await;
    assert_eq!(all, [void(&one), (other, "Issued".to_owned()), void(&floor)]);
    let list = app.request("GET", &format!("{}/tickets", event.uri)).at(app.server).key(&kofi.key).send().await;
    assert!(list.header("date").ends_with(" GMT"), "the time for the next request");
}

#[test_on(sqlite, postgres)]
async fn changes_include_tickets_of_deleted_account(app: TestApp) {
    let (kofi, ama, event) = app.create_sale(&[section("Floor", 0.0, 10)]).await;
    let hers = ama.order_free_tickets(&event.sections[0], 1).await;
    assert_eq!(app.post_empty(&kofi.key, &format!("{}/cancellations", event.uri)).await.status, 200);
    app.advance_clock(Duration::from_secs(3600));
    let before = app.state.clock.now();

    assert_eq!(app.delete(&ama.key, &format!("/accounts/{}", ama.number)).await.status, 204);

    assert_eq!(changes(&kofi.client, &event, before).await, [(hers[0].clone(), "Issued".to_owned())]);
}

/// The clocks of two servers differ, or a change waits for another one that began later.
#[test_on(sqlite, postgres)]
async fn later_change_has_later_time(app: TestApp) {
    let (kofi, ama, event) = app.create_sale(&[section("Floor", 0.0, 10)]).await;
    let esi = app.sign_up("esi").await;
    let hers = ama.order_free_tickets(&event.sections[0], 1).await;
    app.execute_sql("update tickets set modified = modified + 3600000000").await;
    let ahead = app.scalar::<i64>("select modified from tickets").await;

    assert_eq!(app.post(&ama.key, "/transfers", json!({ "recipient": esi.number, "tickets": hers })).await.status, 201);

    assert_eq!(app.scalar::<i64>("select modified from tickets").await, ahead + 1);
    assert_eq!(changes(&kofi.client, &event, Timestamp(ahead)).await, [(hers[0].clone(), "Pending".to_owned())]);
}

#[test_on(sqlite, postgres)]
async fn staff_finds_tickets_by_serial_and_holder(app: TestApp) {
    let (kofi, ama, event) = app.create_sale(&[section("VIP", 0.0, 10), section("Floor", 0.0, 10)]).await;
    let esi = app.sign_up("esi").await;
    let [hers, void] = ama.order_free_tickets(&event.sections[0], 2).await.try_into().unwrap();
    let other = esi.order_free_tickets(&event.sections[1], 1).await.remove(0);
    set_status(&app, &void, "Void").await;
    let key = redeemer_key(&app, &create_token(&event, &[&event.sections[0]]).await).await;
    let (app, event) = (&app, &event);
    let find = |key: &str, query: &str| {
        let request = app.request("GET", &format!("{}/tickets?{query}", event.uri)).key(key);
        async move {
            let response = request.send().await;
            let entries = entries_of(&response.body);
            entries.iter().map(|ticket| ticket["serial"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
        }
    };

    assert_eq!(find(&kofi.key, &format!("serial={}", hers.to_lowercase())).await, [hers.as_str()]);
    assert_eq!(find(&kofi.key, &format!("serial={void}")).await, [void.as_str()], "also a void ticket");
    for holder in ["AMA", "ama@example.com", "%20Ama@Example.com%20"] {
        assert_eq!(find(&kofi.key, &format!("holder={holder}")).await, [hers.as_str()], "{holder}");
    }
    assert_eq!(find(&kofi.key, "holder=esi").await, [other.as_str()]);
    assert_eq!(find(&kofi.key, &format!("holder=ama&serial={other}")).await, [] as [&str; 0]);
    assert_eq!(find(&key, "holder=esi").await, [] as [&str; 0], "of another section");
    assert_eq!(find(&key, &format!("serial={other}")).await, [] as [&str; 0]);
}

#[test_on(sqlite, postgres)]
async fn staff_searches_tickets_by_part_of_name_or_email(app: TestApp) {
    let sections = [section("VIP", 0.0, 10), section("Floor", 0.0, 10)];
    let (kofi, ama, event) = app.create_sale(&sections).await;
    let esi = app.sign_up("esi").await;
    let rename = async |user: &User, first: &str, last: &str| {
        let body = json!({ "firstName": first, "lastName": last });
        let response = app.put(&user.key, &format!("/accounts/{}", user.number), &body).await;
        assert_eq!(response.status, 200, "{}", response.body);
    };
    rename(&ama, "Ama", "Ménsah_1").await;
    rename(&esi, "Ésì", "Strauß").await;
    let hers = ama.order_free_tickets(&event.sections[0], 1).await.remove(0);
    let other = esi.order_free_tickets(&event.sections[1], 1).await.remove(0);
    let find = async |key: &str, query: &[(&str, &str)]| -> Vec<String> {
        let query: Vec<String> = query.iter().map(|(name, value)| format!("{name}={}", percent(value))).collect();
        let page = app.get(key, &format!("{}/tickets?{}", event.uri, query.join("&"))).await;
        assert_eq!(page.status, 200, "{}", page.body);
        entries_of(&page.body).iter().map(|ticket| ticket["serial"].as_str().unwrap().to_owned()).collect()
    };

    for text in ["MÉNSAH", "me\u{301}nsah_1", "  ama   ménsah ", "ama@exam", "Ama"] {
        assert_eq!(find(&kofi.key, &[("search", text)]).await, [hers.as_str()], "{text}");
    }
    for text in ["STRAUSS", "ésì", "esi@"] {
        assert_eq!(find(&kofi.key, &[("search", text)]).await, [other.as_str()], "{text}");
    }
    for text in ["ménsah%", "m_nsah", "mensah", "' or 1=1", "kofi"] {
        assert_eq!(find(&kofi.key, &[("search", text)]).await, [] as [&str; 0], "{text}");
    }
    assert_eq!(find(&kofi.key, &[("search", "example.com")]).await, [hers.as_str(), other.as_str()]);
    assert_eq!(find(&kofi.key, &[("search", "example.com"), ("holder", "esi")]).await, [other.as_str()]);
    // A redeemer searches its own sections only.
    let token = kofi.client.event_token_create().event(&event.id).body_map(|body| body.sections(vec![event.sections[0].clone()]));
    let key = redeemer_key(&app, &token.send().await.unwrap()).await;
    assert_eq!(find(&key, &[("search", "example.com")]).await, [hers.as_str()]);
    // Former names are not found, nor those of a deleted account, and rows of an earlier version are completed at the start.
    rename(&ama, "Abena", "Owusu").await;
    assert_eq!(find(&kofi.key, &[("search", "ménsah")]).await, [] as [&str; 0]);
    app.execute_sql("update accounts set folded_names = null").await;
    assert_eq!(find(&kofi.key, &[("search", "OWUSU")]).await, [hers.as_str()]);
    boxoffice::features::identity::accounts::complete_names(&app.state).await.unwrap();
    assert_eq!(find(&kofi.key, &[("search", "straüss"), ("holder", "esi")]).await, [] as [&str; 0]);
    assert_eq!(find(&kofi.key, &[("search", "strauss")]).await, [other.as_str()]);
    for text in ["a", &"a".repeat(101)] {
        let invalid = app.get(&kofi.key, &format!("{}/tickets?search={text}", event.uri)).await;
        assert_eq!(invalid.invalid_arguments(), ["search"]);
    }
}

/// Returns a text with everything percent-encoded.
fn percent(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}
