//! Events as iCalendar files.

use std::time::Duration;

use boxoffice::kernel::types::id::Id;
use serde_json::json;

use super::{create, event_body};
use crate::support::{Response, TestApp, id_of, section, test_on};

/// Returns the lines of a calendar file without their folding.
fn lines(file: &Response) -> Vec<String> {
    assert_eq!((file.status, file.header("content-type")), (200, "text/calendar; charset=utf-8"));
    let text = &file.text;
    assert!(text.split("\r\n").all(|line| line.len() <= 75 && !line.contains(['\r', '\n'])), "{text}");
    text.replace("\r\n ", "").split_terminator("\r\n").map(str::to_owned).collect()
}

fn value<'a>(lines: &'a [String], name: &str) -> &'a str {
    let mut values = lines.iter().filter_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let value = values.next().unwrap_or_else(|| panic!("no {name} in {lines:?}"));
    assert_eq!(values.next(), None, "{name}");
    value
}

#[test_on(sqlite, postgres)]
async fn listed_event_is_a_calendar_file(app: TestApp) {
    let (kofi, event) = app.sign_up_host("kofi", &[section("Floor", 20.0, 10)]).await;
    let shown = app.read(&event.uri).await;
    let path = format!("{}/calendar.ics", event.uri);

    let file = app.get(&app.public_key, &path).await;
    let found = lines(&file);

    assert_eq!(found[..2], ["BEGIN:VCALENDAR", "VERSION:2.0"]);
    assert_eq!(found[found.len() - 2..], ["END:VEVENT", "END:VCALENDAR"]);
    let number = id_of(&event.uri);
    let utc = |time: &str| format!("{}00Z", shown[time].as_str().unwrap().replace(['-', ':'], ""));
    for (name, expected) in [
        ("METHOD", "PUBLISH".to_owned()),
        ("UID", format!("{number}@boxoffice")),
        ("SUMMARY", shown["title"].as_str().unwrap().to_owned()),
        ("DTSTART", utc("start")),
        ("DTEND", utc("end")),
        ("STATUS", "CONFIRMED".to_owned()),
        ("GEO", format!("{};{}", shown["venue"]["latitude"], shown["venue"]["longitude"])),
        ("URL", format!("{}/open?to={}", app.state.settings.public_url, event.uri)),
    ] {
        assert_eq!(value(&found, name), expected, "{name}");
    }
    let venue = |name: &str| shown["venue"][name].as_str().unwrap().replace(',', "\\,");
    assert_eq!(value(&found, "LOCATION"), format!("{}\\, {}", venue("name"), venue("address")));
    assert_eq!(file.header("content-disposition"), "attachment; filename=\"event.ics\"");
    // The file changes only with the event.
    app.advance_clock(Duration::from_secs(60));
    let tag = file.header("etag");
    assert_eq!(app.request("GET", &path).header("If-None-Match", tag).send().await.status, 304);

    // A calendar program takes a file as newer by its number and its time.
    app.put(&kofi.key, &event.uri, json!({ "description": "Outside." })).await;
    let changed = lines(&app.get(&app.public_key, &path).await);
    app.advance_clock(Duration::from_secs(60));
    app.post_empty(&kofi.key, &format!("{}/cancellations", event.uri)).await;
    let cancelled = lines(&app.get(&app.public_key, &path).await);
    assert_eq!((value(&cancelled, "STATUS"), value(&cancelled, "UID")), ("CANCELLED", value(&found, "UID")));
    let files = [&found, &changed, &cancelled];
    let sequence = files.map(|file| value(file, "SEQUENCE").parse::<u64>().unwrap());
    assert!(sequence[0] < sequence[1] && sequence[1] < sequence[2], "{sequence:?}");
    let times = files.map(|file| (value(file, "DTSTAMP"), value(file, "LAST-MODIFIED")));
    assert!(times[0] < times[1] && times[1] < times[2], "{times:?}");
}

#[test_on(sqlite, postgres)]
async fn change_of_the_venue_is_a_revision(app: TestApp) {
    let (_, event) = app.sign_up_host("kofi", &[section("Floor", 20.0, 10)]).await;
    let venue = app.read(&event.uri).await["venue"]["self"].as_str().unwrap().to_owned();
    let path = format!("{}/calendar.ics", event.uri);
    let before = lines(&app.get(&app.public_key, &path).await);
    app.advance_clock(Duration::from_secs(60));

    assert_eq!(app.put(&app.staff.key, &venue, json!({ "name": "Old Fort" })).await.status, 200);

    let after = lines(&app.get(&app.public_key, &path).await);
    assert!(value(&after, "LOCATION").starts_with("Old Fort\\, "), "{after:?}");
    let sequence = [&before, &after].map(|file| value(file, "SEQUENCE").parse::<u64>().unwrap());
    assert!(sequence[0] < sequence[1], "{sequence:?}");
    assert!(value(&before, "LAST-MODIFIED") < value(&after, "LAST-MODIFIED"));
}

#[test_on(sqlite, postgres)]
async fn number_of_changes_is_never_negative(app: TestApp) {
    app.stop_jobs().await;
    let (kofi, host) = app.sign_up_with_host("kofi").await;
    // The clock was ahead by an hour, so the identifier of the event is later than its change.
    app.state.clock.ensure_ids_after(Id(app.state.clock.next_id().0 + 36_000_000));
    let draft = app.create_draft(&host).await;

    app.put(&kofi.key, &draft.uri, json!({ "description": "Outside." })).await;

    let changed = lines(&app.get(&kofi.key, &format!("{}/calendar.ics", draft.uri)).await);
    assert_eq!(value(&changed, "SEQUENCE"), "0");
}

#[test_on(sqlite, postgres)]
async fn hostile_texts_stay_within_their_property(app: TestApp) {
    let (kofi, host) = app.sign_up_with_host("kofi").await;
    let mut body = event_body(&app, &host, "Rock, Pop; Soul \\ END:VEVENT é🎷").await;
    let lines_of_text = "One,\nTwo;\r\nEND:VEVENT\rBEGIN:VEVENT\n";
    body["description"] = json!(format!("{lines_of_text}{}", "é".repeat(3000)));
    body["end"] = json!("9999-12-31T23:59");
    let draft = create(&app, &kofi.key, &body).await.uri().to_owned();

    let found = lines(&app.get(&kofi.key, &format!("{draft}/calendar.ics")).await);

    assert_eq!(found.iter().filter(|line| line.contains("VEVENT") && !line.contains(r"\")).count(), 2, "{found:?}");
    assert_eq!(value(&found, "SUMMARY"), r"Rock\, Pop\; Soul \\ END:VEVENT é🎷");
    let description = value(&found, "DESCRIPTION");
    assert!(description.starts_with(r"One\,\nTwo\;\nEND:VEVENT\nBEGIN:VEVENT\né"), "{description}");
    assert!(description.ends_with("é…") && description.chars().count() < 2020, "{}", description.len());
    assert_eq!(value(&found, "STATUS"), "TENTATIVE");
    assert!(!found.iter().any(|line| line.starts_with("DTEND")), "{found:?}");
    assert_eq!(app.get(&app.public_key, &format!("{draft}/calendar.ics")).await.status, 403);
}
