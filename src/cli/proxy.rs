//! The command `proxy`.

use std::io::{IsTerminal, Write, stderr};

use boxoffice_conformance::model::operation_label;
use boxoffice_conformance::proxy::{ProxyEvent, ProxyOptions};
use boxoffice_conformance::report;

use super::signals::StopSignals;
use super::{print, print_error};
use crate::contract;
use crate::kernel::private_files;

/// Forwards and validates requests until a stop signal, and prints the findings. Returns whether there are none.
pub async fn run(options: &ProxyOptions) -> anyhow::Result<bool> {
    // The recording and the report may have personal data.
    private_files::set_umask();
    let builtin = contract::builtin_document()?;
    let mut stop = StopSignals::listen()?;
    let is_terminal = stderr().is_terminal();
    let clear_line = || {
        if is_terminal {
            let _ignored = write!(stderr(), "\r\x1b[K");
        }
    };
    let on_event = |event: ProxyEvent<'_>| match event {
        ProxyEvent::Started(address) => {
            // The proxy is useful even if its output is closed.
            let _ignored = print(format!("Proxy at http://{address}. Stop it with Ctrl-C to write the report."));
        }
        ProxyEvent::Validated(count) if is_terminal => {
            let _ignored = write!(stderr(), "\r\x1b[K{count} requests…");
        }
        ProxyEvent::Validated(_) => {}
        ProxyEvent::Found(finding) => {
            clear_line();
            let operation = operation_label(&finding.operation);
            print_error(report::escape_control_characters(&format!(
                "{} of {operation}: {}",
                finding.check.name(),
                finding.summary
            )));
        }
    };
    let report = options.run(builtin, stop.recv(), on_event).await?;
    clear_line();
    print(report::text(&report, options.max_findings).trim_end())?;
    Ok(report.findings.is_empty())
}
