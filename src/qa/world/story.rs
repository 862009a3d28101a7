//! What stands for the document's examples on the server that is compared.

use std::collections::{BTreeMap, HashMap};
use std::sync::LazyLock;

use anyhow::Context;
use chrono::{NaiveDate, Utc};
use regex::{Captures, Regex};
use serde_json::Value;

use super::example::Example;
use super::plan::Actor;
use crate::qa::exchange::{KEY, Request, SERVED, VERSION};

/// The account of the story's Ama, in the examples.
pub const AMA: &str = "GH-4K7QW2MZ";
/// The account that the example of an integration acts for.
const TILL: &str = "GH-2C5VD9HJ";
/// The account that tickets are offered to, in the examples.
pub const RECIPIENT: &str = "GH-8T3NB6XR";
/// The free section, of whose making there is no example.
pub const GENERAL_ADMISSION: &str = "17637000000061";
/// Serials of Ama's tickets, in the examples.
const SERIALS: [&str; 2] = ["7QK2M9-X4T8R1ZB6N3W", "7QK2M9-P0D5V7HJ2C9L"];
/// A token's code, in the examples.
const CODE: &str = "V8T3HK5N";

/// A day of the story.
static DAY: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"\b202[56]-\d\d-\d\d").ok());

/// The examples' texts with those in their place, and the keys of everyone who asks.
#[derive(Debug, Clone, Default)]
pub struct Substitutions {
    texts: BTreeMap<String, String>,
    keys: HashMap<Actor, String>,
}

impl Substitutions {
    /// The story before anything is made, when the staff's key is all there is.
    pub fn new(key: &str) -> Self {
        Self { texts: BTreeMap::new(), keys: HashMap::from([(Actor::Staff, key.to_owned())]) }
    }

    /// Has another text in the place of an example's from now on.
    pub fn insert(&mut self, example: &str, text: impl Into<String>) {
        self.texts.insert(example.to_owned(), text.into());
    }

    /// What stands in the place of an example's text.
    pub fn get(&self, example: &str) -> String {
        self.texts.get(example).map_or(example, String::as_str).to_owned()
    }

    /// Gives somebody another's key.
    pub fn copy_key(&mut self, from: Actor, to: Actor) {
        self.keys.insert(to, self.key(from).to_owned());
    }

    /// Somebody's key; as long as there is none, the staff's.
    pub fn key(&self, who: Actor) -> &str {
        self.keys.get(&who).or_else(|| self.keys.get(&Actor::Staff)).map_or("", String::as_str)
    }

    /// An operation's example as a request on this server, with the body of this name or else the first.
    ///
    /// # Errors
    /// When there is no body of this name, or what stands for the examples doesn't fit into it.
    pub fn request(&self, who: Actor, example: &Example, body: Option<&str>) -> anyhow::Result<Request> {
        let mut path = example.path.clone();
        for (name, value) in &example.variables {
            path = path.replace(&format!("{{{name}}}"), value);
        }
        let mut request = Request::new(&example.method, self.substitute(&path));
        request.query = example.query.iter().map(|(name, value)| (name.clone(), self.substitute(value))).collect();
        if example.needs_version {
            request = request.with_header(VERSION, SERVED);
        }
        if example.needs_key {
            request = request.with_header(KEY, self.key(who));
        }
        let body = match body {
            Some(name) => Some(example.bodies.get(name).with_context(|| format!("the document has no example {name}"))?),
            None => example.bodies.values().next(),
        };
        let Some(body) = body else { return Ok(request) };
        let body = self.substitute(&body.to_string());
        let body = serde_json::from_str(&body).context("what was made has a name that no body can hold")?;
        Ok(request.with_json(&body))
    }

    /// Takes over what an operation's answer says: `self`, a key, a code, serials.
    pub fn record_response(&mut self, operation: &str, answer: &Value, examples: &HashMap<String, Example>) {
        let entries = answer.as_array().or_else(|| answer["entries"].as_array());
        let resource = entries.map_or(answer, |entries| entries.first().unwrap_or(&Value::Null));
        if let Some(uri) = resource["self"].as_str() {
            self.learn_uri(uri, examples);
        }
        let key = match operation {
            "account_create" => {
                self.insert(TILL, self.get(AMA));
                None
            }
            "account_ticket_list" => {
                let is_issued = |ticket: &&Value| ticket["status"] == "Issued";
                let serials = entries.into_iter().flatten().filter(is_issued).filter_map(|ticket| ticket["serial"].as_str());
                let serials: Vec<&str> = serials.collect();
                // A mock may have fewer, or none of this account: then the examples' own will do.
                if serials.len() >= SERIALS.len() {
                    SERIALS.iter().zip(serials).for_each(|(example, serial)| self.insert(example, serial));
                }
                None
            }
            "event_token_create" => {
                answer["code"].as_str().into_iter().for_each(|code| self.insert(CODE, code));
                None
            }
            "integration_create" => Some(Actor::Customer),
            "session_create" => Some(Actor::Session),
            "token_authentication_get" => Some(Actor::Gate),
            _ => None,
        };
        if let Some((who, key)) = key.zip(answer["key"].as_str()) {
            self.keys.insert(who, key.to_owned());
        }
    }

    /// The resource at this URI takes the place of the one that the examples have at such a URI; what it is a part of stays.
    fn learn_uri(&mut self, uri: &str, examples: &HashMap<String, Example>) {
        for example in examples.values().filter(|example| example.method == "GET") {
            let own = example.read(uri).and_then(|variables| variables.last().copied());
            let shown = own.and_then(|(own, _)| example.variables.iter().find(|(variable, _)| variable == own));
            if let Some(((_, text), (_, shown))) = own.zip(shown) {
                self.insert(shown, text);
            }
        }
    }

    /// A text of the examples as it is on this server. In one pass: what has been put in is not read again.
    fn substitute(&self, text: &str) -> String {
        let text = DAY.as_ref().map_or(text.into(), |day| day.replace_all(text, |day: &Captures<'_>| shift_date(&day[0])));
        let (mut told, mut rest) = (String::new(), &*text);
        let next = |rest: &str| {
            let found = self.texts.iter().filter_map(|(example, text)| Some((rest.find(example.as_str())?, example.len(), text)));
            found.min_by_key(|(at, length, _)| (*at, std::cmp::Reverse(*length)))
        };
        while let Some((at, length, text)) = next(rest) {
            told.push_str(&rest[..at]);
            told.push_str(text);
            rest = &rest[at + length..];
        }
        told + rest
    }
}

/// A day of the story, moved as far as lies between the day of its first orders and today.
fn shift_date(day: &str) -> String {
    let first_orders = NaiveDate::from_ymd_opt(2025, 11, 22).unwrap_or_default();
    let passed = Utc::now().date_naive().signed_duration_since(first_orders);
    let moved = day.parse::<NaiveDate>().ok().and_then(|day| day.checked_add_signed(passed));
    moved.map_or_else(|| day.to_owned(), |day| day.to_string())
}
