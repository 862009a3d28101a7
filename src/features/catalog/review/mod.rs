//! Review: the platform's staff decide on what others want to make public.
//!
//! A submission is known by the base64 of its content's URI, so that content which is submitted again keeps it; the latest
//! one counts, and at most one is pending. What a decision does to each type of content is one `match` in the service.
//! The rows and the view are below events, venues and advertisements, which submit themselves; the endpoints ask those to carry
//! out the decision, which is then mailed to whoever submitted the content.

mod endpoints;
mod model;
mod service;
mod store;

pub use endpoints::register;
pub use model::{Content, Submission, SubmissionStatus, SubmissionType};
pub use service::submit;
pub use store::forget;
