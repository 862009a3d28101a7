//! Checks that a query parameter that the document doesn't define is ignored, and named in the response.

use crate::model::Check;
use crate::operation_run::{OperationRun, RequestPair};

/// A parameter of no operation.
const UNDEFINED: &str = "no-such-parameter";

impl OperationRun<'_> {
    /// Sends an undefined parameter, if the document declares a header that names such parameters (`x-ignored-parameters`).
    pub async fn check_ignored_parameters(&mut self, pair: &RequestPair) {
        let document = &self.comparison.contract.document;
        let Some(header) = document["x-ignored-parameters"].as_str() else { return };
        if self.operation.spec.method != "GET" {
            return;
        }
        let mut request = pair.target.request.clone();
        request.query.push((UNDEFINED.to_owned(), "1".to_owned()));
        let Some(response) = self.send(&request).await else { return };
        let is_named = response.header(header).is_some_and(|names| names.split(',').any(|name| name.trim() == UNDEFINED));
        let summary = match response.status {
            200..300 if is_named => None,
            200..300 => Some(format!("{header} doesn't name an undefined parameter")),
            status => Some(format!("an undefined parameter is answered with {status}")),
        };
        let failure = summary
            .filter(|_| response.status < 500)
            .map(|summary| self.failure(summary, format!("a success status, with {UNDEFINED} in {header}"), response.describe()));
        self.record(Check::IgnoredParameter, &request, failure);
    }
}
