//! Deletions of accounts at the same time as requests of the account.

use futures::future::{join, join_all};
use serde_json::json;

use super::create_event;
use crate::support::{TestApp, card_payment, rejection, test_on};

#[test_on(sqlite, postgres, two_servers)]
async fn concurrent_deletion_and_claim_leave_no_ticket(app: TestApp) {
    let (_, event) = create_event(&app, &[0.0]).await;
    let ama = app.sign_up("ama").await;
    for round in 0..5 {
        let esi = app.sign_up(&format!("esi{round}")).await;
        let serial = ama.order_free_tickets(&event.sections[0], 1).await.pop().unwrap();
        let body = json!({ "recipient": esi.number, "tickets": [serial] });
        let transfer = app.post(&ama.key, "/transfers", &body).await;
        let transfer = transfer.uri().to_owned();

        let claim = app.request("POST", &format!("{transfer}/claims")).key(&esi.key).send();
        let (removed, claimed) = join(app.remove(&app.staff.key, &esi), claim).await;

        let (holds, is_gone) = (app.count_usable_tickets(&esi).await, removed.status == 204);
        assert!(is_gone || rejection(&removed) == (409, "account.has-tickets"), "{}", removed.body);
        assert_eq!(holds, i64::from(claimed.status == 200), "{}", claimed.body);
        assert_ne!(holds > 0, is_gone, "a ticket is lost, or nothing happened");
        assert_eq!(app.read(&transfer).await["status"], if is_gone { "Cancelled" } else { "Claimed" });
    }
}

#[test_on(sqlite, postgres, two_servers)]
async fn concurrent_deletion_and_payment_leave_one(app: TestApp) {
    let (_, event) = create_event(&app, &[10.0]).await;
    for number in 0..6 {
        let user = app.sign_up(&format!("person-{number}")).await;
        let order = user.order(&event.sections[0], 2).await.unwrap().self_.clone();
        let before = app.gateway.total();

        let paying = app.pay(&user.key, &order, card_payment());
        let (paid, removed) = join(paying, app.remove(&app.staff.key, &user)).await;

        let kept = match rejection(&removed) {
            (204, _) => {
                assert!([(403, "key.refused"), (409, "order.not-open")].contains(&rejection(&paid)), "{paid:?}");
                assert_eq!(app.read(&order).await["status"], "Cancelled");
                assert_eq!(app.count_usable_tickets(&user).await, 0);
                0.0
            }
            (409, "account.has-tickets") => {
                assert_eq!(paid.status, 201);
                assert_eq!(app.count_usable_tickets(&user).await, 2);
                21.98
            }
            other => panic!("{other:?}"),
        };
        assert!((app.gateway.total() - before - kept).abs() < 0.001);
    }
}

#[test_on(sqlite, postgres, two_servers)]
async fn concurrent_deletion_and_order_leave_no_ticket(app: TestApp) {
    let (_, event) = create_event(&app, &[0.0, 10.0]).await;
    for number in 0..6 {
        let user = app.sign_up(&format!("person-{number}")).await;
        let place = |section: &str| app.place_order(&user.key, json!({ section: 1 }));

        let orders = join_all([place(&event.sections[0]), place(&event.sections[1])]);
        let (placed, removed) = join(orders, app.remove(&app.staff.key, &user)).await;

        for response in &placed {
            if response.status != 201 && rejection(response) != (403, "key.refused") {
                assert_eq!(response.invalid_arguments(), ["customer"]);
            }
        }
        match rejection(&removed) {
            (204, _) => {
                let open = "select count(*) from orders o join accounts a on a.id = o.account_id
                    where a.number = $1 and o.status <> 'Cancelled'";
                assert_eq!((app.count_usable_tickets(&user).await, app.count(open, &user).await), (0, 0));
            }
            (409, "account.has-tickets") => assert_eq!((placed[0].status, app.count_usable_tickets(&user).await), (201, 1)),
            other => panic!("{other:?}"),
        }
    }
}

#[test_on(sqlite, postgres, two_servers)]
async fn concurrent_deletions_delete_once(app: TestApp) {
    let ama = app.sign_up("ama").await;

    let responses = join_all((0..6).map(|_| app.remove(&app.staff.key, &ama))).await;

    let mut statuses: Vec<_> = responses.iter().map(|response| response.status).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [204, 404, 404, 404, 404, 404]);
}
