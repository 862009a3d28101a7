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
use boxoffice_http::error::{Error, Result};
use futures::FutureExt;
use tokio::sync::oneshot;

type Waiting<T, R> = Vec<(T, oneshot::Sender<Result<R>>)>;

/// How much of a batch an item fills.
type Weigh<T> = Box<dyn Fn(&T) -> usize + Send + Sync>;

/// What waits, by its kind. A kind has an entry while a batch of it is worked on.
pub struct Batcher<K, T, R> {
    most: usize,
    weigh: Weigh<T>,
    waiting: Mutex<HashMap<K, Waiting<T, R>>>,
}

impl<K, T, R> Batcher<K, T, R>
where
    K: Clone + Eq + Hash + Send + 'static,
    T: Send + 'static,
    R: Send + 'static,
{
    /// Batches of at most so many.
    pub fn of(most: usize) -> Arc<Self> {
        Self::with_max_weight(most, |_| 1)
    }

    /// Batches of at most so much by what each item weighs, or of one that weighs more.
    pub fn with_max_weight(most: usize, weigh: impl Fn(&T) -> usize + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self { most, weigh: Box::new(weigh), waiting: Mutex::default() })
    }

    /// Has `item` worked on in the next batch of its kind, which it is part of as soon as this returns: `work` gives one result for
    /// each item, in their order. It runs in a task of its own, and goes on when whoever asked for it has gone away.
    ///
    /// # Errors
    /// With that of `work`, which all in the batch are told; and when it has panicked.
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
                Ok(results) => senders.into_iter().zip(results).for_each(|(sender, result)| reply(sender, Ok(result))),
                Err(error) => senders.into_iter().for_each(|sender| reply(sender, Err(error.clone_lossy()))),
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
        let mut weight = 0;
        let fits = |(item, _): &&(T, _)| {
            weight += (self.weigh)(item);
            weight <= self.most
        };
        let count = all.iter().take_while(fits).count().max(1);
        Some(all.drain(..count).collect())
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<K, Waiting<T, R>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tells a result to whoever waits for it, and may have gone away.
fn reply<R>(sender: oneshot::Sender<Result<R>>, result: Result<R>) {
    let _gone = sender.send(result);
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use futures::future::{join_all, ready};

    use super::*;
    use boxoffice_http::error::Code;

    /// Tells everyone how many were in the batch; a 13 makes it panic, and a 0 makes it fail.
    async fn count((): (), numbers: Vec<u32>) -> Result<Vec<usize>> {
        tokio::task::yield_now().await;
        assert!(!numbers.contains(&13));
        if numbers.contains(&0) { Err(Code::SectionSoldOut.into()) } else { Ok(vec![numbers.len(); numbers.len()]) }
    }

    async fn ask(batches: &Arc<Batcher<(), u32, usize>>, numbers: &[u32]) -> Vec<Result<usize>> {
        join_all(numbers.iter().map(|number| batches.submit((), *number, count))).await
    }

    #[tokio::test]
    async fn who_asks_at_the_same_time_is_in_one_batch_of_no_more_than_so_many() {
        let batches = Batcher::of(3);

        let counts: Vec<usize> = ask(&batches, &[1, 2, 3, 4, 5]).await.into_iter().map(Result::unwrap).collect();

        assert_eq!(counts, [3, 3, 3, 2, 2]);
        // The task that has told them looks for others once more.
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        assert!(batches.waiting().is_empty(), "a kind that nobody waits for takes no room");
    }

    #[tokio::test]
    async fn what_weighs_much_fills_a_batch() {
        let batches = Batcher::with_max_weight(4, |weight| *weight as usize);

        let counts: Vec<usize> = ask(&batches, &[1, 3, 2, 9, 2, 2]).await.into_iter().map(Result::unwrap).collect();

        assert_eq!(counts, [2, 2, 1, 1, 2, 2]);
    }

    #[tokio::test]
    async fn what_is_asked_for_later_is_not_answered_from_before() {
        let batches = Batcher::<(), (), u64>::of(10);
        let clock = Arc::new(Mutex::new(0));
        let ask = || {
            let clock = Arc::clone(&clock);
            batches.submit((), (), move |(), all| {
                let now = *clock.lock().unwrap();
                let told = vec![now; all.len()];
                async move {
                    tokio::task::yield_now().await;
                    Ok(told)
                }
            })
        };
        let first = ask();
        // The first batch has begun, and is not done.
        tokio::task::yield_now().await;
        tokio::task::yield_now().await;
        *clock.lock().unwrap() = 1;
        let second = ask();

        assert_eq!((first.await.unwrap(), second.await.unwrap()), (0, 1));
    }

    #[tokio::test]
    async fn a_failure_and_a_panic_are_told_to_their_batch_alone() {
        let batches = Batcher::of(2);

        let told = ask(&batches, &[1, 0, 2, 13, 3, 4]).await;

        assert!(told[..2].iter().all(|told| matches!(told, Err(Error::Rejected(Code::SectionSoldOut, _)))), "{told:?}");
        assert!(told[2..4].iter().all(|told| matches!(told, Err(Error::Internal(_)))), "{told:?}");
        assert!(matches!(told[4..], [Ok(2), Ok(2)]), "{told:?}");
    }

    #[tokio::test]
    async fn kinds_do_not_wait_for_each_other() {
        let batches = Batcher::<&str, (), usize>::of(10);
        let never = batches.submit("never", (), |_, _: Vec<()>| futures::future::pending());

        let other = batches.submit("other", (), |_, all| ready(Ok(vec![1; all.len()])));

        assert_eq!(other.await.unwrap(), 1);
        drop(never);
    }
}
