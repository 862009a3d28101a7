//! Reads of single orders. Concurrent requests share their statements.

use std::collections::HashMap;
use std::sync::Arc;

use boxoffice_http::error::Result;
use boxoffice_http::traces::Span;

use super::model::{Criteria, Order, OrderRow};
use super::{service, store};
use crate::features::identity::accounts;
use crate::kernel::db::Batcher;
use crate::kernel::types::id::Id;
use crate::state::{App, Ctx};

/// Maximum number of orders in a batch.
const MAX_ORDERS: usize = 100;

/// Batches of reads of single orders.
pub struct OrderReads(Arc<Batcher<(), (Id, Span), Option<SharedOrder>>>);

/// An order with its row, for all requests that read it in the same batch.
type SharedOrder = Arc<(OrderRow, Order)>;

impl Default for OrderReads {
    fn default() -> Self {
        Self(Batcher::of(MAX_ORDERS))
    }
}

impl OrderReads {
    /// Returns an order with its row, as its customer may see it.
    pub async fn get(&self, ctx: &Ctx, id: Id) -> Result<Option<(OrderRow, Order)>> {
        let app = Arc::clone(&ctx.app);
        let read = move |(), requests| read_orders(Arc::clone(&app), requests);
        Ok(self.0.submit((), (id, ctx.unit.span().clone()), read).await?.map(Arc::unwrap_or_clone))
    }
}

/// Returns these orders in the same order.
async fn read_orders(app: Arc<App>, requests: Vec<(Id, Span)>) -> Result<Vec<Option<SharedOrder>>> {
    let (ids, spans): (Vec<Id>, Vec<Span>) = requests.into_iter().unzip();
    let mut reader = app.db.read().await?.traced(&Span::of_batch("read orders", &spans));
    let rows = store::find_all(&mut reader, ids.clone(), Criteria::default()).await?;
    let customers = accounts::find_all(&mut reader, rows.iter().map(|row| row.account_id)).await?;
    let customers = customers.into_iter().map(|row| (row.id, accounts::view(row))).collect();
    let orders = service::views_of_customers(&mut reader, rows.clone(), &customers, app.clock.now()).await?;
    let with_row = |(row, order): (OrderRow, Order)| (row.id, Arc::new((row, order)));
    let orders: HashMap<Id, SharedOrder> = rows.into_iter().zip(orders).map(with_row).collect();
    Ok(ids.iter().map(|id| orders.get(id).cloned()).collect())
}
