//! Encoder of the values of one column as one PostgreSQL array. With arrays, a statement has the same text for any number of
//! rows, and the database plans it once.

use sqlx::encode::IsNull;
use sqlx::error::BoxDynError;
use sqlx::postgres::{PgArgumentBuffer, PgTypeInfo};
use sqlx::{Encode, Postgres, Type, TypeInfo};

/// An array of the values of one column. The elements are encoded in the binary format of arrays (PostgreSQL's `array_send`).
#[derive(Default)]
pub struct PgArray {
    element_type: Option<ElementType>,
    count: i32,
    has_null: bool,
    elements: PgArgumentBuffer,
}

/// The types of the columns in the platform's tables.
#[derive(Clone, Copy)]
enum ElementType {
    Integer,
    Text,
    Boolean,
    Bytes,
}

impl ElementType {
    fn of(element: &PgTypeInfo) -> Self {
        match element.name() {
            "INT8" => Self::Integer,
            "BOOL" => Self::Boolean,
            "BYTEA" => Self::Bytes,
            // `TEXT`, or `text` for an enum.
            _ => Self::Text,
        }
    }

    /// Returns the type of an element and the type of the array.
    fn type_infos(self) -> (PgTypeInfo, PgTypeInfo) {
        fn infos_of<T: Type<Postgres>>() -> (PgTypeInfo, PgTypeInfo)
        where
            Vec<T>: Type<Postgres>,
        {
            (T::type_info(), Vec::<T>::type_info())
        }
        match self {
            Self::Integer => infos_of::<i64>(),
            Self::Text => infos_of::<String>(),
            Self::Boolean => infos_of::<bool>(),
            Self::Bytes => infos_of::<Vec<u8>>(),
        }
    }
}

impl PgArray {
    /// Adds the value of the next row.
    pub(super) fn push<'q, T: Encode<'q, Postgres> + Type<Postgres>>(&mut self, value: &T) -> Result<(), BoxDynError> {
        self.element_type.get_or_insert_with(|| ElementType::of(&T::type_info()));
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
        let (element, _) = self.element_type.unwrap_or(ElementType::Integer).type_infos();
        let element = element.oid().ok_or("a type that is built in has an identifier")?;
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
        Some(self.element_type.unwrap_or(ElementType::Integer).type_infos().1)
    }
}

impl Type<Postgres> for PgArray {
    fn type_info() -> PgTypeInfo {
        ElementType::Integer.type_infos().1
    }
}
