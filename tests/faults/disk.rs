//! A full disk: writes are rejected, nothing is left incomplete, and the server recovers when there is space.
//!
//! The disk is a small tmpfs. Mounting it requires root; without that the tests are skipped with a message.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::json;
use tempfile::TempDir;
use tokio::time::sleep;

use super::{check, create_load, fault_duration, print_figure, print_recovery};
use crate::support::server_process::{CommandOutput, Run, boxoffice};
use crate::support::{PgCluster, TestApp, section, wait_until};

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
        print_figure("LEFT OUT: a test of a full disk, for which this user may not mount one");
        None
    }

    fn folder(&self) -> TempDir {
        tempfile::tempdir_in(self.0.path()).unwrap()
    }

    fn ballast(&self) -> PathBuf {
        self.0.path().join("ballast")
    }

    /// Fills the disk completely.
    fn fill(&self) {
        let mut ballast = File::options().append(true).create(true).open(self.ballast()).unwrap();
        while ballast.write_all(&[0; 4096]).is_ok() {}
    }

    /// Frees the space.
    fn empty(&self) {
        fs::remove_file(self.ballast()).unwrap();
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // Lazily, because files on it may still be open.
        let _ = Command::new("umount").arg("-l").arg(self.0.path()).status();
    }
}

/// Runs a load on a server whose database has no space for a while.
async fn run_without_space(name: &str, disk: &Disk, app: &TestApp) {
    let load = create_load(app).await;

    let work = load.start(&app.address);
    sleep(Duration::from_secs(1)).await;
    disk.fill();
    wait_until(async || !load.records().unavailable.is_empty()).await;
    // Fills space that is freed meanwhile, for example by a checkpoint.
    disk.fill();
    sleep(fault_duration(2)).await;
    disk.empty();
    let back = Instant::now();
    load.wait_for_recovery(back).await;
    work.stop().await;

    print_recovery(name, &load, back);
    check(app, &load).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sqlite_recovers_from_full_disk() {
    // SQLite's log grows to 64 MiB.
    let Some(disk) = Disk::mount(128) else { return };
    let folder = disk.folder();
    let url = format!("sqlite:{}", folder.path().join("boxoffice.db").display());
    let app = TestApp::start(&url, folder).await;

    run_without_space("SQLite's disk full", &disk, &app).await;

    let mut reader = app.state.db.read().await.unwrap();
    let found: Vec<(String,)> = reader.query("pragma integrity_check").all().await.unwrap();
    assert_eq!(found, [("ok".to_owned(),)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_recovers_from_full_disk() {
    let Some(disk) = Disk::mount(64) else { return };
    let Some(cluster) = PgCluster::create() else { return };
    let url = cluster.create_database_in("small", disk.0.path()).await;
    let app = TestApp::start(&url, tempfile::tempdir().unwrap()).await;

    run_without_space("PostgreSQL's disk full", &disk, &app).await;
}

/// Starts a server whose database has space, but not its images and mail.
async fn start_app_on(disk: &Disk, data: &TempDir) -> TestApp {
    TestApp::start(&format!("sqlite:{}", data.path().join("boxoffice.db").display()), disk.folder()).await
}

/// Returns every file below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// Returns the status of `/readyz`, and the state of the database and of the image store.
async fn readiness(app: &TestApp) -> (u16, String, String) {
    let response = app.request("GET", "/readyz").anonymous().send().await;
    let state = |index: usize| response.body["checks"][index]["status"].as_str().unwrap_or_default().to_owned();
    (response.status, state(0), state(2))
}

fn is(status: u16, database: &str, media: &str) -> (u16, String, String) {
    (status, database.to_owned(), media.to_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn server_is_not_ready_while_its_database_has_no_space() {
    let Some(disk) = Disk::mount(16) else { return };
    let folder = disk.folder();
    let url = format!("sqlite:{}", folder.path().join("boxoffice.db").display());
    let app = TestApp::start(&url, folder).await;
    assert_eq!(readiness(&app).await, is(200, "ok", "ok"));

    disk.fill();
    // The write-ahead log has room for some rows, and for many if it begins again.
    wait_until(async || {
        let name = format!("Region {}", rand::random::<u64>());
        app.post(&app.staff.key, "/regions", &json!({ "name": name, "country": "Ghana" })).await;
        readiness(&app).await == is(503, "failed", "failed")
    })
    .await;
    let read = app.request("GET", "/regions").send().await;
    disk.empty();

    assert_eq!(read.status, 200);
    assert_eq!(readiness(&app).await, is(200, "ok", "ok"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn server_is_ready_while_its_images_have_no_space() {
    let Some(disk) = Disk::mount(8) else { return };
    let data = tempfile::tempdir().unwrap();
    let app = start_app_on(&disk, &data).await;
    assert_eq!(readiness(&app).await, is(200, "ok", "ok"));

    disk.fill();
    let full = readiness(&app).await;
    disk.empty();

    assert_eq!(full, is(200, "ok", "failed"));
    assert_eq!(readiness(&app).await, is(200, "ok", "ok"));
}

#[test]
fn check_of_the_configuration_finds_little_space() {
    let Some(disk) = Disk::mount(8) else { return };
    let folder = disk.folder();
    let check = || boxoffice(folder.path(), &["config", "check"]).run();

    let little = check();
    disk.fill();
    let full = check();

    let line = |output: &CommandOutput| output.stdout.lines().find(|line| line.contains("disk-space")).unwrap().to_owned();
    assert!(little.succeeded() && line(&little).starts_with("warning"), "{}", little.stdout);
    assert!(line(&little).contains("has only 8 MiB free: make room"), "{}", little.stdout);
    assert_eq!(full.code, Some(1), "{}", full.stdout);
    assert!(line(&full).starts_with("failed") && line(&full).contains("is full (0 bytes are free)"), "{}", full.stdout);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn image_upload_recovers_from_full_disk() {
    let Some(disk) = Disk::mount(8) else { return };
    let data = tempfile::tempdir().unwrap();
    let app = start_app_on(&disk, &data).await;
    let (kofi, event) = app.sign_up_host("kofi", &[section("Floor", 20.0, 10)]).await;
    let png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR42mM4kSICAAM4AUH8/hrTAAAAAElFTkSuQmCC";
    let put = async || app.request("PUT", &event.uri).key(&kofi.key).json(&json!({ "banner": png })).send().await;
    assert_eq!(put().await.status, 200);
    let before = (app.read(&event.uri).await, files(app.state.settings.media.folder().unwrap()));

    disk.fill();
    let rejected = put().await;
    let meanwhile = (app.read(&event.uri).await, files(app.state.settings.media.folder().unwrap()));
    disk.empty();
    let taken = put().await;

    assert_eq!((rejected.status, rejected.code(), rejected.header("retry-after")), (503, "server.unavailable", "1"));
    assert_eq!(meanwhile, before, "nothing was changed, and no half of a file remains");
    assert_eq!(taken.status, 200, "{}", taken.body);
    assert_eq!(app.request("GET", &format!("/media/banner/{}", event.id)).anonymous().send().await.status, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mail_delivery_recovers_from_full_disk() {
    let Some(disk) = Disk::mount(8) else { return };
    let data = tempfile::tempdir().unwrap();
    let app = start_app_on(&disk, &data).await;
    app.sign_up("ama").await;
    let tries = async || {
        let mut reader = app.state.db.read().await.unwrap();
        reader.query("select coalesce(max(attempts), 0) from outbox where due is not null").scalar::<i64>().await.unwrap()
    };

    disk.fill();
    let requests = app.request("POST", "/verifications").json(&json!({ "email": "ama@example.com" })).send().await;
    wait_until(async || tries().await > 0).await;
    app.deliver_mail().await;
    let meanwhile = app.mailbox.files_to("ama@example.com").len();
    disk.empty();
    app.advance_clock(Duration::from_secs(60));
    let letter = app.mail_to("ama@example.com", 1).await;

    assert_eq!((requests.status, meanwhile), (201, 0), "{}", requests.body);
    assert_eq!(crate::support::code_in(&letter).len(), 6);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn backup_on_full_disk_leaves_nothing() {
    let Some(disk) = Disk::mount(8) else { return };
    let data = tempfile::tempdir().unwrap();
    let folder = disk.folder();
    let file = folder.path().join("backup.tar");
    let backup = || boxoffice(data.path(), &["backup", file.to_str().unwrap()]).run();
    assert!(boxoffice(data.path(), &["demo"]).run().succeeded());

    disk.fill();
    let rejected = backup();
    let meanwhile = files(folder.path());
    disk.empty();
    let made = backup();

    assert_eq!((rejected.code, meanwhile), (Some(1), Vec::<PathBuf>::new()));
    let message = rejected.stderr;
    assert!(message.contains("full") || message.contains("No space left"), "{message}");
    assert!(made.succeeded() && files(folder.path()) == [file]);
}
