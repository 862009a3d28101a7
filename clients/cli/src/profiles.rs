//! Profiles: servers and keys, in a file that only its owner can read.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::failure::Failure;

/// A server, and the keys for it.
#[derive(Serialize, Deserialize)]
pub struct Profile {
    /// The address.
    pub server: String,
    /// The key of an application, an integration or an admission token.
    pub key: String,
    /// The session, after a login.
    pub session: Option<SavedSession>,
}

/// A session of an account.
#[derive(Serialize, Deserialize)]
pub struct SavedSession {
    /// The username.
    pub username: String,
    /// The session's key.
    pub key: String,
}

impl Profile {
    /// Returns the session's key, or else the application's.
    pub fn active_key(&self) -> &str {
        self.session.as_ref().map_or(&self.key, |session| &session.key)
    }
}

/// All profiles.
#[derive(Default, Serialize, Deserialize)]
pub struct Profiles {
    profiles: BTreeMap<String, Profile>,
}

impl Profiles {
    /// Reads the file. Without one, there are no profiles.
    ///
    /// # Errors
    /// Returns an error if the file can't be read, is invalid, or can be read by other users.
    pub fn load() -> Result<Self, Failure> {
        let path = path()?;
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(Failure::message(&format!("{}: {error}", path.display()))),
        };
        let mode = fs::metadata(&path).map_err(|error| Failure::other(&error))?.permissions().mode();
        if mode & 0o077 != 0 {
            let path = path.display();
            return Err(Failure::message(&format!("{path}: other users can read the keys in it; run `chmod 600 {path}`")));
        }
        serde_json::from_str(&text).map_err(|error| Failure::message(&format!("{}: {error}", path.display())))
    }

    /// Changes the file. Meanwhile, no other process changes it.
    ///
    /// # Errors
    /// Returns an error if the file can't be read or written.
    pub fn change(change: impl FnOnce(&mut Self)) -> Result<(), Failure> {
        let path = path()?;
        let failure = |error: io::Error| Failure::message(&format!("{}: {error}", path.display()));
        let _lock = lock(&path).map_err(failure)?;
        let mut profiles = Self::load()?;
        change(&mut profiles);
        profiles.save(&path).map_err(failure)
    }

    /// Writes the file, as a new one that replaces the old one.
    fn save(&self, path: &Path) -> io::Result<()> {
        let new = path.with_extension(format!("{}.new", std::process::id()));
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
        file.write_all(&serde_json::to_vec_pretty(self)?)?;
        file.sync_all()?;
        fs::rename(&new, path)
    }

    /// Returns a profile.
    pub fn get_mut(&mut self, name: &str) -> Option<&mut Profile> {
        self.profiles.get_mut(name)
    }

    /// Adds or replaces a profile.
    pub fn insert(&mut self, name: &str, profile: Profile) {
        self.profiles.insert(name.to_owned(), profile);
    }

    /// Removes and returns a profile.
    pub fn remove(&mut self, name: &str) -> Option<Profile> {
        self.profiles.remove(name)
    }

    /// Returns the profiles without their keys.
    pub fn describe(&self) -> Value {
        let rows = self.profiles.iter().map(|(name, profile)| {
            let account = profile.session.as_ref().map(|session| session.username.as_str());
            json!({ "profile": name, "server": profile.server, "account": account })
        });
        rows.collect()
    }
}

/// Waits until no other process changes the profiles. None does while the returned file is open.
fn lock(path: &Path) -> io::Result<File> {
    DirBuilder::new().recursive(true).mode(0o700).create(path.parent().unwrap_or(path))?;
    // The file of the profiles itself is replaced.
    let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path.with_extension("lock"))?;
    file.lock()?;
    Ok(file)
}

fn path() -> Result<PathBuf, Failure> {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let folder = variable("XDG_CONFIG_HOME").or_else(|| Some(variable("HOME")?.join(".config")));
    let folder = folder.ok_or_else(|| Failure::message("neither XDG_CONFIG_HOME nor HOME is set"))?;
    Ok(folder.join("boxoffice").join("profiles.json"))
}
