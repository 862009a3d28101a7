//! Checks that an unknown identifier in a path is rejected with 404.

use crate::http_client::Request;
use crate::model::Check;
use crate::operation_run::{OperationRun, RequestPair};
use crate::operation_under_test::ArgumentLocation;

impl OperationRun<'_> {
    /// Replaces each variable of the path by an identifier of no resource.
    pub async fn check_unknown_resources(&mut self, pair: &RequestPair) {
        let spec = self.operation.spec;
        if !spec.statuses.contains(&404) {
            return;
        }
        let arguments = self.operation.arguments.iter().filter(|argument| argument.location == ArgumentLocation::Path);
        for argument in arguments {
            let Some(unknown) = argument.unknown_value(&pair.target.request, spec) else { continue };
            let request: Request = argument.set(&pair.target.request, spec, Some(&unknown));
            let Some(response) = self.send(&request).await else { continue };
            let failure = (response.status != 404 && response.status < 500).then(|| {
                let summary = format!("an unknown {} is answered with {}", argument.name, response.status);
                self.failure(summary, "404", response.describe())
            });
            self.record(Check::UnknownResource, &request, failure);
            self.check_response(&request, &response);
        }
    }
}
