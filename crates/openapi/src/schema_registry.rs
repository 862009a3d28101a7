//! Registry of the schemas behind references that are not inlined: recursive and large ones.
//!
//! Each schema is compiled once per document and mode, on first use, and shared by all schemas that refer to it. If every schema
//! contained a copy, a document whose schemas all refer to each other would need memory for all pairs of them.
//!
//! ```text
//! $ref ── SchemaRewriter ──► RefKeyword ── on validation ──► validator of the registered schema
//! ```

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock, Weak};

use jsonschema::error::ValidationErrorKind;
use jsonschema::paths::Location;
use jsonschema::{Keyword, ValidationError, Validator};
use serde_json::{Map, Value, json};

use crate::resolver::reference;
use crate::schema::{compile_with, subschemas_mut};

/// The custom keyword that replaces a reference. Its value is the [`RefKeyword::target`].
pub const KEYWORD: &str = "$registered";

/// Maximum number of registered schemas that are inlined into an `allOf`, which may contain itself.
const INLINED_SCHEMAS_LIMIT: usize = 64;

/// The rules for a validator of a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValidationMode {
    /// For a request: `readOnly` properties are neither required nor validated (OpenAPI 3.0, Schema Object).
    Request,
    /// For a response: `writeOnly` properties are not required.
    Response,
    /// For a response, like `Response`, but undeclared properties are rejected: clients must find every property in the document.
    Closed,
}

/// Registered schemas, by reference.
#[derive(Debug, Default)]
pub struct SchemaRegistry(HashMap<String, RegisteredSchema>);

#[derive(Debug)]
struct RegisteredSchema {
    resolved: Value,
    /// By [`ValidationMode`]; `None` if the schema can't be compiled.
    validators: [OnceLock<Option<Validator>>; 3],
}

/// Implementation of [`KEYWORD`] in a compiled schema.
struct RefKeyword {
    registry: Weak<SchemaRegistry>,
    /// The name of the validation mode and the reference, separated by a space.
    target: String,
}

impl SchemaRegistry {
    /// Creates a registry from references and the schemas that they refer to.
    pub fn new(schemas: impl Iterator<Item = (String, Value)>) -> Self {
        let register = |(reference, resolved)| (reference, RegisteredSchema { resolved, validators: Default::default() });
        Self(schemas.map(register).collect())
    }

    /// Returns the registered schema that a schema refers to.
    pub fn target(&self, schema: &Value) -> Option<&Value> {
        self.0.get(reference(schema)?).map(|target| &target.resolved)
    }

    /// Compiles a schema whose references are registered.
    ///
    /// # Errors
    /// If the schema is invalid.
    pub fn compile(self: &Arc<Self>, schema: &Value, mode: ValidationMode) -> anyhow::Result<Validator> {
        let mut schema = schema.clone();
        SchemaRewriter { registry: self, mode, inlined: 0 }.rewrite(&mut schema, mode == ValidationMode::Closed, &[]);
        compile_with(&schema, Arc::downgrade(self))
    }

    /// Validates a value. Returns each error with its location in the value, as a JSON pointer.
    pub fn errors(self: &Arc<Self>, validator: &Validator, value: &Value) -> Vec<(String, ValidationError<'static>)> {
        // `is_valid` is much faster than collecting errors, and most values are valid.
        if validator.is_valid(value) { Vec::new() } else { self.errors_in(validator, value, "", &mut Vec::new()) }
    }

    /// Collects the errors of the value at `location`, including those within registered schemas. `visited` contains the targets
    /// being expanded, with their locations, and prevents endless recursion.
    fn errors_in(
        self: &Arc<Self>,
        validator: &Validator,
        value: &Value,
        location: &str,
        visited: &mut Vec<(String, String)>,
    ) -> Vec<(String, ValidationError<'static>)> {
        let mut errors = Vec::new();
        for error in validator.iter_errors(value) {
            let pointer = format!("{location}{}", error.instance_path());
            let step = match error.kind() {
                ValidationErrorKind::Custom { keyword, message } if keyword == KEYWORD => {
                    Some((message.clone(), pointer.clone()))
                }
                _ => None,
            };
            match step.filter(|step| !visited.contains(step)).and_then(|step| Some((self.validator(&step.0)?, step))) {
                Some((validator, step)) => {
                    visited.push(step);
                    errors.extend(self.errors_in(validator, error.instance(), &pointer, visited));
                    visited.pop();
                }
                None => errors.push((pointer, error.to_owned())),
            }
        }
        errors
    }

    /// Returns the validator of a [`RefKeyword::target`]. `None` if the schema can't be compiled: it is not validated then.
    fn validator(self: &Arc<Self>, target: &str) -> Option<&Validator> {
        let (mode_name, reference) = target.split_once(' ')?;
        let modes = [ValidationMode::Request, ValidationMode::Response, ValidationMode::Closed];
        let mode = modes.into_iter().find(|mode| mode.name() == mode_name)?;
        let schema = self.0.get(reference)?;
        schema.validators[mode as usize].get_or_init(|| self.compile(&schema.resolved, mode).ok()).as_ref()
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

/// The result of compiling a custom keyword.
type KeywordResult<'a> = Result<Box<dyn for<'i> Keyword<'i>>, ValidationError<'a>>;

/// Returns the factory of [`RefKeyword`] for the schema compiler.
pub fn ref_keyword(
    registry: Weak<SchemaRegistry>,
) -> impl for<'a> Fn(&'a Map<String, Value>, &'a Value, Location) -> KeywordResult<'a> {
    move |_, target, _| {
        let target = target.as_str().unwrap_or_default().to_owned();
        Ok(Box::new(RefKeyword { registry: Weak::clone(&registry), target }))
    }
}

impl<'i> Keyword<'i> for RefKeyword {
    fn validate(&self, value: &'i Value) -> Result<(), ValidationError<'i>> {
        if self.is_valid(value) { Ok(()) } else { Err(ValidationError::custom(self.target.as_str())) }
    }

    /// Validates a value against the registered schema. If the same validation is already running, for example because `Cat` is
    /// all of `Pet` and `Pet` is one of `Cat` and `Dog`, the inner one passes to prevent endless recursion.
    fn is_valid(&self, value: &'i Value) -> bool {
        let Some(registry) = self.registry.upgrade() else { return true };
        let Some(validator) = registry.validator(&self.target) else { return true };
        let validation = (std::ptr::from_ref(validator).addr(), std::ptr::from_ref(value).addr());
        if RUNNING.with_borrow(|running| running.contains(&validation)) {
            return true;
        }
        RUNNING.with_borrow_mut(|running| running.push(validation));
        let is_valid = validator.is_valid(value);
        RUNNING.with_borrow_mut(|running| running.pop());
        is_valid
    }
}

thread_local! {
    /// The running validations of this thread: addresses of validator and value.
    static RUNNING: RefCell<Vec<(usize, usize)>> = const { RefCell::new(Vec::new()) };
}

/// Rewrites a schema for one mode: replaces references, removes properties of the other direction, and rejects undeclared
/// properties.
struct SchemaRewriter<'a> {
    registry: &'a SchemaRegistry,
    mode: ValidationMode,
    /// Number of schemas inlined so far, see [`INLINED_SCHEMAS_LIMIT`].
    inlined: usize,
}

impl SchemaRewriter<'_> {
    /// Rewrites a schema and its subschemas. `siblings` are the properties of the other direction that sibling schemas of an
    /// `allOf` declare.
    ///
    /// A combination such as `allOf` is closed as a whole with `unevaluatedProperties: false`, because `additionalProperties: false`
    /// in each branch would reject the properties of the others.
    fn rewrite(&mut self, schema: &mut Value, is_closed: bool, siblings: &[String]) {
        if self.registry.target(schema).is_some() {
            let mode = if self.mode == ValidationMode::Closed && !is_closed { ValidationMode::Response } else { self.mode };
            *schema = json!({ KEYWORD: format!("{} {}", mode.name(), reference(schema).unwrap_or_default()) });
            return;
        }
        let Value::Object(object) = schema else { return };
        let mut names = siblings.to_vec();
        self.strip_direction(object, &mut names);
        let has = |keyword: &str| object.contains_key(keyword);
        let branches = |keyword: &str| object.get(keyword).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let is_combined = ["allOf", "anyOf", "oneOf", "then", "else", "dependentSchemas"].into_iter().any(has);
        // A single branch declares all properties of a value here, so each branch is closed by itself. `anyOf` and `oneOf` need this
        // only for registered branches, because `unevaluatedProperties` doesn't see properties behind the custom keyword.
        let has_exclusive_branches =
            match (has("properties"), branches("allOf").len(), branches("anyOf").len(), branches("oneOf").len()) {
                (false, 1, 0, 0) => true,
                (false, 0, _, 0) | (false, 0, 0, _) => {
                    branches("anyOf").iter().chain(branches("oneOf")).any(|branch| self.registry.target(branch).is_some())
                }
                _ => false,
            };
        if is_closed && is_combined && !has_exclusive_branches && !has("additionalProperties") {
            object.entry("unevaluatedProperties").or_insert(json!(false));
        } else if is_closed && has("properties") {
            object.entry("additionalProperties").or_insert(json!(false));
        }
        if !has_exclusive_branches {
            // Makes the properties of the branches visible to `unevaluatedProperties`.
            object.get_mut("allOf").and_then(Value::as_array_mut).into_iter().flatten().for_each(|branch| self.inline(branch));
        }
        for (keyword, subschema) in subschemas_mut(object) {
            let is_branch = matches!(keyword, "allOf" | "anyOf" | "oneOf" | "then" | "else" | "dependentSchemas");
            let is_condition = matches!(keyword, "not" | "if" | "contains" | "propertyNames");
            let is_closed = is_closed && (!is_branch || has_exclusive_branches) && !is_condition;
            self.rewrite(subschema, is_closed, if keyword == "allOf" { &names } else { &[] });
        }
    }

    /// Replaces a reference with the registered schema.
    fn inline(&mut self, schema: &mut Value) {
        while let (Some(target), true) = (self.registry.target(schema), self.inlined < INLINED_SCHEMAS_LIMIT) {
            self.inlined += 1;
            *schema = target.clone();
        }
    }

    /// Makes the properties of the other direction optional, and unvalidated in a request. Adds them to `names`, which contains
    /// those of sibling schemas.
    fn strip_direction(&self, object: &mut Map<String, Value>, names: &mut Vec<String>) {
        let flag = if self.mode == ValidationMode::Request { "readOnly" } else { "writeOnly" };
        self.collect_properties_with_flag(object, flag, names);
        if let Some(required) = object.get_mut("required").and_then(Value::as_array_mut) {
            required.retain(|name| !names.iter().any(|flagged| name == flagged));
        }
        let properties = object.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten();
        for (_, property) in properties.filter(|(name, _)| self.mode == ValidationMode::Request && names.contains(name)) {
            *property = json!({});
        }
    }

    /// Appends the names of properties with a flag, including those in `allOf`.
    fn collect_properties_with_flag(&self, object: &Map<String, Value>, flag: &str, names: &mut Vec<String>) {
        for (name, property) in object.get("properties").and_then(Value::as_object).into_iter().flatten() {
            if property[flag] == true || self.registry.target(property).is_some_and(|property| property[flag] == true) {
                names.push(name.clone());
            }
        }
        for subschema in object.get("allOf").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_object) {
            self.collect_properties_with_flag(subschema, flag, names);
        }
    }
}
