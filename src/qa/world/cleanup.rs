//! Removing what was made.

use std::collections::HashSet;
use std::sync::atomic::Ordering;

use serde_json::json;

use super::plan::Actor::Staff;
use super::{Fixtures, send, told};
use crate::qa::exchange::{HttpClient, KEY, ReceivedResponse, Request, SERVED, VERSION};

impl Fixtures {
    /// Removes what the server was asked to make, the newest first, and cancels or returns what can't be removed. Gives in
    /// sentences what stays, and why. A server that was stopped is asked again for it.
    pub async fn clean_up(self, server: &HttpClient) -> Vec<String> {
        server.stopped.store(false, Ordering::Relaxed);
        let mut seen = HashSet::new();
        // What is named again later was made when it was named first.
        let made: Vec<String> = server.made().into_iter().filter(|uri| seen.insert(uri.clone())).collect();
        let (mut left, mut orders) = (Vec::new(), 0);
        for uri in made.iter().rev() {
            let path: Vec<&str> = uri.trim_start_matches('/').split('/').collect();
            match path[..] {
                ["orders", _] => {
                    orders += 1;
                    left.extend(self.end_order(server, uri).await);
                }
                ["events", _] => left.extend(self.remove_event(server, uri).await),
                ["accounts" | "advertisements" | "categories" | "hosts" | "integrations" | "regions" | "venues" | "zones", _] => {
                    left.extend(self.refusal(server, "DELETE", uri).await.map(|reason| format!("{uri} stays: {reason}.")));
                }
                // Goes with what it is a part of.
                _ => {}
            }
        }
        if orders > 0 {
            left.push(format!(
                "Orders stay in the books, cancelled or returned, with their payments, tickets and entries in the ledger, and the \
                 accounts that placed them with their numbers alone: {orders}."
            ));
        }
        left
    }

    /// Cancels an order that is open, and returns what is left of any other: no operation removes one.
    async fn end_order(&self, server: &HttpClient, uri: &str) -> Option<String> {
        self.refusal(server, "POST", &format!("{uri}/cancellations")).await?;
        let reply = self.ask_as_staff(server, "POST", &format!("{uri}/returns")).await;
        match reply {
            // Nothing was left of it.
            Ok(reply) if reply.status < 300 || reply.status == 409 => None,
            Ok(reply) => Some(format!("{uri} is not returned: {}.", told(&reply))),
            Err(error) => Some(format!("{uri} is not returned: {error:#}.")),
        }
    }

    /// Removes an event, or cancels it where it has sold tickets.
    async fn remove_event(&self, server: &HttpClient, uri: &str) -> Option<String> {
        let reason = self.refusal(server, "DELETE", uri).await?;
        Some(match self.refusal(server, "POST", &format!("{uri}/cancellations")).await {
            None => format!("{uri} stays, cancelled: {reason}."),
            Some(refusal) => format!("{uri} stays: {reason}. It is not cancelled either: {refusal}."),
        })
    }

    /// Why the server doesn't do something; nothing when it does, or when there is nothing left to do it with.
    async fn refusal(&self, server: &HttpClient, method: &str, uri: &str) -> Option<String> {
        match self.ask_as_staff(server, method, uri).await {
            Ok(reply) if reply.status < 300 || reply.status == 404 => None,
            Ok(reply) => Some(told(&reply)),
            Err(error) => Some(format!("{error:#}")),
        }
    }

    async fn ask_as_staff(&self, server: &HttpClient, method: &str, uri: &str) -> anyhow::Result<ReceivedResponse> {
        let request = Request::new(method, uri).with_header(KEY, self.story.key(Staff)).with_header(VERSION, SERVED);
        let request = if uri.ends_with("/returns") { request.with_json(&json!({})) } else { request };
        send(server, &request).await
    }
}
