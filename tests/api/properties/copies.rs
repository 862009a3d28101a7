//! Copies of events: whatever an event has and has sold, its copy has the same at another time, and no sales.

use chrono::{DateTime, NaiveDateTime, TimeDelta};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use proptest::test_runner::TestCaseResult;
use serde_json::{Value, json};

use super::check_cases;
use crate::support::{Event, Host, TestApp, User, card_payment, test_on};

/// The number of cases.
const CASES: usize = 4;
const MINUTES_PER_DAY: i64 = 24 * 60;
/// The format of times in responses.
const MINUTE: &str = "%Y-%m-%dT%H:%M";
/// The end of an event that has none.
const NEVER: &str = "9999-12-31T23:59";
/// The properties of an event that its copy has, too.
const COPIED: [&str; 9] = ["description", "type", "public", "category", "subcategory", "venue", "disclaimer", "tags", "host"];

/// An event. Times are minutes from now.
#[derive(Debug, Clone)]
struct Source {
    texts: (String, Option<String>, String, Vec<&'static str>),
    public: bool,
    start: i64,
    length: Option<i64>,
    sections: Vec<Section>,
    state: State,
    /// The start of the copy, in minutes after that of the event, and its length.
    shift: i64,
    length_of_copy: Option<i64>,
}

#[derive(Debug, Clone)]
struct Section {
    price: i64,
    capacity: i64,
    sales: (i64, i64),
    description: Option<String>,
    active: Option<bool>,
    maximum: Option<i64>,
    modifiers: Vec<Modifier>,
    /// The number of tickets to order, if they are on sale.
    ordered: i64,
}

#[derive(Debug, Clone)]
struct Modifier {
    delta: i64,
    window: (Option<i64>, Option<i64>),
    bounds: (Option<i64>, Option<i64>),
    active: Option<bool>,
}

/// The life of the event before it is copied.
#[derive(Debug, Clone, Copy)]
enum State {
    Draft,
    Listed,
    Returned,
    Cancelled,
}

fn texts() -> impl Strategy<Value = String> {
    select(vec!["Jazz, outdoors.", "Two\nlines", "Gã 漢 🎟 O'Neil & Co", "x"]).prop_map(str::to_owned)
}

/// Optional bounds, in order if there are both.
fn bounds(values: std::ops::Range<i64>) -> impl Strategy<Value = (Option<i64>, Option<i64>)> {
    (option::of(values.clone()), option::of(values), 1..100_i64).prop_map(|(low, high, more)| match (low, high) {
        (Some(low), Some(_)) => (Some(low), Some(low + more)),
        bounds => bounds,
    })
}

fn modifiers() -> impl Strategy<Value = Modifier> {
    let days = -100 * MINUTES_PER_DAY..300 * MINUTES_PER_DAY;
    (-10_000..10_000_i64, bounds(days), bounds(1..20), option::of(any::<bool>()))
        .prop_map(|(delta, window, bounds, active)| Modifier { delta, window, bounds, active })
}

fn sections() -> impl Strategy<Value = Section> {
    let sales = (-100 * MINUTES_PER_DAY..50 * MINUTES_PER_DAY, 1..300 * MINUTES_PER_DAY);
    let facts = (prop_oneof![Just(0), 1..2_000_000_i64], 1..1000_i64, sales, option::of(texts()), option::of(any::<bool>()));
    (facts, option::of(1..10_i64), vec(modifiers(), 0..4), 0..4_i64).prop_map(
        |((price, capacity, sales, description, active), maximum, modifiers, ordered)| Section {
            price,
            capacity,
            sales,
            description,
            active,
            maximum,
            modifiers,
            ordered,
        },
    )
}

fn sources() -> impl Strategy<Value = Source> {
    let tags = subsequence(vec!["jazz", "open air", "Gã", "漢"], 0..=4);
    let texts = (texts(), option::of(texts()), select(vec!["Jazz", "Rock"]).prop_map(str::to_owned), tags);
    let state = prop_oneof![Just(State::Draft), Just(State::Listed), Just(State::Returned), Just(State::Cancelled)];
    let times = (1..400 * MINUTES_PER_DAY, option::of(1..10_000_i64), -200_000..500_000_i64, option::of(1..10_000_i64));
    (texts, any::<bool>(), times, vec(sections(), 0..4), state).prop_map(
        |(texts, public, (start, length, shift, length_of_copy), sections, state)| Source {
            texts,
            public,
            start,
            length,
            sections,
            state,
            shift,
            length_of_copy,
        },
    )
}

#[test_on(sqlite, postgres)]
async fn copy_equals_event(app: TestApp) {
    let (kofi, ama) = (app.sign_up("kofi").await, app.sign_up("ama").await);
    let host = app.create_host(&kofi).await;
    let (category, venue) = (app.create_category().await, app.create_venue().await);
    let check = async |source: &Source| {
        let event = create(&app, &host, (&category, &venue), source).await?;
        sell(&app, &host, &ama, &event, source).await?;
        check(&app, &kofi, &event, source).await
    };
    check_cases(CASES, sources(), check).await;
}

/// Returns a time that is this many minutes after another.
fn moved(time: &str, minutes: i64) -> String {
    let time = NaiveDateTime::parse_from_str(time, MINUTE).unwrap();
    (time + TimeDelta::minutes(minutes)).format(MINUTE).to_string()
}

/// Sends a request that the host's administrator may make, and returns the body of the response.
async fn post(app: &TestApp, user: &User, path: &str, body: &Value) -> Result<Value, TestCaseError> {
    let response = app.post(&user.key, path, body).await;
    prop_assert!((200..300).contains(&response.status), "{}: {} {}", path, body, response.body);
    Ok(response.body)
}

async fn create(app: &TestApp, host: &Host, (category, venue): (&str, &str), source: &Source) -> Result<Event, TestCaseError> {
    let now = DateTime::from_timestamp_micros(app.state.clock.now().0).unwrap().format(MINUTE).to_string();
    let at = |minutes: i64| moved(&now, minutes);
    let (description, disclaimer, subcategory, tags) = &source.texts;
    let body = json!({
        "host": host.uri, "title": format!("Event {}", app.state.clock.next_id()), "description": description,
        "type": "Standard", "public": source.public, "category": category, "subcategory": subcategory, "venue": venue,
        "start": at(source.start), "end": source.length.map(|length| at(source.start + length)),
        "disclaimer": disclaimer, "tags": tags,
    });
    let uri = post(app, &host.owner, "/events", &body).await?["self"].as_str().unwrap().to_owned();
    let mut sections = Vec::new();
    for (number, section) in source.sections.iter().enumerate() {
        let (start, length) = section.sales;
        let body = json!({
            "name": format!("Block {number}"), "basePrice": section.price as f64 / 100.0, "capacity": section.capacity,
            "salesStart": at(start), "salesEnd": at(start + length), "description": section.description,
            "active": section.active, "maximumPerAccount": section.maximum,
        });
        let created = post(app, &host.owner, &format!("{uri}/sections"), &body).await?;
        let section_uri = format!("{uri}{}", created["self"].as_str().unwrap());
        for (number, modifier) in section.modifiers.iter().enumerate() {
            let body = json!({
                "name": format!("Modifier {number}"), "priceDelta": modifier.delta as f64 / 100.0, "active": modifier.active,
                "availableFrom": modifier.window.0.map(at), "availableTo": modifier.window.1.map(at),
                "minOrder": modifier.bounds.0, "maxOrder": modifier.bounds.1,
            });
            post(app, &host.owner, &format!("{section_uri}/modifiers"), &body).await?;
        }
        sections.push(section_uri);
    }
    Ok(Event { sections, ..Event::new(host, &uri) })
}

/// Sells tickets of the event, and returns or cancels them.
async fn sell(app: &TestApp, host: &Host, customer: &User, event: &Event, source: &Source) -> TestCaseResult {
    if matches!(source.state, State::Draft) {
        return Ok(());
    }
    app.list_event(event).await;
    for (uri, section) in event.sections.iter().zip(&source.sections).filter(|(_, section)| section.ordered > 0) {
        let placed = app.place_order(&customer.key, json!({ uri: section.ordered })).await;
        prop_assert!([201, 409].contains(&placed.status), "{}", placed.body);
        if placed.status == 409 {
            continue;
        }
        let order = placed.uri();
        if placed.body["status"] == "Placed" {
            prop_assert_eq!(app.pay(&customer.key, order, card_payment()).await.status, 201);
        }
        if matches!(source.state, State::Returned) {
            prop_assert_eq!(app.return_tickets(&host.owner.key, order, json!({ "reason": "Rain" })).await.status, 200);
        }
    }
    if matches!(source.state, State::Cancelled) {
        post(app, &host.owner, &format!("{}/cancellations", event.uri), &json!({})).await?;
        post(app, &host.owner, &format!("{}/returns", event.uri), &json!({ "reason": "Rain" })).await?;
    }
    Ok(())
}

/// Copies the event, and compares both.
async fn check(app: &TestApp, kofi: &User, event: &Event, source: &Source) -> TestCaseResult {
    let before = app.read(&event.uri).await;
    let start = moved(before["start"].as_str().unwrap(), source.shift);
    let given_end = source.length_of_copy.map(|length| moved(&start, length));
    let title = format!("Copy {}", app.state.clock.next_id());
    let body = json!({ "title": title, "start": start, "end": given_end });
    let copy = post(app, kofi, &format!("{}/copies", event.uri), &body).await?;

    let uri = copy["self"].as_str().unwrap();
    prop_assert_eq!(&app.read(uri).await, &copy);
    for name in COPIED {
        prop_assert_eq!(&copy[name], &before[name], "{}", name);
    }
    let end = given_end.unwrap_or_else(|| match before["end"].as_str().unwrap() {
        NEVER => NEVER.to_owned(),
        end => moved(end, source.shift),
    });
    let own = ["title", "status", "start", "end", "popularity", "published"].map(|name| copy[name].clone());
    prop_assert_eq!(json!(own), json!([title, "Draft", start, end, 0, ""]));
    let sections_of = |event: &Value| event["sections"].as_array().unwrap().clone();
    let (sections, copies) = (sections_of(&before), sections_of(&copy));
    prop_assert_eq!((sections.len(), copies.len()), (source.sections.len(), source.sections.len()));
    for (section, copied) in sections.iter().zip(&copies) {
        let mut expected = without_sales(section);
        for name in ["salesStart", "salesEnd"] {
            expected[name] = moved(section[name].as_str().unwrap(), source.shift).into();
        }
        prop_assert_eq!(&without_sales(copied), &expected);
        let counts = ["sold", "reserved", "remaining"].map(|name| copied[name].clone());
        prop_assert_eq!(json!(counts), json!([0, 0, copied["capacity"]]));
        let (modifiers, copied) = (modifiers_of(app, &event.uri, section).await, modifiers_of(app, uri, copied).await);
        let expected = modifiers.into_iter().map(|mut modifier| {
            for name in ["availableFrom", "availableTo"] {
                if let Some(time) = modifier[name].as_str() {
                    modifier[name] = moved(time, source.shift).into();
                }
            }
            modifier
        });
        prop_assert_eq!(copied, expected.collect::<Vec<_>>());
    }
    for (list, total) in [("orders", 0), ("returns", 0), ("tickets", 0), ("tokens", 1)] {
        prop_assert_eq!(&app.read(&format!("{uri}/{list}")).await["total"], total, "{}", list);
    }
    let after = app.read(&event.uri).await;
    prop_assert_eq!(&after["popularity"], &before["popularity"]);
    let facts = |event: &Value| sections_of(event).iter().map(without_sales).collect::<Vec<_>>();
    prop_assert_eq!(facts(&after), facts(&before), "the event itself doesn't change");
    Ok(())
}

/// Returns a section without its identifier, and without what depends on sales and the time.
fn without_sales(section: &Value) -> Value {
    let mut section = section.clone();
    section["price"] = section["price"]["base"].clone();
    for name in ["self", "sold", "reserved", "remaining", "groupPrices"] {
        section.as_object_mut().unwrap().remove(name);
    }
    section
}

/// Returns the price modifiers of a section without their identifiers.
async fn modifiers_of(app: &TestApp, event: &str, section: &Value) -> Vec<Value> {
    let mut page = app.read(&format!("{event}{}/modifiers", section["self"].as_str().unwrap())).await;
    let modifiers = page["entries"].as_array_mut().unwrap();
    modifiers.iter_mut().for_each(|modifier| drop(modifier.as_object_mut().unwrap().remove("self")));
    std::mem::take(modifiers)
}
