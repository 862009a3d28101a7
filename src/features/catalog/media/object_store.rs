//! The object store of images: a folder for one server, an S3 bucket for several.

use std::collections::HashMap;
use std::io::{self, ErrorKind};
use std::path::PathBuf;
use std::sync::{Arc, Weak};
use std::time::Duration;

use anyhow::{Chain, Context, Result, anyhow, ensure};
use boxoffice_http::etag;
use bytes::Bytes;
use object_store::aws::AmazonS3Builder;
use object_store::local::LocalFileSystem;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::prefix::PrefixStore;
use object_store::{Error, ObjectMeta, ObjectStore, ObjectStoreExt, RetryConfig};
use parking_lot::Mutex;
use tokio::sync::{Mutex as AsyncMutex, OnceCell, Semaphore};
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::image::{self, Image};
use crate::kernel::settings::{MediaLocation, Secret, Settings};
use crate::kernel::{disk_space, private_files};

/// Time limit of one access, as of a database statement. A bucket that accepts connections and does not answer would otherwise keep each
/// request for an image for minutes, until the requests in progress are at their limit and orders are refused too.
const ACCESS_TIMEOUT: Duration = Duration::from_secs(10);

/// Stores image files by names such as `banner/17637000000001`.
///
/// The media type is not stored, because a folder has no metadata; it is detected from the content on each read.
#[derive(Debug)]
pub struct MediaStore {
    objects: Arc<dyn ObjectStore>,
    /// The same objects with one more attempt only, for the checks: the usual attempts take minutes, and the reason of a failure is known
    /// after the last one. The first attempt may find a connection that the bucket has closed.
    checked_objects: Box<dyn ObjectStore>,
    /// The folder; `None` for a bucket.
    folder: Option<PathBuf>,
    /// A permit for each access that may be in progress.
    accesses: Arc<Semaphore>,
    /// Locked by the check of a folder until it ends.
    check: Arc<AsyncMutex<()>>,
    cache: Arc<Cache>,
}

/// The images that are being sent at the moment. All responses share one copy, so that many slow readers of an image use no more
/// memory than one.
#[derive(Debug, Default)]
struct Cache(Mutex<HashMap<ObjectVersion, Weak<CacheEntry>>>);

/// An image's name and version: its tag in the object store, its time of change and its size.
type ObjectVersion = (Path, Option<String>, i64, u64);

/// An image in memory. The first request for it reads it.
#[derive(Debug, Default)]
struct CacheEntry(OnceCell<StoredImage>);

/// Keeps a cache entry alive as long as a response uses its bytes.
struct BytesOwner(Arc<CacheEntry>);

impl AsRef<[u8]> for BytesOwner {
    fn as_ref(&self) -> &[u8] {
        self.0.0.get().map(|image| image.bytes.as_ref()).unwrap_or_default()
    }
}

/// An image to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredImage {
    /// The value of `Content-Type`.
    pub media_type: &'static str,
    /// The file.
    pub bytes: Bytes,
    /// A strong entity tag in quotes. It depends only on the content, so it is the same on every server.
    pub etag: String,
}

impl StoredImage {
    /// Creates an image from a file, with the media type of its content.
    pub fn new(bytes: Bytes) -> Self {
        Self { media_type: image::media_type(&bytes), etag: etag::etag_of(&bytes), bytes }
    }
}

impl MediaStore {
    /// Opens the folder or the bucket of the settings. A bucket has its endpoint, region and keys from the usual `AWS_…` variables,
    /// unless the settings have the secret access key. More accesses at the same time than the settings allow fail at once.
    ///
    /// Doesn't check that a bucket exists; the first access fails if it doesn't.
    pub fn open(settings: &Settings) -> Result<MediaStore> {
        let location = &settings.media;
        let open = |retries: RetryConfig| {
            let objects = match location {
                MediaLocation::Folder(folder) => open_folder(folder, settings.creates_files),
                MediaLocation::Bucket { name, prefix } => open_bucket(name, prefix, settings.media_secret_key.as_ref(), retries),
            };
            objects.with_context(|| format!("cannot open the media store {location}"))
        };
        Ok(MediaStore {
            objects: open(RetryConfig::default())?.into(),
            checked_objects: open(RetryConfig { max_retries: 1, ..RetryConfig::default() })?,
            folder: location.folder().map(ToOwned::to_owned),
            accesses: Arc::new(Semaphore::new(settings.image_accesses)),
            check: Arc::default(),
            cache: Arc::default(),
        })
    }

    /// Stores an image under a name and replaces the previous one atomically.
    pub async fn put(&self, name: &str, image: &Image) -> Result<()> {
        let path = path(name).with_context(|| format!("{name:?} cannot name an image"))?;
        let (objects, bytes) = (Arc::clone(&self.objects), image.bytes.clone());
        let result = self.access(async move { objects.put(&path, bytes.into()).await }).await;
        result.map(drop).with_context(|| format!("cannot store image {name}"))
    }

    /// Copies an image. Returns false if there is none with this name.
    pub async fn copy(&self, from: &str, to: &str) -> Result<bool> {
        let Some((from_path, to_path)) = path(from).zip(path(to)) else { return Ok(false) };
        let objects = Arc::clone(&self.objects);
        match self.access(async move { objects.copy(&from_path, &to_path).await }).await {
            Err(error) if is_absent(&error) => Ok(false),
            other => other.map(|()| true).with_context(|| format!("cannot copy image {from}")),
        }
    }

    /// Returns the image with this name, if there is one. The name may come from a URL; an invalid name is not found. Concurrent
    /// readers share one copy of the bytes.
    pub async fn get(&self, name: &str) -> Result<Option<StoredImage>> {
        let Some(path) = path(name) else { return Ok(None) };
        let (objects, cache) = (Arc::clone(&self.objects), Arc::clone(&self.cache));
        match self.access(async move { read(objects.as_ref(), &cache, &path).await }).await {
            Ok(image) => Ok(Some(image)),
            Err(error) if is_absent(&error) => Ok(None),
            Err(error) => Err(without_name(error, name)).context("cannot read an image"),
        }
    }

    /// Checks that the store can be used: a folder exists and this user may write to it, and a bucket exists and answers to the request
    /// for an image that doesn't exist. Returns the number of free bytes on the disk of a folder, if the file system has a size.
    pub async fn check(&self) -> Result<Option<u64>> {
        if let Some(folder) = self.folder.clone() {
            // A folder on another machine may answer slowly, or not at all. The thread that waits for it can't be stopped.
            let lock = Arc::clone(&self.check).try_lock_owned().context("an earlier check of the folder has not ended")?;
            return spawn_blocking(move || {
                let _lock = lock;
                ensure!(folder.is_dir(), "there is no folder {}", folder.display());
                private_files::require_writable(&folder)?;
                Ok(disk_space::free_bytes(&folder)?)
            })
            .await?;
        }
        // A missing bucket differs from a missing object only in the body of the response to GET; HEAD has none.
        match self.checked_objects.get(&Path::from("check")).await {
            Err(error) if is_absent(&error) => Ok(None),
            other => other.map(|_| None).context("cannot reach the media store"),
        }
    }

    /// Checks that the store can be written: stores an object that is no image, and deletes it.
    pub async fn check_writable(&self) -> Result<()> {
        let path = Path::from(format!("check-{:016x}", rand::random::<u64>()));
        self.checked_objects.put(&path, Bytes::from_static(b"check").into()).await.context("cannot write to the media store")?;
        self.checked_objects.delete(&path).await.context("cannot delete from the media store")
    }

    /// Deletes the image with this name. Succeeds if there is none, so that it can be repeated.
    pub async fn delete(&self, name: &str) -> Result<()> {
        let Some(path) = path(name) else { return Ok(()) };
        let objects = Arc::clone(&self.objects);
        match self.access(async move { objects.delete(&path).await }).await {
            Err(error) if is_absent(&error) => Ok(()),
            other => other.with_context(|| format!("cannot delete image {name}")),
        }
    }

    /// Waits for the store, with a time limit, unless too many others do.
    ///
    /// # Errors
    /// Returns the error of the store, or one for an access that takes too long or is one too many.
    pub async fn access<T>(&self, access: impl Future<Output = Result<T, Error>> + Send + 'static) -> Result<T, Error>
    where
        T: Send + 'static,
    {
        let failed = |source| Error::Generic { store: "image store", source };
        let permit = Arc::clone(&self.accesses).try_acquire_owned();
        let permit = permit.map_err(|_| failed("too many requests wait for it".into()))?;
        // A thread that waits for a folder can't be stopped, so it keeps the permit.
        let mut task = tokio::spawn(async move {
            let _permit = permit;
            access.await
        });
        match timeout(ACCESS_TIMEOUT, &mut task).await {
            Ok(done) => done?,
            Err(elapsed) => {
                if self.folder.is_none() {
                    task.abort();
                }
                Err(failed(elapsed.into()))
            }
        }
    }
}

async fn read(objects: &dyn ObjectStore, cache: &Cache, path: &Path) -> Result<StoredImage, Error> {
    let object = objects.get(path).await?;
    let entry = cache.entry(path, &object.meta);
    let image = entry.0.get_or_try_init(async || object.bytes().await.map(StoredImage::new)).await?;
    let bytes = Bytes::from_owner(BytesOwner(Arc::clone(&entry)));
    Ok(StoredImage { bytes, media_type: image.media_type, etag: image.etag.clone() })
}

impl Cache {
    /// Returns the entry of this version of an image, and creates it if necessary.
    fn entry(&self, path: &Path, meta: &ObjectMeta) -> Arc<CacheEntry> {
        let version = (path.clone(), meta.e_tag.clone(), meta.last_modified.timestamp_micros(), meta.size);
        let mut cache = self.0.lock();
        if let Some(entry) = cache.get(&version).and_then(Weak::upgrade) {
            return entry;
        }
        let entry = Arc::default();
        cache.retain(|_, entry| entry.strong_count() > 0);
        cache.insert(version, Arc::downgrade(&entry));
        entry
    }
}

/// Returns the path of a name of letters, digits, `.`, `-`, `_` and `/`, or `None` for another name.
///
/// Object stores differ in the other names that they accept and in their errors, and such an error would look like a failure of
/// the server.
fn path(name: &str) -> Option<Path> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | '/');
    if name.is_empty() || !name.chars().all(is_plain) {
        return None;
    }
    // Rejects empty segments, `.` and `..`.
    Path::parse(name).ok()
}

/// Replaces the name of an image in an error, which is logged: the name is the secret in the URI of an image that isn't public.
fn without_name(error: Error, name: &str) -> anyhow::Error {
    let is_temporary = is_temporary(&error);
    let text = format!("{:#}", anyhow::Error::new(error)).replace(name, "{image}");
    if is_temporary { Error::Generic { store: "image store", source: text.into() }.into() } else { anyhow!(text) }
}

/// Returns whether an operator can correct the cause of the error: a full disk, an unreachable or missing bucket, or rejected
/// credentials.
pub fn is_temporary(error: &Error) -> bool {
    use Error::{Generic, NotFound, PermissionDenied, Unauthenticated};
    matches!(error, Generic { .. } | NotFound { .. } | PermissionDenied { .. } | Unauthenticated { .. })
}

/// Returns whether the error means that there is no such image. A folder has a different error for a path below an image
/// (`banner/1/x`). S3 has the same error for a missing bucket, with another code in its body.
fn is_absent(error: &Error) -> bool {
    let mut causes = Chain::new(error);
    matches!(error, Error::NotFound { .. } if !error.to_string().contains("NoSuchBucket"))
        || causes.any(|cause| cause.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == ErrorKind::NotADirectory))
}

/// Opens a folder. If it doesn't exist, creates it if `creates`; otherwise the store is empty.
fn open_folder(folder: &std::path::Path, creates: bool) -> Result<Box<dyn ObjectStore>> {
    if !creates && !folder.exists() {
        return Ok(Box::new(InMemory::new()));
    }
    private_files::create_folder(folder)?;
    // Without fsync, a power failure could lose the banner of a committed event.
    Ok(Box::new(LocalFileSystem::new_with_prefix(folder)?.with_fsync(true)))
}

fn open_bucket(bucket: &str, prefix: &str, secret_key: Option<&Secret>, retries: RetryConfig) -> Result<Box<dyn ObjectStore>> {
    let mut builder = AmazonS3Builder::from_env().with_bucket_name(bucket).with_retry(retries);
    if let Some(Secret(key)) = secret_key {
        builder = builder.with_secret_access_key(key);
    }
    Ok(Box::new(PrefixStore::new(builder.build()?, Path::parse(prefix)?)))
}
