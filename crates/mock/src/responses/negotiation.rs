//! The media type that a client accepts.

use std::cmp::Reverse;

use boxoffice_openapi::response::{BodyContent, essence, matches_range};

use super::{BodySource, SelectionError};

/// Returns the content that the client prefers (RFC 9110, section 12.5.1); among equals JSON, then the first. Without `accept`, the
/// client accepts everything. `None` if there is no content.
///
/// # Errors
/// Returns an error if the client accepts none of them, or only XML that can't be generated.
pub fn negotiate<'a>(
    contents: impl Iterator<Item = (&'a BodyContent, &'a BodySource)>,
    accept: Option<&str>,
) -> Result<Option<(&'a BodyContent, &'a BodySource)>, SelectionError> {
    let accept = accept.unwrap_or("*/*");
    // A range of the document may include an accepted media type.
    let includes_accepted = |declared: &str| {
        let mut accepted = accept.split(',').map(essence);
        declared.contains('*') && accepted.any(|range| matches_range(declared, range) && quality(accept, range) > 0)
    };
    let weigh = |(content, source): &(&BodyContent, &BodySource)| match quality(accept, essence(&source.media_type)) {
        0 if includes_accepted(&content.media_type) => 1,
        weight => weight,
    };
    let contents: Vec<_> = contents.collect();
    if contents.is_empty() {
        return Ok(None);
    }
    let acceptable = || contents.iter().filter(|content| weigh(content) > 0);
    let generated = acceptable().filter(|(content, _)| !content.is_xml_unseen());
    let best = generated.min_by_key(|content| (Reverse(weigh(content)), !content.0.is_json()));
    match best {
        Some(best) => Ok(Some(*best)),
        None if acceptable().next().is_some() => Err(SelectionError::XmlNotGenerated),
        None => {
            let types: Vec<_> = contents.iter().map(|(content, _)| content.media_type.as_str()).collect();
            Err(SelectionError::NotAcceptable(types.join(", ")))
        }
    }
}

/// Returns the weight of a media type in thousandths, from the most specific range that matches it.
fn quality(accept: &str, media_type: &str) -> u32 {
    let ranges = accept.split(',').filter(|range| matches_range(range, media_type));
    let most_specific = ranges.min_by_key(|range| essence(range).bytes().filter(|byte| *byte == b'*').count());
    let Some(range) = most_specific else { return 0 };
    let weight = range.split(';').skip(1).find_map(|parameter| parameter.trim().strip_prefix("q="));
    let weight = weight.map_or(Some(1.0), |weight| weight.trim().parse::<f64>().ok());
    (weight.unwrap_or(1.0).clamp(0.0, 1.0) * 1000.0) as u32
}
