//! TLS certificate of the server, which can be replaced while the server runs.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, bail, ensure};
use chrono::{DateTime, Utc};
use parking_lot::RwLock;
use rustls::ServerConfig;
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use x509_parser::time::ASN1Time;

/// A certificate with its key, from two files.
#[derive(Debug)]
pub struct Certificate {
    certificate: PathBuf,
    key: PathBuf,
    provider: Arc<CryptoProvider>,
    current: RwLock<Arc<CertifiedKey>>,
}

impl Certificate {
    /// Reads PEM files: the certificate with its intermediate certificates, and its key in PKCS #8, PKCS #1 or SEC1.
    ///
    /// # Errors
    /// Returns an error if a file can't be read or has no certificate or key, or if the two don't belong together.
    pub fn open(certificate: &Path, key: &Path) -> anyhow::Result<Arc<Self>> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let current = RwLock::new(Arc::new(read(certificate, key, &provider)?));
        Ok(Arc::new(Self { certificate: certificate.to_owned(), key: key.to_owned(), provider, current }))
    }

    /// Returns the first and the last moment at which the server's own certificate, the first of its file, is valid.
    ///
    /// # Errors
    /// Returns an error if they can't be read.
    pub fn validity(&self) -> anyhow::Result<(DateTime<Utc>, DateTime<Utc>)> {
        validity(&self.current.read())
    }

    /// Returns the last moment at which the certificate is valid.
    ///
    /// # Errors
    /// Returns an error if it is not valid now, or its validity can't be read.
    pub fn require_valid(&self) -> anyhow::Result<DateTime<Utc>> {
        require_valid(&self.current.read())
    }

    /// Reads the files again. New connections use the new certificate.
    ///
    /// # Errors
    /// As for [`open`](Self::open), and also if the validity can't be read: the metric of its end would keep the value of the previous
    /// certificate. A certificate that is not valid now replaces no valid one. The server then keeps the previous certificate.
    pub fn reload(&self) -> anyhow::Result<()> {
        let renewed = read(&self.certificate, &self.key, &self.provider)?;
        validity(&renewed)
            .with_context(|| format!("cannot read the validity of the certificate in {}", self.certificate.display()))?;
        if self.require_valid().is_ok() {
            require_valid(&renewed).with_context(|| {
                format!("the previous certificate is valid, and that in {} is not", self.certificate.display())
            })?;
        }
        *self.current.write() = Arc::new(renewed);
        Ok(())
    }

    /// Returns the configuration for TLS 1.2 and 1.3 with this certificate, for HTTP/2 and HTTP/1.1.
    ///
    /// # Errors
    /// Returns an error if the cryptography provider doesn't support these versions.
    pub fn server_config(self: Arc<Self>) -> anyhow::Result<ServerConfig> {
        let builder = ServerConfig::builder_with_provider(Arc::clone(&self.provider)).with_safe_default_protocol_versions()?;
        let mut config = builder.with_no_client_auth().with_cert_resolver(self);
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(config)
    }
}

impl ResolvesServerCert for Certificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.current.read()))
    }
}

fn read(certificate: &Path, key: &Path, provider: &CryptoProvider) -> anyhow::Result<CertifiedKey> {
    let chain = CertificateDer::pem_file_iter(certificate).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let chain = chain.map_err(|error| unreadable("--tls-certificate", certificate, error))?;
    if chain.is_empty() {
        bail!("there is no certificate in {}: --tls-certificate takes a PEM file with BEGIN CERTIFICATE", certificate.display());
    }
    let private = PrivateKeyDer::from_pem_file(key).map_err(|error| match error {
        pem::Error::NoItemsFound => {
            anyhow::anyhow!("there is no private key in {}: --tls-key takes a PEM file with BEGIN PRIVATE KEY", key.display())
        }
        error => unreadable("--tls-key", key, error),
    })?;
    CertifiedKey::from_der(chain, private, provider).with_context(|| {
        let (certificate, key) = (certificate.display(), key.display());
        format!("the certificate in {certificate} and the key in {key} can't be used together: give the key that the certificate was made for")
    })
}

fn validity(certificate: &CertifiedKey) -> anyhow::Result<(DateTime<Utc>, DateTime<Utc>)> {
    let own = certificate.end_entity_cert()?;
    let (_, own) = x509_parser::parse_x509_certificate(own).context("the certificate can't be read")?;
    let moment = |time: ASN1Time| DateTime::from_timestamp(time.timestamp(), 0).context("the certificate has no valid dates");
    Ok((moment(own.validity.not_before)?, moment(own.validity.not_after)?))
}

fn require_valid(certificate: &CertifiedKey) -> anyhow::Result<DateTime<Utc>> {
    let (starts, ends) = validity(certificate)?;
    let now = Utc::now();
    ensure!(starts <= now, "the certificate is not valid before {}", starts.date_naive());
    ensure!(ends > now, "the certificate expired on {}", ends.date_naive());
    Ok(ends)
}

fn unreadable(option: &str, file: &Path, error: pem::Error) -> anyhow::Error {
    let cause = match error {
        pem::Error::Io(error) => anyhow::Error::new(error),
        error => anyhow::Error::new(error),
    };
    cause.context(format!("cannot read {}, which {option} names", file.display()))
}
