//! Socket, service and response bodies of a connection, which record its progress.

use std::convert::Infallible;
use std::io::{self, IoSlice};
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use dropshot::Body;
use futures::FutureExt;
use futures::future::BoxFuture;
use http::{Request, Response};
use hyper::body::{Frame, Incoming, SizeHint};
use hyper::service::Service;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use crate::connection::{Connection, RequestGuard};
use crate::connections::Connections;
use crate::detach_on_drop::DetachOnDrop;
use crate::dispatcher::Dispatcher;
use crate::request_handler::RequestHandler;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Size of the parts in which a body is passed to hyper, in bytes. hyper keeps a few of them in its buffer.
const PART: usize = 32 * 1024;

/// A socket that records what the operating system accepts. It is below TLS, which accepts up to 64 KiB more than the socket.
pub struct CountingIo {
    /// The socket.
    pub socket: TcpStream,
    /// The connection.
    pub connection: Arc<Connection>,
}

impl CountingIo {
    fn record(&self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        match &written {
            Poll::Ready(Ok(count)) => self.connection.record_write(Some(*count)),
            Poll::Ready(Err(_)) => {}
            Poll::Pending => self.connection.record_write(None),
        }
        written
    }
}

impl AsyncRead for CountingIo {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_read(context, buffer)
    }
}

impl AsyncWrite for CountingIo {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.socket).poll_write(context, bytes);
        self.record(written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.socket).poll_write_vectored(context, slices);
        self.record(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }
}

/// The service of one connection: the dispatcher, with the progress of each request and response recorded.
pub struct ConnectionService<H> {
    /// The dispatcher.
    pub dispatcher: Arc<Dispatcher<H>>,
    /// The address of the connection's other end.
    pub peer: IpAddr,
    /// The connection.
    pub connection: Arc<Connection>,
    /// All connections.
    pub connections: Arc<Connections>,
}

impl<H: RequestHandler> Service<Request<Incoming>> for ConnectionService<H> {
    type Response = Response<ResponseBody>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response<ResponseBody>, Infallible>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let guard = self.connection.begin_request();
        let (connection, connections) = (Arc::clone(&self.connection), Arc::clone(&self.connections));
        let has_room = {
            let (connection, connections) = (Arc::clone(&connection), Arc::clone(&connections));
            move |bytes| connections.has_room(&connection, bytes)
        };
        let response = Arc::clone(&self.dispatcher).respond(self.peer, request.map(Body::wrap), has_room);
        let response = DetachOnDrop::new(response);
        async move {
            Ok(response.await.map(|body| ResponseBody { body, part: Bytes::new(), connection, connections, _request: guard }))
        }
        .boxed()
    }
}

/// The body of a response, passed on in parts. Its data count as unsent until they are sent.
pub struct ResponseBody {
    body: Body,
    /// Data of the body that were not passed on yet.
    part: Bytes,
    connection: Arc<Connection>,
    connections: Arc<Connections>,
    _request: RequestGuard,
}

impl hyper::body::Body for ResponseBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if self.part.is_empty() {
            let frame = match ready!(Pin::new(&mut self.body).poll_frame(context)) {
                Some(Ok(frame)) => frame,
                end => return Poll::Ready(end),
            };
            match frame.into_data() {
                Ok(data) => self.part = self.connections.count_unsent(&self.connection, data),
                Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
            }
        }
        let length = self.part.len().min(PART);
        Poll::Ready(Some(Ok(Frame::data(self.part.split_to(length)))))
    }

    fn is_end_stream(&self) -> bool {
        self.part.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (mut size, part) = (self.body.size_hint(), self.part.len() as u64);
        if let Some(upper) = size.upper() {
            size.set_upper(upper + part);
        }
        size.set_lower(size.lower() + part);
        size
    }
}
