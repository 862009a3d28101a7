//! Searches of published events: after each change, every server finds what a simple search of all events finds.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select, subsequence};
use proptest::test_runner::TestCaseResult;
use serde_json::{Value, json};

use super::check_cases;
use crate::support::{Host, TestApp, entries_of, id_of, test_on};

/// The number of cases.
const CASES: usize = 3;
/// The words of events. Some begin with others.
const WORDS: [&str; 7] = ["jazz", "jam", "ja", "night", "nightly", "café", "2998"];
/// The searches for one word or the beginning of one.
const BEGINNINGS: [&str; 6] = ["j", "ja", "jaz", "nigh", "CAFE\u{301}", "zebra"];

/// The texts of an event, without the number that makes its title unique.
#[derive(Debug, Clone)]
struct Texts {
    title: Vec<&'static str>,
    tags: Vec<&'static str>,
    description: Vec<&'static str>,
}

#[derive(Debug, Clone)]
enum Step {
    /// A new event is published: with these texts, at one of a few days, and perhaps over.
    Publish(Texts, u32, bool),
    /// The texts of an event are changed.
    Change(Index, Texts),
    /// An event gets another start.
    Move(Index, u32),
    /// An event becomes public or not.
    SetPublic(Index, bool),
    /// An event is withdrawn, or published again.
    Withdraw(Index),
    /// An event is cancelled.
    Cancel(Index),
    /// An event is removed.
    Remove(Index),
}

#[derive(Debug, Clone)]
struct SearchRequest {
    text: String,
    past: bool,
    records: usize,
}

#[derive(Debug, Clone)]
struct Case {
    steps: Vec<Step>,
    searches: Vec<SearchRequest>,
}

/// An event as the model knows it.
#[derive(Debug)]
struct ModelEvent {
    uri: String,
    title: String,
    texts: Texts,
    day: u32,
    is_over: bool,
    is_public: bool,
    status: Status,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Status {
    Draft,
    Listed,
    Cancelled,
}

fn texts() -> impl Strategy<Value = Texts> {
    let words = |minimum| subsequence(WORDS.to_vec(), minimum..=3);
    (words(0), words(0), words(1)).prop_map(|(title, tags, description)| Texts { title, tags, description })
}

fn steps() -> impl Strategy<Value = Step> {
    let event = any::<Index>;
    prop_oneof![
        4 => (texts(), 10..13_u32, prop::bool::weighted(0.2)).prop_map(|(texts, day, is_over)| Step::Publish(texts, day, is_over)),
        3 => (event(), texts()).prop_map(|(event, texts)| Step::Change(event, texts)),
        1 => (event(), 10..13_u32).prop_map(|(event, day)| Step::Move(event, day)),
        1 => (event(), any::<bool>()).prop_map(|(event, is_public)| Step::SetPublic(event, is_public)),
        2 => event().prop_map(Step::Withdraw),
        1 => event().prop_map(Step::Cancel),
        1 => event().prop_map(Step::Remove),
    ]
}

fn searches() -> impl Strategy<Value = SearchRequest> {
    let last = prop_oneof![select(WORDS.to_vec()), select(BEGINNINGS.to_vec())];
    (vec(select(WORDS.to_vec()), 0..=2), last, any::<bool>(), 1..4_usize).prop_map(|(mut words, last, past, records)| {
        words.push(last);
        SearchRequest { text: words.join(" "), past, records }
    })
}

fn cases() -> impl Strategy<Value = Case> {
    (vec(steps(), 6..16), vec(searches(), 4..=4)).prop_map(|(steps, searches)| Case { steps, searches })
}

#[test_on(sqlite, postgres, two_servers)]
async fn search_finds_what_events_have(app: TestApp) {
    let (_, host) = app.sign_up_with_host("kofi").await;
    let (category, venue) = (app.create_category().await, app.create_venue().await);
    let check = async |case: &Case| {
        let mut events: Vec<ModelEvent> = Vec::new();
        for step in &case.steps {
            apply(&app, &host, (&category, &venue), &mut events, step).await?;
            for search in &case.searches {
                // The servers take turns.
                for _ in 0..2 {
                    check_search(&app, &events, search).await?;
                }
            }
        }
        for event in events.iter().filter(|event| event.status != Status::Cancelled) {
            request(&app, &host, "DELETE", &event.uri, None).await?;
        }
        // Events of other cases are not found.
        app.execute_sql("update events set public = false").await;
        Ok(())
    };
    check_cases(CASES, cases(), check).await;
}

/// Sends a request of the host's administrator, and returns the body of the response.
async fn request(
    app: &TestApp,
    host: &Host,
    method: &'static str,
    path: &str,
    body: Option<Value>,
) -> Result<Value, TestCaseError> {
    let request = app.request(method, path).key(&host.owner.key);
    let request = if let Some(body) = &body { request.json(body) } else { request };
    let response = request.send().await;
    prop_assert!((200..300).contains(&response.status), "{} {}: {} {:?}", method, path, response.body, body);
    Ok(response.body)
}

async fn publish(app: &TestApp, host: &Host, event: &str) -> TestCaseResult {
    let submission = request(app, host, "POST", &format!("{event}/submissions"), None).await?;
    let decision = app.staff.client.submission_delete().submission(id_of(submission["self"].as_str().unwrap())).approved(true);
    decision.send().await.unwrap();
    Ok(())
}

fn title(app: &TestApp, texts: &Texts) -> String {
    format!("{} n{}", texts.title.join("-"), app.state.clock.next_id())
}

fn body(title: &str, texts: &Texts) -> Value {
    json!({ "title": title, "tags": texts.tags, "description": format!("({}).", texts.description.join(", ")) })
}

/// Makes a change through the API and in the model.
async fn apply(
    app: &TestApp,
    host: &Host,
    (category, venue): (&str, &str),
    events: &mut Vec<ModelEvent>,
    step: &Step,
) -> TestCaseResult {
    let chosen = match step {
        Step::Publish(..) => None,
        Step::Change(event, _) | Step::Move(event, _) | Step::SetPublic(event, _) => Some(event),
        Step::Withdraw(event) | Step::Cancel(event) | Step::Remove(event) => Some(event),
    };
    let number = match chosen {
        Some(_) if events.is_empty() => return Ok(()),
        chosen => chosen.map_or(0, |event| event.index(events.len())),
    };
    if chosen.is_some() && events[number].status == Status::Cancelled {
        return Ok(());
    }
    match step {
        Step::Publish(texts, day, is_over) => {
            let title = title(app, texts);
            let mut event = body(&title, texts);
            let year = if *is_over { 2020 } else { 2998 };
            for (name, value) in [
                ("host", json!(host.uri)),
                ("type", json!("Standard")),
                ("public", json!(true)),
                ("category", json!(category)),
                ("subcategory", json!("Jazz")),
                ("venue", json!(venue)),
                ("start", json!(format!("{year}-12-{day}T19:00"))),
                ("end", json!(format!("{year}-12-20T19:00"))),
            ] {
                event[name] = value;
            }
            let uri = request(app, host, "POST", "/events", Some(event)).await?["self"].as_str().unwrap().to_owned();
            publish(app, host, &uri).await?;
            let (texts, day, is_over) = (texts.clone(), *day, *is_over);
            events.push(ModelEvent { uri, title, texts, day, is_over, is_public: true, status: Status::Listed });
        }
        Step::Change(_, texts) => {
            let event = &mut events[number];
            (event.title, event.texts) = (title(app, texts), texts.clone());
            request(app, host, "PUT", &event.uri, Some(body(&event.title, texts))).await?;
        }
        Step::Move(_, day) => {
            let event = &mut events[number];
            event.day = *day;
            let year = if event.is_over { 2020 } else { 2998 };
            request(app, host, "PUT", &event.uri, Some(json!({ "start": format!("{year}-12-{day}T19:00") }))).await?;
        }
        Step::SetPublic(_, is_public) => {
            events[number].is_public = *is_public;
            request(app, host, "PUT", &events[number].uri, Some(json!({ "public": is_public }))).await?;
        }
        Step::Withdraw(_) if events[number].status == Status::Draft => {
            publish(app, host, &events[number].uri).await?;
            events[number].status = Status::Listed;
        }
        Step::Withdraw(_) => {
            request(app, host, "POST", &format!("{}/withdrawals", events[number].uri), None).await?;
            events[number].status = Status::Draft;
        }
        Step::Cancel(_) if events[number].status == Status::Draft => {}
        Step::Cancel(_) => {
            request(app, host, "POST", &format!("{}/cancellations", events[number].uri), None).await?;
            events[number].status = Status::Cancelled;
        }
        Step::Remove(_) => {
            request(app, host, "DELETE", &events[number].uri, None).await?;
            events.remove(number);
        }
    }
    Ok(())
}

/// Returns the words of a text.
fn words(text: &str) -> Vec<String> {
    let text = text.to_lowercase().replace("e\u{301}", "é");
    text.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// Returns the rank of an event in a search: by the fields that are needed to have all of its words.
fn rank(event: &ModelEvent, search: &str) -> Option<usize> {
    let mut fields = words(&event.title);
    let others = [&event.texts.tags, &event.texts.description].map(|texts| texts.iter().flat_map(|text| words(text)));
    let has_all = |fields: &[String]| {
        let search = words(search);
        let (last, whole) = search.split_last().unwrap();
        whole.iter().all(|word| fields.contains(word)) && fields.iter().any(|word| word.starts_with(last))
    };
    for (rank, further) in [None].into_iter().chain(others.map(Some)).enumerate() {
        fields.extend(further.into_iter().flatten());
        if has_all(&fields) {
            return Some(rank);
        }
    }
    None
}

/// Compares all pages of a search with the model.
async fn check_search(app: &TestApp, events: &[ModelEvent], search: &SearchRequest) -> TestCaseResult {
    let published =
        events.iter().filter(|event| event.is_public && event.status == Status::Listed && (search.past || !event.is_over));
    let start = |event: &ModelEvent| (!event.is_over, event.day);
    let mut found: Vec<_> =
        published.filter_map(|event| Some((rank(event, &search.text)?, start(event), &event.title))).collect();
    // Events with the same start are the oldest first, as in the model.
    found.sort_by_key(|(rank, start, _)| (*rank, *start));
    let expected: Vec<&String> = found.into_iter().map(|(.., title)| title).collect();
    let pages = expected.len().div_ceil(search.records).max(1);
    let mut titles = Vec::new();
    for page in 1..=pages {
        let (past, records) = (search.past.to_string(), search.records.to_string());
        let query = [("search", search.text.as_str()), ("past", &past), ("records", &records), ("page", &page.to_string())];
        let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(query).finish();
        let response = app.get(&app.public_key, &format!("/published-events?{query}")).await;
        prop_assert_eq!(response.status, 200, "{}: {}", query, response.body);
        prop_assert_eq!(&response.body["total"], expected.len(), "{}: {:?}", query, expected);
        let entries = entries_of(&response.body);
        titles.extend(entries.iter().map(|event| event["title"].as_str().unwrap().to_owned()));
    }
    prop_assert_eq!(titles.iter().collect::<Vec<_>>(), expected, "{:?}", search);
    Ok(())
}
