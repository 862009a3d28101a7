//! Images: uploads of hosts for their events and advertisements, and generated icons of regions.
//!
//! - `image` validates base64 from a request body and returns an [`Image`].
//! - `object_store` stores image files by name, in a folder or in an S3 bucket. The database has the references to them.
//! - `icon` draws a region's icon from the name of its country.
//!
//! Browsers fetch images directly, so the two operations need neither an API key nor a client version, and allow caching.

mod endpoints;
mod icon;
mod image;
mod object_store;
mod service;
mod store;

pub use endpoints::register;
pub use icon::name as icon_name;
pub use image::Image;
pub use object_store::MediaStore;
pub use service::{ImageKind, ImageText, discard, image_uri, parse, put_image};
