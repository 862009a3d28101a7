//! What references lead to that stay where they are. Each is compiled once for the whole document, when a value first gets there,
//! however many schemas refer to it: where all know each other, each of them would hold all of them otherwise.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock, Weak};

use jsonschema::error::ValidationErrorKind;
use jsonschema::paths::Location;
use jsonschema::{Keyword, ValidationError, Validator};
use serde_json::{Map, Value, json};

use super::resolver::reference;
use super::schema::{compile_with, subschemas_mut};

/// The keyword that stands in the place of a reference: how what it leads to is read, and the reference.
pub const KEYWORD: &str = "$kept";

/// An `allOf` takes in no more than this many of what is kept: what takes in itself has no end.
const MAX_TAKEN_IN: usize = 64;

/// How a schema is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValidationMode {
    /// For a request: what is `readOnly` is neither required nor looked at (OpenAPI 3.0, Schema Object).
    Request,
    /// For an answer: what is `writeOnly` is not required.
    Response,
    /// For an answer, closed: what isn't described is forbidden as well, because a client's document may not know less than the
    /// server tells.
    Closed,
}

/// What references lead to that stay where they are.
#[derive(Debug, Default)]
pub struct SchemaRegistry(HashMap<String, RegisteredSchema>);

#[derive(Debug)]
struct RegisteredSchema {
    open: Value,
    /// By [`Form`]; nothing where it can't be compiled.
    validators: [OnceLock<Option<Validator>>; 3],
}

/// The keyword in a schema.
struct RefKeyword {
    kept: Weak<SchemaRegistry>,
    name: String,
}

impl SchemaRegistry {
    /// What each reference leads to.
    pub fn new(targets: impl Iterator<Item = (String, Value)>) -> Self {
        Self(targets.map(|(reference, open)| (reference, RegisteredSchema { open, validators: Default::default() })).collect())
    }

    /// What a schema refers to, if it is a reference that is kept.
    pub fn target(&self, schema: &Value) -> Option<&Value> {
        self.0.get(reference(schema)?).map(|target| &target.open)
    }

    /// A validator of a schema whose references are kept here.
    ///
    /// # Errors
    /// When the schema is none.
    pub fn compile(self: &Arc<Self>, schema: &Value, form: ValidationMode) -> anyhow::Result<Validator> {
        let mut schema = schema.clone();
        SchemaRewriter { kept: self, form, taken_in: 0 }.read(&mut schema, form == ValidationMode::Closed, &[]);
        compile_with(&schema, Arc::downgrade(self))
    }

    /// All that is wrong with a value, each with its place in the value as a JSON pointer.
    pub fn errors(self: &Arc<Self>, validator: &Validator, value: &Value) -> Vec<(String, ValidationError<'static>)> {
        // Much the quicker question, and the answer is nearly always this.
        if validator.is_valid(value) { Vec::new() } else { self.errors_in(validator, value, "", &mut Vec::new()) }
    }

    /// The same of the value at a place, and of what leads there: nothing that is kept is asked about a place twice.
    fn errors_in(
        self: &Arc<Self>,
        validator: &Validator,
        value: &Value,
        at: &str,
        way: &mut Vec<(String, String)>,
    ) -> Vec<(String, ValidationError<'static>)> {
        let mut errors = Vec::new();
        for error in validator.iter_errors(value) {
            let place = format!("{at}{}", error.instance_path());
            let step = match error.kind() {
                ValidationErrorKind::Custom { keyword, message } if keyword == KEYWORD => Some((message.clone(), place.clone())),
                _ => None,
            };
            match step.filter(|step| !way.contains(step)).and_then(|step| Some((self.validator(&step.0)?, step))) {
                Some((validator, step)) => {
                    way.push(step);
                    errors.extend(self.errors_in(validator, error.instance(), &place, way));
                    way.pop();
                }
                None => errors.push((place, error.to_owned())),
            }
        }
        errors
    }

    /// The validator that the keyword names. What can't be compiled isn't checked.
    fn validator(self: &Arc<Self>, name: &str) -> Option<&Validator> {
        let (form, reference) = name.split_once(' ')?;
        let form = *[ValidationMode::Request, ValidationMode::Response, ValidationMode::Closed]
            .iter()
            .find(|known| known.name() == form)?;
        let target = self.0.get(reference)?;
        target.validators[form as usize].get_or_init(|| self.compile(&target.open, form).ok()).as_ref()
    }
}

impl ValidationMode {
    fn name(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::Response => "response",
            Self::Closed => "closed",
        }
    }
}

/// What a schema's keyword becomes.
type KeywordResult<'a> = Result<Box<dyn for<'i> Keyword<'i>>, ValidationError<'a>>;

/// What makes the keyword for a schema that is being compiled.
pub fn ref_keyword(
    kept: Weak<SchemaRegistry>,
) -> impl for<'a> Fn(&'a Map<String, Value>, &'a Value, Location) -> KeywordResult<'a> {
    move |_, name, _| {
        let name = name.as_str().unwrap_or_default().to_owned();
        Ok(Box::new(RefKeyword { kept: Weak::clone(&kept), name }))
    }
}

impl<'i> Keyword<'i> for RefKeyword {
    fn validate(&self, value: &'i Value) -> Result<(), ValidationError<'i>> {
        if self.is_valid(value) { Ok(()) } else { Err(ValidationError::custom(self.name.as_str())) }
    }

    /// A schema that is met again while it is held against the very same value asks nothing new: it counts as fulfilled, or the
    /// question would have no end (`Cat` is all of `Pet`, which is one of `Cat` and `Dog`).
    fn is_valid(&self, value: &'i Value) -> bool {
        let Some(kept) = self.kept.upgrade() else { return true };
        let Some(validator) = kept.validator(&self.name) else { return true };
        let step = (std::ptr::from_ref(validator).addr(), address(value));
        if ASKED.with_borrow(|asked| asked.contains(&step)) {
            return true;
        }
        ASKED.with_borrow_mut(|asked| asked.push(step));
        let is_valid = validator.is_valid(value);
        ASKED.with_borrow_mut(|asked| asked.pop());
        is_valid
    }
}

thread_local! {
    /// Which validators are being asked about which values, by their addresses.
    static ASKED: RefCell<Vec<(usize, usize)>> = const { RefCell::new(Vec::new()) };
}

/// What tells a value from all others while it is held.
fn address(value: &Value) -> usize {
    std::ptr::from_ref(value).addr()
}

/// Reads schemas in one form.
struct SchemaRewriter<'a> {
    kept: &'a SchemaRegistry,
    form: ValidationMode,
    taken_in: usize,
}

impl SchemaRewriter<'_> {
    /// What is put together from several schemas is closed as a whole, because each of them alone would forbid what the others
    /// describe. `beside` are the properties that go the other way by what it is put together with.
    fn read(&mut self, schema: &mut Value, is_closed: bool, beside: &[String]) {
        if self.kept.target(schema).is_some() {
            let form = if self.form == ValidationMode::Closed && !is_closed { ValidationMode::Response } else { self.form };
            *schema = json!({ KEYWORD: format!("{} {}", form.name(), reference(schema).unwrap_or_default()) });
            return;
        }
        let Value::Object(object) = schema else { return };
        let mut names = beside.to_vec();
        self.strip_direction(object, &mut names);
        let has = |keyword: &str| object.contains_key(keyword);
        let arms = |keyword: &str| object.get(keyword).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let is_put_together = has("allOf") || has("anyOf") || has("oneOf");
        // What is of one part at a time is closed by closing each part.
        let one_at_a_time = match (has("properties"), arms("allOf").len(), arms("anyOf").len(), arms("oneOf").len()) {
            (false, 1, 0, 0) => true,
            (false, 0, _, 0) | (false, 0, 0, _) => {
                arms("anyOf").iter().chain(arms("oneOf")).any(|arm| self.kept.target(arm).is_some())
            }
            _ => false,
        };
        if is_closed && is_put_together && !one_at_a_time && !has("additionalProperties") {
            object.insert("unevaluatedProperties".to_owned(), json!(false));
        } else if is_closed && has("properties") {
            object.entry("additionalProperties").or_insert(json!(false));
        }
        for arm in object.get_mut("allOf").and_then(Value::as_array_mut).into_iter().flatten().filter(|_| !one_at_a_time) {
            self.inline(arm);
        }
        for (keyword, part) in subschemas_mut(object) {
            let is_arm = matches!(keyword, "allOf" | "anyOf" | "oneOf");
            let is_closed = is_closed && (!is_arm || one_at_a_time) && keyword != "not";
            self.read(part, is_closed, if keyword == "allOf" { &names } else { &[] });
        }
    }

    /// Puts what a part refers to into its place, where the whole sees what it describes.
    fn inline(&mut self, part: &mut Value) {
        while let (Some(target), true) = (self.kept.target(part), self.taken_in < MAX_TAKEN_IN) {
            self.taken_in += 1;
            *part = target.clone();
        }
    }

    /// Forgets what goes the other way; `names` are such properties already known.
    fn strip_direction(&self, object: &mut Map<String, Value>, names: &mut Vec<String>) {
        let flag = if self.form == ValidationMode::Request { "readOnly" } else { "writeOnly" };
        self.properties_with_flag(object, flag, names);
        if let Some(required) = object.get_mut("required").and_then(Value::as_array_mut) {
            required.retain(|name| !names.iter().any(|flagged| name == flagged));
        }
        let properties = object.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten();
        for (_, property) in properties.filter(|(name, _)| self.form == ValidationMode::Request && names.contains(name)) {
            *property = json!({});
        }
    }

    /// The properties of an object, and of all that it is put together from, that have this flag.
    fn properties_with_flag(&self, object: &Map<String, Value>, flag: &str, names: &mut Vec<String>) {
        for (name, property) in object.get("properties").and_then(Value::as_object).into_iter().flatten() {
            if property[flag] == true || self.kept.target(property).is_some_and(|property| property[flag] == true) {
                names.push(name.clone());
            }
        }
        for part in object.get("allOf").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_object) {
            self.properties_with_flag(part, flag, names);
        }
    }
}
