//! In-memory store of resources, by their collection and by every path that leads to them.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::Value;

/// Maximum number of created and changed resources per item path; beyond that, the oldest are evicted.
const MAX_CREATED: usize = 10_000;

/// Maximum size in bytes, as JSON, of the created and changed resources per item path.
const MAX_BYTES: usize = 16 * 1024 * 1024;

/// In-memory store of resources. Resources from the document's examples stay until they are deleted or changed; created and changed
/// ones are subject to a quota.
#[derive(Default)]
pub struct ResourceStore {
    /// By number, in insertion order.
    resources: BTreeMap<u64, Resource>,
    by_path: HashMap<String, u64>,
    by_collection: HashMap<String, BTreeSet<u64>>,
    /// By the item path of the document. A quota per collection would be unbounded: there may be one for each parent resource.
    quotas: HashMap<String, Quota>,
    /// The number of the newest resource.
    pub last_number: u64,
}

/// A stored resource.
pub struct Resource {
    /// The path of its collection, as it was requested.
    collection: String,
    /// The paths that lead to it.
    pub paths: Vec<String>,
    /// Its content, as in the response for the item.
    pub value: Value,
    /// The item path of its quota; `None` for an unchanged example of the document.
    quota: Option<String>,
    /// Its size in bytes, as counted in the quota.
    size: usize,
}

/// Created and changed resources of one item path.
#[derive(Default)]
struct Quota {
    numbers: BTreeSet<u64>,
    bytes: usize,
}

impl ResourceStore {
    /// Returns whether a path leads to a resource.
    pub fn contains(&self, path: &str) -> bool {
        self.by_path.contains_key(path)
    }

    /// Returns the number of the resource at a path.
    pub fn number(&self, path: &str) -> Option<u64> {
        self.by_path.get(path).copied()
    }

    /// Returns the resource at a path.
    pub fn get_mut(&mut self, path: &str) -> Option<&mut Resource> {
        self.resources.get_mut(self.by_path.get(path)?)
    }

    /// Returns the resources of a collection, in insertion order.
    pub fn list(&self, collection: &str) -> impl Iterator<Item = &Resource> {
        let numbers = self.by_collection.get(collection).into_iter().flatten();
        numbers.filter_map(|number| self.resources.get(number))
    }

    /// Adds a resource from the document's examples. A path that already leads to another resource is left unchanged.
    pub fn add(&mut self, collection: String, paths: Vec<String>, value: Value) {
        self.last_number += 1;
        for path in &paths {
            self.by_path.entry(path.clone()).or_insert(self.last_number);
        }
        self.by_collection.entry(collection.clone()).or_default().insert(self.last_number);
        self.resources.insert(self.last_number, Resource { collection, paths, value, quota: None, size: 0 });
    }

    /// Adds a created resource, which counts against the quota of its item path.
    pub fn create(&mut self, item_path: &str, collection: String, paths: Vec<String>, value: Value) {
        self.add(collection, paths, value);
        self.enforce_quota(item_path, self.last_number);
    }

    /// Adds a path that leads to a resource.
    pub fn add_path(&mut self, number: u64, path: String) {
        self.resources.entry(number).and_modify(|resource| resource.paths.push(path.clone()));
        self.by_path.insert(path, number);
    }

    /// Changes the resource at a path. An example of the document counts against the quota of this item path from then on.
    pub fn update<T>(&mut self, item_path: &str, path: &str, change: impl FnOnce(&mut Resource) -> Option<T>) -> Option<T> {
        let number = self.number(path)?;
        let changed = change(self.resources.get_mut(&number)?);
        self.enforce_quota(item_path, number);
        changed
    }

    /// Removes and returns the resource at a path.
    pub fn remove(&mut self, path: &str) -> Option<Resource> {
        self.remove_number(self.number(path)?)
    }

    /// Updates the size of a resource in its quota, or else in that of the item path, and evicts the oldest ones while it is exceeded.
    fn enforce_quota(&mut self, item_path: &str, number: u64) {
        let Some(resource) = self.resources.get_mut(&number) else { return };
        let item_path = resource.quota.get_or_insert_with(|| item_path.to_owned()).clone();
        let quota = self.quotas.entry(item_path.clone()).or_default();
        quota.numbers.insert(number);
        let size = resource.value.to_string().len();
        quota.bytes = quota.bytes - resource.size + size;
        resource.size = size;
        while let Some(oldest) = self.quotas.get(&item_path).and_then(Quota::eviction_candidate) {
            self.remove_number(oldest);
        }
    }

    fn remove_number(&mut self, number: u64) -> Option<Resource> {
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
        if let Some(quota) = resource.quota.as_ref().and_then(|item_path| self.quotas.get_mut(item_path)) {
            quota.numbers.remove(&number);
            quota.bytes -= resource.size;
        }
        Some(resource)
    }
}

impl Quota {
    /// Returns the oldest resource if the quota is exceeded.
    fn eviction_candidate(&self) -> Option<u64> {
        let is_exceeded = self.numbers.len() > MAX_CREATED || self.bytes > MAX_BYTES;
        self.numbers.first().copied().filter(|_| is_exceeded)
    }
}
