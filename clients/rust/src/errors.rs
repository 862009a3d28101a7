//! A summary of errors on one line.

use std::fmt;

use progenitor_client::{Error, ResponseValue};
use reqwest::header::HeaderMap;
use reqwest::{Response, StatusCode, Url};

use crate::retries::ReceivedResponse;
use crate::types;

/// Removes the path from the address in an error.
pub(crate) fn without_path(mut error: reqwest::Error) -> reqwest::Error {
    if let Some(url) = error.url_mut() {
        *url = server_of(url);
    }
    error
}

/// Returns an address without its path, which may contain a code or a secret URI that must not be logged.
pub(crate) fn server_of(url: &Url) -> Url {
    let mut server = url.clone();
    server.set_path("");
    server.set_query(None);
    server
}

/// Returns the error of an error response: [`Error::UnexpectedResponse`] if it is not one of this API, such as that of a load balancer.
pub(crate) async fn read_error(response: Response) -> Error<types::Error> {
    let (url, status, headers) = (response.url().clone(), response.status(), response.headers().clone());
    match response.bytes().await {
        Ok(body) => match serde_json::from_slice(&body) {
            Ok(error) => Error::ErrorResponse(ResponseValue::new(error, status, headers)),
            Err(_) => Error::UnexpectedResponse(ReceivedResponse::Complete { url, status, headers, body }.into()),
        },
        Err(error) => Error::ResponseBodyError(error),
    }
}

/// The error of an operation, with the facts that a report needs.
///
/// Its text has one line: `403 resource.not-yours: You are restricted from accessing this resource. (request 3f0c1f6e-…)`.
#[derive(Debug)]
pub struct ApiError {
    status: Option<StatusCode>,
    code: Option<types::ErrorCode>,
    fields: Vec<types::FieldProblem>,
    refused: Vec<types::RefusedTicket>,
    request_id: Option<String>,
    text: String,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl ApiError {
    /// Returns the status of the response; `None` if there was none.
    pub fn status(&self) -> Option<StatusCode> {
        self.status
    }

    /// Returns the stable code; `None` if the response doesn't have one.
    pub fn code(&self) -> Option<&types::ErrorCode> {
        self.code.as_ref()
    }

    /// Returns the missing and invalid arguments.
    pub fn fields(&self) -> &[types::FieldProblem] {
        &self.fields
    }

    /// Returns the tickets that were not admitted, with the reasons.
    pub fn refused(&self) -> &[types::RefusedTicket] {
        &self.refused
    }

    /// Returns the request's identifier, by which the server's log names the request; `None` if there was no response.
    pub fn request_id(&self) -> Option<&str> {
        self.request_id.as_deref()
    }
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let facts = [self.status.map(|status| status.as_str().to_owned()), self.code.as_ref().map(ToString::to_string)];
        let facts = facts.into_iter().flatten().collect::<Vec<_>>().join(" ");
        if !facts.is_empty() {
            write!(f, "{facts}: ")?;
        }
        f.write_str(&self.text.split_whitespace().collect::<Vec<_>>().join(" "))?;
        match &self.request_id {
            Some(id) => write!(f, " (request {id})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for ApiError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

impl From<Error<types::Error>> for ApiError {
    fn from(error: Error<types::Error>) -> Self {
        let request_id = |headers: &HeaderMap| Some(headers.get("x-request-id")?.to_str().ok()?.to_owned());
        let other = |status, text: &str, source: Option<reqwest::Error>| Self {
            status,
            code: None,
            fields: Vec::new(),
            refused: Vec::new(),
            request_id: None,
            text: text.to_owned(),
            source: source.map(Into::into),
        };
        match error {
            Error::ErrorResponse(response) => {
                let (status, request_id) = (response.status(), request_id(response.headers()));
                let types::Error { code, error, message, fields, refused, .. } = response.into_inner();
                let text = error.or(message).unwrap_or_default();
                Self {
                    status: Some(status),
                    code: Some(code),
                    fields: fields.unwrap_or_default(),
                    refused: refused.unwrap_or_default(),
                    request_id,
                    text,
                    source: None,
                }
            }
            Error::UnexpectedResponse(response) => Self {
                request_id: request_id(response.headers()),
                ..other(Some(response.status()), "the response is not one of this API", None)
            },
            Error::CommunicationError(error) => other(None, "the request failed", Some(error)),
            Error::ResponseBodyError(error) => other(None, "the response is incomplete", Some(error)),
            Error::InvalidUpgrade(error) => other(None, "the connection can't be upgraded", Some(error)),
            Error::InvalidResponsePayload(_, error) => {
                Self { source: Some(error.into()), ..other(None, "the response doesn't conform to the contract", None) }
            }
            Error::InvalidRequest(text) => other(None, &format!("the request is invalid: {text}"), None),
            Error::Custom(text) => other(None, &text, None),
        }
    }
}
