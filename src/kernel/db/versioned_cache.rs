//! A cache that is valid for one version of the database.

/// Cache of the entries `T` that are valid for one version `S` of the data, such as a number of changes. It is cleared when the
/// version changes, and when a new entry would exceed the maximum weight.
pub struct VersionedCache<S, T> {
    max_weight: usize,
    weight: usize,
    version: Option<S>,
    entries: T,
}

impl<S: Clone + PartialEq, T: Default> VersionedCache<S, T> {
    /// Creates an empty cache with a maximum weight of all entries.
    pub fn with_capacity(max_weight: usize) -> Self {
        Self { max_weight, weight: 0, version: None, entries: T::default() }
    }

    /// Returns the entries of this version.
    pub fn get_mut(&mut self, version: &S) -> &mut T {
        if self.version.as_ref() != Some(version) {
            *self = Self { version: Some(version.clone()), ..Self::with_capacity(self.max_weight) };
        }
        &mut self.entries
    }

    /// Returns the entries of this version, with capacity for a new entry of this weight, which the caller inserts.
    pub fn reserve(&mut self, version: &S, weight: usize) -> &mut T {
        if self.weight + weight > self.max_weight {
            self.version = None;
        }
        self.get_mut(version);
        self.weight += weight;
        &mut self.entries
    }

    /// Returns the current version, if there are entries.
    pub fn version(&self) -> Option<&S> {
        self.version.as_ref()
    }

    /// Returns the entries of the current version, whichever it is.
    pub fn entries(&mut self) -> &mut T {
        &mut self.entries
    }
}
