//! Every decision on every submission, wherever it stands.

use serde_json::Value;

use super::{add_venue, decide, read, refusal, submission_of, submit};
use crate::on_both_databases;
use crate::support::World;

on_both_databases![an_events_submission_is_decided_while_it_is_pending, a_venues_submission_is_decided_while_it_is_pending];

/// The submission and its content, as the staff read them, and what somebody else reads of the content.
async fn everything(world: &World, content: &str) -> [Value; 3] {
    let staff = &world.staff.key;
    [
        read(world, staff, &submission_of(content)).await.body,
        read(world, staff, content).await.body,
        read(world, &world.public_key, content).await.body,
    ]
}

/// Tries both decisions on a submission in each state; `make` gives content that waits for review.
async fn try_all(world: &World, make: impl AsyncFn() -> String) {
    for (earlier, status) in [(None, "Pending"), (Some("approved=true"), "Approved"), (Some("approved=false"), "Rejected")] {
        for (decision, decided) in [("approved=true", "Approved"), ("approved=false", "Rejected")] {
            let content = make().await;
            if let Some(earlier) = earlier {
                assert_eq!(decide(world, &content, earlier).await.status, 200);
            }
            let before = everything(world, &content).await;
            assert_eq!(before[0]["status"], status);

            let answer = decide(world, &content, decision).await;

            let after = everything(world, &content).await;
            if earlier.is_none() {
                assert_eq!((answer.status, &answer.body, &after[0]["status"]), (200, &after[0], &Value::from(decided)));
            } else {
                assert_eq!(refusal(&answer), (409, "submission.decided"), "{decision} of what is {status}");
                assert_eq!(after, before, "{decision} of what is {status}");
            }
        }
    }
}

async fn an_events_submission_is_decided_while_it_is_pending(world: World) {
    let kofi = world.person("kofi").await;
    let host = world.host_of(&kofi).await;
    try_all(&world, async || {
        let event = world.draft(&host).await;
        assert_eq!(submit(&world, &kofi.key, &event.uri).await.status, 201);
        event.uri
    })
    .await;
}

async fn a_venues_submission_is_decided_while_it_is_pending(world: World) {
    let kofi = world.person("kofi").await;
    try_all(&world, async || add_venue(&world, &kofi.key, &format!("Backyard {}", world.app.clock.next_id())).await).await;
}
