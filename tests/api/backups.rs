//! The commands `backup`, `restore` and `check`.

use std::fs;
use std::io::Read;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use boxoffice::backup::is_backup_file;
use boxoffice_client::Client;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use sqlx::{AssertSqlSafe, Connection, SqliteConnection};
use tempfile::TempDir;

use crate::support::postgres;
use crate::support::server_process::{CommandOutput, Run, ServerProcess, boxoffice, last_word};

/// A folder with sample data, and their public key.
struct Sample {
    folder: TempDir,
    public_key: String,
}

impl Sample {
    fn create() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let filled = boxoffice(&folder.path().join("data"), &["demo"]).run();
        assert!(filled.succeeded(), "{}", filled.stderr);
        Self { public_key: last_word(&filled.stdout, "public key"), folder }
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    fn backup(&self) -> PathBuf {
        self.folder.path().join("backup.tar")
    }

    fn run(&self, arguments: &[&str]) -> CommandOutput {
        boxoffice(&self.data(), arguments).run()
    }

    fn create_backup(&self) {
        let created = self.run(&["backup", self.backup().to_str().unwrap()]);
        assert!(created.succeeded(), "{}", created.stderr);
    }

    fn restore_to(&self, folder: &str) -> CommandOutput {
        boxoffice(&self.folder.path().join(folder), &["restore", self.backup().to_str().unwrap()]).run()
    }

    async fn execute(&self, sql: &'static str) {
        let path = format!("sqlite:{}", self.data().join("boxoffice.db").display());
        let mut connection = SqliteConnection::connect(&path).await.unwrap();
        sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut connection).await.unwrap();
        connection.close().await.unwrap();
    }

    /// Writes the backup again, with a changed manifest.
    fn change_manifest(&self, change: impl Fn(&mut Value)) {
        let mut changed = tar::Builder::new(Vec::new());
        for entry in tar::Archive::new(fs::File::open(self.backup()).unwrap()).entries().unwrap() {
            let mut entry = entry.unwrap();
            let (mut header, name) = (entry.header().clone(), entry.path().unwrap().into_owned());
            let mut content = Vec::new();
            entry.read_to_end(&mut content).unwrap();
            if name == Path::new("manifest.json") {
                let mut manifest = serde_json::from_slice(&content).unwrap();
                change(&mut manifest);
                content = manifest.to_string().into_bytes();
                header.set_size(content.len() as u64);
            }
            changed.append_data(&mut header, name, content.as_slice()).unwrap();
        }
        fs::write(self.backup(), changed.into_inner().unwrap()).unwrap();
    }
}

/// Returns the names in a folder.
fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn restored_backup_serves_the_same_data() {
    let sample = Sample::create();
    let server = ServerProcess::start(boxoffice(&sample.data(), &["serve"]));
    let events = reqwest_events(&server.address, &sample.public_key).await;

    sample.create_backup();
    server.stop();
    let restored = sample.restore_to("restored");
    let server = ServerProcess::start(boxoffice(&sample.folder.path().join("restored"), &["serve"]));
    let after = reqwest_events(&server.address, &sample.public_key).await;
    server.stop();

    assert!(restored.succeeded(), "{}", restored.stderr);
    assert!(restored.stdout.contains("the database and the books are correct"), "{}", restored.stdout);
    assert_eq!((after, fs::metadata(sample.backup()).unwrap().permissions().mode() & 0o777), (events, 0o600));
    assert_eq!(names(sample.folder.path()), ["backup.tar", "data", "restored"]);
    for file in files(&sample.data().join("media")) {
        let copy = sample.folder.path().join("restored/media").join(file.strip_prefix(sample.data().join("media")).unwrap());
        assert_eq!(fs::read(file).unwrap(), fs::read(&copy).unwrap());
        assert_eq!(fs::metadata(copy).unwrap().permissions().mode() & 0o777, 0o600);
    }
}

async fn reqwest_events(address: &str, key: &str) -> Value {
    let anyone = Client::connect(address, key).unwrap();
    let events = anyone.published_event_list().send().await.unwrap().into_inner();
    let text = serde_json::to_string(&events).unwrap();
    // The port differs.
    serde_json::from_str(&text.replace(address, "")).unwrap()
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

#[test]
fn backup_replaces_a_file_by_request_only() {
    let sample = Sample::create();
    fs::write(sample.backup(), "other").unwrap();

    let rejected = sample.run(&["backup", sample.backup().to_str().unwrap()]);
    let kept = fs::read(sample.backup()).unwrap();
    let replaced = sample.run(&["backup", "--force", sample.backup().to_str().unwrap()]);

    assert_eq!((rejected.code, kept.as_slice()), (Some(1), b"other".as_slice()));
    assert!(rejected.stderr.contains("exists; choose another name, or add --force"), "{}", rejected.stderr);
    assert!(replaced.succeeded(), "{}", replaced.stderr);
    assert!(fs::metadata(sample.backup()).unwrap().len() > 100_000);
    assert_eq!(names(sample.folder.path()), ["backup.tar", "data"]);
}

/// Another user may have created it, to read the copy of the database in it.
#[test]
fn backup_uses_no_folder_of_another_user() {
    let sample = Sample::create();
    let elsewhere = sample.folder.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    symlink(&elsewhere, sample.folder.path().join("backup.tar.partial")).unwrap();

    let created = sample.run(&["backup", sample.backup().to_str().unwrap()]);

    assert_eq!(created.code, Some(1));
    assert!(created.stderr.contains("is no folder of this user: delete it first"), "{}", created.stderr);
    assert_eq!(names(&elsewhere), [""; 0]);
    assert_eq!(names(sample.folder.path()), ["backup.tar.partial", "data", "elsewhere"]);
}

#[test]
fn backup_contains_the_mail_key_by_request_only() {
    let sample = Sample::create();

    let without = sample.run(&["backup", sample.backup().to_str().unwrap()]);
    let restored = sample.restore_to("without");
    let with = sample.run(&["backup", "--force", "--include-mail-key", sample.backup().to_str().unwrap()]);
    let restored_key = sample.restore_to("with");

    assert!(without.stdout.contains("key of the mails: not included"), "{}", without.stdout);
    assert!(with.stdout.contains("key of the mails: included"), "{}", with.stdout);
    assert!(restored.succeeded() && restored_key.succeeded(), "{}", restored_key.stderr);
    assert!(!sample.folder.path().join("without/mail.key").exists());
    let key = |folder: &str| fs::read(sample.folder.path().join(folder).join("mail.key")).unwrap();
    assert_eq!(key("with"), key("data"));
}

#[test]
fn backup_contains_icons_only() {
    let sample = Sample::create();
    let icons = sample.data().join("media/icons");
    fs::create_dir(&icons).unwrap();
    for name in ["ghana.png", "my icon.png"] {
        fs::write(icons.join(name), "image").unwrap();
    }

    let created = sample.run(&["backup", sample.backup().to_str().unwrap()]);
    let restored = sample.restore_to("restored");

    assert!(created.succeeded() && restored.succeeded(), "{}{}", created.stderr, restored.stderr);
    assert!(created.stderr.contains("my icon.png is not in the backup"), "{}", created.stderr);
    assert_eq!(names(&sample.folder.path().join("restored/media/icons")), ["ghana.png"]);
}

/// Without its key, mails that were encrypted with it can't be read any more.
#[test]
fn restore_replaces_no_mail_key() {
    let sample = Sample::create();
    let created = sample.run(&["backup", "--include-mail-key", sample.backup().to_str().unwrap()]);
    assert!(created.succeeded(), "{}", created.stderr);
    let other = sample.folder.path().join("other");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("mail.key"), "another key").unwrap();

    let rejected = sample.restore_to("other");
    let (kept, after) = (fs::read(other.join("mail.key")).unwrap(), names(&other));
    fs::copy(sample.data().join("mail.key"), other.join("mail.key")).unwrap();
    let restored = sample.restore_to("other");

    assert_eq!((rejected.code, kept.as_slice()), (Some(1), b"another key".as_slice()));
    assert!(rejected.stderr.contains("mail.key is another key than that of the backup"), "{}", rejected.stderr);
    assert_eq!(after, ["mail.key"]);
    assert!(restored.succeeded(), "{}", restored.stderr);
    assert_eq!(names(&other), ["boxoffice.db", "mail.key", "media"]);
}

/// A disk of its own is such a folder: nothing can be created beside it, and it has a folder `lost+found`.
#[test]
fn restore_writes_images_within_their_folder() {
    let sample = Sample::create();
    sample.create_backup();
    let disk = sample.folder.path().join("disk");
    fs::create_dir_all(disk.join("images/lost+found")).unwrap();
    // A killed program has left it.
    fs::create_dir_all(disk.join("images/.restoring/banner")).unwrap();
    // Not even a user with all rights can create a folder with this name.
    fs::write(disk.join("images.restoring"), "").unwrap();

    let images = disk.join("images");
    let restore = |backup: &Path| {
        let arguments = ["restore", backup.to_str().unwrap(), "--media", images.to_str().unwrap()];
        boxoffice(&sample.folder.path().join("new"), &arguments).run()
    };
    let damaged = sample.folder.path().join("damaged.tar");
    let backup = fs::read(sample.backup()).unwrap();
    fs::write(&damaged, &backup[..backup.len() / 2]).unwrap();
    let rejected = restore(&damaged);
    let after = names(&images);
    let restored = restore(&sample.backup());

    assert_eq!((rejected.code, after), (Some(1), vec!["lost+found".to_owned()]), "{}", rejected.stderr);
    assert!(restored.succeeded(), "{}", restored.stderr);
    assert_eq!(names(&disk), ["images", "images.restoring"]);
    assert!(!images.join(".restoring").exists());
    let original = sample.data().join("media");
    for file in files(&original) {
        assert_eq!(fs::read(&file).unwrap(), fs::read(images.join(file.strip_prefix(&original).unwrap())).unwrap());
    }
}

#[test]
fn restore_with_a_bucket_says_that_images_are_missing() {
    let sample = Sample::create();
    sample.create_backup();

    let backup = sample.backup();
    let arguments = ["restore", backup.to_str().unwrap(), "--media", "s3://tickets"];
    let restored = boxoffice(&sample.folder.path().join("new"), &arguments).run();

    assert!(restored.succeeded(), "{}", restored.stderr);
    assert!(restored.stdout.contains("images of the backup were not restored"), "{}", restored.stdout);
    assert_eq!(names(&sample.folder.path().join("new")), ["boxoffice.db"]);
}

#[test]
fn restore_needs_an_empty_folder() {
    let sample = Sample::create();
    sample.create_backup();
    let before = fs::read(sample.data().join("boxoffice.db")).unwrap();

    let over_data = sample.run(&["restore", sample.backup().to_str().unwrap()]);
    let other = sample.folder.path().join("other");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("notes"), "").unwrap();
    let over_other = sample.restore_to("other");
    fs::remove_file(other.join("notes")).unwrap();
    // The operator has kept the keys apart; a killed program has left the rest.
    fs::write(other.join("mail.key"), "key").unwrap();
    fs::write(other.join("ticket.key"), "key").unwrap();
    fs::write(other.join("boxoffice.db.restoring"), "half").unwrap();
    fs::create_dir(other.join("media")).unwrap();
    let restored = sample.restore_to("other");

    for (rejected, file) in [(&over_data, "boxoffice.db exists"), (&over_other, "notes exists")] {
        assert_eq!(rejected.code, Some(1));
        assert!(rejected.stderr.contains(file), "{}", rejected.stderr);
    }
    assert_eq!(fs::read(sample.data().join("boxoffice.db")).unwrap(), before);
    assert!(restored.succeeded(), "{}", restored.stderr);
    assert_eq!(names(&other), ["boxoffice.db", "mail.key", "media", "ticket.key"]);
    assert_eq!(fs::read(other.join("mail.key")).unwrap(), b"key");
}

#[test]
fn backup_and_restore_accept_names_in_the_working_directory() {
    let sample = Sample::create();
    let folder = sample.folder.path().join("other");
    fs::create_dir(&folder).unwrap();
    let run = |folder: &Path, arguments: &[&str]| boxoffice(Path::new("data"), arguments).current_dir(folder).run();

    let created = run(sample.folder.path(), &["backup", "backup.tar"]);
    fs::rename(sample.backup(), folder.join("backup.tar")).unwrap();
    let restored = run(&folder, &["restore", "backup.tar", "--database", "sqlite:box.db", "--media", "images"]);

    assert!(created.succeeded(), "{}", created.stderr);
    assert!(restored.succeeded(), "{}", restored.stderr);
    assert_eq!(names(&folder), ["backup.tar", "box.db", "data", "images"]);
}

#[tokio::test]
async fn damaged_backup_is_rejected_and_leaves_nothing() {
    let sample = Sample::create();
    sample.create_backup();
    let good = fs::read(sample.backup()).unwrap();
    let flipped = [&good[..good.len() / 2], &[!good[good.len() / 2]], &good[good.len() / 2 + 1..]].concat();

    for (content, message) in [
        (flipped, "differs from its checksum"),
        (good[..good.len() / 2].to_vec(), "is no backup of boxoffice, or it is incomplete"),
        (b"text".to_vec(), "is no backup of boxoffice, or it is incomplete"),
    ] {
        fs::write(sample.backup(), content).unwrap();
        let rejected = sample.restore_to("new");
        assert_eq!(rejected.code, Some(1), "{message}");
        assert!(rejected.stderr.contains(message), "{}", rejected.stderr);
        assert_eq!(names(&sample.folder.path().join("new")), [""; 0]);
    }
    for (change, message) in [
        (json!({ "schema": 9999 }), "is of a newer version of boxoffice"),
        (json!({ "format": 2 }), "this program reads version 1"),
        (json!({ "rows": {} }), "differs from its manifest in the number of rows"),
    ] {
        fs::write(sample.backup(), &good).unwrap();
        sample.change_manifest(|manifest| {
            let (key, value) = change.as_object().unwrap().iter().next().unwrap();
            manifest[key] = value.clone();
        });
        let rejected = sample.restore_to("new");
        assert!(rejected.stderr.contains(message), "{}", rejected.stderr);
        assert_eq!(names(&sample.folder.path().join("new")), [""; 0]);
    }
}

#[test]
fn older_backup_is_restored_for_a_migration() {
    let sample = Sample::create();
    sample.create_backup();
    sample.change_manifest(|manifest| manifest["schema"] = json!(1));

    let restored = sample.restore_to("new");

    assert!(restored.succeeded(), "{}", restored.stderr);
    assert!(restored.stdout.contains("`boxoffice migrate` brings it up to date"), "{}", restored.stdout);
}

#[tokio::test]
async fn wrong_books_are_found() {
    let sample = Sample::create();
    let correct = sample.run(&["check"]);
    sample
        .execute("update payments set amount = amount + 1 where id = (select max(id) from payments where status = 'Confirmed')")
        .await;

    let wrong = sample.run(&["check"]);
    sample.create_backup();
    let rejected = sample.restore_to("new");

    assert!(correct.succeeded(), "{}", correct.stderr);
    assert_eq!((wrong.code, rejected.code), (Some(1), Some(1)));
    let violation = "an order's transactions differ from its payments and refunds: 1 times";
    assert!(wrong.stdout.contains(violation), "{}", wrong.stdout);
    assert!(rejected.stderr.contains(violation), "{}", rejected.stderr);
    assert_eq!(names(&sample.folder.path().join("new")), [""; 0]);
}

#[tokio::test]
async fn lost_image_is_reported_and_does_not_prevent_a_backup() {
    let sample = Sample::create();
    sample.execute("update events set banner_id = 42 where id = (select min(id) from events)").await;

    let created = sample.run(&["backup", sample.backup().to_str().unwrap()]);
    let restored = sample.restore_to("new");

    assert!(created.succeeded() && restored.succeeded(), "{}{}", created.stderr, restored.stderr);
    assert!(created.stderr.contains("the media folder has no file banner/00000000000042"), "{}", created.stderr);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_is_backed_up_by_its_own_tools() {
    let Some(database) = postgres::new_database().await else { return };
    let folder = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| boxoffice(folder.path(), arguments).env("DATABASE_URL", &database.url).run();
    assert!(run(&["demo"]).succeeded());

    let (backup, restore, check) = (run(&["backup", "backup.tar"]), run(&["restore", "backup.tar"]), run(&["check"]));

    assert_eq!((backup.code, restore.code), (Some(1), Some(1)));
    assert!(backup.stderr.contains("pg_dump --format=custom"), "{}", backup.stderr);
    assert!(restore.stderr.contains("pg_restore --no-owner"), "{}", restore.stderr);
    assert!(check.succeeded() && check.stdout.contains("are correct"), "{}", check.stderr);
}

/// A folder with other data, or without a database, is left as it is.
#[test]
fn refused_commands_change_no_access_rights() {
    let sample = Sample::create();
    sample.create_backup();
    let other = sample.folder.path().join("other");
    let open = |path: &Path, mode: u32| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    fs::create_dir_all(other.join("media")).unwrap();
    fs::write(other.join("media/photo"), "of another program").unwrap();
    open(&other, 0o755);
    open(&other.join("media"), 0o755);
    open(&other.join("media/photo"), 0o644);

    let backup = boxoffice(&other, &["backup", sample.folder.path().join("new.tar").to_str().unwrap()]).run();
    let restored = sample.restore_to("other");

    assert_eq!((backup.code, restored.code), (Some(1), Some(1)));
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let modes = [mode(&other), mode(&other.join("media")), mode(&other.join("media/photo"))];
    assert_eq!(modes, [0o755, 0o755, 0o644], "{}{}", backup.stderr, restored.stderr);
}

#[test]
fn checksums_are_those_of_common_tools() {
    let sample = Sample::create();
    sample.create_backup();

    let mut archive = tar::Archive::new(fs::File::open(sample.backup()).unwrap());
    let mut contents: Vec<(String, Vec<u8>)> = Vec::new();
    for entry in archive.entries().unwrap() {
        let mut entry = entry.unwrap();
        let mut content = Vec::new();
        entry.read_to_end(&mut content).unwrap();
        contents.push((entry.path().unwrap().display().to_string(), content));
    }
    let (name, manifest) = contents.pop().unwrap();
    let manifest: Value = serde_json::from_slice(&manifest).unwrap();

    assert_eq!(name, "manifest.json");
    for ((name, content), listed) in contents.iter().zip(manifest["files"].as_array().unwrap()) {
        let sha256: String = Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(*listed, json!({ "name": name, "bytes": content.len(), "sha256": sha256 }));
    }
    assert_eq!(manifest["files"].as_array().unwrap().len(), contents.len());
}

#[test]
fn accepts_names_of_a_backup_only() {
    for name in ["boxoffice.db", "mail.key", "media/banner/17637000000001", "media/icons/ghana.png"] {
        assert!(is_backup_file(name), "{name}");
    }
    for name in ["", "other", "/boxoffice.db", "media/../mail.key", "media/banner/", "media/banner/..", "media/a/b/c", "../x"] {
        assert!(!is_backup_file(name), "{name}");
    }
}
