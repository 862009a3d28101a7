//! Who asks an operation, and what has to be there before: what the document's story doesn't tell of itself.

use crate::auth::Scope;

/// Somebody who asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Actor {
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
type Prerequisites = &'static [&'static str];

const ACCOUNT: Prerequisites = &["account_create"];
const BUYER: Prerequisites = &["account_create", "integration_create"];
const ORDER: Prerequisites = &["account_create", "integration_create", "order_create"];
const PAID: Prerequisites = &["account_create", "integration_create", "order_create", "order_payment_create"];
const TICKETS: Prerequisites =
    &["account_create", "integration_create", "order_create", "order_payment_create", "account_ticket_list"];
const TRANSFER: Prerequisites =
    &["account_create", "integration_create", "order_create", "order_payment_create", "account_ticket_list", "transfer_create"];
const EVENT: Prerequisites = &["event_create"];
const SUBMITTED: Prerequisites = &["event_create", "event_submission_create"];
const LISTED: Prerequisites = &["event_create", "event_submission_create", "submission_delete"];
const SECTION: Prerequisites = &["event_create", "section_create"];
const MODIFIER: Prerequisites = &["event_create", "section_create", "section_modifier_create"];
const LISTED_ADVERTISEMENT: Prerequisites = &["advertisement_create", "advertisement_submission_create", "submission_delete"];

/// Who asks an operation, and what is made before.
pub type OperationPlan = (Actor, Prerequisites);

/// Who asks an operation that these scopes reach with the example of its body that has this name, or else the first, and what is
/// made before.
pub fn plan(operation: &str, body: Option<&str>, scopes: &[Scope]) -> OperationPlan {
    use Actor::{Anyone, Customer, Gate, Recipient, Session, Staff};
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
        "order_create" if body == Some("forAnother") => (Staff, BUYER),
        "order_create" => (Customer, BUYER),
        "order_payment_create" if body == Some("external") => (Staff, ORDER),
        "order_cancellation_create" | "order_payment_create" => (Customer, ORDER),
        "order_return_create" if body == Some("some") => (Staff, TICKETS),
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
pub const UNIQUE: [(&str, &str); 8] = [
    ("account_create", "ama.mensah"),
    ("account_create", "kofi.asante"),
    ("advertisement_create", "Jazz by the sea"),
    ("category_create", "Music"),
    ("event_create", "Harmattan Jazz Night"),
    ("host_create", "Accra Live"),
    ("region_create", "Greater Accra"),
    ("venue_create", "Labadi Amphitheatre"),
];

/// The operations that name somebody else than who asks: Ama administers her host already, and can't leave it alone.
pub const TARGETS_OTHER_ACCOUNT: [&str; 2] = ["host_administrator_create", "host_administrator_delete"];

/// The operations that can't succeed, because they ask for a code that is told by mail alone.
pub const NEED_MAIL: [&str; 2] = ["reset_update", "verification_update"];

/// Arguments whose values mean something wherever they stand: they name what is there, stand in a relation to others, or may be
/// too common.
const CONSTRAINED_ARGUMENTS: &str = "account amount approved artwork availableFrom availableTo banner category code customer email end event \
    expires from host identification items maxOrder method minOrder page password recipient reference region role salesEnd \
    salesStart schedule sections serials start subcategory thumbnail tickets to token username venue zones";

/// What has a name that no two may have.
const UNIQUELY_NAMED: [&str; 5] = ["advertisement", "category", "host", "region", "venue"];

/// Whether an argument of an operation has a value that means something.
pub fn is_constrained(operation: &str, argument: &str) -> bool {
    match argument {
        "name" | "title" => {
            let kind = operation.strip_suffix("_create").or_else(|| operation.strip_suffix("_update")).unwrap_or_default();
            if argument == "title" { kind == "event" } else { UNIQUELY_NAMED.contains(&kind) }
        }
        // A pattern, where others ask for a number.
        "number" => operation == "order_list",
        // It has to be there, where others ask for what may be.
        "section" => operation == "event_sales_get",
        _ => CONSTRAINED_ARGUMENTS.split_whitespace().any(|bound| bound == argument),
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;
    use crate::contract::Contract;
    use crate::qa::world::example::Example;

    #[test]
    fn what_the_plan_names_is_in_the_document() {
        let contract = Contract::builtin().unwrap();
        let example = |operation| Example::of(operation).unwrap();
        let arguments: Vec<String> = contract.operations().flat_map(|operation| example(operation).arguments).collect();
        for bound in CONSTRAINED_ARGUMENTS.split_whitespace() {
            assert!(arguments.iter().any(|argument| argument == bound), "{bound}");
        }
        for (operation, name) in UNIQUE {
            let bodies = example(contract.operation(operation).unwrap()).bodies;
            assert!(serde_json::to_string(&bodies).unwrap().contains(name), "{operation}: {name}");
        }
        let of_kind = |kind: &str| ["create", "update"].map(|step| contract.operation(&format!("{kind}_{step}")).is_some());
        assert!(UNIQUELY_NAMED.iter().all(|kind| of_kind(kind) == [true, true]));
        assert!(TARGETS_OTHER_ACCOUNT.iter().chain(&NEED_MAIL).all(|operation| contract.operation(operation).is_some()));
    }

    #[test]
    fn a_value_is_bound_where_it_means_something() {
        assert!(
            is_constrained("host_create", "name")
                && is_constrained("venue_update", "name")
                && is_constrained("event_update", "title")
        );
        assert!(
            !is_constrained("section_create", "name")
                && !is_constrained("account_create", "title")
                && !is_constrained("venue_list", "name")
        );
        assert!(is_constrained("session_create", "password") && is_constrained("account_create", "password"));
        assert!(is_constrained("order_list", "number") && !is_constrained("account_list", "number"));
    }
}
