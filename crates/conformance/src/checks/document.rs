//! The document by itself: its examples, and whether the server as written has more than it says.

use serde_json::Value;

use boxoffice_openapi::{compile, escape};
use crate::operation_run::OperationRun;
use crate::model::Check;
use crate::recorder::Fault;

impl OperationRun<'_> {
    /// The examples of arguments, bodies and answers are valid against their own schemas.
    pub fn check_examples(&mut self) {
        let subject = self.subject;
        for argument in &subject.arguments {
            if let Some(example) = &argument.example {
                self.judge_example(format!("{}/example", argument.pointer), errors(&argument.schema, example));
            }
        }
        if let Some(body) = &subject.body {
            for (name, example) in &body.examples {
                self.judge_example(format!("{}/examples/{}", body.pointer, escape(name)), errors(&body.schema, example));
            }
        }
        for answer in &subject.operation.answers {
            for content in answer.contents.iter().filter(|content| content.is_json()) {
                let Some(schema) = &content.schema else { continue };
                for (name, example) in &content.examples {
                    let wrong: Vec<_> = schema.wrong(example).into_iter().map(|(_, text)| text).collect();
                    let place = format!("{}/content/{}/examples", answer.pointer, escape(&content.media_type));
                    self.judge_example(format!("{place}/{}", escape(name)), wrong);
                }
            }
        }
    }

    /// The server as written has of this operation what the document describes, and nothing else.
    pub fn check_described(&mut self) {
        let Some(differences) = self.comparison.drift_of(self.subject.operation) else { return };
        if differences.is_empty() {
            self.record.judge(Check::Undescribed, "", None);
        }
        for difference in differences {
            let fault = Fault {
                pointer: self.subject.operation.pointer.clone(),
                summary: difference.to_string(),
                expected: difference.document.clone(),
                actual: difference.server.clone(),
            };
            self.record.judge(Check::Undescribed, "", Some(fault));
        }
    }

    fn judge_example(&mut self, pointer: String, errors: Vec<String>) {
        let fault = (!errors.is_empty()).then(|| Fault {
            summary: format!("the example at {pointer} is not valid"),
            expected: "an example that its own schema allows".to_owned(),
            actual: errors.join("; "),
            pointer,
        });
        self.record.judge(Check::Example, "", fault);
    }
}

/// What is wrong with a value by its schema.
fn errors(schema: &Value, value: &Value) -> Vec<String> {
    match compile(schema) {
        Ok(validator) => validator.iter_errors(value).map(|error| format!("{}: {error}", error.instance_path())).collect(),
        Err(error) => vec![format!("its schema can't be used: {error:#}")],
    }
}
