//! Watching the files of a document for changes.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::mpsc::{Receiver, channel};
use tokio::time::timeout;

/// A change is complete after this time without another one: editors write a file in several steps.
const QUIET_TIME: Duration = Duration::from_millis(100);

/// A watcher of files.
pub struct FileWatcher {
    /// The watched files.
    pub files: Vec<PathBuf>,
    changes: Receiver<()>,
    _watcher: RecommendedWatcher,
}

impl FileWatcher {
    /// Starts to watch files. Their folders are watched, because editors replace a file by a new one. For a file in a missing folder,
    /// that folder is watched for in the nearest existing one.
    ///
    /// # Errors
    /// Returns an error if a folder can't be watched.
    pub fn new(files: &[PathBuf]) -> anyhow::Result<Self> {
        // One pending change is enough: the files are read after it.
        let (sender, changes) = channel(1);
        let absolute = |file: &PathBuf| std::path::absolute(file).with_context(|| format!("cannot watch {}", file.display()));
        let absolute_files = files.iter().map(absolute).collect::<anyhow::Result<Vec<_>>>()?;
        let watched: Vec<PathBuf> = absolute_files.iter().map(|file| nearest_path(file).to_owned()).collect();
        let mut folders: Vec<PathBuf> = watched.iter().filter_map(|file| file.parent()).map(Path::to_owned).collect();
        folders.sort();
        folders.dedup();
        let notify_change = move |event: notify::Result<Event>| {
            let is_change = |event: &Event| !matches!(event.kind, EventKind::Access(_));
            let is_watched = |event: &Event| event.paths.iter().any(|path| watched.contains(path));
            if event.is_ok_and(|event| is_change(&event) && is_watched(&event)) {
                // A full channel already has a pending change.
                let _pending = sender.try_send(());
            }
        };
        let mut watcher = notify::recommended_watcher(notify_change).context("cannot watch files")?;
        for folder in folders {
            let watched = watcher.watch(&folder, RecursiveMode::NonRecursive);
            watched.with_context(|| format!("cannot watch {}", folder.display()))?;
        }
        Ok(Self { files: files.to_vec(), changes, _watcher: watcher })
    }

    /// Waits until a file was changed.
    pub async fn changed(&mut self) {
        if self.changes.recv().await.is_none() {
            std::future::pending::<()>().await;
        }
        while let Ok(Some(())) = timeout(QUIET_TIME, self.changes.recv()).await {}
    }
}

/// Returns the path of a file, or of its first missing folder.
fn nearest_path(file: &Path) -> &Path {
    file.ancestors().find(|path| path.parent().is_some_and(Path::is_dir)).unwrap_or(file)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use std::fs;

    use super::*;

    #[tokio::test]
    async fn notices_changed_and_replaced_files() {
        let folder = tempfile::tempdir().unwrap();
        let [watched, new] = ["a.yaml", "new.yaml"].map(|name| folder.path().join(name));
        fs::write(&watched, "1").unwrap();
        let mut watcher = FileWatcher::new(std::slice::from_ref(&watched)).unwrap();
        let waits = Duration::from_secs(10);

        fs::write(&watched, "2").unwrap();
        timeout(waits, watcher.changed()).await.unwrap();
        fs::write(&new, "3").unwrap();
        fs::rename(&new, &watched).unwrap();
        timeout(waits, watcher.changed()).await.unwrap();
    }

    #[tokio::test]
    async fn ignores_other_files() {
        let folder = tempfile::tempdir().unwrap();
        let [watched, other] = ["a.yaml", "b.yaml"].map(|name| folder.path().join(name));
        fs::write(&watched, "1").unwrap();
        let [mut watcher, mut watcher_of_other] =
            [&watched, &other].map(|file| FileWatcher::new(std::slice::from_ref(file)).unwrap());

        fs::write(&other, "2").unwrap();
        timeout(Duration::from_secs(10), watcher_of_other.changed()).await.unwrap();
        assert!(timeout(3 * QUIET_TIME, watcher.changed()).await.is_err(), "another file was changed");
    }

    #[tokio::test]
    async fn notices_missing_folder() {
        let folder = tempfile::tempdir().unwrap();
        let mut watcher = FileWatcher::new(&[folder.path().join("schemas/pets/a.yaml")]).unwrap();
        fs::create_dir(folder.path().join("schemas")).unwrap();
        timeout(Duration::from_secs(10), watcher.changed()).await.unwrap();
    }
}
