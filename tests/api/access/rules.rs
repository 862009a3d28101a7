//! The access rules of the requirement and of the contract's descriptions, as data.
//!
//! They are independent of the code. Each row calls an operation with the owner's resources, so that every allowed caller
//! succeeds.

use super::callers::Caller::{self, *};

/// Callers, as the groups that they consist of.
pub type Callers = &'static [&'static [Caller]];

/// An operation, a request of it, and the callers who may send it.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    /// The operationId.
    pub operation: &'static str,
    /// Distinguishes several requests of one operation.
    pub variant: &'static str,
    /// The path and query. Names in braces are the owner's resources.
    pub path: &'static str,
    /// The properties that differ from the contract's first example body.
    pub body: &'static str,
    /// The callers who may send it.
    pub may: Callers,
    /// The response to other callers whose key has the scope.
    pub others: (u16, &'static str),
    /// Callers among them with another response.
    pub except: &'static [(Caller, u16, &'static str)],
}

impl Row {
    const fn variant(mut self, variant: &'static str) -> Self {
        self.variant = variant;
        self
    }

    const fn body(mut self, body: &'static str) -> Self {
        self.body = body;
        self
    }

    const fn others(mut self, status: u16, code: &'static str) -> Self {
        self.others = (status, code);
        self
    }

    const fn except(mut self, except: &'static [(Caller, u16, &'static str)]) -> Self {
        self.except = except;
        self
    }

    /// Returns the callers in `may`, without their groups.
    pub fn allowed(&self) -> Vec<Caller> {
        self.may.concat()
    }

    /// Returns its operation and variant.
    pub fn name(&self) -> String {
        if self.variant.is_empty() { self.operation.to_owned() } else { format!("{} ({})", self.operation, self.variant) }
    }
}

const fn row(operation: &'static str, path: &'static str, may: Callers) -> Row {
    Row { operation, variant: "", path, body: "{}", may, others: (403, "resource.not-yours"), except: &[] }
}

/// Customers, each with a session.
const CUSTOMERS: &[Caller] = &[Stranger, Another, Owner, Sender, Recipient, HostAdministrator, FormerAdministrator, OtherHost];
/// The keys of staff, with an account and without.
const STAFF_KEYS: &[Caller] = &[Administrator, StaffProgram];
/// The application and the program with a customer's key, which have no account.
const PROGRAMS: &[Caller] = &[Public, Program];
/// The redeemers of the event.
const REDEEMERS: &[Caller] = &[Redeemer, OtherSection];

/// Every caller, with a key or without.
const ALL: Callers = &[Caller::ALL];
/// No caller: the resource is accessible in another way only.
const NOBODY: Callers = &[];
/// Every valid key, except those of redeemers.
const ANYONE: Callers = &[PROGRAMS, CUSTOMERS, STAFF_KEYS];
/// Every valid key, and the redeemers of the event.
const ANYONE_OR_REDEEMER: Callers = &[PROGRAMS, CUSTOMERS, STAFF_KEYS, REDEEMERS];
/// Customers and staff with an account.
const PEOPLE: Callers = &[CUSTOMERS, &[Administrator]];
/// Customers and all staff.
const PEOPLE_OR_STAFF: Callers = &[CUSTOMERS, STAFF_KEYS];
/// Customers with a session.
const SESSIONS: Callers = &[CUSTOMERS];
/// Staff only.
const STAFF: Callers = &[STAFF_KEYS];
/// The owner and staff.
const OWNER: Callers = &[&[Owner], STAFF_KEYS];
/// Administrators of the host, and staff.
const HOST: Callers = &[&[HostAdministrator], STAFF_KEYS];
/// Administrators of the host only.
const HOST_ALONE: Callers = &[&[HostAdministrator]];
/// The ticket's owner, administrators of the host, and staff.
const HOLDER_OR_HOST: Callers = &[&[Owner, HostAdministrator], STAFF_KEYS];
/// Callers who may admit to any section of the event.
const GATES: Callers = &[&[HostAdministrator], STAFF_KEYS, REDEEMERS];
/// Callers who may admit to the section.
const GATE: Callers = &[&[HostAdministrator, Redeemer], STAFF_KEYS];

/// Valid keys that belong to no session.
const NO_SESSION: &[(Caller, u16, &str)] = &[
    (Public, 404, "resource.not-found"),
    (Program, 404, "resource.not-found"),
    (StaffProgram, 404, "resource.not-found"),
    (Administrator, 404, "resource.not-found"),
];
/// Keys without an account, which must name a customer.
const NO_CUSTOMER: &[(Caller, u16, &str)] = &[(Program, 400, "arguments.invalid"), (StaffProgram, 400, "arguments.invalid")];

/// Every operation, in the order of the contract.
pub const ROWS: &[Row] = &[
    row("session_create", "/sessions", ANYONE).body(r#"{"identification": "{username}", "password": "{password}"}"#),
    row("session_active_get", "/sessions/active", SESSIONS).except(NO_SESSION),
    row("session_active_delete", "/sessions/active", SESSIONS).except(NO_SESSION),
    row("account_session_list", "/accounts/{account}/sessions", OWNER),
    row("account_session_get", "/accounts/{account}/sessions/{session}", OWNER),
    row("account_session_delete", "/accounts/{account}/sessions/{session}", OWNER),
    row("integration_list", "/integrations", STAFF),
    row("integration_create", "/integrations", STAFF).body(r#"{"account": "{account}", "expires": "2998-01-01T00:00:00Z"}"#),
    row("integration_get", "/integrations/{integration}", STAFF),
    row("integration_delete", "/integrations/{integration}", STAFF),
    row("account_list", "/accounts", STAFF),
    row("account_create", "/accounts", ANYONE),
    row("account_create", "/accounts", STAFF).variant("an administrator").body(r#"{"role": "administrator"}"#),
    row("account_get", "/accounts/{account}", OWNER),
    row("account_update", "/accounts/{account}", OWNER),
    row("account_delete", "/accounts/{account}", OWNER),
    row("account_preferences_get", "/accounts/{account}/preferences", OWNER),
    row("account_preferences_update", "/accounts/{account}/preferences", OWNER).body(r#"{"region": "/regions/{region}"}"#),
    row("account_export_get", "/accounts/{account}/export", OWNER),
    row("account_toggle_create", "/accounts/{account}/toggles", STAFF),
    row("account_deletion_create", "/accounts/{account}/deletions", OWNER),
    row("lookup_create", "/lookups", ANYONE).body(r#"{"identification": "{username}"}"#),
    row("verification_create", "/verifications", ANYONE).body(r#"{"email": "{email}"}"#),
    row("verification_get", "/verifications/{verification}", ANYONE),
    row("verification_update", "/verifications/{verification}", ANYONE).body(r#"{"code": "{verification_code}"}"#),
    row("reset_create", "/resets", ANYONE).body(r#"{"email": "{email}"}"#),
    row("reset_get", "/resets/{reset}", ANYONE),
    row("reset_update", "/resets/{reset}", ANYONE).body(r#"{"code": "{reset_code}"}"#),
    row("host_list", "/hosts", ANYONE),
    row("host_create", "/hosts", PEOPLE),
    row("host_get", "/hosts/{host}", ANYONE),
    row("host_update", "/hosts/{host}", HOST),
    row("host_delete", "/hosts/{host}", HOST),
    row("host_administrator_list", "/hosts/{host}/administrators", HOST),
    row("host_administrator_create", "/hosts/{host}/administrators", HOST_ALONE).body(r#"{"account": "{account}"}"#),
    row("host_administrator_delete", "/hosts/{host}/administrators?account={colleague}", HOST_ALONE),
    row("account_host_list", "/accounts/{account}/hosts", OWNER),
    row("region_list", "/regions", ANYONE),
    row("region_create", "/regions", STAFF),
    row("region_get", "/regions/{region}", ANYONE),
    row("region_update", "/regions/{spare_region}", STAFF),
    row("region_delete", "/regions/{spare_region}", STAFF),
    row("category_list", "/categories", ANYONE),
    row("category_create", "/categories", STAFF),
    row("category_get", "/categories/{category}", ANYONE),
    row("category_update", "/categories/{spare_category}", STAFF),
    row("category_delete", "/categories/{spare_category}", STAFF),
    row("venue_list", "/venues", ANYONE),
    row("venue_create", "/venues", PEOPLE_OR_STAFF).body(r#"{"region": "/regions/{region}"}"#),
    row("venue_get", "/venues/{venue}", ANYONE),
    row("venue_get", "/venues/{pending_venue}", OWNER).variant("waiting for review"),
    row("venue_update", "/venues/{spare_venue}", STAFF),
    row("venue_delete", "/venues/{spare_venue}", STAFF),
    row("published_event_list", "/published-events", ANYONE),
    row("event_list", "/events", ANYONE),
    row("event_create", "/events", HOST).body(
        r#"{"host": "/hosts/{host}", "category": "/categories/{category}", "venue": "/venues/{venue}",
            "start": "2998-12-20T19:00", "end": "2998-12-20T23:00"}"#,
    ),
    row("event_get", "/events/{event}", ANYONE_OR_REDEEMER),
    row("event_get", "/events/{draft}", HOST).variant("a draft"),
    row("event_get", "/events/{submitted}", HOST).variant("under review"),
    row("event_get", "/events/{cancelled}", ANYONE).variant("cancelled"),
    row("event_update", "/events/{event}", HOST).body(r#"{"end": "2998-12-20T23:30"}"#),
    row("event_delete", "/events/{draft}", HOST),
    row("event_calendar_get", "/events/{event}/calendar.ics", ANYONE_OR_REDEEMER),
    row("event_calendar_get", "/events/{draft}/calendar.ics", HOST).variant("a draft"),
    row("event_submission_create", "/events/{draft}/submissions", HOST),
    row("event_copy_create", "/events/{event}/copies", HOST).body(r#"{"start": "2998-12-21T19:00", "end": "2998-12-21T23:00"}"#),
    row("event_withdrawal_create", "/events/{event}/withdrawals", HOST),
    row("event_cancellation_create", "/events/{event}/cancellations", HOST),
    row("host_event_list", "/hosts/{host}/events", ANYONE),
    row("account_event_list", "/accounts/{account}/events", OWNER),
    row("section_create", "/events/{event}/sections", HOST),
    row("section_get", "/events/{event}/sections/{section}", ANYONE),
    row("section_get", "/events/{draft}/sections/{draft_section}", HOST).variant("of a draft"),
    row("section_update", "/events/{event}/sections/{section}", HOST),
    row("section_delete", "/events/{event}/sections/{section}", HOST),
    row("section_shorthand_get", "/sections/{section}", ANYONE),
    row("section_shorthand_get", "/sections/{draft_section}", HOST).variant("of a draft"),
    row("section_shorthand_update", "/sections/{section}", HOST),
    row("section_shorthand_delete", "/sections/{section}", HOST),
    row("section_modifier_list", "/events/{event}/sections/{section}/modifiers", ANYONE),
    row("section_modifier_list", "/events/{draft}/sections/{draft_section}/modifiers", HOST).variant("of a draft"),
    row("section_modifier_create", "/events/{event}/sections/{section}/modifiers", HOST),
    row("section_modifier_get", "/events/{event}/sections/{section}/modifiers/{modifier}", ANYONE),
    row("section_modifier_get", "/events/{draft}/sections/{draft_section}/modifiers/{draft_modifier}", HOST)
        .variant("of a draft"),
    row("section_modifier_update", "/events/{event}/sections/{section}/modifiers/{modifier}", HOST),
    row("section_modifier_delete", "/events/{event}/sections/{section}/modifiers/{modifier}", HOST),
    row("submission_list", "/submissions", STAFF),
    row("submission_get", "/submissions/{submission}", STAFF),
    row("submission_delete", "/submissions/{submission}?approved=true", STAFF),
    row("order_list", "/orders", STAFF),
    row("order_create", "/orders", PEOPLE).body(r#"{"items": {"{sold_section}": 1}}"#).except(NO_CUSTOMER),
    row("order_create", "/orders", OWNER)
        .variant("in the owner's name")
        .body(r#"{"items": {"{sold_section}": 1}, "customer": "{account}"}"#),
    row("quote_create", "/quotes", ANYONE).body(r#"{"items": {"{sold_section}": 1}}"#),
    row("order_get", "/orders/{order}", HOLDER_OR_HOST),
    row("order_get", "/orders/{joint_order}", &[&[Sender, HostAdministrator, OtherHost], STAFF_KEYS])
        .variant("to events of two hosts"),
    row("order_cancellation_create", "/orders/{open_order}/cancellations", OWNER),
    row("order_return_list", "/orders/{order}/returns", HOLDER_OR_HOST),
    row("order_return_list", "/orders/{joint_order}/returns", &[&[Sender], STAFF_KEYS]).variant("to events of two hosts"),
    row("order_return_create", "/orders/{order}/returns", HOST),
    row("order_return_create", "/orders/{joint_order}/returns", STAFF).variant("to events of two hosts"),
    row("order_return_get", "/orders/{returned_order}/returns/{entry}", HOLDER_OR_HOST),
    row("order_void_list", "/orders/{order}/voids", HOLDER_OR_HOST),
    row("order_void_list", "/orders/{joint_order}/voids", &[&[Sender], STAFF_KEYS]).variant("to events of two hosts"),
    row("order_void_create", "/orders/{order}/voids", STAFF),
    row("account_order_list", "/accounts/{account}/orders", OWNER),
    row("event_order_list", "/events/{event}/orders", HOST),
    row("event_complimentary_order_create", "/events/{event}/complimentary-orders", HOST)
        .body(r#"{"account": "{account}", "items": {"{sold_section}": 1}}"#),
    row("event_return_list", "/events/{cancelled}/returns", HOST),
    row("event_return_create", "/events/{cancelled}/returns", HOST),
    row("event_return_get", "/events/{cancelled}/returns/{event_return}", HOST),
    row("host_order_list", "/hosts/{host}/orders", HOST),
    row("order_document_get", "/orders/{order}/tickets.pdf", OWNER),
    row("section_waiting_entry_list", "/events/{event}/sections/{full_section}/waiting-list", HOST),
    row("section_waiting_entry_create", "/events/{event}/sections/{taken_section}/waiting-list", PEOPLE),
    row("section_waiting_entry_get", "/events/{event}/sections/{full_section}/waiting-list/{waiting_entry}", HOLDER_OR_HOST),
    row("section_waiting_entry_delete", "/events/{event}/sections/{full_section}/waiting-list/{waiting_entry}", OWNER),
    row("account_waiting_entry_list", "/accounts/{account}/waiting-list", OWNER),
    row("order_payment_list", "/orders/{order}/payments", HOLDER_OR_HOST),
    row("order_payment_list", "/orders/{joint_order}/payments", &[&[Sender], STAFF_KEYS]).variant("to events of two hosts"),
    row("order_payment_create", "/orders/{open_order}/payments", OWNER),
    row("order_payment_create", "/orders/{open_order}/payments", STAFF)
        .variant("outside the platform")
        .body(r#"{"method": "external", "token": null, "reference": "Receipt 1"}"#),
    row("order_payment_get", "/orders/{order}/payments/{payment}", HOLDER_OR_HOST),
    row("transaction_list", "/transactions", STAFF),
    row("transaction_get", "/transactions/{transaction}", STAFF),
    row("host_transaction_list", "/hosts/{host}/transactions", HOST),
    row("ticket_get", "/tickets/{ticket}", HOLDER_OR_HOST),
    row("ticket_code_get", "/tickets/{ticket}/code", HOLDER_OR_HOST),
    row("ticket_code_image_get", "/tickets/{ticket}/code/png", HOLDER_OR_HOST),
    row("ticket_key_list", "/ticket-keys", ALL),
    row("account_ticket_list", "/accounts/{account}/tickets", OWNER),
    row("event_ticket_list", "/events/{event}/tickets", GATES),
    // Another account's serial is an unknown serial.
    row("transfer_create", "/transfers", &[&[Owner]])
        .body(r#"{"recipient": "{recipient}", "tickets": ["{serial}"]}"#)
        .others(400, "arguments.invalid")
        .except(&[(Program, 403, "resource.not-yours"), (StaffProgram, 403, "resource.not-yours")]),
    row("transfer_get", "/transfers/{transfer}", &[&[Sender, Recipient], STAFF_KEYS]),
    row("transfer_delete", "/transfers/{transfer}", &[&[Sender, Recipient]]),
    row("transfer_claim_create", "/transfers/{transfer}/claims", &[&[Recipient]]),
    row("transfer_rejection_create", "/transfers/{transfer}/rejections", &[&[Recipient]]),
    row("account_transfer_list", "/accounts/{account}/transfers", OWNER),
    row("event_token_list", "/events/{event}/tokens", HOST),
    row("event_token_create", "/events/{event}/tokens", HOST).body(r#"{"sections": ["{sold_section}"]}"#),
    row("event_token_get", "/events/{event}/tokens/{token}", HOST),
    row("event_token_update", "/events/{event}/tokens/{token}", HOST).body(r#"{"sections": ["{sold_section}"]}"#),
    row("event_token_delete", "/events/{event}/tokens/{token}", HOST),
    row("event_token_code_create", "/events/{event}/tokens/{token}/codes", HOST),
    row("token_authentication_get", "/tokens/{code}", ANYONE),
    row("event_admission_list", "/events/{event}/admissions", GATES),
    row("event_admission_create", "/events/{event}/admissions", GATE).body(r#"{"serials": ["{serial}"]}"#).except(&[(
        OtherSection,
        400,
        "admission.none",
    )]),
    row("event_admission_get", "/events/{event}/admissions/{admission}", GATE),
    // An account has made the admission, so no token may undo it.
    row("event_admission_delete", "/events/{event}/admissions/{admission}", HOST),
    row("event_scan_create", "/events/{event}/scans", GATE).body(r#"{"serials": ["{serial}"]}"#).except(&[(
        OtherSection,
        400,
        "admission.none",
    )]),
    row("event_gate_list_get", "/events/{event}/gate-list", GATES),
    row("event_offline_scan_create", "/events/{event}/offline-scans", GATES)
        .body(r#"{"scans": [{"serial": "{serial}", "scanned": "2998-01-01T00:00:00Z"}]}"#),
    row("event_admission_conflict_list", "/events/{event}/admission-conflicts", GATES),
    row("zone_list", "/zones", ANYONE),
    row("zone_create", "/zones", STAFF),
    row("zone_get", "/zones/{zone}", ANYONE),
    row("zone_update", "/zones/{spare_zone}", STAFF),
    row("zone_delete", "/zones/{spare_zone}", STAFF),
    row("advertisement_list", "/advertisements", ANYONE),
    row("advertisement_create", "/advertisements", HOST).body(
        r#"{"event": "{event}", "zones": ["{zone}"], "schedule": [{"start": "2020-01-01 00:00", "end": "2998-01-01 00:00"}]}"#,
    ),
    row("advertisement_get", "/advertisements/{advertisement}", ANYONE),
    row("advertisement_get", "/advertisements/{draft_advertisement}", HOST).variant("a draft"),
    row("advertisement_update", "/advertisements/{draft_advertisement}", HOST),
    row("advertisement_delete", "/advertisements/{draft_advertisement}", HOST),
    row("advertisement_submission_create", "/advertisements/{draft_advertisement}/submissions", HOST),
    row("advertisement_cancellation_create", "/advertisements/{advertisement}/cancellations", HOST),
    row("zone_advertisement_list", "/zones/{zone}/advertisements", ANYONE),
    row("host_advertisement_list", "/hosts/{host}/advertisements", HOST),
    row("host_statistics_get", "/hosts/{host}/statistics", HOST),
    row("event_statistics_get", "/events/{event}/statistics", HOST),
    row("event_sales_get", "/events/{event}/sales", HOST),
    row("event_sales_day_list", "/events/{event}/sales/days", HOST),
    row("event_order_export_get", "/events/{event}/exports/orders", HOST),
    row("event_ticket_export_get", "/events/{event}/exports/tickets", HOST),
    row("host_transaction_export_get", "/hosts/{host}/exports/transactions", HOST),
    row("audit_list", "/audit", STAFF),
    row("order_history_get", "/orders/{order}/history", STAFF),
    row("account_history_get", "/accounts/{account}/history", STAFF),
    row("country_list", "/countries", ANYONE),
    row("time_get", "/time", ANYONE),
    row("defaults_get", "/defaults", ANYONE),
    row("media_icon_get", "/media/ghana.png", ALL),
    row("media_image_get", "/media/banner/{event}", ALL),
    row("media_image_get", "/media/banner/{draft}", NOBODY).variant("of a draft").others(404, "resource.not-found"),
    row("media_image_get", "/media/banner/{draft}?secret={draft_secret}", ALL).variant("of a draft, by its secret"),
];
