//! The disk is full: what can't be written is refused, nothing is left in halves, and all goes on when there is room.
//!
//! The disk is a small one of its own in memory, which takes the right to mount it; without that the tests are left out, and a line
//! says so.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::json;
use tempfile::TempDir;
use tokio::time::sleep;

use super::{check, crowd_of, fault, figure, tell};
use crate::plain_tests;
use crate::support::{Cluster, World, eventually, section};

plain_tests![async
    sqlite_has_no_room,
    postgresql_has_no_room,
    an_image_has_no_room,
    a_mail_has_no_room,
];

/// A disk of a few megabytes.
struct Disk(TempDir);

impl Disk {
    fn mount(megabytes: u32) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let size = format!("size={megabytes}m");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &size, "boxoffice-test"]).arg(folder.path()).output();
        if mounted.is_ok_and(|mounted| mounted.status.success()) {
            return Some(Self(folder));
        }
        figure("LEFT OUT: a test of a full disk, for which this user may not mount one");
        None
    }

    fn folder(&self) -> TempDir {
        tempfile::tempdir_in(self.0.path()).unwrap()
    }

    fn ballast(&self) -> PathBuf {
        self.0.path().join("ballast")
    }

    /// Leaves no room at all.
    fn fill(&self) {
        let mut ballast = File::options().append(true).create(true).open(self.ballast()).unwrap();
        while ballast.write_all(&[0; 4096]).is_ok() {}
    }

    /// Leaves room again.
    fn empty(&self) {
        fs::remove_file(self.ballast()).unwrap();
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // Lazily, for whatever is open on it still.
        let _ = Command::new("umount").arg("-l").arg(self.0.path()).status();
    }
}

/// A load on a server whose database has no room for a while.
async fn shortage(name: &str, disk: &Disk, world: &World) {
    let crowd = crowd_of(world).await;

    let work = crowd.set_to_work(&world.address);
    sleep(Duration::from_secs(1)).await;
    disk.fill();
    eventually(async || !crowd.heard().unavailable.is_empty()).await;
    // Whatever is freed meanwhile, such as a log that is folded, is taken again.
    disk.fill();
    sleep(fault(2)).await;
    disk.empty();
    let back = Instant::now();
    sleep(Duration::from_secs(3)).await;
    work.stop().await;

    tell(name, &crowd, back);
    check(world, &crowd).await;
}

async fn sqlite_has_no_room() {
    let Some(disk) = Disk::mount(24) else { return };
    let folder = disk.folder();
    let url = format!("sqlite:{}", folder.path().join("boxoffice.db").display());
    let world = World::start(&url, folder).await;

    shortage("SQLite's disk full", &disk, &world).await;

    let mut tx = world.app.db.read().await.unwrap();
    let found: Vec<(String,)> = tx.query("pragma integrity_check").all().await.unwrap();
    assert_eq!(found, [("ok".to_owned(),)]);
}

async fn postgresql_has_no_room() {
    let Some(disk) = Disk::mount(64) else { return };
    let Some(cluster) = Cluster::start() else { return };
    let url = cluster.database_in("small", disk.0.path()).await;
    let world = World::start(&url, tempfile::tempdir().unwrap()).await;

    shortage("PostgreSQL's disk full", &disk, &world).await;
}

/// A world with room for its database, but not for its images and mail.
async fn world_on(disk: &Disk, data: &TempDir) -> World {
    World::start(&format!("sqlite:{}", data.path().join("boxoffice.db").display()), disk.folder()).await
}

/// Every file below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

async fn an_image_has_no_room() {
    let Some(disk) = Disk::mount(8) else { return };
    let data = tempfile::tempdir().unwrap();
    let world = world_on(&disk, &data).await;
    let kofi = world.person("kofi").await;
    let event = world.listed_event(&world.host_of(&kofi).await, &[section("Floor", 20.0, 10)]).await;
    let png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR42mM4kSICAAM4AUH8/hrTAAAAAElFTkSuQmCC";
    let put = async || world.request("PUT", &event.uri).key(&kofi.key).json(&json!({ "banner": png })).send().await;
    assert_eq!(put().await.status, 200);
    let before = (world.read(&event.uri).await, files(Path::new(&world.app.settings.media)));

    disk.fill();
    let refused = put().await;
    let meanwhile = (world.read(&event.uri).await, files(Path::new(&world.app.settings.media)));
    disk.empty();
    let taken = put().await;

    assert_eq!((refused.status, refused.code(), refused.header("retry-after")), (503, "server.unavailable", "1"));
    assert_eq!(meanwhile, before, "nothing was changed, and no half of a file remains");
    assert_eq!(taken.status, 200, "{}", taken.body);
    let image = world.request("GET", &format!("/media/banner/{}", event.id)).no_key().version(None).send().await;
    assert_eq!(image.status, 200);
}

async fn a_mail_has_no_room() {
    let Some(disk) = Disk::mount(8) else { return };
    let data = tempfile::tempdir().unwrap();
    let world = world_on(&disk, &data).await;
    world.person("ama").await;
    let tries = async || {
        let mut tx = world.app.db.read().await.unwrap();
        tx.query("select coalesce(max(attempts), 0) from outbox where due is not null").scalar::<i64>().await.unwrap()
    };

    disk.fill();
    let asked = world.request("POST", "/verifications").json(&json!({ "email": "ama@example.com" })).send().await;
    eventually(async || tries().await > 0).await;
    world.deliver().await;
    let meanwhile = world.post.files_to("ama@example.com").len();
    disk.empty();
    world.advance(Duration::from_secs(60));
    let letter = world.letter_to("ama@example.com", 1).await;

    assert_eq!((asked.status, meanwhile), (201, 0), "{}", asked.body);
    assert_eq!(crate::support::code_in(&letter).len(), 6);
}
