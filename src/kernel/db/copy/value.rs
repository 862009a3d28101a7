//! Rows as they are copied: the values that both databases store.

use std::io::Write;

use serde_json::Value as Json;
use sha2::{Digest, Sha256};
use sqlx::{ColumnIndex, Decode, Row, Type};

/// The type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ColumnType {
    Integer,
    Boolean,
    Double,
    Text,
    Bytes,
}

impl ColumnType {
    /// Returns the type with this name in either database; `None` if no table has such a column.
    pub(super) fn parse(name: &str) -> Option<Self> {
        match name.to_ascii_lowercase().as_str() {
            "integer" | "bigint" => Some(Self::Integer),
            "boolean" => Some(Self::Boolean),
            "double precision" => Some(Self::Double),
            "text" => Some(Self::Text),
            "blob" | "bytea" => Some(Self::Bytes),
            _ => None,
        }
    }
}

/// A value of a column.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// No value.
    Null,
    /// An integer.
    Integer(i64),
    /// A truth value.
    Boolean(bool),
    /// A floating-point number.
    Double(f64),
    /// A text.
    Text(String),
    /// Bytes.
    Bytes(Vec<u8>),
}

impl Value {
    /// Returns the value of a row's column.
    pub(super) fn read<'r, R>(row: &'r R, index: usize, column_type: ColumnType) -> sqlx::Result<Self>
    where
        R: Row,
        usize: ColumnIndex<R>,
        i64: Decode<'r, R::Database> + Type<R::Database>,
        bool: Decode<'r, R::Database> + Type<R::Database>,
        f64: Decode<'r, R::Database> + Type<R::Database>,
        String: Decode<'r, R::Database> + Type<R::Database>,
        Vec<u8>: Decode<'r, R::Database> + Type<R::Database>,
    {
        Ok(match column_type {
            ColumnType::Integer => row.try_get::<Option<i64>, _>(index)?.map(Self::Integer),
            ColumnType::Boolean => row.try_get::<Option<bool>, _>(index)?.map(Self::Boolean),
            ColumnType::Double => row.try_get::<Option<f64>, _>(index)?.map(Self::Double),
            ColumnType::Text => row.try_get::<Option<String>, _>(index)?.map(Self::Text),
            ColumnType::Bytes => row.try_get::<Option<Vec<u8>>, _>(index)?.map(Self::Bytes),
        }
        .unwrap_or(Self::Null))
    }

    /// Returns the approximate size in bytes.
    pub(super) fn size(&self) -> usize {
        match self {
            Self::Text(text) => text.len() + 32,
            Self::Bytes(bytes) => bytes.len() + 32,
            _ => 32,
        }
    }

    /// Appends the value in the text format of PostgreSQL's COPY.
    pub(super) fn append_copy_text(&self, out: &mut Vec<u8>) {
        match self {
            Self::Null => out.extend(b"\\N"),
            Self::Integer(number) => append(out, format_args!("{number}")),
            Self::Boolean(is_true) => out.push(if *is_true { b't' } else { b'f' }),
            // The shortest text that is read as the same number.
            Self::Double(number) => append(out, format_args!("{number:?}")),
            Self::Text(text) => {
                for byte in text.bytes() {
                    match byte {
                        b'\\' => out.extend(b"\\\\"),
                        b'\n' => out.extend(b"\\n"),
                        b'\r' => out.extend(b"\\r"),
                        b'\t' => out.extend(b"\\t"),
                        byte => out.push(byte),
                    }
                }
            }
            Self::Bytes(bytes) => {
                out.extend(b"\\\\x");
                bytes.iter().for_each(|byte| append(out, format_args!("{byte:02x}")));
            }
        }
    }

    /// Adds the value to the hash of its row, in a form that does not depend on the database.
    fn hash(&self, hash: &mut Sha256) {
        let mut add = |tag: u8, content: &[u8]| {
            hash.update([tag]);
            hash.update((content.len() as u64).to_le_bytes());
            hash.update(content);
        };
        match self {
            Self::Null => add(0, &[]),
            Self::Integer(number) => add(1, &number.to_le_bytes()),
            Self::Boolean(is_true) => add(2, &[u8::from(*is_true)]),
            // SQLite stores -0.0 as 0.
            Self::Double(number) => add(3, &(number + 0.0).to_bits().to_le_bytes()),
            Self::Text(text) => add(4, text.as_bytes()),
            Self::Bytes(bytes) => add(5, bytes),
        }
    }

    /// Returns a value of a primary key as JSON; `None` for the types that no key has.
    pub(super) fn to_json(&self) -> Option<Json> {
        match self {
            Self::Integer(number) => Some((*number).into()),
            Self::Text(text) => Some(text.as_str().into()),
            _ => None,
        }
    }

    /// Returns the value that [`to_json`](Self::to_json) has written.
    pub(super) fn from_json(json: &Json) -> Option<Self> {
        json.as_i64().map(Self::Integer).or_else(|| json.as_str().map(|text| Self::Text(text.to_owned())))
    }
}

fn append(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    // Writing to memory can't fail.
    let _written = out.write_fmt(text);
}

/// Number of rows and a checksum that does not depend on their order: the sum of the hashes of all rows.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Checksum {
    pub(super) rows: u64,
    sum: u128,
}

impl Checksum {
    /// Adds a row.
    pub fn add(&mut self, row: &[Value]) {
        let mut hash = Sha256::new();
        row.iter().for_each(|value| value.hash(&mut hash));
        let mut start = [0; 16];
        start.iter_mut().zip(hash.finalize()).for_each(|(target, byte)| *target = byte);
        self.rows += 1;
        self.sum = self.sum.wrapping_add(u128::from_le_bytes(start));
    }
}
