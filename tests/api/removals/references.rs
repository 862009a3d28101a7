//! The references between resources.

/// A reference from the request of an operation to another resource.
#[derive(Debug)]
pub struct Reference {
    /// The operationId.
    pub operation: &'static str,
    /// The kind of resource that is removed.
    pub removed: &'static str,
    /// The foreign keys behind the reference, as `table(columns)`.
    pub foreign_keys: &'static [&'static str],
    /// The responses of the request after the removal.
    pub refused: &'static [(u16, &'static str)],
    /// The responses of the removal after the request.
    pub kept: &'static [(u16, &'static str)],
    /// True if the removal may succeed after the request.
    pub cascades: bool,
}

const INVALID: (u16, &str) = (400, "arguments.invalid");
const UNKNOWN: (u16, &str) = (404, "resource.not-found");

const fn refused_by_removal(
    operation: &'static str,
    removed: &'static str,
    foreign_keys: &'static [&'static str],
    refused: &'static [(u16, &'static str)],
) -> Reference {
    Reference { operation, removed, foreign_keys, refused, kept: &[], cascades: true }
}

const fn exclusive(
    operation: &'static str,
    removed: &'static str,
    foreign_keys: &'static [&'static str],
    refused: &'static [(u16, &'static str)],
    kept: &'static [(u16, &'static str)],
) -> Reference {
    Reference { operation, removed, foreign_keys, refused, kept, cascades: false }
}

/// Every reference. With `exclusive`, either the request or the removal is rejected; with `refused_by_removal`, the removal
/// may also come second.
pub const REFERENCES: &[Reference] = &[
    exclusive("venue_create", "region", &["venues(region_id)"], &[INVALID], &[(409, "region.in-use")]),
    exclusive("venue_update", "region", &[], &[INVALID], &[(409, "region.in-use")]),
    exclusive("event_create", "category", &["events(category_id,subcategory)"], &[INVALID], &[(409, "category.in-use")]),
    exclusive("event_create", "subcategory", &[], &[INVALID], &[(409, "category.in-use")]),
    exclusive("event_create", "venue", &["events(venue_id)"], &[INVALID], &[(409, "venue.in-use")]),
    refused_by_removal("event_create", "host", &["events(host_id)"], &[(409, "host.removed")]),
    exclusive("event_update", "category", &[], &[INVALID], &[(409, "category.in-use")]),
    exclusive("event_update", "subcategory", &[], &[INVALID], &[(409, "category.in-use")]),
    exclusive("event_update", "venue", &[], &[INVALID], &[(409, "venue.in-use")]),
    refused_by_removal("category_update", "category", &["subcategories(category_id)"], &[UNKNOWN]),
    refused_by_removal("section_create", "event", &["sections(event_id)"], &[UNKNOWN]),
    refused_by_removal("section_update", "event", &[], &[UNKNOWN]),
    refused_by_removal("section_shorthand_update", "event", &[], &[UNKNOWN]),
    refused_by_removal("section_modifier_create", "section", &["modifiers(section_id)"], &[UNKNOWN]),
    refused_by_removal("section_modifier_create", "event", &[], &[UNKNOWN]),
    refused_by_removal("section_modifier_update", "section", &[], &[UNKNOWN]),
    refused_by_removal("event_token_create", "section", &["token_sections(section_id)"], &[INVALID]),
    refused_by_removal("event_token_create", "event", &["tokens(event_id)"], &[UNKNOWN]),
    refused_by_removal("event_token_update", "section", &[], &[INVALID]),
    refused_by_removal("event_token_update", "event", &[], &[UNKNOWN]),
    refused_by_removal("event_token_update", "token", &["token_sections(token_id)"], &[UNKNOWN]),
    refused_by_removal("token_authentication_get", "token", &[], &[UNKNOWN]),
    refused_by_removal("token_authentication_get", "event", &[], &[UNKNOWN]),
    exclusive(
        "advertisement_create",
        "zone",
        &["advertisement_zones(zone_id,width,height)"],
        &[INVALID],
        &[(409, "zone.in-use")],
    ),
    refused_by_removal("advertisement_create", "event", &["advertisements(event_id)"], &[INVALID]),
    exclusive("advertisement_update", "zone", &[], &[INVALID], &[(409, "zone.in-use")]),
    exclusive("advertisement_update", "dimensions of zone", &[], &[INVALID], &[(409, "zone.in-use")]),
    refused_by_removal("advertisement_update", "event", &[], &[INVALID, UNKNOWN]),
    refused_by_removal("advertisement_update", "own event", &[], &[UNKNOWN]),
    exclusive("order_create", "section", &["reservations(section_id)"], &[INVALID], &[(409, "section.in-use")]),
    exclusive("order_create", "event", &[], &[INVALID], &[(409, "event.sold")]),
    exclusive("order_create", "free section", &["tickets(section_id)"], &[INVALID], &[(409, "section.in-use")]),
    exclusive("order_create", "event with free section", &["tickets(event_id)"], &[INVALID], &[(409, "event.sold")]),
    refused_by_removal("order_create", "customer", &["orders(account_id)"], &[INVALID]),
    exclusive("event_complimentary_order_create", "section", &[], &[INVALID], &[(409, "section.in-use")]),
    exclusive("event_complimentary_order_create", "customer", &[], &[INVALID], &[(409, "account.has-tickets")]),
    refused_by_removal(
        "section_waiting_entry_create",
        "account",
        &["waiting_entries(account_id)", "waiting_entries(section_id)"],
        &[(403, "key.refused"), (409, "waiting-list.joined")],
    ),
    refused_by_removal("account_preferences_update", "region", &["account_preferences(region_id)"], &[INVALID]),
    refused_by_removal("account_preferences_update", "account", &["account_preferences(account_id)"], &[UNKNOWN]),
    refused_by_removal("account_update", "account", &[], &[UNKNOWN]),
    refused_by_removal("host_administrator_create", "account", &["host_administrators(account_id)"], &[INVALID]),
    refused_by_removal("host_administrator_create", "host", &["host_administrators(host_id)"], &[UNKNOWN]),
    refused_by_removal("host_create", "account", &[], &[(403, "key.refused")]),
    refused_by_removal("host_update", "host", &[], &[UNKNOWN]),
    refused_by_removal(
        "transfer_create",
        "recipient",
        &["transfers(recipient_id)", "transfers(sender_id)"],
        &[INVALID, (409, "ticket.not-issued")],
    ),
    refused_by_removal("transfer_create", "ticket", &["transfer_tickets(ticket_id)"], &[(409, "ticket.not-issued")]),
    exclusive("order_payment_create", "order", &[], &[(409, "order.not-open")], &[(409, "order.not-open")]),
    refused_by_removal("integration_create", "account", &["api_keys(account_id)"], &[INVALID]),
    refused_by_removal("session_create", "account", &[], &[(404, "account.unknown"), (401, "session.wrong-password")]),
    refused_by_removal("verification_create", "account", &["codes(account_id)"], &[(404, "account.unknown")]),
    refused_by_removal("reset_create", "account", &[], &[(404, "account.unknown")]),
    refused_by_removal("event_submission_create", "event", &[], &[UNKNOWN, (409, "event.not-draft")]),
    refused_by_removal("event_submission_create", "host", &[], &[(409, "host.removed"), (409, "event.not-draft")]),
    refused_by_removal("advertisement_submission_create", "advertisement", &[], &[UNKNOWN, (409, "advertisement.not-draft")]),
    refused_by_removal("submission_delete", "event", &[], &[UNKNOWN, (409, "submission.decided")]),
    refused_by_removal("submission_delete", "advertisement", &[], &[UNKNOWN, (409, "submission.decided")]),
    refused_by_removal("submission_delete", "venue", &[], &[UNKNOWN, (409, "submission.decided")]),
    refused_by_removal("event_admission_create", "token", &[], &[(403, "key.refused"), (400, "admission.none")]),
    refused_by_removal("event_scan_create", "token", &[], &[(403, "key.refused"), (400, "admission.none")]),
    refused_by_removal("event_offline_scan_create", "token", &[], &[(403, "key.refused")]),
];

/// Foreign keys that no request can violate, with the reason.
pub const FIXED_FOREIGN_KEYS: &[(&str, &[&str])] = &[
    (
        "rows of accounts, hosts, orders, payments, refunds, tickets, transfers and transactions stay",
        &[
            "login_addresses(account_id)",
            "outbox(account_id)",
            "outbox(address_account_id)",
            "order_items(order_id)",
            "payments(order_id)",
            "refund_shares(host_id)",
            "refund_shares(refund_id)",
            "refunds(order_id)",
            "refunds(payment_id)",
            "reservations(order_id)",
            "event_returns(account_id)",
            "revocations(account_id)",
            "revocations(order_id)",
            "submissions(submitter_id)",
            "tickets(order_id)",
            "tickets(owner_id)",
            "tickets(replaced_by)",
            "transaction_shares(host_id)",
            "transaction_shares(transaction_id)",
            "transactions(order_id)",
            "transactions(payment_id)",
            "transactions(refund_id)",
            "transfer_tickets(transfer_id)",
            "venues(creator_id)",
        ],
    ),
    (
        "both rows are written under a lock of the first, or in one transaction",
        &[
            "event_notices(event_id)",
            "event_search_queue(event_id)",
            "event_tags(event_id)",
            "event_words(event_id)",
            "advertisement_slots(advertisement_id)",
            "advertisement_zones(advertisement_id)",
            "event_returns(event_id)",
            "order_item_modifiers(order_id,position)",
            "venue_changes(venue_id)",
        ],
    ),
    (
        "an event or a section with sold tickets stays",
        &[
            "admission_conflicts(event_id)",
            "admission_conflicts(ticket_id)",
            "admissions(event_id)",
            "admissions(patron_id)",
            "admissions(section_id)",
            "admissions(ticket_id)",
            "undone_admissions(ticket_id)",
        ],
    ),
    (
        "an admission with a conflict can't be undone, and both are written under the lock of the ticket",
        &["admission_conflicts(admission_id)"],
    ),
];

/// Operations whose requests refer to no resource that can be removed, except the one that they change or remove.
pub const INDEPENDENT_OPERATIONS: &[&str] = &[
    "account_create",
    "account_delete",
    "account_deletion_create",
    "account_session_delete",
    "account_toggle_create",
    "advertisement_cancellation_create",
    "advertisement_delete",
    "category_create",
    "category_delete",
    "event_admission_delete",
    "event_cancellation_create",
    "event_copy_create",
    "event_delete",
    "event_return_create",
    "event_token_code_create",
    "event_token_delete",
    "event_withdrawal_create",
    "host_administrator_delete",
    "host_delete",
    "integration_delete",
    "lookup_create",
    "order_cancellation_create",
    "order_return_create",
    "order_void_create",
    "quote_create",
    "region_create",
    "region_delete",
    "region_update",
    "reset_update",
    "section_delete",
    "section_modifier_delete",
    "section_shorthand_delete",
    "section_waiting_entry_delete",
    "session_active_delete",
    "transfer_claim_create",
    "transfer_delete",
    "transfer_rejection_create",
    "venue_delete",
    "verification_update",
    "zone_create",
    "zone_delete",
    "zone_update",
];
