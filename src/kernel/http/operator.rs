//! Operations that an operator runs on the server's machine, without a server and without an API key.
//!
//! They are validated against the contract, executed by the same endpoints and recorded in the audit log like requests. The caller
//! has the permissions of a platform administrator and no account.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use anyhow::anyhow;
use boxoffice_http::error::{Error, Result};
use boxoffice_http::traces::Span;
use boxoffice_http::{ApiError, IncomingRequest, etag};
use boxoffice_openapi::{Contract, Scope};
use dropshot::Body;
use http::{HeaderMap, Method, Request, Response, Uri};
use serde_json::Value;

use super::endpoint::Endpoint;
use super::execute::{AuditContext, AuditSource, execute};
use super::extract::EndpointRequest;
use super::handler::AppState;
use super::routes::Routes;
use crate::kernel::audit::redact;
use crate::kernel::auth::Caller;
use crate::kernel::context::Context;
use crate::kernel::types::id::Id;
use crate::kernel::unit_of_work::UnitOfWork;

/// An operator of the platform.
pub struct Operator<A> {
    /// The application's state.
    pub app: Arc<A>,
    /// The caller of all operations.
    pub caller: Caller,
    contract: Arc<Contract>,
    endpoints: HashMap<String, Arc<Endpoint<A>>>,
}

impl<A: AppState> Operator<A> {
    /// Creates an operator who is the user of the operating system.
    ///
    /// # Errors
    /// Returns an error if the database fails.
    pub async fn new(app: Arc<A>, routes: Routes<A>, contract: Arc<Contract>) -> Result<Self> {
        let mut reader = app.kernel().db.version_reader().await?;
        let (_, db_version) = reader.key_changes_with_version().await?;
        let caller = Caller {
            key: Id::NONE,
            scope: Scope::Administrator,
            account: None,
            account_number: None,
            preferred_region: None,
            is_session: false,
            admission_claims: None,
            db_version: Arc::new(db_version),
        };
        Ok(Self { app, caller, contract, endpoints: routes.into_endpoints() })
    }

    /// Runs the operation with this method and path, and returns the body of its response; null if there is none.
    ///
    /// # Errors
    /// Returns the error response of the operation, if the contract or a rule rejects it or the database fails.
    pub async fn request(&self, method: Method, path_and_query: &str, body: Option<&Value>) -> Result<Value, ApiError> {
        let uri: Uri = path_and_query.parse().map_err(|_| Error::NOT_FOUND)?;
        let operation = self.contract.find(method.as_str(), uri.path()).map_err(|_| Error::NOT_FOUND)?;
        let endpoint =
            self.endpoints.get(&operation.id).ok_or_else(|| Error::Internal(anyhow!("{} has no endpoint", operation.id)))?;
        let body = body.map(Value::to_string).unwrap_or_default();
        let arguments = operation.check(uri.path(), uri.query(), &HeaderMap::new(), body.as_bytes()).map_err(Error::from)?;
        let mut head = Request::new(()).into_parts().0;
        (head.method, head.uri) = (method, uri.clone());
        // A command has no traces.
        let (id, client_address, span) = (String::new(), IpAddr::V4(Ipv4Addr::LOCALHOST), Span::default());
        let incoming = Box::new(IncomingRequest { id, client_address, head, arguments, span });
        let run = |unit: &Arc<UnitOfWork>| {
            let ctx = Context { app: Arc::clone(&self.app), unit: Arc::clone(unit) };
            (endpoint.run)(EndpointRequest { ctx, caller: Some(self.caller.clone()), incoming })
        };
        let db = self.app.kernel().db.clone();
        let response = if endpoint.metadata.is_mutating {
            let unit = UnitOfWork::of_request(db, None, None, Span::default());
            let resource = redact::path(operation, uri.path());
            execute(self.app.kernel(), audit_context(&user_name(), &operation.id, resource), &unit, None, run(&unit)).await?
        } else {
            run(&UnitOfWork::read_only(db, Span::default())).await?
        };
        let body = etag::collect_body(response.into_body()).await?;
        if body.is_empty() {
            return Ok(Value::Null);
        }
        Ok(serde_json::from_slice(&body).map_err(|error| Error::Internal(error.into()))?)
    }
}

/// Runs a change that is no operation of the contract, and commits it with its record in the audit log: the user of the operating system
/// who runs the command has made it.
///
/// # Errors
/// Returns the error of the change, or an error if the database fails.
pub async fn run_as_operator<A: AppState, T: Send, F: Future<Output = Result<T>> + Send>(
    app: &Arc<A>,
    operation: &str,
    resource: String,
    change: impl FnOnce(Context<A>) -> F,
) -> Result<T, ApiError> {
    let unit = UnitOfWork::of_request(app.kernel().db.clone(), None, None, Span::default());
    let change = change(Context { app: Arc::clone(app), unit: Arc::clone(&unit) });
    let mut changed = None;
    let work = async {
        changed = Some(change.await?);
        Ok(Response::new(Body::empty()))
    };
    execute(app.kernel(), audit_context(&user_name(), operation, resource), &unit, None, work).await?;
    Ok(changed.ok_or_else(|| Error::Internal(anyhow!("the change has no result")))?)
}

/// Returns the user of the operating system who runs a command, for the audit log. An account that was removed from the system has no
/// name.
pub fn user_name() -> String {
    whoami::username().unwrap_or_else(|_| "unknown".to_owned())
}

fn audit_context<'a>(user: &'a str, operation: &'a str, resource: String) -> AuditContext<'a> {
    AuditContext { source: AuditSource::Command { operation, resource, operator: user }, request: String::new() }
}
