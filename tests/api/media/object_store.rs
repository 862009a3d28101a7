//! The object store of images, in a folder.

use std::fs;
use std::future::pending;
use std::path::Path;

use boxoffice::features::catalog::media::drawing::disc;
use boxoffice::features::catalog::media::{Image, MediaStore, StoredImage};
use boxoffice::kernel::settings::{MediaLocation, Settings};
use boxoffice_http::etag;
use futures::future::join_all;
use object_store::Error;

use crate::support::test_settings;

const ACCESSES: usize = 20;

fn open(folder: &Path) -> MediaStore {
    let media = MediaLocation::Folder(folder.to_owned());
    MediaStore::open(&Settings { media, image_accesses: ACCESSES, ..test_settings(folder) }).unwrap()
}

fn image(bytes: Vec<u8>) -> Image {
    Image { width: 128, height: 128, bytes: bytes.into() }
}

#[tokio::test]
async fn stores_replaces_and_deletes() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder.path().join("new/media"));
    let (first, second) = (image(disc("a", "a").unwrap()), image(disc("b", "b").unwrap()));

    assert_eq!(store.get("banner/17637000000001").await.unwrap(), None);
    store.put("banner/17637000000001", &first).await.unwrap();
    store.put("banner/17637000000001", &second).await.unwrap();
    let stored = store.get("banner/17637000000001").await.unwrap().unwrap();
    assert_eq!((stored.media_type, &stored.bytes), ("image/png", &second.bytes));
    assert_eq!(stored.etag, etag::etag_of(&second.bytes));
    assert_ne!(stored.etag, etag::etag_of(&first.bytes));

    store.delete("banner/17637000000001").await.unwrap();
    store.delete("banner/17637000000001").await.unwrap();
    assert_eq!(store.get("banner/17637000000001").await.unwrap(), None);
}

#[tokio::test]
async fn access_to_a_store_that_hangs_fails() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let access = || store.access(pending::<Result<(), Error>>());

    let hung = join_all((0..ACCESSES).map(|_| access())).await;
    // The accesses have not ended.
    let busy = access().await;

    for (failed, cause) in hung.iter().map(|failed| (failed, "deadline")).chain([(&busy, "too many")]) {
        let text = failed.as_ref().unwrap_err().to_string();
        assert!(text.contains("image store") && text.contains(cause), "{text}");
    }
}

#[tokio::test]
async fn concurrent_readers_share_one_copy() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let (first, second) = (image(disc("a", "a").unwrap()), image(disc("b", "b").unwrap()));
    // Each entry of the cache is a weak reference in the debug output.
    let entries = || format!("{store:?}").matches("(Weak)").count();
    store.put("banner/1", &first).await.unwrap();

    let readers = join_all((0..ACCESSES).map(|_| store.get("banner/1"))).await;
    let readers: Vec<_> = readers.into_iter().map(|image| image.unwrap().unwrap()).collect();
    store.put("banner/1", &second).await.unwrap();
    let later = store.get("banner/1").await.unwrap().unwrap();

    assert!(readers.iter().all(|image| image.bytes == first.bytes && image.bytes.as_ptr() == readers[0].bytes.as_ptr()));
    assert_eq!(later, StoredImage::new(second.bytes.clone()));
    assert_eq!(entries(), 2);
    drop((readers, later));
    drop(store.get("banner/1").await.unwrap());
    assert_eq!(entries(), 1, "unused entries are removed");
}

#[tokio::test]
async fn reaches_nothing_outside_its_folder() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("secret"), "x").unwrap();
    let store = open(&folder.path().join("media"));
    store.put("banner/1", &image(disc("a", "a").unwrap())).await.unwrap();
    for name in [
        "",
        "banner",
        "banner/",
        "../secret",
        "banner/../../secret",
        "/banner//1",
        "banner/1/2",
        "%2e%2e/secret",
        "a\0b",
        ".",
        "banner/1#1",
    ] {
        assert_eq!(store.get(name).await.unwrap(), None, "{name:?}");
    }
}
