//! Removal of metadata from uploaded images. Cameras and programs write the place, the time, the device, previews and texts into
//! images, and phones append videos. Images are public, so that all of this is removed. The pixels stay as they were compressed.

use bytes::Bytes;
use image::ImageFormat;
use image::metadata::Orientation;
use img_parts::ImageEXIF;
use img_parts::png::PngChunk;
use img_parts::riff::{RiffChunk, RiffContent};
use img_parts::webp::WebP;

/// Returns the file of an image without its metadata and without what follows its end. Returns `None` if it has no end or its
/// metadata is damaged, which decoders accept.
///
/// Keeps the colour profile, and this orientation as the only entry of the Exif data. A file without metadata stays the same.
pub fn strip(format: ImageFormat, file: Bytes, orientation: Orientation) -> Option<Bytes> {
    let exif = (orientation != Orientation::NoTransforms).then(|| exif_of(orientation));
    match format {
        ImageFormat::Png => strip_png(&file, exif).map(Bytes::from),
        ImageFormat::WebP => strip_webp(file, exif),
        _ => strip_jpeg(&file, exif).map(Bytes::from),
    }
}

/// Returns Exif data with an orientation as their only entry (Exif 2.32, 4.6.2).
fn exif_of(orientation: Orientation) -> Bytes {
    const HEADER: &[u8] = b"MM\0*\0\0\0\x08";
    // The number of entries, the tag, the type of 16 bits and the number of values.
    const ENTRY: &[u8] = b"\0\x01\x01\x12\0\x03\0\0\0\x01";
    const PADDING_AND_END: &[u8] = &[0; 6];
    [HEADER, ENTRY, &[0, orientation.to_exif()], PADDING_AND_END].concat().into()
}

/// Copies a PNG up to its last chunk. Decoders ignore wrong checksums of metadata, so they are not verified here.
fn strip_png(file: &[u8], exif: Option<Bytes>) -> Option<Vec<u8>> {
    const SIGNATURE: usize = 8;
    let mut exif = exif.map(|exif| PngChunk::new(*b"eXIf", exif).encoder().bytes());
    let (signature, mut rest) = file.split_at_checked(SIGNATURE)?;
    let mut stripped = signature.to_vec();
    loop {
        // The length of the content, the kind, the content, and a checksum.
        let (length, following) = rest.split_first_chunk()?;
        let kind = *following.first_chunk()?;
        let length = usize::try_from(u32::from_be_bytes(*length)).ok()?.checked_add(12)?;
        let (chunk, following) = rest.split_at_checked(length)?;
        if is_chunk_of_picture(kind) {
            stripped.extend_from_slice(chunk);
        }
        if kind == *b"IEND" {
            return Some(stripped);
        }
        // After the header, which is the first chunk.
        stripped.extend(exif.take().into_iter().flatten());
        rest = following;
    }
}

/// Returns whether a chunk of a PNG describes the picture. Decoders need those that begin with a capital letter; of the others, these
/// are about colours, transparency, the size of pixels, and animation.
fn is_chunk_of_picture(kind: [u8; 4]) -> bool {
    const OPTIONAL: [&[u8; 4]; 16] = [
        b"acTL", b"bKGD", b"cHRM", b"cICP", b"cLLI", b"fcTL", b"fdAT", b"gAMA", b"hIST", b"iCCP", b"mDCV", b"pHYs", b"sBIT",
        b"sPLT", b"sRGB", b"tRNS",
    ];
    kind[0].is_ascii_uppercase() || OPTIONAL.contains(&&kind)
}

fn strip_webp(file: Bytes, exif: Option<Bytes>) -> Option<Bytes> {
    const PICTURE: [&[u8; 4]; 7] = [b"VP8X", b"ICCP", b"ANIM", b"ANMF", b"ALPH", b"VP8 ", b"VP8L"];
    /// The flags of Exif and XMP data.
    const METADATA: u8 = 0b1100;
    let mut webp = WebP::from_bytes(file).ok()?;
    webp.chunks_mut().retain(|chunk| PICTURE.contains(&&chunk.id()));
    let header = webp.chunks_mut().iter_mut().find(|chunk| chunk.id() == *b"VP8X").map(RiffChunk::content_mut);
    if let Some(RiffContent::Data(header)) = header {
        let mut changed = header.to_vec();
        *changed.first_mut()? &= !METADATA;
        *header = changed.into();
    }
    // Without Exif data, this call would remove headers that are not needed.
    if exif.is_some() {
        webp.set_exif(exif);
    }
    Some(webp.encoder().bytes())
}

/// Copies the segments of a JPEG that describe the picture, and its pixels. Decoders ignore bytes between the segments.
fn strip_jpeg(file: &[u8], exif: Option<Bytes>) -> Option<Vec<u8>> {
    let mut exif = match exif {
        Some(exif) => Some(exif_segment(&exif)?),
        None => None,
    };
    let (start, mut rest) = file.split_at_checked(2)?;
    let mut stripped = start.to_vec();
    loop {
        rest = rest.get(next_marker(rest)?..)?;
        let [_, marker, following @ ..] = rest else { return None };
        if *marker == 0xD9 {
            stripped.extend(b"\xFF\xD9");
            return Some(stripped);
        }
        let length = 2 + usize::from(u16::from_be_bytes(*following.first_chunk()?));
        let (segment, following) = rest.split_at_checked(length)?;
        rest = following;
        if is_segment_of_picture(*marker, segment.get(4..)?) {
            // A JFIF segment must stay the first one.
            if *marker != 0xE0 {
                stripped.extend(exif.take().into_iter().flatten());
            }
            stripped.extend(segment);
        }
        if *marker == 0xDA {
            let (pixels, following) = rest.split_at_checked(next_marker(rest)?)?;
            stripped.extend(pixels);
            rest = following;
        }
    }
}

/// Returns the position of the next segment, or of the end. The markers left out are in the pixels of a scan, or stand alone.
fn next_marker(bytes: &[u8]) -> Option<usize> {
    bytes.windows(2).position(|pair| pair[0] == 0xFF && !matches!(pair[1], 0x00 | 0x01 | 0xD0..=0xD8 | 0xFF))
}

/// Returns a segment of a JPEG with Exif data.
fn exif_segment(exif: &[u8]) -> Option<Vec<u8>> {
    const PREFIX: &[u8] = b"Exif\0\0";
    let length = u16::try_from(2 + PREFIX.len() + exif.len()).ok()?;
    Some([b"\xFF\xE1", length.to_be_bytes().as_slice(), PREFIX, exif].concat())
}

/// The length of a JFIF segment without a thumbnail.
const JFIF_LENGTH: usize = 14;

/// Returns whether a decoder needs a segment of a JPEG: the frame, the tables, the scans, and the format of the colours.
fn is_segment_of_picture(marker: u8, content: &[u8]) -> bool {
    match marker {
        0xE0 => content.starts_with(b"JFIF\0") && content.len() == JFIF_LENGTH,
        0xE2 => content.starts_with(b"ICC_PROFILE\0"),
        0xEE => content.starts_with(b"Adobe"),
        _ => matches!(marker, 0xC0..=0xDF),
    }
}
