//! Operations on reports. Only administrators of the host and platform administrators can read them.

use boxoffice_http::error::{FieldError, Result, ensure_no_field_errors};

use super::model::{
    Day, EventSales, EventStatistics, HostStatistics, SalesDay, SalesDayFilter, SalesDayRow, SalesFilter, SectionSales,
};
use super::store;
use crate::features::catalog::events;
use crate::features::catalog::hosts;
use crate::features::catalog::sections;
use crate::kernel::auth::Caller;
use crate::kernel::db::read_from_standby;
use crate::kernel::types::api_types::Uri;
use crate::kernel::types::clock::{DAY_MICROS, Timestamp};
use crate::kernel::types::id::Id;
use crate::kernel::types::paging::Page;
use crate::state::Ctx;

pub async fn host_statistics(ctx: &Ctx, caller: &Caller, host: Id) -> Result<HostStatistics> {
    read_from_standby!(ctx.unit, |reader| {
        hosts::require_can_audit(reader, caller, host).await?;
        let events = store::count_events(reader, host).await?;
        let sold = store::sales_of_host(reader, host).await?;
        Ok(HostStatistics {
            uri: Uri(format!("/hosts/{host}/statistics")),
            events,
            orders: sold.orders,
            revenue: sold.revenue,
            tickets: sold.tickets,
            customers: sold.customers,
        })
    })
}

pub async fn event_statistics(ctx: &Ctx, caller: &Caller, event: Id) -> Result<EventStatistics> {
    read_from_standby!(ctx.unit, |reader| {
        events::load_managed(reader, caller, event).await?;
        let capacity = store::capacity(reader, event).await?;
        let sold = store::sales_of_event(reader, event).await?;
        Ok(EventStatistics {
            uri: Uri(format!("/events/{event}/statistics")),
            capacity,
            orders: sold.orders,
            revenue: sold.revenue,
            tickets: sold.tickets,
        })
    })
}

pub async fn event_sales(ctx: &Ctx, caller: &Caller, event: Id, filter: &SalesFilter) -> Result<EventSales> {
    read_from_standby!(ctx.unit, |reader| {
        events::load_managed(reader, caller, event).await?;
        let mut rows = store::sales(reader, event, filter.period).await?;
        let mut problems = Vec::from_iter(filter.period.problem());
        if let Some(section) = &filter.section {
            match sections::find_in_event(reader, event, section).await? {
                Some(id) => rows.retain(|row| row.id == id),
                None => problems.push(FieldError::invalid("section", "names no section of this event")),
            }
        }
        ensure_no_field_errors(problems)?;
        Ok(EventSales {
            units: rows.iter().map(|row| row.units).sum(),
            sales: rows.iter().map(|row| row.sales).sum(),
            fees: rows.iter().map(|row| row.fees).sum(),
            breakdown: rows
                .into_iter()
                .map(|row| (row.name, SectionSales { units: row.units, sales: row.sales, fees: row.fees }))
                .collect(),
        })
    })
}

/// Returns the days on which tickets of an event were sold, the earliest first.
pub async fn event_sales_by_day(ctx: &Ctx, caller: &Caller, event: Id, filter: &SalesDayFilter) -> Result<Page<SalesDay>> {
    read_from_standby!(ctx.unit, |reader| {
        events::load_managed(reader, caller, event).await?;
        filter.period.check()?;
        let page = store::sales_by_day(reader, event, filter).await?;
        let day = |row: SalesDayRow| SalesDay {
            date: Day(Timestamp(row.day * DAY_MICROS).format_date()),
            orders: row.orders,
            units: row.units,
            sales: row.sales,
            fees: row.fees,
        };
        Ok(page.map(day))
    })
}
