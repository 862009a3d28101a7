//! The file of a backup: a tar archive.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use sha2::{Digest, Sha256};
use tar::{Archive, Builder, EntryType, Header};

use super::manifest::{ArchivedFile, FORMAT, Manifest};
use super::{DATABASE, MAIL_KEY, MEDIA};
use crate::kernel::private_files;
use crate::kernel::types::secret;

/// The name of the last entry.
const MANIFEST: &str = "manifest.json";
/// The maximum size of a manifest. That of a million images takes half of it.
const MAX_MANIFEST: u64 = 256 << 20;

/// Reads from `source`, and computes the size and the hash of everything that was read.
struct HashingReader<R> {
    source: R,
    hash: Sha256,
    bytes: u64,
}

impl<R: Read> HashingReader<R> {
    fn new(source: R) -> Self {
        Self { source, hash: Sha256::new(), bytes: 0 }
    }

    fn finish(self, name: &str) -> ArchivedFile {
        ArchivedFile { name: name.to_owned(), bytes: self.bytes, sha256: secret::hex(&self.hash.finalize()) }
    }
}

impl<R: Read> Read for HashingReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.source.read(buffer)?;
        self.hash.update(buffer.get(..count).unwrap_or_default());
        self.bytes += count as u64;
        Ok(count)
    }
}

/// A backup that is being written.
pub struct ArchiveWriter {
    tar: Builder<File>,
    /// The files so far.
    pub files: Vec<ArchivedFile>,
}

impl ArchiveWriter {
    /// Creates the file.
    pub fn create(path: &Path) -> io::Result<Self> {
        Ok(Self { tar: Builder::new(private_files::create_file(path)?), files: Vec::new() })
    }

    /// Adds a file.
    ///
    /// # Errors
    /// Returns an error if the file can't be read, or [`extract`] would reject its name.
    pub fn add(&mut self, name: &str, path: &Path) -> Result<()> {
        ensure!(is_backup_file(name), "a backup can't contain a file with the name {name:?}");
        let mut add = || {
            let file = File::open(path)?;
            let metadata = file.metadata()?;
            let modified = metadata.modified().ok().and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
            let mut header = header(metadata.len());
            header.set_mtime(modified.unwrap_or_default().as_secs());
            let mut source = HashingReader::new(file.take(metadata.len()));
            self.tar.append_data(&mut header, name, &mut source)?;
            let added = source.finish(name);
            if added.bytes != metadata.len() {
                return Err(io::Error::other("its size changes while it is read"));
            }
            self.files.push(added);
            Ok(())
        };
        add().with_context(|| format!("cannot add {} to the backup", path.display()))
    }

    /// Adds the manifest, and waits until the file is on the disk.
    pub fn finish(mut self, manifest: &Manifest) -> Result<()> {
        let json = serde_json::to_vec_pretty(manifest)?;
        let mut finish = || {
            self.tar.append_data(&mut header(json.len() as u64), MANIFEST, json.as_slice())?;
            self.tar.get_mut().flush()?;
            self.tar.finish()
        };
        finish().context("cannot write the end of the backup")?;
        self.tar.into_inner()?.sync_all().context("cannot write the backup")
    }
}

fn header(size: u64) -> Header {
    let mut header = Header::new_gnu();
    header.set_size(size);
    header.set_mode(private_files::FILE_MODE);
    header
}

/// Extracts all files of a backup to the paths that `place` returns for their names, and compares them with the manifest.
///
/// # Errors
/// Returns an error if the file is no backup, is incomplete or damaged, or a file can't be written. Some files may exist then.
pub fn extract(path: &Path, mut place: impl FnMut(&str) -> Option<PathBuf>) -> Result<Manifest> {
    let name = path.display();
    let file = File::open(path).with_context(|| format!("cannot open {name}"))?;
    let mut archive = Archive::new(BufReader::with_capacity(1 << 20, file));
    let mut extracted = BTreeMap::new();
    let mut manifest: Option<Manifest> = None;
    let no_backup = || format!("{name} is no backup of boxoffice, or it is incomplete");
    for entry in archive.entries()? {
        let mut entry = entry.with_context(no_backup)?;
        let entry_name = entry.path().with_context(no_backup)?.display().to_string();
        ensure!(manifest.is_none() && entry.header().entry_type() == EntryType::Regular, no_backup());
        if entry_name == MANIFEST {
            let mut json = Vec::new();
            entry.by_ref().take(MAX_MANIFEST).read_to_end(&mut json).with_context(no_backup)?;
            manifest = Some(read_manifest(&json).with_context(no_backup)?);
            continue;
        }
        ensure!(is_backup_file(&entry_name), "{}: it contains {entry_name:?}", no_backup());
        let mut source = HashingReader::new(entry);
        match place(&entry_name) {
            Some(target) => write(&mut source, &target).with_context(|| format!("cannot write {}", target.display()))?,
            None => drop(io::copy(&mut source, &mut io::sink()).with_context(no_backup)?),
        }
        let file = source.finish(&entry_name);
        extracted.insert(entry_name, file);
    }
    let manifest = manifest.with_context(no_backup)?;
    for expected in &manifest.files {
        match extracted.remove(&expected.name) {
            Some(file) if file == *expected => {}
            Some(_) => bail!("{name} is damaged: the content of {} differs from its checksum", expected.name),
            None => bail!("{name} is damaged: {} is missing", expected.name),
        }
    }
    ensure!(extracted.is_empty(), "{name} is damaged: it contains files that its manifest does not list");
    Ok(manifest)
}

fn read_manifest(json: &[u8]) -> Result<Manifest> {
    #[derive(serde::Deserialize)]
    struct Format {
        format: u32,
    }
    let Format { format } = serde_json::from_slice(json)?;
    ensure!(format == FORMAT, "its format has the version {format}, and this program reads version {FORMAT}");
    Ok(serde_json::from_slice(json)?)
}

fn write(source: &mut impl Read, target: &Path) -> io::Result<()> {
    if let Some(folder) = target.parent() {
        private_files::create_folder(folder)?;
    }
    io::copy(source, &mut private_files::create_file(target)?).map(drop)
}

/// Returns whether a backup may contain a file of this name. No other name is ever written to the disk.
pub fn is_backup_file(name: &str) -> bool {
    let is_plain = |part: &str| {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        part.chars().all(is_plain) && !["", ".", ".."].contains(&part)
    };
    match name.split('/').collect::<Vec<_>>().as_slice() {
        [file] => [DATABASE, MAIL_KEY].contains(file),
        [media, kind, image] => *media == MEDIA && is_plain(kind) && is_plain(image),
        _ => false,
    }
}
