//! Checks of `Idempotency-Key`: a repeated request has one effect.

use http::header::LOCATION;

use super::changed_values::{changed_values, difference};
use crate::http_client::Request;
use crate::model::Check;
use crate::operation_run::OperationRun;
use crate::operation_under_test::IDEMPOTENCY_KEY;

impl OperationRun<'_> {
    /// Sends a request twice with the same key, and then another request with that key.
    pub async fn check_repeats(&mut self) {
        let spec = self.operation.spec;
        let Some(argument) = self.operation.arguments.iter().find(|argument| argument.is_header(IDEMPOTENCY_KEY)) else { return };
        let Some(key) = argument.fresh_key(&self.comparison.contract.document) else { return };
        let Ok(pair) = self.valid_requests(None).await else { return };
        let request = pair.target.request.clone().with_header(IDEMPOTENCY_KEY, &key);
        let Some(first) = self.send_unchanged(&request).await.filter(|response| response.is_success()) else { return };
        let Some(second) = self.send_unchanged(&request).await else { return };
        let differs = match () {
            () if second.status != first.status => {
                Some((format!("a repeated request is answered with {}", second.status), first.status.to_string()))
            }
            () if second.header(LOCATION) != first.header(LOCATION) => {
                Some(("a repeated request creates another resource".to_owned(), first.describe()))
            }
            () => difference(&first.json(), &second.json())
                .map(|(path, ..)| (format!("the response to a repeated request has another {path}"), first.describe())),
        };
        let differs = differs.or_else(|| {
            let [one, other] = [&first, &second].map(|response| response.json()["self"].clone());
            (one != other).then(|| ("a repeated request creates another resource".to_owned(), first.describe()))
        });
        let failure = differs.filter(|_| second.status < 500).map(|(summary, expected)| {
            self.failure(format!("{summary}, despite its Idempotency-Key"), expected, second.describe())
        });
        self.record(Check::Repeat, &request, failure);
        if spec.statuses.contains(&422) {
            self.check_other_request(&pair.target.request.with_header(IDEMPOTENCY_KEY, &key)).await;
        }
    }

    /// Checks that another body with a used key is refused.
    async fn check_other_request(&mut self, request: &Request) {
        let Some(body) = request.json() else { return };
        let document = &self.comparison.contract.document;
        let changed = self.body_arguments().into_iter().find_map(|argument| {
            let value = changed_values(document, argument, body.get(&argument.name)?, false).into_iter().next()?;
            Some(argument.set(request, self.operation.spec, Some(&value)))
        });
        let Some(request) = changed else { return };
        let Some(response) = self.send_unchanged(&request).await else { return };
        let name = "another request with a used Idempotency-Key";
        let failure = self.status_failure(name, &response, response.status == 422, "422");
        self.record(Check::Repeat, &request, failure);
        self.check_response(&request, &response);
    }
}
