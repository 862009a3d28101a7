//! Mail as files, where there is no mail server: for trying the platform out.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use async_trait::async_trait;

use super::transport::{DeliveryError, MailTransport, OutgoingMail};

/// Writes every mail to an `.eml` file of its own, which only the server's user may read: a mail may hold a code.
pub struct FileTransport {
    folder: PathBuf,
}

impl FileTransport {
    /// Mail goes into this folder, which is made with the first one.
    pub fn new(folder: PathBuf) -> Self {
        Self { folder }
    }
}

#[async_trait]
impl MailTransport for FileTransport {
    async fn send(&self, letter: &OutgoingMail) -> Result<String, DeliveryError> {
        let file = self.folder.join(format!("{}.eml", letter.name));
        let (path, text) = (file.clone(), letter.message.formatted());
        let written = tokio::task::spawn_blocking(move || write(&path, &text)).await;
        match written {
            Ok(Ok(())) => Ok(file.display().to_string()),
            Ok(Err(error)) => Err(DeliveryError::Temporary(format!("cannot write {}: {error}", file.display()))),
            Err(error) => Err(DeliveryError::Temporary(format!("cannot write {}: {error}", file.display()))),
        }
    }

    fn timeout(&self) -> Duration {
        Duration::from_secs(30)
    }
}

/// Whoever looks into the folder finds a mail whole or not at all.
fn write(path: &Path, text: &[u8]) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    let unfinished = path.with_extension("part");
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&unfinished)?;
    file.write_all(text)?;
    file.sync_all()?;
    std::fs::rename(&unfinished, path)?;
    // Without this the mail would be forgotten, and its file be gone when the power fails.
    path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
}
