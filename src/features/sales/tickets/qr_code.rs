//! QR codes, and images of them.

use anyhow::Context;
use boxoffice_http::error::{Error, Result};
use boxoffice_http::etag;
use fast_qr::{ECL, QRBuilder};
use png::{BitDepth, ColorType, Encoder};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::features::catalog::media::StoredImage;

/// The light modules around a QR code that its standard (ISO/IEC 18004) requires.
const QUIET_ZONE: usize = 4;

/// The format of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum QrCodeFormat {
    /// Pixels.
    Png,
    /// Vectors, for print.
    Svg,
}

/// A QR code as a square of modules, without the quiet zone.
pub struct QrCode {
    /// The number of modules on each side.
    pub width: usize,
    /// True for dark modules, row by row.
    dark: Vec<bool>,
}

/// Neighbouring dark modules of a row.
pub struct DarkRun {
    /// The row.
    pub row: usize,
    /// The column of the first module.
    pub column: usize,
    /// The number of modules.
    pub length: usize,
}

impl QrCode {
    /// Encodes a text.
    ///
    /// # Errors
    /// Returns an error if the text is too long.
    pub fn encode(text: &str) -> anyhow::Result<Self> {
        // Level M repairs 15 % of the code, such as a reflection on a telephone.
        let code = QRBuilder::new(text).ecl(ECL::M).build().context("a code is too long for a QR code")?;
        let width = code.size;
        Ok(Self { width, dark: code.data[..width * width].iter().map(|module| module.value()).collect() })
    }

    /// Returns the dark modules, row by row.
    pub fn runs(&self) -> impl Iterator<Item = DarkRun> {
        self.dark.chunks(self.width).enumerate().flat_map(|(row, modules)| {
            let mut next = 0;
            let runs = modules.chunk_by(|one, other| one == other).map(move |run| {
                let column = next;
                next += run.len();
                (run[0], DarkRun { row, column, length: run.len() })
            });
            runs.filter_map(|(is_dark, run)| is_dark.then_some(run))
        })
    }

    /// Returns the number of modules on each side, with the quiet zone.
    fn outer_width(&self) -> usize {
        self.width + 2 * QUIET_ZONE
    }

    /// Returns a PNG image of `size` pixels on each side. Its modules have a whole number of pixels, so that their edges are sharp;
    /// the rest is a margin.
    fn to_png(&self, size: usize) -> anyhow::Result<Vec<u8>> {
        let scale = (size / self.outer_width()).max(1);
        let margin = size.saturating_sub(scale * self.outer_width()) / 2;
        let pixels = |module: usize, count: usize| {
            let first = margin + (module + QUIET_ZONE) * scale;
            first.min(size)..(first + count * scale).min(size)
        };
        let row_bytes = size.div_ceil(8);
        // A bit is 1 for white.
        let mut bits = vec![0xff; row_bytes * size];
        for run in self.runs() {
            for y in pixels(run.row, 1) {
                for x in pixels(run.column, run.length) {
                    bits[y * row_bytes + x / 8] &= !(0x80 >> (x % 8));
                }
            }
        }
        let mut file = Vec::new();
        let side = u32::try_from(size)?;
        let mut encoder = Encoder::new(&mut file, side, side);
        encoder.set_color(ColorType::Grayscale);
        encoder.set_depth(BitDepth::One);
        encoder.write_header()?.write_image_data(&bits)?;
        Ok(file)
    }

    /// Returns an SVG image of `size` pixels on each side.
    fn to_svg(&self, size: usize) -> String {
        let path: String = self
            .runs()
            .map(|DarkRun { row, column, length }| format!("M{} {}h{length}v1h-{length}z", column + QUIET_ZONE, row + QUIET_ZONE))
            .collect();
        let width = self.outer_width();
        format!(
            r##"<svg xmlns="http://www.w3.org/2000/svg" width="{size}" height="{size}" viewBox="0 0 {width} {width}" shape-rendering="crispEdges"><path fill="#fff" d="M0 0h{width}v{width}H0z"/><path d="{path}"/></svg>"##
        )
    }
}

/// Returns a text as a QR code of `size` pixels on each side, including its quiet zone. A QR code of a ticket has 49 modules on each
/// side, so a smaller image would be unreadable.
///
/// # Errors
/// Returns an error if the text is too long.
pub fn draw(text: &str, format: QrCodeFormat, size: u32) -> Result<StoredImage> {
    let draw = || {
        let (code, size) = (QrCode::encode(text)?, usize::try_from(size)?);
        anyhow::Ok(match format {
            QrCodeFormat::Png => ("image/png", code.to_png(size)?),
            QrCodeFormat::Svg => ("image/svg+xml", code.to_svg(size).into_bytes()),
        })
    };
    let (media_type, bytes) = draw().map_err(Error::Internal)?;
    Ok(StoredImage { media_type, etag: etag::etag_of(&bytes), bytes: bytes.into() })
}
