//! Names of the parameters and properties of paged lists, as they are common in APIs. A document doesn't define their meaning.

use serde_json::Value;

use crate::Parameter;

/// Names of the number of a page, which mostly starts at 1.
pub const PAGE_NAMES: [&str; 3] = ["page", "pagenumber", "currentpage"];
/// Names of the size of a page.
pub const SIZE_NAMES: [&str; 5] = ["records", "limit", "perpage", "pagesize", "size"];
/// Names of the number of entries before a page.
pub const OFFSET_NAMES: [&str; 2] = ["offset", "skip"];
/// Names of the position of a page that only the server can interpret.
pub const CURSOR_NAMES: [&str; 6] = ["cursor", "after", "startingafter", "pagetoken", "nexttoken", "before"];
/// Names of the total number of entries.
pub const TOTAL_NAMES: [&str; 5] = ["total", "totalcount", "totalitems", "totalrecords", "totalelements"];
/// Names of the number of pages.
pub const PAGE_COUNT_NAMES: [&str; 3] = ["pages", "totalpages", "pagecount"];

/// Names of what a page has only if there is another one after it.
pub const NEXT_NAMES: [&str; 8] =
    ["next", "nextpage", "nexturl", "nextcursor", "nexttoken", "nextpagetoken", "hasmore", "hasnext"];

/// Returns a name without separators, in lower case: the same for `soldOut`, `sold-out` and `sold_out`.
pub fn normalize_name(name: &str) -> String {
    name.chars().filter(|character| !"-_ ".contains(*character)).flat_map(char::to_lowercase).collect()
}

/// Returns whether a name is one of these, apart from separators and case.
pub fn has_name(names: &[&str], name: &str) -> bool {
    names.contains(&normalize_name(name).as_str())
}

/// Returns the name of the property with the entries of a list: the first array, preferably of objects. `None` if the list is an
/// array itself, or has none.
pub fn entries_property(list: &Value) -> Option<&str> {
    let arrays = list.as_object()?.iter().filter_map(|(name, value)| Some((name, value.as_array()?)));
    arrays.min_by_key(|(_, items)| !items.iter().any(Value::is_object)).map(|(name, _)| name.as_str())
}

/// Returns the number of the first page by the parameter that selects a page: 1, unless the document has another default or minimum.
pub fn first_page(parameter: &Parameter) -> u64 {
    let schema = &parameter.schema.resolved;
    ["default", "minimum"].iter().find_map(|keyword| schema[*keyword].as_u64()).unwrap_or(1)
}
