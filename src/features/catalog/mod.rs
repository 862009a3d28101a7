//! Catalog: the offers of hosts, their reference data and their review.
//!
//! Hosts create events with sections, price modifiers and admission tokens, and advertisements that promote the events in zones.
//! Platform administrators maintain categories, regions and zones, and review events, advertisements and venues before they
//! become public.

pub mod advertisements;
pub mod categories;
pub mod event_copies;
pub mod events;
pub mod folded_names;
pub mod hosts;
pub mod media;
pub mod preferences;
pub mod price_modifiers;
pub mod regions;
pub mod review;
pub mod sections;
pub mod tokens;
pub mod venues;
pub mod zones;
