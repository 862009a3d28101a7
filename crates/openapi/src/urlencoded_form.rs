//! URL-encoded forms.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::composition::{combined_properties, is_read_only, property, required_in_requests};
use crate::error::{FieldError, Result};
use crate::parameter::{Parameter, ParameterLocation, RawValues};
use crate::request_body::field_errors;
use crate::schema::Schema;
use crate::value_kind::coerce;

/// The media type of a URL-encoded form.
pub(crate) const FORM: &str = "application/x-www-form-urlencoded";

/// A URL-encoded form, whose properties are serialized like query parameters.
#[derive(Debug)]
pub(crate) struct Form {
    properties: Vec<Parameter>,
    /// The objects without a declared serialization, as JSON: their members are in the form since OpenAPI 3.0.0, and JSON since 3.0.4.
    json_objects: Vec<Parameter>,
    schema: Arc<Schema>,
}

impl Form {
    /// Creates a form with the Encoding Objects of its properties.
    ///
    /// # Errors
    /// If a property has a style that is not one of OpenAPI.
    pub(crate) fn new(schema: Arc<Schema>, encoding: &Value) -> anyhow::Result<Self> {
        let required = required_in_requests(&schema.resolved);
        let (mut properties, mut json_objects) = (Vec::new(), Vec::new());
        let as_json = json!({ "contentType": "application/json" });
        for (name, property) in combined_properties(&schema.resolved) {
            let (required, property) = (required.contains(&name), Arc::new(schema.part(&property)));
            let parameter = |schema: &Arc<Schema>, encoding: &Value| {
                Parameter::from_parts(&name, ParameterLocation::Query, required, Arc::clone(schema), encoding)
            };
            if property.resolved["type"] == "object" && encoding[&name].is_null() {
                json_objects.push(parameter(&property, &as_json)?);
            }
            properties.push(parameter(&property, &encoding[&name])?);
        }
        Ok(Self { properties, json_objects, schema })
    }

    /// Returns the names of the required properties.
    pub(crate) fn required(&self) -> impl Iterator<Item = &str> {
        self.properties.iter().filter(|property| property.required).map(|property| property.name.as_str())
    }

    /// Returns the property in the serialization in which it was sent.
    fn as_sent<'f>(&'f self, property: &'f Parameter, raw: &RawValues) -> &'f Parameter {
        let is_json = |json: &&Parameter| raw.iter().any(|(name, text)| *name == json.name && text.starts_with('{'));
        self.json_objects.iter().find(|json| json.name == property.name).filter(is_json).unwrap_or(property)
    }

    /// Parses and validates a request's form: first each property, and then all of them if each is valid. Properties of responses are
    /// ignored.
    pub(crate) fn parse(&self, bytes: &[u8], errors: &mut Vec<FieldError>) -> Result<Value> {
        let raw: RawValues = form_urlencoded::parse(bytes).collect();
        let (mut object, count, mut is_parsed) = (Map::new(), errors.len(), true);
        for property in self.properties.iter().filter(|property| !is_read_only(&property.schema.resolved)) {
            let property = self.as_sent(property, &raw);
            match property.parse(&property.own_values(&self.properties, &raw), errors)? {
                Some(value) => _ = object.insert(property.name.clone(), value),
                // Some values are not parsed, such as one with several levels of brackets.
                None => is_parsed &= !raw.iter().any(|(name, _)| property.is_sent_as(name)),
            }
        }
        object.extend(self.undeclared(&raw));
        let value = Value::Object(object);
        if is_parsed && errors.len() == count {
            errors.extend(field_errors(&self.schema, &[], &value)?);
        }
        Ok(value)
    }

    /// Parses a response's form without validating it.
    pub(crate) fn value(&self, bytes: &[u8]) -> Value {
        let raw: RawValues = form_urlencoded::parse(bytes).collect();
        let value = |property: &Parameter| property.value(&property.own_values(&self.properties, &raw));
        let properties = self.properties.iter().map(|property| self.as_sent(property, &raw));
        let declared = properties.filter_map(|property| Some((property.name.clone(), value(property)?)));
        declared.chain(self.undeclared(&raw)).collect::<Map<_, _>>().into()
    }

    /// Returns the values that belong to no declared property.
    fn undeclared(&self, raw: &RawValues) -> impl Iterator<Item = (String, Value)> {
        let is_declared =
            |name: &str| self.properties.iter().any(|property| property.takes_any_name() || property.is_sent_as(name));
        let others = raw.iter().filter(move |(name, _)| !is_declared(name));
        others.map(|(name, text)| (name.to_string(), coerce(property(&self.schema.resolved, name), text)))
    }
}
