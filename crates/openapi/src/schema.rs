//! Schemas: conversion to JSON Schema, validation, and messages for validation errors.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock, Weak};

use anyhow::anyhow;
use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{GeneralPurpose, GeneralPurposeConfig};
use jsonschema::error::ValidationErrorKind;
use jsonschema::{Draft, EmailOptions, ValidationError, Validator};
use serde_json::{Map, Value, json};

use crate::formats::{BIRTH_DATE_DESCRIPTION, is_birth_date, is_deliverable_email, parse_date_time};
use crate::resolver::References;
use crate::schema_registry::{KEYWORD, SchemaRegistry, ValidationMode, WRITE_ONLY, ref_keyword, write_only_keyword};

/// Extension with the known values of a list that may grow. Other values are valid, too.
pub const EXTENSIBLE_ENUM: &str = "x-extensible-enum";

/// The direction in which a value is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// To the server: `readOnly` properties are neither required nor validated (OpenAPI 3.0, Schema Object).
    Request,
    /// From the server: `writeOnly` properties are not required, and undeclared properties are rejected.
    Response,
}

/// A schema of the document. The validator is compiled on first use.
#[derive(Debug)]
pub struct Schema {
    /// The schema with its references inlined. References to recursive or large schemas remain and point into the document.
    pub resolved: Value,
    /// The schema as written in the document. The mapping of a discriminator refers to its references.
    pub raw: Value,
    registry: Arc<SchemaRegistry>,
    direction: Direction,
    validator: OnceLock<Result<Validator, String>>,
}

impl Schema {
    /// Creates a schema from a node of the document. A missing node allows every value.
    pub fn new<'a>(references: &References<'a>, node: &'a Value, direction: Direction) -> Self {
        let resolved = if node.is_null() { json!({}) } else { references.inline(node) };
        let raw = if node.is_null() { json!({}) } else { node.clone() };
        Self { resolved, raw, registry: references.registry.clone(), direction, validator: OnceLock::new() }
    }

    /// Validates a value. Returns each error with its location in the value, as a JSON pointer.
    ///
    /// # Errors
    /// If the schema can't be compiled.
    pub fn errors(&self, value: &Value) -> anyhow::Result<Vec<(String, ValidationError<'static>)>> {
        Ok(self.registry.errors(self.validator()?, value))
    }

    /// Returns if a value is valid. A schema that can't be compiled allows every value.
    pub fn is_valid(&self, value: &Value) -> bool {
        self.validator().map_or(true, |validator| validator.is_valid(value))
    }

    fn validator(&self) -> anyhow::Result<&Validator> {
        let mode = if self.direction == Direction::Request { ValidationMode::Request } else { ValidationMode::Closed };
        let compile = || self.registry.compile(&self.resolved, mode).map_err(|error| format!("{error:#}"));
        self.validator.get_or_init(compile).as_ref().map_err(|text| anyhow!("{text}"))
    }

    /// Returns the first error of a response's value. Unlike [`errors`](Self::errors), it allows undeclared properties where the
    /// schema does.
    ///
    /// # Errors
    /// If the schema can't be compiled.
    pub fn first_declared_error(&self, value: &Value) -> anyhow::Result<Option<String>> {
        let text = |(pointer, error): (String, ValidationError<'_>)| format!("{pointer}: {error}");
        let (undeclared, others): (Vec<_>, Vec<_>) = self.errors(value)?.into_iter().partition(|(_, error)| is_undeclared(error));
        if undeclared.is_empty() || !others.is_empty() {
            return Ok(others.into_iter().next().map(text));
        }
        let validator = self.registry.compile(&self.resolved, ValidationMode::Response)?;
        Ok(self.registry.errors(&validator, value).into_iter().next().map(text))
    }

    /// Returns the declared properties by name, including those of `allOf`, `anyOf` and `oneOf`.
    pub fn properties(&self) -> Vec<(&str, &Value)> {
        let parts = self.parts(|_| true);
        let properties = parts.into_iter().filter_map(|(_, part)| part["properties"].as_object()).flatten();
        properties.map(|(name, property)| (name.as_str(), self.follow(property))).collect()
    }

    /// Returns the schema and the parts that apply to a value: those of `allOf`, and of `anyOf` and `oneOf` the ones that the value
    /// satisfies. Each has its location in the schema, as a JSON pointer.
    pub fn parts_for(&self, value: &Value) -> Vec<(String, &Value)> {
        let mode = match self.direction {
            Direction::Request => ValidationMode::Request,
            Direction::Response => ValidationMode::Response,
        };
        self.parts(|branch| self.registry.compile(branch, mode).is_ok_and(|validator| validator.is_valid(value)))
    }

    /// Returns the schema and its parts: those of `allOf`, and the selected branches of `anyOf` and `oneOf`.
    fn parts(&self, is_selected: impl Fn(&Value) -> bool) -> Vec<(String, &Value)> {
        let mut parts: Vec<(String, &Value)> = Vec::new();
        let mut pending = VecDeque::from([(String::new(), &self.resolved)]);
        while let Some((pointer, schema)) = pending.pop_front() {
            let schema = self.follow(schema);
            // A schema may contain itself.
            if parts.iter().any(|(_, other)| std::ptr::eq(*other, schema)) {
                continue;
            }
            for keyword in ["allOf", "anyOf", "oneOf"] {
                let subschemas = schema[keyword].as_array().into_iter().flatten().enumerate();
                let selected = subschemas.filter(|(_, subschema)| keyword == "allOf" || is_selected(subschema));
                pending.extend(selected.map(|(index, subschema)| (format!("{pointer}/{keyword}/{index}"), subschema)));
            }
            parts.push((pointer, schema));
        }
        parts
    }

    /// Returns the target of a reference, or else the schema itself.
    fn follow<'s>(&'s self, schema: &'s Value) -> &'s Value {
        self.registry.target(schema).unwrap_or(schema)
    }

    /// Returns the branches of `oneOf` and `anyOf`, also of those in `allOf`.
    pub fn variants(&self) -> Vec<Self> {
        let schema = self.registry.target(&self.resolved).unwrap_or(&self.resolved);
        let subschemas =
            |keyword: &str| schema[keyword].as_array().into_iter().flatten().map(move |subschema| self.part(subschema));
        let own = ["oneOf", "anyOf"].into_iter().flat_map(subschemas);
        own.chain(subschemas("allOf").flat_map(|part| part.variants())).collect()
    }

    /// Creates the schema of a subschema of this one.
    pub fn part(&self, subschema: &Value) -> Self {
        Self {
            resolved: self.registry.target(subschema).unwrap_or(subschema).clone(),
            raw: subschema.clone(),
            registry: self.registry.clone(),
            direction: self.direction,
            validator: OnceLock::new(),
        }
    }
}

/// Returns whether an error is about a property that the schema doesn't declare for this direction.
pub(crate) fn is_undeclared(error: &ValidationError<'_>) -> bool {
    let kind = error.kind();
    matches!(kind, ValidationErrorKind::AdditionalProperties { .. } | ValidationErrorKind::UnevaluatedProperties { .. })
        || kind.keyword() == WRITE_ONLY
}

/// The form in which a keyword contains subschemas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SubschemaForm {
    /// One subschema.
    Single,
    /// An array of subschemas.
    List,
    /// An object whose values are subschemas.
    Named,
}

/// Returns the form of a keyword's subschemas; `None` if it has none.
pub fn subschema_form(keyword: &str) -> Option<SubschemaForm> {
    match keyword {
        "properties" | "patternProperties" | "dependentSchemas" | "$defs" => Some(SubschemaForm::Named),
        "allOf" | "anyOf" | "oneOf" | "prefixItems" => Some(SubschemaForm::List),
        "items"
        | "additionalProperties"
        | "not"
        | "if"
        | "then"
        | "else"
        | "contains"
        | "propertyNames"
        | "unevaluatedProperties"
        | "unevaluatedItems" => Some(SubschemaForm::Single),
        _ => None,
    }
}

/// Returns the direct subschemas of a schema, each with its keyword.
pub fn subschemas_mut(schema: &mut Map<String, Value>) -> Vec<(&str, &mut Value)> {
    let mut subschemas = Vec::new();
    for (keyword, value) in schema {
        let keyword = keyword.as_str();
        match (subschema_form(keyword), value) {
            (Some(SubschemaForm::Named), Value::Object(named)) => {
                subschemas.extend(named.values_mut().map(|subschema| (keyword, subschema)));
            }
            (Some(SubschemaForm::List), Value::Array(list)) => {
                subschemas.extend(list.iter_mut().map(|subschema| (keyword, subschema)));
            }
            (Some(SubschemaForm::Single), subschema @ Value::Object(_)) => subschemas.push((keyword, subschema)),
            // `resolve` adds the targets of remaining references here.
            (None, Value::Object(components)) if keyword == "components" => {
                let schemas = components.get_mut("schemas").and_then(Value::as_object_mut).into_iter().flatten();
                subschemas.extend(schemas.map(|(_, subschema)| (keyword, subschema)));
            }
            _ => {}
        }
    }
    subschemas
}

/// The format `byte`. Few decoders reject bits after the last byte (RFC 4648, section 3.5).
const BASE64: GeneralPurpose = GeneralPurpose::new(&STANDARD, GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true));

/// Compiles a schema whose references all point into itself. Validates the common formats, `email` as in the built-in document: more
/// strictly than RFC 5321, and the custom `event-time` and `birth-date`; other formats are ignored.
pub fn compile(schema: &Value) -> anyhow::Result<Validator> {
    build(schema, Weak::new(), true)
}

/// Compiles a schema that may refer to schemas in the registry.
pub fn compile_with(schema: &Value, registry: Weak<SchemaRegistry>) -> anyhow::Result<Validator> {
    let is_strict = registry.upgrade().is_none_or(|registry| registry.is_builtin);
    build(schema, registry, is_strict)
}

fn build(schema: &Value, registry: Weak<SchemaRegistry>, is_strict: bool) -> anyhow::Result<Validator> {
    let mut schema = schema.clone();
    to_json_schema(&mut schema);
    let options = jsonschema::options()
        .with_draft(Draft::Draft202012)
        .should_validate_formats(true)
        .with_email_options(EmailOptions::default().without_display_text());
    let options = if is_strict { options.with_format("email", is_deliverable_email) } else { options };
    options
        .with_format("byte", |text: &str| BASE64.decode(text).is_ok())
        .with_format("event-time", |text: &str| parse_date_time(text).is_some())
        .with_format("birth-date", is_birth_date)
        .with_keyword(KEYWORD, ref_keyword(registry))
        .with_keyword(WRITE_ONLY, write_only_keyword)
        .build(&schema)
        .map_err(|error| anyhow!("a schema cannot be used: {error}"))
}

/// Converts a schema of OpenAPI 3.0 to JSON Schema: `nullable`, boolean exclusive bounds, and the formats `int32` and `int64`.
fn to_json_schema(schema: &mut Value) {
    let Value::Object(object) = schema else { return };
    for (exclusive, bound) in [("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")] {
        if let Some(Value::Bool(is_exclusive)) = object.get(exclusive) {
            let limit = if *is_exclusive { object.remove(bound) } else { None };
            match limit {
                Some(limit) => object.insert(exclusive.to_owned(), limit),
                None => object.remove(exclusive),
            };
        }
    }
    // A frequent mistake: a boolean `required` at a property has no meaning.
    if object.get("required").is_some_and(Value::is_boolean) {
        object.remove("required");
    }
    let limits = match object.get("format").and_then(Value::as_str) {
        Some("int32") => Some((json!(i32::MIN), json!(i32::MAX))),
        Some("int64") => Some((json!(i64::MIN), json!(i64::MAX))),
        _ => None,
    };
    if let Some((minimum, maximum)) = limits {
        object.entry("minimum").or_insert(minimum);
        object.entry("maximum").or_insert(maximum);
    }
    subschemas_mut(object).into_iter().for_each(|(_, subschema)| to_json_schema(subschema));
    if object.remove("nullable") != Some(Value::Bool(true)) {
        return;
    }
    // The other keywords beside a type apply only to values of this type.
    let applies_to_null = ["allOf", "anyOf", "oneOf", "not", "if", "const"].iter().any(|keyword| object.contains_key(*keyword));
    if let (Some(Value::String(kind)), false) = (object.get("type"), applies_to_null) {
        object.insert("type".to_owned(), json!([kind, "null"]));
        if let Some(Value::Array(values)) = object.get_mut("enum")
            && !values.contains(&Value::Null)
        {
            values.push(Value::Null);
        }
    } else {
        let definitions = ["$defs", "components"].map(|key| (key, object.remove(key)));
        let inner = Value::Object(std::mem::take(object));
        object.insert("anyOf".to_owned(), json!([{ "type": "null" }, inner]));
        object.extend(definitions.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))));
    }
}

/// Describes an error to a client of the API, without regular expressions and names of formats. `example` is the example of the
/// schema.
///
/// Otherwise like [`error_message`].
pub fn client_message(error: &ValidationError<'_>, example: Option<&Value>) -> String {
    use ValidationErrorKind as Kind;
    match (error.kind(), example) {
        (Kind::Format { format }, _) if format_description(format).is_some() => {
            format!("must be {}", format_description(format).unwrap_or_default())
        }
        (Kind::Pattern { .. } | Kind::Format { .. }, Some(example)) => {
            format!("has the wrong form; a valid example is {}", to_plain_string(example))
        }
        (Kind::Pattern { .. } | Kind::Format { .. }, None) => "has the wrong form".to_owned(),
        (Kind::PropertyNames { error }, _) => format!("has an invalid key, which {}", client_message(error, None)),
        _ => error_message(error),
    }
}

/// Returns the description of a format for a client, with an example.
pub(crate) fn format_description(format: &str) -> Option<&'static str> {
    Some(match format {
        "event-time" => "a date and time, such as 2025-12-20T19:00",
        "birth-date" => BIRTH_DATE_DESCRIPTION,
        "date" => "a date, such as 2025-12-20",
        "date-time" => "a date and time with an offset, such as 2025-12-20T19:00:00Z",
        "time" => "a time with an offset, such as 19:00:00Z",
        "duration" => "a duration, such as PT15M",
        "email" => "an e-mail address, such as ama@example.com",
        "uri" => "an absolute URI, such as https://example.com/about",
        "uri-reference" => "a URI, such as /events/17637000000051",
        "uuid" => "a UUID, such as 8e03978e-40d5-43dd-bc93-6894a57f9324",
        "ipv4" => "an IPv4 address, such as 192.0.2.1",
        "ipv6" => "an IPv6 address, such as 2001:db8::1",
        "hostname" => "a host name, such as www.example.com",
        "byte" => "Base64",
        _ => return None,
    })
}

/// Describes an error as the end of a sentence that begins with the name of the value. Never contains the value, which may be secret.
pub fn error_message(error: &ValidationError<'_>) -> String {
    use ValidationErrorKind as Kind;
    let characters = |limit| counted(limit, "character", "characters");
    let items = |limit| counted(limit, "item", "items");
    let entries = |limit| counted(limit, "entry", "entries");
    match error.kind() {
        Kind::Type { kind } => match kind {
            jsonschema::error::TypeKind::Single(kind) => format!("must be {}", with_article(&kind.to_string())),
            jsonschema::error::TypeKind::Multiple(kinds) => {
                let names = kinds.iter().map(|kind| kind.to_string()).filter(|name| name != "null");
                let kinds: Vec<_> = names.map(|name| with_article(&name)).collect();
                format!("must be {}", kinds.join(" or "))
            }
        },
        Kind::Enum { options } => {
            let options = options.as_array().into_iter().flatten().map(to_plain_string);
            let options: Vec<_> = options.map(|option| if option.is_empty() { "\"\"".to_owned() } else { option }).collect();
            format!("must be one of: {}", options.join(", "))
        }
        Kind::Minimum { limit } => format!("must be at least {limit}"),
        Kind::Maximum { limit } => format!("must be at most {limit}"),
        Kind::ExclusiveMinimum { limit } => format!("must be more than {limit}"),
        Kind::ExclusiveMaximum { limit } => format!("must be less than {limit}"),
        Kind::MinLength { limit } => format!("must have at least {}", characters(*limit)),
        Kind::MaxLength { limit } => format!("must have at most {}", characters(*limit)),
        Kind::MinItems { limit } => format!("must have at least {}", items(*limit)),
        Kind::MaxItems { limit } => format!("must have at most {}", items(*limit)),
        Kind::MinProperties { limit } => format!("must have at least {}", entries(*limit)),
        Kind::MaxProperties { limit } => format!("must have at most {}", entries(*limit)),
        Kind::MultipleOf { multiple_of } => format!("must be a multiple of {multiple_of}"),
        Kind::UniqueItems => "must not repeat an item".to_owned(),
        Kind::Pattern { pattern } => format!("must match {pattern}"),
        Kind::Format { format } => format!("must be a valid {format}"),
        Kind::OneOfMultipleValid { .. } => "must match only one of several schemas".to_owned(),
        Kind::OneOfNotValid { .. } | Kind::AnyOf { .. } => "must match one of several schemas".to_owned(),
        Kind::Not { .. } => "must not match what is excluded".to_owned(),
        Kind::Required { property } => format!("lacks {}", to_plain_string(property)),
        Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
            format!("must not have {}", unexpected.join(", "))
        }
        Kind::FalseSchema => "is not allowed".to_owned(),
        Kind::Custom { keyword, message } if keyword == WRITE_ONLY => message.clone(),
        _ => "is invalid".to_owned(),
    }
}

/// Formats a count with its noun in the singular or plural.
pub fn counted(count: u64, singular: &str, plural: &str) -> String {
    format!("{count} {}", if count == 1 { singular } else { plural })
}

/// Returns the values of a form's field: the items of a list, or else the value itself.
pub fn field_values(value: &Value) -> &[Value] {
    value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice)
}

/// Formats a value for a path, query, header or sentence: a string without quotes, anything else as JSON.
pub fn to_plain_string(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn with_article(name: &str) -> String {
    let article = if name.starts_with(['a', 'i', 'o']) { "an" } else { "a" };
    format!("{article} {name}")
}
