//! The checks of an operation, by subject. These methods of [`OperationRun`] call them, in this order:
//!
//! | method | checks | servers |
//! |---|---|---|
//! | [`run`], several operations at once | `document`, `responses`, `arguments`, `authentication`, `paths` | all |
//! | [`run_with_task`] | the same, of operations whose resource became known meanwhile | all |
//! | [`check_pages`] | the pages in `lists` | all |
//! | [`run_in_turn`] | `methods`, `ignored_parameters`, unclear JSON in `conflicts` | all |
//! | | `unknown_resources`, `life`, `updates`, `conditional`, `actions`, `repeats`, `conflicts`; for a GET, `lists`, `filters`, `sorts` | real ones |
//! | [`run_last`] | removal of a used resource in `conflicts` | real ones |
//!
//! The response to a valid request is also checked by `reference`, `persistence` and `self_links`, each response whose declaration is
//! checked by `declared_values`, and every response by `messages`.
//!
//! [`OperationRun`]: super::operation_run::OperationRun
//! [`run`]: super::operation_run::OperationRun::run
//! [`run_with_task`]: super::operation_run::OperationRun::run_with_task
//! [`check_pages`]: super::operation_run::OperationRun::check_pages
//! [`run_in_turn`]: super::operation_run::OperationRun::run_in_turn
//! [`run_last`]: super::operation_run::OperationRun::run_last

mod actions;
mod arguments;
mod authentication;
mod changed_values;
mod conditional;
mod conflicts;
mod declared_values;
mod document;
mod filters;
mod ignored_parameters;
mod life;
pub mod list_reader;
mod lists;
mod messages;
mod methods;
mod paths;
mod persistence;
mod reference;
mod repeats;
mod responses;
mod self_links;
mod sorts;
mod unknown_resources;
pub mod updates;
