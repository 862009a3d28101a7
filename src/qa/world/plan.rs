//! Who asks an operation, and what has to be there before: what the document's story doesn't tell of itself.

use crate::auth::Scope;

/// Somebody who asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Who {
    /// The administrator whose key the comparison was given.
    Staff,
    /// An application.
    Anyone,
    /// Ama: whoever has signed up last, by an integration's key. The story's own Ama administers its host, and has bought tickets.
    Customer,
    /// Ama, by the key of her session.
    Session,
    /// Whom she offers tickets to.
    Recipient,
    /// Who admits to the VIP section, by the key for a token.
    Gate,
}

/// What has to be there before an operation that uses something up or changes it: the operations that make it anew, in their order.
/// All others ask for what everyone shares.
type Before = &'static [&'static str];

const ACCOUNT: Before = &["account_create"];
const BUYER: Before = &["account_create", "integration_create"];
const ORDER: Before = &["account_create", "integration_create", "order_create"];
const PAID: Before = &["account_create", "integration_create", "order_create", "order_payment_create"];
const TICKETS: Before = &["account_create", "integration_create", "order_create", "order_payment_create", "account_ticket_list"];
const TRANSFER: Before =
    &["account_create", "integration_create", "order_create", "order_payment_create", "account_ticket_list", "transfer_create"];
const EVENT: Before = &["event_create"];
const SUBMITTED: Before = &["event_create", "event_submission_create"];
const LISTED: Before = &["event_create", "event_submission_create", "submission_delete"];
const SECTION: Before = &["event_create", "section_create"];
const MODIFIER: Before = &["event_create", "section_create", "section_modifier_create"];
const LISTED_ADVERTISEMENT: Before = &["advertisement_create", "advertisement_submission_create", "submission_delete"];

/// Who asks an operation that these scopes reach, and what is made before.
pub fn plan(operation: &str, scopes: &[Scope]) -> (Who, Before) {
    use Who::{Anyone, Customer, Gate, Recipient, Session, Staff};
    match operation {
        "session_create" | "verification_create" | "reset_create" => (Anyone, ACCOUNT),
        "session_active_get" => (Session, &[]),
        "session_active_delete" => (Session, &["account_create", "session_create"]),
        "account_session_delete" => (Staff, &["account_create", "session_create"]),
        "verification_update" => (Anyone, &["account_create", "verification_create"]),
        "reset_update" => (Anyone, &["account_create", "reset_create"]),
        "account_create" | "lookup_create" | "token_authentication_get" => (Anyone, &[]),
        "account_update" | "account_delete" | "account_toggle_create" | "account_deletion_create" => (Staff, ACCOUNT),
        "integration_delete" => (Staff, &["integration_create"]),

        "host_update" | "host_delete" | "host_administrator_create" => (Customer, &["host_create"]),
        "host_administrator_delete" => (Customer, &["host_create", "host_administrator_create"]),
        "region_update" | "region_delete" => (Staff, &["region_create"]),
        "category_update" | "category_delete" => (Staff, &["category_create"]),
        // A customer's venue would wait for review.
        "venue_create" => (Staff, &[]),
        "venue_update" | "venue_delete" => (Staff, &["venue_create"]),
        "zone_update" | "zone_delete" => (Staff, &["zone_create"]),

        "event_update" | "event_delete" | "event_submission_create" | "section_create" => (Customer, EVENT),
        "submission_delete" => (Staff, SUBMITTED),
        "event_withdrawal_create" | "event_cancellation_create" => (Customer, LISTED),
        "section_update" | "section_delete" | "section_shorthand_update" | "section_shorthand_delete" => (Customer, SECTION),
        "section_modifier_create" => (Customer, SECTION),
        "section_modifier_update" | "section_modifier_delete" => (Customer, MODIFIER),
        "advertisement_update" | "advertisement_delete" => (Customer, &["advertisement_create"]),
        "advertisement_submission_create" => (Customer, &["advertisement_create"]),
        "advertisement_cancellation_create" => (Customer, LISTED_ADVERTISEMENT),

        // An account has ten open orders at the most, so each is somebody else's.
        "order_create" => (Customer, BUYER),
        "order_cancellation_create" | "order_payment_create" => (Customer, ORDER),
        "order_return_create" | "order_void_create" => (Staff, PAID),
        "transfer_create" => (Customer, TICKETS),
        "transfer_delete" => (Customer, TRANSFER),
        "transfer_claim_create" | "transfer_rejection_create" => (Recipient, TRANSFER),
        "event_token_update" | "event_token_delete" => (Customer, &["event_token_create"]),
        "event_admission_create" => (Gate, TICKETS),
        "event_ticket_list" | "event_admission_list" => (Gate, &[]),

        _ if scopes.contains(&Scope::Customer) => (Customer, &[]),
        _ => (Staff, &[]),
    }
}

/// What the examples of these operations call something that no two may be called: each time it is called something else.
pub const UNIQUE: [(&str, &str); 7] = [
    ("account_create", "ama.mensah"),
    ("advertisement_create", "Jazz by the sea"),
    ("category_create", "Music"),
    ("event_create", "Harmattan Jazz Night"),
    ("host_create", "Accra Live"),
    ("region_create", "Greater Accra"),
    ("venue_create", "Labadi Amphitheatre"),
];

/// The operations that name somebody else than who asks: Ama administers her host already, and can't leave it alone.
pub const OF_ANOTHER: [&str; 2] = ["host_administrator_create", "host_administrator_delete"];

/// The operations that can't succeed, because they ask for a code that is told by mail alone.
pub const NEED_MAIL: [&str; 2] = ["reset_update", "verification_update"];

/// Arguments whose values mean something: they name what is there or must not be there yet, or stand in a relation to others.
/// Some do so in one operation alone.
const BOUND: [&str; 60] = [
    "account",
    "advertisement_create.name",
    "advertisement_update.name",
    "amount",
    "approved",
    "artwork",
    "availableFrom",
    "availableTo",
    "banner",
    "category",
    "category_create.name",
    "category_update.name",
    "code",
    "customer",
    "email",
    "end",
    "event",
    "event_create.title",
    "event_sales_get.from",
    "event_sales_get.section",
    "event_sales_get.to",
    "event_update.title",
    "expires",
    "host",
    "host_create.name",
    "host_update.name",
    "identification",
    "items",
    "maxOrder",
    "method",
    "minOrder",
    // A page past the last one is 404.
    "page",
    "order_list.number",
    "recipient",
    "reference",
    "region",
    "region_create.name",
    "region_update.name",
    "role",
    "salesEnd",
    "salesStart",
    "schedule",
    "sections",
    "serials",
    "session_create.password",
    "start",
    "subcategory",
    "thumbnail",
    "tickets",
    "token",
    "transaction_list.from",
    "transaction_list.to",
    "host_transaction_list.from",
    "host_transaction_list.to",
    "username",
    "venue",
    "venue_create.name",
    "venue_update.name",
    "zones",
    "zone",
];

/// Whether an argument of an operation has a value that means something.
pub fn is_bound(operation: &str, argument: &str) -> bool {
    BOUND.iter().any(|bound| match bound.split_once('.') {
        Some((of, name)) => of == operation && name == argument,
        None => *bound == argument,
    })
}
