//! What a database's refusal means: which constraint was violated, and whether running the transaction again may help.

use boxoffice_http::error::{Error, Result};

use super::transient;

/// A constraint that stood against a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Violation {
    /// A value that must be unique is taken; the constraint's name, such as `regions_name_key`.
    Unique(String),
    /// A row is referred to, or refers to what is not there. SQLite doesn't name which.
    ForeignKey,
}

impl Violation {
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

/// `UNIQUE constraint failed: sections.event_id, sections.name` as `sections_event_id_name_key`, which is how PostgreSQL
/// would name that constraint; the index's own name where SQLite tells it.
fn sqlite_constraint(message: &str) -> String {
    let what = message.rsplit("failed: ").next().unwrap_or_default();
    if let Some(index) = what.strip_prefix("index '") {
        return index.trim_end_matches('\'').to_owned();
    }
    let mut columns = what.split(", ").filter_map(|column| column.split_once('.'));
    let Some((table, first)) = columns.next() else { return what.to_owned() };
    let rest = columns.map(|(_, column)| format!("_{column}")).collect::<String>();
    format!("{table}_{first}{rest}_key")
}

/// Says, at the call, what a violated constraint means to the client.
pub trait ViolationExt<T> {
    /// Gives `meaning` instead where that constraint stood against it.
    fn on_unique(self, constraint: &str, meaning: impl Into<Error>) -> Result<T>;
    /// Gives `meaning` instead where a foreign key stood against it.
    fn on_foreign_key(self, meaning: impl Into<Error>) -> Result<T>;
}

impl<T> ViolationExt<T> for Result<T> {
    fn on_unique(self, constraint: &str, meaning: impl Into<Error>) -> Result<T> {
        self.map_err(|error| match Violation::of(&error) {
            Some(Violation::Unique(name)) if name == constraint => meaning.into(),
            _ => error,
        })
    }

    fn on_foreign_key(self, meaning: impl Into<Error>) -> Result<T> {
        self.map_err(|error| match Violation::of(&error) {
            Some(Violation::ForeignKey) => meaning.into(),
            _ => error,
        })
    }
}

/// Whether the transaction may succeed when it is run again.
pub(super) fn is_transient(error: &Error) -> bool {
    let Some(sqlx::Error::Database(error)) = transient::cause(error) else { return false };
    match error.code().as_deref() {
        // PostgreSQL: serialization failure, deadlock; SQLite: busy and its extended forms.
        Some("40001" | "40P01" | "5" | "261" | "517") => true,
        // Two servers drew the same identifier; the next one is another.
        Some("23505") => error.constraint().is_some_and(|name| name.ends_with("_pkey")),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::sqlite_constraint;

    #[test]
    fn sqlite_constraints_are_named_as_postgresql_names_them() {
        assert_eq!(sqlite_constraint("UNIQUE constraint failed: regions.name"), "regions_name_key");
        assert_eq!(sqlite_constraint("UNIQUE constraint failed: sections.event_id, sections.name"), "sections_event_id_name_key");
        assert_eq!(sqlite_constraint("UNIQUE constraint failed: index 'accounts_email_key'"), "accounts_email_key");
    }
}
