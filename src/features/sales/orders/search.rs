//! Search for orders by a regular expression on their number.
//!
//! The two databases support different regular expressions, and neither supports the contract's syntax. So the numbers, which
//! are the identifiers, are read in batches and matched here. Only the rows of the requested page are loaded.

use boxoffice_http::error::{Error, Result};
use regex::{Regex, RegexBuilder};

use super::model::{Criteria, OrderRow};
use super::store;
use crate::kernel::db::Reader;
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::Id;
use crate::kernel::types::paging::{PageRequest, PagedRows};

/// Memory limit of a compiled expression, in bytes: far more than the 14 digits of a number need, and little for the server.
const SIZE_LIMIT: usize = 1 << 18;

/// Compiles a `number` filter.
///
/// # Errors
/// Returns an error if it is not a regular expression, or needs too much memory.
pub fn parse(number: &str) -> Result<Regex> {
    let pattern = RegexBuilder::new(number).size_limit(SIZE_LIMIT).dfa_size_limit(SIZE_LIMIT).build();
    pattern.map_err(|error| {
        let detail = match error {
            regex::Error::CompiledTooBig(_) => "is too large a regular expression",
            _ => "must be a regular expression",
        };
        Error::invalid("number", detail)
    })
}

/// Returns one page of the orders whose number matches.
pub async fn page(
    reader: &mut Reader,
    number: &Regex,
    criteria: Criteria,
    paging: PageRequest,
    now: Timestamp,
) -> Result<PagedRows<OrderRow>> {
    let range = paging.offset()..paging.end();
    let (mut total, mut ids): (i64, Vec<Id>) = (0, Vec::new());
    let mut after = None;
    loop {
        let batch = store::list_ids(reader, criteria, after, now).await?;
        for id in batch.iter().filter(|id| number.is_match(&id.to_string())) {
            if range.contains(&total) {
                ids.push(*id);
            }
            total += 1;
        }
        after = batch.last().copied();
        if batch.len() < store::SEARCH_BATCH {
            break;
        }
    }
    if ids.is_empty() {
        paging.require_first()?;
    }
    Ok(PagedRows { total, rows: store::find_all(reader, ids, criteria).await?, paging, bytes: 0, permit: None })
}
