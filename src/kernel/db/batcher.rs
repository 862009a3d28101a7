//! Request coalescing: the items that are submitted while a batch is processed form the next batch of their kind.
//!
//! A batch begins after all its items were submitted, so no result is older than its request. Nothing is cached, so no result is
//! stale. The more items are submitted at the same time, the less each of them costs.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::future::Future;
use std::hash::Hash;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use anyhow::anyhow;
use boxoffice_http::error::{Error, Result};
use futures::FutureExt;
use parking_lot::Mutex;
use tokio::sync::oneshot;

/// Items that wait for a batch, each with the sender of its result.
type Queue<T, R> = Vec<(T, oneshot::Sender<Result<R>>)>;

/// Returns the weight of an item.
type WeightFn<T> = Box<dyn Fn(&T) -> usize + Send + Sync>;

/// Queues of items by kind. A kind has a queue while a batch of it is processed.
pub struct Batcher<K, T, R> {
    max_weight: usize,
    weight: WeightFn<T>,
    queues: Mutex<HashMap<K, Queue<T, R>>>,
}

impl<K, T, R> Batcher<K, T, R>
where
    K: Clone + Eq + Hash + Send + 'static,
    T: Send + 'static,
    R: Send + 'static,
{
    /// Creates a batcher with a maximum number of items in a batch.
    pub fn of(max_items: usize) -> Arc<Self> {
        Self::with_max_weight(max_items, |_| 1)
    }

    /// Creates a batcher with a maximum weight of a batch. An item that is heavier by itself gets a batch of its own.
    pub fn with_max_weight(max_weight: usize, weight: impl Fn(&T) -> usize + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self { max_weight, weight: Box::new(weight), queues: Mutex::default() })
    }

    /// Adds `item` to the next batch of its kind and returns its result. The item is in the queue as soon as this function
    /// returns, before the future is polled.
    ///
    /// `work` processes a batch and returns one result for each item, in the same order. It runs in a task of its own, so it
    /// continues if the caller is cancelled.
    ///
    /// # Errors
    /// Returns the error of `work`, which all items of the batch have in common, or an error if it has panicked.
    pub fn submit<W, F>(
        self: &Arc<Self>,
        kind: K,
        item: T,
        work: W,
    ) -> impl Future<Output = Result<R>> + Send + use<K, T, R, W, F>
    where
        W: Fn(K, Vec<T>) -> F + Send + 'static,
        F: Future<Output = Result<Vec<R>>> + Send + 'static,
    {
        let (sender, result) = oneshot::channel();
        let is_first = match self.queues.lock().entry(kind.clone()) {
            Entry::Occupied(mut queue) => {
                queue.get_mut().push((item, sender));
                false
            }
            Entry::Vacant(entry) => {
                entry.insert(vec![(item, sender)]);
                true
            }
        };
        if is_first {
            tokio::spawn(Arc::clone(self).run(kind, work));
        }
        async {
            result.await.unwrap_or_else(|_| Err(Error::Internal(anyhow!("the work on a batch has no result for all of it"))))
        }
    }

    /// Like [`submit`](Self::submit), for work with one result that all items of the batch share.
    pub fn submit_shared<W, F>(
        self: &Arc<Self>,
        kind: K,
        item: T,
        work: W,
    ) -> impl Future<Output = Result<R>> + Send + use<K, T, R, W, F>
    where
        R: Clone,
        W: Fn(K, Vec<T>) -> F + Send + 'static,
        F: Future<Output = Result<R>> + Send + 'static,
    {
        self.submit(kind, item, move |kind, items| {
            let count = items.len();
            let result = work(kind, items);
            async move { Ok(vec![result.await?; count]) }
        })
    }

    async fn run<F>(self: Arc<Self>, kind: K, work: impl Fn(K, Vec<T>) -> F)
    where
        F: Future<Output = Result<Vec<R>>>,
    {
        loop {
            // Lets other tasks submit their items first: in a larger batch each item costs less.
            tokio::task::yield_now().await;
            let Some(batch) = self.next_batch(&kind) else { return };
            let (items, senders): (Vec<T>, Vec<_>) = batch.into_iter().unzip();
            // A panic fails its own batch only, not the next one.
            let results = AssertUnwindSafe(work(kind.clone(), items)).catch_unwind().await;
            match results.unwrap_or_else(|_| Err(Error::Internal(anyhow!("the work on a batch has panicked")))) {
                Ok(results) => senders.into_iter().zip(results).for_each(|(sender, result)| reply(sender, Ok(result))),
                Err(error) => senders.into_iter().for_each(|sender| reply(sender, Err(error.clone_lossy()))),
            }
        }
    }

    fn next_batch(&self, kind: &K) -> Option<Queue<T, R>> {
        let mut queues = self.queues.lock();
        let queue = queues.get_mut(kind)?;
        if queue.is_empty() {
            queues.remove(kind);
            return None;
        }
        let mut weight = 0;
        let fits = |(item, _): &&(T, _)| {
            weight += (self.weight)(item);
            weight <= self.max_weight
        };
        let count = queue.iter().take_while(fits).count().max(1);
        Some(queue.drain(..count).collect())
    }
}

/// Sends a result. The receiver may have been dropped.
fn reply<R>(sender: oneshot::Sender<Result<R>>, result: Result<R>) {
    let _dropped = sender.send(result);
}
