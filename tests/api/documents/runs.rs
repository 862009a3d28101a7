//! Runs commands of the documents, with the program of the tests, in temporary folders and on other ports.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::net::{TcpListener, UdpSocket};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use boxoffice_conformance::baseline::Baseline;
use parking_lot::Mutex;
use regex::Regex;

use super::commands::{COMMANDS, workflow_scripts};
use super::{path, read, texts};
use crate::support::ToolProcess;
use crate::support::server_process::{Run, ServerProcess, boxoffice};

/// Replaces programs of the operating system that change the machine. `$ROOT` is a folder instead of `/`.
pub(super) const MACHINE: &str = r#"
apt-get() { :; }
nginx() { test "$1" = -t; }
runuser() { shift 3; "$@"; }
su() { bash -euc "$3"; }
systemd-run() { :; }
systemd-sysusers() { :; }
fail2ban-client() { test "$1" = reload; }
# The test can't give files to other users.
chown() { :; }
install() {
  local arguments=()
  while (($#)); do case $1 in -o | -g) shift 2 ;; *) arguments+=("$1"); shift ;; esac; done
  command install "${arguments[@]}"
}
systemctl() {
  local unit=${!#}
  [[ $1 == daemon-reload || $unit == *.* || $unit == nginx ]] || unit=$unit.service
  case $1 in
    daemon-reload) ;;
    enable) test -e "packaging/systemd/$unit"; started "$unit" ;;
    start) started "$unit" ;;
    stop | reload | restart) ;;
    *) return 1 ;;
  esac
}
started() { :; }
"#;

/// A shell with the program of the tests, in a folder. The data of the program are in its `data`.
pub(super) struct Shell {
    command: Command,
    script: String,
}

impl Shell {
    pub(super) fn new(folder: &Path) -> Self {
        let program = PathBuf::from(boxoffice(folder, &[]).get_program());
        let mut command = Command::new("bash");
        command.current_dir(folder).env_clear().env("HOME", folder).env("BOXOFFICE_DATA_DIR", folder.join("data"));
        command.env("PATH", format!("{}:/usr/sbin:/usr/bin:/sbin:/bin", program.parent().unwrap().display()));
        Self { command, script: String::new() }
    }

    pub(super) fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// Adds commands. Those of the source tree run the program of the tests.
    pub(super) fn script(mut self, commands: &str) -> Self {
        let cargo = Regex::new(r"cargo run (?:-q )?--release --|target/release/boxoffice").unwrap();
        self.script += &cargo.replace_all(commands, "boxoffice");
        self
    }

    /// Replaces a text of the commands, which must be in them.
    pub(super) fn replace(mut self, text: &str, by: &str) -> Self {
        assert!(self.script.contains(text), "no `{text}` in {}", self.script);
        self.script = self.script.replace(text, by);
        self
    }

    /// Replaces `/etc`, `/usr` and `/var` by folders below `$ROOT`.
    pub(super) fn on_machine(mut self, root: &Path) -> Self {
        let absolute = Regex::new(r#"([\s"'=:])/(etc|usr|var)/"#).unwrap();
        self.script = absolute.replace_all(&self.script, format!("$1{}/$2/", root.display())).into_owned();
        self.script.insert_str(0, MACHINE);
        self.env("ROOT", root)
    }

    /// Runs all commands, which must succeed, and returns what they print.
    pub(super) fn run(mut self) -> String {
        let done = self.command.arg("-euc").arg(&self.script).run();
        assert!(done.succeeded(), "{}\n{}", done.stderr, self.script);
        done.stdout
    }
}

/// Puts the examples of the Debian package to their places below a folder.
pub(super) fn install_examples(root: &Path) {
    let manifest = read("Cargo.toml");
    for asset in Regex::new(r#"\["(packaging/\S+)/\*", "(usr/share/doc/\S+)""#).unwrap().captures_iter(&manifest) {
        let target = root.join(&asset[2]);
        fs::create_dir_all(&target).unwrap();
        for example in fs::read_dir(path(&asset[1])).unwrap().map(|entry| entry.unwrap().path()) {
            fs::copy(&example, target.join(example.file_name().unwrap())).unwrap();
        }
    }
}

/// Returns the number of a free port, below those that the system gives to sockets without a number. Until this process ends, a UDP
/// socket reserves the number for it among all test processes, and leaves it free for the TCP socket of a server.
pub(super) fn free_port() -> u16 {
    static RESERVATIONS: Mutex<Vec<UdpSocket>> = Mutex::new(Vec::new());
    let reserve = |port: &u16| {
        let reservation = UdpSocket::bind(("127.0.0.1", *port));
        reservation.map(|reservation| RESERVATIONS.lock().push(reservation)).is_ok()
    };
    (20_000..30_000).find(|port| reserve(port) && TcpListener::bind(("127.0.0.1", *port)).is_ok()).unwrap()
}

/// Returns the commands without those that start a server or a mock in another terminal.
fn without_servers(blocks: &[String]) -> String {
    let lines = blocks.iter().flat_map(|block| block.lines());
    lines
        .filter(|line| !line.ends_with(" serve") && !line.ends_with(" mock") && !line.contains(" serve --"))
        .fold(String::new(), |script, line| script + line + "\n")
}

#[test]
fn first_sale_works() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let server = ServerProcess::start(boxoffice(&data, &["serve"]));

    let steps = without_servers(&texts("README.md", "## First sale", "sh"));
    let printed = Shell::new(folder.path()).script(&steps).replace("http://127.0.0.1:8080", &server.address).run();

    assert_eq!(printed.matches("\"serial\"").count(), 2, "{printed}");
}

/// The customer of the sample data buys tickets, and an operator refunds them.
#[test]
fn sale_with_sample_data_works() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let steps = texts("docs/operating.md", "## Sample data", "sh");
    let shell = || Shell::new(folder.path());
    let demo = "/tmp/boxoffice-demo";
    shell().script(&without_servers(&steps[..1])).replace(demo, data.to_str().unwrap()).run();
    let server = ServerProcess::start(boxoffice(&data, &["serve"]));

    let sale = shell().script(&steps[1]).script("echo\necho $ORDER\n").replace(demo, data.to_str().unwrap());
    let printed = sale.replace("http://127.0.0.1:8080", &server.address).run();
    assert!(printed.contains("HTTP/1.1 201 Created"), "{printed}");

    let order = printed.lines().last().unwrap();
    let administration = shell().script(&texts("docs/operating.md", "## Administration", "sh").concat());
    // Elsewhere than on a terminal, it needs `--yes`.
    let confirmed = administration.replace("17637202000001", order).replace("orders refund", "orders refund --yes");
    let printed = confirmed.run();
    assert!(printed.contains("ama@example.com") && printed.contains(order), "{printed}");
}

#[test]
fn settings_and_baseline_are_valid() {
    let folder = tempfile::tempdir().unwrap();
    let settings = folder.path().join("boxoffice.toml");
    fs::write(&settings, &texts("docs/operating.md", "## Settings", "toml")[0]).unwrap();
    let baseline = folder.path().join("baseline.yaml");
    fs::write(&baseline, &texts("docs/qa.md", "### Baseline", "yaml")[0]).unwrap();

    let mut check = boxoffice(folder.path(), &["config", "check", "--config", settings.to_str().unwrap()]);
    let checked = check.env_remove("BOXOFFICE_RATE_LIMIT").run();

    assert!(checked.succeeded(), "{}", checked.stdout);
    assert!(Baseline::read(&baseline).is_ok());
}

/// All servers of the documents start with their options, but for their addresses and folders.
#[test]
fn servers_start() {
    let folder = tempfile::tempdir().unwrap();
    let certificate = texts("docs/operating.md", "## First production set-up", "sh");
    let certificate = certificate.iter().find(|block| block.starts_with("openssl")).unwrap();
    Shell::new(folder.path()).env("DOMAIN", "example.com").script(certificate).replace("/etc/nginx/", "").run();
    let mut started = BTreeSet::new();
    for command in &*COMMANDS {
        let [program, serve, options @ ..] = &command.words[..] else { continue };
        // A test of the standby has its databases.
        if !program.ends_with("boxoffice") || serve != "serve" || options.contains(&"--database".to_owned()) {
            continue;
        }
        let mut arguments = vec!["serve"];
        for option in options.chunk_by(|_, next| !next.starts_with("--")) {
            if option[0] != "--listen" && option[0] != "--data-dir" {
                arguments.extend(option.iter().map(String::as_str));
            }
        }
        if started.insert(arguments.join(" ")) {
            let mut server = boxoffice(&folder.path().join("data"), &arguments);
            server.current_dir(folder.path());
            drop(ServerProcess::start(server));
        }
    }
    assert!(started.len() >= 4, "{started:?}");
}

#[test]
fn commands_for_sqlite_work() {
    let folder = tempfile::tempdir().unwrap();
    let blocks = |heading| texts("docs/operating.md", heading, "sh").concat();
    let shell = || Shell::new(folder.path());

    let account = shell().script(
        "boxoffice migrate > log; boxoffice account create --username head --email head@example.com --password 'a long password'",
    );
    let account = account.run();
    let keys = shell().script(&blocks("## First start and keys")).replace("NUMBER", account.trim()).run();
    shell().script(&blocks("### Templates")).replace("/etc/boxoffice/mail", "mail-templates").run();
    let vacuum = r#"python3 -c 'import sqlite3, sys; sqlite3.connect(sys.argv[1]).execute(sys.argv[2])' "$@""#;
    shell().script(&format!("sqlite3() {{ {vacuum}; }}\n")).script(&blocks("## Erasing accounts")).run();
    let backups = without_servers(&texts("docs/operating.md", "### SQLite", "sh"));
    shell().script(&backups).replace("/var/lib/boxoffice", "restored").run();

    assert_eq!(keys.lines().count(), 2, "{keys}");
    assert!(folder.path().join("mail-templates/base.html").exists());
    let check = shell().script("boxoffice check").env("BOXOFFICE_DATA_DIR", folder.path().join("restored")).run();
    assert!(!check.is_empty());
}

/// The files of the systemd units and of fail2ban are put to the places of the Debian package.
#[test]
fn installation_works() {
    let folder = tempfile::tempdir().unwrap();
    symlink(path("packaging"), folder.path().join("packaging")).unwrap();
    fs::create_dir_all(folder.path().join("target/dist")).unwrap();
    fs::write(folder.path().join("target/dist/boxoffice"), "the program").unwrap();
    let root = folder.path().join("root");
    for fail2ban in ["etc/fail2ban/filter.d", "etc/fail2ban/jail.d"] {
        fs::create_dir_all(root.join(fail2ban)).unwrap();
    }

    install_examples(&root);
    let systemd = texts("docs/operating.md", "## systemd", "sh").concat();
    let fail2ban = texts("docs/operating.md", "## Logs", "sh").concat();
    Shell::new(folder.path()).script(&systemd).script(&fail2ban).on_machine(&root).run();

    let unit = fs::read_to_string(root.join("etc/systemd/system/boxoffice.service")).unwrap();
    let program = unit.lines().find_map(|line| line.strip_prefix("ExecStart=")).unwrap().split(' ').next().unwrap();
    for file in
        [program, "/etc/boxoffice/boxoffice.toml", "/etc/sysusers.d/boxoffice.conf", "/etc/fail2ban/jail.d/boxoffice.conf"]
    {
        assert!(root.join(&file[1..]).is_file(), "{file}");
    }
    assert!(root.join("etc/systemd/system/boxoffice.socket").is_file() && root.join("var/lib/boxoffice").is_dir());
    assert!(
        unit.contains("/etc/boxoffice/boxoffice.toml") && root.join("etc/fail2ban/filter.d/boxoffice-payments.conf").exists()
    );
}

/// A mock, its comparison, its responses by `Prefer`, and a comparison with known findings.
#[test]
fn mock_and_comparison_work() {
    let folder = tempfile::tempdir().unwrap();
    let first = texts("docs/qa.md", "# QA: drift, mock, comparison and proxy", "sh");
    assert_eq!(first, texts("docs/qa.md", "### Checking the mock", "sh"));
    let mock = ToolProcess::start(&mut boxoffice(folder.path(), &["mock"]));
    fs::write(folder.path().join("baseline.yaml"), &texts("docs/qa.md", "### Baseline", "yaml")[0]).unwrap();
    let run = |blocks: &[String], operations: &str| {
        let shell = Shell::new(folder.path()).env("BOXOFFICE_ONLY", operations).script(&without_servers(blocks));
        shell.replace("http://127.0.0.1:8081", &mock.address).run()
    };

    let compared = run(&first, "Orders,Zones");
    let preferred = run(&texts("docs/qa.md", "### Choosing the response", "sh"), "");
    let with_baseline = run(&texts("docs/qa.md", "### Baseline", "sh"), "Orders");

    assert!(compared.contains("0 findings") && folder.path().join("report/report.html").exists(), "{compared}");
    assert!(preferred.contains("409 Conflict") && preferred.contains("section.sold-out"), "{preferred}");
    assert!(with_baseline.contains("0 findings"), "{with_baseline}");
}

/// The comparison of a real server, by hand and by the workflow for GitHub, and a recording of it for the mock.
#[test]
fn server_is_compared_and_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let (data, mut serve) = (folder.path().join("data"), texts("docs/qa.md", "### Checking a real server", "sh"));
    let comparison = serve.split_off(1);
    let options: Vec<_> = serve[0].split_once(" serve ").unwrap().1.split_whitespace().collect();
    let server = ServerProcess::start(boxoffice(&data, &[&["serve"], &options[..]].concat()));
    let mock = ToolProcess::start(&mut boxoffice(&data, &["mock"]));

    let both = Shell::new(folder.path()).env("BOXOFFICE_ONLY", "Zones").script(&comparison.concat());
    // The second server is a mock: findings are expected.
    let both =
        both.script(texts("docs/qa.md", "### Comparing two servers", "sh")[0].trim()).script(" || test $? = 1\necho \"$KEY\"\n");
    let both = both.replace("http://127.0.0.1:8080", &server.address).replace("http://127.0.0.1:8081", &mock.address);
    let printed = both.run();
    assert!(printed.contains("The server matches the document"), "{printed}");

    let key = printed.lines().last().unwrap();
    let proxy = texts("docs/qa.md", "## Proxy", "sh")[0].replace("http://127.0.0.1:8080", &server.address);
    let options: Vec<_> = proxy.split_once(" proxy ").unwrap().1.split_whitespace().collect();
    let mut command = boxoffice(&data, &[&["proxy"], &options[..]].concat());
    let proxy = ToolProcess::start(command.current_dir(folder.path()));
    let request = format!("curl -sf {}/countries -H 'X-API-Key: {key}' -H 'X-Client-Version: 3.0.0'", proxy.address);
    Shell::new(folder.path()).script(&request).run();
    assert!(proxy.stop().success(), "it has findings");

    let options = texts("docs/qa.md", "### Recording", "sh")[0].split_once(" mock ").unwrap().1.trim().to_owned();
    let mut command = boxoffice(&data, &[&["mock"], &options.split(' ').collect::<Vec<_>>()[..]].concat());
    let recorded = ToolProcess::start(command.current_dir(folder.path()));
    let request = format!("curl -sf {}/countries -H 'X-API-Key: any' -H 'X-Client-Version: 3.0.0'", recorded.address);
    assert!(Shell::new(folder.path()).script(&request).run().contains("Ghana"));
}

#[test]
fn github_workflow_works() {
    let folder = tempfile::tempdir().unwrap();
    let steps = workflow_scripts("docs/qa.md").into_iter().find(|script| script.contains("GITHUB_ENV")).unwrap();
    let address = format!("127.0.0.1:{}", free_port());

    // Each step of a workflow begins with the variables that the steps before have written.
    let shell = Shell::new(folder.path()).env("GITHUB_ENV", folder.path().join("variables")).env("BOXOFFICE_ONLY", "Zones");
    let shell = shell.env("BOXOFFICE_LISTEN", &address).script("trap 'kill $(jobs -p)' EXIT\n").script(&steps);
    let shell = shell.replace("cargo build --release\n", "").replace("127.0.0.1:8080", &address);
    let printed = shell.replace("boxoffice compare", "set -a\nsource \"$GITHUB_ENV\"\nboxoffice compare").run();

    assert!(printed.contains("The server matches the document"), "{printed}");
    assert!(folder.path().join("report/junit.xml").exists());
}
