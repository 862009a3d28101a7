//! The mock server in this process.

use std::net::SocketAddr;
use std::sync::Arc;

use boxoffice_conformance::http_client::{API_KEY_HEADER, CLIENT_VERSION_HEADER, HttpClient, ReceivedResponse, Request};
use boxoffice_http::ServerHandle;
use boxoffice_http::log;
use boxoffice_mock::{self, MockSettings};
use boxoffice_openapi::Contract;
use serde_json::Value;

use super::ANY_PORT;

/// A running mock server, and a client of it.
pub struct MockServer {
    pub server: HttpClient,
    pub contract: Arc<Contract>,
    running: ServerHandle,
}

impl MockServer {
    /// Starts a mock of the platform's contract.
    pub fn start(settings: MockSettings) -> Self {
        Self::with_contract(boxoffice::contract::load().unwrap(), settings)
    }

    /// Starts a mock of the platform's contract that stores resources.
    pub fn start_stateful() -> Self {
        Self::start(MockSettings { is_stateful: true, ..MockSettings::default() })
    }

    /// Starts a mock of any document.
    pub fn of(document: Value, settings: MockSettings) -> Self {
        Self::with_contract(Arc::new(Contract::new(document).unwrap()), settings)
    }

    fn with_contract(contract: Arc<Contract>, settings: MockSettings) -> Self {
        let running = boxoffice_mock::start(Arc::clone(&contract), settings, ANY_PORT, &log::silent()).unwrap();
        let server = HttpClient::new(&format!("http://{}", running.address())).unwrap();
        Self { server, contract, running }
    }

    /// Returns its address.
    pub fn address(&self) -> SocketAddr {
        self.running.address()
    }

    /// Sends a request, and asserts that the response conforms to the document.
    pub async fn send(&self, request: &Request) -> ReceivedResponse {
        let reply = self.server.send(request).await.unwrap();
        let path = request.path.split('?').next().unwrap();
        let judged = self.contract.validate_response(&request.method, path, reply.status, &reply.headers, &reply.body);
        let violations = judged.map(|(_, violations)| violations).unwrap_or_default();
        assert!(violations.is_empty(), "{} {}: {} {violations:#?}", request.method, request.path_and_query(), reply.status);
        reply
    }
}

/// Builds a request with a key and a version.
pub fn mock_request(method: &str, path: &str) -> Request {
    Request::new(method, path).with_header(API_KEY_HEADER, "any").with_header(CLIENT_VERSION_HEADER, "3.0.0")
}
