//! Images: what hosts send for their events and advertisements, and the icons that regions get without anybody sending any.
//!
//! - `image` reads base64 from a body as an [`Image`] that is known to be one.
//! - `store` keeps images by name, in a folder or in an S3 bucket. The database says what has which image.
//! - `icon` draws a region's icon from its country's name.
//!
//! Browsers fetch them by themselves, so the two operations ask for neither a key nor a version, and help caches.

mod endpoints;
mod icon;
mod image;
mod service;
mod store;
mod object_store;

pub use endpoints::register;
pub use icon::name as icon_name;
pub use image::Image;
pub use service::{ImageKind, ImageText, discard, image_uri, parse, put_image};
pub use object_store::MediaStore;
