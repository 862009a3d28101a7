//! The contract compared with the required operations, and with the required scopes.

use std::collections::{BTreeMap, BTreeSet};

use boxoffice_openapi::METHODS;
use boxoffice_openapi::Scope;
use serde_json::json;

use crate::support::operations;

/// The required operations, as methods and paths.
const REQUIRED: &str = include_str!("data/operations.txt");

/// Returns a method and path without the names of variables, which the contract may choose.
fn shape(operation: &str) -> String {
    let segments = operation.trim().split('/').map(|segment| if segment.starts_with('{') { "{}" } else { segment });
    segments.collect::<Vec<_>>().join("/")
}

fn required() -> BTreeSet<String> {
    REQUIRED.lines().filter(|line| !line.trim().is_empty()).map(shape).collect()
}

/// Returns the contract's operations with or without `x-supplement`.
fn contracted(is_supplement: bool) -> BTreeSet<String> {
    let operations = operations().iter().filter(|operation| operation.is_supplement() == is_supplement);
    operations.map(|operation| shape(&format!("{} {}", operation.method, operation.path))).collect()
}

fn assert_empty<'a>(wrong: impl Iterator<Item = &'a String>) {
    let wrong: Vec<_> = wrong.collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn contract_contains_every_required_operation() {
    let all: BTreeSet<_> = contracted(false).union(&contracted(true)).cloned().collect();
    assert!(required().len() >= 98, "the list is whole");
    assert_empty(required().difference(&all));
}

#[test]
fn additional_operations_are_marked() {
    assert_empty(contracted(false).difference(&required()));
}

#[test]
fn required_operations_are_not_marked() {
    assert_empty(contracted(true).intersection(&required()));
}

/// The operations without a key: images for browsers, and public keys.
const OPEN: [&str; 3] = ["media_icon_get", "media_image_get", "ticket_key_list"];

#[test]
fn every_protected_operation_requires_api_key() {
    let document = boxoffice::contract::load().unwrap().document.clone();
    let schemes = document["components"]["securitySchemes"].as_object().unwrap();
    assert_eq!(schemes.keys().collect::<Vec<_>>(), ["SessionKey"]);
    let scheme = &schemes["SessionKey"];
    assert_eq!((&scheme["type"], &scheme["in"], &scheme["name"]), (&json!("apiKey"), &json!("header"), &json!("X-API-Key")));

    let mut requested = 0;
    for item in document["paths"].as_object().unwrap().values() {
        for operation in METHODS.iter().filter_map(|method| item.get(method)) {
            let security = operation.get("security").unwrap_or(&document["security"]);
            let is_open = OPEN.iter().any(|open| operation["operationId"] == *open);
            let expected = if is_open { json!([]) } else { json!([{ "SessionKey": [] }]) };
            assert_eq!(security, &expected, "{}", operation["operationId"]);
            requested += 1;
        }
    }
    assert_eq!(requested, operations().len());
}

/// The lowest scope of each operation, in order. Higher scopes include lower ones.
const LOWEST: &[(Scope, &str)] = &[
    (
        Scope::Public,
        "session_create token_authentication_get lookup_create verification_create verification_update reset_create reset_update \
         account_create country_list time_get defaults_get published_event_list host_list host_get region_list region_get \
         category_list category_get venue_list venue_get zone_list zone_get zone_advertisement_list",
    ),
    (Scope::Public, "session_active_get session_active_delete"),
    (
        Scope::Administrator,
        "account_list account_toggle_create order_list integration_list integration_create integration_get integration_delete \
         submission_list submission_get submission_delete region_create region_update region_delete category_create \
         category_update category_delete zone_create zone_update zone_delete venue_update venue_delete transaction_list \
         transaction_get order_void_create audit_list order_history_get account_history_get",
    ),
    (
        Scope::Customer,
        "account_get account_update account_delete account_preferences_get account_preferences_update account_deletion_create \
         account_session_list account_session_get account_session_delete account_host_list account_event_list \
         account_order_list account_ticket_list account_transfer_list",
    ),
    (Scope::Customer, "host_create host_update host_delete host_administrator_create host_administrator_delete"),
    (Scope::Customer, "host_administrator_list host_advertisement_list host_statistics_get host_transaction_list"),
    (
        Scope::Customer,
        "event_create event_copy_create event_update event_delete event_submission_create event_cancellation_create event_withdrawal_create \
         section_create section_update section_delete section_shorthand_update section_shorthand_delete section_modifier_create \
         section_modifier_update section_modifier_delete event_token_list event_token_create event_token_get \
         event_token_update event_token_delete event_token_code_create event_statistics_get event_sales_get",
    ),
    (
        Scope::Public,
        "event_list host_event_list event_get event_calendar_get section_get section_shorthand_get section_modifier_get \
         section_modifier_list quote_create",
    ),
    (
        Scope::Customer,
        "event_ticket_list event_admission_list event_admission_create event_admission_get event_admission_delete event_scan_create \
         event_gate_list_get event_offline_scan_create event_admission_conflict_list",
    ),
    (
        Scope::Customer,
        "order_create order_get order_payment_list order_payment_create order_payment_get order_cancellation_create \
         order_return_create order_return_list order_return_get order_void_list event_order_list host_order_list \
         event_complimentary_order_create event_return_list event_return_create event_return_get event_sales_day_list \
         event_order_export_get event_ticket_export_get host_transaction_export_get",
    ),
    (Scope::Customer, "ticket_code_get ticket_code_image_get"),
    (
        Scope::Customer,
        "section_waiting_entry_list section_waiting_entry_create section_waiting_entry_get section_waiting_entry_delete \
         account_waiting_entry_list",
    ),
    (Scope::Customer, "transfer_create transfer_get transfer_delete transfer_claim_create transfer_rejection_create"),
    (
        Scope::Customer,
        "advertisement_create advertisement_update advertisement_delete advertisement_submission_create \
         advertisement_cancellation_create",
    ),
    (Scope::Public, "advertisement_list advertisement_get"),
    (Scope::Customer, "venue_create"),
];

/// Operations that a redeemer's key may call as well.
const REDEEMERS: [&str; 11] = [
    "event_get",
    "event_calendar_get",
    "event_ticket_list",
    "event_admission_list",
    "event_admission_create",
    "event_admission_get",
    "event_admission_delete",
    "event_scan_create",
    "event_gate_list_get",
    "event_offline_scan_create",
    "event_admission_conflict_list",
];

#[test]
fn every_operation_has_expected_scopes() {
    let contracted: BTreeMap<_, _> = operations().iter().map(|operation| (&*operation.id, &*operation.scopes)).collect();
    for (lowest, id) in LOWEST.iter().flat_map(|(lowest, ids)| ids.split(' ').map(move |id| (lowest, id))) {
        let rising = [Scope::Public, Scope::Customer, Scope::Administrator];
        let mut expected: Vec<_> = rising.into_iter().skip_while(|scope| scope != lowest).collect();
        if REDEEMERS.contains(&id) {
            expected.push(Scope::Redeemer);
        }
        assert_eq!(contracted.get(id).copied(), Some(&*expected), "{id}");
    }
    for (id, scopes) in &contracted {
        assert_eq!(scopes.contains(&Scope::Redeemer), REDEEMERS.contains(id), "{id}");
    }
}
