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
    /// The exported columns: their names in the export, their names in the table, and formats. Hashes of secrets are left out.
    pub(super) columns: &'static [(&'static str, &'static str, ColumnFormat)],
}

/// The format of a value in the export.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ColumnFormat {
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

    const fn columns(mut self, columns: &'static [(&'static str, &'static str, ColumnFormat)]) -> Self {
        self.columns = columns;
        self
    }
}

/// Declares exported columns: `name = column: Format`, or `column: Format` if it has the same name in the export.
macro_rules! exported {
    ($($name:ident $(= $column:ident)?: $format:ident),* $(,)?) => {
        &[$((stringify!($name), exported!(@column $name $($column)?), ColumnFormat::$format)),*]
    };
    (@column $name:ident) => {
        stringify!($name)
    };
    (@column $name:ident $column:ident) => {
        stringify!($column)
    };
}

/// Every table that names accounts, in the order of the export.
pub const PERSONAL_TABLES: &[PersonalTable] = &[
    rows("account", "accounts", "id", "id").columns(exported![
        number: Plain, username: Plain, email: Plain, role: Plain, verified: Bool, activated: Bool, firstName = first_name: Plain,
        lastName = last_name: Plain, title: Plain, dateOfBirth = date_of_birth: Plain, phone: Plain, country: Plain,
        firstAddressLine = first_address_line: Plain, secondAddressLine = second_address_line: Plain, city: Plain, state: Plain,
        language: Plain,
    ]),
    rows("preferences", "account_preferences", "account_id", "account_id").columns(exported![region = region_id: Id]),
    rows("key", "api_keys", "account_id", "id desc").columns(exported![
        number = id: Id, kind: Plain, name: Plain, role: Plain, created: Time, expires: Time, ended: Time,
        lastUsed = last_used: Time,
    ]),
    rows("loginAddress", "login_addresses", "account_id", "seen desc, address")
        .columns(exported![shortenedHash = address: Plain, seen: Time]),
    rows("code", "codes", "account_id", "expires desc, hash").columns(exported![
        kind: Plain, email: Plain, expires: Time, tries: Plain, status: Plain, fromKnownAddress = known_address: Bool,
    ]),
    rows("administeredHost", "host_administrators", "account_id", "host_id").columns(exported![host = host_id: Id]),
    rows("createdVenue", "venues", "creator_id", "id").columns(exported![venue = id: Id, name: Plain, address: Plain]),
    rows("submission", "submissions", "submitter_id", "id").columns(exported![
        contentType = type: Plain, content = content_id: Id, status: Plain, submitted: Time, reason: Plain,
    ]),
    rows("order", "orders", "account_id", "id desc").columns(exported![
        number = id: Id, status: Plain, placed: Time, expires: Time, fulfilled: Time, subtotal: Money, fees: Money,
        complimentary: Bool,
    ]),
    rows_of_orders("orderItem", "order_items", "order_id desc, position").columns(exported![
        order = order_id: Id, item = position: Plain, event = event_id: Id, section = section_id: Id, quantity: Plain,
        unitPrice = unit_price: Money,
        unitFee = unit_fee: Money,
    ]),
    rows_of_orders("orderItemModifier", "order_item_modifiers", "order_id desc, position, modifier_id")
        .columns(exported![order = order_id: Id, item = position: Plain, modifier = modifier_id: Id]),
    rows_of_orders("payment", "payments", "id").columns(exported![
        number = id: Id, order = order_id: Id, method: Plain, amount: Money, status: Plain, reference: Plain, placed: Time,
    ]),
    rows_of_orders("refund", "refunds", "id").columns(exported![
        order = order_id: Id, payment = payment_id: Id, amount: Money, fees: Money, status: Plain, owed: Time, done: Time,
    ]),
    rows_of_orders("transaction", "transactions", "id").columns(exported![
        number = id: Id, kind = type: Plain, order = order_id: Id, payment = payment_id: Id, amount: Money, fees: Money,
        placed: Time,
    ]),
    rows_of_orders("return", "revocations", "id").columns(exported![
        number = id: Id, kind = type: Plain, order = order_id: Id, tickets: Plain, amount: Money, reason: Plain,
        returned = revoked: Time,
    ]),
    rows("orderReturnedByThisAccount", "revocations", "account_id", "id").columns(exported![
        kind = type: Plain, order = order_id: Id, returned = revoked: Time,
    ]),
    rows("eventReturnStartedByThisAccount", "event_returns", "account_id", "id").columns(exported![
        event = event_id: Id, reason: Plain, started: Time, finished: Time,
    ]),
    rows("waitingListEntry", "waiting_entries", "account_id", "id desc").columns(exported![
        entry = id: Id, section = section_id: Id, quantity: Plain, status: Plain, joined: Time, offered: Time, expires: Time,
    ]),
    rows("ticket", "tickets", "owner_id", "id").columns(exported![
        ticket = id: Id, serial: Plain, order = order_id: Id, event = event_id: Id, section = section_id: Id, status: Plain,
        issued: Time, redeemed: Time,
    ]),
    rows("admission", "admissions", "patron_id", "id").columns(exported![
        event = event_id: Id, ticket = ticket_id: Id, device: Plain, admitted: Time,
    ]),
    rows("sentTransfer", "transfers", "sender_id", "id").columns(exported![transfer = id: Id, status: Plain]),
    rows("receivedTransfer", "transfers", "recipient_id", "id").columns(exported![transfer = id: Id, status: Plain]),
    rows("transferredTicket", "transfer_tickets", "transfer_id", "transfer_id, ticket_id")
        .filtered("transfer_id in (select t.id from transfers t where t.sender_id = ? or t.recipient_id = ?)")
        .columns(exported![transfer = transfer_id: Id, ticket = ticket_id: Id]),
    rows("mail", "outbox", "account_id", "id desc")
        .filtered(
            "(account_id = ? or (account_id is null and (address_account_id is null or address_account_id = ?)
              and lower(recipient) = (select lower(a.email) from accounts a where a.id = ?)))",
        )
        .columns(exported![template: Plain, created: Time, failed: Time]),
    rows("mailToEarlierAddress", "outbox", "address_account_id", "id desc")
        .filtered("address_account_id = ? and lower(recipient) <> (select lower(a.email) from accounts a where a.id = ?)")
        .columns(exported![template: Plain, created: Time, failed: Time]),
    rows("auditEntry", "audit", "account_id", "id desc").columns(exported![
        at: Time, operation: Plain, resource: Plain, status: Plain, code: Plain, request: Plain,
    ]),
    rows("idempotencyKey", "idempotency", "key_id", "claimed desc, key_id, hash")
        .filtered("key_id in (select k.id from api_keys k where k.account_id = ?)")
        .columns(exported![key = key_id: Id, claimed: Time]),
];
