//! Requests as bytes, for what no client sends.

use std::net::SocketAddr;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// What was answered to bytes.
#[derive(Debug)]
pub struct Raw {
    /// The status.
    pub status: u16,
    /// The lines of the head, in small letters.
    head: String,
    /// The body as JSON.
    pub body: Value,
}

impl Raw {
    /// The value of a header; empty without it.
    pub fn header(&self, name: &str) -> &str {
        let line = self.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        line.unwrap_or_default()
    }

    /// The error's stable code.
    pub fn code(&self) -> &str {
        self.body["code"].as_str().unwrap_or_default()
    }
}

/// What is answered to these bytes, until the server closes the connection, which it is asked or forced to; `None` where it closes
/// without a word.
pub async fn say(server: SocketAddr, request: &[u8]) -> Option<Raw> {
    let mut connection = TcpStream::connect(server).await.unwrap();
    // A server that has heard enough may close before it has heard all.
    let _heard = connection.write_all(request).await;
    listen(connection).await
}

/// What is answered on a connection.
pub async fn listen(mut connection: TcpStream) -> Option<Raw> {
    let mut bytes = Vec::new();
    let _cut_off_after_the_answer = connection.read_to_end(&mut bytes).await;
    let text = String::from_utf8(bytes).unwrap();
    let (head, body) = text.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Some(Raw { status, head: head.to_lowercase(), body: serde_json::from_str(body).unwrap_or_default() })
}

/// A request with these lines after its first, which asks for the connection to be closed.
pub fn request(first: &str, lines: &[&str], body: &str) -> Vec<u8> {
    let lines: String = lines.iter().map(|line| format!("{line}\r\n")).collect();
    format!("{first} HTTP/1.1\r\nHost: boxoffice.example\r\nConnection: close\r\n{lines}\r\n{body}").into_bytes()
}
