//! Reading of whole lists, page after page. Lists of other documents are paged by a page number or an offset, under several names.

use boxoffice_openapi::paging::{
    CURSOR_NAMES, NEXT_NAMES, OFFSET_NAMES, PAGE_NAMES, SIZE_NAMES, TOTAL_NAMES, entries_property, first_page, has_name,
};
use boxoffice_openapi::{Operation, Parameter, ParameterLocation, to_plain_string};
use http::HeaderName;
use http::header::LINK;
use serde_json::{Map, Value};

use crate::http_client::{ReceivedResponse, Request};
use crate::operation_run::OperationRun;
use crate::resources::is_item;

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
    /// A value in the page before, which leads to the next one.
    Cursor(&'a Parameter),
}

impl<'a> Paging<'a> {
    fn of(operation: &'a Operation) -> Self {
        let find = |names: &[&str]| {
            let is_named =
                |parameter: &&Parameter| parameter.location == ParameterLocation::Query && has_name(names, &parameter.name);
            operation.parameters.iter().find(is_named)
        };
        let cursor = CURSOR_NAMES.iter().find_map(|name| find(&[name]));
        let position = cursor.map(Position::Cursor).or_else(|| find(&PAGE_NAMES).map(Position::Page));
        let position = position.or_else(|| find(&OFFSET_NAMES).map(Position::Offset));
        Self { size: find(&SIZE_NAMES), wanted: MAX_PAGE_SIZE, position }
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

    /// Sets the parameters of a page. `number` counts from 0, `before` is the number of entries of the earlier pages, and `cursor` the
    /// position that the last of them has named.
    fn request_page(&self, list: &Request, number: u64, before: usize, cursor: Option<String>) -> Request {
        let position = self.position.as_ref().and_then(|position| match position {
            Position::Page(parameter) => Some((parameter.name.as_str(), (first_page(parameter) + number).to_string())),
            Position::Offset(parameter) => Some((parameter.name.as_str(), before.to_string())),
            Position::Cursor(parameter) => Some((parameter.name.as_str(), cursor?)),
        });
        let size = self.size.zip(self.page_size()).map(|(parameter, size)| (parameter.name.as_str(), size.to_string()));
        with_query(list, position.into_iter().chain(size))
    }
}

/// Returns if a query parameter with this name selects a page of a list.
pub fn is_paging(name: &str) -> bool {
    [&SIZE_NAMES[..], &PAGE_NAMES, &OFFSET_NAMES].into_iter().any(|names| has_name(names, name))
}

/// Reads all entries of a list, page after page. Returns `None` if the response is no list, has too many pages, or is paged in an
/// unknown way.
pub async fn read_whole_list(run: &mut OperationRun<'_>, list: &Request) -> Option<Vec<Value>> {
    read_list(run, list).await.filter(|(_, is_whole)| *is_whole).map(|(entries, _)| entries)
}

/// Reads the entries of a list of this length in smaller pages: two of them, or more if the document has a smaller maximum. Returns
/// `None` if the document has no parameter for the size, or allows no such size, or if the response is no list.
pub async fn read_in_smaller_pages(run: &mut OperationRun<'_>, list: &Request, length: u64) -> Option<Vec<Value>> {
    let operation = run.find_read_operation(&list.path)?;
    let mut paging = Paging::of(operation);
    let parameter = paging.size.filter(|_| paging.position.is_some())?;
    let half = length.div_ceil(2);
    let sizes = match parameter.schema.resolved["maximum"].as_u64().filter(|maximum| *maximum <= half) {
        // The list was read in pages of the maximum.
        Some(maximum) => vec![maximum.saturating_sub(1), maximum / 2],
        None => vec![half],
    };
    let is_possible =
        |size: &u64| *size > 0 && parameter.schema.is_valid(&(*size).into()) && length.div_ceil(*size) < MAX_LIST_PAGES;
    paging.wanted = sizes.into_iter().find(is_possible)?;
    read(run, list, operation, &paging).await.map(|(entries, _)| entries)
}

/// Requests the smallest page of a list. Returns the request, the requested number of entries, and the returned number. `None` if the
/// document has no parameter for the size of pages, or the response is no list.
pub async fn read_smallest_page(run: &mut OperationRun<'_>, list: &Request) -> Option<(Request, u64, u64)> {
    let operation = run.find_read_operation(&list.path)?;
    let mut paging = Paging::of(operation);
    let schema = &paging.size?.schema;
    // Without a parameter for the position, `size` may be a property of the entries.
    let is_size = paging.position.is_some() || !has_name(&["size"], &paging.size?.name);
    let size = schema.resolved["minimum"].as_u64().unwrap_or(1).max(1);
    paging.wanted = Some(size).filter(|size| is_size && schema.is_valid(&(*size).into()))?;
    let request = paging.request_page(list, 0, 0, None);
    let response = run.send_as_owner(&request).await?;
    let body = (response.status == 200).then(|| response.json())?;
    Some((request, size, listed_entries(operation, &body)?.len() as u64))
}

/// Reads the total that the first page of a list declares. `None` unless the document has parameters for its pages.
pub async fn read_total(run: &mut OperationRun<'_>, list: &Request) -> Option<u64> {
    let operation = run.find_read_operation(&list.path)?;
    let paging = Paging::of(operation);
    let request = (paging.position.is_some() && paging.size.is_some()).then(|| paging.request_page(list, 0, 0, None))?;
    let response = run.send_as_owner(&request).await?;
    total(&response, &response.json())
}

/// Reads the entries of a list, at most [`MAX_LIST_PAGES`], and returns if they are all.
pub async fn read_list(run: &mut OperationRun<'_>, list: &Request) -> Option<(Vec<Value>, bool)> {
    let operation = run.find_read_operation(&list.path)?;
    read(run, list, operation, &Paging::of(operation)).await
}

async fn read(
    run: &mut OperationRun<'_>,
    list: &Request,
    operation: &Operation,
    paging: &Paging<'_>,
) -> Option<(Vec<Value>, bool)> {
    let (mut entries, mut cursor) = (Vec::new(), None);
    for number in 0..MAX_LIST_PAGES {
        let response = run.send_as_owner(&paging.request_page(list, number, entries.len(), cursor.take())).await?;
        if number > 0 && response.status == 404 && operation.response_for(404).is_some() {
            return Some((entries, true));
        }
        let body = (response.status == 200).then(|| response.json())?;
        let page = listed_entries(operation, &body)?;
        entries.extend_from_slice(page);
        let read = entries.len() as u64;
        let reaches_total = total(&response, &body).map(|total| read >= total);
        let next = next_page(&response, &body);
        match &paging.position {
            None => {
                let is_whole = reaches_total.unwrap_or_else(|| paging.is_whole(read) && !matches!(next, Some(Some(_))));
                return Some((entries, is_whole));
            }
            Some(Position::Cursor(parameter)) => {
                cursor = next.as_ref().and_then(|next| cursor_of(parameter, next.as_ref()?, page.last()));
                if cursor.is_none() {
                    return Some((entries, next == Some(None) || reaches_total == Some(true)));
                }
            }
            Some(_) if page.is_empty() || reaches_total == Some(true) => return Some((entries, true)),
            Some(_) => {}
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
        let is_list = arrays == 1 && !is_item(&operation.path) && entry_identifier(body).is_none();
        body[entries_property(body).filter(|_| is_list)?].as_array()
    };
    array.or_else(only_property).map(Vec::as_slice)
}

/// Returns the property of an entry that most probably identifies it in its list.
pub fn entry_identifier(body: &Value) -> Option<String> {
    let value = ["id", "uuid", "number", "code", "key", "name"].iter().find_map(|name| body.get(name))?;
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// Returns a request with these parameters in its query.
pub fn with_query<'n>(request: &Request, parameters: impl Iterator<Item = (&'n str, String)>) -> Request {
    let mut request = request.clone();
    for (name, text) in parameters {
        request.query.retain(|(other, _)| other != name);
        request.query.push((name.to_owned(), text));
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

/// Returns what a page says about the next one, in a property such as `next` or `hasMore`, or in a link (RFC 8288): `Some(None)` if there
/// is none, and `None` if the page says nothing.
fn next_page(response: &ReceivedResponse, page: &Value) -> Option<Option<Value>> {
    let parts = [page].into_iter().chain(page.as_object().into_iter().flat_map(Map::values)).filter_map(Value::as_object);
    let named: Vec<&Value> = parts.flatten().filter(|(name, _)| has_name(&NEXT_NAMES, name)).map(|(_, value)| value).collect();
    let is_set = |value: &&&Value| !matches!(value, Value::Null | Value::Bool(false)) && **value != "";
    // A cursor says more than a flag.
    let set = named.iter().filter(is_set).max_by_key(|value| !value.is_boolean()).map(|value| (**value).clone());
    let links = response.headers.get_all(LINK).iter().filter_map(|links| links.to_str().ok());
    let url = links.flat_map(linked_urls).find(|(_, relation)| relation.eq_ignore_ascii_case("next")).map(|(url, _)| url.into());
    (!named.is_empty() || url.is_some()).then(|| set.or(url))
}

/// Returns the URLs in the value of a `Link` header with their relations, of which each may have several. A URL may contain commas.
fn linked_urls(links: &str) -> Vec<(&str, &str)> {
    let mut found = Vec::new();
    for link in links.split('<').skip(1) {
        let Some((url, parameters)) = link.split_once('>') else { continue };
        let parameters = parameters.split([';', ',']).filter_map(|parameter| parameter.split_once('='));
        let relations = parameters.filter(|(name, _)| name.trim().eq_ignore_ascii_case("rel"));
        found.extend(relations.flat_map(|(_, value)| value.trim().trim_matches('"').split(' ')).map(|relation| (url, relation)));
    }
    found
}

/// Returns the value of a cursor for the next page: a text of the page, the parameter in its URL, or the identifier of its last entry if
/// the page only says that there is another one.
fn cursor_of(parameter: &Parameter, next: &Value, last: Option<&Value>) -> Option<String> {
    if next.is_boolean() {
        return entry_identifier(last?);
    }
    let text = to_plain_string(next);
    let Some((_, query)) = text.split_once('?') else { return Some(text) };
    form_urlencoded::parse(query.as_bytes()).find(|(name, _)| *name == parameter.name).map(|(_, value)| value.into_owned())
}

#[cfg(test)]
mod tests {
    use super::linked_urls;

    #[test]
    fn links_have_urls_with_commas_and_several_relations() {
        for (links, expected) in [
            ("</a?ids=1,2>; rel=\"next\", </b>; rel=\"last\"", vec![("/a?ids=1,2", "next"), ("/b", "last")]),
            ("</a>;rel=next", vec![("/a", "next")]),
            ("</a>; title=\"x\"; REL=\"next last\",</b>; rel=prev", vec![("/a", "next"), ("/a", "last"), ("/b", "prev")]),
            ("/a; rel=next", vec![]),
        ] {
            assert_eq!(linked_urls(links), expected, "{links}");
        }
    }
}
