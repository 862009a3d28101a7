//! Generated images: icons of countries, and placeholders of events without an uploaded image. Each is drawn once and cached.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use boxoffice_http::error::{Error, Result};
use parking_lot::Mutex;

use super::object_store::StoredImage;
use super::service::ImageKind;
use super::workers::image_workers;
use super::{drawing, icon};
use crate::kernel::db::{Batcher, VersionedCache};
use crate::kernel::types::id::Id;
use crate::kernel::worker_pool::WorkerPool;

/// Capacity of the cache in bytes. An image has some thousand bytes.
const CACHE_CAPACITY: usize = 16 << 20;
/// Largest number of requests that wait for the same drawing in one batch.
const MAX_BATCH: usize = 1000;

/// The content of a generated image.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Drawing {
    /// The icon of this country.
    Icon(String),
    /// The placeholder for an image of an event, with the event's title or without one.
    Placeholder(ImageKind, Id, String),
}

impl Drawing {
    fn draw(&self) -> anyhow::Result<Vec<u8>> {
        match self {
            Self::Icon(country) => drawing::disc(&icon::name(country), &icon::initials(country)),
            Self::Placeholder(kind, event, title) => drawing::rectangle(&event.to_string(), kind.placeholder_size(), title),
        }
    }

    /// Returns the length of its text in bytes.
    fn weight(&self) -> usize {
        let (Self::Icon(text) | Self::Placeholder(.., text)) = self;
        size_of_val(self) + text.len()
    }
}

/// Draws images and caches them. Concurrent requests for the same image share one drawing.
pub struct GeneratedImages {
    drawn: Arc<AtomicUsize>,
    /// Not those of uploads, which may take longer.
    workers: WorkerPool,
    batches: Arc<Batcher<Drawing, (), StoredImage>>,
    cache: Arc<Mutex<ImageCache>>,
}

/// Images by content. The content determines the image, so there is only one version.
type ImageCache = VersionedCache<(), HashMap<Drawing, StoredImage>>;

impl Default for GeneratedImages {
    fn default() -> Self {
        Self {
            drawn: Arc::default(),
            workers: image_workers(),
            batches: Batcher::of(MAX_BATCH),
            cache: Arc::new(Mutex::new(VersionedCache::with_capacity(CACHE_CAPACITY))),
        }
    }
}

impl GeneratedImages {
    /// Returns the number of images that were drawn.
    pub fn drawn(&self) -> usize {
        self.drawn.load(Ordering::Relaxed)
    }

    /// Returns the image of this drawing.
    ///
    /// # Errors
    /// [`Code::SERVER_UNAVAILABLE`](boxoffice_http::error::Code::SERVER_UNAVAILABLE) if too many images are waiting.
    pub async fn get(&self, drawing: Drawing) -> Result<StoredImage> {
        if let Some(image) = cached(&self.cache, &drawing) {
            return Ok(image);
        }
        let (workers, cache, drawn) = (self.workers.clone(), Arc::clone(&self.cache), Arc::clone(&self.drawn));
        let draw = move |drawing: Drawing, _| {
            let (workers, cache, drawn) = (workers.clone(), Arc::clone(&cache), Arc::clone(&drawn));
            async move {
                // These requests may have been waiting while another batch drew the image.
                if let Some(image) = cached(&cache, &drawing) {
                    return Ok(image);
                }
                drawn.fetch_add(1, Ordering::Relaxed);
                let content = drawing.clone();
                let file = workers.enter()?.run(move || content.draw()).await?.map_err(Error::Internal)?;
                let image = StoredImage::new(file.into());
                let weight = drawing.weight() + image.bytes.len();
                cache.lock().reserve(&(), weight).insert(drawing, image.clone());
                Ok(image)
            }
        };
        self.batches.submit_shared(drawing, (), draw).await
    }
}

fn cached(cache: &Mutex<ImageCache>, drawing: &Drawing) -> Option<StoredImage> {
    cache.lock().get_mut(&()).get(drawing).cloned()
}
