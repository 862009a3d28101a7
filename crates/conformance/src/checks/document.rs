//! Checks of the document itself: its examples, and drift between it and the server's endpoints.

use boxoffice_openapi::response::ViolationKind;
use boxoffice_openapi::{Schema, escape};
use serde_json::Value;

use crate::model::Check;
use crate::operation_run::OperationRun;
use crate::recorder::CheckFailure;

impl OperationRun<'_> {
    /// Checks that the examples of arguments, bodies and responses match their own schemas.
    pub fn check_examples(&mut self) {
        let operation = self.operation;
        for argument in &operation.arguments {
            if let Some(example) = &argument.example {
                self.record_example(format!("{}/example", argument.pointer), &argument.declared, example);
            }
        }
        let spec = operation.spec;
        let body = spec.body.iter().map(|body| (format!("{}/requestBody", spec.pointer), &body.contents));
        let responses = spec.responses.iter().map(|response| (response.pointer.clone(), &response.contents));
        for (pointer, contents) in body.chain(responses) {
            for content in contents.iter().filter(|content| content.is_json()) {
                let Some(schema) = &content.schema else { continue };
                for (name, example) in &content.examples {
                    let pointer = format!("{pointer}/content/{}/examples", escape(&content.media_type));
                    self.record_example(format!("{pointer}/{}", escape(name)), schema, example);
                }
            }
        }
    }

    /// Checks that the server's endpoint for this operation is declared as the document describes it.
    pub fn check_drift(&mut self) {
        let Some(differences) = self.comparison.drift_of(self.operation.spec) else { return };
        if differences.is_empty() {
            self.recorder.record(Check::Undocumented, String::new, None);
        }
        for difference in differences {
            let failure = self.failure(difference.to_string(), &difference.document, &difference.server);
            self.recorder.record(Check::Undocumented, String::new, Some(failure));
        }
    }

    fn record_example(&mut self, pointer: String, schema: &Schema, example: &Value) {
        let violations = schema.violations(example);
        // The schema may allow them, but a client can't know of them.
        let is_undeclared = violations.iter().all(|(kind, _)| *kind == ViolationKind::Undeclared);
        let (problem, expected) = match is_undeclared {
            true => ("has properties that its schema doesn't declare", "an example with declared properties only"),
            false => ("is not valid", "an example that its own schema allows"),
        };
        let failure = (!violations.is_empty()).then(|| CheckFailure {
            summary: format!("the example at {pointer} {problem}"),
            expected: expected.to_owned(),
            actual: violations.iter().map(|(_, text)| text.trim_start_matches([':', ' '])).collect::<Vec<_>>().join("; "),
            pointer,
        });
        self.recorder.record(Check::Example, String::new, failure);
    }
}
