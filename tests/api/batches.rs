//! Request coalescing: which items form a batch, and whom an error affects.

use boxoffice::features::codes;
use std::sync::Arc;

use boxoffice::kernel::db::Batcher;
use boxoffice_http::error::{Error, Result};
use futures::future::{join_all, ready};
use parking_lot::Mutex;

/// Returns the size of the batch for each item. Panics for a 13 and fails for a 0.
async fn count((): (), numbers: Vec<u32>) -> Result<Vec<usize>> {
    tokio::task::yield_now().await;
    assert!(!numbers.contains(&13));
    if numbers.contains(&0) { Err(codes::SECTION_SOLD_OUT.into()) } else { Ok(vec![numbers.len(); numbers.len()]) }
}

async fn submit_all(batcher: &Arc<Batcher<(), u32, usize>>, numbers: &[u32]) -> Vec<Result<usize>> {
    join_all(numbers.iter().map(|number| batcher.submit((), *number, count))).await
}

#[tokio::test]
async fn coalesces_concurrent_items_up_to_the_maximum() {
    let batcher = Batcher::of(3);

    let counts: Vec<usize> = submit_all(&batcher, &[1, 2, 3, 4, 5]).await.into_iter().map(Result::unwrap).collect();

    assert_eq!(counts, [3, 3, 3, 2, 2]);
    // The task looks for more items after it has sent the results. When there are none, it removes the queue and ends.
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
    assert_eq!(Arc::strong_count(&batcher), 1, "the task has ended");
    assert_eq!(batcher.submit((), 6, count).await.unwrap(), 1, "and another one begins");
}

#[tokio::test]
async fn limits_the_weight_of_a_batch() {
    let batcher = Batcher::with_max_weight(4, |weight| *weight as usize);

    let counts: Vec<usize> = submit_all(&batcher, &[1, 3, 2, 9, 2, 2]).await.into_iter().map(Result::unwrap).collect();

    assert_eq!(counts, [2, 2, 1, 1, 2, 2]);
}

#[tokio::test]
async fn later_item_is_not_added_to_running_batch() {
    let batcher = Batcher::<(), (), u64>::of(10);
    let clock = Arc::new(Mutex::new(0));
    let submit = || {
        let clock = Arc::clone(&clock);
        batcher.submit((), (), move |(), items| {
            let now = *clock.lock();
            let results = vec![now; items.len()];
            async move {
                tokio::task::yield_now().await;
                Ok(results)
            }
        })
    };
    let first = submit();
    // Lets the first batch begin.
    tokio::task::yield_now().await;
    tokio::task::yield_now().await;
    *clock.lock() = 1;
    let second = submit();

    assert_eq!((first.await.unwrap(), second.await.unwrap()), (0, 1));
}

#[tokio::test]
async fn error_and_panic_affect_their_batch_only() {
    let batcher = Batcher::of(2);

    let results = submit_all(&batcher, &[1, 0, 2, 13, 3, 4]).await;

    assert!(results[..2].iter().all(|result| matches!(result, Err(Error::Rejected(codes::SECTION_SOLD_OUT, _)))), "{results:?}");
    assert!(results[2..4].iter().all(|result| matches!(result, Err(Error::Internal(_)))), "{results:?}");
    assert!(matches!(results[4..], [Ok(2), Ok(2)]), "{results:?}");
}

#[tokio::test]
async fn kinds_do_not_wait_for_each_other() {
    let batcher = Batcher::<&str, (), usize>::of(10);
    let pending = batcher.submit("pending", (), |_, _: Vec<()>| futures::future::pending());

    let other = batcher.submit("other", (), |_, items| ready(Ok(vec![1; items.len()])));

    assert_eq!(other.await.unwrap(), 1);
    drop(pending);
}
