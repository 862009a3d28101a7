//! Responses to rejected requests: the platform's errors, or those of the document.

use boxoffice_http::ApiError;
use boxoffice_openapi::{Contract, Operation};
use dropshot::Body;
use http::{HeaderName, HeaderValue, Response, StatusCode, header};
use serde_json::json;
use slog::info;

use crate::Mock;
use crate::prefer_header::PreferHeader;

/// Reason of a rejection, for documents whose errors have no place for it.
const MOCK_REFUSAL: HeaderName = HeaderName::from_static("x-mock-refusal");

/// A rejection of a request.
pub enum Rejection {
    /// An error of the platform.
    Platform(ApiError),
    /// An error of the mock. The reason is for the client and the log.
    Mock { status: StatusCode, code: &'static str, reason: String },
}

impl Rejection {
    fn status(&self) -> StatusCode {
        match self {
            Self::Platform(error) => error.status(),
            Self::Mock { status, .. } => *status,
        }
    }

    fn reason(&self) -> String {
        match self {
            Self::Platform(error) => error.to_string(),
            Self::Mock { reason, .. } => reason.clone(),
        }
    }

    /// Returns the JSON body that the platform has for it.
    fn body(&self) -> Vec<u8> {
        match self {
            Self::Platform(error) => error.body().unwrap_or_default(),
            Self::Mock { code, reason, .. } => json!({ "message": reason, "code": code }).to_string().into_bytes(),
        }
    }
}

impl From<ApiError> for Rejection {
    fn from(error: ApiError) -> Self {
        Self::Platform(error)
    }
}

impl Mock {
    /// Returns the response to a rejected request: the platform's error, unless the document declares another status or errors of
    /// another shape.
    ///
    /// # Errors
    /// Returns the platform's error if the rejection is one and it fits.
    pub fn respond_rejected(
        &self,
        contract: &Contract,
        operation: &Operation,
        rejection: Rejection,
    ) -> Result<Response<Body>, ApiError> {
        match (self.declared_rejection(contract, operation, &rejection), rejection) {
            (Some(response), _) => Ok(response),
            (None, Rejection::Platform(error)) => Err(error),
            (None, rejection) => Ok(platform_error(rejection.status(), rejection.body())),
        }
    }

    /// Returns the response to a request that fails by a rule.
    pub fn respond_fault(
        &self,
        contract: &Contract,
        operation: &Operation,
        status: StatusCode,
    ) -> Result<Response<Body>, ApiError> {
        let reason = "The request fails by a rule of the mock.".to_owned();
        let fault = Rejection::Mock { status, code: "mock.fault", reason };
        let mut response = match operation.response_for(status.as_u16()) {
            Some(_) => self.respond_rejected(contract, operation, fault)?,
            None => platform_error(status, fault.body()),
        };
        if matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) {
            response.headers_mut().entry(header::RETRY_AFTER).or_insert(HeaderValue::from_static("1"));
        }
        Ok(response)
    }

    /// Returns the response that the document declares for a rejection; `None` if the platform's own error fits. An error of another
    /// shape may have no place for the reason, which is therefore also sent in a header and logged.
    fn declared_rejection(&self, contract: &Contract, operation: &Operation, rejection: &Rejection) -> Option<Response<Body>> {
        let (status, body) = (declared_status(operation, rejection.status()), rejection.body());
        let spec = operation.response_for(status.as_u16())?;
        let headers = [(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))].into_iter().collect();
        if spec.violations(&headers, &body).is_empty() {
            return (status != rejection.status()).then(|| platform_error(status, body));
        }
        let prefer = PreferHeader { code: Some(status.as_u16()), ..PreferHeader::default() };
        let selected = self.responses_of(operation)?.select(operation, Some(&prefer), None).ok()?;
        let reason = rejection.reason();
        info!(self.log, "request rejected"; "operation" => &operation.id, "status" => status.as_u16(), "reason" => &reason);
        // If the body can't be generated, the platform's error is better than a 500.
        let mut response = selected.render_error(&self.render_context(contract), &reason, self.settings.seed).ok()?;
        response.headers_mut().extend(HeaderValue::try_from(&reason).ok().map(|reason| (MOCK_REFUSAL, reason)));
        Some(response)
    }
}

/// Returns the status of a rejection: 422 for invalid arguments if the document declares it and not 400.
fn declared_status(operation: &Operation, status: StatusCode) -> StatusCode {
    let is_declared = |status: StatusCode| operation.statuses.contains(&status.as_u16());
    let is_422 = status == StatusCode::BAD_REQUEST && !is_declared(status) && is_declared(StatusCode::UNPROCESSABLE_ENTITY);
    if is_422 { StatusCode::UNPROCESSABLE_ENTITY } else { status }
}

/// Returns an error response with the platform's JSON body.
fn platform_error(status: StatusCode, body: Vec<u8>) -> Response<Body> {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
