//! What is kept: resources by their collection, and by every path under which they can be found.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::Value;

/// So many of the resources that are posted to a path of the document are kept; then the oldest are forgotten.
const MAX_POSTED: usize = 10_000;

/// So many bytes, as JSON, of them are kept.
const MAX_BYTES: usize = 16 * 1024 * 1024;

/// What is kept. What the document shows is there until it is removed; what is posted, until there is too much of its kind.
#[derive(Default)]
pub struct ResourceStore {
    /// By number, in the order of making.
    resources: BTreeMap<u64, Resource>,
    by_path: HashMap<String, u64>,
    by_collection: HashMap<String, BTreeSet<u64>>,
    /// By the path of the items, as the document has it: there may be as many collections as there are items above them.
    posted: HashMap<String, Quota>,
    /// The number that was given last.
    pub next: u64,
}

/// Something that a collection holds.
pub struct Resource {
    /// The collection's path, as it was requested.
    collection: String,
    /// Under which it can be found.
    pub paths: Vec<String>,
    /// Itself, as its item is answered.
    pub value: Value,
    /// What it counts as, where it was posted.
    kind: Option<String>,
    /// How many bytes it counts for.
    size: usize,
}

/// What was posted of a kind.
#[derive(Default)]
struct Quota {
    numbers: BTreeSet<u64>,
    bytes: usize,
}

impl ResourceStore {
    /// Whether something can be found under a path.
    pub fn has(&self, path: &str) -> bool {
        self.by_path.contains_key(path)
    }

    /// The number of what can be found under a path.
    pub fn number(&self, path: &str) -> Option<u64> {
        self.by_path.get(path).copied()
    }

    /// What can be found under a path.
    pub fn get_mut(&mut self, path: &str) -> Option<&mut Resource> {
        self.resources.get_mut(self.by_path.get(path)?)
    }

    /// What a collection holds, in the order of making.
    pub fn list(&self, collection: &str) -> impl Iterator<Item = &Resource> {
        let numbers = self.by_collection.get(collection).into_iter().flatten();
        numbers.filter_map(|number| self.resources.get(number))
    }

    /// Keeps what the document shows. A path under which something else can be found stays that one's.
    pub fn add(&mut self, collection: String, paths: Vec<String>, value: Value) {
        self.next += 1;
        for path in &paths {
            self.by_path.entry(path.clone()).or_insert(self.next);
        }
        self.by_collection.entry(collection.clone()).or_default().insert(self.next);
        self.resources.insert(self.next, Resource { collection, paths, value, kind: None, size: 0 });
    }

    /// Keeps what is posted, which counts as this kind.
    pub fn post(&mut self, kind: &str, collection: String, paths: Vec<String>, value: Value) {
        self.add(collection, paths, value);
        self.posted.entry(kind.to_owned()).or_default().numbers.insert(self.next);
        self.resources.entry(self.next).and_modify(|resource| resource.kind = Some(kind.to_owned()));
        self.enforce_quota(self.next);
    }

    /// Lets a resource be found under one more path.
    pub fn add_path(&mut self, number: u64, path: String) {
        self.resources.entry(number).and_modify(|resource| resource.paths.push(path.clone()));
        self.by_path.insert(path, number);
    }

    /// Changes what can be found under a path.
    pub fn change<T>(&mut self, path: &str, change: impl FnOnce(&mut Resource) -> Option<T>) -> Option<T> {
        let number = self.number(path)?;
        let changed = change(self.resources.get_mut(&number)?);
        self.enforce_quota(number);
        changed
    }

    /// Removes what can be found under a path, and gives it.
    pub fn remove(&mut self, path: &str) -> Option<Resource> {
        self.forget(self.number(path)?)
    }

    /// Counts the bytes of what was posted, and forgets the oldest while there is too much of its kind.
    fn enforce_quota(&mut self, number: u64) {
        let Some(resource) = self.resources.get_mut(&number) else { return };
        let Some(kind) = resource.kind.clone() else { return };
        let Some(posted) = self.posted.get_mut(&kind) else { return };
        let size = resource.value.to_string().len();
        posted.bytes = posted.bytes - resource.size + size;
        resource.size = size;
        while let Some(oldest) = self.posted.get(&kind).and_then(Quota::eviction_candidate) {
            self.forget(oldest);
        }
    }

    fn forget(&mut self, number: u64) -> Option<Resource> {
        let resource = self.resources.remove(&number)?;
        for path in &resource.paths {
            if self.by_path.get(path) == Some(&number) {
                self.by_path.remove(path);
            }
        }
        if let Some(numbers) = self.by_collection.get_mut(&resource.collection) {
            numbers.remove(&number);
            if numbers.is_empty() {
                self.by_collection.remove(&resource.collection);
            }
        }
        if let Some(posted) = resource.kind.as_ref().and_then(|kind| self.posted.get_mut(kind)) {
            posted.numbers.remove(&number);
            posted.bytes -= resource.size;
        }
        Some(resource)
    }
}

impl Quota {
    /// The oldest, if there is too much.
    fn eviction_candidate(&self) -> Option<u64> {
        let is_too_much = self.numbers.len() > MAX_POSTED || self.bytes > MAX_BYTES;
        self.numbers.first().copied().filter(|_| is_too_much)
    }
}
