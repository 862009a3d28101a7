//! Requests that are executed in one batch: a request that fails, for whatever reason, is the only one that fails.

use boxoffice::features::codes;
use std::sync::Arc;

use boxoffice::kernel::context::Context;
use boxoffice::kernel::db::Tx;
use boxoffice::kernel::unit_of_work::{BatchOperation, GroupCommit};
use boxoffice::state::App;
use boxoffice_http::error::{Error, Result};
use futures::FutureExt;
use futures::future::{BoxFuture, join_all};

use crate::support::{TestApp, test_on};

/// An operation that inserts a number into the table `numbers`.
#[derive(Clone, Copy, PartialEq)]
enum Operation {
    Insert(i64),
    /// Is rejected by a rule.
    Reject,
    /// Has a failure as its result.
    Fail,
    /// Inserts a row that the database rejects.
    Violate,
    Panic,
}

impl BatchOperation<App> for Operation {
    type Output = i64;

    fn execute<'a>(_: &'a App, tx: &'a mut Tx, batch: &'a [&'a Self]) -> BoxFuture<'a, Result<Vec<Result<i64>>>> {
        async move {
            let numbers = batch.iter().filter_map(|operation| match operation {
                Self::Insert(number) => Some(Some(*number)),
                Self::Violate => Some(None),
                _ => None,
            });
            tx.insert_rows("numbers (number)", numbers, |columns| _ = columns.add(|number: &Option<i64>| *number)).await?;
            assert!(!batch.contains(&&Self::Panic), "the test's batch panics");
            let result = |operation: &&Self| match operation {
                Self::Insert(number) => Ok(*number),
                Self::Reject => Err(codes::SECTION_SOLD_OUT.into()),
                _ => Err(Error::Internal(anyhow::anyhow!("the test's operation fails"))),
            };
            Ok(batch.iter().map(result).collect())
        }
        .boxed()
    }
}

#[test_on(sqlite, postgres)]
async fn failing_request_does_not_fail_its_batch(app: TestApp) {
    app.execute_sql("create table numbers (number bigint not null)").await;
    let mut expected = Vec::new();
    for (batch, culprit) in [Operation::Fail, Operation::Violate, Operation::Panic].into_iter().enumerate() {
        let batches = GroupCommit::<App, Operation>::default();
        let ctx = Context::immediate(Arc::clone(&app.state));
        let first = i64::try_from(batch).unwrap() * 10;
        let operations = (first..first + 6).flat_map(|number| match number % 10 {
            2 => [culprit, Operation::Insert(number)],
            _ => [Operation::Insert(number), Operation::Reject],
        });

        let results = join_all(operations.clone().map(|operation| batches.submit(&ctx, operation))).await;

        for (operation, result) in operations.zip(results) {
            match operation {
                Operation::Insert(number) => assert_eq!(result.unwrap(), number),
                Operation::Reject => assert!(matches!(result, Err(Error::Rejected(codes::SECTION_SOLD_OUT, _))), "{result:?}"),
                _ => assert!(matches!(result, Err(Error::Internal(_) | Error::Database(_))), "{result:?}"),
            }
        }
        expected.extend(first..first + 6);
    }
    let numbers: Vec<(i64,)> = app.rows("select number from numbers order by number").await;
    assert_eq!(numbers.into_iter().map(|(number,)| number).collect::<Vec<_>>(), expected);
}
