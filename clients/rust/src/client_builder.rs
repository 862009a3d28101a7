//! Creation of clients.

use std::fmt;

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::redirect::Policy;
use reqwest::{Certificate, Proxy};

use crate::{Client, ConnectError, RetryPolicy, VERSION};

/// Settings of a client. The address and the key are always needed; the version is that of the client unless set.
///
/// ```no_run
/// # fn example(authority: &[u8]) -> Result<(), Box<dyn std::error::Error>> {
/// use boxoffice_client::{ClientBuilder, RetryPolicy, reqwest};
///
/// let client = ClientBuilder::new("https://tickets.example.com", "the key")
///     .proxy(reqwest::Proxy::all("http://proxy.example.com:3128")?)
///     .root_certificate(reqwest::Certificate::from_pem(authority)?)
///     .retries(RetryPolicy::NONE)
///     .build()?;
/// # Ok(())
/// # }
/// ```
pub struct ClientBuilder {
    address: String,
    key: String,
    version: String,
    proxy: Option<Proxy>,
    root_certificates: Vec<Certificate>,
    retries: RetryPolicy,
}

/// Leaves out the key, and the proxy, which may have a password.
impl fmt::Debug for ClientBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientBuilder").field("address", &self.address).finish_non_exhaustive()
    }
}

impl ClientBuilder {
    /// Creates a builder for the server at `address`, with the key of an application, a session or an admission token.
    #[must_use]
    pub fn new(address: &str, key: &str) -> Self {
        Self {
            address: address.trim_end_matches('/').to_owned(),
            key: key.to_owned(),
            version: VERSION.to_owned(),
            proxy: None,
            root_certificates: Vec::new(),
            retries: RetryPolicy::default(),
        }
    }

    /// Sets the version of the API that the client expects.
    #[must_use]
    pub fn version(mut self, version: &str) -> Self {
        version.clone_into(&mut self.version);
        self
    }

    /// Sends all requests through a proxy. Without one, the proxies of the environment (`HTTPS_PROXY`) are used.
    #[must_use]
    pub fn proxy(mut self, proxy: Proxy) -> Self {
        self.proxy = Some(proxy);
        self
    }

    /// Trusts a certificate authority in addition to those of the operating system. It may be called several times.
    #[must_use]
    pub fn root_certificate(mut self, certificate: Certificate) -> Self {
        self.root_certificates.push(certificate);
        self
    }

    /// Replaces the retry policy.
    #[must_use]
    pub fn retries(mut self, retries: RetryPolicy) -> Self {
        self.retries = retries;
        self
    }

    /// Creates the client. Sends nothing yet.
    ///
    /// # Errors
    /// Returns an error if the key or the version can't be sent, or the HTTP client can't be initialized.
    pub fn build(self) -> Result<Client, ConnectError> {
        self.build_on(reqwest::Client::builder())
    }

    /// Creates the client on the settings of an HTTP client, such as its time limits. Sends nothing yet.
    ///
    /// # Errors
    /// Returns the errors of [`build`](Self::build).
    pub fn build_on(self, http: reqwest::ClientBuilder) -> Result<Client, ConnectError> {
        let header = |text: &str| HeaderValue::from_str(text).map_err(|_| ConnectError::Key);
        let mut key = header(&self.key)?;
        key.set_sensitive(true);
        let headers = HeaderMap::from_iter([
            (HeaderName::from_static("x-api-key"), key),
            (HeaderName::from_static("x-client-version"), header(&self.version)?),
        ]);
        // A redirect to another server would reveal the key to it. The API never redirects.
        let mut http = http.default_headers(headers).redirect(Policy::none());
        if let Some(proxy) = self.proxy {
            http = http.proxy(proxy);
        }
        if !self.root_certificates.is_empty() {
            http = http.tls_certs_merge(self.root_certificates);
        }
        let http = http.build().map_err(ConnectError::Http)?;
        Ok(Client::new_with_client(&self.address, http, self.retries))
    }
}
