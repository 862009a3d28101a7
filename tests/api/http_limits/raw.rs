//! Raw HTTP requests.

use std::net::SocketAddr;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// The response to raw bytes.
#[derive(Debug)]
pub struct Raw {
    /// The status.
    pub status: u16,
    /// The lines of the head, in lower case.
    head: String,
    /// The body as JSON.
    pub body: Value,
}

impl Raw {
    /// Returns a header, or an empty text.
    pub fn header(&self, name: &str) -> &str {
        let line = self.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        line.unwrap_or_default()
    }

    /// Returns the error code.
    pub fn code(&self) -> &str {
        self.body["code"].as_str().unwrap_or_default()
    }
}

/// Sends bytes, and reads until the server closes the connection. Returns `None` if it closes it without a response.
pub async fn send_raw(server: SocketAddr, request: &[u8]) -> Option<Raw> {
    let mut connection = TcpStream::connect(server).await.unwrap();
    // The server may close the connection before it has read everything.
    let _heard = connection.write_all(request).await;
    read_response(connection).await
}

/// Reads the response on a connection.
pub async fn read_response(mut connection: TcpStream) -> Option<Raw> {
    let mut bytes = Vec::new();
    let _cut_off_after_the_answer = connection.read_to_end(&mut bytes).await;
    let text = String::from_utf8(bytes).unwrap();
    let (head, body) = text.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Some(Raw { status, head: head.to_lowercase(), body: serde_json::from_str(body).unwrap_or_default() })
}

/// Builds a request with these lines after the first one, and `Connection: close`.
pub fn request(first: &str, lines: &[&str], body: &str) -> Vec<u8> {
    let lines: String = lines.iter().map(|line| format!("{line}\r\n")).collect();
    format!("{first} HTTP/1.1\r\nHost: boxoffice.example\r\nConnection: close\r\n{lines}\r\n{body}").into_bytes()
}
