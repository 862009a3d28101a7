//! What many ask for at the same time, above all while tickets go on sale: it is read and written down once for all of them.

use std::collections::HashMap;
use std::sync::Arc;

use super::model::{Event, EventRow};
use super::requests::PublishedEventQuery;
use super::{service, store, view};
use crate::app::App;
use crate::auth::Caller;
use crate::base::id::Id;
use crate::base::paging::Page;
use crate::db::Batches;
use crate::error::{Error, Result};
use crate::http::Written;

/// Events that are read at a time, at the most.
const BATCH: usize = 100;

/// An event, and what is answered to whoever may see it.
type Shown = (EventRow, Written<Event>);

/// The events and lists that are being read.
pub struct OnShow {
    events: Arc<Batches<(), Id, Option<Arc<Shown>>>>,
    published: Arc<Batches<PublishedEventQuery, (), Written<Page<Event>>>>,
}

impl Default for OnShow {
    fn default() -> Self {
        Self { events: Batches::of(BATCH), published: Batches::of(usize::MAX) }
    }
}

/// An event, for who may see it.
pub async fn get(app: &Arc<App>, caller: &Caller, id: Id) -> Result<Written<Event>> {
    let reading = Arc::clone(app);
    let shown = app.on_show.events.join((), id, move |(), ids| read(Arc::clone(&reading), ids)).await?;
    let shown = shown.ok_or(Error::NOT_FOUND)?;
    if !service::is_for_all(caller, &shown.0) {
        service::require_visible(&mut app.db.read().await?, caller, &shown.0).await?;
    }
    Ok(shown.1.clone())
}

/// The published events, which are the same for everyone.
pub async fn list_published(app: &Arc<App>, query: PublishedEventQuery) -> Result<Written<Page<Event>>> {
    let reading = Arc::clone(app);
    let list = move |query, waiting: Vec<()>| {
        let app = Arc::clone(&reading);
        async move {
            let page = Written::new(&service::list_published(&app, query).await?)?;
            Ok(vec![page; waiting.len()])
        }
    };
    app.on_show.published.join(query, (), list).await
}

/// These events as they are shown, in this order.
async fn read(app: Arc<App>, ids: Vec<Id>) -> Result<Vec<Option<Arc<Shown>>>> {
    let mut tx = app.db.read().await?;
    let rows = store::of_ids(&mut tx, ids.clone()).await?;
    let events = view::views(&app, &mut tx, rows.clone()).await?;
    let written = rows.into_iter().zip(&events).map(|(row, event)| Ok((row.id, Arc::new((row, Written::new(event)?)))));
    let shown: HashMap<Id, Arc<Shown>> = written.collect::<Result<_>>()?;
    Ok(ids.iter().map(|id| shown.get(id).cloned()).collect())
}
