//! Servers with other settings.

use std::time::Duration;

use boxoffice::kernel::settings::Settings;
use serde_json::json;

use crate::support::{RESERVATION_TTL, TestApp, rejection, section, test_on};

#[test_on(sqlite, postgres)]
async fn reservation_time_is_configurable(app: TestApp) {
    let (_, ama, event) = app.create_sale(&[section("Floor", 20.0, 10)]).await;
    let floor = &event.sections[0];
    let settings = Settings { reservation: Duration::from_secs(5 * 60), ..app.state.settings.clone() };
    let other = app.start_second_server(settings).await;
    let read = async |path: &str| app.request("GET", path).at(other.address).key(&app.staff.key).send().await.body;
    assert_eq!(read("/defaults").await["reservationMinutes"], 5);

    let order = app.request("POST", "/orders").at(other.address).key(&ama.key);
    let short = order.json(&json!({ "items": { floor.as_str(): 2 } })).send().await;
    assert_eq!(short.status, 201, "{}", short.body);
    let short = short.uri();
    let long = ama.order(floor, 3).await.unwrap().self_;

    let reserved = async || read(floor).await["reserved"].as_i64().unwrap();
    other.state.clock.advance(Duration::from_secs(4 * 60));
    assert_eq!((reserved().await, &read(short).await["status"]), (5, &json!("Placed")));
    other.state.clock.advance(Duration::from_secs(60));
    assert_eq!((reserved().await, &read(short).await["status"]), (3, &json!("Timed Out")));
    assert_eq!(read(&long).await["status"], "Placed");
    other.state.clock.advance(RESERVATION_TTL);
    assert_eq!((reserved().await, &read(&long).await["status"]), (0, &json!("Timed Out")));
}

#[test_on(sqlite, postgres)]
async fn minimum_client_version_is_configurable(app: TestApp) {
    let settings = Settings { minimum_client_version: "3.2.1".parse().unwrap(), ..app.state.settings.clone() };
    let other = app.start_second_server(settings).await;
    let ask = async |version| app.request("GET", "/defaults").at(other.address).version(Some(version)).send().await;

    for version in ["3.0.0", "3.2.0", "3.2", "2.9.9"] {
        assert_eq!(rejection(&ask(version).await), (412, "client.outdated"), "{version}");
    }
    for version in ["3.2.1", "3.3", "4"] {
        let served = ask(version).await;
        assert_eq!((served.status, &served.body["minimumClientVersion"]), (200, &json!("3.2.1")), "{version}");
    }
    assert_eq!(app.request("GET", "/defaults").send().await.status, 200, "the first server serves it still");
}
