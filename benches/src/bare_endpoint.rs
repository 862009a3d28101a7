//! A dropshot endpoint that returns constant bytes: the upper bound for a server on this stack.

use std::io::{Write, stderr};

use bytes::Bytes;
use dropshot::{
    ApiDescription, Body, ConfigDropshot, ConfigLogging, ConfigLoggingLevel, HttpError, Path, RequestContext, ServerBuilder,
    endpoint,
};
use http::{Response, header};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

#[derive(Deserialize, JsonSchema)]
struct AnyPath {
    #[expect(dead_code, reason = "every path has the same response")]
    path: Vec<String>,
}

#[endpoint { method = GET, path = "/{path:.*}", unpublished = true }]
async fn respond(context: RequestContext<Bytes>, _: Path<AnyPath>) -> Result<Response<Body>, HttpError> {
    let response = Response::builder().header(header::CONTENT_TYPE, "application/json");
    Ok(response.body(Body::from(context.context().clone()))?)
}

/// Returns these bytes to every request until the process is killed. Logs its address.
///
/// # Errors
/// Returns an error if the server can't start.
pub async fn serve(bytes: Bytes) -> anyhow::Result<()> {
    let mut api = ApiDescription::new();
    api.register(respond)?;
    let config = ConfigDropshot { bind_address: ([127, 0, 0, 1], 0).into(), ..ConfigDropshot::default() };
    let log = ConfigLogging::StderrTerminal { level: ConfigLoggingLevel::Critical }.to_logger("bare")?;
    let server = ServerBuilder::new(api, bytes, log).config(config).start().map_err(|error| anyhow::anyhow!(error))?;
    writeln!(stderr(), "{}", json!({ "address": server.local_addr() }))?;
    server.await.map_err(anyhow::Error::msg)
}
