//! HTTPS and its certificate.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use boxoffice::server::RunningApp;
use boxoffice_client::{ClientBuilder, Error, RetryPolicy};
use boxoffice_http::log;
use boxoffice_http::{Certificate, ConnectionLimits, Listener};
use http::{Request, Response};
use http_body_util::Empty;
use hyper::body::{Bytes, Incoming};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rcgen::{CertificateParams, KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_RSA_SHA256, SignatureAlgorithm, date_time_ymd};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::sleep;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::version::{TLS12, TLS13};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, SupportedProtocolVersion};

use super::raw::request;
use crate::support::server_process::{Run, ServerProcess, boxoffice};
use crate::support::{ANY_PORT, TestApp, fetch_url, id_of, section, test_on};

/// PEM files of a certificate for localhost and its key.
pub struct Pair {
    folder: PathBuf,
    der: CertificateDer<'static>,
}

impl Pair {
    pub fn write(folder: &Path) -> Self {
        let created = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
        std::fs::write(folder.join("certificate.pem"), created.cert.pem()).unwrap();
        std::fs::write(folder.join("key.pem"), created.signing_key.serialize_pem()).unwrap();
        Self { folder: folder.to_owned(), der: created.cert.der().clone() }
    }

    pub fn open(&self) -> Arc<Certificate> {
        Certificate::open(&self.folder.join("certificate.pem"), &self.folder.join("key.pem")).unwrap()
    }

    /// Returns the command with this certificate, on a free port.
    fn program(&self, command: &str) -> Command {
        let mut program = boxoffice(&self.folder, &[command]);
        program.arg("--tls-certificate").arg(self.folder.join("certificate.pem"));
        program.arg("--tls-key").arg(self.folder.join("key.pem"));
        program
    }
}

/// Opens a connection that trusts this certificate only.
async fn connect(
    server: SocketAddr,
    trusted: &CertificateDer<'static>,
    protocol: &[u8],
    versions: &[&'static SupportedProtocolVersion],
) -> std::io::Result<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.clone()).unwrap();
    let mut config = ClientConfig::builder_with_protocol_versions(versions).with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![protocol.to_vec()];
    let socket = TcpSocket::new_v4()?;
    // Small, so that the server can't send much that is not read.
    socket.set_recv_buffer_size(4096)?;
    TlsConnector::from(Arc::new(config)).connect(ServerName::from(server.ip()), socket.connect(server).await?).await
}

fn get_time(key: &str) -> Request<Empty<Bytes>> {
    let request = Request::get("https://127.0.0.1/time").header("host", "127.0.0.1");
    request.header("X-API-Key", key).header("X-Client-Version", "3.0.0").body(Empty::new()).unwrap()
}

async fn ask_http_1(stream: TlsStream<TcpStream>, key: &str) -> Response<Incoming> {
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    sender.send_request(get_time(key)).await.unwrap()
}

async fn ask_http_2(stream: TlsStream<TcpStream>, key: &str) -> Response<Incoming> {
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    sender.send_request(get_time(key)).await.unwrap()
}

#[test_on(sqlite, postgres)]
async fn serves_http_1_and_2_over_tls(app: TestApp) {
    let folder = tempfile::tempdir().unwrap();
    let pair = Pair::write(folder.path());
    let listener = Listener { certificate: Some(pair.open()), ..ANY_PORT.into() };
    let server = app.start_second_server_on(app.state.settings.clone(), log::silent(), listener).await;

    for version in [&TLS12, &TLS13] {
        let first = connect(server.server, &pair.der, b"http/1.1", &[version]).await.unwrap();
        let second = connect(server.server, &pair.der, b"h2", &[version]).await.unwrap();
        assert_eq!(first.get_ref().1.alpn_protocol(), Some(b"http/1.1".as_slice()));
        assert_eq!(second.get_ref().1.alpn_protocol(), Some(b"h2".as_slice()));

        for response in [ask_http_1(first, &app.public_key).await, ask_http_2(second, &app.public_key).await] {
            assert_eq!(response.status(), 200, "{:?}", response.version());
            assert_eq!(response.headers()["strict-transport-security"], "max-age=63072000");
        }
    }
}

#[test_on(sqlite, postgres)]
async fn client_trusts_an_added_certificate(app: TestApp) {
    let folder = tempfile::tempdir().unwrap();
    let pair = Pair::write(folder.path());
    let listener = Listener { certificate: Some(pair.open()), ..ANY_PORT.into() };
    let server = app.start_second_server_on(app.state.settings.clone(), log::silent(), listener).await;
    let address = format!("https://{}", server.server);
    let builder = || ClientBuilder::new(&address, &app.public_key).retries(RetryPolicy::NONE);
    let certificate = |pair: &Pair| reqwest::Certificate::from_der(&pair.der).unwrap();
    let other = certificate(&Pair::write(tempfile::tempdir().unwrap().path()));

    let untrusted = builder().root_certificate(other.clone()).build().unwrap().time_get().send().await;
    let trusted = builder().root_certificate(other).root_certificate(certificate(&pair)).build().unwrap().time_get().send().await;

    assert!(matches!(untrusted, Err(Error::CommunicationError(_))), "{untrusted:?}");
    assert!(trusted.is_ok(), "{trusted:?}");
}

/// Another connection takes the place of one that is idle. TLS accepts up to 64 KiB that the operating system does not accept yet, so a
/// connection whose response was handed over may still have a part of it.
#[test_on(sqlite, postgres)]
async fn sends_whole_response_before_it_closes_the_connection(app: TestApp) {
    let (_, event) = app.sign_up_host("kofi", &[section("Floor", 20.0, 10)]).await;
    let text = if app.database_url.starts_with("sqlite") { "printf('%.*c', 300000, 'x')" } else { "repeat('x', 300000)" };
    app.execute_sql(format!("update sections set description = {text} where id = {}", id_of(&event.sections[0])).leak()).await;
    let folder = tempfile::tempdir().unwrap();
    let pair = Pair::write(folder.path());
    let connections = ConnectionLimits { per_address: 1, ..ConnectionLimits::default() };
    // Its connections have the same buffer, which is much smaller than that of TLS.
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_send_buffer_size(8 << 10).unwrap();
    socket.bind(ANY_PORT).unwrap();
    let socket = Some(Arc::new(socket.listen(16).unwrap().into_std().unwrap()));
    let listener = Listener { socket, certificate: Some(pair.open()), connections, ..ANY_PORT.into() };
    let server = app.start_second_server_on(app.state.settings.clone(), log::silent(), listener).await;
    let open = async || connect(server.server, &pair.der, b"http/1.1", &[&TLS13]).await;

    let mut slow = open().await.unwrap();
    let lines = [&*format!("X-API-Key: {}", app.public_key), "X-Client-Version: 3.0.0"];
    slow.write_all(&request(&format!("GET {}", event.sections[0]), &lines, "")).await.unwrap();
    let mut response = vec![0; 16 << 10];
    slow.read_exact(&mut response).await.unwrap();
    while open().await.is_err() {
        let mut part = [0; 16 << 10];
        slow.read_exact(&mut part).await.unwrap();
        response.extend(part);
        // The server writes as much as there is room for.
        sleep(Duration::from_millis(20)).await;
    }
    let _cut_off = slow.read_to_end(&mut response).await;

    let response = String::from_utf8(response).unwrap();
    let (head, body) = response.split_once("\r\n\r\n").unwrap();
    assert!(head.contains(&format!("content-length: {}\r\n", body.len())), "{} bytes after {head}", body.len());
}

#[test_on(sqlite, postgres)]
async fn rejects_plain_http(app: TestApp) {
    let folder = tempfile::tempdir().unwrap();
    let listener = Listener { certificate: Some(Pair::write(folder.path()).open()), ..ANY_PORT.into() };
    let server = app.start_second_server_on(app.state.settings.clone(), log::silent(), listener).await;

    let mut connection = TcpStream::connect(server.server).await.unwrap();
    let _heard = connection.write_all(&request("GET /time", &[], "")).await;
    let mut response = Vec::new();
    let _cut_off = connection.read_to_end(&mut response).await;

    assert!(!response.starts_with(b"HTTP"), "{}", response.escape_ascii());
}

#[test_on(sqlite, postgres)]
async fn metrics_show_expiry_of_certificate(app: TestApp) {
    let folder = tempfile::tempdir().unwrap();
    let (file, key_file) = (folder.path().join("certificate.pem"), folder.path().join("key.pem"));
    let write = |expiry| {
        let key = KeyPair::generate().unwrap();
        let mut parameters = rcgen::CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
        parameters.not_after = expiry;
        std::fs::write(&file, parameters.self_signed(&key).unwrap().pem()).unwrap();
        std::fs::write(&key_file, key.serialize_pem()).unwrap();
    };
    write(rcgen::date_time_ymd(2030, 1, 1));
    let certificate = Certificate::open(&file, &key_file).unwrap();
    let listener = Listener { certificate: Some(Arc::clone(&certificate)), ..ANY_PORT.into() };
    let platform = RunningApp::start_with_admin(Arc::clone(&app.state), listener, Some(ANY_PORT.into())).unwrap();
    let admin = platform.admin_address().unwrap();
    let expiry = async || {
        let text = fetch_url(&format!("http://{admin}/metrics")).await.text().await.unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix("boxoffice_tls_certificate_expiry_timestamp_seconds{} "));
        line.unwrap_or_else(|| panic!("{text}")).to_owned()
    };

    let before = expiry().await;
    write(rcgen::date_time_ymd(2031, 1, 1));
    certificate.reload().unwrap();

    assert_eq!((before.as_str(), expiry().await.as_str()), ("1893456000", "1924992000"));
}

/// Returns an element of a DER sequence, without its tag and length.
fn element(der: &[u8], index: usize) -> &[u8] {
    let split = |der: &'_ [u8]| -> (usize, usize) {
        let count = usize::from(der[1]);
        if count < 0x80 {
            return (2, count);
        }
        let bytes = &der[2..2 + (count & 0x7f)];
        (2 + bytes.len(), bytes.iter().fold(0, |length, byte| length << 8 | usize::from(*byte)))
    };
    let mut rest = &der[split(der).0..];
    for _ in 0..index {
        let (head, length) = split(rest);
        rest = &rest[head + length..];
    }
    let (head, length) = split(rest);
    &rest[head..head + length]
}

fn pem(label: &str, der: &[u8]) -> String {
    use base64::Engine;
    let text = base64::engine::general_purpose::STANDARD.encode(der);
    let lines: Vec<_> = text.as_bytes().chunks(64).map(|line| std::str::from_utf8(line).unwrap()).collect();
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.join("\n"))
}

#[test]
fn reads_keys_in_every_format() {
    let folder = tempfile::tempdir().unwrap();
    let (certificate, file) = (folder.path().join("certificate.pem"), folder.path().join("key.pem"));
    let forms: [(&'static SignatureAlgorithm, &str); 2] =
        [(&PKCS_ECDSA_P256_SHA256, "EC PRIVATE KEY"), (&PKCS_RSA_SHA256, "RSA PRIVATE KEY")];
    for (algorithm, label) in forms {
        let key = KeyPair::generate_for(algorithm).unwrap();
        let created = rcgen::CertificateParams::new(["127.0.0.1".to_owned()]).unwrap().self_signed(&key).unwrap();
        std::fs::write(&certificate, created.pem()).unwrap();
        // PKCS #1 is the third element of PKCS #8 (RFC 5208, section 5).
        for text in [key.serialize_pem(), pem(label, element(&key.serialize_der(), 2))] {
            std::fs::write(&file, &text).unwrap();

            let read = Certificate::open(&certificate, &file);

            assert!(read.is_ok(), "{}: {:?}", text.lines().next().unwrap(), read.err());
        }
    }
}

#[test]
fn reports_unusable_certificate() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    Pair::write(folder.path());
    let other = KeyPair::generate().unwrap();
    std::fs::write(file("other.pem"), other.serialize_pem()).unwrap();
    std::fs::write(file("empty.pem"), "nothing\n").unwrap();
    std::fs::write(file("broken.pem"), "-----BEGIN PRIVATE KEY-----\n????\n-----END PRIVATE KEY-----\n").unwrap();

    for (certificate, key, message) in [
        ("absent.pem", "key.pem", "absent.pem, which --tls-certificate names"),
        ("certificate.pem", "absent.pem", "absent.pem, which --tls-key names"),
        ("empty.pem", "key.pem", "--tls-certificate takes a PEM file with BEGIN CERTIFICATE"),
        ("certificate.pem", "empty.pem", "--tls-key takes a PEM file with BEGIN PRIVATE KEY"),
        ("certificate.pem", "certificate.pem", "--tls-key takes a PEM file with BEGIN PRIVATE KEY"),
        ("certificate.pem", "broken.pem", "broken.pem, which --tls-key names"),
        ("certificate.pem", "other.pem", "give the key that the certificate was made for"),
    ] {
        let error = format!("{:#}", Certificate::open(&file(certificate), &file(key)).unwrap_err());
        assert!(error.contains(message), "{certificate} and {key}: {error}");
    }
}

/// The metric of its end would keep the value of the previous certificate.
#[test]
fn reload_rejects_certificate_without_readable_validity() {
    let folder = tempfile::tempdir().unwrap();
    let pair = Pair::write(folder.path());
    let certificate = pair.open();
    let validity = certificate.validity().unwrap();
    // The end of certificates of `rcgen`. There is no month 99.
    let (end, invalid) = (b"40960101000000Z", b"40969901000000Z");
    let mut der = pair.der.to_vec();
    let start = der.windows(end.len()).position(|bytes| bytes == end).unwrap();
    der[start..start + end.len()].copy_from_slice(invalid);
    std::fs::write(folder.path().join("certificate.pem"), pem("CERTIFICATE", &der)).unwrap();

    let error = format!("{:#}", certificate.reload().unwrap_err());

    assert!(error.contains("cannot read the validity"), "{error}");
    assert_eq!(certificate.validity().unwrap(), validity, "the previous certificate is kept");
}

#[test]
fn reload_keeps_valid_certificate_instead_of_expired_one() {
    let folder = tempfile::tempdir().unwrap();
    let certificate = Pair::write(folder.path()).open();
    let validity = certificate.validity().unwrap();
    let mut parameters = CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
    (parameters.not_before, parameters.not_after) = (date_time_ymd(2020, 1, 1), date_time_ymd(2021, 1, 1));
    let key = KeyPair::generate().unwrap();
    std::fs::write(folder.path().join("certificate.pem"), parameters.self_signed(&key).unwrap().pem()).unwrap();
    std::fs::write(folder.path().join("key.pem"), key.serialize_pem()).unwrap();

    let error = format!("{:#}", certificate.reload().unwrap_err());
    let expired = Certificate::open(&folder.path().join("certificate.pem"), &folder.path().join("key.pem")).unwrap();

    assert!(error.contains("the previous certificate is valid") && error.contains("expired on 2021-01-01"), "{error}");
    assert_eq!(certificate.validity().unwrap(), validity, "the previous certificate is kept");
    assert!(expired.reload().is_ok(), "one that is not valid is replaced");
    let listen = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let pair = Pair { folder: folder.path().to_owned(), der: CertificateDer::from(Vec::new()) };
    let log = pair.program("serve").env("BOXOFFICE_LISTEN", listen.local_addr().unwrap().to_string()).run().stderr;
    assert!(log.contains("the TLS certificate is not valid, so clients reject it"), "{log}");
}

#[test]
fn program_rejects_unusable_certificate() {
    let folder = tempfile::tempdir().unwrap();
    let pair = Pair::write(folder.path());
    std::fs::write(folder.path().join("key.pem"), KeyPair::generate().unwrap().serialize_pem()).unwrap();
    // The address is in use, so a process that accepts the certificate ends as well.
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();

    for command in ["serve", "mock"] {
        let rejected = pair.program(command).env("BOXOFFICE_LISTEN", taken.local_addr().unwrap().to_string()).run();

        let message = rejected.stderr;
        assert_eq!(rejected.code, Some(2), "{message}");
        assert!(message.contains("give the key that the certificate was made for"), "{message}");
    }
    assert!(!folder.path().join("boxoffice.db").exists(), "nothing was made");
}

#[test]
fn certificate_and_key_require_each_other() {
    let folder = tempfile::tempdir().unwrap();
    for option in ["--tls-certificate", "--tls-key"] {
        let rejected = boxoffice(folder.path(), &["serve", option, "file.pem"]).run();

        assert_eq!(rejected.code, Some(2), "{option}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn program_reloads_certificate() {
    let folder = tempfile::tempdir().unwrap();
    let first = Pair::write(folder.path());
    let serving = ServerProcess::start(first.program("serve"));
    let server: SocketAddr = serving.address.trim_start_matches("http://").parse().unwrap();
    let shows = async |pair: &Pair| connect(server, &pair.der, b"h2", &[&TLS13]).await.is_ok();
    assert!(shows(&first).await);

    let second = Pair::write(folder.path());
    assert!(shows(&first).await, "no signal was sent yet");
    serving.signal("HUP");
    serving.wait_for_log("msg", "certificate reloaded");
    assert!(shows(&second).await && !shows(&first).await);

    std::fs::write(folder.path().join("key.pem"), "broken").unwrap();
    serving.signal("HUP");
    serving.wait_for_log("cause", "--tls-key takes a PEM file");
    assert!(shows(&second).await, "the valid certificate is kept");
    let response = ask_http_1(connect(server, &second.der, b"http/1.1", &[&TLS13]).await.unwrap(), "x").await;
    assert_eq!(response.status(), 403);
}
