//! What an operation may answer, and an answer held against it.

use std::ops::RangeInclusive;

use anyhow::Context;
use http::{HeaderMap, header};
use jsonschema::ValidationError;
use jsonschema::error::ValidationErrorKind;
use serde_json::{Map, Value, json};

use super::resolver::{References, escape};
use super::schema::{Direction, Schema, error_message};

/// One answer that an operation may give.
#[derive(Debug)]
pub struct ResponseSpec {
    /// The statuses that it may have: one, a hundred (`4XX`), or all (`default`).
    pub statuses: RangeInclusive<u16>,
    /// Its place in the document, as a JSON pointer (RFC 6901).
    pub pointer: String,
    /// What its body may be; nothing where it has none.
    pub contents: Vec<Content>,
    /// The headers that it has besides that of its media type.
    pub headers: Vec<Header>,
}

/// A body that a request or an answer may have.
#[derive(Debug)]
pub struct Content {
    /// Its media type, as the document writes it: `application/json`, `image/*`.
    pub media_type: String,
    /// The examples, by name; one that has none is called `example`.
    pub examples: Map<String, Value>,
    /// What the document says of it, with references followed.
    pub schema: Option<Schema>,
}

/// A header that an answer may have.
#[derive(Debug)]
pub struct Header {
    /// Its name, as the document writes it.
    pub name: String,
    /// Whether it is always there.
    pub is_required: bool,
    /// The example, if there is one.
    pub example: Option<Value>,
    /// What the document says of it.
    pub schema: Schema,
}

/// Something about an answer that is not as the document says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// What kind of thing.
    pub kind: ViolationKind,
    /// Where in the document it is said, as a JSON pointer.
    pub pointer: String,
    /// What is wrong, as the end of a sentence that the answer begins.
    pub text: String,
    /// The same without a value and without the number of an item: what stays as it is from answer to answer.
    pub normalized: String,
}

/// What kind of thing can be wrong with an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ViolationKind {
    /// No answer of this status is declared.
    Status,
    /// A body of another media type, a body where none is declared, or none where one is.
    MediaType,
    /// A header is missing, or not as its schema says.
    Header,
    /// The body is not as its schema says.
    Body,
    /// The body has a property that its schema doesn't name.
    Undeclared,
}

impl ResponseSpec {
    /// Reads an answer of the document that stands at `pointer`. `status` is its key there.
    pub(super) fn new<'a>(references: &References<'a>, pointer: String, status: &str, node: &'a Value) -> anyhow::Result<Self> {
        let node = references.follow(node);
        let contents = node["content"].as_object().into_iter().flatten();
        let content = |(media_type, node): (&String, &'a Value)| Content::new(references, media_type, node, Direction::Response);
        let headers = node["headers"].as_object().into_iter().flatten();
        Ok(Self {
            statuses: statuses(status)?,
            pointer,
            contents: contents.map(content).collect(),
            headers: headers
                // Its media type is told where its content is (OpenAPI 3.0, Response Object).
                .filter(|(name, _)| !name.eq_ignore_ascii_case(header::CONTENT_TYPE.as_str()))
                .map(|(name, header)| (name, references.follow(header)))
                .map(|(name, header)| Header {
                    name: name.clone(),
                    is_required: header["required"] == true,
                    example: header.get("example").cloned(),
                    schema: Schema::new(references, &header["schema"], Direction::Response),
                })
                .collect(),
        })
    }

    /// All that is wrong with the headers and the body of an answer.
    pub fn wrong(&self, headers: &HeaderMap, body: &[u8]) -> Vec<Violation> {
        let text = |name: &str| headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
        let mut wrong = self.wrong_body(&text(header::CONTENT_TYPE.as_str()).unwrap_or_default(), body);
        for header in &self.headers {
            let pointer = format!("{}/headers/{}", self.pointer, escape(&header.name));
            let mut say = |text: String, gist| {
                wrong.push(Violation { kind: ViolationKind::Header, pointer: pointer.clone(), text, normalized: gist })
            };
            match text(&header.name) {
                None if header.is_required => {
                    let text = format!("lacks the header {}", header.name);
                    say(text.clone(), text);
                }
                None => {}
                Some(text) => {
                    let found = header.schema.problems(&header.value(&text)).into_iter();
                    let name = &header.name;
                    found.for_each(|found| {
                        say(format!("{name}{}", found.text), format!("has a header {name} that {}", found.gist))
                    });
                }
            }
        }
        wrong
    }

    fn wrong_body(&self, media_type: &str, body: &[u8]) -> Vec<Violation> {
        let about =
            |kind, pointer: String, text, gist: &str| vec![Violation { kind, pointer, text, normalized: gist.to_owned() }];
        let essence = essence(media_type);
        if self.contents.is_empty() {
            let has_body = || format!("has a body: {}", String::from_utf8_lossy(body));
            return match (body.is_empty(), media_type) {
                (true, "") => Vec::new(),
                (true, _) => {
                    let text = format!("is `{media_type}`, where nothing is declared");
                    about(ViolationKind::MediaType, self.pointer.clone(), text, "has a media type and no body")
                }
                (false, _) => about(ViolationKind::MediaType, self.pointer.clone(), has_body(), "has a body"),
            };
        }
        let with_parameters = self.contents.iter().find(|content| normalize(&content.media_type) == normalize(media_type));
        let covering = || self.contents.iter().find(|content| matches_range(&content.media_type, essence));
        let Some(content) = with_parameters.or_else(covering) else {
            let declared: Vec<_> = self.contents.iter().map(|content| &content.media_type).collect();
            let text = format!("is `{essence}` and not one of {declared:?}");
            let gist = if body.is_empty() { "has no body".to_owned() } else { format!("is `{essence}`") };
            return about(ViolationKind::MediaType, format!("{}/content", self.pointer), text, &gist);
        };
        if let Some(charset) = charset(media_type).filter(|charset| is_json(essence) && !charset.eq_ignore_ascii_case("utf-8")) {
            let text = format!("is `{media_type}`, and JSON is UTF-8 (RFC 8259)");
            let gist = format!("is JSON with the charset {charset}");
            return about(ViolationKind::MediaType, format!("{}/content", self.pointer), text, &gist);
        }
        let pointer = format!("{}/content/{}/schema", self.pointer, escape(&content.media_type));
        let (Some(schema), true) = (&content.schema, is_json(essence)) else { return Vec::new() };
        match serde_json::from_slice(body) {
            Ok(body) => {
                let wrong = schema.problems(&body).into_iter().map(|problem| Violation {
                    kind: problem.kind,
                    pointer: pointer.clone(),
                    text: format!("body{} in {body}", problem.text),
                    normalized: format!("has a body that {}", problem.gist),
                });
                wrong.collect()
            }
            Err(error) => {
                let text = format!("body is no JSON: {error}: {}", String::from_utf8_lossy(body));
                about(ViolationKind::Body, pointer, text, "has a body that is no JSON")
            }
        }
    }
}

impl Header {
    /// A text as a value of its schema.
    fn value(&self, text: &str) -> Value {
        match self.schema.resolved["type"].as_str() {
            Some("string") | None => json!(text),
            Some("array") => text.split(',').map(|item| json!(item.trim())).collect(),
            Some(_) => serde_json::from_str(text).unwrap_or_default(),
        }
    }
}

impl Content {
    /// Reads a Media Type Object.
    pub(super) fn new<'a>(references: &References<'a>, media_type: &str, node: &'a Value, direction: Direction) -> Self {
        Self {
            media_type: media_type.to_owned(),
            examples: examples(references, node),
            schema: node.get("schema").map(|schema| Schema::new(references, schema, direction)),
        }
    }

    /// Whether its body is XML that the document shows no text of: none is made from its schema.
    pub fn is_xml_unseen(&self) -> bool {
        let is_xml = essence(&self.media_type).to_lowercase().ends_with("xml");
        is_xml && !self.examples.values().next().is_some_and(Value::is_string)
    }

    /// Whether its body is JSON.
    pub fn is_json(&self) -> bool {
        is_json(essence(&self.media_type))
    }
}

impl Schema {
    /// What is wrong with a value: where and what, as `/name: 7 is not of type "string"`.
    pub fn wrong(&self, value: &Value) -> Vec<(ViolationKind, String)> {
        self.problems(value).into_iter().map(|problem| (problem.kind, problem.text)).collect()
    }

    fn problems(&self, value: &Value) -> Vec<SchemaViolation> {
        match self.errors(value) {
            Ok(errors) => {
                let problem = |(place, error): (String, ValidationError<'_>)| SchemaViolation {
                    kind: kind_of(error.kind()),
                    text: format!("{place}: {error}"),
                    gist: gist(&place, &error),
                };
                errors.into_iter().map(problem).collect()
            }
            Err(error) => {
                let text = format!(" can't be held against its schema: {error:#}");
                vec![SchemaViolation { kind: ViolationKind::Body, text, gist: "can't be held against its schema".to_owned() }]
            }
        }
    }
}

/// Something about a value that is not as its schema says: see [`Wrong`].
struct SchemaViolation {
    kind: ViolationKind,
    text: String,
    gist: String,
}

/// What is wrong, and where, without a value and with `*` for the number of an item: `/entries/*/name must be a string`.
fn gist(place: &str, error: &ValidationError<'_>) -> String {
    let steps = place.split('/').map(|step| if step.parse::<usize>().is_ok() { "*" } else { step });
    let place = steps.collect::<Vec<_>>().join("/");
    let what = match error.kind() {
        ValidationErrorKind::AdditionalProperties { unexpected } | ValidationErrorKind::UnevaluatedProperties { unexpected } => {
            format!("has the undeclared {}", unexpected.join(", "))
        }
        _ => error_message(error),
    };
    if place.is_empty() { what } else { format!("at {place} {what}") }
}

/// The examples of a Media Type Object or a Parameter Object, by name; one that has none is called `example`.
pub(super) fn examples<'a>(references: &References<'a>, node: &'a Value) -> Map<String, Value> {
    let named = node["examples"].as_object().into_iter().flatten();
    let named = named.filter_map(|(name, example)| Some((name.clone(), references.follow(example).get("value")?.clone())));
    let alone = node.get("example").map(|example| ("example".to_owned(), example.clone()));
    alone.into_iter().chain(named).collect()
}

fn kind_of(kind: &ValidationErrorKind) -> ViolationKind {
    match kind {
        ValidationErrorKind::AdditionalProperties { .. } | ValidationErrorKind::UnevaluatedProperties { .. } => {
            ViolationKind::Undeclared
        }
        _ => ViolationKind::Body,
    }
}

/// The statuses that a key of the document's responses means.
fn statuses(key: &str) -> anyhow::Result<RangeInclusive<u16>> {
    if key == "default" {
        return Ok(100..=599);
    }
    if let Some(hundred) = key.strip_suffix("XX").and_then(|digit| digit.parse::<u16>().ok()) {
        return Ok(hundred * 100..=hundred * 100 + 99);
    }
    let status = key.parse::<u16>().with_context(|| format!("{key} is no status"))?;
    Ok(status..=status)
}

/// A media type without its parameters.
pub fn essence(media_type: &str) -> &str {
    media_type.split(';').next().unwrap_or_default().trim()
}

/// The charset that a media type names.
fn charset(media_type: &str) -> Option<&str> {
    let mut parameters = media_type.split(';').skip(1).filter_map(|parameter| parameter.split_once('='));
    let (_, charset) = parameters.find(|(name, _)| name.trim().eq_ignore_ascii_case("charset"))?;
    Some(charset.trim().trim_matches('"'))
}

/// A media type with its parameters, without what makes no difference: blanks, quotes and capitals (RFC 9110, section 8.3.1).
pub fn normalize(media_type: &str) -> String {
    media_type.chars().filter(|character| !" \t\"".contains(*character)).flat_map(char::to_lowercase).collect()
}

/// Whether a media type of the document, which may be a range, covers this one.
pub fn matches_range(declared: &str, given: &str) -> bool {
    let declared = essence(declared);
    let range = declared.strip_suffix('*').filter(|range| range.ends_with('/'));
    declared == "*/*"
        || declared.eq_ignore_ascii_case(given)
        || range.is_some_and(|range| given.to_lowercase().starts_with(range))
}

/// Whether a body of this media type is JSON (RFC 6839 for the suffix).
pub fn is_json(essence: &str) -> bool {
    essence.eq_ignore_ascii_case("application/json") || essence.to_lowercase().ends_with("+json")
}
