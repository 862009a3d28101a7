//! What everything else is built from: addresses, time, identifiers, money, paging and the formats of the wire. Depends on
//! nothing here.

pub mod address;
pub mod clock;
pub mod id;
pub mod money;
pub mod paging;
pub mod period;
pub mod secret;
pub mod version;
pub mod api_types;
