//! The SMTP transport.

use std::error::Error as _;
use std::time::Duration;

use anyhow::{Context, anyhow};
use async_trait::async_trait;
use lettre::transport::smtp::Error;
use lettre::transport::smtp::authentication::{Credentials, DEFAULT_MECHANISMS};
use lettre::transport::smtp::client::{AsyncSmtpConnection, Certificate, TlsParameters};
use lettre::transport::smtp::extension::ClientId;
use tokio::time::timeout;

use super::transport::{DeliveryError, MailTransport, OutgoingMail};
use crate::kernel::settings::{SmtpSettings, SmtpTls};

/// Timeout of the QUIT command.
const QUIT_TIMEOUT: Duration = Duration::from_secs(2);
/// SMTP status of a server that requires a login. It is an error of the settings, not of the mail.
const AUTHENTICATION_REQUIRED: u16 = 530;
/// Enhanced status of a rejection by a rule of the mail server, for example because the sender is not allowed. The operator can
/// correct the settings or the rule.
const POLICY: &str = "5.7.";

/// Sends each mail to a mail server over a new connection.
///
/// It doesn't use lettre's transport, because that waits for the response to QUIT without a timeout before it reports success,
/// and a mail without a reported success is sent again.
pub struct Smtp {
    settings: SmtpSettings,
    tls: Option<TlsParameters>,
    name: ClientId,
}

impl Smtp {
    /// Creates a transport with these settings. Doesn't connect.
    ///
    /// # Errors
    /// Returns an error if the file of certificates can't be read, or the system has no trusted certificates.
    pub fn open(settings: &SmtpSettings) -> anyhow::Result<Self> {
        let tls = match settings.tls {
            SmtpTls::None => None,
            SmtpTls::Starttls | SmtpTls::Tls => Some(tls(settings)?),
        };
        Ok(Self { settings: settings.clone(), tls, name: ClientId::default() })
    }

    /// Opens a connection and logs in. All errors are temporary, because they don't depend on the mail.
    async fn connect(&self) -> Result<AsyncSmtpConnection, Error> {
        let SmtpSettings { host, port, timeout, .. } = &self.settings;
        let implicit_tls = self.tls.clone().filter(|_| self.settings.tls == SmtpTls::Tls);
        let address = (host.as_str(), *port);
        let mut connection = AsyncSmtpConnection::connect_tokio1(address, Some(*timeout), &self.name, implicit_tls, None).await?;
        if let Some(tls) = self.tls.clone().filter(|_| self.settings.tls == SmtpTls::Starttls) {
            connection.starttls(tls, &self.name).await?;
        }
        if let Some((user, password)) = &self.settings.credentials {
            let credentials = Credentials::new(user.clone(), password.0.clone());
            connection.auth(DEFAULT_MECHANISMS, &credentials).await?;
        }
        Ok(connection)
    }

    async fn send(&self, mail: &OutgoingMail) -> Result<(), DeliveryError> {
        let connection = self.connect().await;
        let mut connection = connection.map_err(|error| {
            DeliveryError::Temporary(format!("{} the mail server: {}", failed_step(&self.settings, &error), redacted(&error)))
        })?;
        let result = connection.send(mail.message.envelope(), &mail.message.formatted()).await;
        result.map_err(|error| classify(&error))?;
        tokio::spawn(async move {
            // The server has already accepted the mail.
            let _quit = timeout(QUIT_TIMEOUT, connection.quit()).await;
        });
        Ok(())
    }
}

#[async_trait]
impl MailTransport for Smtp {
    async fn send(&self, mail: &OutgoingMail) -> Result<String, DeliveryError> {
        match timeout(self.settings.timeout, self.send(mail)).await {
            Ok(result) => result.map(|()| format!("{}:{}", self.settings.host, self.settings.port)),
            Err(_) => Err(DeliveryError::Temporary("the mail server has not answered in time".to_owned())),
        }
    }

    fn timeout(&self) -> Duration {
        self.settings.timeout
    }
}

/// Connects to a mail server and logs in, but sends nothing.
///
/// # Errors
/// Returns an error if the server can't be reached, or rejects the connection or the log-in.
pub async fn check_mail_server(settings: &SmtpSettings) -> anyhow::Result<()> {
    let name = format!("{}:{}", settings.host, settings.port);
    let server = Smtp::open(settings)?;
    let connected = timeout(settings.timeout, server.connect()).await;
    let connected = connected.with_context(|| format!("the mail server {name} has not answered in time"))?;
    let mut connection =
        connected.map_err(|error| anyhow!("{} the mail server {name}: {}", failed_step(settings, &error), redacted(&error)))?;
    // The server has accepted the log-in.
    let _quit = timeout(QUIT_TIMEOUT, connection.quit()).await;
    Ok(())
}

fn tls(settings: &SmtpSettings) -> anyhow::Result<TlsParameters> {
    let mut builder = TlsParameters::builder(settings.host.clone());
    if let Some(file) = &settings.certificates {
        let pem = std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
        let certificates = Certificate::from_pem(&pem).with_context(|| format!("no certificates: {}", file.display()))?;
        builder = builder.add_root_certificate(certificates);
    }
    builder.build().context("cannot check the mail server's certificate")
}

/// Returns what has failed before a mail could be sent.
fn failed_step(settings: &SmtpSettings, error: &Error) -> &'static str {
    if settings.credentials.is_some() && error.status().is_some() { "cannot sign in to" } else { "cannot connect to" }
}

/// Returns whether the rejection of a mail is temporary or permanent.
fn classify(error: &Error) -> DeliveryError {
    let needs_login = error.status().is_some_and(|code| u16::from(code) == AUTHENTICATION_REQUIRED);
    let is_settings_error = needs_login || enhanced_status(error).is_some_and(|status| status.starts_with(POLICY));
    // Lettre itself rejects an address that the server doesn't support.
    if (error.is_permanent() && !is_settings_error) || error.is_client() {
        DeliveryError::Permanent(redacted(error))
    } else {
        DeliveryError::Temporary(redacted(error))
    }
}

/// Returns the enhanced status of a response (RFC 3463), such as `5.7.1`, if the server has sent one.
fn enhanced_status(error: &Error) -> Option<String> {
    let text = error.source()?.to_string();
    let status = text.split_whitespace().next()?;
    let is_number = |part: &str| (1..=3).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit());
    (status.split('.').count() == 3 && status.split('.').all(is_number)).then(|| status.to_owned())
}

/// Returns the text of an error. Of the server's response it contains only the status and the enhanced status, because the rest may
/// quote the mail.
fn redacted(error: &Error) -> String {
    match (error.status(), enhanced_status(error)) {
        (Some(code), Some(enhanced)) => format!("refused with {code} {enhanced}"),
        (Some(code), None) => format!("refused with {code}"),
        (None, _) if error.is_response() => "the answer is incomplete or unreadable".to_owned(),
        (None, _) => error.to_string(),
    }
}
