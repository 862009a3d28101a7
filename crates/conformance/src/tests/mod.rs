//! Comparisons of small servers with documents that are not the platform's.

mod alternatives;
mod counters;
mod effects;
mod forms;
mod lists;
mod nested;
mod notes;
mod persistence_formats;
mod reads;
mod redirects;
mod reports;
mod required_headers;
mod taken_texts;
mod tasks;
mod tolerance;
mod undeclared_statuses;

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;

use boxoffice_openapi::{Contract, Operation, RouteError};
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::comparison::{BuiltinServer, Comparison};
use crate::model::{Finding, Report};
use crate::options::select_operations;
use crate::target::Target;

/// Starts a server that answers each request by a function, until the test ends. Returns its address.
pub async fn start<A>(answer: A) -> String
where
    A: Fn(&Request<Bytes>) -> Response<String> + Send + Sync + 'static,
{
    let (listener, answer) = (TcpListener::bind("127.0.0.1:0").await.unwrap(), Arc::new(answer));
    let address = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let answer = Arc::clone(&answer);
            let service = service_fn(move |request: Request<Incoming>| {
                let answer = Arc::clone(&answer);
                async move {
                    let (head, body) = request.into_parts();
                    let body = body.collect().await.unwrap().to_bytes();
                    let response = answer(&Request::from_parts(head, body));
                    Ok::<_, Infallible>(response.map(|body| Full::new(Bytes::from(body))))
                }
            });
            tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(client), service));
        }
    });
    address
}

/// Builds a document with these paths.
pub fn document(title: &str, paths: Value) -> Value {
    json!({ "openapi": "3.0.3", "info": { "title": title, "version": "1" }, "paths": paths })
}

/// Builds a document of a collection and its resources, with these of the operations `list`, `create`, `read`, `replace` and `remove`.
/// The identifiers are those of a [`Store`].
pub fn crud_document(collection: &str, operations: &[&str], schema: &Value, example: Value) -> Value {
    let (answer, error, body) = (json_answer(schema), error(), json_body(schema, example));
    let list = json_answer(&json!({ "type": "array", "items": schema }));
    let resource = format!("{collection}/{{id}}");
    let identifier = variable("id", json!({ "type": "integer", "minimum": 1 }));
    let mut paths = json!({ collection: {}, &resource: { "parameters": identifier } });
    let mut unknown = operations.to_vec();
    for (id, path, method, operation) in [
        ("list", collection, "get", json!({ "responses": { "200": list } })),
        ("create", collection, "post", json!({ "requestBody": body, "responses": { "201": answer, "400": error } })),
        ("read", &resource, "get", json!({ "responses": { "200": answer, "400": error, "404": error } })),
        ("replace", &resource, "put", json!({ "requestBody": body, "responses": { "200": answer, "400": error, "404": error } })),
        ("remove", &resource, "delete", json!({ "responses": { "204": { "description": "" }, "400": error, "404": error } })),
    ] {
        if operations.contains(&id) {
            paths[path][method] = operation;
            paths[path][method]["operationId"] = json!(id);
            unknown.retain(|operation| *operation != id);
        }
    }
    assert!(unknown.is_empty(), "unknown operations: {unknown:?}");
    document(collection.trim_start_matches('/'), paths)
}

/// Declares a response with a JSON body.
pub fn json_answer(schema: &Value) -> Value {
    json!({ "description": "", "content": { "application/json": { "schema": schema } } })
}

/// Declares a response with any JSON object.
pub fn error() -> Value {
    json_answer(&json!({ "type": "object" }))
}

/// Declares a required JSON body.
pub fn json_body(schema: &Value, example: Value) -> Value {
    json!({ "required": true, "content": { "application/json": { "schema": schema, "example": example } } })
}

/// Declares the parameters of a path with one variable.
pub fn variable(name: &str, schema: Value) -> Value {
    json!([{ "name": name, "in": "path", "required": true, "schema": schema }])
}

/// Prepares a comparison of a server with a document.
pub async fn comparison(document: Value, key: Option<&str>, address: &str) -> Comparison {
    let contract = || Contract::new(document.clone()).unwrap();
    let target = Target::connect(address, key).await.unwrap();
    let selected = select_operations(&contract(), &[], &[]).unwrap();
    Comparison::new(contract(), target, None, 1, selected, BuiltinServer::default())
}

/// Compares a server that answers each request by a function with its document.
pub async fn compare(document: Value, answer: impl Fn(&Request<Bytes>) -> Response<String> + Send + Sync + 'static) -> Report {
    let address = start(answer).await;
    comparison(document, None, &address).await.run(|_| ()).await
}

/// Compares a server that has a state with its document.
pub async fn compare_stateful<S: Send + 'static>(
    document: Value,
    state: S,
    answer: impl Fn(&Contract, &mut S, &Request<Bytes>) -> Response<String> + Send + Sync + 'static,
) -> Report {
    let (contract, state) = (Contract::new(document.clone()).unwrap(), Mutex::new(state));
    compare(document, move |request| answer(&contract, &mut state.lock(), request)).await
}

/// Returns the operation, the check and the summary of each finding.
pub fn findings(report: &Report) -> Vec<String> {
    let text = |finding: &Finding| format!("{} {}: {}", finding.operation, finding.check.name(), finding.summary);
    report.findings.iter().map(text).collect()
}

/// Returns a JSON response.
pub fn json_response(status: u16, body: &Value) -> Response<String> {
    let mut response = response(status, body.to_string());
    response.headers_mut().insert("content-type", "application/json".parse().unwrap());
    response
}

/// Returns a response without headers.
pub fn response(status: u16, body: String) -> Response<String> {
    let mut response = Response::new(body);
    *response.status_mut() = status.try_into().unwrap();
    response
}

/// Returns the response to a request for a path or a method that the document doesn't have.
pub fn unrouted(error: RouteError) -> Response<String> {
    let RouteError::MethodNotAllowed(methods) = error else { return json_response(404, &json!({})) };
    let mut response = json_response(405, &json!({}));
    let methods: Vec<_> = methods.into_iter().collect();
    response.headers_mut().insert("allow", methods.join(", ").parse().unwrap());
    response
}

/// Returns the response to a request that the document doesn't allow: 404, 405 or 400.
pub fn rejection(contract: &Contract, request: &Request<Bytes>) -> Option<Response<String>> {
    match contract.find(request.method().as_str(), request.uri().path()) {
        Ok(operation) => (!is_valid(operation, request)).then(|| json_response(400, &json!({}))),
        Err(error) => Some(unrouted(error)),
    }
}

/// Returns whether an operation allows a request.
pub fn is_valid(operation: &Operation, request: &Request<Bytes>) -> bool {
    operation.check(request.uri().path(), request.uri().query(), request.headers(), request.body()).is_ok()
}

/// Returns the JSON body of a request; null if it has none.
pub fn sent(request: &Request<Bytes>) -> Value {
    serde_json::from_slice(request.body()).unwrap_or_default()
}

/// Returns the identifier at the end of a path.
pub fn id_in(request: &Request<Bytes>) -> Option<u64> {
    request.uri().path().rsplit('/').next()?.parse().ok()
}

/// The resources of a server, by identifier.
#[derive(Default)]
pub struct Store {
    pub resources: BTreeMap<u64, Value>,
    /// The highest identifier that a resource has had.
    last_id: u64,
}

impl Store {
    /// Answers a valid request for the collection or one of its resources.
    pub fn respond(&mut self, request: &Request<Bytes>) -> Response<String> {
        match (request.method().as_str(), id_in(request)) {
            ("POST", _) => self.create(sent(request)),
            (_, None) => json_response(200, &self.resources.values().cloned().collect()),
            (_, Some(id)) if !self.resources.contains_key(&id) => json_response(404, &json!({})),
            ("PUT", Some(id)) => self.replace(id, sent(request)),
            ("DELETE", Some(id)) => {
                self.resources.remove(&id);
                response(204, String::new())
            }
            (_, Some(id)) => json_response(200, &self.resources[&id]),
        }
    }

    /// Adds a resource, and returns the response to its creation.
    pub fn create(&mut self, body: Value) -> Response<String> {
        self.last_id += 1;
        let mut response = self.replace(self.last_id, body);
        *response.status_mut() = StatusCode::CREATED;
        response
    }

    fn replace(&mut self, id: u64, mut body: Value) -> Response<String> {
        body["id"] = json!(id);
        let response = json_response(200, &body);
        self.resources.insert(id, body);
        response
    }
}
