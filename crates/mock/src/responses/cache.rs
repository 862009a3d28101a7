//! Generated responses of the last requests.

use quick_cache::Weighter;
use quick_cache::sync::Cache;

use super::RenderedResponse;

/// Maximum size of all generated responses in memory, in bytes.
const MAX_CACHED_BYTES: u64 = 32 * 1024 * 1024;
/// Approximate number of them.
const CACHED_RESPONSES: usize = 10_000;
/// Approximate size of an entry without its body, in bytes.
const ENTRY_BYTES: u64 = 512;

/// The generated responses of the last requests. Equal requests have equal responses, and generating one costs more than the rest of the
/// request.
pub struct GeneratedResponses(pub(super) Cache<GeneratedKey, RenderedResponse, BodyWeight>);

/// Identifies a generated response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct GeneratedKey {
    /// The seed of the data.
    pub seed: u64,
    /// The status of the response.
    pub status: u16,
    /// The address of the [`BodySource`](super::BodySource), which doesn't move.
    pub source: usize,
    /// True if the schema's own examples were not used.
    pub is_dynamic: bool,
}

/// Weighs responses by their sizes.
#[derive(Clone)]
pub struct BodyWeight;

impl Weighter<GeneratedKey, RenderedResponse> for BodyWeight {
    fn weight(&self, _: &GeneratedKey, response: &RenderedResponse) -> u64 {
        response.body.len() as u64 + ENTRY_BYTES
    }
}

impl Default for GeneratedResponses {
    fn default() -> Self {
        Self(Cache::with_weighter(CACHED_RESPONSES, MAX_CACHED_BYTES, BodyWeight))
    }
}
