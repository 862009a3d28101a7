//! The constraint that a change has violated, and the error for the client that follows from it.

use boxoffice_http::error::{Error, Result};

use super::transient;

/// A violated constraint.
#[derive(Debug, Clone, PartialEq, Eq)]
enum ConstraintViolation {
    /// A unique constraint, by its name, such as `regions_name_key`.
    Unique(String),
    /// A foreign key: the row is still referenced, or it references a row that doesn't exist. SQLite doesn't report which.
    ForeignKey,
}

impl ConstraintViolation {
    fn of(error: &Error) -> Option<Self> {
        let Some(sqlx::Error::Database(error)) = transient::cause(error) else { return None };
        if error.is_foreign_key_violation() {
            return Some(Self::ForeignKey);
        }
        if !error.is_unique_violation() {
            return None;
        }
        let name = error.constraint().map_or_else(|| sqlite_constraint(error.message()), str::to_owned);
        Some(Self::Unique(name))
    }
}

/// Returns the name of the unique constraint in an error message of SQLite.
///
/// `UNIQUE constraint failed: sections.event_id, sections.name` becomes `sections_event_id_name_key`, the name that PostgreSQL
/// generates. If the message has the name of an index, returns that name.
fn sqlite_constraint(message: &str) -> String {
    let constraint = message.rsplit("failed: ").next().unwrap_or_default();
    if let Some(index) = constraint.strip_prefix("index '") {
        return index.trim_end_matches('\'').to_owned();
    }
    let mut columns = constraint.split(", ").filter_map(|column| column.split_once('.'));
    let Some((table, first)) = columns.next() else { return constraint.to_owned() };
    let rest = columns.map(|(_, column)| format!("_{column}")).collect::<String>();
    format!("{table}_{first}{rest}_key")
}

/// Replaces constraint violations by errors for the client.
pub trait ViolationExt<T> {
    /// Returns `meaning` instead if this unique constraint was violated.
    fn on_unique(self, constraint: &str, meaning: impl Into<Error>) -> Result<T>;
    /// Returns `meaning` instead if a name is taken: by its own constraint, such as `regions_name_key`, or by that of the folded
    /// name, `regions_folded_name_key`. `scope` is the table with the other columns of the constraint.
    fn on_taken(self, scope: &str, column: &str, meaning: impl Into<Error>) -> Result<T>;
    /// Returns `meaning` instead if a foreign key was violated.
    fn on_foreign_key(self, meaning: impl Into<Error>) -> Result<T>;
}

impl<T> ViolationExt<T> for Result<T> {
    fn on_unique(self, constraint: &str, meaning: impl Into<Error>) -> Result<T> {
        self.map_err(|error| match ConstraintViolation::of(&error) {
            Some(ConstraintViolation::Unique(name)) if name == constraint => meaning.into(),
            _ => error,
        })
    }

    fn on_taken(self, scope: &str, column: &str, meaning: impl Into<Error>) -> Result<T> {
        let constraints = [format!("{scope}_{column}_key"), format!("{scope}_folded_{column}_key")];
        self.map_err(|error| match ConstraintViolation::of(&error) {
            Some(ConstraintViolation::Unique(name)) if constraints.contains(&name) => meaning.into(),
            _ => error,
        })
    }

    fn on_foreign_key(self, meaning: impl Into<Error>) -> Result<T> {
        self.map_err(|error| match ConstraintViolation::of(&error) {
            Some(ConstraintViolation::ForeignKey) => meaning.into(),
            _ => error,
        })
    }
}
