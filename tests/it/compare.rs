//! The comparison: clean against what is as the contract says, and finding all that isn't.

use boxoffice::contract::Contract;
use boxoffice::http::Running;
use boxoffice::log;
use boxoffice::mock::{self, Settings};
use boxoffice::qa::comparison::Comparison;
use boxoffice::qa::model::{Check, Report};
use boxoffice::qa::options::asked;
use boxoffice::qa::side::Side;

use crate::support::World;
use crate::{on_both_databases, plain_tests};

mod faulty;
mod planted;

on_both_databases![the_platform_is_as_its_contract_says];

plain_tests![async
    a_mock_is_as_its_document_says,
    a_mock_with_a_world_is_as_its_document_says,
    a_mock_that_keeps_a_world_is_as_its_document_says,
    the_same_seed_asks_the_same,
];

plain_tests![a_name_that_there_is_not_is_refused_with_those_near_it];

/// A mock of our contract that runs.
struct Mock {
    address: String,
    _running: Running<()>,
}

fn mock() -> Mock {
    mock_of(Settings::default())
}

fn mock_of(settings: Settings) -> Mock {
    let listen = "127.0.0.1:0".parse().unwrap();
    let running = mock::start(Contract::builtin().unwrap(), settings, listen, &log::silent()).unwrap();
    Mock { address: format!("http://{}", running.address()), _running: running }
}

/// A server with a key of the scope `public`.
async fn side(address: &str) -> Side {
    let mut side = Side::open(address, None).await.unwrap();
    side.public_key = Some("public".to_owned());
    side
}

/// Of every operation of our contract.
async fn comparison(address: &str, reference: Option<&str>) -> Comparison {
    let contract = Contract::builtin().unwrap();
    let asked = asked(&contract, &[], &[]).unwrap();
    let reference = match reference {
        Some(address) => Some(side(address).await),
        None => None,
    };
    Comparison::new(contract, side(address).await, reference, 1, asked).unwrap()
}

/// Nothing is found, every operation was asked and succeeded, and every check was made.
fn assert_clean(report: &Report) {
    assert_eq!(report.findings, []);
    for operation in &report.operations {
        assert_eq!(operation.left_out, None, "{}", operation.operation);
        assert!(operation.seen.iter().any(|status| *status < 300) || operation.method == "PATCH", "{operation:?}");
    }
    let made = |check| report.operations.iter().any(|operation| operation.checks.contains_key(check));
    let never: Vec<_> = Check::ALL.iter().filter(|check| !made(check)).collect();
    assert_eq!(never, [&Check::ReferenceStatus, &Check::ReferenceShape]);
}

async fn a_mock_is_as_its_document_says() {
    let mock = mock();

    assert_clean(&comparison(&mock.address, None).await.run(|_| ()).await);
}

async fn a_mock_with_a_world_is_as_its_document_says() {
    let mock = mock();
    let mut comparison = comparison(&mock.address, None).await;
    comparison.target.settle(&comparison.contract, 1).await.unwrap();

    assert_clean(&comparison.run(|_| ()).await);
}

async fn a_mock_that_keeps_a_world_is_as_its_document_says() {
    let mock = mock_of(Settings { is_stateful: true, ..Settings::default() });
    let mut comparison = comparison(&mock.address, None).await;
    comparison.target.settle(&comparison.contract, 1).await.unwrap();

    assert_clean(&comparison.run(|_| ()).await);
}

async fn the_platform_is_as_its_contract_says(world: World) {
    let contract = Contract::builtin().unwrap();
    let mut side = Side::open(&world.address, Some(&world.staff.key)).await.unwrap();
    side.settle(&contract, 1).await.unwrap();
    let asked = asked(&contract, &[], &[]).unwrap();
    let comparison = Comparison::new(contract, side, None, 1, asked).unwrap();

    assert_clean(&comparison.run(|_| ()).await);
}

async fn the_same_seed_asks_the_same() {
    let mock = mock();

    let one = comparison(&mock.address, None).await.run(|_| ()).await;
    let other = comparison(&mock.address, None).await.run(|_| ()).await;

    assert_eq!((one.operations, one.requests), (other.operations, other.requests));
}

fn a_name_that_there_is_not_is_refused_with_those_near_it() {
    let contract = Contract::builtin().unwrap();
    let names = |name: &str| [name.to_owned()];

    let unknown = asked(&contract, &names("session_creat"), &[]).unwrap_err().to_string();
    let some = asked(&contract, &names("Sessions"), &names("session_create")).unwrap();

    assert!(unknown.starts_with("session_creat is neither a tag nor an operationId"), "{unknown}");
    assert!(unknown.contains("session_create"), "{unknown}");
    assert_eq!(some.len(), 5);
    assert!(some.contains("session_active_get"));
}
