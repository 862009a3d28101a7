//! The work of decoding a JPEG, before it is decoded. Its decoder limits neither the work nor the memory between the scans.

/// The work of decoding a JPEG.
pub struct DecodingCost {
    /// The pixels of the image, once for each scan.
    pub scanned_pixels: u64,
    /// The memory in which the decoder collects the coefficients of several scans, in bytes.
    pub buffered_bytes: u64,
}

/// Returns the work of decoding a JPEG of this many pixels.
///
/// Counts the headers of frames and scans wherever they are: in a damaged segment, the decoder may find one where other programs find
/// none. Other data is hardly ever like a header.
pub fn decoding_cost(file: &[u8], pixels: u64) -> DecodingCost {
    let (mut scans, mut components, mut is_progressive, mut least_in_scan) = (0, 0, false, u8::MAX);
    for (at, _) in file.iter().enumerate().filter(|(_, byte)| **byte == 0xFF) {
        match file[at + 1..] {
            // The length, the precision, the height, the width, and the number of components.
            [marker @ 0xC0..=0xC2, 0, length, 8, _, _, _, _, count, ..] if u16::from(length) == 8 + 3 * u16::from(count) => {
                components = components.max(count);
                is_progressive |= marker == 0xC2;
            }
            // The length, and the number of components.
            [0xDA, 0, length, count @ 1..=4, ..] if length == 6 + 2 * count => {
                scans += 1;
                least_in_scan = least_in_scan.min(count);
            }
            _ => {}
        }
    }
    // The pixels of a scan with all components are complete, and need not be collected.
    let buffered_components = if is_progressive || least_in_scan < components { u64::from(components) } else { 0 };
    // A coefficient has 16 bits.
    DecodingCost { scanned_pixels: pixels * scans, buffered_bytes: pixels * buffered_components * 2 }
}
