//! An HTTP server of a test.

use std::error::Error;
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

/// Starts a server that answers each request by a function, until the test ends. Returns its URL. An error closes the connection.
pub async fn serve_http<H, F, B>(handle: H) -> String
where
    H: Fn(Request<Bytes>) -> F + Send + Sync + 'static,
    F: Future<Output = io::Result<Response<B>>> + Send,
    B: Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>> + Send + 'static,
{
    let (listener, handle) = (TcpListener::bind("127.0.0.1:0").await.unwrap(), Arc::new(handle));
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let handle = Arc::clone(&handle);
            let service = service_fn(move |request: Request<Incoming>| {
                let handle = Arc::clone(&handle);
                async move {
                    let (head, body) = request.into_parts();
                    let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
                    handle(Request::from_parts(head, body)).await
                }
            });
            tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(client), service));
        }
    });
    url
}
