//! Enums that the database stores as text.

/// Lets both databases store an enum as the text that `strum` gives its variants.
///
/// ```ignore
/// #[derive(Clone, Copy, strum::EnumString, strum::IntoStaticStr)]
/// enum CodePurpose { Verification, Reset }
///
/// stored_as_text!(CodePurpose);
/// ```
///
/// `sqlx::Type` would do the same, but its macro needs the drivers of both databases, so that they, and SQLite itself, would be
/// compiled twice.
macro_rules! stored_as_text {
    ($name:ident) => {
        impl<DB: sqlx::Database> sqlx::Type<DB> for $name
        where
            str: sqlx::Type<DB>,
        {
            fn type_info() -> DB::TypeInfo {
                <str as sqlx::Type<DB>>::type_info()
            }

            fn compatible(info: &DB::TypeInfo) -> bool {
                <str as sqlx::Type<DB>>::compatible(info)
            }
        }

        impl sqlx::postgres::PgHasArrayType for $name {
            fn array_type_info() -> sqlx::postgres::PgTypeInfo {
                <String as sqlx::postgres::PgHasArrayType>::array_type_info()
            }
        }

        impl<'q, DB: sqlx::Database> sqlx::Encode<'q, DB> for $name
        where
            &'q str: sqlx::Encode<'q, DB>,
        {
            fn encode_by_ref(&self, buffer: &mut DB::ArgumentBuffer) -> Result<sqlx::encode::IsNull, sqlx::error::BoxDynError> {
                <&str as sqlx::Encode<'q, DB>>::encode((*self).into(), buffer)
            }
        }

        impl<'r, DB: sqlx::Database> sqlx::Decode<'r, DB> for $name
        where
            &'r str: sqlx::Decode<'r, DB>,
        {
            fn decode(value: DB::ValueRef<'r>) -> Result<Self, sqlx::error::BoxDynError> {
                let text = <&str as sqlx::Decode<'r, DB>>::decode(value)?;
                text.parse().map_err(|_| format!("`{text}` is no {}", stringify!($name)).into())
            }
        }
    };
}
pub(crate) use stored_as_text;
