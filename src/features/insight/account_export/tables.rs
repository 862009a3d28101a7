//! The tables that name accounts.

/// A table with rows about an account.
pub struct PersonalTable {
    /// The type of its entries in the export.
    pub kind: &'static str,
    /// The table.
    pub table: &'static str,
    /// The column that names the account.
    pub column: &'static str,
    /// The tables between this one and the one with the column, as a condition with the account in the place of `?`. Without them,
    /// the column is one of this table.
    pub(super) condition: Option<&'static str>,
    /// The order of the rows.
    pub(super) order: &'static str,
    /// The exported columns: their names in the export, SQL expressions and formats. Hashes of secrets are left out.
    pub(super) columns: &'static [(&'static str, &'static str, Format)],
}

/// The format of a value in the export.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    /// As it is stored.
    Plain,
    /// An identifier of 14 digits.
    Id,
    /// True or false, which SQLite stores as a number.
    Bool,
    /// A time.
    Time,
    /// An amount of money.
    Money,
}

use Format::{Bool, Id, Money, Plain, Time};

const OF_ORDERS: Option<&str> = Some("order_id in (select o.id from orders o where o.account_id = ?)");

/// Every table that names accounts, in the order of the export.
pub const PERSONAL_TABLES: &[PersonalTable] = &[
    PersonalTable {
        kind: "account",
        table: "accounts",
        column: "id",
        condition: None,
        order: "id",
        columns: &[
            ("number", "number", Plain),
            ("username", "username", Plain),
            ("email", "email", Plain),
            ("role", "role", Plain),
            ("verified", "verified", Bool),
            ("activated", "activated", Bool),
            ("firstName", "first_name", Plain),
            ("lastName", "last_name", Plain),
            ("title", "title", Plain),
            ("dateOfBirth", "date_of_birth", Plain),
            ("phone", "phone", Plain),
            ("country", "country", Plain),
            ("firstAddressLine", "first_address_line", Plain),
            ("secondAddressLine", "second_address_line", Plain),
            ("city", "city", Plain),
            ("state", "state", Plain),
            ("language", "language", Plain),
        ],
    },
    PersonalTable {
        kind: "preferences",
        table: "account_preferences",
        column: "account_id",
        condition: None,
        order: "account_id",
        columns: &[("region", "region_id", Id)],
    },
    PersonalTable {
        kind: "key",
        table: "api_keys",
        column: "account_id",
        condition: None,
        order: "id",
        columns: &[
            ("number", "id", Id),
            ("kind", "kind", Plain),
            ("name", "name", Plain),
            ("role", "role", Plain),
            ("created", "created", Time),
            ("expires", "expires", Time),
            ("ended", "ended", Time),
            ("lastUsed", "last_used", Time),
        ],
    },
    PersonalTable {
        kind: "loginAddress",
        table: "login_addresses",
        column: "account_id",
        condition: None,
        order: "address",
        columns: &[("shortenedHash", "address", Plain), ("seen", "seen", Time)],
    },
    PersonalTable {
        kind: "code",
        table: "codes",
        column: "account_id",
        condition: None,
        order: "expires",
        columns: &[
            ("kind", "kind", Plain),
            ("email", "email", Plain),
            ("expires", "expires", Time),
            ("tries", "tries", Plain),
            ("status", "status", Plain),
        ],
    },
    PersonalTable {
        kind: "administeredHost",
        table: "host_administrators",
        column: "account_id",
        condition: None,
        order: "host_id",
        columns: &[("host", "host_id", Id)],
    },
    PersonalTable {
        kind: "createdVenue",
        table: "venues",
        column: "creator_id",
        condition: None,
        order: "id",
        columns: &[("venue", "id", Id), ("name", "name", Plain), ("address", "address", Plain)],
    },
    PersonalTable {
        kind: "submission",
        table: "submissions",
        column: "submitter_id",
        condition: None,
        order: "id",
        columns: &[
            ("contentType", "type", Plain),
            ("content", "content_id", Id),
            ("status", "status", Plain),
            ("submitted", "submitted", Time),
            ("reason", "reason", Plain),
        ],
    },
    PersonalTable {
        kind: "order",
        table: "orders",
        column: "account_id",
        condition: None,
        order: "id",
        columns: &[
            ("number", "id", Id),
            ("status", "status", Plain),
            ("placed", "placed", Time),
            ("expires", "expires", Time),
            ("fulfilled", "fulfilled", Time),
            ("subtotal", "subtotal", Money),
            ("fees", "fees", Money),
        ],
    },
    PersonalTable {
        kind: "orderItem",
        table: "order_items",
        column: "order_id",
        condition: OF_ORDERS,
        order: "order_id, position",
        columns: &[
            ("order", "order_id", Id),
            ("event", "event_id", Id),
            ("section", "section_id", Id),
            ("quantity", "quantity", Plain),
            ("unitPrice", "unit_price", Money),
            ("unitFee", "unit_fee", Money),
        ],
    },
    PersonalTable {
        kind: "payment",
        table: "payments",
        column: "order_id",
        condition: OF_ORDERS,
        order: "id",
        columns: &[
            ("number", "id", Id),
            ("order", "order_id", Id),
            ("method", "method", Plain),
            ("amount", "amount", Money),
            ("status", "status", Plain),
            ("reference", "reference", Plain),
            ("placed", "placed", Time),
        ],
    },
    PersonalTable {
        kind: "refund",
        table: "refunds",
        column: "order_id",
        condition: OF_ORDERS,
        order: "id",
        columns: &[
            ("order", "order_id", Id),
            ("payment", "payment_id", Id),
            ("amount", "amount", Money),
            ("status", "status", Plain),
            ("owed", "owed", Time),
            ("done", "done", Time),
        ],
    },
    PersonalTable {
        kind: "return",
        table: "revocations",
        column: "order_id",
        condition: OF_ORDERS,
        order: "id",
        columns: &[
            ("kind", "type", Plain),
            ("order", "order_id", Id),
            ("tickets", "tickets", Plain),
            ("reason", "reason", Plain),
            ("returned", "revoked", Time),
        ],
    },
    PersonalTable {
        kind: "orderReturnedByThisAccount",
        table: "revocations",
        column: "account_id",
        condition: None,
        order: "id",
        columns: &[("kind", "type", Plain), ("order", "order_id", Id), ("returned", "revoked", Time)],
    },
    PersonalTable {
        kind: "waitingListEntry",
        table: "waiting_entries",
        column: "account_id",
        condition: None,
        order: "id",
        columns: &[
            ("entry", "id", Id),
            ("section", "section_id", Id),
            ("quantity", "quantity", Plain),
            ("status", "status", Plain),
            ("joined", "joined", Time),
            ("offered", "offered", Time),
            ("expires", "expires", Time),
        ],
    },
    PersonalTable {
        kind: "ticket",
        table: "tickets",
        column: "owner_id",
        condition: None,
        order: "id",
        columns: &[
            ("ticket", "id", Id),
            ("serial", "serial", Plain),
            ("order", "order_id", Id),
            ("event", "event_id", Id),
            ("section", "section_id", Id),
            ("status", "status", Plain),
            ("issued", "issued", Time),
            ("redeemed", "redeemed", Time),
        ],
    },
    PersonalTable {
        kind: "admission",
        table: "admissions",
        column: "patron_id",
        condition: None,
        order: "id",
        columns: &[
            ("event", "event_id", Id),
            ("ticket", "ticket_id", Id),
            ("device", "device", Plain),
            ("admitted", "admitted", Time),
        ],
    },
    PersonalTable {
        kind: "sentTransfer",
        table: "transfers",
        column: "sender_id",
        condition: None,
        order: "id",
        columns: &[("transfer", "id", Id), ("status", "status", Plain)],
    },
    PersonalTable {
        kind: "receivedTransfer",
        table: "transfers",
        column: "recipient_id",
        condition: None,
        order: "id",
        columns: &[("transfer", "id", Id), ("status", "status", Plain)],
    },
    PersonalTable {
        kind: "mail",
        table: "outbox",
        column: "account_id",
        condition: Some("(account_id = ? or lower(recipient) = (select lower(a.email) from accounts a where a.id = ?))"),
        order: "id",
        columns: &[("template", "template", Plain), ("created", "created", Time), ("failed", "failed", Time)],
    },
    PersonalTable {
        kind: "auditEntry",
        table: "audit",
        column: "account_id",
        condition: None,
        order: "id",
        columns: &[
            ("at", "at", Time),
            ("operation", "operation", Plain),
            ("resource", "resource", Plain),
            ("status", "status", Plain),
            ("code", "code", Plain),
            ("request", "request", Plain),
        ],
    },
    PersonalTable {
        kind: "idempotencyKey",
        table: "idempotency",
        column: "key_id",
        condition: Some("key_id in (select k.id from api_keys k where k.account_id = ?)"),
        order: "key_id, hash",
        columns: &[("key", "key_id", Id), ("claimed", "claimed", Time)],
    },
];
