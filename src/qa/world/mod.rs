//! What a comparison's requests need on a server, made through its own API.
//!
//! The document's examples are the requests. They tell one story, and a `Story` has for each of their identifiers that of the
//! resource that stands for it on this server: the answer to a POST tells it, the next request has it in the example's place. So
//! the same calls do on the real server and on a mock, whose answers are the examples themselves. `plan` says what the examples
//! don't: who asks, what has to be made anew before, and what may not be called the same twice.
//!
//! Nothing of others is touched, and what was made is removed in the end as far as the API lets anyone ([`World::clean_up`]). Mail
//! goes to addresses of example.com, which is nobody's (RFC 2606), and to administrators where the removal of an account is asked for.

mod cleanup;
mod example;
mod plan;
mod story;

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, bail};
use chrono::Utc;
use http::header::RETRY_AFTER;
use serde_json::{Value, json};

use super::exchange::{HttpClient, ReceivedResponse, Request};
use crate::contract::{Contract, Operation};
use example::Example;
use plan::Actor::{self, Anyone, Customer, Recipient, Staff};
use plan::{NEED_MAIL, OperationPlan, TARGETS_OTHER_ACCOUNT, UNIQUE, is_constrained, plan};
use story::{AMA, GENERAL_ADMISSION, RECIPIENT, Substitutions};

/// How long the comparison waits in all for a server that is asked too often, for one request.
const PATIENCE: Duration = Duration::from_secs(60);

/// The places of each section that is sold: as many as one may have.
const PLACES: i64 = 1_000_000;

/// What was made on a server for the operations to be asked.
#[derive(Debug)]
pub struct Fixtures {
    examples: HashMap<String, Example>,
    /// What everyone shares.
    story: Substitutions,
    /// What tells the names of this comparison from those of others.
    mark: String,
    names: AtomicUsize,
}

/// A request that the server should carry out.
#[derive(Debug, Clone)]
pub struct ValidRequest {
    /// The request.
    pub request: Request,
    /// How it should be answered.
    pub outcome: ExpectedOutcome,
    /// The arguments of body and query whose values mean something here: they name what exists or must not exist, or stand in a
    /// relation to others. Another value that the schema allows might be refused rightly.
    pub bound: BTreeSet<String>,
}

/// How a valid request should be answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExpectedOutcome {
    /// With success.
    Success,
    /// With any status that the document declares: what would make it succeed can't be known through the API.
    Declared,
}

impl Fixtures {
    /// Makes what the operations need. `key` is an administrator's. Names have the seed and the time in them, so that nobody else,
    /// and no earlier comparison, has them.
    ///
    /// # Errors
    /// When the document lacks an example, the server refuses a request, or it is stopped. What had been made is removed again.
    pub async fn make(server: &HttpClient, contract: &Contract, key: &str, seed: u64) -> anyhow::Result<Self> {
        let example = |operation: &Operation| Ok((operation.id.clone(), Example::of(operation)?));
        let moment = Utc::now().timestamp_millis().unsigned_abs().wrapping_add(seed);
        let mut world = Self {
            examples: contract.operations().map(example).collect::<anyhow::Result<_>>()?,
            story: Substitutions::new(key),
            mark: format!("{:x}", moment & 0xffff_ffff_ffff),
            names: AtomicUsize::new(0),
        };
        match world.create_all(server).await {
            Ok(story) => {
                world.story = story;
                Ok(world)
            }
            Err(error) => {
                let left = world.clean_up(server).await;
                let left = if left.is_empty() { String::new() } else { format!(" What it made stays: {}", left.join(" ")) };
                Err(error.context(format!("What the comparison needs can't be made.{left}")))
            }
        }
    }

    /// The key of an application, with no person behind it.
    pub fn public_key(&self) -> &str {
        self.story.key(Anyone)
    }

    /// A request of this operation that is to succeed, made from its first example. What it uses up or changes is made anew before.
    ///
    /// # Errors
    /// When the server refuses a request by which it is made, or the operation is not of the world's document.
    pub async fn valid(&self, server: &HttpClient, operation: &Operation) -> anyhow::Result<ValidRequest> {
        self.valid_as(server, operation, None).await
    }

    /// The same, made from the example of its body that has this name.
    ///
    /// # Errors
    /// As [`World::valid`], and when there is no such example.
    pub async fn valid_as(&self, server: &HttpClient, operation: &Operation, body: Option<&str>) -> anyhow::Result<ValidRequest> {
        let mut story = self.story.clone();
        let id = &operation.id;
        let (who, before) = self.plan(id, body);
        for step in before {
            self.step(server, &mut story, step).await?;
        }
        let request = self.request(&mut story, who, id, body)?;
        let outcome = if NEED_MAIL.contains(&id.as_str()) { ExpectedOutcome::Declared } else { ExpectedOutcome::Success };
        let bound = self.example(id)?.arguments.iter().filter(|argument| is_constrained(id, argument)).cloned().collect();
        Ok(ValidRequest { request, outcome, bound })
    }

    /// Tells the story from its beginning to where everything in it exists.
    async fn create_all(&self, server: &HttpClient) -> anyhow::Result<Substitutions> {
        let mut story = self.story.clone();
        // The first is one that no other key than an administrator's is let do, so that another one leaves nothing behind.
        for step in ["region_create", "category_create", "venue_create", "zone_create", "account_create", "integration_create"] {
            self.step(server, &mut story, step).await?;
        }
        story.insert(RECIPIENT, story.get(AMA));
        story.copy_key(Customer, Recipient);
        self.step(server, &mut story, "account_create").await?;
        self.ask(server, &mut story, Staff, "integration_create", json!({ "role": "public" })).await?;
        story.copy_key(Customer, Anyone);
        let own = ["integration_create", "session_create", "verification_create", "reset_create", "host_create", "event_create"];
        for step in own {
            self.step(server, &mut story, step).await?;
        }
        let free = json!({ "name": "General Admission", "basePrice": 0, "capacity": PLACES });
        let free = self.ask(server, &mut story, Customer, "section_create", free).await?;
        self.ask(server, &mut story, Customer, "section_create", json!({ "capacity": PLACES })).await?;
        if let Some(uri) = free["self"].as_str() {
            story.insert(GENERAL_ADMISSION, uri.rsplit('/').next().unwrap_or(uri));
        }
        let sale = [
            "section_modifier_create",
            "event_submission_create",
            "submission_delete",
            "order_create",
            "order_payment_create",
            "account_ticket_list",
            "transfer_create",
            "host_transaction_list",
            "event_token_create",
            "token_authentication_get",
            "advertisement_create",
            "advertisement_submission_create",
            "submission_delete",
            // Those that are not offered to somebody else.
            "account_ticket_list",
        ];
        for step in sale {
            self.step(server, &mut story, step).await?;
        }
        self.ask(server, &mut story, Staff, "event_admission_create", Value::Null).await?;
        Ok(story)
    }

    /// Takes a step of the story: asks for the example of an operation.
    async fn step(&self, server: &HttpClient, story: &mut Substitutions, operation: &str) -> anyhow::Result<()> {
        self.ask(server, story, self.plan(operation, None).0, operation, Value::Null).await.map(|_| ())
    }

    /// Asks for the example of an operation with some arguments changed, and takes over what is answered.
    async fn ask(
        &self,
        server: &HttpClient,
        story: &mut Substitutions,
        who: Actor,
        operation: &str,
        changes: Value,
    ) -> anyhow::Result<Value> {
        let mut request = self.request(story, who, operation, None)?;
        if let Value::Object(changes) = changes {
            let mut body: Value = serde_json::from_slice(request.body.as_deref().unwrap_or_default())?;
            changes.into_iter().for_each(|(name, value)| body[name] = value);
            request = request.with_json(&body);
        }
        let reply = send(server, &request).await?;
        if !(200..300).contains(&reply.status) {
            bail!("{operation} was answered {}. {}", told(&reply), hint(server, &request, &reply));
        }
        let answer = reply.json();
        story.record_response(operation, &answer, &self.examples);
        Ok(answer)
    }

    /// The example of an operation as a request, with new names where they have to be.
    fn request(&self, story: &mut Substitutions, who: Actor, operation: &str, body: Option<&str>) -> anyhow::Result<Request> {
        for (_, name) in UNIQUE.iter().filter(|(of, _)| *of == operation) {
            let number = self.names.fetch_add(1, Ordering::Relaxed);
            story.insert(name, format!("{name}-{}-{number}", self.mark));
        }
        if TARGETS_OTHER_ACCOUNT.contains(&operation) {
            story.insert(AMA, story.get(RECIPIENT));
        }
        story.request(who, self.example(operation)?, body)
    }

    fn plan(&self, operation: &str, body: Option<&str>) -> OperationPlan {
        plan(operation, body, self.examples.get(operation).map_or(&[], |example| &example.scopes))
    }

    fn example(&self, operation: &str) -> anyhow::Result<&Example> {
        let absent = || format!("the document has no operation {operation}, which the comparison of this API needs");
        self.examples.get(operation).with_context(absent)
    }
}

/// Sends a request, again where the server is asked too often, as soon as it says (RFC 6585, RFC 9110 section 10.2.3).
pub async fn send(server: &HttpClient, request: &Request) -> anyhow::Result<ReceivedResponse> {
    let mut patience = PATIENCE;
    loop {
        let reply = server.send(request).await?;
        let after = reply.headers.get(RETRY_AFTER).and_then(|after| after.to_str().ok()?.parse().ok());
        let pause = Duration::from_secs(after.unwrap_or(1).max(1));
        if reply.status != 429 || pause > patience {
            return Ok(reply);
        }
        patience -= pause;
        tokio::time::sleep(pause).await;
    }
}

/// Status and reason of a refusal, as its server tells them, without a full stop.
fn told(reply: &ReceivedResponse) -> String {
    let body = reply.json();
    let reason = body["error"].as_str().or_else(|| body["message"].as_str()).map(str::to_owned);
    let reason = reason.unwrap_or_else(|| String::from_utf8_lossy(&reply.body).chars().take(300).collect());
    format!("{} ({})", reply.status, reason.trim_end_matches('.'))
}

/// What to do about a refusal.
fn hint(server: &HttpClient, request: &Request, reply: &ReceivedResponse) -> String {
    let again = request.curl(&server.address);
    match reply.status {
        401 | 403 => format!("The key has to be one of the platform's administrators. The request was: {again}"),
        429 => format!("The server is asked too often; try again in a minute. The request was: {again}"),
        _ => format!("The server's log may tell why. The request was: {again}"),
    }
}
