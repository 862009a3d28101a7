//! Images: uploads of hosts for their events and advertisements, and generated icons of regions.
//!
//! - `image` validates base64 from a request body and returns an [`Image`], from which `metadata` has removed the metadata.
//!   `jpeg` computes beforehand what it costs to decode a JPEG.
//! - `object_store` stores image files by name, in a folder or in an S3 bucket. The database has the references to them.
//! - `generated` draws and caches the icons of countries, and placeholders for images of events that were not uploaded.
//!
//! Browsers fetch images directly, so the two operations need neither an API key nor a client version, and allow caching.

pub mod drawing;
mod endpoints;
mod generated;
mod icon;
pub mod image;
mod jpeg;
mod metadata;
mod object_store;
mod service;
mod store;
mod workers;

pub use endpoints::{ImageResponse, register};
pub use generated::GeneratedImages;
pub use icon::{initials, name as icon_name};
pub use image::Image;
pub use object_store::{MediaStore, StoredImage};
pub use service::{ImageKind, ImageText, copy, discard, image_uri, is_uri_of, parse, parse_upload, put_image, stored_images};
pub use workers::image_uploads;
