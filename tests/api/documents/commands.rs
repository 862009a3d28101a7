//! The commands in the documents: each program is known, and accepts its arguments.

use std::collections::BTreeSet;
use std::env;
use std::ffi::OsStr;
use std::fmt::Write;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;
use serde_yaml_ng::Value as Yaml;

use super::{Block, blocks_of, documents, path, read};
use crate::support::CONTRACT;
use crate::support::server_process::{CommandOutput, Run, boxoffice};

/// Programs that are neither in the repository nor Cargo, by the test or the script that runs the documents' commands of them.
const OTHER_PROGRAMS: &[(&str, &[&str])] = &[
    (".ci/run", &["npx", "rm"]),
    ("clients/check", &["mvn", "npm", "openapi-generator-cli", "openapi-python-client", "pip"]),
    ("clients/cli/tests/session.rs", &["boxoffice-api"]),
    ("packaging/check-container", &["podman"]),
    ("packaging/check-deb", &["systemctl", "systemd-sysusers"]),
    ("packaging/check-setup", &["apt-get", "chmod", "chown", "nginx", "tar"]),
    ("packaging/fail2ban/check", &["fail2ban-client"]),
    (
        "tests/api/documents/postgres.rs",
        &["cat", "createdb", "createuser", "date", "dropdb", "ls", "mv", "pg_basebackup", "pg_dump", "pg_restore", "psql", "sed"],
    ),
    ("tests/api/documents/runs.rs", &["curl", "cut", "grep", "head", "install", "openssl", "sqlite3", "tail", "tr"]),
    ("tests/foreign-servers/run", &["python3", "schemathesis"]),
];

/// Records each command instead of running it: bash itself resolves the quotes, the variables and the functions of the scripts.
const RECORDER: &str = r#"
exec 3>&1 >/dev/null
PATH=/nonexistent
# In one write: the commands of a pipe run at the same time.
record() { local IFS=$'\x1f'; printf '%s\x1f%s\x1e' "$*" "$place" >&3; }
command_not_found_handle() { record "$@"; }
"#;

/// A command with its arguments, as the program receives them. Nothing was run, so the outputs of other commands in it are empty.
pub(super) struct Recorded {
    document: String,
    place: String,
    pub(super) words: Vec<String>,
}

/// Returns the shell scripts of a document: its blocks, and those in workflows of build servers.
fn scripts(document: &str) -> Vec<Block> {
    let blocks = blocks_of(document).into_iter().filter_map(|block| match block.language.as_str() {
        "sh" => Some(block),
        "yaml" => Some(Block { text: script_of(&block), ..block }),
        _ => None,
    });
    blocks.collect()
}

/// Returns the scripts of the workflows in a document.
pub(super) fn workflow_scripts(document: &str) -> Vec<String> {
    blocks_of(document).iter().filter(|block| block.language == "yaml").map(script_of).collect()
}

fn script_of(workflow: &Block) -> String {
    let document: Yaml = serde_yaml_ng::from_str(&workflow.text).unwrap_or_else(|error| panic!("{workflow}: {error}"));
    scripts_in(&document).iter().map(|script| format!("{}\n", script.trim_end())).collect()
}

fn scripts_in(workflow: &Yaml) -> Vec<String> {
    match workflow {
        Yaml::Mapping(entries) => {
            let scripts = entries.iter().map(|(key, value)| match (key.as_str(), value) {
                (Some("run"), Yaml::String(script)) => vec![script.clone()],
                (Some("script"), Yaml::Sequence(lines)) => {
                    lines.iter().map(|line| line.as_str().expect("a script has lines").to_owned()).collect()
                }
                _ => scripts_in(value),
            });
            scripts.flatten().collect()
        }
        Yaml::Sequence(entries) => entries.iter().flat_map(scripts_in).collect(),
        _ => Vec::new(),
    }
}

/// Gives a script to bash, and returns what it prints.
fn bash(options: &[&str], script: &str) -> Result<String, String> {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new("bash");
    command.args(options).current_dir(folder.path()).env_clear().env("HOME", folder.path());
    let mut bash = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    bash.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
    let done = CommandOutput::from(bash.wait_with_output().unwrap());
    if done.stderr.is_empty() { Ok(done.stdout) } else { Err(done.stderr) }
}

/// Returns the commands of a document, in the order in which a reader pastes them.
fn recorded(document: &str) -> Vec<Recorded> {
    static PROGRAM_IN_FOLDER: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"(?m)(?:^|[({;|&])\s*(?:\w+=\S* )*([\w.]*/[\w./-]+)").unwrap());
    static REDIRECTION: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"(\s)>>?\s*\S+").unwrap());
    static INPUT: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"(\s)<\s*[^<\s]\S*").unwrap());

    let mut script = RECORDER.to_owned();
    for block in scripts(document) {
        bash(&["-n"], &block.text).unwrap_or_else(|error| panic!("{block}: {error}"));
        // Bash looks up functions first, also if the name is a path.
        for program in PROGRAM_IN_FOLDER.captures_iter(&block.text) {
            writeln!(script, "function {0} {{ record {0} \"$@\"; }}", &program[1]).unwrap();
        }
        let text = REDIRECTION.replace_all(&block.text, "$1>/dev/null");
        let text = INPUT.replace_all(&text, "$1</dev/null");
        write!(script, "place='{block}'\n{text}").unwrap();
    }
    let printed = bash(&[], &script).unwrap_or_else(|error| panic!("{document}: {error}"));
    let commands = printed.split_terminator('\x1e').map(|command| {
        let mut words: Vec<_> = command.split('\x1f').map(str::to_owned).collect();
        Recorded { document: document.to_owned(), place: words.pop().unwrap(), words }
    });
    commands.collect()
}

/// The commands of all documents.
pub(super) static COMMANDS: LazyLock<Vec<Recorded>> =
    LazyLock::new(|| documents().iter().flat_map(|document| recorded(document)).collect());

/// Runs a program, and returns its error messages if it fails.
fn succeed(command: &mut Command) -> Result<(), String> {
    let done = command.run();
    if done.succeeded() { Ok(()) } else { Err(done.stderr) }
}

/// Returns why a command can't work as the document has it.
fn check(words: &[&str]) -> Result<(), String> {
    match words {
        ["cargo", arguments @ ..] => check_cargo(arguments),
        ["runuser", "-u", _, "--", command @ ..] => check(command),
        ["systemd-run", options @ ..] => {
            let is_option = |word: &&str| word.starts_with('-');
            check(&options[options.iter().take_while(|word| is_option(word)).count()..])
        }
        [program, arguments @ ..] if Path::new(program).file_name().is_some_and(|name| name == "boxoffice") => {
            // It reads all arguments before this one.
            let folder = tempfile::tempdir().unwrap();
            succeed(boxoffice(folder.path(), arguments).arg("--help"))
        }
        [script, arguments @ ..] if !script.starts_with('/') && path(script).is_file() => check_script(script, arguments),
        [program, arguments @ ..] => {
            let name = Path::new(program).file_name().unwrap().to_str().unwrap();
            let mut tests = OTHER_PROGRAMS.iter().filter(|(_, programs)| programs.contains(&name));
            let (test, _) = tests.next().ok_or("the program is unknown")?;
            assert!(path(test).is_file(), "{test} does not exist");
            if name == "schemathesis" { check_operations(arguments) } else { Ok(()) }
        }
        [] => Ok(()),
    }
}

/// Checks the patterns by which schemathesis selects operations.
fn check_operations(arguments: &[&str]) -> Result<(), String> {
    for (option, pattern) in arguments.iter().zip(&arguments[1..]) {
        let is_pattern = option.ends_with("-operation-id-regex");
        let matches = |pattern: &str| CONTRACT.operations().any(|operation| Regex::new(pattern).unwrap().is_match(&operation.id));
        if is_pattern && !matches(pattern) {
            return Err(format!("{option} selects no operation"));
        }
    }
    Ok(())
}

/// Checks a command of a script of the repository by its `--help`, or else by its syntax and the usage at its beginning.
fn check_script(script: &str, arguments: &[&str]) -> Result<(), String> {
    if fs::metadata(path(script)).unwrap().permissions().mode() & 0o111 == 0 {
        return Err("it is not executable".to_owned());
    }
    let text = read(script);
    if text.contains("argparse") {
        return succeed(Command::new(path(script)).args(arguments).arg("--help").env("PYTHONDONTWRITEBYTECODE", "1"));
    }
    let mut syntax = if text.starts_with("#!/usr/bin/env python3") {
        let mut python = Command::new("python3");
        python.args(["-c", "import ast, sys; ast.parse(open(sys.argv[1]).read())"]);
        python
    } else {
        let mut bash = Command::new("bash");
        bash.arg("-n");
        bash
    };
    succeed(syntax.arg(path(script)))?;
    let lines = text.lines().take(15).map(|line| line.trim_start_matches(['#', ' ']));
    let mut usages = lines.filter_map(|line| line.strip_prefix(script)).map(|usage| usage.split("   ").next().unwrap());
    let is_usage = |usage: &str| {
        let words: Vec<_> = usage.split_whitespace().collect();
        let required = words.iter().filter(|word| !word.starts_with('[')).count();
        let is_placeholder = |word: &str| word.trim_matches(['[', ']']).chars().all(|letter| letter.is_ascii_uppercase());
        let is_word = |(word, argument): (&&str, &&str)| is_placeholder(word) || word == argument;
        (required..=words.len()).contains(&arguments.len()) && words.iter().zip(arguments).all(is_word)
    };
    if arguments.is_empty() || usages.any(is_usage) { Ok(()) } else { Err("its usage is another one".to_owned()) }
}

/// The packages of the workspace.
static METADATA: LazyLock<Value> = LazyLock::new(|| {
    let mut command = Command::new(env!("CARGO"));
    let metadata = command.args(["metadata", "--no-deps", "--offline", "--format-version", "1"]).current_dir(path("")).run();
    serde_json::from_str(&metadata.stdout).unwrap()
});

/// The tests of this program.
static TESTS: LazyLock<String> = LazyLock::new(|| Command::new(env::current_exe().unwrap()).arg("--list").run().stdout);

fn check_cargo(words: &[&str]) -> Result<(), String> {
    let at = words.iter().position(|word| *word == "--").unwrap_or(words.len());
    let (arguments, rest) = (&words[..at], words.get(at + 1..).unwrap_or_default());
    // In a folder without a package, so that it can't build anything.
    let folder = tempfile::tempdir().unwrap();
    if arguments[0] == "semver-checks" {
        return if read(".ci/semver").contains("cargo semver-checks") { Ok(()) } else { Err("it is unknown".to_owned()) };
    }
    succeed(Command::new(env!("CARGO")).args(arguments).arg("--help").current_dir(folder.path()))?;
    let packages = METADATA["packages"].as_array().unwrap();
    let mut package = "boxoffice";
    for (option, value) in arguments.iter().zip(&arguments[1..]) {
        let is_known = match *option {
            "-p" | "--package" => {
                package = value;
                packages.iter().any(|package| package["name"] == *value)
            }
            "--path" => path(value).join("Cargo.toml").is_file(),
            "--profile" => read("Cargo.toml").contains(&format!("[profile.{value}]")),
            "--test" => packages
                .iter()
                .flat_map(|package| package["targets"].as_array().unwrap())
                .any(|target| target["name"] == *value && target["kind"][0] == "test"),
            _ => true,
        };
        if !is_known {
            return Err(format!("{option} {value} is unknown"));
        }
    }
    match (arguments[0], package) {
        ("run", "boxoffice") => check(&[&["boxoffice"], rest].concat()),
        ("run", "boxoffice-load") if read("benches/src/main.rs").contains("commands_of_readme_are_valid") => Ok(()),
        ("run", _) => Err(format!("no test checks the arguments of {package}")),
        ("test", _) => check_filter(arguments, rest),
        _ => Ok(()),
    }
}

/// Checks that the filter of `cargo test` selects a test.
fn check_filter(arguments: &[&str], rest: &[&str]) -> Result<(), String> {
    let Some(at) = arguments.iter().position(|argument| *argument == "--test") else { return Ok(()) };
    let binary = arguments[at + 1];
    let filters = arguments[at + 2..].iter().chain(rest).filter(|argument| !argument.starts_with("--"));
    for filter in filters {
        let is_known = match binary {
            "api" => TESTS.lines().any(|test| test.contains(filter)),
            // The programs of the other tests may not be built.
            _ => path(&format!("tests/{binary}/{}.rs", filter.trim_end_matches("::").replace("::", "/"))).is_file(),
        };
        if !is_known {
            return Err(format!("no test of {binary} has {filter} in its name"));
        }
    }
    Ok(())
}

/// Checks the files of the repository that a command names.
fn check_files(document: &str, words: &[String]) -> Result<(), String> {
    const FOLDERS: [&str; 6] = ["benches/", "clients/", "docs/", "packaging/", "spec/", "tests/"];
    let here = path(document).parent().unwrap().to_owned();
    for word in words {
        let is_ours = FOLDERS.iter().any(|folder| word.starts_with(folder));
        let is_beside = word.starts_with("../") || word == "generator.yaml";
        let file = if is_ours { path(word) } else { here.join(word) };
        // The shell replaces the star.
        let exists = match word.split_once('*') {
            Some(_) => file.parent().is_some_and(Path::is_dir),
            None => file.exists(),
        };
        if (is_ours || is_beside) && !exists {
            return Err(format!("{word} does not exist"));
        }
    }
    Ok(())
}

#[test]
fn commands_are_valid() {
    let commands = &*COMMANDS;
    let problems: Vec<String> = commands
        .iter()
        .filter_map(|command| {
            let words: Vec<_> = command.words.iter().map(String::as_str).collect();
            let problem = check(&words).and_then(|()| check_files(&command.document, &command.words)).err()?;
            Some(format!("{}: {}: {problem}", command.place, words.join(" ")))
        })
        .collect();

    assert!(problems.is_empty(), "{}", problems.join("\n"));
    assert!(commands.len() > 150, "only {} commands were found", commands.len());
    let words: BTreeSet<_> = commands.iter().flat_map(|command| &command.words).collect();
    let programs: BTreeSet<_> = words.into_iter().filter_map(|word| Path::new(word).file_name()).collect();
    for (test, names) in OTHER_PROGRAMS {
        let unused = names.iter().find(|name| !programs.contains(OsStr::new(name)));
        assert_eq!(unused, None, "no document has this program of {test}");
    }
}

/// Returns the texts of all files below a folder.
fn texts_below(folder: &Path) -> String {
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    paths.map(|path| if path.is_dir() { texts_below(&path) } else { fs::read_to_string(&path).unwrap_or_default() }).collect()
}

/// The variables in commands and units are settings of the program, or read by the tests and their scripts.
#[test]
fn variables_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let print = |arguments: &[&str]| boxoffice(folder.path(), arguments).run().stdout;
    let settings = print(&["config", "table"]) + &print(&["help", "compare"]);
    let tests = texts_below(&path("tests"));
    let variable = Regex::new(r"\b(?:BOXOFFICE|DATABASE|TEST)_[A-Z_]+\b").unwrap();
    let blocks = documents().iter().flat_map(|document| blocks_of(document)).collect::<Vec<_>>();
    let blocks = blocks.iter().filter(|block| block.language != "console");
    let mut found = 0;
    for block in blocks {
        for name in variable.find_iter(&block.text).map(|name| name.as_str()) {
            let is_setting = Regex::new(&format!(r"\b{name}\b")).unwrap().is_match(&settings);
            assert!(is_setting || tests.contains(&format!("\"{name}\"")), "{block}: nothing reads {name}");
            found += 1;
        }
    }
    assert!(found > 10, "only {found} were found");
}

/// A program that a registry has is named with the version that the scripts use. `.ci/run` runs the command of npx as it is.
#[test]
fn versions_are_those_of_the_scripts() {
    let scripts = ["clients/check", "clients/python/pyproject.toml", "tests/foreign-servers/run"].map(read).concat();
    let version = Regex::new(r"^[\w./-]+(?:==|@)[\d.]+$").unwrap();
    let mut found = BTreeSet::new();
    for command in COMMANDS.iter().filter(|command| command.words[0] != "npx") {
        let words = command.words.iter().map(String::as_str).collect::<Vec<_>>();
        for word in words.iter().filter(|word| version.is_match(word)) {
            assert!(scripts.contains(&format!("{word}\"")) || scripts.contains(&format!("{word};")), "{}: {word}", command.place);
            found.insert("version");
        }
        if let ["npm", "run", script] = words[..] {
            let package: Value = serde_json::from_str(&read("clients/typescript/package.json")).unwrap();
            assert!(package["scripts"][script].is_string(), "{}: no script {script}", command.place);
            found.insert("script of npm");
        }
    }
    assert_eq!(found, BTreeSet::from(["script of npm", "version"]));
}
