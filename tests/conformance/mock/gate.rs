//! The gate of `clients/rust/examples/offline_gate.rs` against the mock: the signed examples of the contract.

use boxoffice_client::Client;
use boxoffice_mock::MockSettings;
use chrono::Utc;

use crate::support::{MockServer, mock_request};

#[path = "../../../clients/rust/examples/offline_gate.rs"]
#[expect(dead_code, reason = "the test doesn't call the example's main function")]
mod example;

use example::{Decision, Gate};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn offline_gate_works() {
    let mock = MockServer::start(MockSettings::default());
    let client = Client::connect(&format!("http://{}", mock.address()), "any").unwrap();
    let code = mock.send(&mock_request("GET", "/tickets/17637204600002/code")).await.json();
    let mut gate = Gate::new(client, "17637000000051", "Gate B scanner 1");

    let conflicts = gate.sync().await.unwrap();
    let issued = gate.scan(code["code"].as_str().unwrap(), Utc::now());
    let pending = gate.scan("7QK2M9-P0D5V7HJ2C9L", Utc::now());

    assert_eq!(conflicts.len(), 1);
    assert_eq!((issued, pending), (Decision::Admitted, Decision::NotIssued));
    gate.sync().await.unwrap();
    assert_eq!(gate.queued(), 0, "the scan is uploaded");
}
