//! How a server meets strangers, as options of the command line.

use std::net::SocketAddr;
use std::path::PathBuf;

use boxoffice_http::client_ip::TrustedProxies;
use boxoffice_http::{Certificate, Listener};
use clap::Args;

/// The files of TLS.
#[derive(Debug, Clone, Args)]
pub struct TlsOptions {
    /// PEM file of the certificate for HTTPS, and of those between it and its authority's; read again on SIGHUP
    #[arg(long, env = "BOXOFFICE_TLS_CERTIFICATE", requires = "tls_key", value_name = "FILE")]
    tls_certificate: Option<PathBuf>,
    /// PEM file of the certificate's private key
    #[arg(long, env = "BOXOFFICE_TLS_KEY", requires = "tls_certificate", value_name = "FILE")]
    tls_key: Option<PathBuf>,
}

impl TlsOptions {
    /// Whether there is a certificate.
    pub fn is_used(&self) -> bool {
        self.tls_certificate.is_some()
    }

    /// What listens on an address: with TLS where there is a certificate.
    ///
    /// # Errors
    /// When the files can't be used.
    pub fn listener(&self, address: SocketAddr) -> anyhow::Result<Listener> {
        let files = self.tls_certificate.as_ref().zip(self.tls_key.as_ref());
        let certificate = files.map(|(certificate, key)| Certificate::open(certificate, key)).transpose()?;
        Ok(Listener { certificate, ..address.into() })
    }
}

/// How much is taken from strangers, as options.
#[derive(Debug, Clone, Args)]
pub struct LimitOptions {
    /// Attempts a minute from one address to guess one account's password or code, or whether there is one, and ten times as
    /// many about all accounts; 0 for any number
    #[arg(long, env = "BOXOFFICE_LOGIN_RATE_LIMIT", default_value_t = 10, value_name = "NUMBER")]
    login_rate_limit: u32,
    /// Requests a minute with one key; 0 for any number
    #[arg(long, env = "BOXOFFICE_RATE_LIMIT", default_value_t = 600, value_name = "NUMBER")]
    rate_limit: u32,
    /// Addresses and networks of proxies that are believed when they name a client in Forwarded or X-Forwarded-For
    #[arg(long, env = "BOXOFFICE_TRUSTED_PROXIES", default_value = "", hide_default_value = true, value_name = "LIST")]
    trusted_proxies: TrustedProxies,
}

/// How much is taken from strangers. By default anything, from nobody else's name.
#[derive(Debug, Clone, Default)]
pub struct LimitSettings {
    /// Guesses a minute for each address and identification, and ten times as many for each address; 0 for any number.
    pub guesses: u32,
    /// Requests a minute for each key; 0 for any number.
    pub keys: u32,
    /// Who is believed when it names a client.
    pub trusted_proxies: TrustedProxies,
}

impl LimitOptions {
    /// The settings that they make.
    pub fn settings(&self) -> LimitSettings {
        let Self { login_rate_limit: guesses, rate_limit: keys, trusted_proxies } = self.clone();
        LimitSettings { guesses, keys, trusted_proxies }
    }
}
