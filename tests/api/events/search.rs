//! Finding events: filters by category, venue, tag and start, and the search for words.

use std::sync::Arc;
use std::time::Duration;

use boxoffice::features::catalog::events::complete_search_index;
use boxoffice::kernel::context::Context;
use serde_json::{Value, json};

use super::{create, event_body};
use crate::support::{Host, TestApp, entries_of, id_of, rejection, test_on};

/// Creates a draft from these properties.
async fn draft(app: &TestApp, host: &Host, title: &str, properties: Value) -> String {
    let mut body = event_body(app, host, title).await;
    for (name, value) in properties.as_object().unwrap() {
        body[name] = value.clone();
    }
    let created = create(app, &host.owner.key, &body).await;
    assert_eq!(created.status, 201, "{}", created.body);
    created.uri().to_owned()
}

/// Returns the titles of the events that a platform administrator finds.
async fn find(app: &TestApp, query: &[(&str, &str)]) -> Vec<String> {
    find_in(app, "/events", &app.staff.key, query).await
}

async fn find_in(app: &TestApp, path: &str, key: &str, query: &[(&str, &str)]) -> Vec<String> {
    let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(query).finish();
    let page = app.get(key, &format!("{path}?{query}")).await;
    let entries = entries_of(&page.body);
    assert_eq!(page.body["total"], entries.len(), "{query}");
    entries.iter().map(|event| event["title"].as_str().unwrap().to_owned()).collect()
}

#[test_on(sqlite, postgres)]
async fn filters_by_category_venue_and_tag(app: TestApp) {
    let (_, host) = app.sign_up_with_host("kofi").await;
    let (category, venue) = (app.create_category().await, app.create_venue().await);
    let properties = json!({ "category": category, "venue": venue, "tags": ["Live Music", "100%", "CAFE\u{301}"] });
    draft(&app, &host, "Jazz", properties).await;
    draft(&app, &host, "Other", json!({ "tags": ["music"] })).await;
    // Another category spells the same subcategory in capitals.
    let capitals = json!({ "name": "Theatre", "subcategories": ["JAZZ"] });
    let capitals = app.post(&app.staff.key, "/categories", &capitals).await.uri().to_owned();
    draft(&app, &host, "Capitals", json!({ "category": capitals, "subcategory": "JAZZ" })).await;
    let id = |uri: &str| id_of(uri).to_owned();

    for (query, expected) in [
        (vec![("category", category.as_str())], vec!["Jazz"]),
        (vec![("category", &id(&category))], vec!["Jazz"]),
        (vec![("category", "17637000000001")], vec![]),
        (vec![("category", &category), ("subcategory", "Jazz")], vec!["Jazz"]),
        (vec![("category", &category), ("subcategory", "jaz")], vec![]),
        (vec![("subcategory", "Jazz")], vec!["Jazz", "Other", "Capitals"]),
        (vec![("subcategory", " JA\u{ff3a}z ")], vec!["Jazz", "Other", "Capitals"]),
        (vec![("category", &capitals), ("subcategory", "jazz")], vec!["Capitals"]),
        (vec![("category", &category), ("subcategory", "jazz")], vec!["Jazz"]),
        (vec![("venue", &format!("/v3{venue}"))], vec!["Jazz"]),
        (vec![("venue", "/venues/unknown")], vec![]),
        (vec![("tag", "live  MUSIC")], vec!["Jazz"]),
        (vec![("tag", "café")], vec!["Jazz"]),
        (vec![("tag", "100%")], vec!["Jazz"]),
        (vec![("tag", "music")], vec!["Other"]),
        (vec![("tag", "mus")], vec![]),
        (vec![("tag", "music"), ("venue", &venue)], vec![]),
    ] {
        assert_eq!(find(&app, &query).await, expected, "{query:?}");
    }
}

#[test_on(sqlite, postgres)]
async fn filters_by_start(app: TestApp) {
    let (_, host) = app.sign_up_with_host("kofi").await;
    for (title, start) in [("Friday", "2998-12-19T19:00"), ("Saturday", "2998-12-20T19:00")] {
        draft(&app, &host, title, json!({ "start": start, "end": "2998-12-21T02:00" })).await;
    }

    for (from, to, expected) in [
        ("2998-12-19T19:00", "2998-12-20T19:00", vec!["Friday", "Saturday"]),
        ("2998-12-19T19:00:01", "2998-12-20T18:59:59", vec![]),
        ("2998-12-20T20:00+01:00", "2998-12-20T20:00+01:00", vec!["Saturday"]),
        ("2998-12-20T00:00", "2999-01-01T00:00", vec!["Saturday"]),
    ] {
        assert_eq!(find(&app, &[("from", from), ("to", to)]).await, expected, "{from} {to}");
    }
    assert_eq!(find(&app, &[("to", "2998-12-20T18:59")]).await, ["Friday"]);
}

#[test_on(sqlite, postgres)]
async fn finds_events_with_all_words(app: TestApp) {
    let (_, host) = app.sign_up_with_host("kofi").await;
    let properties = json!({ "description": "Outdoors, with CAFE\u{301} au lait.", "tags": ["Summer Night"] });
    draft(&app, &host, "Harmattan Jazz", properties).await;
    let properties = json!({ "description": "हिन्दी संगीत, Кино и Straße 東京音楽", "tags": [] });
    draft(&app, &host, "L'Été Ｒｏｃｋ", properties).await;

    for (search, expected) in [
        ("jazz", vec!["Harmattan Jazz"]),
        ("JAZZ night outdoors", vec!["Harmattan Jazz"]),
        ("outdoors ja", vec!["Harmattan Jazz"]),
        // With a variation selector, which is a mark.
        ("jazz ❤\u{fe0f}", vec!["Harmattan Jazz"]),
        ("ja outdoors", vec![]),
        ("jazz rock", vec![]),
        ("café", vec!["Harmattan Jazz"]),
        ("cafe\u{301}", vec!["Harmattan Jazz"]),
        ("cafe", vec![]),
        ("été l", vec!["L'Été Ｒｏｃｋ"]),
        ("rock КИНО strasse", vec!["L'Été Ｒｏｃｋ"]),
        ("हिन्दी", vec!["L'Été Ｒｏｃｋ"]),
        ("東京", vec!["L'Été Ｒｏｃｋ"]),
        ("音楽", vec![]),
        ("azz", vec![]),
        ("indoors", vec![]),
    ] {
        assert_eq!(find(&app, &[("search", search)]).await, expected, "{search}");
    }
}

#[test_on(sqlite, postgres)]
async fn treats_every_character_as_text(app: TestApp) {
    let (_, host) = app.sign_up_with_host("kofi").await;
    draft(&app, &host, "Not And Or Near", json!({ "description": "☀\u{fe0f}", "tags": ["c++"] })).await;

    for search in [
        "NOT",
        "and OR",
        "\"near\"",
        "near*",
        "-not",
        "not & and | or",
        "(not",
        "^near",
        "'near",
        "not\\",
        "{not}",
        "near:*",
        "<-> near",
        "C++",
        "not;--",
        "%not_",
    ] {
        assert_eq!(find(&app, &[("search", search)]).await, ["Not And Or Near"], "{search}");
    }
    for nothing in ["*", "\"\"", "&", "' '", "🎷", "❤\u{fe0f}", "title_words:not", "not -x"] {
        assert_eq!(find(&app, &[("search", nothing)]).await, [""; 0], "{nothing}");
    }
}

#[test_on(sqlite, postgres)]
async fn sorts_title_before_tags_before_description(app: TestApp) {
    let (_, host) = app.sign_up_with_host("kofi").await;
    let at = |day: u32, tags: Value, description: &str| json!({ "start": format!("2998-12-{day}T19:00"), "tags": tags, "description": description });
    draft(&app, &host, "Described", at(10, json!([]), "jazz night")).await;
    draft(&app, &host, "Half a Night", at(11, json!(["jazz"]), "-")).await;
    draft(&app, &host, "Jazz Night Late", at(20, json!([]), "-")).await;
    draft(&app, &host, "Jazz Night Early", at(12, json!([]), "-")).await;
    draft(&app, &host, "Jazz Night Early Too", at(12, json!([]), "-")).await;

    let ranked = ["Jazz Night Early", "Jazz Night Early Too", "Jazz Night Late", "Half a Night", "Described"];
    assert_eq!(find(&app, &[("search", "night jazz")]).await, ranked);
    let by_start = ["Described", "Half a Night", "Jazz Night Early", "Jazz Night Early Too", "Jazz Night Late"];
    assert_eq!(find(&app, &[("search", "night jazz"), ("sort", "start")]).await, by_start);
}

#[test_on(sqlite, postgres)]
async fn search_leaves_out_past_events(app: TestApp) {
    let (_, host) = app.sign_up_with_host("kofi").await;
    let past = draft(&app, &host, "Past Jazz", json!({ "start": "2020-01-01T19:00", "end": "2020-01-01T23:00" })).await;
    let now = app.state.clock.now();
    let end = now.plus(Duration::from_secs(3600)).format_minutes();
    let today = draft(&app, &host, "Jazz Today", json!({ "start": "2020-01-02T19:00", "end": end })).await;
    app.execute_sql("update events set status = 'Listed'").await;

    for (query, expected) in [
        (vec![], vec!["Past Jazz", "Jazz Today"]),
        (vec![("past", "true")], vec!["Past Jazz", "Jazz Today"]),
        (vec![("past", "false")], vec!["Past Jazz", "Jazz Today"]),
        (vec![("search", "")], vec!["Past Jazz", "Jazz Today"]),
        (vec![("search", "jazz")], vec!["Jazz Today"]),
        (vec![("search", "jazz"), ("past", "false")], vec!["Jazz Today"]),
        (vec![("search", "jazz"), ("past", "true")], vec!["Past Jazz", "Jazz Today"]),
        (vec![("search", "jazz"), ("active", "false")], vec!["Past Jazz"]),
        (vec![("search", "jazz"), ("active", "true"), ("past", "true")], vec!["Jazz Today"]),
    ] {
        for path in ["/events", "/published-events"] {
            for _ in 0..2 {
                assert_eq!(find_in(&app, path, &app.public_key, &query).await, expected, "{path} {query:?}");
            }
        }
    }
    // The cached page of the published events ends with the event.
    app.advance_clock(Duration::from_secs(3601));
    assert_eq!(find_in(&app, "/published-events", &app.public_key, &[("search", "jazz")]).await, [""; 0]);
    assert_ne!(past, today);
}

#[test_on(sqlite, postgres)]
async fn search_keeps_visibility_pages_and_preferred_region(app: TestApp) {
    let (kofi, ama) = (app.sign_up("kofi").await, app.sign_up("ama").await);
    let host = app.create_host(&kofi).await;
    let event = draft(&app, &host, "Jazz One", json!({ "start": "2998-12-18T19:00" })).await;
    let there = draft(&app, &host, "A Night of Jazz", json!({ "description": "Two." })).await;
    draft(&app, &host, "Jazz Draft", json!({})).await;
    app.execute_sql("update events set status = 'Listed' where title <> 'Jazz Draft'").await;
    let search = [("search", "jazz")];

    assert_eq!(find_in(&app, "/events", &app.public_key, &search).await, ["Jazz One", "A Night of Jazz"]);
    assert_eq!(find_in(&app, "/events", &kofi.key, &search).await, ["Jazz One", "A Night of Jazz", "Jazz Draft"]);
    assert_eq!(find_in(&app, "/published-events", &kofi.key, &search).await, ["Jazz One", "A Night of Jazz"]);
    let second = app.get(&ama.key, "/published-events?search=jazz&records=1&page=2").await;
    assert_eq!((&second.body["total"], &second.body["entries"][0]["title"]), (&json!(2), &json!("A Night of Jazz")));
    assert_eq!(rejection(&app.get(&ama.key, "/published-events?search=jazz&page=2").await), (404, "page.past-end"));

    let region = app.read(&there).await["venue"]["region"]["self"].clone();
    let preferences = format!("/accounts/{}/preferences", ama.number);
    assert_eq!(app.put(&ama.key, &preferences, json!({ "region": region })).await.status, 200);
    assert_eq!(find_in(&app, "/published-events", &ama.key, &search).await, ["A Night of Jazz", "Jazz One"]);
    assert_ne!(event, there);
}

#[test_on(sqlite, postgres)]
async fn invalid_finders_are_rejected(app: TestApp) {
    // Normalized, the letter is four words.
    let words = "%EF%B7%BA+".repeat(20);
    let long = "a".repeat(101);
    for path in ["/events", "/published-events"] {
        for (query, expected) in [
            (format!("search={words}"), vec!["search"]),
            (format!("search={long}"), vec!["search"]),
            (format!("from=2998-12-20T00:00&to=2998-12-19T00:00&search={words}"), vec!["to", "search"]),
            ("from=tomorrow&category=a+b&venue=/regions/1&past=maybe".to_owned(), vec![]),
        ] {
            let response = app.get(&app.public_key, &format!("{path}?{query}")).await;
            assert_eq!(rejection(&response), (400, "arguments.invalid"), "{query}");
            let invalid = response.invalid_arguments();
            if expected.is_empty() { assert_eq!(invalid.len(), 4, "{query}: {invalid:?}") } else { assert_eq!(invalid, expected) }
        }
    }
}

#[test_on(sqlite, postgres)]
async fn search_follows_changes_of_events(app: TestApp) {
    let (kofi, host) = app.sign_up_with_host("kofi").await;
    let event = draft(&app, &host, "Jazz Night", json!({ "description": "Outdoors.", "tags": ["sax"] })).await;
    let found = async |search: &str| find(&app, &[("search", search)]).await.len();
    let tagged = async |tag: &str| find(&app, &[("tag", tag)]).await.len();
    assert_eq!((found("jazz").await, found("outdoors").await, found("sax").await, tagged("sax").await), (1, 1, 1, 1));

    let rejected = app.put(&kofi.key, &event, json!({ "title": "Blues", "category": "/categories/1" })).await;
    assert_eq!((rejected.status, found("blues").await, found("jazz").await), (400, 0, 1));
    let changed =
        app.put(&kofi.key, &event, json!({ "title": "Rock Night", "description": "Indoors.", "tags": ["drums"] })).await;
    assert_eq!(changed.status, 200, "{}", changed.body);
    assert_eq!((found("jazz").await, found("outdoors").await, found("sax").await, tagged("sax").await), (0, 0, 0, 0));
    assert_eq!((found("rock").await, found("indoors").await, found("drums").await, tagged("drums").await), (1, 1, 1, 1));

    assert_eq!(app.delete(&kofi.key, &event).await.status, 204);
    assert_eq!((found("rock").await, tagged("drums").await), (0, 0));
    let again = draft(&app, &host, "Rock Night", json!({})).await;
    assert_eq!(found("rock").await, 1, "{again}");
}

#[test_on(sqlite, postgres)]
async fn job_completes_events_of_other_programs(app: TestApp) {
    app.stop_jobs().await;
    let (_, host) = app.sign_up_with_host("kofi").await;
    draft(&app, &host, "Jazz Night", json!({ "tags": ["sax"], "description": "-" })).await;
    draft(&app, &host, "Another", json!({ "tags": ["sax"], "description": "-" })).await;
    app.execute_sql("update events set status = 'Listed'").await;
    let published = async |query: &[(&str, &str)]| find_in(&app, "/published-events", &app.public_key, query).await;
    assert_eq!(published(&[("tag", "sax")]).await.len(), 2);
    let context = Context::immediate(Arc::clone(&app.state));
    assert_eq!(complete_search_index(&context).await.unwrap(), 0);

    // Like a server of the version before, which doesn't write the index.
    app.execute_sql("update events set title = 'Rock Night', tags = '[\"drums\"]' where title = 'Jazz Night'").await;
    assert_eq!(published(&[("search", "jazz")]).await, ["Rock Night"]);
    assert_eq!(published(&[("tag", "drums")]).await, [""; 0]);

    assert_eq!(complete_search_index(&context).await.unwrap(), 1);
    assert_eq!(published(&[("search", "jazz")]).await, [""; 0]);
    assert_eq!(published(&[("search", "rock"), ("tag", "drums")]).await, ["Rock Night"]);
    assert_eq!(published(&[("tag", "sax")]).await, ["Another"]);
    assert_eq!(complete_search_index(&context).await.unwrap(), 0);
}

/// The servers read the words of many events in several parts.
#[test_on(sqlite, postgres)]
async fn finds_all_of_many_events(app: TestApp) {
    app.stop_jobs().await;
    let (_, host) = app.sign_up_with_host("kofi").await;
    draft(&app, &host, "Jazz Night", json!({ "description": "-" })).await;
    app.execute_sql(
        "with recursive g (n) as (select cast(1 as bigint) union all select n + 1 from g where n < 1200)
         insert into events (id, host_id, title, description, status, type, public, category_id, subcategory, venue_id, starts, ends,
             disclaimer, tags, popularity)
         select 14100000000000 + n, host_id, title || ' ' || n, description, 'Listed', type, public, category_id, subcategory, venue_id,
             starts, ends, disclaimer, tags, 0
         from g, events where events.title = 'Jazz Night'",
    )
    .await;
    let context = Context::immediate(Arc::clone(&app.state));
    while complete_search_index(&context).await.unwrap() > 0 {}

    let total = async |query: &str| {
        let path = format!("/published-events?records=1&search={query}");
        app.get(&app.public_key, &path).await.body["total"].as_i64().unwrap()
    };
    for _ in 0..5 {
        assert_eq!((total("jazz").await, total("jazz+12").await, total("zebra").await), (1200, 12, 0));
    }
    app.execute_sql("update events set status = 'Cancelled' where title = 'Jazz Night 1200'").await;
    assert_eq!((total("jazz").await, total("jazz+12").await), (1199, 11));
}
