//! Checks of conditional requests: entity tags, `If-Match` and `If-None-Match` (RFC 9110, section 13).

use http::header::ETAG;
use serde_json::Value;

use super::changed_values::without_differences;
use crate::http_client::{ReceivedResponse, Request};
use crate::model::Check;
use crate::operation_run::OperationRun;

/// A tag that no resource has.
const OTHER_TAG: &str = "\"0000000000000000000000\"";

impl OperationRun<'_> {
    /// Checks that an update changes the tag and, if the document declares `If-Match`, requires the right one.
    pub async fn check_conditional_update(&mut self) {
        let Some((pair, read, before)) = self.updatable().await else { return };
        let Some(first) = self.tagged(&read).await else { return };
        let Some(again) = self.tagged(&read).await else { return };
        let is_conditional = self.declares_if_match();
        if is_conditional {
            let unstable = (first.body == again.body && tag(&first) != tag(&again))
                .then(|| self.failure("the tag differs between two reads of an unchanged resource", tag(&first), tag(&again)));
            self.record(Check::Tag, &read, unstable);
        }
        // Properties that a read changes, such as a counter of reads, don't count.
        let counted = (first.json(), again.json());
        // If-Match never matches a weak tag (RFC 9110, section 13.1.1), which may also stay for a second (section 8.8.1).
        if tag(&first).starts_with("W/") && !self.comparison.is_builtin() {
            return;
        }
        let mut requests = self.body_arguments().into_iter().flat_map(|argument| {
            let values = self.new_values(&pair, argument, &before);
            values.into_iter().map(|value| self.update_of(&pair, argument, &value, &before)).collect::<Vec<_>>()
        });
        let (first_change, stale) = (requests.next(), requests.last());
        let Some(change) = first_change else { return };
        let change = if is_conditional { change.with_header("If-Match", tag(&first)) } else { change };
        let Some(changed) = self.send(&change).await else { return };
        if changed.status == 412 && is_conditional {
            let failure =
                self.failure("an update with the right tag in If-Match is refused", "a success status", changed.describe());
            return self.record(Check::IfMatch, &change, Some(failure));
        }
        if !self.operation.is_success(&changed) {
            return;
        }
        if is_conditional {
            self.record(Check::IfMatch, &change, None);
        }
        let Some(second) = self.tagged(&read).await else { return };
        let same = (tag(&second) == tag(&first) && !is_same(&second, &first, &counted))
            .then(|| self.failure("the tag is the same after an update", "another tag", tag(&second)));
        self.record(Check::Tag, &read, same);
        // Without If-Match, a tag may be a hash of the body, which may contain properties that each response changes.
        let needs_same_tag = is_same(&changed, &second, &counted) && (is_conditional || changed.body == second.body);
        if let Some(updated) = changed.header(ETAG).filter(|_| needs_same_tag) {
            let differs = (updated != tag(&second)).then(|| {
                self.failure("the tag of the update differs from the tag of a read with the same body", tag(&second), updated)
            });
            self.record(Check::Tag, &change, differs);
        }
        // Without another tag, there is no old one.
        if tag(&second) == tag(&first) {
            return;
        }
        // The old tag leads to a new response.
        let conditional = read.clone().with_header("If-None-Match", tag(&first));
        if let Some(response) = self.send(&conditional).await {
            let outdated = (response.status == 304)
                .then(|| self.failure("a changed resource is 304 for its old tag", "200", response.describe()));
            self.record(Check::NotModified, &conditional, outdated);
        }
        if !is_conditional {
            return;
        }
        let request = stale.unwrap_or_else(|| change.clone()).with_header("If-Match", tag(&first));
        self.check_refused(&request, &read, &second, &counted, "an update").await;
    }

    /// Checks that a removal requires the right tag.
    pub async fn check_conditional_removal(&mut self) {
        if self.operation.spec.method != "DELETE" || !self.declares_if_match() {
            return;
        }
        let Ok(pair) = self.valid_requests(None).await else { return };
        let request = pair.target.request;
        let Some(read) = self.read_request(&request.path, &request) else { return };
        let Some(before) = self.tagged(&read).await else { return };
        let Some(again) = self.tagged(&read).await else { return };
        let counted = (before.json(), again.json());
        self.check_refused(&request.with_header("If-Match", OTHER_TAG), &read, &before, &counted, "a removal").await;
    }

    /// Checks that a request with an old tag is refused with 412, and has no effect. `counted` are two reads without a change between.
    async fn check_refused(
        &mut self,
        request: &Request,
        read: &Request,
        before: &ReceivedResponse,
        counted: &(Value, Value),
        name: &str,
    ) {
        let Some(response) = self.send(request).await else { return };
        let name = format!("{name} with an old tag in If-Match");
        let accepted = self.status_failure(&name, &response, response.status == 412, "412");
        self.record(Check::IfMatch, request, accepted);
        self.check_response(request, &response);
        let Some(after) = self.send(read).await else { return };
        let carried_out = (response.status == 412 && (after.status != 200 || !is_same(before, &after, counted)))
            .then(|| self.failure(format!("{name} is refused and carried out"), before.describe(), after.describe()));
        self.record(Check::IfMatch, request, carried_out);
    }

    /// Reads a resource. Returns `None` if the response has no tag.
    async fn tagged(&mut self, read: &Request) -> Option<ReceivedResponse> {
        let response = self.send(read).await?;
        (response.status == 200 && response.header(ETAG).is_some() && response.json() != Value::Null).then_some(response)
    }

    fn declares_if_match(&self) -> bool {
        let spec = self.operation.spec;
        spec.declares(412) && spec.parameters.iter().any(|parameter| parameter.name.eq_ignore_ascii_case("If-Match"))
    }
}

/// Returns if two responses have the same resource, apart from the properties that a read changes.
fn is_same(one: &ReceivedResponse, other: &ReceivedResponse, (first, second): &(Value, Value)) -> bool {
    let [one, other] = [one, other].map(|response| without_differences(&response.json(), first, second));
    one == other
}

fn tag(response: &ReceivedResponse) -> &str {
    response.header(ETAG).unwrap_or_default()
}
