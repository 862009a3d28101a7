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
    /// The order of the rows. Those that are deleted after a time begin with the newest one: if some are deleted while the pages are
    /// read, no other one is left out.
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

/// Declares the rows that name an account in a column.
const fn rows(kind: &'static str, table: &'static str, column: &'static str, order: &'static str) -> PersonalTable {
    PersonalTable { kind, table, column, condition: None, order, columns: &[] }
}

/// Declares the rows of an account's orders.
const fn rows_of_orders(kind: &'static str, table: &'static str, order: &'static str) -> PersonalTable {
    rows(kind, table, "order_id", order).filtered("order_id in (select o.id from orders o where o.account_id = ?)")
}

impl PersonalTable {
    const fn filtered(mut self, condition: &'static str) -> Self {
        self.condition = Some(condition);
        self
    }

    const fn columns(mut self, columns: &'static [(&'static str, &'static str, Format)]) -> Self {
        self.columns = columns;
        self
    }
}

/// Every table that names accounts, in the order of the export.
pub const PERSONAL_TABLES: &[PersonalTable] = &[
    rows("account", "accounts", "id", "id").columns(&[
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
    ]),
    rows("preferences", "account_preferences", "account_id", "account_id").columns(&[("region", "region_id", Id)]),
    rows("key", "api_keys", "account_id", "id desc").columns(&[
        ("number", "id", Id),
        ("kind", "kind", Plain),
        ("name", "name", Plain),
        ("role", "role", Plain),
        ("created", "created", Time),
        ("expires", "expires", Time),
        ("ended", "ended", Time),
        ("lastUsed", "last_used", Time),
    ]),
    rows("loginAddress", "login_addresses", "account_id", "seen desc, address")
        .columns(&[("shortenedHash", "address", Plain), ("seen", "seen", Time)]),
    rows("code", "codes", "account_id", "expires desc, hash").columns(&[
        ("kind", "kind", Plain),
        ("email", "email", Plain),
        ("expires", "expires", Time),
        ("tries", "tries", Plain),
        ("status", "status", Plain),
        ("fromKnownAddress", "known_address", Bool),
    ]),
    rows("administeredHost", "host_administrators", "account_id", "host_id").columns(&[("host", "host_id", Id)]),
    rows("createdVenue", "venues", "creator_id", "id").columns(&[
        ("venue", "id", Id),
        ("name", "name", Plain),
        ("address", "address", Plain),
    ]),
    rows("submission", "submissions", "submitter_id", "id").columns(&[
        ("contentType", "type", Plain),
        ("content", "content_id", Id),
        ("status", "status", Plain),
        ("submitted", "submitted", Time),
        ("reason", "reason", Plain),
    ]),
    rows("order", "orders", "account_id", "id desc").columns(&[
        ("number", "id", Id),
        ("status", "status", Plain),
        ("placed", "placed", Time),
        ("expires", "expires", Time),
        ("fulfilled", "fulfilled", Time),
        ("subtotal", "subtotal", Money),
        ("fees", "fees", Money),
        ("complimentary", "complimentary", Bool),
    ]),
    rows_of_orders("orderItem", "order_items", "order_id desc, position").columns(&[
        ("order", "order_id", Id),
        ("event", "event_id", Id),
        ("section", "section_id", Id),
        ("quantity", "quantity", Plain),
        ("unitPrice", "unit_price", Money),
        ("unitFee", "unit_fee", Money),
    ]),
    rows_of_orders("payment", "payments", "id").columns(&[
        ("number", "id", Id),
        ("order", "order_id", Id),
        ("method", "method", Plain),
        ("amount", "amount", Money),
        ("status", "status", Plain),
        ("reference", "reference", Plain),
        ("placed", "placed", Time),
    ]),
    rows_of_orders("refund", "refunds", "id").columns(&[
        ("order", "order_id", Id),
        ("payment", "payment_id", Id),
        ("amount", "amount", Money),
        ("status", "status", Plain),
        ("owed", "owed", Time),
        ("done", "done", Time),
    ]),
    rows_of_orders("transaction", "transactions", "id").columns(&[
        ("number", "id", Id),
        ("kind", "type", Plain),
        ("order", "order_id", Id),
        ("payment", "payment_id", Id),
        ("amount", "amount", Money),
        ("fees", "fees", Money),
        ("placed", "placed", Time),
    ]),
    rows_of_orders("return", "revocations", "id").columns(&[
        ("kind", "type", Plain),
        ("order", "order_id", Id),
        ("tickets", "tickets", Plain),
        ("reason", "reason", Plain),
        ("returned", "revoked", Time),
    ]),
    rows("orderReturnedByThisAccount", "revocations", "account_id", "id").columns(&[
        ("kind", "type", Plain),
        ("order", "order_id", Id),
        ("returned", "revoked", Time),
    ]),
    rows("eventReturnStartedByThisAccount", "event_returns", "account_id", "id").columns(&[
        ("event", "event_id", Id),
        ("reason", "reason", Plain),
        ("started", "started", Time),
        ("finished", "finished", Time),
    ]),
    rows("waitingListEntry", "waiting_entries", "account_id", "id desc").columns(&[
        ("entry", "id", Id),
        ("section", "section_id", Id),
        ("quantity", "quantity", Plain),
        ("status", "status", Plain),
        ("joined", "joined", Time),
        ("offered", "offered", Time),
        ("expires", "expires", Time),
    ]),
    rows("ticket", "tickets", "owner_id", "id").columns(&[
        ("ticket", "id", Id),
        ("serial", "serial", Plain),
        ("order", "order_id", Id),
        ("event", "event_id", Id),
        ("section", "section_id", Id),
        ("status", "status", Plain),
        ("issued", "issued", Time),
        ("redeemed", "redeemed", Time),
    ]),
    rows("admission", "admissions", "patron_id", "id").columns(&[
        ("event", "event_id", Id),
        ("ticket", "ticket_id", Id),
        ("device", "device", Plain),
        ("admitted", "admitted", Time),
    ]),
    rows("sentTransfer", "transfers", "sender_id", "id").columns(&[("transfer", "id", Id), ("status", "status", Plain)]),
    rows("receivedTransfer", "transfers", "recipient_id", "id").columns(&[("transfer", "id", Id), ("status", "status", Plain)]),
    rows("transferredTicket", "transfer_tickets", "transfer_id", "transfer_id, ticket_id")
        .filtered("transfer_id in (select t.id from transfers t where t.sender_id = ? or t.recipient_id = ?)")
        .columns(&[("transfer", "transfer_id", Id), ("ticket", "ticket_id", Id)]),
    rows("mail", "outbox", "account_id", "id desc")
        .filtered(
            "(account_id = ? or (account_id is null and (address_account_id is null or address_account_id = ?)
              and lower(recipient) = (select lower(a.email) from accounts a where a.id = ?)))",
        )
        .columns(&[("template", "template", Plain), ("created", "created", Time), ("failed", "failed", Time)]),
    rows("mailToEarlierAddress", "outbox", "address_account_id", "id desc")
        .filtered("address_account_id = ? and lower(recipient) <> (select lower(a.email) from accounts a where a.id = ?)")
        .columns(&[("template", "template", Plain), ("created", "created", Time), ("failed", "failed", Time)]),
    rows("auditEntry", "audit", "account_id", "id desc").columns(&[
        ("at", "at", Time),
        ("operation", "operation", Plain),
        ("resource", "resource", Plain),
        ("status", "status", Plain),
        ("code", "code", Plain),
        ("request", "request", Plain),
    ]),
    rows("idempotencyKey", "idempotency", "key_id", "claimed desc, key_id, hash")
        .filtered("key_id in (select k.id from api_keys k where k.account_id = ?)")
        .columns(&[("key", "key_id", Id), ("claimed", "claimed", Time)]),
];
