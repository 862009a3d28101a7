//! Checks that an unknown identifier in a path is rejected with 404.

use super::list_reader::listed_entries;
use crate::argument::ArgumentLocation;
use crate::http_client::Request;
use crate::model::Check;
use crate::operation_run::{OperationRun, RequestPair};

impl OperationRun<'_> {
    /// Replaces each variable of the path by an identifier of no resource.
    ///
    /// A declared 404 is expected. `4XX` declares it only for the resources of a collection, and any rejection or a list will do. `default`
    /// may be a success: a GET must only match it.
    pub async fn check_unknown_resources(&mut self, pair: &RequestPair) {
        let spec = self.operation.spec;
        if spec.response_for(404).is_none() {
            return;
        }
        let (is_exact, is_declared) = (spec.statuses.contains(&404), spec.declares(404));
        // A PUT may create a resource, and a POST belong to any identifier.
        let may_succeed = !is_declared && spec.method != "GET" || !is_exact && ["PUT", "POST"].contains(&spec.method.as_str());
        if may_succeed {
            return;
        }
        let arguments = self.operation.arguments.iter().filter(|argument| argument.location == ArgumentLocation::Path);
        for argument in arguments {
            if !is_exact && !self.is_of_collection(&argument.name) {
                continue;
            }
            let Some(unknown) = argument.unknown_value(&pair.target.request, spec) else { continue };
            let request: Request = argument.set(&pair.target.request, spec, Some(&unknown));
            if !self.is_unknown(&argument.name, &request).await {
                continue;
            }
            let Some(response) = self.send(&request).await else { continue };
            let is_rejected = response.status == 404 || !is_exact && (400..500).contains(&response.status);
            let is_list = !is_exact && spec.method == "GET" && listed_entries(spec, &response.json()).is_some();
            let is_accepted = is_rejected || is_list || !is_declared || self.accepts_repeated_removal(&response);
            let failure = self.status_failure(&format!("an unknown {}", argument.name), &response, is_accepted, "404");
            if is_declared {
                self.record(Check::UnknownResource, &request, failure);
            }
            self.check_response(&request, &response);
        }
    }

    /// Returns if the variable at the end of the path identifies a resource of a collection: the path before it belongs to an operation,
    /// too.
    fn is_of_collection(&self, variable: &str) -> bool {
        let path = self.operation.spec.path.trim_end_matches('/');
        let Some(collection) = path.strip_suffix(&format!("/{{{variable}}}")) else { return false };
        self.comparison.contract.operations().any(|operation| operation.path.trim_end_matches('/') == collection)
    }

    /// Returns if a request can be sent without a change of a resource that exists: a read of the resource with the identifier in this
    /// variable of the path is 404. Without a documented read, the identifier is unlikely enough.
    async fn is_unknown(&mut self, variable: &str, request: &Request) -> bool {
        if request.method == "GET" || self.comparison.is_builtin() {
            return true;
        }
        let variable = format!("{{{variable}}}");
        let length = self.operation.spec.path.split('/').take_while(|segment| !segment.contains(&variable)).count() + 1;
        let resource = request.path.split('/').take(length).collect::<Vec<_>>().join("/");
        let paths = [&resource, &request.path];
        if paths.iter().all(|path| self.find_read_operation(path).is_none()) {
            return true;
        }
        let Some(read) = paths.into_iter().find_map(|path| self.read_request(path, request)) else { return false };
        let response = self.send(&read).await;
        response.is_some_and(|response| [404, 410].contains(&response.status))
    }
}
