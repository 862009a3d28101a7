//! Size of pages.

use std::collections::BTreeSet;

use super::connections::create_large_events;
use crate::support::{TestApp, entries_of, test_on};

const MAX_BYTES: usize = 4 << 20;

#[test_on(sqlite, postgres)]
async fn large_lists_have_more_pages(app: TestApp) {
    const EVENTS: usize = 13;
    create_large_events(&app, EVENTS).await;
    let read = async |path: &str| {
        let response = app.request("GET", path).at(app.server).key(&app.staff.key).send_raw().await;
        (response.status().as_u16(), response.bytes().await.unwrap())
    };
    let (_, hosts) = read("/hosts").await;
    let hosts: serde_json::Value = serde_json::from_slice(&hosts).unwrap();
    let host = format!("{}/events", hosts["entries"][0]["self"].as_str().unwrap());

    for list in ["/events", "/published-events", "/published-events?sort=alphabetical", &host] {
        for records in [3, 100] {
            let separator = if list.contains('?') { '&' } else { '?' };
            let (mut seen, mut count, mut page) = (BTreeSet::new(), 0, 1);
            loop {
                // Twice, because the second response may come from the cache.
                let path = format!("{list}{separator}records={records}&page={page}");
                let (first, second) = (read(&path).await, read(&path).await);
                assert!(first == second, "{path}");
                let (status, bytes) = first;
                if status == 404 {
                    break;
                }
                assert!(status == 200 && bytes.len() <= MAX_BYTES, "{path}: {status}, {} bytes", bytes.len());
                let body: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
                let envelope = ["total", "page", "records"].map(|name| body[name].as_u64().unwrap());
                assert_eq!(envelope, [EVENTS as u64, page, records], "{path}");
                let entries = entries_of(&body);
                assert!(!entries.is_empty(), "{path}");
                count += entries.len();
                seen.extend(entries.iter().map(|event| event["self"].as_str().unwrap().to_owned()));
                page += 1;
            }
            assert_eq!((count, seen.len()), (EVENTS, EVENTS), "{list} by {records}");
            assert!(page >= 4, "{list} by {records} has {page} pages");
        }
    }
}
