//! Mail as files, for trying the platform out without a mail server.

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::Context;
use async_trait::async_trait;

use super::transport::{DeliveryError, MailTransport, OutgoingMail};
use crate::kernel::private_files;

/// Writes each mail to an `.eml` file. Only the server's user can read it, because a mail may contain a verification code.
pub struct FileTransport {
    folder: PathBuf,
}

impl FileTransport {
    /// Creates a transport that writes to `folder`. The folder is created with the first mail.
    pub fn new(folder: PathBuf) -> Self {
        Self { folder }
    }
}

#[async_trait]
impl MailTransport for FileTransport {
    async fn send(&self, mail: &OutgoingMail) -> Result<String, DeliveryError> {
        let file = self.folder.join(format!("{}.eml", mail.name));
        let (path, text) = (file.clone(), mail.message.formatted());
        let result = tokio::task::spawn_blocking(move || write(&path, &text)).await;
        match result {
            Ok(Ok(())) => Ok(file.display().to_string()),
            Ok(Err(error)) => Err(DeliveryError::Temporary(format!("cannot write {}: {error}", file.display()))),
            Err(error) => Err(DeliveryError::Temporary(format!("cannot write {}: {error}", file.display()))),
        }
    }

    fn timeout(&self) -> Duration {
        Duration::from_secs(30)
    }
}

/// Deletes the mails in a folder that were written before this time.
///
/// # Errors
/// Returns an error if the folder can't be read, or a file can't be deleted.
pub fn delete_before(folder: &Path, before: SystemTime) -> anyhow::Result<()> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        entries => entries.with_context(|| format!("cannot read the folder {}", folder.display()))?,
    };
    for entry in entries {
        let path = entry?.path();
        let is_mail = path.extension().is_some_and(|extension| extension == "eml");
        if is_mail && fs::metadata(&path)?.modified()? < before {
            fs::remove_file(&path).with_context(|| format!("cannot delete {}", path.display()))?;
        }
    }
    Ok(())
}

/// Writes a mail atomically: a file that ends in `.eml` is always complete.
fn write(path: &Path, text: &[u8]) -> io::Result<()> {
    private_files::create_folder(private_files::folder_of(path))?;
    let temporary = path.with_extension("part");
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(private_files::FILE_MODE).open(&temporary)?;
    file.write_all(text)?;
    file.sync_all()?;
    fs::rename(&temporary, path)?;
    // Without this, a power failure could lose the file after the mail was deleted from the outbox.
    private_files::sync_folder_of(path)
}
