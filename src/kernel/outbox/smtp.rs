//! Mail through a mail server.

use std::time::Duration;

use anyhow::Context;
use async_trait::async_trait;
use lettre::transport::smtp::Error;
use lettre::transport::smtp::authentication::{Credentials, DEFAULT_MECHANISMS};
use lettre::transport::smtp::client::{AsyncSmtpConnection, Certificate, TlsParameters};
use lettre::transport::smtp::extension::ClientId;
use tokio::time::timeout;

use super::transport::{DeliveryError, MailTransport, OutgoingMail};
use crate::config::{SmtpSettings, SmtpTls};

/// How long the server's goodbye is waited for, beside everything else.
const QUIT_TIMEOUT: Duration = Duration::from_secs(2);
/// What a server answers that wants to be signed in to first: ours to put right, and no fault of the mail.
const AUTHENTICATION_REQUIRED: u16 = 530;

/// Hands every mail to a mail server, over a connection of its own.
///
/// Not lettre's ready-made transport: that one waits without end for the server's goodbye before it tells that the mail was
/// taken, and a mail whose taking is not told is sent again.
pub struct Smtp {
    settings: SmtpSettings,
    tls: Option<TlsParameters>,
    name: ClientId,
}

impl Smtp {
    /// The server of these settings. It is not spoken to yet.
    ///
    /// # Errors
    /// When a file of certificates can't be read, or the system has none to trust.
    pub fn open(settings: &SmtpSettings) -> anyhow::Result<Self> {
        let tls = match settings.tls {
            SmtpTls::None => None,
            SmtpTls::Starttls | SmtpTls::Tls => Some(tls(settings)?),
        };
        Ok(Self { settings: settings.clone(), tls, name: ClientId::default() })
    }

    /// A connection on which mails can be sent. Whatever stands against it, another time it may be gone: a refusal here is of
    /// this platform and not of a mail.
    async fn connect(&self) -> Result<AsyncSmtpConnection, Error> {
        let SmtpSettings { host, port, timeout, .. } = &self.settings;
        let from_the_start = self.tls.clone().filter(|_| self.settings.tls == SmtpTls::Tls);
        let address = (host.as_str(), *port);
        let mut connection =
            AsyncSmtpConnection::connect_tokio1(address, Some(*timeout), &self.name, from_the_start, None).await?;
        if let Some(tls) = self.tls.clone().filter(|_| self.settings.tls == SmtpTls::Starttls) {
            connection.starttls(tls, &self.name).await?;
        }
        if let Some((user, password)) = &self.settings.credentials {
            let credentials = Credentials::new(user.clone(), password.0.clone());
            connection.auth(DEFAULT_MECHANISMS, &credentials).await?;
        }
        Ok(connection)
    }

    async fn send(&self, letter: &OutgoingMail) -> Result<(), DeliveryError> {
        let connected = self.connect().await;
        let mut connection = connected
            .map_err(|error| DeliveryError::Temporary(format!("cannot sign in to the mail server: {}", redacted(&error))))?;
        let sent = connection.send(letter.message.envelope(), &letter.message.formatted()).await;
        sent.map_err(|error| classify(&error))?;
        tokio::spawn(async move {
            // The mail has been taken, whatever the server says now.
            let _goodbye = timeout(QUIT_TIMEOUT, connection.quit()).await;
        });
        Ok(())
    }
}

#[async_trait]
impl MailTransport for Smtp {
    async fn send(&self, letter: &OutgoingMail) -> Result<String, DeliveryError> {
        match timeout(self.settings.timeout, self.send(letter)).await {
            Ok(sent) => sent.map(|()| format!("{}:{}", self.settings.host, self.settings.port)),
            Err(_) => Err(DeliveryError::Temporary("the mail server has not answered in time".to_owned())),
        }
    }

    fn timeout(&self) -> Duration {
        self.settings.timeout
    }
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

/// Why a mail was not taken by a server that is well.
fn classify(error: &Error) -> DeliveryError {
    let is_ours = error.status().is_some_and(|code| u16::from(code) == AUTHENTICATION_REQUIRED);
    // What lettre itself refuses is an address that this server can't take.
    if (error.is_permanent() && !is_ours) || error.is_client() {
        DeliveryError::Permanent(redacted(error))
    } else {
        DeliveryError::Temporary(redacted(error))
    }
}

/// An error in words, without those of the server but for the number that it answered with.
fn redacted(error: &Error) -> String {
    match error.status() {
        Some(code) => format!("refused with {code}"),
        None if error.is_response() => "the answer is incomplete or unreadable".to_owned(),
        None => error.to_string(),
    }
}
