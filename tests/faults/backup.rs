//! Backups of a server under load.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use boxoffice::kernel::db::{Db, Reader};
use boxoffice::kernel::types::clock::Clock;
use serde_json::json;

use super::kills::Site;
use super::load::Load;
use super::{fault_duration, print_figure};
use crate::support::server_process::{Run, ServerProcess, boxoffice};
use crate::support::{check_invariants, fetch_url, postgres, wait_until};

/// Returns an image that no other call returns.
fn banner(number: u32) -> String {
    let mut png = Vec::new();
    let pixel = image::RgbImage::from_pixel(64, 64, image::Rgb([number as u8, (number >> 8) as u8, 7]));
    pixel.write_to(&mut std::io::Cursor::new(&mut png), image::ImageFormat::Png).unwrap();
    BASE64_STANDARD.encode(png)
}

/// Backs a server up during a sale while the event's banner is replaced again and again, and starts a server on the restored data.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn backup_during_a_sale_is_complete() {
    let site = Site::open(None);
    let server = ServerProcess::start(site.program());
    let load = Load::create(&server.address, &site.administrators_key, &site.public_key, 8, 20_000).await;
    let stopped = AtomicBool::new(false);
    let replace_banner = async {
        let url = format!("{}/events/{}", server.address, load.event);
        for number in 0_u32.. {
            if stopped.load(Ordering::Relaxed) {
                return number;
            }
            let put = reqwest::Client::new().put(&url).header("X-API-Key", &site.administrators_key);
            let put = put.header("X-Client-Version", "3.0.0").json(&json!({ "banner": banner(number) })).send().await.unwrap();
            assert_eq!(put.status(), 200, "{}", put.text().await.unwrap());
        }
        0
    };
    let sale = async {
        let work = load.start(&server.address);
        tokio::time::sleep(fault_duration(3)).await;
        wait_until(async || load.records().payments.len() > 20).await;
        let mut backups = Vec::new();
        for number in 0..3 {
            let (before, requests) = {
                let records = load.records();
                let orders: BTreeSet<String> = records.orders.keys().cloned().collect();
                ((orders, records.payments.clone()), records.requests)
            };
            let (file, begun) = (site.folder().join(format!("backup-{number}.tar")), Instant::now());
            let mut command = boxoffice(site.folder(), &["backup", file.to_str().unwrap()]);
            let made = tokio::task::spawn_blocking(move || command.run()).await.unwrap();
            assert!(made.succeeded(), "{}", made.stderr);
            print_figure(format!(
                "backup under load: {:.1} s, {} KiB, with {} orders acknowledged before and {} requests meanwhile",
                begun.elapsed().as_secs_f64(),
                fs::metadata(&file).unwrap().len() / 1024,
                before.0.len(),
                load.records().requests - requests
            ));
            backups.push((file, before));
        }
        work.stop().await;
        stopped.store(true, Ordering::Relaxed);
        backups
    };
    let (backups, banners) = tokio::join!(sale, replace_banner);
    assert!(load.records().unavailable.is_empty() && load.records().lost.is_empty(), "{}", load.figures());
    assert!(banners > 3, "{banners}");

    for (file, (orders, payments)) in backups {
        let folder = tempfile::tempdir().unwrap();
        let restored = boxoffice(folder.path(), &["restore", file.to_str().unwrap()]).run();
        assert!(restored.succeeded(), "{}", restored.stderr);
        let server = ServerProcess::start(boxoffice(folder.path(), &["serve"]));
        let image = fetch_url(&format!("{}/media/banner/{}", server.address, load.event)).await;
        assert_eq!((image.status().as_u16(), image.headers()["content-type"].to_str().unwrap()), (200, "image/png"));
        server.stop();
        let db = Db::open_existing(&format!("sqlite:{}", folder.path().join("boxoffice.db").display())).await.unwrap();
        check_acknowledged(&db, &orders, &payments).await;
    }
}

/// Dumps PostgreSQL with its own tool during a sale, and checks the restored database.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_dump_during_a_sale_is_complete() {
    let (Some(database), Some(target)) = (postgres::new_database().await, postgres::new_database().await) else { return };
    let site = Site::open(Some(&database.url));
    let server = ServerProcess::start(site.program());
    let load = Load::create(&server.address, &site.administrators_key, &site.public_key, 8, 20_000).await;
    let work = load.start(&server.address);
    tokio::time::sleep(fault_duration(2)).await;
    wait_until(async || load.records().payments.len() > 20).await;
    let (orders, payments) = {
        let records = load.records();
        (records.orders.keys().cloned().collect::<BTreeSet<String>>(), records.payments.clone())
    };
    let dump = site.folder().join("boxoffice.dump");
    let run = async |mut command: Command| {
        let done = tokio::task::spawn_blocking(move || command.run()).await.unwrap();
        assert!(done.succeeded(), "{}", done.stderr);
    };

    let mut pg_dump = Command::new("pg_dump");
    pg_dump.arg("--format=custom").arg("--file").arg(&dump).arg("--dbname").arg(&database.url);
    run(pg_dump).await;
    work.stop().await;
    let mut pg_restore = Command::new("pg_restore");
    pg_restore.args(["--no-owner", "--exit-on-error", "--dbname"]).arg(&target.url).arg(&dump);
    run(pg_restore).await;
    run(boxoffice(site.folder(), &["check", "--database", &target.url])).await;

    assert!(load.records().unavailable.is_empty() && load.records().lost.is_empty(), "{}", load.figures());
    let db = Db::open_existing(&target.url).await.unwrap();
    check_acknowledged(&db, &orders, &payments).await;
    print_figure(format!("pg_dump under load: {} orders acknowledged before, 0 lost", orders.len()));
}

/// Asserts that these orders and payments exist, and that the books are correct.
async fn check_acknowledged(db: &Db, orders: &BTreeSet<String>, payments: &BTreeSet<String>) {
    let mut reader = db.read().await.unwrap();
    let ids = async |reader: &mut Reader, query| -> BTreeSet<String> {
        let ids: Vec<(i64,)> = reader.query(query).all().await.unwrap();
        ids.into_iter().map(|(id,)| id.to_string()).collect()
    };
    assert!(ids(&mut reader, "select id from orders").await.is_superset(orders));
    assert!(ids(&mut reader, "select id from payments where status = 'Confirmed'").await.is_superset(payments));
    assert_eq!(check_invariants(&mut reader, Clock::default().now()).await, [""; 0]);
}

/// A backup that is stopped or killed leaves a complete file under its name or none, and the next one succeeds.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn interrupted_backup_leaves_nothing() {
    let site = Site::open(None);
    let server = ServerProcess::start(site.program());
    let load = Load::create(&server.address, &site.administrators_key, &site.public_key, 4, 20_000).await;
    let work = load.start(&server.address);
    wait_until(async || load.records().payments.len() > 20).await;
    let file = site.folder().join("backup.tar");
    let start = || boxoffice(site.folder(), &["backup", file.to_str().unwrap()]).spawn().unwrap();

    // First those that leave nothing: a program that has not yet begun can't delete what one killed before has left.
    for (signal, delay) in [("TERM", 30), ("TERM", 90), ("KILL", 20), ("KILL", 60), ("KILL", 120)] {
        let mut backup = start();
        tokio::time::sleep(Duration::from_millis(delay)).await;
        // It may have succeeded already.
        let _ = Command::new("kill").args(["-s", signal, &backup.id().to_string()]).output().unwrap();
        let succeeded = backup.wait().unwrap().success();
        // A kill may follow the moment at which the complete file got its name.
        assert!(file.exists() == succeeded || (file.exists() && signal == "KILL"), "{signal} after {delay} ms");
        if file.exists() {
            let folder = tempfile::tempdir().unwrap();
            let restored = boxoffice(folder.path(), &["restore", file.to_str().unwrap()]).run();
            assert!(restored.succeeded(), "{}", restored.stderr);
            fs::remove_file(&file).unwrap();
        }
        assert!(signal == "KILL" || !site.folder().join("backup.tar.partial").exists());
    }
    let made = start().wait().unwrap();
    work.stop().await;

    assert!(made.success() && file.exists() && !site.folder().join("backup.tar.partial").exists());
}
