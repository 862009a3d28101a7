//! Free space of disks.

use std::io;
use std::path::Path;

use rustix::fs::statvfs;

/// A disk with fewer free bytes is full: the next image or transaction may not fit.
pub const FULL: u64 = 1 << 20;

/// Returns the number of bytes that users other than root can add to the disk of a folder. Returns `None` for a file system without a
/// size, as some network file systems are.
///
/// # Errors
/// Returns an error if the folder doesn't exist.
pub fn free_bytes(folder: &Path) -> io::Result<Option<u64>> {
    let disk = statvfs(folder)?;
    Ok((disk.f_blocks > 0).then(|| disk.f_bavail.saturating_mul(disk.f_frsize)))
}
