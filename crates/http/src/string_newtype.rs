//! Newtypes of `String` with a JSON schema.

use schemars::schema::{InstanceType, Schema, SchemaObject, StringValidation};

/// Returns the schema of a string with a format, a pattern and bounds on its length in characters.
pub fn text_schema(format: Option<&str>, pattern: Option<&str>, min: Option<u32>, max: Option<u32>) -> Schema {
    let bounds = StringValidation { pattern: pattern.map(str::to_owned), min_length: min, max_length: max };
    SchemaObject {
        instance_type: Some(InstanceType::String.into()),
        format: format.map(str::to_owned),
        string: (bounds != StringValidation::default()).then(|| Box::new(bounds)),
        ..SchemaObject::default()
    }
    .into()
}

/// Declares a newtype of `String` for the API: format, pattern, minimum and maximum length in characters, as in the contract.
#[macro_export]
macro_rules! string_newtype {
    ($(#[$doc:meta])* $name:ident, $format:expr, $pattern:expr, $min:expr, $max:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub String);

        impl schemars::JsonSchema for $name {
            fn is_referenceable() -> bool {
                false
            }

            fn schema_name() -> String {
                stringify!($name).to_owned()
            }

            fn json_schema(_: &mut schemars::r#gen::SchemaGenerator) -> schemars::schema::Schema {
                $crate::text_schema($format, $pattern, $min, $max)
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self(text)
            }
        }
    };
}
