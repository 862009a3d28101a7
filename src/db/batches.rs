//! What is done for many at once: whatever is asked for while one batch is worked on makes the next batch of its kind.
//!
//! A batch begins after everyone in it has asked, so nobody gets what was read before, and nothing is kept that could be out of
//! date. The more is asked for at the same time, the less each request costs.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::future::Future;
use std::hash::Hash;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::anyhow;
use futures::FutureExt;
use tokio::sync::oneshot;

use crate::error::{Error, Result};

type Waiting<T, R> = Vec<(T, oneshot::Sender<Result<R>>)>;

/// What waits, by its kind. A kind has an entry while a batch of it is worked on.
pub struct Batches<K, T, R> {
    most: usize,
    waiting: Mutex<HashMap<K, Waiting<T, R>>>,
}

impl<K, T, R> Batches<K, T, R>
where
    K: Clone + Eq + Hash + Send + 'static,
    T: Send + 'static,
    R: Send + 'static,
{
    /// Batches of at most so many.
    pub fn of(most: usize) -> Arc<Self> {
        Arc::new(Self { most, waiting: Mutex::default() })
    }

    /// Has `item` worked on in the next batch of its kind, which it is part of as soon as this returns: `work` gives one result for
    /// each item, in their order. It runs in a task of its own, and goes on when whoever asked for it has gone away.
    ///
    /// # Errors
    /// With that of `work`, which all in the batch are told; and when it has panicked.
    pub fn join<W, F>(self: &Arc<Self>, kind: K, item: T, work: W) -> impl Future<Output = Result<R>> + Send + use<K, T, R, W, F>
    where
        W: Fn(K, Vec<T>) -> F + Send + 'static,
        F: Future<Output = Result<Vec<R>>> + Send + 'static,
    {
        let (sender, result) = oneshot::channel();
        let is_first = match self.waiting().entry(kind.clone()) {
            Entry::Occupied(mut waiting) => {
                waiting.get_mut().push((item, sender));
                false
            }
            Entry::Vacant(nothing) => {
                nothing.insert(vec![(item, sender)]);
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

    async fn run<F>(self: Arc<Self>, kind: K, work: impl Fn(K, Vec<T>) -> F)
    where
        F: Future<Output = Result<Vec<R>>>,
    {
        loop {
            // Whoever is about to ask comes along: the more there are, the less each costs.
            tokio::task::yield_now().await;
            let Some(batch) = self.next(&kind) else { return };
            let (items, senders): (Vec<T>, Vec<_>) = batch.into_iter().unzip();
            // A panic is the batch's, and not of those who wait for the next one.
            let results = AssertUnwindSafe(work(kind.clone(), items)).catch_unwind().await;
            match results.unwrap_or_else(|_| Err(Error::Internal(anyhow!("the work on a batch has panicked")))) {
                Ok(results) => senders.into_iter().zip(results).for_each(|(sender, result)| tell(sender, Ok(result))),
                Err(error) => senders.into_iter().for_each(|sender| tell(sender, Err(error.for_another()))),
            }
        }
    }

    fn next(&self, kind: &K) -> Option<Waiting<T, R>> {
        let mut waiting = self.waiting();
        let all = waiting.get_mut(kind)?;
        if all.is_empty() {
            waiting.remove(kind);
            return None;
        }
        Some(all.drain(..all.len().min(self.most)).collect())
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<K, Waiting<T, R>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tells a result to whoever waits for it, and may have gone away.
fn tell<R>(sender: oneshot::Sender<Result<R>>, result: Result<R>) {
    let _gone = sender.send(result);
}
