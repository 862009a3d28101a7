//! Types with a JSON schema that is not derived.

use schemars::schema::{InstanceType, Schema, SchemaObject, StringValidation};
use serde_json::Value;

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

/// Returns a schema that is written as JSON.
pub fn schema_from_json(schema: Value) -> Schema {
    serde_json::from_value(schema).unwrap_or(Schema::Bool(false))
}

/// Declares newtypes of `String` for the API, separated by `;`: format, pattern, minimum and maximum length in characters of each, as
/// in the contract.
#[macro_export]
macro_rules! string_newtype {
    (@without_debug $(#[$meta:meta])* $name:ident, $format:expr, $pattern:expr, $min:expr, $max:expr) => {
        $(#[$meta])*
        #[derive(Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub String);

        $crate::inline_schema!($name, stringify!($name), $crate::text_schema($format, $pattern, $min, $max));

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self(text)
            }
        }
    };
    ($($(#[$meta:meta])* $name:ident, $format:expr, $pattern:expr, $min:expr, $max:expr);+) => {
        $($crate::string_newtype!(@without_debug $(#[$meta])* #[derive(Debug)] $name, $format, $pattern, $min, $max);)+
    };
}

/// Declares types like [`string_newtype!`] for texts that are never logged: their `Debug` shows only the name of the type.
///
/// ```
/// boxoffice_http::secret_newtype!(Code, None, None, None, None);
///
/// assert_eq!(format!("{:?}", Code("V8T3HK5N".to_owned())), "Code");
/// ```
#[macro_export]
macro_rules! secret_newtype {
    ($($(#[$meta:meta])* $name:ident, $format:expr, $pattern:expr, $min:expr, $max:expr);+) => {
        $(
            $crate::string_newtype!(@without_debug $(#[$meta])* $name, $format, $pattern, $min, $max);

            impl std::fmt::Debug for $name {
                fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                    f.write_str(stringify!($name))
                }
            }
        )+
    };
}

/// Gives a type a name and a schema, which the document repeats wherever the type is used.
#[macro_export]
macro_rules! inline_schema {
    ($type:ty, $name:expr, $schema:expr) => {
        impl schemars::JsonSchema for $type {
            fn is_referenceable() -> bool {
                false
            }

            fn schema_name() -> String {
                $name.to_owned()
            }

            fn json_schema(_: &mut schemars::r#gen::SchemaGenerator) -> schemars::schema::Schema {
                $schema
            }
        }
    };
}
