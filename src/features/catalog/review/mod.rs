//! Review: platform administrators approve or reject events, advertisements and venues before they become public.
//!
//! A submission is identified by the base64 of its content's URI, so that content keeps the identifier when it is submitted
//! again. The latest submission counts, and at most one is pending. One `match` in the service applies a decision to each type of
//! content. The decision is then mailed to the account that submitted the content.
//!
//! Events, venues and advertisements call [`submit`] for themselves. A decision calls back into their modules.

mod endpoints;
mod model;
mod service;
mod store;

pub use endpoints::register;
pub use model::{Content, Submission, SubmissionStatus, SubmissionType};
pub use service::submit;
pub use store::{cancel, delete_of_content};
