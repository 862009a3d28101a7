//! Changes of properties that a null clears.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A change of a property that a null clears, such as the maximum of tickets per account of a section.
///
/// A value converts to [`Change::Set`], so a builder takes either:
///
/// ```
/// use boxoffice_client::{Change, types};
///
/// let limit = types::SectionUpdate::builder().maximum_per_account(4);
/// let no_limit = types::SectionUpdate::builder().maximum_per_account(Change::Clear);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Change<T> {
    /// Leaves the property as it is: the request doesn't contain it.
    #[default]
    Unchanged,
    /// Clears the property: the request contains a null.
    Clear,
    /// Sets the property.
    Set(T),
}

impl<T> Change<T> {
    /// Returns whether the property stays as it is.
    pub fn is_unchanged(&self) -> bool {
        matches!(self, Self::Unchanged)
    }
}

impl<T> From<T> for Change<T> {
    fn from(value: T) -> Self {
        Self::Set(value)
    }
}

/// `None` is [`Change::Unchanged`], as for the other properties of a change.
impl<T> From<Option<T>> for Change<T> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Unchanged, Self::Set)
    }
}

/// The requests leave out a property that stays as it is. Elsewhere, it would be a null, too.
impl<T: Serialize> Serialize for Change<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Set(value) => value.serialize(serializer),
            Self::Clear | Self::Unchanged => serializer.serialize_none(),
        }
    }
}

/// A null is [`Change::Clear`]. The default of a property that is absent is [`Change::Unchanged`].
impl<'de, T: Deserialize<'de>> Deserialize<'de> for Change<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Option::deserialize(deserializer)?.map_or(Self::Clear, Self::Set))
    }
}
