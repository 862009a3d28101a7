//! A server to check, with the fixtures created on it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;

use anyhow::Context;
use boxoffice_openapi::{Contract, Operation, counted};
use http::header::ETAG;

use super::argument::{Argument, ArgumentLocation};
use super::checks::updates::as_read;
use super::fixtures::{ExpectedOutcome, Fixtures, PreparationFailure, PreparedRequest};
use super::http_client::{HttpClient, KEY_VARIABLE, Request};
use super::identifiers::Identifiers;
use super::operation_under_test::{IF_MATCH, OperationUnderTest};
use super::resources::{parent, with_declared_slash};

/// Key that is sent if the options have none. A mock accepts any key.
const PLACEHOLDER_KEY: &str = "compare";

/// A server to check.
#[derive(Debug)]
pub struct Target {
    /// Client of the server.
    pub client: HttpClient,
    /// An administrator's key.
    pub key: String,
    /// A key of the scope `public`, if there is one.
    pub public_key: Option<String>,
    fixtures: Option<Fixtures>,
    identifiers: Identifiers,
}

impl Target {
    /// Connects to a server.
    ///
    /// # Errors
    /// Fails if the address is not a URL or no server responds there.
    pub async fn connect(address: &str, key: Option<&str>) -> anyhow::Result<Self> {
        let client = HttpClient::new(address)?;
        let response = client.send(&Request::new("GET", "/")).await;
        response.with_context(|| format!("no server responds at {address}; start the server, or correct the address"))?;
        Ok(Self {
            client,
            key: key.unwrap_or(PLACEHOLDER_KEY).to_owned(),
            public_key: None,
            fixtures: None,
            identifiers: Identifiers::default(),
        })
    }

    /// Returns the code of the currency of all amounts, if the built-in document has the operation that returns it.
    pub async fn currency(&self, contract: &Contract) -> Option<String> {
        let operation = OperationUnderTest::new(contract, contract.operation("defaults_get")?, 0);
        let request = operation.example_request(contract, &self.key, None, 0).ok()?;
        let response = self.client.send_with_retries(&request).await.ok()?;
        response.json()["currency"].as_str().map(str::to_owned)
    }

    /// Creates the resources that the selected operations of the built-in document need.
    ///
    /// # Errors
    /// Fails if the document lacks an example. A rejected request is no error, see [`Target::preparation_failures`].
    pub async fn create_fixtures(&mut self, contract: &Contract, seed: u64, selected: &BTreeSet<String>) -> anyhow::Result<()> {
        let fixtures = Fixtures::create(&self.client, contract, &self.key, seed, selected).await?;
        // Without a step for the key, the administrator's key would be used.
        self.public_key = Some(fixtures.public_key().to_owned()).filter(|key| *key != self.key);
        self.fixtures = Some(fixtures);
        Ok(())
    }

    /// Returns the requests of the preparation that the server rejected.
    pub fn preparation_failures(&self) -> &[PreparationFailure] {
        self.fixtures.as_ref().map_or(&[], Fixtures::failures)
    }

    /// Returns the reason why an operation can't be asked, if the preparation of what it needs failed.
    pub fn missing_for(&self, operation: &Operation) -> Option<String> {
        self.fixtures.as_ref()?.missing_for(operation)
    }

    /// Returns if the resources that an operation creates must have unique names.
    pub fn has_unique_name(&self, operation: &str) -> bool {
        self.fixtures.is_some() && Fixtures::has_unique_name(operation)
    }

    /// Returns a request to the shared resource of an operation, which other resources use. `None` without fixtures.
    pub fn shared_request(&self, operation: &Operation) -> Option<Request> {
        self.fixtures.as_ref()?.shared_request(operation)
    }

    /// Returns a request as a curl command without the key.
    pub fn curl(&self, request: &Request) -> String {
        // The proxy has masked the keys of its clients.
        let key = if self.key == PLACEHOLDER_KEY { KEY_VARIABLE } else { &self.key };
        request.to_curl(&self.client.base_url, key)
    }

    /// Returns if fixtures were created.
    pub fn has_fixtures(&self) -> bool {
        self.fixtures.is_some()
    }

    /// Deletes the fixtures. Returns a sentence for each resource that can't be deleted.
    pub async fn clean_up(&mut self) -> Vec<String> {
        match self.fixtures.take() {
            Some(fixtures) => fixtures.clean_up(&self.client).await,
            None => Vec::new(),
        }
    }

    /// Deletes the resources that requests of the comparison created, the newest first, if the document has a DELETE and there are no
    /// fixtures. Sends requests even after the client was stopped.
    ///
    /// Returns a sentence for each resource that the server refuses to delete, and for each kind that can't be deleted.
    pub async fn remove_created(&self, contract: &Contract, seed: u64) -> Vec<String> {
        let mut notes = Vec::new();
        if self.has_fixtures() {
            return notes;
        }
        self.client.stopped.store(false, Ordering::Relaxed);
        let created = self.client.created();
        let mut undeletable: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        for path in created.paths.iter().rev() {
            let Ok(spec) = contract.find_ignoring_slashes("DELETE", path) else {
                let read = contract.find_ignoring_slashes("GET", path);
                // `Location` may lead to no operation of the document.
                let collection = || format!("{}/…", parent(path).unwrap_or_default());
                let template = read.map_or_else(|_| collection(), |operation| operation.path.clone());
                undeletable.entry(template).or_default().push(path);
                continue;
            };
            let operation = OperationUnderTest::new(contract, spec, seed);
            let Ok(request) = operation.example_request(contract, &self.key, None, seed) else { continue };
            let request = Request { path: with_declared_slash(spec, path), ..request };
            let request = self.with_current_tag(contract, seed, &operation, request).await;
            let reason = match self.client.send_with_retries(&request).await {
                // It may be gone already.
                Ok(response) if response.is_success() || [404, 410].contains(&response.status) => continue,
                Ok(response) => format!("DELETE is answered with {}", response.status),
                Err(error) => format!("{error:#}"),
            };
            notes.push(format!("{path} stays: {reason}."));
        }
        for (template, paths) in undeletable {
            let count = counted(paths.len() as u64, "resource stays", "resources stay");
            notes.push(format!("{count}, because the document has no DELETE for {template}: {}.", paths.join(", ")));
        }
        for (path, count) in created.unidentified {
            let responses = counted(count as u64, "response", "responses");
            notes.push(format!("{responses} to POST {path} don't identify what it created, which stays."));
        }
        notes
    }

    /// Notes that a valid request of an operation was a conflict, so that later ones have other texts in their bodies.
    pub fn note_conflict(&self, operation: &Operation) {
        self.identifiers.note_conflict(operation);
    }

    /// Returns the request that reads the resource or the list at a path, for the checks of another request. It has the credentials and the
    /// required parameters of its own operation, with the values that the other request has for them. `None` if the document has no such
    /// operation, or no request can be built.
    ///
    /// With fixtures, it has the headers of the other request, because the resources belong to different accounts.
    pub fn read_request(&self, contract: &Contract, seed: u64, path: &str, other: &Request) -> Option<Request> {
        let spec = contract.find_ignoring_slashes("GET", path).ok()?;
        let path = with_declared_slash(spec, path);
        let sent = as_read(other);
        if self.has_fixtures() {
            return Some(Request { path, ..sent });
        }
        let operation = OperationUnderTest::new(contract, spec, seed);
        let mut read = Request { path, ..operation.example_request(contract, &self.key, None, seed).ok()? };
        for (name, value) in &sent.headers {
            let is_credential = !operation.arguments.iter().any(|argument| argument.is_header(name))
                && read.headers.iter().any(|(other, _)| other.eq_ignore_ascii_case(name));
            if !is_credential {
                read = read.with_header(name, value);
            }
        }
        let body = other.json().unwrap_or_default();
        for argument in operation.arguments.iter().filter(|argument| argument.required) {
            if argument.location == ArgumentLocation::Query
                && let Some(parameter) = argument.parameter(spec)
                && other.query.iter().any(|(name, _)| parameter.is_sent_as(name))
            {
                read.query.retain(|(name, _)| !parameter.is_sent_as(name));
                read.query.extend(other.query.iter().filter(|(name, _)| parameter.is_sent_as(name)).cloned());
            } else if argument.location == ArgumentLocation::Query
                && let Some(value) = body.get(&argument.name).filter(|value| argument.is_valid(value))
            {
                read = argument.set(&read, spec, Some(value));
            }
        }
        Some(read)
    }

    /// Replaces a required `If-Match` by the current tag of the resource that the request changes, or else by `*`.
    pub async fn with_current_tag(
        &self,
        contract: &Contract,
        seed: u64,
        operation: &OperationUnderTest<'_>,
        request: Request,
    ) -> Request {
        let is_condition = |argument: &&Argument| argument.required && argument.is_header(IF_MATCH);
        let Some(argument) = operation.arguments.iter().find(is_condition) else { return request };
        // An action changes the resource that it belongs to.
        let parent = parent(&request.path).filter(|_| request.method == "POST");
        let paths = [Some(request.path.as_str()), parent].into_iter().flatten();
        let read = paths.filter_map(|path| self.read_request(contract, seed, path, &request)).next();
        let response = match &read {
            Some(read) => self.client.send_with_retries(read).await.ok().filter(|response| response.status == 200),
            None => None,
        };
        let tag = response.as_ref().and_then(|response| response.header(ETAG));
        // If-Match never matches a weak tag (RFC 9110, section 13.1.1).
        let (weak, strong): (Vec<_>, Vec<_>) = tag.into_iter().partition(|tag| tag.starts_with("W/"));
        let value = strong.into_iter().chain(["*"]).chain(weak).find(|value| argument.allows(value));
        value.map_or(request.clone(), |value| request.with_header(IF_MATCH, value))
    }

    /// Builds a request that should succeed, from the fixtures or else from the document's examples alone.
    ///
    /// `body_example` names an example of the body; the default is the first.
    ///
    /// # Errors
    /// Fails if an example is missing, the server rejects the creation of a prerequisite, or the request would change a resource that
    /// the comparison did not create. A mock (`is_mock`) has no such resources.
    pub async fn valid_request(
        &self,
        contract: &Contract,
        operation: &OperationUnderTest<'_>,
        body_example: Option<&str>,
        seed: u64,
        is_mock: bool,
    ) -> anyhow::Result<PreparedRequest> {
        if let Some(fixtures) = &self.fixtures {
            return fixtures.valid_request(&self.client, operation.spec, body_example).await;
        }
        let request = operation.example_request(contract, &self.key, body_example, seed)?;
        let request = self.identifiers.avoid_conflict(contract, operation, request);
        let (request, is_known) = self.identifiers.insert(self, contract, seed, operation, request, is_mock).await?;
        let request = self.with_current_tag(contract, seed, operation, request).await;
        Ok(PreparedRequest { request, outcome: ExpectedOutcome::Success, is_known, constrained: BTreeSet::new() })
    }
}
