pub mod admissions;
