//! Lists that come in pages, in an envelope of `total`, `page`, `records` and `entries`.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::http_client::{ReceivedResponse, Request};
use crate::operation_run::{Exchange, OperationRun, describe};
use crate::model::Check;
use crate::recorder::Fault;
use crate::operation_under_test::Place;

/// How many pages a list is read in at the most.
const PAGES: u64 = 4;
/// The most entries of a page.
const LARGEST: u64 = 100;
/// How often a list is read again: others may add to it in the meantime.
const TRIES: usize = 3;

/// An envelope.
struct Page {
    total: u64,
    page: u64,
    records: u64,
    entries: Vec<Value>,
}

/// Something about a list that doesn't add up: the answer that shows it, and what was expected.
struct ListViolation {
    request: Request,
    summary: String,
    expected: String,
    actual: String,
}

impl OperationRun<'_> {
    /// The envelope of an answer, if it is one, adds up. It is the first of its list that is read to the end.
    pub fn check_list(&mut self, asked: &Exchange) {
        let Some(first) = Page::read(&asked.reply) else { return };
        self.judge_list(&asked.request, first.odd(&asked.request, given(&asked.request, "page").unwrap_or(1)));
        if self.list.is_some() {
            return;
        }
        let is_argument = |name| self.subject.arguments.iter().any(|each| each.name == name && each.place == Place::Query);
        if is_argument("page") && is_argument("records") {
            self.list = Some(asked.request.clone());
        }
    }

    /// The list adds up, page by page.
    pub async fn check_pages(&mut self) {
        let Some(request) = self.list.take() else { return };
        let mut odd = self.walk(&request).await;
        for _ in 1..TRIES {
            if odd.is_none() {
                break;
            }
            odd = self.walk(&request).await;
        }
        self.judge_list(&odd.as_ref().map_or(request, |odd| odd.request.clone()), odd);
    }

    /// Reads a list to its end and beyond.
    async fn walk(&mut self, request: &Request) -> Option<ListViolation> {
        let request = of_page(request, 1, 1);
        let reply = self.send(&request).await?;
        let least = Page::read(&reply)?;
        if least.records != 1 {
            // What doesn't take the number of entries as it is told, such as a mock without a state, has one page alone.
            return None;
        }
        let records = least.total.div_ceil(PAGES).clamp(1, LARGEST);
        let last = least.total.div_ceil(records).max(1);
        let mut selves: BTreeSet<String> = BTreeSet::new();
        let mut entries = 0;
        for number in 1..=last.min(PAGES) {
            let request = of_page(&request, number, records);
            let reply = self.send(&request).await?;
            let Some(page) = Page::read(&reply) else {
                let summary = "a page within the list is no page".to_owned();
                return Some(ListViolation {
                    request,
                    summary,
                    expected: "a page of the list".to_owned(),
                    actual: describe(&reply),
                });
            };
            if let Some(odd) = page.odd(&request, number) {
                return Some(odd);
            }
            if page.total != least.total {
                let summary = "total is not the same on every page".to_owned();
                return Some(ListViolation {
                    request,
                    summary,
                    expected: least.total.to_string(),
                    actual: page.total.to_string(),
                });
            }
            entries += page.entries.len();
            selves.extend(page.entries.iter().map(|entry| entry.get("self").unwrap_or(entry).to_string()));
        }
        if last <= PAGES && (entries as u64 != least.total || selves.len() != entries) {
            let summary = "the pages together are not the list: some are missing or come twice".to_owned();
            let expected = format!("{} different entries on {last} pages", least.total);
            let actual = format!("{entries} entries, {} of them different", selves.len());
            return Some(ListViolation { request, summary, expected, actual });
        }
        self.walk_past(of_page(&request, last + 1, records)).await
    }

    async fn walk_past(&mut self, request: Request) -> Option<ListViolation> {
        let reply = self.send(&request).await?;
        let declares_404 = self.subject.operation.statuses.contains(&404);
        let is_empty = || Page::read(&reply).is_some_and(|page| page.entries.is_empty());
        let is_right = if declares_404 { reply.status == 404 } else { is_empty() };
        let expected = if declares_404 { "404" } else { "no entries" }.to_owned();
        let summary = format!("a page past the end is answered with {}", reply.status);
        (!is_right && reply.status < 500).then(|| ListViolation { request, summary, expected, actual: describe(&reply) })
    }

    fn judge_list(&mut self, request: &Request, odd: Option<ListViolation>) {
        let pointer = self.subject.operation.answer(200).map_or_else(String::new, |answer| answer.pointer.clone());
        let fault = odd.map(|odd| Fault { pointer, summary: odd.summary, expected: odd.expected, actual: odd.actual });
        self.record(Check::ListTotals, request, fault);
    }
}

impl Page {
    /// The envelope of an answer, if it has one.
    fn read(reply: &ReceivedResponse) -> Option<Self> {
        let body = reply.json();
        let number = |name: &str| body[name].as_u64();
        let entries = body["entries"].as_array()?.clone();
        Some(Self { total: number("total")?, page: number("page")?, records: number("records")?, entries })
    }

    /// What doesn't add up about it: a page has as many entries as it and those before it leave of the total.
    fn odd(&self, request: &Request, page: u64) -> Option<ListViolation> {
        let odd = |summary: &str, expected: u64, actual: u64| ListViolation {
            request: request.clone(),
            summary: summary.to_owned(),
            expected: expected.to_string(),
            actual: actual.to_string(),
        };
        let before = self.records.saturating_mul(self.page.saturating_sub(1));
        let left = self.total.saturating_sub(before).min(self.records);
        if self.page != page {
            return Some(odd("page is not the number of the page that was asked for", page, self.page));
        }
        if let Some(records) = given(request, "records").filter(|records| *records != self.records) {
            return Some(odd("records is not the number of entries that was asked for", records, self.records));
        }
        let entries = self.entries.len() as u64;
        (entries != left).then(|| odd("entries are not as many as total, page and records leave", left, entries))
    }
}

/// A number that a request's query gives.
fn given(request: &Request, name: &str) -> Option<u64> {
    request.query.iter().find(|(given, _)| given == name)?.1.parse().ok()
}

fn of_page(request: &Request, page: u64, records: u64) -> Request {
    let mut request = request.clone();
    request.query.retain(|(name, _)| !["page", "records"].contains(&name.as_str()));
    request.query.push(("page".to_owned(), page.to_string()));
    request.query.push(("records".to_owned(), records.to_string()));
    request
}
