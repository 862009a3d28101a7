//! Identifiers in paths.

use progenitor_client::encode_path;

/// Returns an identifier as a segment of a path.
///
/// # Errors
/// Returns an error for an empty identifier, `.` and `..`. The URL parser removes such segments, so the request would be one for
/// another resource: a DELETE of the session `..` would delete the account.
pub(crate) fn encode_identifier(identifier: &str) -> Result<String, String> {
    if ["", ".", ".."].contains(&identifier) {
        return Err(format!("{identifier:?} is not the identifier of a resource"));
    }
    // The URL parser treats a backslash like a slash.
    Ok(encode_path(identifier).replace('\\', "%5C"))
}
