//! The configuration file, and the commands that show the settings.

mod check;
mod secret_files;

use std::fs::{self, Permissions};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use boxoffice::config::{SmtpServer, media_location};
use boxoffice::kernel::settings::SmtpTls;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::server_process::{CommandOutput, Run, ServerProcess, boxoffice};

/// A folder with a configuration file.
struct Configured {
    folder: TempDir,
    file: PathBuf,
}

impl Configured {
    fn new(text: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("boxoffice.toml");
        fs::write(&file, text).unwrap();
        Self { folder, file }
    }

    /// Returns a command without the variables that would take precedence.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = boxoffice(self.folder.path(), arguments);
        command.env("BOXOFFICE_CONFIG", &self.file).env_remove("BOXOFFICE_LISTEN");
        for limit in ["RATE", "LOGIN_RATE", "FAILED_LOGIN", "CREDENTIAL_CHANGE", "CODE"] {
            command.env_remove(format!("BOXOFFICE_{limit}_LIMIT"));
        }
        command
    }

    fn run(&self, arguments: &[&str]) -> CommandOutput {
        self.command(arguments).run()
    }

    fn write(&self, name: &str, content: &str, mode: u32) -> PathBuf {
        let path = self.folder.path().join(name);
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        path
    }
}

fn occupied_address() -> (TcpListener, String) {
    let occupied = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = occupied.local_addr().unwrap().to_string();
    (occupied, address)
}

#[test]
fn options_take_precedence_over_variables_and_those_over_the_file() {
    let (_occupied, [option, variable, file]) = {
        let addresses = [occupied_address(), occupied_address(), occupied_address()];
        let names = addresses.each_ref().map(|(_, address)| address.clone());
        (addresses, names)
    };
    let configured = Configured::new(&format!("listen = \"{file}\"\n"));

    let by_file = configured.run(&["serve"]);
    let by_variable = configured.command(&["serve"]).env("BOXOFFICE_LISTEN", &variable).run();
    let by_option = configured.command(&["serve", "--listen", &option]).env("BOXOFFICE_LISTEN", &variable).run();

    for (output, address) in [(by_file, &file), (by_variable, &variable), (by_option, &option)] {
        assert!(output.stderr.contains(&format!("cannot listen on {address}")), "{}", output.stderr);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn serves_with_settings_of_the_file() {
    let configured = Configured::new(
        "# Settings of the tests.\nlisten = '127.0.0.1:0'\nminimum-client-version = \"2.0.0\"\nrate-limit = 1_000\n\
         allow-common-passwords = true\ntrusted-proxies = [\"10.0.0.0/8\", \"2001:db8::1\"]\nlog-level = \"debug\"\naccess-log-sample = 0\n",
    );
    let create = ["account", "create", "--username", "esi", "--email", "esi@example.com", "--password", "password1"];

    configured.run(&["migrate"]);
    let created = configured.run(&create);
    let server = ServerProcess::start(configured.command(&["serve", "--config", configured.file.to_str().unwrap()]));
    let time = reqwest::Client::new().get(format!("{}/time", server.address)).header("X-Client-Version", "2.1.0");
    let answered = time.send().await.unwrap().status().as_u16();
    let (_, _, log) = {
        server.signal("TERM");
        server.wait()
    };

    assert!(created.succeeded(), "{}", created.stderr);
    assert_eq!(answered, 401, "the version is accepted, and the key is missing");
    assert!(log.iter().any(|line| line.contains("\"debug\"")), "{log:#?}");
}

#[test]
fn reports_all_problems_of_the_file_at_once() {
    let text = "rate_limt = 3\nlistem = \"x\"\ncurrency = \"GSH\"\nrate-limit = \"many\"\nallow-common-passwords = \"yes\"\n\
        smtp-timeout-seconds = 0\nlog-level = \"warn\"\npublic-url = 3\n[mail]\nfrom = \"a\"\n";
    let configured = Configured::new(text);
    let file = configured.file.display().to_string();

    let rejected = configured.run(&["serve", "--fee-steps", "50,1.99"]);
    let reported = rejected.stderr;

    assert_eq!(rejected.code, Some(2), "{reported}");
    for expected in [
        format!("{file}:1: rate_limt: it is no setting; did you mean `rate-limit`?"),
        format!("{file}:2: listem: it is no setting; did you mean `listen`?"),
        format!("{file}:3: currency: `GSH` is not a currency code"),
        format!("{file}:4: rate-limit: it is a text; give a whole number without quotation marks, such as rate-limit = 600"),
        format!("{file}:5: allow-common-passwords: it is a text; give true or false"),
        format!("{file}:6: smtp-timeout-seconds: `0` is not a whole number from 1 to 600"),
        format!("{file}:7: log-level: `warn` is none of error, warning, info, debug; did you mean `warning`?"),
        format!("{file}:8: public-url: it is a whole number; give a text in quotation marks"),
        format!("{file}:9: mail: it is no setting"),
        "--fee-steps (BOXOFFICE_FEE_STEPS): `50,1.99`".to_owned(),
    ] {
        assert!(reported.contains(&expected), "{expected}\n{reported}");
    }
    assert_eq!(fs::read_dir(configured.folder.path()).unwrap().count(), 1, "nothing was created");
}

#[test]
fn names_unusable_files() {
    for (text, problem) in
        [("listen =\n", "boxoffice.toml:1: it is not TOML"), ("rate-limit = 1\nrate-limit = 2\n", ":2: it is not TOML")]
    {
        let rejected = Configured::new(text).run(&["serve"]);
        assert_eq!(rejected.code, Some(2));
        assert!(rejected.stderr.contains(problem), "{}", rejected.stderr);
    }
    let configured = Configured::new("");
    for path in ["/no such file", "/dev"] {
        let rejected = configured.run(&["migrate", "--config", path]);
        assert_eq!(rejected.code, Some(2));
        assert!(rejected.stderr.contains(&format!("--config (BOXOFFICE_CONFIG): cannot read {path}")), "{}", rejected.stderr);
    }
    assert!(configured.run(&["migrate"]).succeeded(), "an empty file is valid");
}

#[test]
fn suggests_names_of_unknown_variables() {
    let (_occupied, address) = occupied_address();
    let configured = Configured::new("");

    let log = configured.command(&["serve", "--listen", &address]).env("BOXOFFICE_CURENCY", "EUR").run();

    assert!(log.stderr.contains("did you mean `BOXOFFICE_CURRENCY`?"), "{}", log.stderr);
}

#[test]
fn warns_of_readable_configuration_file_with_secret() {
    let configured = Configured::new("");
    for (text, mode, is_warned) in [
        ("database = \"sqlite:SELF.db\"\n", 0o644, true),
        ("database = \"sqlite:SELF.db\"\n", 0o640, false),
        ("rate-limit = 3\n", 0o644, false),
    ] {
        let database = configured.folder.path().join("x").display().to_string();
        configured.write("boxoffice.toml", &text.replace("SELF", &database), mode);
        let log = configured.run(&["migrate"]).stderr;
        assert_eq!(log.contains("may read a configuration file with a secret"), is_warned, "{text}: {log}");
    }
}

#[test]
fn shows_settings_with_their_sources() {
    let configured =
        Configured::new("rate-limit = 5\npublic-url = \"https://tickets.example.com\"\nsmtp-password = \"from the file\"\n");
    let command = |arguments: &[&str]| {
        let mut command =
            configured.command(&[&["config", "show", "--smtp-user", "me", "--smtp", "mail.example.com"], arguments].concat());
        command.env("DATABASE_URL", "postgres://me:hidden@localhost/boxoffice").env("BOXOFFICE_CODE_LIMIT", "7");
        command.env("BOXOFFICE_OTLP_ENDPOINT", "http://me:hidden@localhost:4318");
        command
    };

    let text = command(&[]).run();
    let json = command(&["--json"]).run();
    let settings: Vec<Value> = serde_json::from_str(&json.stdout).unwrap();
    let setting = |key: &str| settings.iter().find(|setting| setting["key"] == key).unwrap_or_else(|| panic!("no {key}"));

    assert_eq!((text.code, json.code), (Some(0), Some(0)), "{}", text.stderr);
    let file = configured.file.display();
    for (key, value, source, location) in [
        ("smtp-user", json!("me"), "flag", None),
        ("code-limit", json!("7"), "environment", Some("BOXOFFICE_CODE_LIMIT".to_owned())),
        ("rate-limit", json!("5"), "file", Some(format!("{file}:1"))),
        ("smtp-password", json!("********"), "file", Some(format!("{file}:3"))),
        ("database", json!("postgres://me:********@localhost/boxoffice"), "environment", Some("DATABASE_URL".to_owned())),
        ("currency", json!("GHS"), "default", None),
        ("media", json!(format!("{}/media", configured.folder.path().display())), "default", None),
        ("trusted-proxies", Value::Null, "default", None),
        ("log-level", json!("info"), "default", None),
    ] {
        let setting = setting(key);
        assert_eq!((&setting["value"], &setting["source"]), (&value, &json!(source)), "{key}");
        assert_eq!(setting["location"].as_str(), location.as_deref(), "{key}");
    }
    assert!(text.stdout.contains("rate-limit") && text.stdout.contains(&format!("file ({file}:1)")), "{}", text.stdout);
    for output in [text, json] {
        assert!(!output.stdout.contains("hidden") && !output.stderr.contains("hidden"));
    }
    let invalid = configured.command(&["config", "show", "--currency", "GSH"]).run();
    assert_eq!(invalid.code, Some(2));
    assert!(invalid.stderr.contains("--currency (BOXOFFICE_CURRENCY): `GSH`") && !invalid.stdout.is_empty());
}

/// Every setting in the file of the Debian package exists, also those in comments.
#[test]
fn settings_of_debian_package_are_valid() {
    let packaged = include_str!("../../packaging/debian/boxoffice.toml");
    let is_key = |text: &str| text.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-');
    let lines = packaged.lines().map(|line| line.trim_start_matches('#'));
    let lines: Vec<&str> = lines.filter(|line| line.split_once(" = ").is_some_and(|(key, _)| is_key(key))).collect();
    let configured = Configured::new("");
    let password = configured.write("smtp-password", "secret", 0o600);
    let text = lines.join("\n").replace("/etc/boxoffice/smtp-password", password.to_str().unwrap());
    configured.write("boxoffice.toml", &text, 0o600);

    let shown = configured.command(&["config", "show", "--json"]).env_remove("BOXOFFICE_DATA_DIR").run();

    assert_eq!(shown.code, Some(0), "{}", shown.stderr);
    let settings: Vec<Value> = serde_json::from_str(&shown.stdout).unwrap();
    let from_file = settings.iter().filter(|setting| setting["source"] == "file").count();
    assert!(from_file > 5 && from_file == lines.len(), "{from_file} of {lines:?}");
}

#[test]
fn listeners_need_different_addresses() {
    let configured = Configured::new("listen = \"127.0.0.1:8097\"\nadmin-listen = \"127.0.0.1:8097\"\n");

    let (check, serve) = (configured.run(&["config", "check"]), configured.run(&["serve"]));

    assert_eq!((check.code, serve.code), (Some(2), Some(2)), "{}", serve.stderr);
    assert!(serve.stderr.contains("boxoffice.toml:2: admin-listen: it is the address of --listen"), "{}", serve.stderr);
}

/// `BOXOFFICE_WRITE=1` writes the table.
#[test]
fn table_in_the_documentation_is_current() {
    const START: &str = "<!-- The table is the output of `boxoffice config table`. -->\n";
    const END: &str = "<!-- end of the table -->\n";
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/operating.md");
    let table = Configured::new("").run(&["config", "table"]).stdout;
    let page = fs::read_to_string(file).unwrap();
    let (before, rest) = page.split_once(START).unwrap();
    let (documented, after) = rest.split_once(END).unwrap();

    if std::env::var_os("BOXOFFICE_WRITE").is_some() {
        fs::write(file, format!("{before}{START}{table}{END}{after}")).unwrap();
        return;
    }

    assert!(documented == table, "docs/operating.md is stale: run this test with BOXOFFICE_WRITE=1");
    for section in documented.split("See [").skip(1) {
        let heading = section.split(']').next().unwrap();
        assert!(page.contains(&format!("\n## {heading}\n")), "there is no section {heading}");
    }
}

/// Returns the value of a setting that `config show` prints with these options.
fn shown(options: &[&str], key: &str) -> Value {
    let output = Configured::new("").run(&[&["config", "show", "--json"], options].concat());
    let settings: Vec<Value> = serde_json::from_str(&output.stdout).unwrap();
    settings.iter().find(|setting| setting["key"] == key).unwrap()["value"].clone()
}

#[test]
fn hides_passwords_of_addresses() {
    for (key, value, expected) in [
        ("database", "sqlite:data/boxoffice.db", "sqlite:data/boxoffice.db"),
        ("database", "postgres://me:secret@db/box", "postgres://me:********@db/box"),
        ("database", "postgres://me:s@cret@db/box?password=secret", "postgres://me:********@db/box?********"),
        ("database", "postgres://db/box", "postgres://db/box"),
        ("database", "a secret", "********"),
        ("read-database", "postgres://me:secret@db/box", "postgres://me:********@db/box"),
        ("otlp-endpoint", "https://me:secret@traces:4318", "https://me:********@traces:4318"),
        ("smtp-password", "sqlite:x", "********"),
    ] {
        assert_eq!(shown(&[&format!("--{key}"), value], key), expected, "{key} {value}");
    }
}

#[test]
fn text_has_columns_and_no_control_characters() {
    let output = Configured::new("").run(&["config", "show", "--smtp-user", "\u{1b}[31mKofi\n"]);

    let text = output.stdout;
    let (header, user) = (text.lines().next().unwrap(), text.lines().find(|line| line.starts_with("smtp-user ")).unwrap());
    assert_eq!(header.find("value"), user.find(" [31mKofi "), "{text}");
    assert_eq!(header.find("source"), user.find("flag"), "{text}");
    assert!(!text.contains('\u{1b}') && text.lines().all(|line| line == line.trim_end()), "{text}");
}

#[test]
fn parses_mail_servers_with_and_without_port() {
    for (text, read) in [
        ("mail.example.com", Some(("mail.example.com", None, SmtpTls::Starttls))),
        ("mail.example.com:465", Some(("mail.example.com", Some(465), SmtpTls::Tls))),
        ("mail.example.com:25", Some(("mail.example.com", Some(25), SmtpTls::Starttls))),
        ("localhost", Some(("localhost", None, SmtpTls::None))),
        ("[::1]:2525", Some(("::1", Some(2525), SmtpTls::None))),
        ("[::1]", Some(("::1", None, SmtpTls::None))),
        ("smtp://mail.example.com", None),
        ("user@mail.example.com", None),
        ("mail.example.com:port", None),
        ("", None),
    ] {
        let server = text.parse::<SmtpServer>().ok();
        let server = server.as_ref().map(|server| (server.host.as_str(), server.port, server.tls()));
        assert_eq!(server, read, "{text}");
    }
}

#[test]
fn parses_folders_and_buckets() {
    for text in ["data/media", "s3://tickets", "s3://tickets/images/2026"] {
        assert_eq!(media_location(text).unwrap().to_string(), text);
    }
    assert_eq!(media_location("data/media").unwrap().folder(), Some(Path::new("data/media")));
}

#[test]
fn rejects_a_bucket_without_a_name() {
    for text in ["s3://", "s3:///prefix", "gs://tickets", ""] {
        assert!(media_location(text).is_err(), "{text}");
    }
}
