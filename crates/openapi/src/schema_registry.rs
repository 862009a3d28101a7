//! Registry of the schemas behind references that are not inlined: recursive and large ones.
//!
//! Each schema is compiled once per document and mode, on first use, and shared by all schemas that refer to it. If every schema
//! contained a copy, a document whose schemas all refer to each other would need memory for all pairs of them.
//!
//! ```text
//! $ref ── SchemaRewriter ──► RefKeyword ── on validation ──► validator of the registered schema
//! ```

use std::collections::HashMap;
use std::sync::{Arc, OnceLock, Weak};

use jsonschema::error::ValidationErrorKind;
use jsonschema::paths::Location;
use jsonschema::{Keyword, ValidationError, Validator};
use serde_json::{Map, Value, json};

use crate::resolver::reference;
use crate::schema::{compile_with, subschema_form, subschemas_mut};

/// The custom keyword that replaces a reference. Its value is the [`RefKeyword::target`].
pub const KEYWORD: &str = "$registered";

/// The custom keyword that rejects a property, because it is only sent in requests.
pub const WRITE_ONLY: &str = "$writeOnly";

/// Maximum number of registered schemas that are inlined into the branches of a schema.
const INLINED_SCHEMAS_LIMIT: usize = 64;

/// Keywords whose subschemas apply to the value itself and may declare its properties.
const BRANCH_KEYWORDS: [&str; 6] = ["allOf", "anyOf", "oneOf", "then", "else", "dependentSchemas"];

/// The rules for a validator of a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValidationMode {
    /// For a request: `readOnly` properties are neither required nor validated (OpenAPI 3.0, Schema Object).
    Request,
    /// For a response: `writeOnly` properties are not required.
    Response,
    /// For a response, like `Response`, but undeclared properties are rejected: clients must find every property in the document.
    /// Except in the built-in document, `writeOnly` properties are rejected, too.
    Closed,
}

/// Registered schemas.
#[derive(Debug, Default)]
pub struct SchemaRegistry {
    by_reference: HashMap<String, RegisteredSchema>,
    /// True if they belong to the built-in document, see [`Operation::is_builtin`](crate::Operation::is_builtin).
    pub is_builtin: bool,
}

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
    pub fn new(schemas: impl Iterator<Item = (String, Value)>, is_builtin: bool) -> Self {
        let register = |(reference, resolved)| (reference, RegisteredSchema { resolved, validators: Default::default() });
        Self { by_reference: schemas.map(register).collect(), is_builtin }
    }

    /// Returns the registered schema that a schema refers to.
    pub fn target(&self, schema: &Value) -> Option<&Value> {
        self.by_reference.get(reference(schema)?).map(|target| &target.resolved)
    }

    /// Compiles a schema whose references are registered.
    ///
    /// # Errors
    /// If the schema is invalid.
    pub fn compile(self: &Arc<Self>, schema: &Value, mode: ValidationMode) -> anyhow::Result<Validator> {
        let mut schema = schema.clone();
        let scope = if mode == ValidationMode::Closed { SchemaScope::Closed } else { SchemaScope::Open };
        SchemaRewriter { registry: self, mode, inlined: 0 }.rewrite(&mut schema, scope, &[]);
        compile_with(&schema, Arc::downgrade(self))
    }

    /// Returns the target of the [`RefKeyword`] that an error is about, and its validator.
    pub fn registered<'e>(self: &'e Arc<Self>, error: &'e ValidationError<'_>) -> Option<(&'e str, &'e Validator)> {
        match error.kind() {
            ValidationErrorKind::Custom { keyword, message } if keyword == KEYWORD => Some((message, self.validator(message)?)),
            _ => None,
        }
    }

    /// Returns the validator of a [`RefKeyword::target`]. `None` if the schema can't be compiled: it is not validated then.
    fn validator(self: &Arc<Self>, target: &str) -> Option<&Validator> {
        let (mode_name, reference) = target.split_once(' ')?;
        let modes = [ValidationMode::Request, ValidationMode::Response, ValidationMode::Closed];
        let mode = modes.into_iter().find(|mode| mode.name() == mode_name)?;
        let schema = self.by_reference.get(reference)?;
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

/// Implementation of [`WRITE_ONLY`].
struct WriteOnlyKeyword;

impl<'i> Keyword<'i> for WriteOnlyKeyword {
    fn validate(&self, _: &'i Value) -> Result<(), ValidationError<'i>> {
        Err(ValidationError::custom("is write-only"))
    }

    fn is_valid(&self, _: &'i Value) -> bool {
        false
    }
}

/// Creates a [`WriteOnlyKeyword`] for the schema compiler.
pub fn write_only_keyword<'a>(_: &'a Map<String, Value>, _: &'a Value, _: Location) -> KeywordResult<'a> {
    Ok(Box::new(WriteOnlyKeyword))
}

impl<'i> Keyword<'i> for RefKeyword {
    fn validate(&self, value: &'i Value) -> Result<(), ValidationError<'i>> {
        if self.is_valid(value) { Ok(()) } else { Err(ValidationError::custom(self.target.as_str())) }
    }

    fn is_valid(&self, value: &'i Value) -> bool {
        let Some(registry) = self.registry.upgrade() else { return true };
        registry.validator(&self.target).is_none_or(|validator| validator.is_valid(value))
    }
}

/// Rewrites a schema for one mode: replaces references, removes properties of the other direction, and rejects undeclared
/// properties.
struct SchemaRewriter<'a> {
    registry: &'a SchemaRegistry,
    mode: ValidationMode,
    /// Number of schemas inlined so far, see [`INLINED_SCHEMAS_LIMIT`].
    inlined: usize,
}

/// The treatment of undeclared properties in a schema that is rewritten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SchemaScope {
    /// They are rejected.
    Closed,
    /// They are allowed in this branch of a schema, which may reject those that no branch declares. `may_be_free` is true if an object
    /// with any properties among the alternatives declares all of them: no schema around it declares properties.
    Branch { may_be_free: bool },
    /// They are allowed.
    Open,
}

impl SchemaRewriter<'_> {
    /// Rewrites a schema and its subschemas. `siblings` are the properties of the other direction that sibling schemas of an
    /// `allOf` declare.
    ///
    /// A combination such as `allOf` is closed as a whole with `unevaluatedProperties: false`, because `additionalProperties: false`
    /// in each branch would reject the properties of the others.
    fn rewrite(&mut self, schema: &mut Value, scope: SchemaScope, siblings: &[String]) {
        if self.registry.target(schema).is_some() {
            let is_open = self.mode == ValidationMode::Closed && scope != SchemaScope::Closed;
            let mode = if is_open { ValidationMode::Response } else { self.mode };
            *schema = json!({ KEYWORD: format!("{} {}", mode.name(), reference(schema).unwrap_or_default()) });
            return;
        }
        let Value::Object(object) = schema else { return };
        let mut names = siblings.to_vec();
        self.strip_direction(object, &mut names);
        let has = |keyword: &str| object.contains_key(keyword);
        let is_evaluated = matches!(scope, SchemaScope::Branch { .. }) || has("unevaluatedProperties");
        let has_exclusive_branches = !is_evaluated && self.has_exclusive_branches(object);
        let is_combined = !has_exclusive_branches && BRANCH_KEYWORDS.into_iter().any(has);
        let needs_closing = scope == SchemaScope::Closed && !has("unevaluatedProperties") && !has("additionalProperties");
        let may_be_free = match scope {
            SchemaScope::Branch { may_be_free } => may_be_free && !has("unevaluatedProperties"),
            SchemaScope::Closed | SchemaScope::Open => needs_closing && is_combined,
        } && !self.declares_properties(object);
        match (needs_closing, is_combined) {
            (true, true) => _ = object.insert("unevaluatedProperties".to_owned(), json!(false)),
            (true, false) if has("properties") => _ = object.insert("additionalProperties".to_owned(), json!(false)),
            _ => {}
        }
        for (keyword, subschema) in subschemas_mut(object) {
            let is_branch = BRANCH_KEYWORDS.contains(&keyword);
            let is_condition = matches!(keyword, "not" | "if" | "contains" | "propertyNames");
            let scope = match scope {
                _ if is_branch && !has_exclusive_branches => SchemaScope::Branch { may_be_free },
                SchemaScope::Closed if !is_condition => SchemaScope::Closed,
                _ => SchemaScope::Open,
            };
            // Makes the properties of the branches visible to `unevaluatedProperties`.
            if matches!(scope, SchemaScope::Branch { .. }) {
                self.inline(subschema);
                if matches!(keyword, "anyOf" | "oneOf") && may_be_free && is_free_form(subschema) {
                    subschema["additionalProperties"] = json!(true);
                }
            }
            self.rewrite(subschema, scope, if keyword == "allOf" { &names } else { &[] });
        }
    }

    /// Returns whether a schema or its `allOf` declares properties.
    fn declares_properties(&self, object: &Map<String, Value>) -> bool {
        let branches = object.get("allOf").and_then(Value::as_array).into_iter().flatten();
        let mut branches = branches.filter_map(|branch| self.registry.target(branch).unwrap_or(branch).as_object());
        object.contains_key("properties") || branches.any(|branch| self.declares_properties(branch))
    }

    /// Returns whether a single branch declares all properties of a value, so that each branch is closed by itself. `anyOf` and
    /// `oneOf` need this only for registered branches, which are then compiled once and not inlined.
    fn has_exclusive_branches(&self, object: &Map<String, Value>) -> bool {
        let branches = |keyword: &str| object.get(keyword).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let has_more = ["properties", "then", "else", "dependentSchemas"].iter().any(|keyword| object.contains_key(*keyword));
        match (has_more, branches("allOf").len(), branches("anyOf").len(), branches("oneOf").len()) {
            (false, 1, 0, 0) => true,
            (false, 0, _, 0) | (false, 0, 0, _) => {
                branches("anyOf").iter().chain(branches("oneOf")).any(|branch| self.registry.target(branch).is_some())
            }
            _ => false,
        }
    }

    /// Replaces a reference with the registered schema.
    fn inline(&mut self, schema: &mut Value) {
        while let (Some(target), true) = (self.registry.target(schema), self.inlined < INLINED_SCHEMAS_LIMIT) {
            self.inlined += 1;
            *schema = target.clone();
        }
    }

    /// Makes the properties of the other direction optional, and unvalidated in a request. A closed response of another document than
    /// the built-in one may not have them. Adds them to `names`, which contains those of sibling schemas.
    fn strip_direction(&self, object: &mut Map<String, Value>, names: &mut Vec<String>) {
        let flag = if self.mode == ValidationMode::Request { "readOnly" } else { "writeOnly" };
        self.collect_properties_with_flag(object, flag, names);
        if let Some(required) = object.get_mut("required").and_then(Value::as_array_mut) {
            required.retain(|name| !names.iter().any(|flagged| name == flagged));
        }
        let replacement = match self.mode {
            ValidationMode::Request => json!({}),
            ValidationMode::Closed if !self.registry.is_builtin => json!({ WRITE_ONLY: true }),
            ValidationMode::Closed | ValidationMode::Response => return,
        };
        let properties = object.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten();
        properties.filter(|(name, _)| names.contains(name)).for_each(|(_, property)| *property = replacement.clone());
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

/// Returns whether a schema is of an object with any properties.
fn is_free_form(schema: &Value) -> bool {
    let restricts = |keyword: &str| subschema_form(keyword).is_some() || keyword == "required" || keyword == "$ref";
    schema["type"] == "object" && schema.as_object().is_some_and(|schema| !schema.keys().any(|keyword| restricts(keyword)))
}
