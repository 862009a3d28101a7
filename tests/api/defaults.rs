//! Countries, the server's time, and its settings.

use std::time::Duration;

use boxoffice::features::insight::server_info::countries::COMMON;
use serde_json::json;

use crate::support::{TestApp, test_on};

#[test_on(sqlite, postgres)]
async fn lists_countries_in_alphabetical_order(app: TestApp) {
    let countries = app.public_client.country_list().send().await.unwrap().into_inner().countries;

    assert_eq!(countries.len(), 250);
    assert!(countries.is_sorted_by(|a, b| a < b), "{countries:?}");
    let common = COMMON.iter().map(|(_, name)| *name);
    let other = ["Antigua and Barbuda", "Benin", "Burkina Faso", "Democratic Republic of the Congo", "Gambia", "Ghana"];
    for country in common.chain(other) {
        assert!(countries.iter().any(|name| name == country), "{country}");
    }
}

#[test_on(sqlite, postgres)]
async fn returns_server_time(app: TestApp) {
    app.advance_clock(Duration::from_secs(1_000_000));
    let before = app.state.clock.now().seconds();

    let time = app.public_client.time_get().send().await.unwrap().utc;

    assert!((before..=app.state.clock.now().seconds()).contains(&time), "{time}");
}

#[test_on(sqlite, postgres)]
async fn returns_server_settings(app: TestApp) {
    let defaults = app.request("GET", "/defaults").send().await;

    let expected = json!({
        "currency": "GHS",
        "reservationMinutes": 15,
        "feeSteps": [
            { "upTo": 50.0, "fee": 0.99 },
            { "upTo": 100.0, "fee": 1.99 },
            { "upTo": 150.0, "fee": 2.99 },
            { "upTo": 200.0, "fee": 3.99 },
            { "upTo": null, "fee": 4.99 },
        ],
        "recordsDefault": 25,
        "recordsMaximum": 100,
        "titles": ["Mr", "Mrs", "Miss", "Ms", "Dr", "Prof", "Rev"],
        "minimumClientVersion": "3.0.0",
    });
    assert_eq!((defaults.status, defaults.body), (200, expected));
}

#[test_on(sqlite, postgres)]
async fn any_key_reads_defaults(app: TestApp) {
    let ama = app.sign_up("ama").await;
    for path in ["/countries", "/time", "/defaults"] {
        for key in [&app.public_key, &ama.key, &app.staff.key] {
            assert_eq!(app.get(key, path).await.status, 200, "{path}");
        }
        assert_eq!(app.request("GET", path).no_key().send().await.status, 401, "{path}");
    }
}
