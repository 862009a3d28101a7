//! A mail server on a port of its own, which does what the test tells it.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use boxoffice::config::{SmtpPassword, SmtpSettings, SmtpTls};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

/// How the server behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mood {
    /// Takes every mail.
    Accepts,
    /// Takes every mail, and thinks for a while before it does and after.
    TakesItsTime,
    /// Takes every mail, and then says nothing any more.
    SaysNoGoodbye,
    /// Answers a sender with this.
    RefusesSender(&'static str),
    /// Answers a recipient with this.
    RefusesRecipient(&'static str),
    /// Lets itself be connected to, and says nothing.
    Silent,
    /// Hangs up in the middle of a mail.
    DiesInTheMiddle,
    /// Hangs up with the whole mail read, and not yet taken.
    DiesAtTheEnd,
}

/// How a server that encrypts does it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Secure {
    /// When it is asked to.
    Starttls,
    /// From the first byte on.
    Tls,
}

/// A running server.
pub struct MailServer {
    /// Where it listens.
    pub address: SocketAddr,
    state: Arc<State>,
    _folder: TempDir,
    certificate: PathBuf,
}

struct State {
    mood: Mutex<Mood>,
    tls: Option<(Secure, TlsAcceptor)>,
    visits: AtomicUsize,
    /// The commands of everybody.
    heard: Mutex<Vec<String>>,
    taken: Mutex<Vec<String>>,
    /// Mails that were read, and not taken.
    dropped: Mutex<Vec<String>>,
}

impl MailServer {
    /// A server in this mood, without encryption.
    pub async fn start(mood: Mood) -> Self {
        Self::open(mood, None).await
    }

    /// A server that encrypts, with a certificate of its own making.
    pub async fn secure(secure: Secure) -> Self {
        Self::open(Mood::Accepts, Some(secure)).await
    }

    async fn open(mood: Mood, secure: Option<Secure>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let certificate = folder.path().join("certificate.pem");
        let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
        std::fs::write(&certificate, made.cert.pem()).unwrap();
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
        let config = ServerConfig::builder().with_no_client_auth();
        let config = config.with_single_cert(vec![made.cert.der().clone()], key).unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let state = Arc::new(State {
            mood: Mutex::new(mood),
            tls: secure.map(|secure| (secure, acceptor)),
            visits: AtomicUsize::new(0),
            heard: Mutex::default(),
            taken: Mutex::default(),
            dropped: Mutex::default(),
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let serving = Arc::clone(&state);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                serving.visits.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(serve(Arc::clone(&serving), stream));
            }
        });
        Self { address, state, _folder: folder, certificate }
    }

    /// Changes its mood, for whoever comes next.
    pub fn set(&self, mood: Mood) {
        *self.state.mood.lock().unwrap() = mood;
    }

    /// How often it was connected to.
    pub fn visits(&self) -> usize {
        self.state.visits.load(Ordering::SeqCst)
    }

    /// The mails that it took.
    pub fn taken(&self) -> Vec<String> {
        self.state.taken.lock().unwrap().clone()
    }

    /// The mails that it read and did not take.
    pub fn dropped(&self) -> Vec<String> {
        self.state.dropped.lock().unwrap().clone()
    }

    /// The commands that it was given.
    pub fn heard(&self) -> Vec<String> {
        self.state.heard.lock().unwrap().clone()
    }

    /// What a platform is told to send its mail here.
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

    /// The same with encryption, this server's certificate and a user.
    pub fn secure_settings(&self, tls: SmtpTls) -> SmtpSettings {
        SmtpSettings {
            tls,
            credentials: Some(("boxoffice".to_owned(), SmtpPassword("the post is slow".to_owned()))),
            certificates: Some(self.certificate.clone()),
            ..self.settings()
        }
    }
}

/// Serves one connection. Whatever goes wrong with it is the platform's doing, and for the test to see.
async fn serve(state: Arc<State>, stream: TcpStream) {
    let mood = *state.mood.lock().unwrap();
    let _ended = match &state.tls {
        Some((Secure::Tls, acceptor)) => match acceptor.accept(stream).await {
            Ok(stream) => converse(&state, mood, stream, true).await.map(drop),
            Err(error) => Err(error),
        },
        Some((Secure::Starttls, acceptor)) => match converse(&state, mood, stream, true).await {
            Ok(Some(stream)) => match acceptor.accept(stream).await {
                Ok(stream) => converse(&state, mood, stream, false).await.map(drop),
                Err(error) => Err(error),
            },
            ended => ended.map(drop),
        },
        None => converse(&state, mood, stream, true).await.map(drop),
    };
}

/// One conversation; gives the stream back when it is to be encrypted.
async fn converse<S>(state: &State, mood: Mood, stream: S, greet: bool) -> std::io::Result<Option<S>>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut stream = BufReader::new(stream);
    if mood == Mood::Silent {
        std::future::pending::<()>().await;
    }
    if greet {
        stream.write_all(b"220 mail.example ESMTP\r\n").await?;
    }
    loop {
        let Some(line) = read_line(&mut stream).await? else { return Ok(None) };
        state.heard.lock().unwrap().push(line.clone());
        let answer = match line.split([' ', ':']).next().unwrap_or_default() {
            "EHLO" if state.tls.is_some() => "250-mail.example\r\n250-STARTTLS\r\n250 AUTH PLAIN",
            "EHLO" => "250 mail.example",
            "STARTTLS" => {
                stream.write_all(b"220 go on\r\n").await?;
                return Ok(Some(stream.into_inner()));
            }
            "AUTH" => "235 welcome",
            "MAIL" => match mood {
                Mood::RefusesSender(answer) => answer,
                _ => "250 ok",
            },
            "RCPT" => match mood {
                Mood::RefusesRecipient(answer) => answer,
                _ => "250 ok",
            },
            "DATA" => {
                stream.write_all(b"354 go on\r\n").await?;
                if mood == Mood::DiesInTheMiddle {
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
                if mood == Mood::DiesAtTheEnd {
                    state.dropped.lock().unwrap().push(mail);
                    return Ok(None);
                }
                let pause = if mood == Mood::TakesItsTime { Duration::from_millis(100) } else { Duration::ZERO };
                tokio::time::sleep(pause).await;
                state.taken.lock().unwrap().push(mail);
                tokio::time::sleep(pause).await;
                stream.write_all(b"250 taken\r\n").await?;
                if mood == Mood::SaysNoGoodbye {
                    std::future::pending::<()>().await;
                }
                continue;
            }
            "QUIT" => {
                stream.write_all(b"221 bye\r\n").await?;
                return Ok(None);
            }
            _ => "502 what?",
        };
        stream.write_all(format!("{answer}\r\n").as_bytes()).await?;
    }
}

async fn read_line<S: AsyncRead + Unpin>(stream: &mut BufReader<S>) -> std::io::Result<Option<String>> {
    let mut line = String::new();
    let read = stream.read_line(&mut line).await?;
    Ok((read > 0).then(|| line.trim_end_matches(['\r', '\n']).to_owned()))
}
