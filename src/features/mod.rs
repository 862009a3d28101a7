pub mod identity;
pub mod catalog;
pub mod sales;
pub mod gate;
pub mod insight;
