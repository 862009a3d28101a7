//! A server that takes part in a comparison, with the world that was made on it.

use std::collections::BTreeSet;

use anyhow::Context;

use super::http_client::{HttpClient, Request};
use super::operation_under_test::Subject;
use super::fixtures::{ExpectedOutcome, Fixtures, ValidRequest};
use boxoffice_openapi::Contract;

/// What is sent as a key where none is given: a mock takes any.
pub const ANY_KEY: &str = "compare";

/// A server that takes part.
#[derive(Debug)]
pub struct Target {
    /// Where it answers.
    pub server: HttpClient,
    /// The key that it is asked with, an administrator's.
    pub key: String,
    /// A key of the scope `public`, where there is one.
    pub public_key: Option<String>,
    world: Option<Fixtures>,
}

impl Target {
    /// Reaches a server.
    ///
    /// # Errors
    /// When the address is no URL or nothing answers there.
    pub async fn open(address: &str, key: Option<&str>) -> anyhow::Result<Self> {
        let server = HttpClient::at(address)?;
        let reached = server.send(&Request::new("GET", "/")).await;
        reached.with_context(|| format!("nothing answers at {address}; start the server, or correct the address"))?;
        Ok(Self { server, key: key.unwrap_or(ANY_KEY).to_owned(), public_key: None, world: None })
    }

    /// Makes what the operations of our own contract need on it.
    ///
    /// # Errors
    /// When the server refuses that. What had been made is removed again.
    pub async fn create_fixtures(&mut self, contract: &Contract, seed: u64) -> anyhow::Result<()> {
        let world = Fixtures::make(&self.server, contract, &self.key, seed).await?;
        self.public_key = Some(world.public_key().to_owned());
        self.world = Some(world);
        Ok(())
    }

    /// Whether its requests are made in a world of its own.
    pub fn has_fixtures(&self) -> bool {
        self.world.is_some()
    }

    /// Removes what was made; gives in sentences what could not be removed.
    pub async fn clean_up(&mut self) -> Vec<String> {
        match self.world.take() {
            Some(world) => world.clean_up(&self.server).await,
            None => Vec::new(),
        }
    }

    /// A request of an operation that is to succeed here: in its world, or else as the document's examples are. `body` names the
    /// example that its body is made from; otherwise it is the first.
    ///
    /// # Errors
    /// When none can be made.
    pub async fn valid(
        &self,
        contract: &Contract,
        subject: &Subject<'_>,
        body: Option<&str>,
        seed: u64,
    ) -> anyhow::Result<ValidRequest> {
        if let Some(world) = &self.world {
            return world.valid_as(&self.server, subject.operation, body).await;
        }
        let request = subject.example(contract, &self.key, body, seed)?;
        Ok(ValidRequest { request, outcome: ExpectedOutcome::Success, bound: BTreeSet::new() })
    }
}
