//! QR codes as images.

use std::fmt::Write;

use anyhow::Context;
use boxoffice_http::error::{Error, Result};
use boxoffice_http::etag;
use png::{BitDepth, ColorType, Encoder};
use qrcode::{Color, EcLevel, QrCode};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::features::catalog::media::StoredImage;

/// The light modules around a QR code that its standard (ISO/IEC 18004) requires.
const QUIET_ZONE: usize = 4;

/// The format of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// Pixels.
    Png,
    /// Vectors, for print.
    Svg,
}

/// A QR code as a square of modules, with the quiet zone.
struct Modules {
    /// The number of modules on each side.
    width: usize,
    /// True for dark modules, row by row.
    dark: Vec<bool>,
}

impl Modules {
    fn encode(text: &str) -> anyhow::Result<Self> {
        // Level M repairs 15 % of the code, such as a reflection on a telephone.
        let code = QrCode::with_error_correction_level(text, EcLevel::M).context("a code is too long for a QR code")?;
        let (inner, colors) = (code.width(), code.to_colors());
        let width = inner + 2 * QUIET_ZONE;
        let mut dark = vec![false; width * width];
        for (index, color) in colors.into_iter().enumerate() {
            let (row, column) = (index / inner + QUIET_ZONE, index % inner + QUIET_ZONE);
            dark[row * width + column] = color == Color::Dark;
        }
        Ok(Self { width, dark })
    }

    /// Returns whether a module is dark. Those outside of the square are light.
    fn is_dark(&self, row: usize, column: usize) -> bool {
        row < self.width && column < self.width && self.dark[row * self.width + column]
    }

    /// Returns a PNG image of `size` pixels on each side. Its modules have a whole number of pixels, so that their edges are sharp;
    /// the rest is a margin.
    fn to_png(&self, size: usize) -> anyhow::Result<Vec<u8>> {
        let scale = (size / self.width).max(1);
        let margin = size.saturating_sub(scale * self.width) / 2;
        let module = |pixel: usize| pixel.checked_sub(margin).map_or(usize::MAX, |pixel| pixel / scale);
        let row_bytes = size.div_ceil(8);
        // A bit is 1 for white.
        let mut bits = vec![0xff; row_bytes * size];
        for y in 0..size {
            for x in (0..size).filter(|x| self.is_dark(module(y), module(*x))) {
                bits[y * row_bytes + x / 8] &= !(0x80 >> (x % 8));
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
        let mut path = String::new();
        for row in 0..self.width {
            let mut column = 0;
            while column < self.width {
                let run = (column..self.width).take_while(|column| self.is_dark(row, *column)).count();
                if run > 0 {
                    let _infallible = write!(path, "M{column} {row}h{run}v1h-{run}z");
                }
                column += run.max(1);
            }
        }
        let width = self.width;
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
pub fn draw(text: &str, format: Format, size: u32) -> Result<StoredImage> {
    let draw = || {
        let (modules, size) = (Modules::encode(text)?, usize::try_from(size)?);
        anyhow::Ok(match format {
            Format::Png => ("image/png", modules.to_png(size)?),
            Format::Svg => ("image/svg+xml", modules.to_svg(size).into_bytes()),
        })
    };
    let (media_type, bytes) = draw().map_err(Error::Internal)?;
    Ok(StoredImage { media_type, etag: etag::etag_of(&bytes), bytes: bytes.into() })
}
