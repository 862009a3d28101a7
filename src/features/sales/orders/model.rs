//! Requests, responses and rows of orders.

use std::fmt;

use boxoffice_http::{inline_schema, schema_from_json};
use schemars::JsonSchema;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::json;

use crate::features::catalog::events::EventStatus;
use crate::features::identity::accounts::{Account, AccountNumber};
use crate::features::sales::ledger::TicketCosts;
use crate::kernel::http::has_location;
use crate::kernel::types::api_types::{DateTime, NullableField, Uri};
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::{Id, IdText};
use crate::kernel::types::money::Money;
use crate::kernel::types::paging::{PageRequest, SortOrder};
use crate::kernel::types::stored_text::stored_as_text;

/// Returns the URI of an order.
pub fn uri(order: Id) -> Uri {
    Uri(format!("/orders/{order}"))
}

/// The status of an order.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, strum::EnumString, strum::IntoStaticStr,
)]
pub enum OrderStatus {
    /// Open: its places are reserved until it is paid.
    Placed,
    /// Cancelled before it was paid.
    Cancelled,
    /// Not paid before its reservation expired.
    #[serde(rename = "Timed Out")]
    #[strum(serialize = "Timed Out")]
    TimedOut,
    /// Paid or free, and its tickets are issued.
    Fulfilled,
    /// Its tickets were voided without a refund.
    Voided,
    /// All its tickets were returned and refunded.
    Returned,
}

stored_as_text!(OrderStatus);

/// An order in a response.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Order {
    #[serde(rename = "self")]
    pub uri: Uri,
    pub number: IdText,
    pub status: OrderStatus,
    /// True if a host has issued it without a charge.
    pub complimentary: bool,
    pub placed: DateTime,
    /// The time until which its places are reserved; `None` if it isn't open.
    pub expires: NullableField<DateTime>,
    pub subtotal: Money,
    pub fees: Money,
    pub total: Money,
    /// The sum of its refunds, made or scheduled.
    pub refunded: Money,
    pub items: Vec<OrderItem>,
    pub customer: Account,
    pub payments: Uri,
}

has_location!(Order);

/// An item in a response: the tickets of one section in an order.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OrderItem {
    pub event: Uri,
    pub section: Uri,
    pub quantity: i64,
    pub unit_price: Money,
    /// The first of [`OrderItem::modifiers`].
    pub modifier: NullableField<Uri>,
    /// The price modifiers that applied, the oldest first.
    pub modifiers: Vec<Uri>,
}

/// Path parameters of an order.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct OrderPath {
    /// The number of the order.
    pub order: IdText,
}

/// Sort keys for lists of orders.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OrderSort {
    /// The time of placing.
    Date,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct OrderFilter {
    #[serde(flatten)]
    pub paging: PageRequest,
    /// A regular expression.
    #[schemars(length(min = 1, max = 100))]
    pub number: Option<String>,
    pub customer: Option<AccountNumber>,
    pub status: Option<OrderStatus>,
    pub sort: Option<OrderSort>,
    #[serde(default)]
    pub order: SortOrder,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct AccountOrderFilter {
    #[serde(flatten)]
    pub paging: PageRequest,
    pub status: Option<OrderStatus>,
    pub sort: Option<OrderSort>,
    #[serde(default)]
    pub order: SortOrder,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct OrderCreate {
    pub customer: Option<AccountNumber>,
    pub items: Items,
}

/// Section URIs with a number of tickets each, in the order of the request.
#[derive(Debug)]
pub struct Items(pub Vec<(String, i64)>);

impl<'de> Deserialize<'de> for Items {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries;

        impl<'de> Visitor<'de> for Entries {
            type Value = Items;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Items, M::Error> {
                let mut items = Vec::new();
                while let Some(item) = map.next_entry()? {
                    items.push(item);
                }
                Ok(Items(items))
            }
        }

        deserializer.deserialize_map(Entries)
    }
}

inline_schema!(
    Items,
    "Items",
    schema_from_json(json!({
        "type": "object", "minProperties": 1, "maxProperties": 50,
        "additionalProperties": { "type": "integer", "format": "int64", "minimum": 1, "maximum": 50 },
    }))
);

/// Filter and sort direction of a list of orders.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Criteria {
    /// Only orders of this account.
    pub account: Option<Id>,
    /// Only orders with this status.
    pub status: Option<OrderStatus>,
    /// Direction of the sort by time of placing.
    pub direction: SortOrder,
}

impl Criteria {
    /// Creates the criteria. Without `sort`, `order` is ignored and the oldest order comes first.
    pub fn new(account: Option<Id>, status: Option<OrderStatus>, sort: Option<OrderSort>, order: SortOrder) -> Self {
        Self { account, status, direction: sort.map_or(SortOrder::Asc, |OrderSort::Date| order) }
    }

    /// Returns whether the oldest order comes first.
    pub fn is_ascending(self) -> bool {
        self.direction == SortOrder::Asc
    }
}

/// A row of `orders`.
#[derive(Debug, Clone, sqlx_macros::FromRow)]
pub struct OrderRow {
    /// The identifier, which is also the order's number.
    pub id: Id,
    /// The customer.
    pub account_id: Id,
    /// The status in the table. Rules use [`OrderRow::status`], because an open order is timed out as soon as its reservation expires.
    #[sqlx(rename = "status")]
    pub stored_status: OrderStatus,
    /// The time of placing.
    pub placed: Timestamp,
    /// The end of the reservation.
    pub expires: Timestamp,
    /// The cost of all items, without fees.
    pub subtotal: Money,
    /// The convenience fees of all tickets.
    pub fees: Money,
    /// True if a host has issued it without a charge.
    pub complimentary: bool,
}

impl OrderRow {
    /// Returns the status at `now`: an open order is timed out as soon as its reservation expires.
    pub fn status(&self, now: Timestamp) -> OrderStatus {
        let over = self.stored_status == OrderStatus::Placed && self.expires <= now;
        if over { OrderStatus::TimedOut } else { self.stored_status }
    }

    /// Returns the order with another status.
    pub fn with_status(self, status: OrderStatus) -> Self {
        Self { stored_status: status, ..self }
    }

    /// Returns whether its tickets are issued.
    pub fn is_fulfilled(&self) -> bool {
        self.stored_status == OrderStatus::Fulfilled
    }

    /// Returns whether it can still be paid and cancelled.
    pub fn is_open(&self, now: Timestamp) -> bool {
        self.status(now) == OrderStatus::Placed
    }

    /// Returns the amount that the customer pays.
    pub fn total(&self) -> Money {
        self.subtotal + self.fees
    }
}

/// A row of `order_items`: the tickets of one section in an order.
#[derive(Debug, Clone, sqlx_macros::FromRow)]
pub struct ItemRow {
    pub order_id: Id,
    pub position: i64,
    pub event_id: Id,
    pub section_id: Id,
    pub quantity: i64,
    pub unit_price: Money,
    /// The convenience fee of each ticket, by the settings at the time of placing.
    pub unit_fee: Money,
}

/// An item of an order, with columns of its event.
#[derive(Debug, sqlx_macros::FromRow)]
pub struct EventItemRow {
    /// The item.
    #[sqlx(flatten)]
    pub item: ItemRow,
    /// The host of the event; `None` if the event was deleted, by a server for which the order has ended.
    pub host_id: Option<Id>,
    /// The status of the event; `None` if it was deleted.
    pub event_status: Option<EventStatus>,
}

impl EventItemRow {
    /// Returns the cost of its tickets; `None` if the event was deleted.
    pub fn costs(&self) -> Option<TicketCosts> {
        let ItemRow { section_id, quantity, unit_price, unit_fee, .. } = self.item;
        self.host_id.map(|host_id| TicketCosts { section_id, host_id, quantity, unit_price, unit_fee })
    }
}

impl ItemRow {
    /// Returns the price of all its tickets, without fees.
    pub fn price(&self) -> Money {
        self.unit_price * self.quantity
    }

    /// Returns the convenience fees of all its tickets.
    pub fn fees(&self) -> Money {
        self.unit_fee * self.quantity
    }
}

/// A row of `order_item_modifiers`: a price modifier that applied to an item. The modifier may have been removed since.
#[derive(Debug, Clone, Copy, sqlx_macros::FromRow)]
pub struct AppliedModifierRow {
    pub order_id: Id,
    /// The position of the item.
    pub position: i64,
    pub modifier_id: Id,
}

/// The columns of an event that decide whether its tickets are on sale.
#[derive(Debug, sqlx_macros::FromRow)]
pub struct EventSaleRow {
    pub id: Id,
    pub host_id: Id,
    pub title: String,
    pub status: EventStatus,
    pub ends: Timestamp,
    pub host_removed: bool,
}

/// A row of `reservations`: the places in a section that an open order reserves.
#[derive(Debug, Clone, Copy, sqlx_macros::FromRow)]
pub struct ReservationRow {
    pub order_id: Id,
    pub section_id: Id,
    pub quantity: i64,
}

/// The type of a revocation.
#[derive(Debug, Clone, Copy, strum::EnumString, strum::IntoStaticStr)]
pub enum RevocationType {
    /// Tickets were returned and refunded.
    Return,
    /// The order was voided without a refund.
    Void,
}

stored_as_text!(RevocationType);

/// A row of `revocations`: a return or a void of tickets of a fulfilled order.
#[derive(Debug, sqlx_macros::FromRow)]
pub struct RevocationRow {
    /// The identifier.
    pub id: Id,
    /// The order.
    pub order_id: Id,
    /// The number of tickets.
    pub tickets: i64,
    /// The refunds, made or scheduled, including fees; `None` for a void, and for a return of an earlier version.
    pub amount: Option<Money>,
    /// The reason, or empty.
    pub reason: String,
    /// The account of the caller, if its key acts for one.
    pub account_id: Option<Id>,
    /// The time.
    pub revoked: Timestamp,
}
