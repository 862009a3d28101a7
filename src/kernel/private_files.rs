//! Access rights of files: only the user that runs the program may read what it stores.

use std::fs::{self, DirBuilder, OpenOptions, Permissions, TryLockError};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use rustix::fs::{Access, Mode, access};
use rustix::io::Errno;
use rustix::process::geteuid;
use slog::{Logger, info, warn};

/// The mode of folders.
const FOLDER_MODE: u32 = 0o700;
/// The mode of files.
pub const FILE_MODE: u32 = 0o600;
/// The rights of other users.
const OTHERS: u32 = 0o077;
/// The right of all other users to read.
const OTHERS_READ: u32 = 0o004;
/// The first bytes of an SQLite database.
const SQLITE_HEADER: &[u8] = b"SQLite format 3\0";
/// The mode bit of a folder such as `/tmp`, in which all users may create files.
const STICKY: u32 = 0o1000;

/// Removes the rights of other users from everything that the program creates from here on, libraries and SQLite included.
pub fn set_umask() {
    rustix::process::umask(Mode::from_raw_mode(OTHERS));
}

/// Creates a folder, and its parents, if they don't exist.
///
/// # Errors
/// Returns an error if one of them can't be created.
pub fn create_folder(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(folder)
}

/// Creates a folder in which no other user can do anything. It may exist, if this user has created it.
///
/// # Errors
/// Returns an error if it can't be created, or belongs to another user.
pub fn create_own_folder(folder: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(FOLDER_MODE).create(folder) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        created => return created,
    }
    let metadata = fs::symlink_metadata(folder)?;
    if !metadata.is_dir() || metadata.uid() != geteuid().as_raw() {
        return Err(io::Error::other("it exists, and is no folder of this user: delete it first"));
    }
    fs::set_permissions(folder, Permissions::from_mode(FOLDER_MODE))
}

/// Creates an empty file.
///
/// # Errors
/// Returns an error if it exists or can't be created.
pub fn create_file(file: &Path) -> io::Result<fs::File> {
    OpenOptions::new().write(true).create_new(true).mode(FILE_MODE).open(file)
}

/// The lock of a folder. Dropping it unlocks the folder, also if a process that was started meanwhile has a copy of the file, which it
/// has until it executes its program.
#[derive(Debug)]
pub struct FolderLock(fs::File);

impl Drop for FolderLock {
    fn drop(&mut self) {
        // It fails on a file system without locks only.
        let _ = self.0.unlock();
    }
}

/// Locks a folder. Returns `None` if another program or task has the lock. Nothing is locked on a file system without locks.
///
/// # Errors
/// Returns an error if the folder can't be opened.
pub fn try_lock_folder(folder: &Path) -> io::Result<Option<FolderLock>> {
    let file = fs::File::open(folder)?;
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => Ok(None),
        Ok(()) | Err(TryLockError::Error(_)) => Ok(Some(FolderLock(file))),
    }
}

/// Checks that this user may write a file, or create it and its folder if they don't exist.
///
/// # Errors
/// Returns an error that names the file or folder that can't be written.
pub fn require_writable(path: &Path) -> anyhow::Result<()> {
    let existing = existing_part(path);
    ensure!(existing == path || existing.is_dir(), "{} is not a folder", existing.display());
    let rights = if existing.is_dir() { Access::WRITE_OK | Access::EXEC_OK } else { Access::READ_OK | Access::WRITE_OK };
    access(existing, rights).with_context(|| format!("{} can't be written", existing.display()))
}

/// Checks that this user has the rights `rights` to a file, or can create it. The server's user owns the data folder `data` with all that
/// is in it.
///
/// # Errors
/// Returns an error that names the file or the folder that this user can't use, its owner, and what to do.
pub fn require_access(file: &Path, rights: Access, data: Option<&Path>) -> anyhow::Result<()> {
    let existing = existing_part(file);
    let metadata = fs::metadata(existing)?;
    if metadata.is_dir() == (existing == file) {
        // Opening it returns the error.
        return Ok(());
    }
    let is_created = existing != file && rights.contains(Access::WRITE_OK);
    let needed = match (existing == file, is_created) {
        (true, _) => rights,
        (false, true) => Access::WRITE_OK | Access::EXEC_OK,
        (false, false) => Access::EXEC_OK,
    };
    let Err(error) = access(existing, needed) else { return Ok(()) };
    let path = existing.display();
    if error != Errno::ACCESS {
        return Err(error).with_context(|| format!("{path} can't be used"));
    }
    let user = whoami::username().unwrap_or_else(|_| geteuid().as_raw().to_string());
    if metadata.uid() == geteuid().as_raw() {
        bail!("the mode of {path} keeps its owner {user} out: run `chmod u+rwX {path}`");
    }
    let owner = if metadata.uid() == 0 { "root".to_owned() } else { format!("the user {}", metadata.uid()) };
    let data = data.filter(|data| file.starts_with(data));
    let remedy = match data {
        Some(data) if existing.starts_with(data) => format!("run `chown -R {user}: {}` as root", data.display()),
        _ if !is_created => format!("run `chown {user}: {path}` as root"),
        // Other programs may use the folder.
        _ if existing == folder_of(file) => "use another folder".to_owned(),
        _ => format!("run `install -d -m 700 -o {user} {}` as root", data.unwrap_or(folder_of(file)).display()),
    };
    bail!("{path} belongs to {owner}, and {user}, who runs this program, can't use it: {remedy}, or run the program as the owner")
}

/// Waits until the name of a new file is on the disk.
///
/// # Errors
/// Returns an error if its folder can't be written.
pub fn sync_folder_of(file: &Path) -> io::Result<()> {
    fs::File::open(folder_of(file))?.sync_all()
}

/// Returns a path if it exists, and otherwise the nearest of its parent folders that does. What is in a folder that this user can't enter
/// seems not to exist.
pub fn existing_part(path: &Path) -> &Path {
    let mut existing = path;
    // The working directory may have been removed.
    while !existing.exists() && existing != folder_of(existing) {
        existing = folder_of(existing);
    }
    existing
}

/// Returns the folder of a file: `.` for a name in the working directory.
pub fn folder_of(file: &Path) -> &Path {
    file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Returns the files of an SQLite database: its own, the write-ahead log, the log's index and the rollback journal.
pub fn sqlite_files(database: &Path) -> [PathBuf; 4] {
    ["", "-wal", "-shm", "-journal"].map(|suffix| {
        let mut file = database.as_os_str().to_owned();
        file.push(suffix);
        file.into()
    })
}

/// Returns whether all users of the machine may read a file.
pub fn is_readable_by_all(metadata: &fs::Metadata) -> bool {
    metadata.permissions().mode() & OTHERS_READ != 0
}

/// Withdraws the rights of other users to the files of an SQLite database. A mistyped path may lead to a file of another program, which
/// keeps its rights.
pub fn restrict_database(url: &str, log: &Logger) {
    let Some(path) = url.strip_prefix("sqlite:").map(|path| Path::new(path.trim_start_matches("//"))) else { return };
    if is_other_file(path) {
        return;
    }
    for file in sqlite_files(path) {
        restrict(&file, log);
    }
}

/// Returns whether a file has a content that is not that of an SQLite database.
fn is_other_file(path: &Path) -> bool {
    let mut start = Vec::new();
    // Opening a named pipe would wait for its writer.
    if !path.is_file() {
        return false;
    }
    let read = fs::File::open(path).and_then(|file| file.take(SQLITE_HEADER.len() as u64).read_to_end(&mut start));
    read.is_ok() && !start.is_empty() && start != SQLITE_HEADER
}

/// Withdraws the rights of other users to a folder, if it has only entries with the names of the program's own. A mistyped path may lead
/// to a folder of another program or user, which keeps its rights. Returns false for such a folder.
pub fn restrict_folder(folder: &Path, is_own: fn(&str) -> bool, log: &Logger) -> bool {
    let mut entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let other = entries.find(|entry| !entry.file_name().to_str().is_some_and(is_own));
    match &other {
        None => restrict(folder, log),
        Some(other) => {
            if fs::metadata(folder).is_ok_and(|metadata| metadata.permissions().mode() & OTHERS != 0) {
                warn!(log, "other users may read a folder, because it has files of other programs: choose another one";
                    "path" => %folder.display(), "file" => %other.path().display());
            }
        }
    }
    other.is_none()
}

/// Withdraws the rights of other users to a folder and everything in it, under the condition of [`restrict_folder`]. Doesn't follow
/// symbolic links within the folder.
pub fn restrict_all(folder: &Path, is_own: fn(&str) -> bool, log: &Logger) {
    if !restrict_folder(folder, is_own, log) {
        return;
    }
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() {
                folders.push(entry.path());
            }
            if !kind.is_symlink() {
                restrict(&entry.path(), log);
            }
        }
    }
}

/// Withdraws the rights of other users to a file or a folder, and logs the old mode. Does nothing if it doesn't exist, or is in a folder
/// that this user can't enter. Only its owner can do this, so a failure is logged as a warning.
pub fn restrict(path: &Path, log: &Logger) {
    if let Err(error) = try_to_restrict(path, log) {
        warn!(log, "other users may read a file, because its access rights can't be changed"; "path" => %path.display(),
            "cause" => %error);
    }
}

fn try_to_restrict(path: &Path, log: &Logger) -> io::Result<()> {
    let Ok(metadata) = fs::metadata(path) else { return Ok(()) };
    let mode = metadata.permissions().mode() & 0o7777;
    let private = if metadata.is_dir() { FOLDER_MODE } else { FILE_MODE };
    let is_regular = metadata.is_dir() || metadata.is_file();
    if mode & OTHERS == 0 || !is_regular {
        return Ok(());
    }
    if metadata.is_dir() && (mode & STICKY != 0 || path.parent().is_none()) {
        return Err(io::Error::other("the folder is shared with other programs: choose another one"));
    }
    fs::set_permissions(path, Permissions::from_mode(private))?;
    info!(log, "access of other users withdrawn"; "path" => %path.display(), "old_mode" => format!("{mode:04o}"));
    Ok(())
}

/// Creates a file with this content, unless it exists. Other processes never see a part of it. Returns whether it was created.
///
/// # Errors
/// Returns an error if it can't be written.
pub fn create_once(path: &Path, content: &[u8]) -> io::Result<bool> {
    let temporary = temporary_name(path);
    let create = || {
        use io::Write;
        let mut file = create_file(&temporary)?;
        file.write_all(content)?;
        file.sync_all()?;
        match fs::hard_link(&temporary, path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
            result => {
                result?;
                sync_folder_of(path)?;
                Ok(true)
            }
        }
    };
    let created = create();
    // Left over only if it could not be created, or the disk fails.
    let _removed = fs::remove_file(&temporary);
    created
}

fn temporary_name(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{:08x}", rand::random::<u32>()));
    name.into()
}
