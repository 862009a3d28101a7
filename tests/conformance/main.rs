//! Tests of the contract itself and of the tools that hold a server to it: `boxoffice compare`, `boxoffice mock`, `boxoffice drift`.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../support/mod.rs"]
#[allow(dead_code, unused_imports, clippy::allow_attributes, reason = "shared by several test binaries")]
mod support;

mod changelog;
mod compare;
mod deprecation;
mod diff;
mod drift;
#[expect(dead_code, reason = "the fixture's endpoints are described and never called")]
mod drift_fixture;
mod error_catalogue;
mod mock;
mod mutator;
mod names;
mod proxy;
mod requirement;
mod response_validation;
mod validating_proxy;
