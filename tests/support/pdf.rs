//! Reads the PDF documents of tickets.

use std::collections::BTreeMap;
use std::io::Read as _;

use data_encoding::HEXUPPER_PERMISSIVE;
use flate2::read::ZlibDecoder;

/// Returns the number of pages of a PDF.
pub fn pages(pdf: &[u8]) -> usize {
    assert!(pdf.starts_with(b"%PDF-1.") && pdf[pdf.len() - 8..].windows(5).any(|end| end == b"%%EOF"), "it is no PDF");
    let count = |text: &[u8]| pdf.windows(text.len()).filter(|window| *window == text).count();
    count(b"/MediaBox")
}

/// Returns the letters that a PDF shows, from its map of glyphs to letters.
pub fn letters(pdf: &[u8]) -> String {
    glyph_letters(pdf).into_values().collect()
}

/// Returns the lines of text of a PDF, with the letters from left to right.
pub fn lines(pdf: &[u8]) -> Vec<String> {
    let letters = glyph_letters(pdf);
    let streams = streams(pdf);
    let lines = streams.iter().flat_map(|stream| stream.lines()).filter_map(|line| line.strip_suffix(" Tj"));
    lines.map(|line| string_bytes(line).chunks(2).map(|glyph| letters[glyph]).collect()).collect()
}

/// Returns the bytes of a string: a hexadecimal one, or a literal with escapes (ISO 32000-1, 7.3.4).
fn string_bytes(string: &str) -> Vec<u8> {
    if let Some(digits) = string.strip_prefix('<') {
        return HEXUPPER_PERMISSIVE.decode(digits.trim_end_matches('>').as_bytes()).unwrap();
    }
    let mut rest = string.strip_prefix('(').unwrap().strip_suffix(')').unwrap();
    let mut bytes = Vec::new();
    while let Some(first) = rest.bytes().next() {
        let octal = rest.get(1..4).and_then(|digits| u8::from_str_radix(digits, 8).ok());
        let (byte, length) = match (first, rest.as_bytes().get(1).copied(), octal) {
            (b'\\', _, Some(octal)) => (octal, 4),
            (b'\\', Some(b'n'), _) => (b'\n', 2),
            (b'\\', Some(b'r'), _) => (b'\r', 2),
            (b'\\', Some(b't'), _) => (b'\t', 2),
            (b'\\', Some(b'b'), _) => (0x08, 2),
            (b'\\', Some(b'f'), _) => (0x0C, 2),
            (b'\\', Some(escaped), _) => (escaped, 2),
            _ => (first, 1),
        };
        bytes.push(byte);
        rest = &rest[length..];
    }
    bytes
}

/// Returns the letters of a PDF by the bytes of their glyph.
fn glyph_letters(pdf: &[u8]) -> BTreeMap<Vec<u8>, char> {
    let pdf = String::from_utf8_lossy(pdf);
    let maps = pdf.split("beginbfchar").skip(1).filter_map(|rest| rest.split("endbfchar").next());
    let pairs = maps.flat_map(str::lines).filter_map(|line| {
        let mut codes = line.split(['<', '>']).skip(1).step_by(2);
        Some((HEXUPPER_PERMISSIVE.decode(codes.next()?.as_bytes()).unwrap(), codes.next()?))
    });
    pairs.map(|(glyph, code)| (glyph, u32::from_str_radix(code, 16).ok().and_then(char::from_u32).unwrap())).collect()
}

/// Returns the compressed streams of a PDF, uncompressed.
pub fn streams(mut pdf: &[u8]) -> Vec<String> {
    let find = |bytes: &[u8], text: &[u8]| bytes.windows(text.len()).position(|window| window == text);
    let mut streams = Vec::new();
    while let Some(at) = find(pdf, b"\nstream\n") {
        pdf = &pdf[at + 8..];
        let end = find(pdf, b"\nendstream").unwrap();
        let mut bytes = Vec::new();
        if ZlibDecoder::new(&pdf[..end]).read_to_end(&mut bytes).is_ok() {
            streams.push(String::from_utf8_lossy(&bytes).into_owned());
        }
        pdf = &pdf[end..];
    }
    streams
}
