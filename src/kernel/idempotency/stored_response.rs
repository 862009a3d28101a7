//! An answer that is kept, and the seal under which it is.

use aws_lc_rs::aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use aws_lc_rs::error::Unspecified;
use aws_lc_rs::hkdf::{HKDF_SHA256, Salt};
use aws_lc_rs::hmac::{self, HMAC_SHA256};
use boxoffice_http::error::{Error, Result};
use boxoffice_http::{ApiError, etag};
use dropshot::Body;
use http::{HeaderName, HeaderValue, Response, StatusCode, header};
use serde::{Deserialize, Serialize};

use crate::kernel::types::secret;

/// Marks an answer that was given before.
const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

/// An answer as it is kept. Every POST is answered with JSON, so its body is text.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct StoredResponse {
    status: u16,
    headers: Vec<(String, String)>,
    body: String,
}

impl StoredResponse {
    /// What was answered; gives the response back whole.
    pub async fn of(response: Response<Body>) -> Result<(Self, Response<Body>)> {
        let (head, body) = response.into_parts();
        let bytes = etag::collect_body(body).await?;
        let headers = head.headers.iter().filter_map(|(name, value)| Some((name.to_string(), value.to_str().ok()?.to_owned())));
        let answer = Self { status: head.status.as_u16(), headers: headers.collect(), body: text(bytes.to_vec())? };
        Ok((answer, Response::from_parts(head, Body::from(bytes))))
    }

    /// What is answered to a refused request.
    pub fn from_error(failure: &ApiError) -> Result<Self> {
        let body = failure.body().map_err(|error| Error::Internal(error.into()))?;
        let headers = vec![(header::CONTENT_TYPE.to_string(), "application/json".to_owned())];
        Ok(Self { status: failure.status().as_u16(), headers, body: text(body)? })
    }

    /// The answer once more, marked as such.
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

/// Encrypts answers, which may show a key that is shown once, with AES-256-GCM, and takes the fingerprints of requests, which may
/// hold a password, with HMAC-SHA-256: under two keys that are derived from two things which the server keeps nowhere, the caller's
/// API key and the `Idempotency-Key`. Whoever reads the database reads no answer, and can't try out what a request said.
pub struct ResponseCipher {
    answers: RandomizedNonceKey,
    requests: hmac::Key,
}

impl ResponseCipher {
    /// The seal of a caller and an `Idempotency-Key`.
    pub fn new(api_key: &str, idempotency_key: &str) -> Result<Self> {
        let derive = || {
            let mut key = [0; 32];
            let secret = Salt::new(HKDF_SHA256, idempotency_key.as_bytes()).extract(api_key.as_bytes());
            secret.expand(&[b"boxoffice: answer"], HKDF_SHA256)?.fill(&mut key)?;
            let requests = secret.expand(&[b"boxoffice: request"], HMAC_SHA256)?.into();
            Ok(Self { answers: RandomizedNonceKey::new(&AES_256_GCM, &key)?, requests })
        };
        derive().map_err(crypto_error)
    }

    /// By what a request of these parts is known again, in hexadecimal.
    pub fn fingerprint(&self, parts: &[&[u8]]) -> String {
        let mut fingerprint = hmac::Context::with_key(&self.requests);
        for part in parts {
            fingerprint.update(&part.len().to_be_bytes());
            fingerprint.update(part);
        }
        secret::hex(fingerprint.sign().as_ref())
    }

    /// An answer, encrypted: the nonce and what it was sealed to. It can be opened for the same request alone.
    pub fn encrypt(&self, answer: &StoredResponse, fingerprint: &str) -> Result<Vec<u8>> {
        let mut bytes = serde_json::to_vec(answer).map_err(|error| Error::Internal(error.into()))?;
        let nonce = self.answers.seal_in_place_append_tag(Aad::from(fingerprint), &mut bytes).map_err(crypto_error)?;
        Ok([nonce.as_ref(), bytes.as_slice()].concat())
    }

    /// The answer that was encrypted.
    pub fn decrypt(&self, sealed: &[u8], fingerprint: &str) -> Result<StoredResponse> {
        let (nonce, sealed) = sealed.split_at_checked(NONCE_LEN).ok_or_else(|| crypto_error(Unspecified))?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(crypto_error)?;
        let mut bytes = sealed.to_vec();
        let bytes = self.answers.open_in_place(nonce, Aad::from(fingerprint), &mut bytes).map_err(crypto_error)?;
        serde_json::from_slice(bytes).map_err(|error| Error::Internal(error.into()))
    }
}

fn crypto_error(_: Unspecified) -> Error {
    Error::Internal(anyhow::anyhow!("a kept answer can't be sealed or opened"))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_opened_by_who_sealed_it_alone() {
        let answer = StoredResponse { status: 201, headers: vec![], body: r#"{"key":"secret"}"#.to_owned() };
        let sealed = ResponseCipher::new("api", "once").unwrap().encrypt(&answer, "request").unwrap();

        assert!(!String::from_utf8_lossy(&sealed).contains("secret"));
        assert_eq!(ResponseCipher::new("api", "once").unwrap().decrypt(&sealed, "request").unwrap().body, answer.body);
        for (api, once, request) in [("other", "once", "request"), ("api", "twice", "request"), ("api", "once", "another")] {
            assert!(ResponseCipher::new(api, once).unwrap().decrypt(&sealed, request).is_err());
        }
        assert!(ResponseCipher::new("api", "once").unwrap().decrypt(&sealed[..5], "request").is_err());
    }

    #[test]
    fn a_request_is_known_again_by_who_sent_it_alone() {
        let fingerprint = |api, once, parts: &[&[u8]]| ResponseCipher::new(api, once).unwrap().fingerprint(parts);

        let first = fingerprint("api", "once", &[b"POST", b"/zones"]);

        assert_eq!(first, fingerprint("api", "once", &[b"POST", b"/zones"]));
        for (api, once) in [("other", "once"), ("api", "twice")] {
            assert_ne!(first, fingerprint(api, once, &[b"POST", b"/zones"]));
        }
        assert_ne!(first, fingerprint("api", "once", &[b"POST/", b"zones"]));
    }
}
