//! The work of decoding a JPEG, before it is decoded. Its decoder limits neither the work nor the memory between the scans.

/// The work of decoding a JPEG.
pub struct DecodingCost {
    /// The number of scans.
    pub scans: u64,
    /// The memory in which the decoder collects the coefficients of several scans, in bytes.
    pub buffered_bytes: u64,
}

/// Returns the work of decoding a JPEG of this many pixels.
///
/// Counts the headers of frames and scans wherever they are: in a damaged segment, the decoder may find one where other programs find
/// none. Other data is hardly ever like a header.
pub fn decoding_cost(file: &[u8], pixels: u64) -> DecodingCost {
    let (mut scans, mut least_in_scan) = (0, u8::MAX);
    let (mut components, mut coefficients, mut is_progressive) = (0, 0, false);
    for (at, _) in file.iter().enumerate().filter(|(_, byte)| **byte == 0xFF) {
        match file[at + 1..] {
            // The length, the precision, the height, the width, the number of components, and the components.
            [marker @ 0xC0..=0xC2, 0, length, 8, _, _, _, _, count @ 1..=4, ref rest @ ..] if length == 8 + 3 * count => {
                components = components.max(count);
                coefficients = coefficients.max(coefficients_of(pixels, rest.chunks_exact(3).take(count.into())));
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
    let is_buffered = is_progressive || least_in_scan < components;
    // A coefficient has 16 bits.
    DecodingCost { scans, buffered_bytes: if is_buffered { coefficients * 2 } else { 0 } }
}

/// Returns the number of coefficients of these components of a frame. Most encoders store the colours at half the width and height.
fn coefficients_of<'a>(pixels: u64, components: impl Iterator<Item = &'a [u8]> + Clone) -> u64 {
    // After the identifier of a component: its horizontal and its vertical sampling factor.
    let factors = components.map(|component| (u64::from(component[1] >> 4), u64::from(component[1] & 0xF)));
    let (widest, highest) = factors.clone().fold((1, 1), |most, factors| (most.0.max(factors.0), most.1.max(factors.1)));
    pixels * factors.map(|(width, height)| width * height).sum::<u64>() / (widest * highest)
}
