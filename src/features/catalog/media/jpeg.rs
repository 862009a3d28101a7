//! The work of decoding a JPEG, before it is decoded. Its decoder doesn't limit the work of all scans together.

/// Returns the number of scans of a JPEG.
///
/// Counts the headers of scans wherever they are: in a damaged segment, the decoder may find one where other programs find none. Other data
/// is hardly ever like a header.
pub fn scans(file: &[u8]) -> u64 {
    let mut scans = 0;
    for (at, _) in file.iter().enumerate().filter(|(_, byte)| **byte == 0xFF) {
        // The length, and the number of components.
        if let [0xDA, 0, length, count @ 1..=4, ..] = file[at + 1..]
            && length == 6 + 2 * count
        {
            scans += 1;
        }
    }
    scans
}
