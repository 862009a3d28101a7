pub mod catalog;
pub mod codes;
pub mod gate;
pub mod identity;
pub mod insight;
pub mod sales;
