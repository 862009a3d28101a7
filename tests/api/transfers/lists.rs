//! An account's history of transfers.

use futures::future::join_all;
use serde_json::json;

use super::{Fixture, claim, create_fixture, offer, read, reject};
use crate::support::{Response, TestApp, User, entries_of, id_of, rejection, section, test_on, types, uris};

async fn list(app: &TestApp, user: &User, query: &str) -> Response {
    app.get(&user.key, &format!("/accounts/{}/transfers{query}", user.number)).await
}

#[test_on(sqlite, postgres)]
async fn lists_sent_and_received_transfers(app: TestApp) {
    let fixture = create_fixture(&app, 2).await;
    let Fixture { kofi, ama, esi, event, serials } = &fixture;
    assert_eq!(list(&app, ama, "").await.body, json!({ "total": 0, "page": 1, "records": 25, "entries": [] }));
    let kofis = kofi.order_free_tickets(&event.sections[0], 1).await;
    let rejected = fixture.offer(&app, &serials[..1]).await;
    reject(&app, esi, &rejected).await;
    let received = offer(&app, &kofi.key, ama, &kofis).await.uri().to_owned();
    let cancelled = fixture.offer(&app, serials).await;
    app.delete(&ama.key, &cancelled).await;
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
        ("?status=Pending&records=1", vec![&received]),
        ("?status=Pending&records=1&page=2", vec![&pending]),
    ] {
        let page = list(&app, ama, query).await;
        assert_eq!(uris(&page), expected, "{query}");
    }
    assert_eq!(list(&app, ama, "?records=2&page=2").await.body["total"], 5);
    assert_eq!(list(&app, ama, "?status=Pending&records=1").await.body["total"], 2);
    let all = list(&app, ama, "").await;
    for transfer in entries_of(&all.body) {
        assert_eq!(transfer, &read(&app, ama, transfer["self"].as_str().unwrap()).await);
    }
    assert_eq!(all.body["entries"][2]["tickets"].as_array().map(Vec::len), Some(2));
    assert_eq!(uris(&list(&app, esi, "?direction=sent").await), [""; 0]);
    assert_eq!(uris(&list(&app, esi, "").await), [&rejected, &cancelled, &claimed, &pending]);
    assert_eq!(uris(&list(&app, kofi, "").await), [&received]);
}

/// Concurrent requests share statements.
#[test_on(sqlite, postgres)]
async fn concurrent_histories_have_own_transfers(app: TestApp) {
    let fixture = create_fixture(&app, 3).await;
    let Fixture { kofi, ama, esi, event, serials } = &fixture;
    let yaw = app.sign_up("yaw").await;
    let claimed = fixture.offer(&app, &serials[..1]).await;
    claim(&app, esi, &claimed).await;
    let pending = fixture.offer(&app, &serials[1..2]).await;
    let kofis = kofi.order_free_tickets(&event.sections[0], 1).await;
    let from_kofi = offer(&app, &kofi.key, ama, &kofis).await.uri().to_owned();
    let to_kofi = offer(&app, &ama.key, kofi, &serials[2..]).await.uri().to_owned();
    let histories: [(&User, &[&String]); 4] = [
        (ama, &[&claimed, &pending, &from_kofi, &to_kofi]),
        (esi, &[&claimed, &pending]),
        (kofi, &[&from_kofi, &to_kofi]),
        (&yaw, &[]),
    ];

    let check = async |owner: &User, caller: &User, transfers: &[&String]| {
        let path = format!("/accounts/{}/transfers", owner.number);
        let page = app.get(&caller.key, &path).await;
        if ![&owner.number, &app.staff.number].contains(&&caller.number) {
            return assert_eq!(rejection(&page), (403, "resource.not-yours"));
        }
        assert_eq!(
            (uris(&page), &page.body["total"]),
            (transfers.iter().map(|uri| uri.as_str()).collect(), &json!(transfers.len()))
        );
        for transfer in entries_of(&page.body) {
            assert_eq!(transfer, &read(&app, caller, transfer["self"].as_str().unwrap()).await, "for {}", caller.username);
        }
    };
    let check = &check;
    let callers = [ama, esi, kofi, &app.staff];
    let requests = histories
        .iter()
        .flat_map(|(owner, transfers)| callers.into_iter().chain([*owner]).map(move |caller| check(owner, caller, transfers)));
    join_all(requests).await;
}

/// A page is cut by its size, also if an account sends many tickets with long descriptions.
#[test_on(sqlite, postgres)]
async fn large_histories_are_read_in_parts(app: TestApp) {
    let mut long = section("Floor", 0.0, 100);
    long.description = Some("€".repeat(5000).parse().unwrap());
    let (kofi, ama, event) = app.create_sale(&[long]).await;
    let esi = app.sign_up("esi").await;
    let serials = ama.order_free_tickets(&event.sections[0], 50).await;
    let fixture = Fixture { kofi, ama, esi, event, serials };
    let mut expected = Vec::new();
    for _ in 0..3 {
        let transfer = fixture.offer(&app, &fixture.serials).await;
        app.delete(&fixture.ama.key, &transfer).await;
        expected.push(transfer);
    }

    let [whole, first, second] = [("?records=1", 1), ("", 2), ("?page=2", 1)].map(async |(query, length)| {
        let page = list(&app, &fixture.ama, query).await;
        assert_eq!((page.body["total"].as_i64(), uris(&page).len()), (Some(3), length), "{query}");
        uris(&page).into_iter().map(str::to_owned).collect::<Vec<_>>()
    });
    assert_eq!(whole.await, expected[..1]);
    assert_eq!([first.await, second.await].concat(), expected);
}

/// With so many tickets, each request reads its own page.
#[test_on(sqlite, postgres)]
async fn history_with_thousands_of_tickets_is_read_in_parts(app: TestApp) {
    let Fixture { ama, .. } = create_fixture(&app, 50).await;
    app.execute_sql(
        "insert into transfers (id, status, sender_id, recipient_id)
         with recursive numbers (n) as (select 1 union all select n + 1 from numbers where n < 101)
         select 15000000000000 + n, 'Cancelled', a.id, b.id from accounts a, accounts b, numbers
         where a.username = 'ama' and b.username = 'esi'",
    )
    .await;
    app.execute_sql("insert into transfer_tickets (transfer_id, ticket_id) select f.id, t.id from transfers f, tickets t").await;

    let (mut listed, mut pages) = (Vec::new(), 0);
    while listed.len() < 101 {
        pages += 1;
        let page = list(&app, &ama, &format!("?records=100&page={pages}")).await;
        assert_eq!((page.status, &page.body["total"]), (200, &json!(101)), "page {pages}: {}", page.body["error"]);
        listed.extend(uris(&page).into_iter().map(str::to_owned));
    }

    assert!(pages > 2, "{pages} pages");
    assert_eq!(listed, (1..=101).map(|n| format!("/transfers/{}", 15_000_000_000_000_u64 + n)).collect::<Vec<_>>());
}

/// PostgreSQL knows that nearly all transfers have the same recipient.
#[test_on(two_servers)]
async fn history_of_recipient_reads_no_other_transfers(app: TestApp) {
    let Fixture { ama, .. } = create_fixture(&app, 1).await;
    app.execute_sql(
        "insert into transfers (id, status, sender_id, recipient_id)
         select 15000000000000 + n, 'Cancelled', a.id, b.id from accounts a, accounts b, generate_series(1, 4000) n
         where a.username = 'ama' and b.username = 'esi'",
    )
    .await;
    app.execute_sql("analyze transfers").await;

    let path = format!("/accounts/{}/transfers?records=5", ama.number);
    let check = |page: &Response| assert_eq!((uris(page).len(), &page.body["total"]), (5, &json!(4000)));
    let rows = app.rows_read_by_50_requests("transfers", &ama.key, &path, check).await;

    assert!((250..5_000).contains(&rows), "50 pages of 5 transfers have read {rows} rows");
}

#[test_on(sqlite, postgres)]
async fn staff_filter_transfers_of_account(app: TestApp) {
    let fixture = create_fixture(&app, 1).await;
    let uri = fixture.offer(&app, &fixture.serials).await;

    let staff = app.staff.client.account_transfer_list().number(fixture.ama.number.as_str());
    let staff = staff.status(types::TransferStatus::Pending).send().await.unwrap();
    assert_eq!((staff.total, id_of(&staff.entries[0].self_)), (1, id_of(&uri)));
}
