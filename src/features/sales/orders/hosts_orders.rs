//! Orders as their hosts see them: lists for an event and for a host, and the part of an order that belongs to a host.
//!
//! An order may be for events of several hosts. A host sees its own items, their prices and fees, and its share of the refunds. If
//! all items are its own, it sees the order as its customer does.

use std::collections::{BTreeSet, HashMap};

use boxoffice_http::error::{Error, Result, reject_if};
use schemars::JsonSchema;
use serde::Deserialize;

use super::model::{Criteria, ItemRow, Order, OrderRow, OrderSort, OrderStatus};
use super::{service, store};
use crate::features::catalog::{events, hosts};
use crate::features::identity::accounts::{self, AccountNumber};
use crate::features::sales::payments;
use crate::features::sales::tickets::SerialInput;
use crate::kernel::auth::Caller;
use crate::kernel::db::Reader;
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::{Id, IdText};
use crate::kernel::types::paging::{Page, PageRequest, SortOrder};
use crate::kernel::types::period::Period;
use crate::state::Ctx;

#[derive(Debug, Deserialize, JsonSchema)]
pub struct HostOrderFilter {
    #[serde(flatten)]
    pub paging: PageRequest,
    #[serde(flatten)]
    pub period: Period,
    pub number: Option<IdText>,
    pub customer: Option<AccountNumber>,
    pub ticket: Option<SerialInput>,
    pub status: Option<OrderStatus>,
    pub sort: Option<OrderSort>,
    #[serde(default)]
    pub order: SortOrder,
}

/// The events whose orders are listed.
#[derive(Debug, Clone, Copy)]
pub enum OrdersOf {
    /// One event.
    Event(Id),
    /// All events of a host.
    Host(Id),
}

/// Criteria of a host's list of orders.
#[derive(Debug)]
pub struct HostCriteria {
    /// The events.
    pub of: OrdersOf,
    /// Account, status and sort direction.
    pub criteria: Criteria,
    /// The time of placing.
    pub period: Period,
    /// Only this order.
    pub number: Option<Id>,
    /// Only the order of the ticket with this serial number.
    pub serial: Option<String>,
}

impl HostCriteria {
    /// Returns whether few orders match, whatever the event or the host.
    pub fn is_selective(&self) -> bool {
        self.criteria.account.is_some() || self.number.is_some() || self.serial.is_some()
    }
}

pub async fn list_of_event(ctx: &Ctx, caller: &Caller, event: Id, filter: &HostOrderFilter) -> Result<Page<Order>> {
    let mut reader = ctx.unit.read().await?;
    let event = events::load_managed(&mut reader, caller, event).await?;
    list(ctx, &mut reader, caller, OrdersOf::Event(event.id), event.host_id, filter).await
}

/// Lists the orders of a host's events. Only platform administrators can read those of a removed host.
pub async fn list_of_host(ctx: &Ctx, caller: &Caller, host: Id, filter: &HostOrderFilter) -> Result<Page<Order>> {
    let mut reader = ctx.unit.read().await?;
    hosts::require_can_audit(&mut reader, caller, host).await?;
    list(ctx, &mut reader, caller, OrdersOf::Host(host), host, filter).await
}

async fn list(
    ctx: &Ctx,
    reader: &mut Reader,
    caller: &Caller,
    of: OrdersOf,
    host: Id,
    filter: &HostOrderFilter,
) -> Result<Page<Order>> {
    filter.period.check()?;
    let account = accounts::id_for_filter(reader, filter.customer.as_ref()).await?;
    let criteria = HostCriteria {
        of,
        criteria: Criteria::new(account, filter.status, filter.sort, filter.order),
        period: filter.period,
        number: filter.number.map(|order| order.0),
        serial: filter.ticket.as_ref().map(|serial| serial.0.clone()),
    };
    let now = ctx.app.clock.now();
    let page = store::list_of_hosts(reader, &criteria, filter.paging, now).await?;
    Ok(filter.paging.page(page.total, views(reader, caller, page.rows, &[host], now).await?))
}

/// Returns the part of an order that belongs to the hosts that the caller administers.
///
/// # Errors
/// [`Error::FORBIDDEN`] if there is none.
pub async fn view_own_part(reader: &mut Reader, caller: &Caller, row: OrderRow, now: Timestamp) -> Result<Order> {
    let account = caller.account.ok_or(Error::FORBIDDEN)?;
    let own = store::administered_hosts(reader, row.id, account).await?;
    reject_if(own.is_empty(), Error::FORBIDDEN)?;
    views(reader, caller, vec![row], &own, now).await?.pop().ok_or(Error::NOT_FOUND)
}

/// Returns the parts of orders that belong to these hosts.
async fn views(
    reader: &mut Reader,
    caller: &Caller,
    mut rows: Vec<OrderRow>,
    hosts: &[Id],
    now: Timestamp,
) -> Result<Vec<Order>> {
    let mut items = store::items(reader, rows.iter().map(|row| row.id)).await?;
    let own: BTreeSet<Id> = store::events_of_hosts(reader, items.iter().map(|item| item.event_id), hosts).await?;
    let shared: BTreeSet<Id> = items.iter().filter(|item| !own.contains(&item.event_id)).map(|item| item.order_id).collect();
    items.retain(|item| own.contains(&item.event_id));
    for row in rows.iter_mut().filter(|row| shared.contains(&row.id)) {
        let items = service::with_key(&items, row.id, |item| item.order_id);
        (row.subtotal, row.fees) = (items.iter().map(ItemRow::price).sum(), items.iter().map(ItemRow::fees).sum());
    }
    let whole = rows.iter().map(|row| row.id).filter(|order| !shared.contains(order));
    let mut refunded: HashMap<Id, _> = payments::refunded_by_order(reader, whole).await?;
    refunded.extend(payments::refund_shares_by_order(reader, shared, hosts).await?);
    let customers = accounts::views_for(reader, caller, rows.iter().map(|row| row.account_id)).await?;
    service::views_with(reader, rows, items, &refunded, &customers, now).await
}
