//! A cache that is valid for one version of the database.

use std::mem;

use tokio::task::spawn_blocking;

/// Weight of entries from which it takes milliseconds to drop them.
const SLOW_TO_DROP: usize = 1 << 20;

/// Cache of the entries `T` that are valid for one version `S` of the data, such as a number of changes. It is cleared when the
/// version changes, and when a new entry would exceed the maximum weight.
pub struct VersionedCache<S, T> {
    max_weight: usize,
    weight: usize,
    version: Option<S>,
    entries: T,
}

impl<S: Clone + PartialEq, T: Default + Send + 'static> VersionedCache<S, T> {
    /// Creates an empty cache with a maximum weight of all entries.
    pub fn with_capacity(max_weight: usize) -> Self {
        Self { max_weight, weight: 0, version: None, entries: T::default() }
    }

    /// Returns the entries of this version.
    pub fn get_mut(&mut self, version: &S) -> &mut T {
        if self.version.as_ref() != Some(version) {
            self.clear();
            self.version = Some(version.clone());
        }
        &mut self.entries
    }

    /// Returns the entries of this version, with capacity for a new entry of this weight, which the caller inserts.
    pub fn reserve(&mut self, version: &S, weight: usize) -> &mut T {
        if self.weight + weight > self.max_weight {
            self.clear();
        }
        self.get_mut(version);
        self.weight += weight;
        &mut self.entries
    }

    /// Removes all entries. Drops many of them in a thread for blocking work, because the callers hold a lock.
    fn clear(&mut self) {
        let removed = mem::take(&mut self.entries);
        if mem::take(&mut self.weight) > SLOW_TO_DROP {
            spawn_blocking(move || drop(removed));
        }
        self.version = None;
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
