//! Resources that are embedded in responses.

use std::collections::HashMap;
use std::marker::PhantomData;
use std::sync::Arc;

use anyhow::Error;
use boxoffice_http::error::Result;
use schemars::JsonSchema;
use schemars::r#gen::SchemaGenerator;
use schemars::schema::Schema;
use serde::{Serialize, Serializer};
use serde_json::value::{RawValue, to_raw_value};

use super::id::Id;

/// Resources in responses, by identifier.
pub type EmbeddedById<T> = HashMap<Id, Embedded<T>>;

/// A resource in JSON, for several places of a response or for several responses, such as the section of many tickets. It is
/// serialized once.
#[derive(Debug)]
pub struct Embedded<T> {
    json: Arc<RawValue>,
    resource: PhantomData<fn() -> T>,
}

impl<T: Serialize> Embedded<T> {
    /// Serializes a resource.
    ///
    /// # Errors
    /// Returns an error if the resource can't be serialized as JSON.
    pub fn new(resource: &T) -> Result<Self> {
        Ok(Self { json: to_raw_value(resource).map_err(Error::from)?.into(), resource: PhantomData })
    }
}

impl<T> Clone for Embedded<T> {
    fn clone(&self) -> Self {
        Self { json: Arc::clone(&self.json), resource: PhantomData }
    }
}

impl<T> Serialize for Embedded<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.json.serialize(serializer)
    }
}

impl<T: JsonSchema> JsonSchema for Embedded<T> {
    fn is_referenceable() -> bool {
        T::is_referenceable()
    }

    fn schema_name() -> String {
        T::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }
}
