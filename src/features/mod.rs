pub mod catalog;
pub mod gate;
pub mod identity;
pub mod insight;
pub mod sales;
