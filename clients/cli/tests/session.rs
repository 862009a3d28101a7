//! Runs the session of the README and the guides against a real server.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;

/// An image of a single pixel.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR42mM4kSICAAM4AUH8/hrTAAAAAElFTkSuQmCC";

/// Separates the output of the commands.
const SEPARATOR: &str = "----8<----";

/// A server process, which is killed on drop.
struct Server {
    process: Child,
    address: String,
}

impl Server {
    /// Starts it with its data in this folder.
    fn start(folder: &Path) -> Self {
        // Cargo names the programs of this package alone. It builds the server beside them, for the server's own tests.
        let program = Path::new(env!("CARGO_BIN_EXE_boxoffice-api")).with_file_name("boxoffice");
        assert!(program.exists(), "run `cargo build` first: {} is missing", program.display());
        let mut command = Command::new(program);
        command.arg("serve").env_clear().env("BOXOFFICE_DATA_DIR", folder).env("BOXOFFICE_LISTEN", "127.0.0.1:0");
        let mut process = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(process.stderr.take().unwrap()).lines().map_while(Result::ok);
        let address = lines.find_map(|line| {
            let entry: serde_json::Value = serde_json::from_str(&line).unwrap_or_default();
            Some(format!("http://{}", entry["address"].as_str()?))
        });
        // The pipe must be read until the process ends, or its log would block it.
        std::thread::spawn(move || lines.for_each(drop));
        Self { process, address: address.expect("the server logs its address") }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have exited already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Returns the commands of a document, each with the output that the document shows.
fn session(document: &str) -> Vec<(String, String)> {
    let mut commands: Vec<(String, String)> = Vec::new();
    let blocks = document.split("```console\n").skip(1).map(|block| block.split("```").next().unwrap());
    for line in blocks.flat_map(str::lines) {
        match (line.strip_prefix("$ "), commands.last_mut()) {
            (Some(command), _) => commands.push((command.to_owned(), String::new())),
            (None, Some((command, _))) if command.ends_with('\\') => *command += &format!("\n{line}"),
            (None, Some((_, output))) => *output += &format!("{line}\n"),
            (None, None) => panic!("output without a command: {line}"),
        }
    }
    commands
}

/// Returns whether a text has this form, in which `…` is any text of a line.
fn has_form(text: &str, form: &str) -> bool {
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>().join(" ");
    let (lines, forms): (Vec<_>, Vec<_>) = (text.trim().lines().map(words).collect(), form.trim().lines().map(words).collect());
    lines.len() == forms.len() && lines.iter().zip(&forms).all(|(line, form)| has_line_form(line, form))
}

fn has_line_form(line: &str, form: &str) -> bool {
    match form.split_once('…') {
        None => line == form,
        Some((before, after)) => line.strip_prefix(before).is_some_and(|rest| {
            rest.char_indices().map(|(at, _)| at).chain([rest.len()]).any(|at| has_line_form(&rest[at..], after))
        }),
    }
}

#[test]
fn readme_session_works() {
    run(&[include_str!("../README.md")]);
}

#[test]
fn guides_work() {
    run(&[
        include_str!("../../../docs/guides/README.md"),
        include_str!("../../../docs/guides/host.md"),
        include_str!("../../../docs/guides/sell.md"),
        include_str!("../../../docs/guides/gate.md"),
        include_str!("../../../docs/guides/settle.md"),
    ]);
}

/// Runs the commands of these documents in one shell, and compares their output.
fn run(documents: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let server = Server::start(&data);
    let credentials = fs::read_to_string(data.join("first-start.txt")).unwrap();
    let key = credentials.lines().find(|line| line.contains("administrator's key")).unwrap_or_else(|| panic!("{credentials}"));
    fs::write(folder.path().join("staff.key"), key.split_whitespace().last().unwrap()).unwrap();
    fs::write(folder.path().join("banner.png"), BASE64_STANDARD.decode(PNG).unwrap()).unwrap();

    let commands: Vec<_> = documents.iter().flat_map(|document| session(document)).collect();
    let mut script = String::from("exec 2>&1\n");
    for (command, _) in &commands {
        script += &format!("{command}\necho '{SEPARATOR}'\n");
    }
    let programs = Path::new(env!("CARGO_BIN_EXE_boxoffice-api")).parent().unwrap();
    let mut bash = Command::new("bash");
    bash.arg("-c").arg(script.replace("http://127.0.0.1:8080", &server.address)).current_dir(folder.path()).env_clear();
    bash.env("PATH", format!("{}:/usr/bin:/bin", programs.display())).env("HOME", folder.path());
    let output = bash.output().unwrap();

    let output = String::from_utf8(output.stdout).unwrap();
    for ((command, form), text) in commands.iter().zip(output.split(&format!("{SEPARATOR}\n"))) {
        assert!(has_form(text, form), "$ {command}\n{text}\nThe document has:\n{form}\nThe whole session:\n{output}");
    }
    assert_eq!(output.matches(SEPARATOR).count(), commands.len());
    let profiles = folder.path().join(".config/boxoffice/profiles.json");
    assert_eq!(fs::metadata(&profiles).unwrap().permissions().mode() & 0o777, 0o600);
}

/// The commands before and after the session, which need no server.
#[test]
fn commands_of_readme_work() {
    let folder = tempfile::tempdir().unwrap();
    for completions in [".local/share/bash-completion/completions", ".zfunc", ".config/fish/completions"] {
        fs::create_dir_all(folder.path().join(completions)).unwrap();
    }
    let blocks = include_str!("../README.md").split("```sh\n").skip(1).flat_map(|block| block.split("```").next());
    let commands: Vec<_> = blocks.flat_map(str::lines).filter(|line| line.starts_with("boxoffice-api ")).collect();

    let programs = Path::new(env!("CARGO_BIN_EXE_boxoffice-api")).parent().unwrap();
    let mut bash = Command::new("bash");
    bash.arg("-euc").arg(commands.join("\n")).env_clear().env("HOME", folder.path());
    bash.env("PATH", format!("{}:/usr/bin:/bin", programs.display()));
    let output = bash.output().unwrap();

    assert!(output.status.success(), "{commands:?}: {}", String::from_utf8_lossy(&output.stderr));
    let completion = fs::read_to_string(folder.path().join(".zfunc/_boxoffice-api")).unwrap();
    assert!(completion.starts_with("#compdef boxoffice-api"), "{completion}");
}

#[test]
fn exit_codes_distinguish_files_and_responses() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        assert!(stream.read(&mut [0; 4096]).unwrap() > 0);
        // The rest of the body doesn't come.
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: text/csv\r\nContent-Length: 500\r\n\r\nnumber").unwrap();
    });
    let run = |command: &str| {
        let programs = Path::new(env!("CARGO_BIN_EXE_boxoffice-api")).parent().unwrap();
        let mut bash = Command::new("bash");
        bash.arg("-c").arg(command).env_clear().env("PATH", format!("{}:/usr/bin:/bin", programs.display()));
        let output = bash.env("BOXOFFICE_SERVER", &server).env("BOXOFFICE_KEY", "a key").output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };

    assert_eq!(run("boxoffice-api event-order-export get 1"), (Some(6), "number".to_owned()));
    assert_eq!(run("boxoffice-api order create --body @missing.json"), (Some(1), String::new()));
    assert_eq!(run("boxoffice-api time get --server 127.0.0.1:8080"), (Some(2), String::new()));
    assert_eq!(run("boxoffice-api section delete 1 .."), (Some(2), String::new()), "nothing is sent");
    assert_eq!(run("boxoffice-api completion bash | true; exit ${PIPESTATUS[0]}"), (Some(0), String::new()));
}

#[test]
fn closed_outputs_are_no_errors() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = Command::new(env!("CARGO_BIN_EXE_boxoffice-api"));
    command.args(["order", "create", "--body", "@missing.json", "--server", "http://127.0.0.1:1"]).env_clear();

    let status = command.env("BOXOFFICE_KEY", "a key").stderr(writer).status().unwrap();

    assert_eq!(status.code(), Some(1), "the code of the error, although its text can't be written");
}

#[test]
fn login_saves_usable_profiles() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("key"), "a key\n").unwrap();
    fs::write(folder.path().join("empty"), "\n").unwrap();
    let run = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_boxoffice-api"));
        let output = command.args(arguments).current_dir(folder.path()).env_clear().env("HOME", folder.path()).output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };

    assert_eq!(run(&["login", "--server", "127.0.0.1:1", "--key-file", "key"]).0, Some(2));
    assert_eq!(run(&["login", "--server", "http://127.0.0.1:1", "--key-file", "empty"]).0, Some(1));
    assert_eq!(run(&["profiles"]).1, "no entries\n");
    assert_eq!(run(&["login", "--server", "http://127.0.0.1:1/", "--key-file", "key"]), (Some(0), String::new()));

    assert_eq!(run(&["profiles", "--field", "server"]), (Some(0), "http://127.0.0.1:1\n".to_owned()));
}

#[test]
fn logins_at_the_same_time_save_all_profiles() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("key"), "a key\n").unwrap();
    let command = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_boxoffice-api"));
        command.args(arguments).current_dir(folder.path()).env_clear().env("HOME", folder.path());
        command
    };
    let names: Vec<String> = (0..8).map(|number| format!("profile{number}")).collect();

    let login = |name: &String| {
        command(&["login", "--profile", name, "--server", "http://127.0.0.1:1", "--key-file", "key"]).spawn().unwrap()
    };
    let logins: Vec<_> = names.iter().map(login).collect();
    for mut login in logins {
        assert!(login.wait().unwrap().success());
    }

    let saved = command(&["profiles", "--field", "profile"]).output().unwrap();
    assert_eq!(String::from_utf8(saved.stdout).unwrap().lines().collect::<Vec<_>>(), names);
}

#[test]
fn body_has_neither_rejected_nulls_nor_unknown_properties() {
    const REGION: &str =
        r#"{"self":"/regions/1","name":"Volta","country":"Ghana","district":"","city":"","icon":"http://x/a.png"}"#;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = format!("http://{}", listener.local_addr().unwrap());
    let received = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = Vec::new();
        while !request.ends_with(b"}") {
            let mut part = [0; 4096];
            let length = stream.read(&mut part).unwrap();
            assert!(length > 0);
            request.extend_from_slice(&part[..length]);
        }
        let head = format!("Content-Type: application/json\r\nConnection: close\r\nContent-Length: {}", REGION.len());
        stream.write_all(format!("HTTP/1.1 200 OK\r\n{head}\r\n\r\n{REGION}").as_bytes()).unwrap();
        String::from_utf8(request).unwrap()
    });
    let run = |body: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_boxoffice-api"));
        command.args(["region", "update", "1", "--field", "name", "--body", body]).env_clear();
        let output = command.env("BOXOFFICE_SERVER", &server).env("BOXOFFICE_KEY", "a key").output().unwrap();
        let [stdout, stderr] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
        (output.status.code(), stdout, stderr)
    };

    let cleared = "error: the body is invalid: name must not be null; leave it out to keep its value\n";
    assert_eq!(run(r#"{"name": null}"#), (Some(2), String::new(), cleared.to_owned()));
    let misspelled = "warning: unknown properties are not sent: nmae\n";
    // The server treats other nulls as absent.
    let body = r#"{"country": "Ghana", "district": null, "nmae": "Volta"}"#;
    assert_eq!(run(body), (Some(0), "Volta\n".to_owned(), misspelled.to_owned()));
    assert!(received.join().unwrap().ends_with("\r\n\r\n{\"country\":\"Ghana\"}"));
}

#[test]
fn web_page_is_no_export() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        assert!(stream.read(&mut [0; 4096]).unwrap() > 0);
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 6\r\n\r\n<html>").unwrap();
    });
    let mut command = Command::new(env!("CARGO_BIN_EXE_boxoffice-api"));
    command.args(["event-order-export", "get", "1"]).env_clear().env("BOXOFFICE_SERVER", &server).env("BOXOFFICE_KEY", "a key");

    let output = command.output().unwrap();

    assert_eq!((output.status.code(), output.stdout), (Some(2), Vec::new()));
}

#[test]
fn errors_have_each_problem_once_and_reasons_of_refused_tickets() {
    const INVALID: &str = r#"{
        "error": "Missing: name. Invalid: basePrice (must be at least 0).", "code": "arguments.invalid", "fields": [
            {"name": "name", "problem": "missing", "detail": "This argument is required."},
            {"name": "basePrice", "problem": "invalid", "detail": "must be at least 0"}]}"#;
    const REFUSED: &str = r#"{
        "error": "None of these tickets can be admitted.", "code": "admission.none",
        "fields": [{"name": "serials", "problem": "invalid", "detail": "name no ticket that can be admitted"}],
        "refused": [
            {"serial": "A-1", "reason": "pending"},
            {"serial": "A-2", "reason": "redeemed", "admission": {"self": "/events/1/admissions/2", "redeemer": "Yaw",
                "admitted": "2025-12-20T18:42:10+00:00", "device": "Gate\u001b[2J 1", "token": null, "tokenName": "Main entrance"}}]}"#;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for body in [INVALID, REFUSED, REFUSED] {
            let (mut stream, _) = listener.accept().unwrap();
            assert!(stream.read(&mut [0; 4096]).unwrap() > 0);
            let head = format!("Content-Type: application/json\r\nConnection: close\r\nContent-Length: {}", body.len());
            stream.write_all(format!("HTTP/1.1 400 Bad Request\r\n{head}\r\n\r\n{body}").as_bytes()).unwrap();
        }
    });
    let run = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_boxoffice-api"));
        command.args(arguments).env_clear().env("BOXOFFICE_SERVER", &server).env("BOXOFFICE_KEY", "a key");
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap())
    };
    let problems = "error: 400 arguments.invalid: Missing: name. Invalid: basePrice (must be at least 0).\n";
    let reasons = "error: 400 admission.none: None of these tickets can be admitted.; serials: name no ticket that can be admitted\n\
        A-1: pending\nA-2: redeemed (Gate [2J 1, Main entrance, 2025-12-20T18:42:10+00:00)\n";

    assert_eq!(run(&["section", "update", "1", "2", "--name", "", "--base-price=-1"]), ["", problems]);
    assert_eq!(run(&["event-admission", "create", "1", "--serials", "A-1", "--serials", "A-2"]), ["", reasons]);
    let [body, text] = run(&["event-admission", "create", "1", "--serials", "A-1", "--serials", "A-2", "--json"]);
    assert_eq!(text, reasons);
    let [body, sent] = [body.as_str(), REFUSED].map(|text| serde_json::from_str::<serde_json::Value>(text).unwrap());
    assert_eq!(body["refused"][0], sent["refused"][0]);
    assert_eq!((&body["fields"], &body["refused"][1]["admission"]), (&sent["fields"], &sent["refused"][1]["admission"]));
}

#[test]
fn forms_are_compared() {
    assert!(has_form("Order 17  Placed\n", "Order … Placed") && has_form("a\n b c", "a\nb …"));
    assert!(!has_form("Order 17 Cancelled", "Order … Placed") && !has_form("a\nb", "a"));
}
