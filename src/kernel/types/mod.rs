//! Value types: identifiers, time, money, pagination, secrets, and types of request and response properties. They don't depend on
//! other modules of the server.

pub mod api_types;
pub mod clock;
pub mod currency;
pub mod embedded;
pub mod folding;
pub mod id;
pub mod language;
pub mod money;
pub mod paging;
pub mod period;
pub mod secret;
pub(crate) mod stored_text;
