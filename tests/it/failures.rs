//! Every operation where there is nothing for it: no such resource, and no database to look for it in.

use boxoffice::auth::Scope;
use boxoffice::db::Tx;
use serde_json::json;

use crate::on_both_databases;
use crate::support::{Answer, Operation, World, operations};

on_both_databases![
    what_a_path_names_is_looked_for_first,
    every_operation_tells_that_the_database_is_gone,
    every_operation_tells_that_its_tables_are_gone,
];

/// Asks as whoever of the callers without an event reaches furthest.
async fn ask(world: &World, operation: &Operation) -> Answer {
    let is_for_staff = operation.scopes.contains(&Scope::Administrator);
    operation.ask(world, |request| if is_for_staff { request.key(&world.staff.key) } else { request }).await
}

fn assert_failed_inside(answer: &Answer, operation: &Operation) {
    let message = "There was a server error while excuting this request. Please see system logs for details.";
    let expected = json!({ "message": message, "code": "server.error" });
    assert_eq!((answer.status, &answer.body), (500, &expected), "{}", operation.id);
}

/// The contract's examples name nothing in an empty database, and neither do those of the bodies: what the path names is told.
async fn what_a_path_names_is_looked_for_first(world: World) {
    let mut asked = 0;
    for operation in operations().iter().filter(|operation| !operation.parameters("path").is_empty()) {
        let answer = ask(&world, operation).await;

        assert_eq!(answer.status, 404, "{}: {}", operation.id, answer.body);
        assert_ne!(answer.code(), "endpoint.unknown", "{}", operation.id);
        asked += 1;
    }
    assert!(asked > 40, "only {asked}");
}

async fn every_operation_tells_that_the_database_is_gone(world: World) {
    world.expects_failures();
    world.app.db.close().await;
    for operation in operations() {
        assert_failed_inside(&ask(&world, &operation).await, &operation);
    }
}

/// Past the front door, which still finds the caller: what the operation itself begins must end well.
async fn every_operation_tells_that_its_tables_are_gone(world: World) {
    world.expects_failures();
    let mut tx = world.app.db.begin().await.unwrap();
    for table in tables(&mut tx).await.into_iter().filter(|table| !["accounts", "api_keys"].contains(&table.as_str())) {
        // A new name keeps what refers to it, on both databases.
        let rename = format!("alter table {table} rename to gone_{table}");
        tx.query(rename.leak()).execute().await.unwrap();
    }
    tx.commit().await.unwrap();
    let mut failed = 0;
    for operation in operations() {
        let answer = ask(&world, &operation).await;

        if answer.status == 500 {
            assert_failed_inside(&answer, &operation);
            failed += 1;
        }
    }
    // The others read accounts and keys alone, or no table at all, or have found something else wrong before.
    assert!(failed * 4 > operations().len() * 3, "only {failed}");
}

async fn tables(tx: &mut Tx) -> Vec<String> {
    let sql = if tx.is_postgres() {
        "select tablename::text from pg_tables where schemaname = 'public' and tablename not like '\\_sqlx%'"
    } else {
        "select name from sqlite_master where type = 'table' and name not like 'sqlite%' and name not like '_sqlx%'"
    };
    let rows: Vec<(String,)> = tx.query(sql).all().await.unwrap();
    rows.into_iter().map(|(name,)| name).collect()
}
