//! Redaction of request paths for the audit log.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use boxoffice_openapi::{Operation, ParameterLocation};
use percent_encoding::percent_decode_str;

use crate::kernel::types::id::Id;

/// Maximum length of an identifier. A text of any length would not fit into the audit log's index.
const MAX_LENGTH: usize = 64;

/// Returns the path of a request, as the audit log stores it. Percent-encoded identifiers are decoded.
///
/// Secrets are replaced by the parameter's name in braces, as in `/tokens/{code}/authentication`. So are values that are not
/// identifiers, because a client may have sent a key or an e-mail address there and audit records are never deleted.
pub fn path(operation: &Operation, path: &str) -> String {
    let is_secret = |name: &str| {
        let mut secrets =
            operation.parameters.iter().filter(|parameter| parameter.location == ParameterLocation::Path && parameter.is_secret);
        secrets.any(|parameter| parameter.name == name)
    };
    operation.template.with(path, |name, text| {
        let text = percent_decode_str(text).decode_utf8_lossy();
        if is_identifier(&text) && !is_secret(name) { text.into_owned() } else { format!("{{{name}}}") }
    })
}

/// Returns whether a text has the format of an identifier, an account's number or a submission's identifier.
pub fn is_identifier(text: &str) -> bool {
    text.len() <= MAX_LENGTH && (Id::parse(text).is_some() || is_account_number(text) || is_submission(text))
}

/// Returns whether a text has the format of an account's number, such as `GH-4K7QW2MZ`.
fn is_account_number(text: &str) -> bool {
    let is_upper = |text: &str| text.bytes().all(|byte| byte.is_ascii_uppercase());
    let is_upper_or_digit = |text: &str| text.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit());
    text.split_once('-').is_some_and(|(country, number)| {
        (country.len(), number.len()) == (2, 8) && is_upper(country) && is_upper_or_digit(number)
    })
}

/// Returns whether a text is the base64 of a URI such as `/events/17637000000051`.
fn is_submission(text: &str) -> bool {
    let uri = STANDARD.decode(text).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    let content = uri.as_deref().and_then(|uri| uri.strip_prefix('/')?.split_once('/'));
    content.is_some_and(|(kind, id)| kind.bytes().all(|byte| byte.is_ascii_lowercase()) && Id::parse(id).is_some())
}
