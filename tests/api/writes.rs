//! Statements that are executed together.

use boxoffice_http::error::Error;

use crate::support::{TestApp, test_on};

type Pair = (i64, String);

fn pairs(numbers: impl IntoIterator<Item = i64>, text: &str) -> Vec<Pair> {
    numbers.into_iter().map(|number| (number, text.to_owned())).collect()
}

#[test_on(sqlite, postgres)]
async fn statements_are_executed_in_their_order(app: TestApp) {
    for table in
        ["create table written_first (number bigint, text text)", "create table written_second (number bigint, text text)"]
    {
        app.execute_sql(table).await;
    }
    // More rows than one statement has on SQLite, and more values than it prepares for the next time.
    for rows in [3, 3, 1600] {
        app.execute_sql("delete from written_second").await;
        app.execute_sql("delete from written_first").await;
        app.execute_sql("insert into written_first values (0, 'old'), (1, 'old'), (2, 'old')").await;
        let mut tx = app.state.db.begin().await.unwrap();
        let writes = tx.writes().insert_rows("written_second (number, text)", pairs(10..10 + rows, "inserted"), |columns| {
            columns.add(|(number, _): &Pair| *number).add(|(_, text)| text.clone());
        });
        let writes = writes.insert_rows("written_second (number, text)", Vec::<Pair>::new(), |columns| {
            columns.add(|(number, _)| *number).add(|(_, text)| text.clone());
        });
        let writes = writes.statement(|update| {
            let changes = pairs([0, 2], "changed");
            let update = update.push("update written_first set text = v.column2 from (");
            let update = update.values(&changes, |columns| _ = columns.add(|(number, _)| *number).add(|(_, text)| text.clone()));
            update.push(") as v where written_first.number = v.column1")
        });
        let writes = writes.statement(|delete| delete.push("delete from written_first where true").and_in("number", [1_i64]));
        let writes = writes.insert_rows("written_second (number, text)", pairs([5], "last"), |columns| {
            columns.add(|(number, _): &Pair| *number).add(|(_, text)| text.clone());
        });
        writes.execute().await.unwrap();
        tx.writes().execute().await.unwrap();
        tx.commit().await.unwrap();

        let mut reader = app.state.db.read().await.unwrap();
        let first: Vec<Pair> = reader.query("select number, text from written_first order by number").all().await.unwrap();
        let second: Vec<Pair> = reader.query("select number, text from written_second order by number").all().await.unwrap();
        assert_eq!(first, pairs([0, 2], "changed"));
        assert_eq!(second, [pairs([5], "last"), pairs(10..10 + rows, "inserted")].concat());
    }
}

#[test_on(sqlite, postgres)]
async fn rejected_statement_undoes_all(app: TestApp) {
    app.execute_sql("create table numbers (number bigint not null)").await;
    let mut tx = app.state.db.begin().await.unwrap();
    let writes = tx.writes().insert_rows("numbers (number)", [Some(1_i64)], |columns| _ = columns.add(|number| *number));
    let writes = writes.insert_rows("numbers (number)", [Some(2_i64), None], |columns| _ = columns.add(|number| *number));

    let rejected = writes.execute().await;

    assert!(matches!(rejected, Err(Error::Database(_))), "{rejected:?}");
    drop(tx);
    assert_eq!(app.scalar::<i64>("select count(*) from numbers").await, 0);
}
