//! Lists of the events of a host. Concurrent requests for the same page share their statements and its serialization.

use std::sync::Arc;

use boxoffice_http::error::Result;
use boxoffice_http::traces::Span;

use super::model::Event;
use super::requests::HostEventQuery;
use super::service;
use super::store::{ListFilter, Visibility};
use crate::features::catalog::hosts;
use crate::kernel::auth::Caller;
use crate::kernel::db::{Batcher, UnitOfWork, read_from_standby};
use crate::kernel::http::SerializedJson;
use crate::kernel::types::id::Id;
use crate::kernel::types::paging::Page;
use crate::state::Ctx;

/// Maximum number of requests in a batch.
const MAX_BATCH: usize = 100;

/// Batches of reads of the events of hosts.
pub struct HostEvents(Arc<Batcher<ListKey, Span, SerializedJson<Page<Event>>>>);

/// The list and the page that all requests of a batch have in common.
#[derive(Clone, PartialEq, Eq, Hash)]
struct ListKey {
    host: Id,
    query: HostEventQuery,
    /// True for callers who also see the events that are neither listed nor cancelled.
    is_manager: bool,
}

impl Default for HostEvents {
    fn default() -> Self {
        Self(Batcher::of(MAX_BATCH))
    }
}

/// Returns a page of the events of a host that the caller may see.
pub async fn list(ctx: &Ctx, caller: &Caller, host: Id, query: HostEventQuery) -> Result<SerializedJson<Page<Event>>> {
    let is_manager = read_from_standby!(ctx.unit, |tx| hosts::require_exists_for(tx, caller, host).await)?;
    let app = Arc::clone(&ctx.app);
    let read = move |ListKey { host, query, is_manager }, spans: Vec<Span>| {
        let app = Arc::clone(&app);
        async move {
            let unit = UnitOfWork::read_only(app.db.clone(), Span::of_batch("list events of host", &spans));
            let visibility = if is_manager { Visibility::All } else { Visibility::Open };
            let list_filter =
                ListFilter { host: Some(host), status: query.status, public: query.public, ..ListFilter::of(visibility) };
            let page = read_from_standby!(unit, |tx| service::page(&app, tx, &query.filter, &list_filter).await)?;
            Ok(vec![SerializedJson::new(&page)?; spans.len()])
        }
    };
    ctx.app.host_events.0.submit(ListKey { host, query, is_manager }, ctx.unit.span().clone(), read).await
}
