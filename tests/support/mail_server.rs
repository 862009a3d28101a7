//! An SMTP server on a free port, with configurable behavior.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use boxoffice::kernel::settings::{Secret, SmtpSettings, SmtpTls};
use parking_lot::Mutex;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

/// The behavior of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SmtpBehavior {
    /// Accepts every mail.
    Accept,
    /// Accepts every mail, with a pause before and after.
    AcceptSlowly,
    /// Accepts every mail, and then stops responding.
    HangAfterAccept,
    /// Responds to `MAIL FROM` with this line.
    RejectSender(&'static str),
    /// Responds to `RCPT TO` with this line.
    RejectRecipient(&'static str),
    /// Never responds to `RCPT TO` with this address, and accepts every other mail.
    HangForRecipient(&'static str),
    /// Accepts the connection, and sends nothing.
    Unresponsive,
    /// Closes the connection in the middle of a mail.
    CloseDuringData,
    /// Closes the connection after reading the mail, before accepting it.
    CloseBeforeAccept,
}

/// The kind of encryption.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TlsMode {
    /// Upgrades the connection on `STARTTLS`.
    Starttls,
    /// Encrypts from the first byte.
    Implicit,
}

/// A running server.
pub struct MailServer {
    /// Its address.
    pub address: SocketAddr,
    state: Arc<State>,
    _folder: TempDir,
    certificate: PathBuf,
}

struct State {
    behavior: Mutex<SmtpBehavior>,
    tls: Option<(TlsMode, TlsAcceptor)>,
    connections: AtomicUsize,
    commands: Mutex<Vec<String>>,
    accepted: Mutex<Vec<String>>,
    /// Mails that were read but not accepted.
    discarded: Mutex<Vec<String>>,
}

impl MailServer {
    /// Starts a server without encryption.
    pub async fn start(behavior: SmtpBehavior) -> Self {
        Self::open(behavior, None).await
    }

    /// Starts a server with a self-signed certificate.
    pub async fn start_with_tls(tls: TlsMode) -> Self {
        Self::open(SmtpBehavior::Accept, Some(tls)).await
    }

    async fn open(behavior: SmtpBehavior, tls: Option<TlsMode>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let certificate = folder.path().join("certificate.pem");
        let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
        std::fs::write(&certificate, made.cert.pem()).unwrap();
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
        let config = ServerConfig::builder().with_no_client_auth();
        let config = config.with_single_cert(vec![made.cert.der().clone()], key).unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let state = Arc::new(State {
            behavior: Mutex::new(behavior),
            tls: tls.map(|tls| (tls, acceptor)),
            connections: AtomicUsize::new(0),
            commands: Mutex::default(),
            accepted: Mutex::default(),
            discarded: Mutex::default(),
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let serving = Arc::clone(&state);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                serving.connections.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(serve(Arc::clone(&serving), stream));
            }
        });
        Self { address, state, _folder: folder, certificate }
    }

    /// Sets the behavior for new connections.
    pub fn set_behavior(&self, behavior: SmtpBehavior) {
        *self.state.behavior.lock() = behavior;
    }

    /// Returns the number of connections.
    pub fn connection_count(&self) -> usize {
        self.state.connections.load(Ordering::SeqCst)
    }

    /// Returns the accepted mails.
    pub fn accepted(&self) -> Vec<String> {
        self.state.accepted.lock().clone()
    }

    /// Returns the mails that were read but not accepted.
    pub fn discarded(&self) -> Vec<String> {
        self.state.discarded.lock().clone()
    }

    /// Returns the received commands.
    pub fn commands(&self) -> Vec<String> {
        self.state.commands.lock().clone()
    }

    /// Returns settings that make a server deliver here.
    pub fn settings(&self) -> SmtpSettings {
        SmtpSettings {
            host: self.address.ip().to_string(),
            port: self.address.port(),
            tls: SmtpTls::None,
            credentials: None,
            certificates: None,
            timeout: Duration::from_secs(20),
        }
    }

    /// Returns settings with encryption, this server's certificate and credentials.
    pub fn tls_settings(&self, tls: SmtpTls) -> SmtpSettings {
        SmtpSettings {
            tls,
            credentials: Some(("boxoffice".to_owned(), Secret("smtp password".to_owned()))),
            certificates: Some(self.certificate.clone()),
            ..self.settings()
        }
    }
}

/// Serves one connection. Its errors are caused by the client, and visible to the test there.
async fn serve(state: Arc<State>, stream: TcpStream) {
    let behavior = *state.behavior.lock();
    let _ended = match &state.tls {
        Some((TlsMode::Implicit, acceptor)) => match acceptor.accept(stream).await {
            Ok(stream) => run_session(&state, behavior, stream, true).await.map(drop),
            Err(error) => Err(error),
        },
        Some((TlsMode::Starttls, acceptor)) => match run_session(&state, behavior, stream, true).await {
            Ok(Some(stream)) => match acceptor.accept(stream).await {
                Ok(stream) => run_session(&state, behavior, stream, false).await.map(drop),
                Err(error) => Err(error),
            },
            ended => ended.map(drop),
        },
        None => run_session(&state, behavior, stream, true).await.map(drop),
    };
}

/// Runs an SMTP session; returns the stream when the client asks for `STARTTLS`.
async fn run_session<S>(state: &State, behavior: SmtpBehavior, stream: S, greet: bool) -> std::io::Result<Option<S>>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut stream = BufReader::new(stream);
    if behavior == SmtpBehavior::Unresponsive {
        std::future::pending::<()>().await;
    }
    if greet {
        stream.write_all(b"220 mail.example ESMTP\r\n").await?;
    }
    loop {
        let Some(line) = read_line(&mut stream).await? else { return Ok(None) };
        state.commands.lock().push(line.clone());
        let answer = match line.split([' ', ':']).next().unwrap_or_default() {
            "EHLO" if state.tls.is_some() => "250-mail.example\r\n250-STARTTLS\r\n250 AUTH PLAIN",
            "EHLO" => "250 mail.example",
            "STARTTLS" => {
                stream.write_all(b"220 ready\r\n").await?;
                return Ok(Some(stream.into_inner()));
            }
            "AUTH" => "235 authenticated",
            "MAIL" => match behavior {
                SmtpBehavior::RejectSender(answer) => answer,
                _ => "250 ok",
            },
            "RCPT" => match behavior {
                SmtpBehavior::RejectRecipient(answer) => answer,
                SmtpBehavior::HangForRecipient(address) if line.contains(address) => std::future::pending().await,
                _ => "250 ok",
            },
            "DATA" => {
                stream.write_all(b"354 continue\r\n").await?;
                if behavior == SmtpBehavior::CloseDuringData {
                    read_line(&mut stream).await?;
                    return Ok(None);
                }
                let mut mail = String::new();
                loop {
                    match read_line(&mut stream).await? {
                        None => return Ok(None),
                        Some(line) if line == "." => break,
                        Some(line) => mail.push_str(&format!("{line}\n")),
                    }
                }
                if behavior == SmtpBehavior::CloseBeforeAccept {
                    state.discarded.lock().push(mail);
                    return Ok(None);
                }
                let pause = if behavior == SmtpBehavior::AcceptSlowly { Duration::from_millis(100) } else { Duration::ZERO };
                tokio::time::sleep(pause).await;
                state.accepted.lock().push(mail);
                tokio::time::sleep(pause).await;
                stream.write_all(b"250 accepted\r\n").await?;
                if behavior == SmtpBehavior::HangAfterAccept {
                    std::future::pending::<()>().await;
                }
                continue;
            }
            "QUIT" => {
                stream.write_all(b"221 bye\r\n").await?;
                return Ok(None);
            }
            _ => "502 unknown command",
        };
        stream.write_all(format!("{answer}\r\n").as_bytes()).await?;
    }
}

async fn read_line<S: AsyncRead + Unpin>(stream: &mut BufReader<S>) -> std::io::Result<Option<String>> {
    let mut line = String::new();
    let read = stream.read_line(&mut line).await?;
    Ok((read > 0).then(|| line.trim_end_matches(['\r', '\n']).to_owned()))
}
