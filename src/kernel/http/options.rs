//! Command-line options for TLS, rate limits and trusted proxies.

use std::net::SocketAddr;
use std::path::PathBuf;

use boxoffice_http::client_ip::TrustedProxies;
use boxoffice_http::{Certificate, Listener};
use clap::Args;

/// Options for TLS.
#[derive(Debug, Clone, Args)]
pub struct TlsOptions {
    /// PEM file of the certificate for HTTPS, including intermediates; read again on SIGHUP
    #[arg(long, env = "BOXOFFICE_TLS_CERTIFICATE", requires = "tls_key", value_name = "FILE")]
    tls_certificate: Option<PathBuf>,
    /// PEM file of the certificate's private key
    #[arg(long, env = "BOXOFFICE_TLS_KEY", requires = "tls_certificate", value_name = "FILE")]
    tls_key: Option<PathBuf>,
}

impl TlsOptions {
    /// Returns whether a certificate is set.
    pub fn is_used(&self) -> bool {
        self.tls_certificate.is_some()
    }

    /// Returns a listener on an address, with TLS if a certificate is set.
    ///
    /// # Errors
    /// Returns an error if the certificate or its key can't be read.
    pub fn listener(&self, address: SocketAddr) -> anyhow::Result<Listener> {
        let files = self.tls_certificate.as_ref().zip(self.tls_key.as_ref());
        let certificate = files.map(|(certificate, key)| Certificate::open(certificate, key)).transpose()?;
        Ok(Listener { certificate, ..address.into() })
    }
}

/// Options for rate limits and trusted proxies.
#[derive(Debug, Clone, Args)]
pub struct LimitOptions {
    /// Attempts per minute from one address on one account's password or code, or on whether the account exists; ten times as
    /// many across all accounts; 0: no limit
    #[arg(long, env = "BOXOFFICE_LOGIN_RATE_LIMIT", default_value_t = 10, value_name = "NUMBER")]
    login_rate_limit: u32,
    /// Requests per minute with one key, or with one public key from one address; 0: no limit
    #[arg(long, env = "BOXOFFICE_RATE_LIMIT", default_value_t = 600, value_name = "NUMBER")]
    rate_limit: u32,
    /// Failed log-ins per hour to one account, from all addresses together; 0: no limit
    #[arg(long, env = "BOXOFFICE_FAILED_LOGIN_LIMIT", default_value_t = 100, value_name = "NUMBER")]
    failed_login_limit: u32,
    /// Changes of one account's password or e-mail address per hour; 0: no limit
    #[arg(long, env = "BOXOFFICE_CREDENTIAL_CHANGE_LIMIT", default_value_t = 10, value_name = "NUMBER")]
    credential_change_limit: u32,
    /// Verification codes that are mailed to one address per hour, and as many password reset codes; 0: no limit
    #[arg(long, env = "BOXOFFICE_CODE_LIMIT", default_value_t = 10, value_name = "NUMBER")]
    code_limit: u32,
    /// Addresses and networks of trusted proxies, which send the client's address in Forwarded or X-Forwarded-For
    #[arg(long, env = "BOXOFFICE_TRUSTED_PROXIES", default_value = "", hide_default_value = true, value_name = "LIST")]
    trusted_proxies: TrustedProxies,
}

/// Rate limits and trusted proxies. By default: unlimited, no proxies trusted.
#[derive(Debug, Clone, Default)]
pub struct LimitSettings {
    /// Guesses per minute from one address on one account; ten times as many across all accounts; 0: no limit.
    pub guesses: u32,
    /// Requests per minute with one key, or with one public key from one address; 0: no limit.
    pub keys: u32,
    /// Failed log-ins per hour to one account; 0: no limit.
    pub failed_logins: u32,
    /// Changes of one account's password or e-mail address per hour; 0: no limit.
    pub credential_changes: u32,
    /// Codes of one kind per hour that are mailed to one e-mail address; 0: no limit.
    pub codes: u32,
    /// Proxies whose headers determine the client's address.
    pub trusted_proxies: TrustedProxies,
}

impl LimitOptions {
    /// Returns the settings with the values of these options.
    pub fn settings(&self) -> LimitSettings {
        LimitSettings {
            guesses: self.login_rate_limit,
            keys: self.rate_limit,
            failed_logins: self.failed_login_limit,
            credential_changes: self.credential_change_limit,
            codes: self.code_limit,
            trusted_proxies: self.trusted_proxies.clone(),
        }
    }
}
