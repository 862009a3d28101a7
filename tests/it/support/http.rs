//! Plain HTTP, for what the client is too well-behaved to send.

use std::net::SocketAddr;

use reqwest::Method;
use reqwest::header::HeaderMap;
use serde_json::Value;

use super::World;

/// A request in the making, with the version of the API and the public key unless it is told otherwise.
pub struct Request {
    request: reqwest::RequestBuilder,
    key: Option<String>,
    version: Option<String>,
}

/// What was answered.
#[derive(Debug)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    /// The body as JSON; null where it is empty or something else.
    pub body: Value,
}

impl World {
    /// A request for a path.
    pub fn request(&self, method: &str, path: &str) -> Request {
        Request {
            request: self.http.request(Method::from_bytes(method.as_bytes()).unwrap(), format!("{}{path}", self.address)),
            key: Some(self.public_key.clone()),
            version: Some("3.0.0".to_owned()),
        }
    }
}

impl Request {
    /// To the server at this address.
    pub fn at(mut self, address: SocketAddr) -> Self {
        let (client, request) = self.request.build_split();
        let mut request = request.unwrap();
        request.url_mut().set_ip_host(address.ip()).unwrap();
        request.url_mut().set_port(Some(address.port())).unwrap();
        self.request = reqwest::RequestBuilder::from_parts(client, request);
        self
    }

    /// With this key.
    pub fn key(mut self, key: &str) -> Self {
        self.key = Some(key.to_owned());
        self
    }

    /// Without a key.
    pub fn no_key(mut self) -> Self {
        self.key = None;
        self
    }

    /// With this client version, or none.
    pub fn version(mut self, version: Option<&str>) -> Self {
        self.version = version.map(str::to_owned);
        self
    }

    /// With a header.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.request = self.request.header(name, value);
        self
    }

    /// With a JSON body.
    pub fn json(mut self, body: &Value) -> Self {
        self.request = self.request.json(body);
        self
    }

    /// With any body.
    pub fn body(mut self, body: impl Into<reqwest::Body>) -> Self {
        self.request = self.request.body(body);
        self
    }

    /// Sends it.
    pub async fn send(self) -> Answer {
        let mut request = self.request;
        if let Some(key) = self.key {
            request = request.header("X-API-Key", key);
        }
        if let Some(version) = self.version {
            request = request.header("X-Client-Version", version);
        }
        let response = request.send().await.unwrap();
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let bytes = response.bytes().await.unwrap();
        Answer { status, headers, body: serde_json::from_slice(&bytes).unwrap_or_default() }
    }
}

impl Answer {
    /// The error's stable code.
    pub fn code(&self) -> &str {
        self.body["code"].as_str().unwrap_or_default()
    }

    /// A header's text.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    /// The names of the arguments that a 400 complains of, with `-` before the missing ones.
    pub fn complaints(&self) -> Vec<String> {
        let fields = self.body["fields"].as_array().cloned().unwrap_or_default();
        let name = |field: &Value| {
            let sign = if field["problem"] == "missing" { "-" } else { "" };
            format!("{sign}{}", field["name"].as_str().unwrap_or_default())
        };
        fields.iter().map(name).collect()
    }
}

/// The status and the code of a refusal, such as `(409, "section.sold-out")`.
pub fn refusal(answer: &Answer) -> (u16, &str) {
    (answer.status, answer.code())
}

/// The status and the code of a refusal, as the client gives it.
pub trait Refusal {
    /// Such as `(409, "section.sold-out")`.
    fn refusal(self) -> (u16, String);
}

impl<T: std::fmt::Debug> Refusal for Result<T, boxoffice_client::Error<boxoffice_client::types::Error>> {
    fn refusal(self) -> (u16, String) {
        match self {
            Err(boxoffice_client::Error::ErrorResponse(response)) => {
                (response.status().as_u16(), response.into_inner().code.to_string())
            }
            other => panic!("expected a refusal, got {other:?}"),
        }
    }
}
