//! A reverse proxy between everyone in a test and the server: it changes nothing, and holds every answer to the contract.
//!
//! Whoever asks, the generated client, plain HTTP or a browser, is so held alike; the client alone would throw away what it
//! doesn't know.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1::SendRequest;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Mutex;

use super::contract::ANSWERS;
use super::coverage;
use super::notes::Notes;

/// The way to the server of one client's connection, kept open as long as that is.
struct Way {
    server: SocketAddr,
    connection: Mutex<Option<SendRequest<Incoming>>>,
    notes: Notes,
}

/// Starts a proxy before a server, for the test that this thread works for; gives its address.
pub async fn before(server: SocketAddr) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let notes = Notes::of_this_thread();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            tokio::spawn(serve(client, Way { server, connection: Mutex::default(), notes: notes.clone() }));
        }
    });
    Ok(address)
}

async fn serve(client: TcpStream, way: Way) -> anyhow::Result<()> {
    client.set_nodelay(true)?;
    let way = Arc::new(way);
    let pass = service_fn(move |request| {
        let way = Arc::clone(&way);
        async move { way.pass(request).await }
    });
    hyper::server::conn::http1::Builder::new().preserve_header_case(true).serve_connection(TokioIo::new(client), pass).await?;
    Ok(())
}

impl Way {
    /// Passes a request on and its answer back. An error ends the client's connection, as the server ended ours.
    async fn pass(&self, request: Request<Incoming>) -> anyhow::Result<Response<Full<Bytes>>> {
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        // Until the answer is whole: a client that doesn't wait for one answer can't have the next.
        let mut connection = self.connection.lock().await;
        let mut server = match connection.take() {
            Some(server) => server,
            None => self.connect().await?,
        };
        if server.ready().await.is_err() {
            server = self.connect().await?;
        }
        let (head, body) = server.send_request(request).await?.into_parts();
        let body = body.collect().await?.to_bytes();
        *connection = Some(server);
        let judged = ANSWERS.judge(method.as_str(), &path, head.status.as_u16(), &head.headers, &body);
        if let Some((operation, wrong)) = judged {
            coverage::saw(operation, head.status.as_u16());
            self.notes.answered_wrong(wrong);
        }
        Ok(Response::from_parts(head, Full::new(body)))
    }

    async fn connect(&self) -> anyhow::Result<SendRequest<Incoming>> {
        let server = TcpStream::connect(self.server).await?;
        server.set_nodelay(true)?;
        let builder = &mut hyper::client::conn::http1::Builder::new();
        let (sender, connection) = builder.preserve_header_case(true).handshake(TokioIo::new(server)).await?;
        tokio::spawn(connection);
        Ok(sender)
    }
}
