//! A server that takes part in a comparison, with the world that was made on it.

use std::collections::BTreeSet;

use anyhow::Context;

use super::exchange::{Request, Server};
use super::subject::Subject;
use crate::contract::Contract;

/// What is sent as a key where none is given: a mock takes any.
const ANY_KEY: &str = "compare";

/// A server that takes part.
#[derive(Debug)]
pub struct Side {
    /// Where it answers.
    pub server: Server,
    /// The key that it is asked with, an administrator's.
    pub key: String,
    /// A key of the scope `public`, where there is one.
    pub public_key: Option<String>,
}

/// A request that is to succeed.
#[derive(Debug, Clone)]
pub struct Valid {
    /// The request.
    pub request: Request,
    /// How it is to end.
    pub outcome: Outcome,
    /// Arguments whose value has a meaning in the world, which boundary values leave alone.
    pub bound: BTreeSet<String>,
}

/// How a valid request is to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// With a success status.
    Success,
    /// With any declared status: it cannot succeed through the API alone, such as one with a code from a mail.
    Declared,
}

impl Side {
    /// Reaches a server.
    ///
    /// # Errors
    /// When the address is no URL or nothing answers there.
    pub async fn open(address: &str, key: Option<&str>) -> anyhow::Result<Self> {
        let server = Server::at(address)?;
        let reached = server.send(&Request::new("GET", "/")).await;
        reached.with_context(|| format!("nothing answers at {address}; start the server, or correct the address"))?;
        Ok(Self { server, key: key.unwrap_or(ANY_KEY).to_owned(), public_key: None })
    }

    /// A request of an operation that is to succeed here.
    ///
    /// # Errors
    /// When none can be made.
    pub async fn valid(&self, contract: &Contract, subject: &Subject<'_>, seed: u64) -> anyhow::Result<Valid> {
        let request = subject.example(contract, &self.key, seed)?;
        Ok(Valid { request, outcome: Outcome::Success, bound: BTreeSet::new() })
    }

    /// Whether a world was made on it, in which the document's examples mean nothing.
    pub fn has_world(&self) -> bool {
        false
    }
}
