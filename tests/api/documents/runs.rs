//! The commands and the settings in the documents.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use boxoffice_conformance::baseline::Baseline;

use crate::on_both_databases;
use crate::support::TestApp;
use crate::support::server_process::{ServerProcess, boxoffice};

// The example in `docs/testing.md`.
on_both_databases![region_is_readable];

async fn region_is_readable(app: TestApp) {
    let region = app.create_region().await;
    assert_eq!(app.request("GET", &region).send().await.status, 200);
}

#[test]
fn example_of_a_test_is_one() {
    assert!(include_str!("documents.rs").contains(&blocks(&read("docs/testing.md"), "rust")[0]));
}

fn read(document: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(document)).unwrap()
}

/// Returns the code blocks of a language.
fn blocks(text: &str, language: &str) -> Vec<String> {
    let fence = format!("```{language}\n");
    text.split(&fence).skip(1).map(|block| block.split("```").next().unwrap().to_owned()).collect()
}

/// Returns a part of a document, from a heading to the next of its level.
fn section<'a>(text: &'a str, heading: &str) -> &'a str {
    let level = heading.split(' ').next().unwrap();
    let part = text.split_once(&format!("\n{heading}\n")).unwrap_or_else(|| panic!("no heading {heading}")).1;
    part.split(&format!("\n{level} ")).next().unwrap()
}

/// Returns the arguments of a command of the program, such as `serve --listen 0.0.0.0:8443`, for the shell.
fn arguments(command: &str) -> Option<&str> {
    let command = command.trim().trim_start_matches("- ").trim_start_matches("run: ");
    let command = command.trim_start_matches("runuser -u boxoffice -- ").trim_start_matches("target/release/");
    let programs = ["boxoffice ", "cargo run -- ", "cargo run --release -- ", "cargo run -q --release -- "];
    let arguments = programs.iter().find_map(|program| command.strip_prefix(program))?;
    Some(arguments.split([')', '>']).next().unwrap().trim_end_matches(['&', ' ']))
}

#[test]
fn commands_are_known() {
    let summary = read("docs/SUMMARY.md");
    let documents: Vec<_> = summary.split("](").skip(1).map(|link| format!("docs/{}", link.split(')').next().unwrap())).collect();
    let folder = tempfile::tempdir().unwrap();
    let mut tried = 0;
    for document in &documents {
        let text = read(document);
        let scripts = [blocks(&text, "sh"), blocks(&text, "console"), blocks(&text, "yaml")].concat();
        let commands = scripts.iter().flat_map(|script| script.lines()).flat_map(|line| line.split("$("));
        for arguments in commands.filter_map(arguments) {
            // It reads all options before this one.
            let script = format!("exec \"$0\" {arguments} --help");
            let program = boxoffice(folder.path(), &[]);
            let help = Command::new("bash").arg("-c").arg(script).arg(program.get_program()).env_clear().output().unwrap();
            assert!(help.status.success(), "{document}: boxoffice {arguments}\n{}", String::from_utf8_lossy(&help.stderr));
            tried += 1;
        }
    }
    assert!(tried > 40, "only {tried} commands were found in {documents:?}");
}

/// Runs a script with a running server, and returns what it prints. The script has the server's default address.
fn run(script: &str, server: &ServerProcess, folder: &Path) -> String {
    let script = script.replace("cargo run -q --release --", "boxoffice").replace("http://127.0.0.1:8080", &server.address);
    let program = boxoffice(folder, &[]);
    let programs = PathBuf::from(program.get_program()).parent().unwrap().display().to_string();
    let mut bash = Command::new("bash");
    bash.arg("-euc").arg(script).env_clear().env("PATH", format!("{programs}:/usr/bin:/bin")).env("BOXOFFICE_DATA_DIR", folder);
    let done = bash.output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap()
}

#[test]
fn first_sale_works() {
    let folder = tempfile::tempdir().unwrap();
    let readme = read("README.md");
    let steps: String =
        blocks(section(&readme, "## First sale"), "sh").into_iter().filter(|block| !block.contains(" serve")).collect();
    let server = ServerProcess::start(boxoffice(folder.path(), &["serve"]));

    let printed = run(&steps, &server, folder.path());

    assert_eq!(printed.matches("\"serial\"").count(), 2, "{printed}");
}

#[test]
fn sale_with_sample_data_works() {
    let folder = tempfile::tempdir().unwrap();
    let guide = read("docs/operating.md");
    let steps = blocks(section(&guide, "## Sample data"), "sh");
    let set_up = steps[0].replace("boxoffice serve\n", "");
    assert!(boxoffice(folder.path(), &["demo"]).output().unwrap().status.success() && set_up.contains("boxoffice demo\n"));
    let server = ServerProcess::start(boxoffice(folder.path(), &["serve"]));

    let printed = run(&steps[1].replace("/tmp/boxoffice-demo", folder.path().to_str().unwrap()), &server, folder.path());

    assert!(printed.contains("HTTP/1.1 201 Created"), "{printed}");
}

#[test]
fn settings_and_baseline_are_valid() {
    let folder = tempfile::tempdir().unwrap();
    let settings = folder.path().join("boxoffice.toml");
    fs::write(&settings, &blocks(&read("docs/operating.md"), "toml")[0]).unwrap();
    let baseline = folder.path().join("baseline.yaml");
    fs::write(&baseline, &blocks(section(&read("docs/qa.md"), "### Baseline"), "yaml")[0]).unwrap();

    let mut check = boxoffice(folder.path(), &["config", "check", "--config", settings.to_str().unwrap()]);
    let checked = check.env_remove("BOXOFFICE_RATE_LIMIT").output().unwrap();

    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stdout));
    assert!(Baseline::read(&baseline).is_ok());
}
