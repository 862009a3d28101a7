//! The kind of a server, which decides which checks can be made.

use super::argument::ArgumentLocation;
use super::comparison::Comparison;
use super::http_client::Request;
use super::operation_under_test::OperationUnderTest;
use super::resources::is_item;
use super::target::Target;

/// A preference that mock servers apply and other servers ignore (RFC 7240).
const MOCK_PREFERENCE: &str = "delay=1";

/// Number of operations to try.
const TRIED_OPERATIONS: usize = 6;

/// The kind of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerKind {
    /// A server with state and rules of its own.
    Real,
    /// A mock that stores what is sent, without further rules.
    StatefulMock,
    /// A mock that returns the document's examples, whatever was sent.
    StatelessMock,
}

impl ServerKind {
    /// Returns a note about the checks that are left out.
    pub fn note(self) -> Option<&'static str> {
        match self {
            Self::Real => None,
            Self::StatefulMock => Some(
                "The server is a mock without rules of its own. Checks of changes, states, conflicts, filters and sorts were left out.",
            ),
            Self::StatelessMock => {
                Some("The server is a mock: it returns a resource for every identifier. Checks of stored data were left out.")
            }
        }
    }
}

/// Returns the kind of a server. An unknown identifier is sent to some operations that read a resource.
pub async fn detect(comparison: &Comparison, operations: &[OperationUnderTest<'_>]) -> ServerKind {
    let target = &comparison.target;
    let (mut applies_preference, mut found, mut rejected) = (false, 0, 0);
    let reads: Vec<_> = operations.iter().filter(|operation| operation.spec.method == "GET").collect();
    let is_item = |operation: &&&OperationUnderTest<'_>| is_item(&operation.spec.path);
    for operation in reads.iter().filter(|operation| !operation.spec.path.contains('{')).take(TRIED_OPERATIONS) {
        let Some(request) = example(comparison, operation, target) else { continue };
        let response = target.client.send_with_retries(&request.with_header("Prefer", MOCK_PREFERENCE)).await;
        applies_preference |= response.is_ok_and(|response| response.header("preference-applied").is_some());
    }
    for operation in reads.iter().filter(is_item).take(TRIED_OPERATIONS) {
        let Some(mut request) = example(comparison, operation, target) else { continue };
        for argument in operation.arguments.iter().filter(|argument| argument.location == ArgumentLocation::Path) {
            if let Some(unknown) = argument.unknown_value(&request, operation.spec) {
                request = argument.set(&request, operation.spec, Some(&unknown));
            }
        }
        let Ok(response) = target.client.send_with_retries(&request.with_header("Prefer", MOCK_PREFERENCE)).await else {
            continue;
        };
        applies_preference |= response.header("preference-applied").is_some();
        if operation.is_success(&response) {
            found += 1;
        } else {
            rejected += 1;
        }
    }
    match (applies_preference, found > 0 && rejected == 0) {
        (true, false) => ServerKind::StatefulMock,
        (_, true) if applies_preference || found > 1 => ServerKind::StatelessMock,
        _ => ServerKind::Real,
    }
}

fn example(comparison: &Comparison, operation: &OperationUnderTest<'_>, target: &Target) -> Option<Request> {
    operation.example_request(&comparison.contract, &target.key, None, comparison.seed).ok()
}
