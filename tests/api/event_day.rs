//! The example `clients/rust/examples/event_day.rs` against a server.

use crate::support::{TestApp, test_on};

#[path = "../../clients/rust/examples/event_day.rs"]
#[expect(dead_code, reason = "the test doesn't call the example's main function")]
mod example;

#[test_on(sqlite, postgres)]
async fn event_day_is_played(app: TestApp) {
    example::play(&app.address, &app.staff.key, app.mailbox.folder()).await.unwrap();
}
