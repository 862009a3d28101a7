//! Files and folders that no other user of the machine can read.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use boxoffice::kernel::private_files::{create_once, create_own_folder, restrict, restrict_all, restrict_database};
use boxoffice_http::log;

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

#[test]
fn file_that_is_no_database_keeps_its_rights() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    let mode_after = |content: &str| {
        fs::write(&file, content).unwrap();
        set_mode(&file, 0o644);
        restrict_database(&format!("sqlite:{}", file.display()), &log::silent());
        mode(&file)
    };

    assert_eq!(["", "SQLite format 3\0 and its pages", "listen ="].map(mode_after), [0o600, 0o600, 0o644]);
}

#[test]
fn own_folder_is_private_and_no_link() {
    let parent = tempfile::tempdir().unwrap();
    let (new, existing, link) = (parent.path().join("new"), parent.path().join("existing"), parent.path().join("link"));
    fs::create_dir(&existing).unwrap();
    set_mode(&existing, 0o777);
    std::os::unix::fs::symlink(&existing, &link).unwrap();

    assert!(create_own_folder(&new).is_ok() && create_own_folder(&existing).is_ok());
    assert_eq!([new, existing].map(|folder| mode(&folder)), [0o700; 2]);
    assert!(create_own_folder(&link).is_err());
}

#[test]
fn withdraws_rights_from_a_folder_and_its_content() {
    let outside = tempfile::tempdir().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let (inner, file) = (folder.path().join("banner"), folder.path().join("banner/1"));
    fs::create_dir(&inner).unwrap();
    fs::write(&file, "x").unwrap();
    std::os::unix::fs::symlink(outside.path(), folder.path().join("link")).unwrap();
    for (path, wide) in [(folder.path(), 0o755), (&inner, 0o775), (&file, 0o644), (outside.path(), 0o755)] {
        set_mode(path, wide);
    }

    let modes = || [folder.path(), &inner, &file, outside.path()].map(mode);

    restrict_all(folder.path(), |name| name == "banner", &log::silent());
    assert_eq!(modes(), [0o755, 0o775, 0o644, 0o755], "`link` is of another program");
    restrict_all(folder.path(), |name| ["banner", "link"].contains(&name), &log::silent());
    assert_eq!(modes(), [0o700, 0o700, 0o600, 0o755], "links are not followed");
}

#[test]
fn leaves_shared_and_absent_folders() {
    let folder = tempfile::tempdir().unwrap();
    set_mode(folder.path(), 0o1777);

    restrict(folder.path(), &log::silent());
    restrict(&folder.path().join("absent"), &log::silent());

    assert_eq!(mode(folder.path()), 0o1777);
}

#[test]
fn creates_a_file_once_for_its_user_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("key");

    let created = [create_once(&path, b"first").unwrap(), create_once(&path, b"second").unwrap()];

    assert_eq!((created, fs::read(&path).unwrap().as_slice(), mode(&path)), ([true, false], b"first".as_slice(), 0o600));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}
