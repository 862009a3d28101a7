//! The validity of TLS certificates.

use anyhow::Context;
use chrono::{DateTime, Utc};
use x509_parser::time::ASN1Time;

/// Returns the first and the last moment at which a certificate, in DER, is valid.
///
/// # Errors
/// Returns an error if it can't be read.
pub fn certificate_validity(certificate: &[u8]) -> anyhow::Result<(DateTime<Utc>, DateTime<Utc>)> {
    let (_, certificate) = x509_parser::parse_x509_certificate(certificate).context("the certificate can't be read")?;
    let moment = |time: ASN1Time| DateTime::from_timestamp(time.timestamp(), 0).context("the certificate has no valid dates");
    Ok((moment(certificate.validity.not_before)?, moment(certificate.validity.not_after)?))
}
