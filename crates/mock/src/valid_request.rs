//! Valid requests and their responses.

use boxoffice_http::ApiError;
use boxoffice_http::error::{Error, FieldError};
use boxoffice_openapi::{Contract, Operation, ParsedRequest};
use dropshot::Body;
use http::request::Parts;
use http::{Response, StatusCode, header};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use sha2::{Digest, Sha256};
use slog::error;

use crate::Mock;
use crate::callbacks::server_url;
use crate::prefer_header::{PREFER, PREFERENCE_APPLIED, PreferHeader};
use crate::rejection::Rejection;
use crate::responses::{OperationResponses, RenderContext, SelectedResponse, SelectionError};
use crate::state::{MockBody, MockRequest};

/// A request that conforms to the document.
pub struct ValidRequest<'a> {
    pub contract: &'a Contract,
    pub operation: &'a Operation,
    pub prefer: Option<&'a PreferHeader>,
    pub head: &'a Parts,
    pub arguments: &'a ParsedRequest,
}

impl ValidRequest<'_> {
    /// Returns the server's path prefix and the path after it.
    fn split_path(&self) -> (&str, &str) {
        let path = self.contract.without_prefix(self.head.uri.path());
        (self.head.uri.path().strip_suffix(path).unwrap_or_default(), path)
    }

    /// Returns the media types that the client accepts. The platform sends JSON to every client.
    fn accept(&self) -> Option<String> {
        let accept = self.head.headers.get_all(header::ACCEPT).iter().filter_map(|line| line.to_str().ok());
        let accept: Vec<_> = accept.filter(|_| !self.operation.is_builtin).collect();
        (!accept.is_empty()).then(|| accept.join(","))
    }

    /// Returns the request's own seed, so that different requests get different data. The server's path prefix has no influence.
    fn seed(&self, mock_seed: u64) -> u64 {
        let mut hash = Sha256::new();
        hash.update(mock_seed.to_be_bytes());
        hash.update(self.head.method.as_str());
        hash.update(self.split_path().1);
        hash.update(self.head.uri.query().map(|query| format!("?{query}")).unwrap_or_default());
        if !self.arguments.body.is_null() {
            hash.update(self.arguments.body.to_string());
        }
        hash.finalize().iter().take(8).fold(0, |seed, byte| seed << 8 | u64::from(*byte))
    }
}

impl Mock {
    /// Returns a response from the stored resources, or else from the document.
    ///
    /// # Errors
    /// Returns the platform's error if the request is rejected and the document declares no other response.
    pub fn build_response(&self, request: &ValidRequest<'_>) -> Result<Response<Body>, ApiError> {
        let response = self.select(request).and_then(|selected| self.render(request, &selected));
        response.or_else(|rejection| self.respond_rejected(request.contract, request.operation, rejection))
    }

    /// Selects the response by the `Prefer` and `Accept` headers.
    fn select<'a>(&'a self, request: &ValidRequest<'a>) -> Result<SelectedResponse<'a>, Rejection> {
        let ValidRequest { operation, prefer, .. } = *request;
        let Some(responses) = self.responses_of(operation).filter(|_| !operation.responses.is_empty()) else {
            let reason = format!("The document declares no response of {} {}.", operation.method, operation.path);
            return Err(Rejection::Mock { status: StatusCode::NOT_IMPLEMENTED, code: "response.undeclared", reason });
        };
        let mut errors = prefer.map(|prefer| prefer.errors.clone()).unwrap_or_default();
        match responses.select(operation, prefer, request.accept().as_deref()) {
            Ok(selected) if errors.is_empty() => return Ok(selected),
            Ok(_) => {}
            Err(SelectionError::UnknownPreference(detail)) => errors.push(FieldError::invalid(PREFER, detail)),
            Err(SelectionError::NotAcceptable(types)) => {
                let reason = format!("The response has none of the accepted media types. Accept one of: {types}.");
                return Err(Rejection::Mock { status: StatusCode::NOT_ACCEPTABLE, code: "media-type.not-acceptable", reason });
            }
            Err(SelectionError::XmlNotGenerated) => {
                let reason = "The mock generates no XML. Add an example as text to the document, or accept JSON.".to_owned();
                return Err(Rejection::Mock { status: StatusCode::NOT_IMPLEMENTED, code: "xml.not-generated", reason });
            }
        }
        Err(ApiError::from(Error::Invalid(errors)).into())
    }

    /// Renders the selected response.
    fn render(&self, request: &ValidRequest<'_>, selected: &SelectedResponse<'_>) -> Result<Response<Body>, Rejection> {
        let ValidRequest { contract, operation, prefer, .. } = *request;
        let context = self.render_context(contract);
        let stored = self.stored_body(request, selected, &context)?;
        let rendered = match &stored {
            Some(stored) => selected.render_body(&context, &stored.value, &self.locations(request, stored)),
            None => {
                let is_dynamic = prefer.is_some_and(|prefer| prefer.is_dynamic);
                selected.render(&context, is_dynamic, || request.seed(self.settings.seed))
            }
        };
        let mut response = rendered.map_err(|error| {
            let reason = format!("The response can't be generated: {error:#}");
            error!(self.log, "response not generated"; "operation" => &operation.id, "cause" => &reason);
            Rejection::Mock { status: StatusCode::INTERNAL_SERVER_ERROR, code: "response.not-generated", reason }
        })?;
        if let Some(numbers) = stored.and_then(|stored| stored.numbers) {
            for (name, value) in response.headers_mut().iter_mut() {
                if let Some(number) = numbers.of_header(name.as_str()) {
                    *value = number.into();
                }
            }
        }
        let applied = prefer.and_then(PreferHeader::applied);
        response.headers_mut().extend(applied.map(|applied| (PREFERENCE_APPLIED, applied)));
        Ok(response)
    }

    /// Executes the request on the stored resources. Returns `None` if it doesn't concern them, or the client selects a response.
    fn stored_body(
        &self,
        request: &ValidRequest<'_>,
        selected: &SelectedResponse<'_>,
        context: &RenderContext<'_>,
    ) -> Result<Option<MockBody>, Rejection> {
        let ValidRequest { operation, prefer, arguments, .. } = *request;
        let selects = prefer.is_some_and(PreferHeader::selects_response);
        let Some(store) = self.store.as_ref().filter(|_| !selects) else { return Ok(None) };
        let (prefix, path) = request.split_path();
        let seed = request.seed(self.settings.seed);
        let request = MockRequest { operation, path, prefix, arguments, selected, context, seed };
        store.execute(&request).map_err(|error| ApiError::from(error).into())
    }

    /// Returns the URIs of a stored resource: without the mock's address, and with it, as the document may demand an absolute URI.
    fn locations(&self, request: &ValidRequest<'_>, stored: &MockBody) -> Vec<String> {
        let (prefix, _) = request.split_path();
        let path = stored.location.as_ref().map(|path| format!("{prefix}{}", percent_encode(path)));
        let Some(path) = stored.value["self"].as_str().map(str::to_owned).or(path) else { return Vec::new() };
        let url = server_url(self.scheme, request.head) + &path;
        vec![path, url]
    }

    pub fn responses_of(&self, operation: &Operation) -> Option<&OperationResponses> {
        self.responses.get(&operation.pointer)
    }

    pub fn render_context<'a>(&'a self, contract: &'a Contract) -> RenderContext<'a> {
        RenderContext { contract, seed: self.settings.seed, log: &self.log, generated: &self.generated }
    }
}

/// Returns a path of the store as the path of a URI. The store's paths are percent-decoded, except for `%2F`.
fn percent_encode(path: &str) -> String {
    // The percent sign, and the characters that RFC 3986 does not allow in a path.
    const RESERVED: &AsciiSet = &CONTROLS.add(b' ').add(b'"').add(b'#').add(b'%').add(b'<').add(b'>').add(b'?').add(b'[');
    const RESERVED_IN_PATH: &AsciiSet = &RESERVED.add(b'\\').add(b']').add(b'^').add(b'`').add(b'{').add(b'|').add(b'}');
    utf8_percent_encode(path, RESERVED_IN_PATH).to_string().replace("%252F", "%2F")
}
