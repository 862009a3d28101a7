//! Lists of orders: filters, search by regular expression, sort orders.

use std::time::Duration;

use boxoffice::features::sales::orders::read_number_filter;
use serde_json::json;

use super::create_concert;
use crate::support::{RESERVATION_TTL, Response, TestApp, User, test_on, texts};

fn numbers(page: &Response) -> Vec<&str> {
    assert_eq!(page.status, 200, "{}", page.body);
    texts(&page.body, "number")
}

#[test_on(sqlite, postgres)]
async fn staff_list_and_filter_orders(app: TestApp) {
    let event = create_concert(&app, &[10.0, 0.0]).await;
    let (ama, yaw) = (app.sign_up("ama").await, app.sign_up("yaw").await);
    let order = async |user: &User, section: usize| user.order(&event.sections[section], 1).await.unwrap();
    let timed_out = order(&ama, 0).await.number.to_string();
    app.advance_clock(RESERVATION_TTL);
    let placed = order(&ama, 0).await.number.to_string();
    let free = order(&yaw, 1).await.number.to_string();
    let cancelled = order(&yaw, 0).await;
    app.cancel_order(&yaw.key, &cancelled.self_).await;
    let cancelled = cancelled.number.to_string();
    let all = [timed_out.as_str(), &placed, &free, &cancelled];

    for (filter, expected) in [
        (String::new(), &all[..]),
        (format!("customer={}", ama.number), &all[..2]),
        ("customer=ZZ-00000000".to_owned(), &[]),
        ("status=Timed%20Out".to_owned(), &all[..1]),
        ("status=Placed".to_owned(), &all[1..2]),
        ("status=Fulfilled".to_owned(), &all[2..3]),
        ("status=Cancelled".to_owned(), &all[3..]),
        ("status=Voided".to_owned(), &[]),
        (format!("customer={}&status=Placed", yaw.number), &[]),
        (format!("number=^{placed}$"), &all[1..2]),
        (format!("number={placed}&customer={}", yaw.number), &[]),
        (format!("number=.&status=Timed%20Out&customer={}", ama.number), &all[..1]),
        ("order=desc".to_owned(), &all[..]),
        ("records=2".to_owned(), &all[..2]),
        ("records=2&page=2".to_owned(), &all[2..]),
    ] {
        let page = app.get(&app.staff.key, &format!("/orders?{filter}")).await;
        assert_eq!(numbers(&page), expected, "{filter}");
    }

    // The list is the same after the job has run.
    app.expire_due().await;
    assert_eq!(numbers(&app.get(&app.staff.key, "/orders?status=Timed%20Out").await), &all[..1]);
    assert_eq!(numbers(&app.get(&app.staff.key, "/orders?status=Placed").await), &all[1..2]);
}

#[test_on(sqlite, postgres)]
async fn filters_numbers_by_regular_expression(app: TestApp) {
    let event = create_concert(&app, &[0.0]).await;
    let ama = app.sign_up("ama").await;
    let mut all = Vec::new();
    for _ in 0..5 {
        all.push(ama.order(&event.sections[0], 1).await.unwrap().number.to_string());
    }
    let search = async |filter: &str, paging: &str| {
        app.get(&app.staff.key, &format!("/orders?{paging}&number={}", filter.replace('\\', "%5C").replace('+', "%2B"))).await
    };

    for filter in [r"^\d{14}$", r"\d", ".", "^[0-9]+$", &all[0][..4]] {
        assert_eq!(numbers(&search(filter, "").await), all, "{filter}");
    }
    assert_eq!(numbers(&search(&format!("^({}|{})$", all[1], all[3]), "").await), [&all[1], &all[3]]);
    assert_eq!(numbers(&search("[a-z]", "").await), Vec::<&str>::new());
    let page = search(".", "records=2&page=2").await;
    assert_eq!((numbers(&page), page.body["total"].as_i64()), (vec![all[2].as_str(), &all[3]], Some(5)));
    assert_eq!(numbers(&search(".", "records=2&page=1&sort=date&order=desc").await), [&all[4], &all[3]]);
    assert_eq!(search(".", "records=2&page=4").await.code(), "page.past-end");
    assert_eq!(search("[a-z]", "page=2").await.code(), "page.past-end");

    for filter in ["(176", "[", "*", r"\p{Nonsense}", r"(\w{900}){900}", &"1".repeat(101)] {
        let rejected = search(filter, "").await;
        assert_eq!(rejected.invalid_arguments(), ["number"], "{filter}");
    }
}

#[test_on(sqlite, postgres)]
async fn sorts_orders_by_date(app: TestApp) {
    let event = create_concert(&app, &[0.0]).await;
    let ama = app.sign_up("ama").await;
    let mut all = Vec::new();
    for _ in 0..3 {
        all.push(ama.order(&event.sections[0], 1).await.unwrap().number.to_string());
        app.advance_clock(Duration::from_secs(1));
    }
    let reversed: Vec<_> = all.iter().rev().cloned().collect();

    for list in ["/orders".to_owned(), format!("/accounts/{}/orders", ama.number)] {
        for (sort, expected) in
            [("", &all), ("sort=date", &all), ("sort=date&order=asc", &all), ("sort=date&order=desc", &reversed)]
        {
            let page = app.get(&app.staff.key, &format!("{list}?{sort}")).await;
            assert_eq!(numbers(&page), *expected, "{list} {sort}");
        }
    }
}

#[test_on(sqlite, postgres)]
async fn account_lists_own_orders(app: TestApp) {
    let event = create_concert(&app, &[0.0, 10.0]).await;
    let (ama, yaw) = (app.sign_up("ama").await, app.sign_up("yaw").await);
    let free = ama.order(&event.sections[0], 1).await.unwrap().number.to_string();
    let placed = ama.order(&event.sections[1], 1).await.unwrap().number.to_string();
    yaw.order(&event.sections[0], 1).await.unwrap();
    let list = format!("/accounts/{}/orders", ama.number);

    for key in [&ama.key, &app.staff.key] {
        assert_eq!(numbers(&app.get(key, &list).await), [&free, &placed]);
        assert_eq!(numbers(&app.get(key, &format!("{list}?status=Placed")).await), [&placed]);
        assert_eq!(numbers(&app.get(key, &format!("{list}?records=1&page=2")).await), [&placed]);
    }
    assert_eq!(app.get(&yaw.key, "/accounts/ZZ-00000000/orders").await.code(), "resource.not-found");
    let kwesi = app.sign_up("kwesi").await;
    let nothing = app.get(&kwesi.key, &format!("/accounts/{}/orders", kwesi.number)).await;
    assert_eq!(nothing.body, json!({ "total": 0, "page": 1, "records": 25, "entries": [] }));
}

#[test]
fn a_number_filter_is_a_regular_expression_of_bounded_size() {
    assert!(read_number_filter("^176(37|38)").is_ok_and(|number| number.is_match("17637000000001")));
    assert!(read_number_filter("(176").is_err());
    assert!(read_number_filter(r"(\w{900}){900}").is_err());
}
