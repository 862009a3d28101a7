//! The body of a request, held against the contract.

use std::collections::{BTreeMap, HashSet};

use anyhow::Context;
use http::{HeaderMap, HeaderName, header};
use jsonschema::ValidationError;
use jsonschema::error::ValidationErrorKind;
use serde_json::{Map, Value};

use super::response::{Content, essence, is_json, matches_range, normalize};
use super::charset_policy::AllowedCharacters;
use super::json;
use super::parameter::{Parameter, ParameterLocation, RawValues};
use super::resolver::{References, unescape};
use super::schema::{Direction, Schema, error_message};
use crate::error::{FieldError, RequestError, Result};

/// Largest body of an operation, in bytes (decisions).
const BODY_LIMIT: usize = 64 * 1024;
/// Largest body of an operation whose body carries images, or is no JSON.
const IMAGES_LIMIT: usize = 8 * 1024 * 1024;

/// The codings that pack (IANA's registry, and what is in use beside it). None of them is unpacked.
const CONTENT_ENCODINGS: [&str; 7] = ["gzip", "x-gzip", "deflate", "compress", "x-compress", "br", "zstd"];

/// What a problem with the body as a whole is named.
const BODY: &str = "body";

/// The body that an operation takes.
#[derive(Debug)]
pub struct RequestBody {
    /// Its largest size in bytes.
    pub limit: usize,
    /// Whether a request must have one.
    pub required: bool,
    /// The forms in which it may come.
    pub contents: Vec<Content>,
    readers: Vec<BodyParser>,
}

/// What reads a body of one media type.
#[derive(Debug)]
enum BodyParser {
    /// An object whose properties are read as the platform reads its own: see [`Arguments`].
    Arguments(ObjectValidator),
    /// Any JSON. The properties that it names, in their order.
    Json(Schema, Vec<String>),
    /// A form, whose properties are written as the parameters of a query.
    Form(Vec<Parameter>),
    /// A form in parts, of which those of these names must be there.
    Parts(Vec<String>),
    /// What is not looked into.
    Any,
}

/// A JSON object of the platform's own contract, in which what is blank counts as missing where it is required, and as absent
/// where it is not and doesn't fit (wire facts).
#[derive(Debug)]
struct ObjectValidator {
    /// In the document's order.
    all: Vec<Property>,
    /// The schema without its own `required`, which is checked here.
    schema: Schema,
}

/// A property of the body, and what is asked of it before its schema is.
#[derive(Debug)]
struct Property {
    name: String,
    presence: Presence,
    /// How many items or entries it has at the most. One that has more is looked at no further: a body full of wrong items would
    /// make an error of each.
    most: Option<u64>,
    characters: AllowedCharacters,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Presence {
    Required,
    /// May be left out, but not blanked: what a resource cannot be without (`x-not-blank`).
    NotBlank,
    Optional,
}

impl RequestBody {
    /// Reads a Request Body Object. `is_own` says whether the platform's own rules of what is blank hold.
    ///
    /// # Errors
    /// When it has no content, or a form's property a style that OpenAPI doesn't have.
    pub fn new<'a>(references: &References<'a>, node: &'a Value, is_own: bool) -> anyhow::Result<Self> {
        let declared = node["content"].as_object().context("a body has no content")?;
        let content = |(media_type, node): (&String, &'a Value)| Content::new(references, media_type, node, Direction::Request);
        let contents: Vec<_> = declared.iter().map(content).collect();
        let reader = |(media_type, node): (&String, &'a Value)| BodyParser::new(references, media_type, node, is_own);
        let readers = declared.iter().map(reader).collect::<anyhow::Result<Vec<_>>>()?;
        let is_large = |content: &Content| {
            let properties = content.schema.as_ref().and_then(|schema| schema.resolved["properties"].as_object());
            !content.is_json() || properties.is_some_and(|all| all.values().any(|property| property["format"] == "image"))
        };
        let limit = if contents.iter().any(is_large) { IMAGES_LIMIT } else { BODY_LIMIT };
        Ok(Self { limit, required: node["required"] == true, contents, readers })
    }

    /// What reads a body with these headers; `None` where there is nothing to read.
    ///
    /// # Errors
    /// When its media type is not declared, or it is packed.
    fn reader(&self, headers: &HeaderMap, bytes: &[u8]) -> Result<Option<&BodyParser>> {
        if [header::CONTENT_ENCODING, header::TRANSFER_ENCODING].iter().any(|name| is_compressed(headers, name)) {
            let text = "The request's body must not be compressed: it is taken as it is, without Content-Encoding.";
            return Err(RequestError::UnsupportedMediaType(text.to_owned()));
        }
        let Some(given) = headers.get(header::CONTENT_TYPE).filter(|_| !bytes.is_empty()) else {
            let json = self.contents.iter().position(Content::is_json).unwrap_or_default();
            return Ok(self.readers.get(json));
        };
        let given = given.to_str().unwrap_or_default();
        let with_parameters = self.contents.iter().position(|content| normalize(&content.media_type) == normalize(given));
        let index = with_parameters
            .or_else(|| self.contents.iter().position(|content| matches_range(&content.media_type, essence(given))));
        let declared = || self.contents.iter().map(|content| content.media_type.as_str()).collect::<Vec<_>>().join(" or ");
        let refusal = || RequestError::UnsupportedMediaType(format!("The request's body must be {}.", declared()));
        index.map(|index| self.readers.get(index)).ok_or_else(refusal)
    }

    /// Reads a body. What is wrong with it is added to the problems.
    ///
    /// # Errors
    /// When it can't be read at all, or its schema can't be used.
    pub fn check(&self, headers: &HeaderMap, bytes: &[u8], problems: &mut Vec<FieldError>) -> Result<Value> {
        let Some(reader) = self.reader(headers, bytes)? else { return Ok(Value::Null) };
        let is_empty = bytes.iter().all(u8::is_ascii_whitespace);
        match reader {
            BodyParser::Arguments(arguments) if self.required || !is_empty => arguments.check(bytes, problems),
            _ if is_empty => {
                if self.required {
                    problems.extend(reader.missing());
                }
                Ok(Value::Null)
            }
            BodyParser::Json(schema, names) => check_json(schema, names, bytes, problems),
            BodyParser::Form(properties) => check_form(properties, bytes, problems),
            BodyParser::Parts(required) => {
                let given = part_names(&String::from_utf8_lossy(bytes));
                problems.extend(required.iter().filter(|name| !given.contains(*name)).map(|name| FieldError::missing(name)));
                Ok(Value::Null)
            }
            BodyParser::Arguments(_) | BodyParser::Any => Ok(Value::Null),
        }
    }
}

/// Whether a header names a coding that packs. Other names, such as `utf-8`, are a client's mistake and change nothing.
fn is_compressed(headers: &HeaderMap, name: &HeaderName) -> bool {
    let codings = headers.get_all(name).iter().filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(','));
    codings.map(str::trim).any(|coding| CONTENT_ENCODINGS.iter().any(|packing| coding.eq_ignore_ascii_case(packing)))
}

impl BodyParser {
    fn new<'a>(references: &References<'a>, media_type: &str, node: &'a Value, is_own: bool) -> anyhow::Result<Self> {
        let media_type = essence(media_type);
        let schema = Schema::new(references, &node["schema"], Direction::Request);
        if media_type.eq_ignore_ascii_case("application/x-www-form-urlencoded") {
            let required = string_list(&schema.resolved["required"]);
            let property = |(name, property): (&String, &Value)| {
                Parameter::from_parts(
                    name,
                    ParameterLocation::Query,
                    required.contains(name),
                    schema.part(property),
                    &node["encoding"][name],
                )
            };
            let properties = schema.resolved["properties"].as_object().into_iter().flatten();
            return Ok(Self::Form(properties.map(property).collect::<anyhow::Result<_>>()?));
        }
        if media_type.eq_ignore_ascii_case("multipart/form-data") {
            return Ok(Self::Parts(string_list(&schema.resolved["required"])));
        }
        if !is_json(media_type) {
            return Ok(Self::Any);
        }
        let names = schema.resolved["properties"].as_object().into_iter().flat_map(Map::keys).cloned().collect::<Vec<_>>();
        Ok(if is_own && !names.is_empty() { Self::Arguments(ObjectValidator::new(schema)) } else { Self::Json(schema, names) })
    }

    /// What a request lacks that has no body at all.
    fn missing(&self) -> Vec<FieldError> {
        let names = match self {
            Self::Json(schema, _) => string_list(&schema.resolved["required"]),
            Self::Parts(required) => required.clone(),
            Self::Form(properties) => {
                properties.iter().filter(|property| property.required).map(|property| property.name.clone()).collect()
            }
            Self::Arguments(_) | Self::Any => Vec::new(),
        };
        if names.is_empty() {
            vec![FieldError::missing(BODY)]
        } else {
            names.iter().map(|name| FieldError::missing(name)).collect()
        }
    }
}

impl ObjectValidator {
    fn new(schema: Schema) -> Self {
        let required = string_list(&schema.resolved["required"]);
        let not_blank = string_list(&schema.resolved["x-not-blank"]);
        let names = schema.resolved["properties"].as_object().into_iter().flat_map(Map::keys);
        let optional = names.filter(|name| !required.contains(name)).map(|name| {
            let presence = if not_blank.contains(name) { Presence::NotBlank } else { Presence::Optional };
            (name, presence)
        });
        let all = required.iter().map(|name| (name, Presence::Required)).chain(optional).map(|(name, presence)| {
            let property = &schema.resolved["properties"][name];
            let most = property["maxItems"].as_u64().or_else(|| property["maxProperties"].as_u64());
            Property { name: name.clone(), presence, most, characters: AllowedCharacters::of(property) }
        });
        let all = all.collect();
        let schema = schema.with(|open| {
            open.as_object_mut().into_iter().for_each(|open| drop(open.remove("required")));
            let properties = open["properties"].as_object_mut().into_iter().flat_map(|properties| properties.values_mut());
            for property in properties.filter_map(Value::as_object_mut) {
                // A null is taken out before; without it the other errors come out plainly.
                property.remove("nullable");
                let values = property.get_mut("enum").and_then(Value::as_array_mut);
                values.into_iter().for_each(|values| values.retain(|value| !value.is_null()));
            }
        });
        Self { all, schema }
    }

    /// Reads the body. No body at all is one without any argument.
    fn check(&self, bytes: &[u8], problems: &mut Vec<FieldError>) -> Result<Value> {
        let empty = bytes.iter().all(u8::is_ascii_whitespace);
        let value = if empty { Value::Object(Map::new()) } else { json::read(bytes)? };
        let Value::Object(mut object) = value else {
            return Err(RequestError::MalformedBody("The request's body must be a JSON object.".to_owned()));
        };
        let (mut found, mut blank) = (BTreeMap::new(), Vec::new());
        for Property { name, presence, most, characters } in &self.all {
            let given = object.get(name);
            let absent = given.is_none_or(is_blank);
            let missing = match presence {
                Presence::Required => absent,
                Presence::NotBlank => given.is_some() && absent,
                Presence::Optional => false,
            };
            if missing {
                found.insert(name.as_str(), FieldError::missing(name));
            } else if given.is_some_and(Value::is_null) {
                object.shift_remove(name);
            } else if let Some(detail) = most.zip(given).and_then(|(most, given)| too_many(given, most)) {
                found.insert(name.as_str(), FieldError::invalid(name, detail));
                object.shift_remove(name);
            } else if let Some(detail) = given.and_then(|given| characters.wrong(given)) {
                if absent && *presence == Presence::Optional {
                    blank.push(name.as_str());
                } else {
                    found.insert(name.as_str(), FieldError::invalid(name, detail));
                }
            }
        }
        let mut value = Value::Object(object);
        for (place, error) in self.schema.errors(&value)? {
            let (name, text) = field_error(&place, &error);
            let Some(Property { name, presence, .. }) = self.all.iter().find(|argument| argument.name == name) else { continue };
            if *presence == Presence::Optional && is_blank(&value[name]) {
                blank.push(name.as_str());
                continue;
            }
            found.entry(name).or_insert_with(|| FieldError::invalid(name, text));
        }
        if let Some(object) = value.as_object_mut() {
            // What has no place for a blank is not set by one: a client may send back a resource as it was read.
            object.retain(|name, _| !blank.contains(&name.as_str()));
        }
        problems.extend(self.all.iter().filter_map(|argument| found.remove(argument.name.as_str())));
        Ok(value)
    }
}

/// Holds JSON against its schema: one problem for each property, in the document's order, those that it doesn't name at the end.
fn check_json(schema: &Schema, names: &[String], bytes: &[u8], problems: &mut Vec<FieldError>) -> Result<Value> {
    let value = json::read(bytes)?;
    let (mut found, mut told_of) = (Vec::new(), HashSet::new());
    for (place, error) in schema.errors(&value)? {
        let (name, text) = if value.is_object() {
            field_error(&place, &error)
        } else {
            (BODY.to_owned(), with_location(&error, place.strip_prefix('/')))
        };
        let told = match error.kind() {
            ValidationErrorKind::Required { property } if name.is_empty() => {
                vec![FieldError::missing(property.as_str().unwrap_or(BODY))]
            }
            ValidationErrorKind::AdditionalProperties { unexpected } if name.is_empty() => {
                unexpected.iter().map(|name| FieldError::invalid(name, "is not among the properties of the body")).collect()
            }
            _ => vec![FieldError::invalid(if name.is_empty() { BODY } else { &name }, text)],
        };
        found.extend(told.into_iter().filter(|problem| told_of.insert(problem.name.clone())));
    }
    found.sort_by_cached_key(|problem| names.iter().position(|name| *name == problem.name).unwrap_or(names.len()));
    problems.extend(found);
    Ok(value)
}

/// Holds a form against its properties.
fn check_form(properties: &[Parameter], bytes: &[u8], problems: &mut Vec<FieldError>) -> Result<Value> {
    let given: RawValues = form_urlencoded::parse(bytes).collect();
    let mut object = Map::new();
    for property in properties {
        if let Some(value) = property.read(&given, problems)? {
            object.insert(property.name.clone(), value);
        }
    }
    Ok(object.into())
}

/// The names of the parts of a form (RFC 7578, section 4.2). What is in them is not looked into.
fn part_names(form: &str) -> Vec<String> {
    let headers = form.lines().filter_map(|line| line.split_once(':'));
    let dispositions = headers.filter(|(name, _)| name.eq_ignore_ascii_case("content-disposition"));
    let names = dispositions.filter_map(|(_, value)| value.split(';').find_map(|part| part.trim().strip_prefix("name=")));
    names.map(|name| name.trim_matches('"').to_owned()).collect()
}

/// The top-level property that an error is about, empty for the whole, and what is wrong there.
fn field_error(place: &str, error: &ValidationError<'_>) -> (String, String) {
    let mut steps = place.trim_start_matches('/').splitn(2, '/');
    let name = unescape(steps.next().unwrap_or_default());
    (name, with_location(error, steps.next()))
}

/// What is wrong, and where within what it is said of.
fn with_location(error: &ValidationError<'_>, place: Option<&str>) -> String {
    match place.filter(|place| !place.is_empty()) {
        Some(place) => format!("{} (at {})", error_message(error), unescape(place)),
        None => error_message(error),
    }
}

fn string_list(names: &Value) -> Vec<String> {
    names.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Whether a required argument of this value counts as missing, whatever its type (wire facts).
pub fn is_blank(value: &Value) -> bool {
    value.is_null() || value.as_str().is_some_and(|text| text.trim().is_empty())
}

/// What is wrong with a value of more than so many items or entries.
fn too_many(value: &Value, most: u64) -> Option<String> {
    let (count, what) = match value {
        Value::Array(items) => (items.len(), "items"),
        Value::Object(entries) => (entries.len(), "entries"),
        _ => return None,
    };
    (u64::try_from(count).is_ok_and(|count| count > most)).then(|| format!("must have at most {most} {what}"))
}
