//! Reading of whole lists, page after page. Lists of other documents are paged by a page number or an offset, under several names.

use boxoffice_openapi::paging::{CURSOR_NAMES, OFFSET_NAMES, PAGE_NAMES, SIZE_NAMES, TOTAL_NAMES, entries_property, has_name};
use boxoffice_openapi::{Operation, Parameter, ParameterLocation};
use http::HeaderName;
use serde_json::Value;

use super::life::identifier;
use crate::http_client::{ReceivedResponse, Request};
use crate::operation_run::OperationRun;

/// Largest page size to request, if the document has no smaller maximum.
pub const MAX_PAGE_SIZE: u64 = 100;
/// Largest number of pages of a list that is read completely.
const MAX_LIST_PAGES: u64 = 10;

/// The query parameters that select a page of a list.
struct Paging<'a> {
    size: Option<&'a Parameter>,
    /// The size of the pages to request, if the document allows it.
    wanted: u64,
    position: Option<Position<'a>>,
}

/// The parameter that says where a page begins.
enum Position<'a> {
    /// The number of the page.
    Page(&'a Parameter),
    /// The number of entries before the page.
    Offset(&'a Parameter),
}

impl<'a> Paging<'a> {
    /// Returns the paging of an operation; `None` if only the server can interpret a position.
    fn of(operation: &'a Operation) -> Option<Self> {
        let find = |names: &[&str]| {
            let is_named =
                |parameter: &&Parameter| parameter.location == ParameterLocation::Query && has_name(names, &parameter.name);
            operation.parameters.iter().find(is_named)
        };
        if find(&CURSOR_NAMES).is_some() {
            return None;
        }
        let position = find(&PAGE_NAMES).map(Position::Page).or_else(|| find(&OFFSET_NAMES).map(Position::Offset));
        Some(Self { size: find(&SIZE_NAMES), wanted: MAX_PAGE_SIZE, position })
    }

    /// Returns the size of the pages to request; `None` if the server alone determines it.
    fn page_size(&self) -> Option<u64> {
        let maximum = |size: &Parameter| size.schema.resolved["maximum"].as_u64().unwrap_or(MAX_PAGE_SIZE);
        self.size.map(|size| maximum(size).min(self.wanted))
    }

    /// Returns if the only page that can be requested is the whole list, by its number of entries.
    fn is_whole(&self, read: u64) -> bool {
        let Some((size, requested)) = self.size.zip(self.page_size()) else { return true };
        // Without a declared maximum, the server may limit the page to a smaller size, mostly to a round number.
        let has_maximum = size.schema.resolved["maximum"].is_number();
        read < requested && (has_maximum || !read.is_multiple_of(5))
    }

    /// Sets the parameters of a page. `number` counts from 0, and `before` is the number of entries of the earlier pages.
    fn request_page(&self, list: &Request, number: u64, before: usize) -> Request {
        let position = self.position.as_ref().map(|position| match position {
            Position::Page(parameter) => (parameter.name.as_str(), first_page(parameter) + number),
            Position::Offset(parameter) => (parameter.name.as_str(), before as u64),
        });
        let size = self.size.zip(self.page_size()).map(|(parameter, size)| (parameter.name.as_str(), size));
        with_numbers(list, position.into_iter().chain(size))
    }
}

/// Reads all entries of a list, page after page. Returns `None` if the response is no list, has too many pages, or is paged in an
/// unknown way.
pub async fn read_whole_list(run: &mut OperationRun<'_>, list: &Request) -> Option<Vec<Value>> {
    read_list(run, list).await.filter(|(_, is_whole)| *is_whole).map(|(entries, _)| entries)
}

/// Reads the entries of a list in pages of this size. Returns `None` if the document has no parameter for it or forbids it, or if the
/// response is no list.
pub async fn read_in_pages(run: &mut OperationRun<'_>, list: &Request, size: u64) -> Option<Vec<Value>> {
    let operation = run.find_read_operation(&list.path)?;
    let mut paging = Paging::of(operation).filter(|paging| paging.position.is_some())?;
    paging.size.filter(|parameter| parameter.schema.errors(&size.into()).is_ok_and(|errors| errors.is_empty()))?;
    paging.wanted = size;
    read(run, list, operation, &paging).await.map(|(entries, _)| entries)
}

/// Reads the entries of a list, at most [`MAX_LIST_PAGES`], and returns if they are all.
pub async fn read_list(run: &mut OperationRun<'_>, list: &Request) -> Option<(Vec<Value>, bool)> {
    let operation = run.find_read_operation(&list.path)?;
    read(run, list, operation, &Paging::of(operation)?).await
}

async fn read(
    run: &mut OperationRun<'_>,
    list: &Request,
    operation: &Operation,
    paging: &Paging<'_>,
) -> Option<(Vec<Value>, bool)> {
    let mut entries = Vec::new();
    for number in 0..MAX_LIST_PAGES {
        let response = run.send_as_owner(&paging.request_page(list, number, entries.len())).await?;
        if number > 0 && response.status == 404 && operation.statuses.contains(&404) {
            return Some((entries, true));
        }
        let body = (response.status == 200).then(|| response.json())?;
        let page = listed_entries(operation, &body)?;
        entries.extend_from_slice(page);
        let read = entries.len() as u64;
        let reaches_total = total(&response, &body).map(|total| read >= total);
        if paging.position.is_none() {
            return Some((entries, reaches_total.unwrap_or_else(|| paging.is_whole(read))));
        }
        if page.is_empty() || reaches_total == Some(true) {
            return Some((entries, true));
        }
    }
    Some((entries, false))
}

/// Returns the entries in the response of a list: those of an array, of a property with a usual name, or of the only property that is
/// an array. `None` if the response is no list but a resource, which has an identifier.
pub fn listed_entries<'b>(operation: &Operation, body: &'b Value) -> Option<&'b [Value]> {
    let usual_names = ["entries", "items", "data", "results"];
    let array = body.as_array().or_else(|| usual_names.iter().find_map(|name| body[*name].as_array()));
    let only_property = || {
        let arrays = body.as_object()?.values().filter(|value| value.is_array()).count();
        let is_list = arrays == 1 && !operation.path.ends_with('}') && identifier(body).is_none();
        body[entries_property(body).filter(|_| is_list)?].as_array()
    };
    array.or_else(only_property).map(Vec::as_slice)
}

/// Returns a request with these numbers in its query.
pub fn with_numbers<'n>(request: &Request, numbers: impl Iterator<Item = (&'n str, u64)>) -> Request {
    let mut request = request.clone();
    for (name, number) in numbers {
        request.query.retain(|(other, _)| other != name);
        request.query.push((name.to_owned(), number.to_string()));
    }
    request
}

/// Returns the total number of entries that a page declares, in its body or in a header such as `X-Total-Count`.
fn total(response: &ReceivedResponse, page: &Value) -> Option<u64> {
    let property = page.as_object().into_iter().flatten().find(|(name, _)| has_name(&TOTAL_NAMES, name));
    let is_total = |name: &HeaderName| name.as_str().strip_prefix("x-").is_some_and(|name| has_name(&TOTAL_NAMES, name));
    let header = || response.headers.iter().find(|(name, _)| is_total(name))?.1.to_str().ok()?.parse().ok();
    property.and_then(|(_, value)| value.as_u64()).or_else(header)
}

/// Returns the number of the first page: 1, unless the document has another default or minimum.
fn first_page(parameter: &Parameter) -> u64 {
    let schema = &parameter.schema.resolved;
    ["default", "minimum"].iter().find_map(|keyword| schema[*keyword].as_u64()).unwrap_or(1)
}
