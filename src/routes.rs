//! Every endpoint.

use boxoffice_http::error::Code;
use futures::FutureExt;
use serde_json::json;

use crate::admin_listener;
use crate::features::catalog::{
    advertisements, categories, event_copies, events, hosts, media, preferences, price_modifiers, regions, review, sections,
    tokens, venues, zones,
};
use crate::features::codes;
use crate::features::gate::{admissions, gate_lists};
use crate::features::identity::{account_lookups, accounts, integrations, sessions, verification_codes};
use crate::features::insight::{account_export, audit_log, exports, histories, reports, server_info};
use crate::features::sales::{account_deletion, event_returns, ledger, orders, payments, ticket_documents, tickets, transfers};
use crate::kernel::http::Routes;
use crate::kernel::outbox::OPEN_PAGE;
use crate::open_page;
use crate::state::App;

/// Returns the table of endpoints.
pub fn routes() -> Routes<App> {
    let mut routes = Routes::new();
    for register in [
        sessions::register,
        accounts::register,
        account_lookups::register,
        verification_codes::register,
        integrations::register,
        server_info::register,
        hosts::register,
        regions::register,
        preferences::register,
        venues::register,
        categories::register,
        events::register,
        event_copies::register,
        sections::register,
        price_modifiers::register,
        zones::register,
        advertisements::register,
        review::register,
        orders::register,
        orders::waiting_list::register,
        event_returns::register,
        payments::register,
        ledger::register,
        tickets::register,
        ticket_documents::register,
        transfers::register,
        tokens::register,
        admissions::register,
        gate_lists::register,
        account_deletion::register,
        reports::register,
        audit_log::register,
        histories::register,
        exports::register,
        account_export::register,
        media::register,
    ] {
        register(&mut routes);
    }
    let codes: Vec<&str> = codes::all().into_iter().map(Code::as_str).collect();
    routes.set_error_property("code", json!({ "type": "string", "enum": codes }));
    admin_listener::add_health_checks(&mut routes);
    routes.add_outside_contract(OPEN_PAGE, |_, app, _| async move { open_page::respond(&app) }.boxed());
    for path in boxoffice_reference::PATHS {
        routes.add_outside_contract(path, |path, app, _| app.reference_pages.respond(path));
    }
    routes
}
