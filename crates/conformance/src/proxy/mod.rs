//! `boxoffice proxy`: a proxy between clients and a server that validates the requests and responses which pass through it.
//!
//! ```text
//! client ◄──► Forwarder ◄──► server
//!                 │ Exchange (bounded queue)
//!                 ▼
//!             Validator ──► Report, Recording
//! ```
//!
//! Nothing is changed or rejected: validation happens after the response was forwarded.

mod forwarder;
pub(crate) mod recording;
mod validator;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use boxoffice_openapi::Contract;
use chrono::Utc;
use clap::Args;
use tokio::sync::mpsc;

use crate::comparison::Comparison;
use crate::model::{Finding, Report};
use crate::operation_under_test::OperationUnderTest;
use crate::options::BuiltinDocument;
use crate::report;
use crate::target::Target;
use forwarder::Forwarder;
use recording::Recording;
use validator::Validator;

/// Number of exchanges that wait for their validation. Beyond it, responses wait.
const QUEUE_LENGTH: usize = 16;

/// Options of `boxoffice proxy`.
#[derive(Debug, Args)]
pub struct ProxyOptions {
    /// Address of the server to forward requests to, such as http://127.0.0.1:8080
    #[arg(long, env = "BOXOFFICE_TARGET", value_name = "URL")]
    target: String,
    /// Address to listen on
    #[arg(long, env = "BOXOFFICE_LISTEN", value_name = "ADDRESS", default_value = "127.0.0.1:8082")]
    listen: SocketAddr,
    /// OpenAPI 3 document to validate against [default: the built-in contract]
    #[arg(long, env = "BOXOFFICE_SPEC", value_name = "FILE")]
    spec: Option<PathBuf>,
    /// Folder for report.json, junit.xml and report.html
    #[arg(long, env = "BOXOFFICE_REPORT", value_name = "DIR")]
    report: Option<PathBuf>,
    /// File for a copy of the document with the valid requests and responses as examples, which `mock --spec` can serve
    #[arg(long, env = "BOXOFFICE_RECORD", value_name = "FILE")]
    record: Option<PathBuf>,
    /// Number of findings to print; the report contains all
    #[arg(long, env = "BOXOFFICE_MAX_FINDINGS", default_value_t = 50, value_name = "N")]
    pub max_findings: usize,
}

/// An event of a running proxy.
#[derive(Debug)]
pub enum ProxyEvent<'a> {
    /// The proxy accepts requests at this address.
    Started(SocketAddr),
    /// This number of requests was validated.
    Validated(usize),
    /// A finding that is not like an earlier one.
    Found(&'a Finding),
}

impl ProxyOptions {
    /// Forwards and validates requests until `stop` is ready, then writes the report and the recording.
    ///
    /// # Errors
    /// Fails if the server can't be reached, an option is invalid, or a file can't be written.
    pub async fn run(
        &self,
        builtin: BuiltinDocument,
        stop: impl Future<Output = ()>,
        mut on_event: impl FnMut(ProxyEvent<'_>),
    ) -> anyhow::Result<Report> {
        if let Some(folder) = &self.report {
            report::create_folder(folder)?;
        }
        let mut recording = self.record.clone().map(Recording::new).transpose()?;
        let contract = match &self.spec {
            Some(file) => Arc::new(Contract::read(file)?),
            None => builtin.contract,
        };
        let target = Target::connect(&self.target, None).await?;
        let (sender, mut exchanges) = mpsc::channel(QUEUE_LENGTH);
        let forwarder = Forwarder::start(self.listen, &target.client.base_url, sender).await?;
        on_event(ProxyEvent::Started(forwarder.address()));

        let comparison = Comparison::new(contract, target, None, 0, Default::default(), builtin.server);
        let operations: Vec<_> = comparison
            .contract
            .operations()
            .map(|operation| OperationUnderTest::new(&comparison.contract, operation, comparison.seed))
            .collect();
        let mut validator = Validator::new(&comparison, &operations);
        let started = Utc::now();
        let mut forwarder = Some(forwarder);
        tokio::pin!(stop);
        loop {
            let exchange = tokio::select! {
                // The queue ends when the forwarder has stopped.
                exchange = exchanges.recv() => match exchange {
                    Some(exchange) => exchange,
                    None => break,
                },
                () = &mut stop, if forwarder.is_some() => {
                    forwarder = None;
                    continue;
                }
            };
            validator.validate(exchange, recording.as_mut(), |finding| on_event(ProxyEvent::Found(finding)));
            on_event(ProxyEvent::Validated(validator.request_count()));
        }
        let mut report = validator.report(started);
        if let Some(recording) = recording {
            report.notes.extend(recording.write(&comparison.contract.document)?);
        }
        if let Some(folder) = &self.report {
            report::write(folder, &report).context("the report is lost")?;
        }
        Ok(report)
    }
}
