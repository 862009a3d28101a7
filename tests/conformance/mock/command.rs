//! The command `boxoffice mock`: configuration file and reload.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use boxoffice_conformance::http_client::{HttpClient, ReceivedResponse, Request};
use serde_json::json;
use tokio::time::{sleep, timeout};

use crate::support::server_process::ServerProcess;

/// A mock in a process of its own, which ends with this value.
struct MockProcess {
    process: ServerProcess,
    client: HttpClient,
}

impl MockProcess {
    fn start(options: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_boxoffice"));
        command.arg("mock").args(options);
        let process = ServerProcess::start(command);
        let client = HttpClient::new(&process.address).unwrap();
        Self { process, client }
    }

    async fn get(&self, path: &str) -> ReceivedResponse {
        self.client.send(&Request::new("GET", path)).await.unwrap()
    }
}

/// Writes a document whose only operation returns a text.
fn write_document(file: &Path, text: &str) {
    let content = json!({ "text/plain": { "example": text } });
    let get = json!({ "get": { "responses": { "200": { "description": "", "content": content } } } });
    fs::write(file, json!({ "openapi": "3.0.0", "info": { "title": "texts" }, "paths": { "/text": get } }).to_string()).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changed_document_is_loaded_again() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("openapi.json");
    write_document(&file, "first");
    let mock = MockProcess::start(&["--listen", "127.0.0.1:0", "--watch", "--spec", file.to_str().unwrap()]);
    assert_eq!(mock.get("/text").await.body, b"first".as_slice());

    fs::write(&file, "neither YAML nor JSON: [").unwrap();
    mock.process.wait_for_log("msg", "document not reloaded");
    assert_eq!(mock.get("/text").await.body, b"first".as_slice(), "the previous document stays in use");

    write_document(&file, "second");
    let reloaded = async {
        // The address accepts no connection for a moment.
        while mock.client.send(&Request::new("GET", "/text")).await.map_or(true, |reply| reply.body != b"second".as_slice()) {
            sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(Duration::from_secs(20), reloaded).await.expect("the second document is served");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn options_are_read_from_configuration_file() {
    let folder = tempfile::tempdir().unwrap();
    write_document(&folder.path().join("openapi.json"), "text");
    let config = folder.path().join("mock.yaml");
    fs::write(&config, "spec: openapi.json\nlisten: 127.0.0.1:0\nfaults: [100% 503]\n").unwrap();
    let config = config.to_str().unwrap();

    assert_eq!(MockProcess::start(&["--config", config]).get("/text").await.status, 503);
    let overriding = MockProcess::start(&["--config", config, "--fault", "100% 504 GET /text"]);
    assert_eq!(overriding.get("/text").await.status, 504, "the command line takes precedence");
    for (option, part) in [("5% 503 GET /none", "the document has no operation GET /none"), ("often", "such as")] {
        let failed = Command::new(env!("CARGO_BIN_EXE_boxoffice")).args(["mock", "--config", config, "--fault", option]).output();
        let failed = failed.unwrap();
        let error = String::from_utf8(failed.stderr).unwrap();
        assert!(!failed.status.success() && error.contains(part), "{error}");
    }
    fs::write(config, "seed = 7\n").unwrap();
    let invalid =
        Command::new(env!("CARGO_BIN_EXE_boxoffice")).arg("mock").env("BOXOFFICE_MOCK_CONFIG", config).output().unwrap();
    let error = String::from_utf8(invalid.stderr).unwrap();
    assert!(invalid.status.code() == Some(2) && error.contains("expected options such as `seed: 7`"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn command_line_turns_off_what_the_file_turns_on() {
    let folder = tempfile::tempdir().unwrap();
    let text = json!({ "responses": { "200": { "description": "", "content": { "text/plain": { "example": "text" } } } } });
    let id = json!({ "content": { "application/json": { "example": { "id": 1 } } } });
    let document = json!({ "openapi": "3.0.0", "info": {}, "paths": {
        "/a,b": { "get": text },
        "/things": { "get": text, "post": { "responses": { "201": id } } },
        "/things/{thing}": { "get": { "responses": { "200": id } } },
    } });
    fs::write(folder.path().join("openapi.json"), document.to_string()).unwrap();
    let config = folder.path().join("mock.yaml");
    fs::write(&config, "spec: openapi.json\nlisten: 127.0.0.1:0\nstateful: true\n").unwrap();
    let config = config.to_str().unwrap();

    assert_eq!(MockProcess::start(&["--config", config]).get("/things/9").await.status, 404);
    let faults = "100% 504 GET /a,b; 100% 503 GET /things";
    let stateless = MockProcess::start(&["--config", config, "--stateful=false", "--fault", faults]);
    assert_eq!(stateless.get("/things/9").await.status, 200);
    assert_eq!([stateless.get("/a,b").await.status, stateless.get("/things").await.status], [504, 503]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn configuration_in_the_documents_is_valid() {
    let guide = include_str!("../../../docs/qa.md");
    let config = guide.split("```yaml\n").find(|block| block.starts_with("spec: ")).unwrap().split("```").next().unwrap();
    let folder = tempfile::tempdir().unwrap();
    fs::copy("spec/openapi.yaml", folder.path().join("openapi.yaml")).unwrap();
    let file = folder.path().join("mock.yaml");
    fs::write(&file, config.replace("127.0.0.1:8081", "127.0.0.1:0")).unwrap();

    let answer = MockProcess::start(&["--config", file.to_str().unwrap()]).get("/time").await;

    // The request has no version, and some requests fail.
    assert!(matches!(answer.status, 412 | 503), "{}", answer.status);
}
