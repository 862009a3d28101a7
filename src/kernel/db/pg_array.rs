//! Many values of one column as one PostgreSQL array, so that a statement has the same text for any number of rows, and the
//! database needs to plan it once.

use sqlx::encode::IsNull;
use sqlx::error::BoxDynError;
use sqlx::postgres::{PgArgumentBuffer, PgTypeInfo};
use sqlx::{Encode, Postgres, Type, TypeInfo};

/// The values so far, as the binary format of arrays has their elements (PostgreSQL's `array_send`).
#[derive(Default)]
pub struct PgArray {
    kind: Option<Kind>,
    count: i32,
    has_null: bool,
    elements: PgArgumentBuffer,
}

/// The types of the tables' columns.
#[derive(Clone, Copy)]
enum Kind {
    Integer,
    Text,
    Boolean,
    Bytes,
}

impl Kind {
    fn of(element: &PgTypeInfo) -> Self {
        match element.name() {
            "INT8" => Self::Integer,
            "BOOL" => Self::Boolean,
            "BYTEA" => Self::Bytes,
            // An enum's is written in small letters.
            _ => Self::Text,
        }
    }

    /// What the elements are, and the array of them.
    fn types(self) -> (PgTypeInfo, PgTypeInfo) {
        fn both<T: Type<Postgres>>() -> (PgTypeInfo, PgTypeInfo)
        where
            Vec<T>: Type<Postgres>,
        {
            (T::type_info(), Vec::<T>::type_info())
        }
        match self {
            Self::Integer => both::<i64>(),
            Self::Text => both::<String>(),
            Self::Boolean => both::<bool>(),
            Self::Bytes => both::<Vec<u8>>(),
        }
    }
}

impl PgArray {
    /// Adds the next row's value.
    pub(super) fn push<'q, T: Encode<'q, Postgres> + Type<Postgres>>(&mut self, value: &T) -> Result<(), BoxDynError> {
        self.kind.get_or_insert_with(|| Kind::of(&T::type_info()));
        self.count += 1;
        let length_at = self.elements.len();
        self.elements.extend((-1_i32).to_be_bytes());
        match value.encode_by_ref(&mut self.elements)? {
            IsNull::Yes => self.has_null = true,
            IsNull::No => {
                let length = i32::try_from(self.elements.len() - length_at - 4)?;
                self.elements[length_at..length_at + 4].copy_from_slice(&length.to_be_bytes());
            }
        }
        Ok(())
    }
}

impl Encode<'_, Postgres> for PgArray {
    fn encode_by_ref(&self, buffer: &mut PgArgumentBuffer) -> Result<IsNull, BoxDynError> {
        let element = self.kind.unwrap_or(Kind::Integer).types().0.oid().ok_or("a type that is built in has an identifier")?;
        let (dimensions, lower_bound) = (1_i32, 1_i32);
        for number in [dimensions, i32::from(self.has_null)] {
            buffer.extend(number.to_be_bytes());
        }
        buffer.extend(element.0.to_be_bytes());
        for number in [self.count, lower_bound] {
            buffer.extend(number.to_be_bytes());
        }
        buffer.extend_from_slice(&self.elements);
        Ok(IsNull::No)
    }

    fn produces(&self) -> Option<PgTypeInfo> {
        Some(self.kind.unwrap_or(Kind::Integer).types().1)
    }
}

impl Type<Postgres> for PgArray {
    fn type_info() -> PgTypeInfo {
        Kind::Integer.types().1
    }
}
