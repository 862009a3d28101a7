//! Lists that belong to accounts, such as their tickets. An account and platform administrators read them.
//!
//! Before an event, many accounts read their tickets at the same time. Concurrent requests for the same page share their
//! statements: each statement reads the rows of several accounts.

use std::collections::HashMap;
use std::future::Future;
use std::hash::Hash;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use boxoffice_http::error::{Error, Result};
use boxoffice_http::traces::Span;

use super::model::{AccountNumber, AccountRow};
use super::store;
use crate::kernel::auth::Caller;
use crate::kernel::db::{Batcher, Reader};
use crate::kernel::types::id::Id;
use crate::state::{App, Ctx};

/// Maximum number of requests in a batch. Each may read 100 entries.
const MAX_BATCH: usize = 32;
/// Batches that read at the same time. While the database reads one, the server makes the responses of the other.
const PARALLEL_BATCHES: usize = 2;

/// A page of the list of an account.
pub trait AccountPage: Clone + Send + Sync + 'static {
    /// The properties that the pages of a batch have in common: their number and their filter.
    type Key: Clone + Eq + Hash + Send + Sync + 'static;

    /// Returns the same page of the list of each of these accounts, by the identifier of the account. May leave pages out, such as
    /// the empty ones.
    ///
    /// # Errors
    /// Returns an error if the database fails.
    fn read(
        app: &App,
        reader: &mut Reader,
        key: Self::Key,
        accounts: &[AccountRow],
    ) -> impl Future<Output = Result<HashMap<Id, Self>>> + Send;
}

/// Batches of reads of the lists of accounts.
pub struct AccountLists<P: AccountPage> {
    batches: Arc<Batcher<AccountBatchKey<P::Key>, AccountListRequest, FoundList<P>>>,
    requests: AtomicUsize,
}

/// The page that all requests of a batch read, and the number of one of the batches that read it at the same time.
type AccountBatchKey<K> = (K, usize);

/// The number of an account, and the span of the request for its list.
type AccountListRequest = (AccountNumber, Span);

/// The account and its list, or `None` if it doesn't exist.
type FoundList<P> = Option<Arc<AccountList<P>>>;

/// An account with a page of its list.
#[derive(Clone)]
pub struct AccountList<P> {
    /// The account.
    pub account: AccountRow,
    /// The page, unless [`AccountPage::read`] has left it out.
    pub page: Option<P>,
}

impl<P: AccountPage> Default for AccountLists<P> {
    fn default() -> Self {
        Self { batches: Batcher::of(MAX_BATCH), requests: AtomicUsize::new(0) }
    }
}

impl<P: AccountPage> AccountLists<P> {
    /// Returns the account with this number and a page of its list.
    ///
    /// # Errors
    /// [`Error::NOT_FOUND`] if there is no such account, and [`Error::FORBIDDEN`] for callers other than the account and platform
    /// administrators.
    pub async fn get(&self, ctx: &Ctx, caller: &Caller, number: &AccountNumber, key: P::Key) -> Result<AccountList<P>> {
        let app = Arc::clone(&ctx.app);
        let key = (key, self.requests.fetch_add(1, Ordering::Relaxed) % PARALLEL_BATCHES);
        let read = move |(key, _), requests| read_batch(Arc::clone(&app), key, requests);
        let list = self.batches.submit(key, (number.clone(), ctx.unit.span().clone()), read).await?.ok_or(Error::NOT_FOUND)?;
        caller.require_account(list.account.id)?;
        Ok(Arc::unwrap_or_clone(list))
    }
}

/// Reads the lists of these accounts, and returns them in the same order.
async fn read_batch<P: AccountPage>(app: Arc<App>, key: P::Key, requests: Vec<AccountListRequest>) -> Result<Vec<FoundList<P>>> {
    let mut reader =
        app.db.read().await?.traced(&Span::of_batch("read lists of accounts", requests.iter().map(|(_, span)| span)));
    let numbers = requests.iter().map(|(number, _)| number.0.clone()).collect();
    let accounts = store::find_by_numbers(&mut reader, numbers).await?;
    let mut pages = P::read(&app, &mut reader, key, &accounts).await?;
    let list = |account: AccountRow| {
        let (number, page) = (account.number.clone(), pages.remove(&account.id));
        (number, Arc::new(AccountList { account, page }))
    };
    let lists: HashMap<String, Arc<AccountList<P>>> = accounts.into_iter().map(list).collect();
    Ok(requests.iter().map(|(number, _)| lists.get(&number.0).cloned()).collect())
}
