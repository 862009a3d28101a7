//! Checks of paginated lists: responses with `total`, `page`, `records` and `entries`.

use std::collections::BTreeSet;

use boxoffice_http::error::Code;
use serde_json::{Value, json};

use super::list_reader::{
    MAX_PAGE_SIZE, entry_identifier, read_in_smaller_pages, read_list, read_smallest_page, read_total, read_whole_list,
    with_query,
};
use crate::argument::{Argument, ArgumentLocation};
use crate::comparison::Comparison;
use crate::http_client::{ReceivedResponse, Request};
use crate::model::Check;
use crate::operation_run::{Exchange, OperationRun};
use crate::operation_under_test::OperationUnderTest;
use crate::recorder::CheckFailure;
use crate::server_kind::ServerKind;

/// Number of pages to read of a list.
const MAX_PAGES: u64 = 4;
/// Number of attempts to read a list. Other clients may add entries between two pages.
const ATTEMPTS: usize = 3;

/// A page of a list.
struct ListPage {
    total: u64,
    page: u64,
    records: u64,
    entries: Vec<Value>,
}

/// An inconsistency of a list, and the request that shows it.
struct ListViolation {
    request: Request,
    summary: String,
    expected: String,
    actual: String,
}

impl OperationRun<'_> {
    /// Checks the numbers of a page, if the response is one. Selects its list for [`OperationRun::check_pages`].
    pub fn check_list(&mut self, exchange: &Exchange) {
        let Exchange { request, response } = exchange;
        let Some(page) = ListPage::parse(response) else { return };
        self.record_list(request, page.violation(request, query_number(request, "page").unwrap_or(1)));
        if self.list_request.is_some() {
            return;
        }
        let has_query =
            |name| self.operation.arguments.iter().any(|each| each.name == name && each.location == ArgumentLocation::Query);
        if has_query("page") && has_query("records") {
            self.list_request = Some(request.clone());
        }
    }

    /// Checks that the pages of the selected list add up.
    pub async fn check_pages(&mut self) {
        let Some(request) = self.list_request.clone() else { return };
        let mut violation = None;
        for _ in 0..ATTEMPTS {
            violation = self.read_pages(&request).await;
            if violation.is_none() {
                break;
            }
        }
        self.record_list(&violation.as_ref().map_or(request, |violation| violation.request.clone()), violation);
    }

    /// Reads the pages of a list and one after the last.
    async fn read_pages(&mut self, request: &Request) -> Option<ListViolation> {
        let request = with_page(request, 1, 1);
        let response = self.send(&request).await?;
        let first = ListPage::parse(&response)?;
        if first.records != 1 {
            // A mock has only one page.
            let is_real = self.comparison.kind() == ServerKind::Real;
            let summary = "records is not the requested page size";
            return is_real.then(|| ListViolation::new(&request, summary, 1, first.records));
        }
        let records = first.total.div_ceil(MAX_PAGES).clamp(1, MAX_PAGE_SIZE);
        let last = first.total.div_ceil(records).max(1);
        let mut distinct: BTreeSet<String> = BTreeSet::new();
        let mut entries = 0;
        for number in 1..=last.min(MAX_PAGES) {
            let request = with_page(&request, number, records);
            let response = self.send(&request).await?;
            let Some(page) = ListPage::parse(&response) else {
                let expected = "total, page, records and entries";
                return Some(ListViolation::new(&request, "a page of the list is not a page", expected, response.describe()));
            };
            if let Some(violation) = page.violation(&request, number) {
                return Some(violation);
            }
            if page.total != first.total {
                let summary = "total is not the same on every page";
                return Some(ListViolation::new(&request, summary, first.total, page.total));
            }
            entries += page.entries.len();
            distinct.extend(page.entries.iter().map(|entry| entry.get("self").unwrap_or(entry).to_string()));
        }
        let is_complete = last > MAX_PAGES || entries as u64 == first.total;
        if !is_complete || distinct.len() != entries {
            let summary = "the pages don't add up to the list: entries are missing or repeated";
            let expected = format!("{} different entries on {last} pages", first.total);
            let actual = format!("{entries} entries, {} of them different", distinct.len());
            return Some(ListViolation::new(&request, summary, expected, actual));
        }
        self.read_past_end(with_page(&request, last + 1, records)).await
    }

    async fn read_past_end(&mut self, request: Request) -> Option<ListViolation> {
        let response = self.send(&request).await?;
        let declares_404 = self.operation.spec.statuses.contains(&404);
        let is_empty = || ListPage::parse(&response).is_some_and(|page| page.entries.is_empty());
        // `4XX` and `default` leave it open.
        let is_allowed = || response.status == 404 && self.operation.spec.response_for(404).is_some();
        let is_expected = if declares_404 { response.status == 404 } else { is_empty() || is_allowed() };
        let expected = if declares_404 { "404" } else { "no entries" };
        if is_expected
            && declares_404
            && let Some(summary) = self.missing_code(&response, Code::PAGE_PAST_END)
        {
            return Some(ListViolation::new(&request, &summary, "404 page.past-end", response.describe()));
        }
        let summary = format!("a page past the end is answered with {}", response.status);
        (!is_expected && response.status < 500).then(|| ListViolation::new(&request, &summary, expected, response.describe()))
    }

    /// Creates two entries of a list that can be filtered or sorted, so that its entries differ.
    pub async fn create_entries(&mut self) {
        let is_query = |argument: &&Argument| argument.location == ArgumentLocation::Query;
        let names: Vec<&str> = self.operation.arguments.iter().filter(is_query).map(|argument| argument.name.as_str()).collect();
        if !self.comparison.is_builtin() || names.iter().all(|name| ["page", "records"].contains(name)) {
            return;
        }
        let last = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
        let name = last(&self.operation.spec.path);
        let creates = |other: &&OperationUnderTest<'_>| {
            other.spec.method == "POST" && last(&other.spec.path) == name && other.spec.path.matches('{').count() <= 1
        };
        let Some(creation) = self.operations.iter().find(creates) else { return };
        let Comparison { contract, target, seed, .. } = self.comparison;
        // In the reverse order of the alphabet, which then differs from the order of creation.
        for prefix in ["B", "A"] {
            let Ok(valid) = target.valid_request(contract, creation, None, *seed, false).await else { return };
            let mut request = valid.request;
            if let Some(mut body) = request.json() {
                for property in ["title", "name"] {
                    if let Some(text) = body.get(property).and_then(Value::as_str) {
                        body[property] = json!(format!("{prefix} {text}"));
                    }
                }
                request = request.with_json(&body);
            }
            // A failure belongs to the other operation.
            let _ignored = target.client.send_with_retries(&request).await;
        }
    }

    /// Checks that a page has at most as many entries as requested. `check_pages` checks the lists of the built-in document.
    pub async fn check_page_size(&mut self, list: &Request) {
        if self.list_request.is_some() {
            return;
        }
        let Some((request, requested, returned)) = read_smallest_page(self, list).await else { return };
        let failure = (returned > requested).then(|| {
            let summary = "a page has more entries than requested";
            self.failure(summary, format!("{requested} at most"), format!("{returned} entries"))
        });
        self.record(Check::ListTotals, &request, failure);
    }

    /// Checks that the total of a list is the number of its entries. `check_pages` checks the lists of the built-in document.
    pub async fn check_total(&mut self, list: &Request) {
        let (mut failure, mut attempts) = (None, 0);
        while attempts < ATTEMPTS && self.list_request.is_none() && (attempts == 0 || failure.is_some()) {
            let Some(entries) = read_whole_list(self, list).await else { return };
            let Some(total) = read_total(self, list).await else { return };
            let count = entries.len() as u64;
            let summary = "the total of the list is not the number of its entries";
            failure = (total != count).then(|| self.failure(summary, count.to_string(), total.to_string()));
            attempts += 1;
        }
        if attempts > 0 {
            self.record(Check::ListTotals, list, failure);
        }
    }

    /// Checks that two requests for a list return the same entries in the same order.
    pub async fn check_order(&mut self, list: &Request) {
        let Some((first, is_whole)) = read_list(self, list).await.filter(|(entries, _)| entries.len() > 1) else { return };
        let is_repeated = |(index, entry): (usize, &Value)| {
            let mut before = first[..index].iter();
            match entry["self"].is_string() {
                true => before.any(|other| other["self"] == entry["self"]),
                false => entry_identifier(entry).is_some() && before.any(|other| other == entry),
            }
        };
        let mut failure = first
            .iter()
            .enumerate()
            .find(|each| is_repeated(*each))
            .map(|(_, entry)| self.failure("the list contains an entry twice", "different entries", entry.to_string()));
        if !is_whole {
            return self.record(Check::ListTotals, list, failure);
        }
        let name = |entry: &Value| entry["self"].as_str().map(str::to_owned).or_else(|| entry_identifier(entry));
        let order = |entries: &[Value]| entries.iter().map(name).collect::<Vec<_>>();
        // `check_pages` reads the others.
        if self.list_request.is_none()
            && let Some(paged) = read_in_smaller_pages(self, list, first.len() as u64).await
        {
            let sorted = |entries: &[Value]| {
                let mut names = order(entries);
                names.sort();
                names
            };
            let (whole, paged) = (sorted(&first), sorted(&paged));
            if whole != paged && whole.iter().collect::<BTreeSet<_>>().len() == whole.len() {
                let summary = "the list has other entries in smaller pages";
                failure = Some(self.failure(summary, json!(whole).to_string(), json!(paged).to_string()));
            }
        }
        // Three times, because a list may change its order only now and then.
        for _ in 0..2 {
            let Some(again) = read_whole_list(self, list).await else { return };
            let (first, again) = (order(&first), order(&again));
            if first != again && first.len() == again.len() {
                failure = Some(self.failure(
                    "two requests for the list return entries in another order",
                    json!(first).to_string(),
                    json!(again).to_string(),
                ));
            }
        }
        self.record(Check::ListTotals, list, failure);
    }

    fn record_list(&mut self, request: &Request, violation: Option<ListViolation>) {
        let failure = violation.map(|ListViolation { summary, expected, actual, .. }| {
            let pointer = self.operation.spec.response_for(200).map_or_else(String::new, |response| response.pointer.clone());
            CheckFailure { pointer, summary, expected, actual }
        });
        self.record(Check::ListTotals, request, failure);
    }
}

impl ListViolation {
    fn new(request: &Request, summary: &str, expected: impl ToString, actual: impl ToString) -> Self {
        let (expected, actual) = (expected.to_string(), actual.to_string());
        Self { request: request.clone(), summary: summary.to_owned(), expected, actual }
    }
}

impl ListPage {
    /// Returns `None` if the response is not a page.
    fn parse(response: &ReceivedResponse) -> Option<Self> {
        let body = response.json();
        let number = |name: &str| body[name].as_u64();
        let entries = body["entries"].as_array()?.clone();
        Some(Self { total: number("total")?, page: number("page")?, records: number("records")?, entries })
    }

    /// Checks page number, page size and number of entries.
    fn violation(&self, request: &Request, requested_page: u64) -> Option<ListViolation> {
        if self.page != requested_page {
            return Some(ListViolation::new(request, "page is not the requested page number", requested_page, self.page));
        }
        if let Some(records) = query_number(request, "records").filter(|records| *records != self.records) {
            return Some(ListViolation::new(request, "records is not the requested page size", records, self.records));
        }
        let before = self.records.saturating_mul(self.page.saturating_sub(1));
        let expected = self.total.saturating_sub(before).min(self.records);
        let entries = self.entries.len() as u64;
        let summary = "the number of entries does not match total, page and records";
        (entries != expected).then(|| ListViolation::new(request, summary, expected, entries))
    }
}

/// Returns a number from the query of a request.
fn query_number(request: &Request, name: &str) -> Option<u64> {
    request.query.iter().find(|(other, _)| other == name)?.1.parse().ok()
}

fn with_page(request: &Request, page: u64, records: u64) -> Request {
    with_query(request, [("page", page.to_string()), ("records", records.to_string())].into_iter())
}
