//! Stored responses and their encryption.

use aws_lc_rs::aead::{AES_256_GCM, RandomizedNonceKey};
use aws_lc_rs::error::Unspecified;
use aws_lc_rs::hkdf::{HKDF_SHA256, Salt};
use aws_lc_rs::hmac::{self, HMAC_SHA256};
use boxoffice_http::error::{Error, Result};
use boxoffice_http::{ApiError, etag};
use dropshot::Body;
use http::{HeaderName, HeaderValue, Response, StatusCode, header};
use serde::{Deserialize, Serialize};

use crate::kernel::aead;
use crate::kernel::types::secret;

/// Response header of a replayed response.
const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

/// A stored response. Its body is text, because responses of POST and PATCH are JSON.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct StoredResponse {
    status: u16,
    headers: Vec<(String, String)>,
    body: String,
}

impl StoredResponse {
    /// Returns a response in the form in which it is stored, and the response itself.
    pub async fn of(response: Response<Body>) -> Result<(Self, Response<Body>)> {
        let (head, body) = response.into_parts();
        let bytes = etag::collect_body(body).await?;
        let headers = head.headers.iter().filter_map(|(name, value)| Some((name.to_string(), value.to_str().ok()?.to_owned())));
        let stored = Self { status: head.status.as_u16(), headers: headers.collect(), body: text(bytes.to_vec())? };
        Ok((stored, Response::from_parts(head, Body::from(bytes))))
    }

    /// Creates the response of a rejected request.
    pub fn from_error(error: &ApiError) -> Result<Self> {
        let body = error.body().map_err(|error| Error::Internal(error.into()))?;
        let headers = vec![(header::CONTENT_TYPE.to_string(), "application/json".to_owned())];
        Ok(Self { status: error.status().as_u16(), headers, body: text(body)? })
    }

    /// Returns the response again, marked as a replay.
    pub fn replay(self) -> Result<Response<Body>> {
        let mut response = Response::new(Body::from(self.body));
        *response.status_mut() = StatusCode::from_u16(self.status).map_err(|error| Error::Internal(error.into()))?;
        for (name, value) in self.headers {
            let name = HeaderName::try_from(name).map_err(|error| Error::Internal(error.into()))?;
            response.headers_mut().append(name, HeaderValue::try_from(value).map_err(|error| Error::Internal(error.into()))?);
        }
        response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
        Ok(response)
    }
}

fn text(bytes: Vec<u8>) -> Result<String> {
    String::from_utf8(bytes).map_err(|error| Error::Internal(error.into()))
}

/// Encrypts responses with AES-256-GCM and computes the fingerprints of requests with HMAC-SHA-256. A response may contain a key
/// that is shown only once, and a request may contain a password.
///
/// Both keys are derived from two values that the server stores nowhere: the caller's API key and the `Idempotency-Key`. So the
/// content of the database is not enough to decrypt a response, or to guess the content of a request.
pub struct ResponseCipher {
    response_key: RandomizedNonceKey,
    request_key: hmac::Key,
}

impl ResponseCipher {
    /// Creates the cipher of a caller and an `Idempotency-Key`.
    pub fn new(api_key: &str, idempotency_key: &str) -> Result<Self> {
        let derive = || {
            let mut key = [0; 32];
            let secret = Salt::new(HKDF_SHA256, idempotency_key.as_bytes()).extract(api_key.as_bytes());
            secret.expand(&[b"boxoffice: answer"], HKDF_SHA256)?.fill(&mut key)?;
            let request_key = secret.expand(&[b"boxoffice: request"], HMAC_SHA256)?.into();
            Ok(Self { response_key: RandomizedNonceKey::new(&AES_256_GCM, &key)?, request_key })
        };
        derive().map_err(crypto_error)
    }

    /// Returns the fingerprint of a request with these parts, in hexadecimal.
    pub fn fingerprint(&self, parts: &[&[u8]]) -> String {
        let mut fingerprint = hmac::Context::with_key(&self.request_key);
        for part in parts {
            fingerprint.update(&part.len().to_be_bytes());
            fingerprint.update(part);
        }
        secret::hex(fingerprint.sign().as_ref())
    }

    /// Encrypts a response. It can only be decrypted with the same fingerprint.
    pub fn encrypt(&self, response: &StoredResponse, fingerprint: &str) -> Result<Vec<u8>> {
        let json = serde_json::to_vec(response).map_err(|error| Error::Internal(error.into()))?;
        aead::seal(&self.response_key, fingerprint, json).map_err(crypto_error)
    }

    /// Decrypts a response.
    pub fn decrypt(&self, encrypted: &[u8], fingerprint: &str) -> Result<StoredResponse> {
        let json = aead::open(&self.response_key, fingerprint, encrypted).map_err(crypto_error)?;
        serde_json::from_slice(&json).map_err(|error| Error::Internal(error.into()))
    }
}

fn crypto_error(_: Unspecified) -> Error {
    Error::Internal(anyhow::anyhow!("a stored response can't be encrypted or decrypted"))
}
