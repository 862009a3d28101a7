//! Command-line options for TLS, rate limits, trusted proxies, connections, and the memory for request bodies.

use std::fmt;
use std::fs;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context, anyhow, ensure};
use boxoffice_http::client_ip::TrustedProxies;
use boxoffice_http::{BodyMemoryLimits, Certificate, ConnectionLimits, Listener};
use clap::Args;
use slog::{Logger, warn};

use super::{InvalidSettings, Setting, setting, whole_number};
use crate::kernel::private_files;
use crate::kernel::settings::LimitSettings;

/// An address to listen on: a host name or an IP address, and a port.
#[derive(Debug, Clone)]
pub struct ListenAddress {
    text: String,
    host: String,
    port: u16,
}

impl FromStr for ListenAddress {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        const EXPECTED: &str = "give HOST:PORT, such as 127.0.0.1:8080, [::1]:8080 or localhost:8080";
        let parts = text.rsplit_once(':').and_then(|(host, port)| Some((host, port.parse().ok()?)));
        let (host, port) = parts.with_context(|| format!("`{text}` has no valid port; {EXPECTED}"))?;
        let host = match text.parse::<SocketAddr>() {
            Ok(address) => address.ip().to_string(),
            Err(_) => host.to_owned(),
        };
        let is_name = !host.is_empty() && host.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_'));
        ensure!(is_name || text.parse::<SocketAddr>().is_ok(), "`{text}` is not an address to listen on; {EXPECTED}");
        Ok(Self { text: text.to_owned(), host, port })
    }
}

impl ListenAddress {
    /// Returns the first IPv4 address of the host, or else its first address.
    /// `option` is its name for the error.
    ///
    /// # Errors
    /// Returns an error if the host is unknown.
    pub fn resolve(&self, option: &str) -> anyhow::Result<SocketAddr> {
        let addresses = (self.host.as_str(), self.port).to_socket_addrs();
        let addresses = addresses.with_context(|| format!("{option}: cannot find the address of the host `{}`", self.host))?;
        let address = addresses.min_by_key(|address| !address.is_ipv4());
        address.ok_or_else(|| anyhow!("{option}: the host `{}` has no address", self.host))
    }
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Options for TLS.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "TLS")]
pub struct TlsOptions {
    /// PEM file of the certificate for HTTPS, including intermediates; read again on SIGHUP [default: none, plain HTTP]
    #[arg(long, env = "BOXOFFICE_TLS_CERTIFICATE", value_name = "FILE")]
    tls_certificate: Option<PathBuf>,
    /// PEM file of the certificate's private key
    #[arg(long, env = "BOXOFFICE_TLS_KEY", value_name = "FILE")]
    tls_key: Option<PathBuf>,
}

impl TlsOptions {
    /// Returns whether a certificate is set.
    pub fn is_used(&self) -> bool {
        self.tls_certificate.is_some()
    }

    /// Returns the problem of a certificate without a key, or a key without a certificate.
    pub fn problem(&self) -> Option<String> {
        const CERTIFICATE: &str = "--tls-certificate (BOXOFFICE_TLS_CERTIFICATE)";
        const KEY: &str = "--tls-key (BOXOFFICE_TLS_KEY)";
        match (&self.tls_certificate, &self.tls_key) {
            (Some(_), None) => Some(format!("{CERTIFICATE}: it needs {KEY}, the PEM file of its private key")),
            (None, Some(_)) => Some(format!("{KEY}: it needs {CERTIFICATE}, the PEM file of its certificate")),
            _ => None,
        }
    }

    /// Logs a warning if all users of the machine may read the private key.
    pub fn warn_of_readable_key(&self, log: &Logger) {
        let Some(key) = &self.tls_key else { return };
        if fs::metadata(key).is_ok_and(|metadata| private_files::is_readable_by_all(&metadata)) {
            warn!(log, "all users of this machine may read a file with a secret"; "path" => %key.display());
        }
    }

    /// Returns a listener on an address, with TLS if a certificate is set. Resolves the host name.
    ///
    /// # Errors
    /// Returns [`InvalidSettings`] if the host is unknown, or the certificate or its key can't be read.
    pub fn listener(&self, address: &ListenAddress) -> anyhow::Result<Listener> {
        let files = self.tls_certificate.as_ref().zip(self.tls_key.as_ref());
        let certificate = files.map(|(certificate, key)| Certificate::open(certificate, key)).transpose();
        let listener = certificate.and_then(|certificate| Ok(Listener { certificate, ..address.resolve("--listen")?.into() }));
        listener.map_err(|error| InvalidSettings::from_use(&error).into())
    }
}

/// Options for rate limits and trusted proxies.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Rate limits")]
pub struct LimitOptions {
    /// Attempts per minute from one address on one account's password or code, or on whether the account exists; ten times as
    /// many across all accounts; 0: no limit
    #[arg(long, env = "BOXOFFICE_LOGIN_RATE_LIMIT", default_value = "10", value_name = "NUMBER", value_parser = setting(whole_number::<0, { u32::MAX }>))]
    login_rate_limit: Setting<u32>,
    /// Requests per minute with one key, or with one public key from one address; 0: no limit
    #[arg(long, env = "BOXOFFICE_RATE_LIMIT", default_value = "600", value_name = "NUMBER", value_parser = setting(whole_number::<0, { u32::MAX }>))]
    rate_limit: Setting<u32>,
    /// Failed log-ins per hour to one account, from all addresses together; 0: no limit
    #[arg(long, env = "BOXOFFICE_FAILED_LOGIN_LIMIT", default_value = "100", value_name = "NUMBER", value_parser = setting(whole_number::<0, { u32::MAX }>))]
    failed_login_limit: Setting<u32>,
    /// Changes of one account's password or e-mail address per hour; 0: no limit
    #[arg(long, env = "BOXOFFICE_CREDENTIAL_CHANGE_LIMIT", default_value = "10", value_name = "NUMBER", value_parser = setting(whole_number::<0, { u32::MAX }>))]
    credential_change_limit: Setting<u32>,
    /// Verification codes that are mailed to one address per hour, and as many password reset codes; 0: no limit
    #[arg(long, env = "BOXOFFICE_CODE_LIMIT", default_value = "10", value_name = "NUMBER", value_parser = setting(whole_number::<0, { u32::MAX }>))]
    code_limit: Setting<u32>,
    /// Servers that share the requests of all clients; each of them enforces its share of the limits
    #[arg(long, env = "BOXOFFICE_SERVERS", default_value = "1", value_name = "NUMBER", value_parser = setting(whole_number::<1, 1000>))]
    servers: Setting<u32>,
    /// Addresses and networks of trusted proxies, which send the client's address in `Forwarded` or `X-Forwarded-For`, such as
    /// `10.0.0.0/8,2001:db8::1`
    #[arg(long, env = "BOXOFFICE_TRUSTED_PROXIES", default_value = "", hide_default_value = true, value_name = "LIST", value_parser = setting(str::parse::<TrustedProxies>), help_heading = "Reverse proxies")]
    trusted_proxies: Setting<TrustedProxies>,
}

impl LimitOptions {
    /// Returns the settings with the values of these options.
    ///
    /// # Errors
    /// Returns an error if an option is invalid.
    pub fn settings(&self) -> anyhow::Result<LimitSettings> {
        let servers = *self.servers.get()?;
        // Rounded up, so that no share is 0, which is no limit.
        let share = |limit: &Setting<u32>| anyhow::Ok(limit.get()?.div_ceil(servers));
        Ok(LimitSettings {
            guesses: share(&self.login_rate_limit)?,
            keys: share(&self.rate_limit)?,
            failed_logins: share(&self.failed_login_limit)?,
            credential_changes: share(&self.credential_change_limit)?,
            codes: share(&self.code_limit)?,
            servers,
            trusted_proxies: self.trusted_proxies.get()?.clone(),
        })
    }

    /// Returns what is wrong with each option.
    pub fn problems(&self) -> Vec<Option<String>> {
        let numbers = [
            &self.login_rate_limit,
            &self.rate_limit,
            &self.failed_login_limit,
            &self.credential_change_limit,
            &self.code_limit,
            &self.servers,
        ];
        numbers.into_iter().map(Setting::problem).chain([self.trusted_proxies.problem()]).collect()
    }
}

/// Options for the memory for request bodies.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Timeouts and size limits")]
pub struct BodyMemoryOptions {
    /// MiB of request bodies in memory at the same time
    #[arg(long, env = "BOXOFFICE_BODY_MEMORY_MIB", default_value = "64", value_name = "MIB", value_parser = setting(whole_number::<8, 65_536>))]
    body_memory_mib: Setting<u32>,
    /// MiB of request bodies with one key, or with one public key from one address, in memory at the same time
    #[arg(long, env = "BOXOFFICE_BODY_MEMORY_PER_KEY_MIB", default_value = "16", value_name = "MIB", value_parser = setting(whole_number::<8, 65_536>))]
    body_memory_per_key_mib: Setting<u32>,
}

impl BodyMemoryOptions {
    /// Returns the limits with the values of these options.
    ///
    /// # Errors
    /// Returns an error if an option is invalid.
    pub fn limits(&self) -> anyhow::Result<BodyMemoryLimits> {
        let bytes = |mib: &Setting<u32>| anyhow::Ok((*mib.get()? as usize) << 20);
        Ok(BodyMemoryLimits { total: bytes(&self.body_memory_mib)?, per_key: bytes(&self.body_memory_per_key_mib)? })
    }

    /// Returns what is wrong with each option.
    pub fn problems(&self) -> [Option<String>; 2] {
        [&self.body_memory_mib, &self.body_memory_per_key_mib].map(Setting::problem)
    }
}

/// Options for connections.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Connections")]
pub struct ConnectionOptions {
    /// Open connections [default: the limit of open files minus 96, at most 4096]
    #[arg(long, env = "BOXOFFICE_MAX_CONNECTIONS", value_name = "NUMBER", value_parser = setting(whole_number::<1, 1_000_000>))]
    max_connections: Option<Setting<u32>>,
    /// Open connections of one client address, except those of trusted proxies; 0: no limit
    #[arg(long, env = "BOXOFFICE_MAX_CONNECTIONS_PER_ADDRESS", default_value = "256", value_name = "NUMBER", value_parser = setting(whole_number::<0, 1_000_000>))]
    max_connections_per_address: Setting<u32>,
    /// Requests in progress, beyond which others are refused with 503
    #[arg(long, env = "BOXOFFICE_MAX_REQUESTS", default_value = "1024", value_name = "NUMBER", value_parser = setting(whole_number::<1, 1_000_000>))]
    max_requests: Setting<u32>,
    /// Seconds from the start of a connection until the head of its first request is complete, including the TLS handshake
    #[arg(long, env = "BOXOFFICE_HEAD_TIMEOUT_SECONDS", default_value = "10", value_name = "SECONDS", value_parser = setting(whole_number::<1, 3600>))]
    head_timeout_seconds: Setting<u32>,
    /// Seconds from the end of a response until the head of the connection's next request is complete
    #[arg(long, env = "BOXOFFICE_IDLE_TIMEOUT_SECONDS", default_value = "60", value_name = "SECONDS", value_parser = setting(whole_number::<1, 3600>))]
    idle_timeout_seconds: Setting<u32>,
    /// Seconds in which a client must read 8 KiB of a response, or the rest of it
    #[arg(long, env = "BOXOFFICE_SEND_TIMEOUT_SECONDS", default_value = "20", value_name = "SECONDS", value_parser = setting(whole_number::<1, 3600>))]
    send_timeout_seconds: Setting<u32>,
    /// MiB of responses that wait to be sent at the same time
    #[arg(long, env = "BOXOFFICE_RESPONSE_MEMORY_MIB", default_value = "64", value_name = "MIB", value_parser = setting(whole_number::<8, 65_536>))]
    response_memory_mib: Setting<u32>,
}

impl ConnectionOptions {
    /// Returns the limits with the values of these options.
    ///
    /// # Errors
    /// Returns an error if an option is invalid.
    pub fn limits(&self) -> anyhow::Result<ConnectionLimits> {
        let seconds = |seconds: &Setting<u32>| anyhow::Ok(Duration::from_secs(u64::from(*seconds.get()?)));
        let maximum = self.max_connections.as_ref().map(Setting::get).transpose()?;
        Ok(ConnectionLimits {
            maximum: maximum.map(|number| *number as usize),
            per_address: *self.max_connections_per_address.get()? as usize,
            requests: *self.max_requests.get()? as usize,
            head_timeout: seconds(&self.head_timeout_seconds)?,
            idle_timeout: seconds(&self.idle_timeout_seconds)?,
            send_timeout: seconds(&self.send_timeout_seconds)?,
            unsent: (*self.response_memory_mib.get()? as usize) << 20,
            ..ConnectionLimits::default()
        })
    }

    /// Returns what is wrong with each option.
    pub fn problems(&self) -> [Option<String>; 7] {
        let numbers = [
            &self.max_connections_per_address,
            &self.max_requests,
            &self.head_timeout_seconds,
            &self.idle_timeout_seconds,
            &self.send_timeout_seconds,
            &self.response_memory_mib,
        ];
        let [per_address, requests, head, idle, send, memory] = numbers.map(Setting::problem);
        [self.max_connections.as_ref().and_then(Setting::problem), per_address, requests, head, idle, send, memory]
    }
}
