//! A dropshot endpoint that does nothing but answer: the most that a server on this stack can do.

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
struct Any {
    #[expect(dead_code, reason = "every path is answered alike")]
    path: Vec<String>,
}

#[endpoint { method = GET, path = "/{path:.*}", unpublished = true }]
async fn answer(rq: RequestContext<Bytes>, _: Path<Any>) -> Result<Response<Body>, HttpError> {
    let response = Response::builder().header(header::CONTENT_TYPE, "application/json");
    Ok(response.body(Body::from(rq.context().clone()))?)
}

/// Answers every request with these bytes, until the process is killed, and tells where.
///
/// # Errors
/// When it can't.
pub async fn serve(bytes: Bytes) -> anyhow::Result<()> {
    let mut api = ApiDescription::new();
    api.register(answer)?;
    let config = ConfigDropshot { bind_address: ([127, 0, 0, 1], 0).into(), ..ConfigDropshot::default() };
    let log = ConfigLogging::StderrTerminal { level: ConfigLoggingLevel::Critical }.to_logger("bare")?;
    let server = ServerBuilder::new(api, bytes, log).config(config).start().map_err(|error| anyhow::anyhow!(error))?;
    writeln!(stderr(), "{}", json!({ "address": server.local_addr() }))?;
    server.await.map_err(anyhow::Error::msg)
}
