//! Runs the commands for PostgreSQL on servers of their own.

use std::fs;
use std::os::unix::fs::{MetadataExt, chown, symlink};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;
use std::thread;
use std::time::Duration;

use tempfile::TempDir;

use super::runs::{MACHINE, Shell, free_port, install_examples};
use super::{path, texts};
use crate::support::server_process::Run;
use crate::support::{PgBinaries, PgCluster};

/// Starts the server in the background, as systemd does, and sends the request to it instead of to nginx.
const SERVICE: &str = r#"
trap 'jobs -p | xargs -r kill; wait' EXIT
unset BOXOFFICE_DATA_DIR
started() {
  [[ $1 == boxoffice.service ]] || return 0
  boxoffice serve --config "$ROOT/etc/boxoffice/boxoffice.toml" 2>"$ROOT/log" &
  while ! grep -q '"msg":"serving"' "$ROOT/log"; do kill -0 $! || { cat "$ROOT/log" >&2; return 1; }; sleep 0.1; done
}
curl() { local url=${!#}; command curl --silent --fail "http://$LISTEN/${url#https://$DOMAIN/}"; }
"#;

/// The machine of `First production set-up`, with a server, but without nginx and systemd.
struct TrialMachine {
    cluster: PgCluster,
    folder: TempDir,
    listen: String,
}

impl TrialMachine {
    /// Creates the folders that Debian and the package have.
    fn create() -> Option<Self> {
        let cluster = PgCluster::create()?;
        let machine = Self { cluster, folder: tempfile::tempdir().unwrap(), listen: format!("127.0.0.1:{}", free_port()) };
        symlink(path("packaging"), machine.folder.path().join("packaging")).unwrap();
        install_examples(&machine.root());
        for directory in ["etc/boxoffice", "etc/nginx/conf.d", "etc/cron.d", "var/lib", "var/backups"] {
            fs::create_dir_all(machine.root().join(directory)).unwrap();
        }
        Some(machine)
    }

    /// Returns the folder that it has instead of `/`.
    fn root(&self) -> PathBuf {
        self.folder.path().join("root")
    }

    /// Returns a shell that runs these commands.
    fn shell(&self, commands: &str) -> Shell {
        let socket = self.cluster.folder().to_str().unwrap();
        let shell = Shell::new(self.folder.path()).env("PGHOST", socket).env("PGUSER", "postgres").env("LISTEN", &self.listen);
        shell.script(SERVICE).script(&commands.replace("/var/run/postgresql", socket))
    }

    /// Runs the commands and returns what they print.
    fn run(&self, commands: &str) -> String {
        self.shell(commands).on_machine(&self.root()).run()
    }

    /// Runs the lines of the cron table as cron does each night, without the folders of the system's administration in `PATH`. Returns
    /// their number. `end` is added to each.
    fn back_up(&self, end: &str) -> usize {
        let table = fs::read_to_string(self.root().join("etc/cron.d/boxoffice")).unwrap();
        for line in table.lines() {
            // Before the command, a line has five fields for the time, and the user.
            let command = line.splitn(7, ' ').nth(6).unwrap().replace("\\%", "%");
            self.run(&format!("unset -f runuser\nPATH=/usr/bin:/bin\n{command}{end}"));
        }
        table.lines().count()
    }

    fn create_account(&self, name: &str) {
        let options = format!("--username {name} --email {name}@example.com --password 'a long password'");
        self.run(&format!("boxoffice account create --config /etc/boxoffice/boxoffice.toml {options}"));
    }

    /// Returns the usernames of all accounts but the administrator's, in their order.
    fn accounts(&self) -> String {
        let sql = "select string_agg(username, ' ' order by username) from accounts where username <> 'administrator'";
        self.run(&format!("psql -Atc \"{sql}\" boxoffice")).trim().to_owned()
    }

    fn databases(&self) -> usize {
        self.run("psql -Atc \"select datname from pg_database where datname like 'boxoffice%'\"").lines().count()
    }
}

/// The commands of `First production set-up`, and two restores of the nightly backups: early on the day after they were made, when those
/// of a week ago have today's name, and of a backup that was made after the first restore. Then a backup and a restore that fail.
#[test]
fn first_production_set_up_works() {
    let Some(machine) = TrialMachine::create() else { return };
    let root = machine.root();

    let commands = texts("docs/operating.md", "## First production set-up", "sh").concat();
    let set_up = machine.shell(&commands).replace("listen = \"127.0.0.1:8081\"", &format!("listen = \"{}\"", machine.listen));
    let printed = set_up.replace("127.0.0.1:9180", "127.0.0.1:0").on_machine(&root).run();
    assert!(printed.contains("administrator's key") && printed.contains("ready"), "{printed}");

    let nginx = fs::read_to_string(root.join("etc/nginx/conf.d/boxoffice.conf")).unwrap();
    assert!(!nginx.contains("8082") && nginx.contains("/etc/nginx/certificate.pem"), "{nginx}");
    machine.create_account("first");
    let made = machine.back_up("");
    let backups = root.join("var/backups/boxoffice");
    assert_eq!(fs::metadata(&backups).unwrap().mode() & 0o777, 0o700);
    assert_eq!(fs::read_dir(&backups).unwrap().count(), made);
    let files = machine.run(&format!("tar -tzf {}/files-*.tar.gz", backups.display()));
    assert!(files.contains("boxoffice/media/"), "{files}");
    for secret in ["boxoffice/mail", ".key", "first-start"] {
        assert!(!files.contains(secret), "{files}");
    }

    let of_last_week = "cd /var/backups/boxoffice\nfor backup in *; do mv $backup ${backup/-?/-0}; echo old > $backup; touch -d '7 days ago' $backup; done";
    machine.run(of_last_week);
    machine.create_account("lost");
    let keys = ["mail.key", "ticket.key"].map(|key| root.join("var/lib/boxoffice").join(key));
    keys.iter().for_each(|key| fs::rename(key, machine.folder.path().join(key.file_name().unwrap())).unwrap());
    fs::remove_dir_all(root.join("var/lib/boxoffice")).unwrap();
    let restore = texts("docs/operating.md", "### Restore of the nightly backups", "sh");
    machine.run(&restore.concat());
    assert!(keys.iter().all(|key| key.is_file()) && root.join("var/lib/boxoffice/media").is_dir());
    assert_eq!(machine.accounts(), "first");

    machine.create_account("second");
    machine.back_up("");
    machine.create_account("lost");
    machine.run(&restore.concat());
    assert_eq!(machine.accounts(), "first second", "the backup is not that of the restored database");
    assert_eq!(machine.databases(), 3);

    // A backup that fails leaves the last one as it is.
    let table = root.join("etc/cron.d/boxoffice");
    let cron = fs::read_to_string(&table).unwrap();
    let failing = [("--format=custom boxoffice", "--format=custom missing"), (" boxoffice ||", " missing ||")];
    assert!(failing.iter().all(|(name, _)| cron.contains(name)), "{cron}");
    fs::write(&table, failing.iter().fold(cron, |cron, (name, missing)| cron.replace(name, missing))).unwrap();
    let list = "stat --format='%n %i %s' /var/backups/boxoffice/*-*";
    let before = machine.run(list);
    machine.back_up(" || true");
    assert_eq!(machine.run(list), before);

    // In a shell without `set -e`, into which the commands are pasted.
    let damage = "for dump in /var/backups/boxoffice/database-*; do truncate -s 2000 \"$dump\"; done\nset +e\n";
    machine.run(&format!("{damage}{}test $? != 0", restore[..2].concat()));
    assert_eq!((machine.accounts().as_str(), machine.databases()), ("first second", 4), "a damaged backup was used");
}

/// Returns the URL of a database for the user `boxoffice`.
fn url(cluster: &PgCluster, name: &str) -> String {
    cluster.url.replace("postgres@localhost/postgres", &format!("boxoffice@localhost/{name}"))
}

/// Returns the URL of a database as the document has it.
fn documented(name: &str) -> String {
    format!("postgres://boxoffice@localhost/{name}?host=/var/run/postgresql")
}

/// Waits for a moment, and returns `false`.
fn pause() -> bool {
    thread::sleep(Duration::from_millis(100));
    false
}

/// A copy of a SQLite database, its dump, and a restore of the server to a moment.
#[test]
fn database_is_copied_and_restored() {
    let Ok(binaries) = PgBinaries::find() else { return };
    let folder = tempfile::tempdir().unwrap();
    // PostgreSQL writes its log there.
    let backup = binaries.create_folder(&std::env::temp_dir()).unwrap();
    let at = |name: &str| backup.path().join(name);
    let owner = fs::metadata(backup.path()).unwrap();
    fs::create_dir(at("wal")).unwrap();
    chown(at("wal"), Some(owner.uid()), Some(owner.gid())).unwrap();
    let in_backup = |text: &str| text.replace("/backup", backup.path().to_str().unwrap());
    let [archive, restore] = &texts("docs/operating.md", "### PostgreSQL", "ini")[..] else { panic!("two blocks of settings") };
    fs::write(at("archive.conf"), in_backup(archive)).unwrap();
    let mut cluster = PgCluster::create_with_settings(&at("archive.conf")).unwrap();
    let shell = |cluster: &PgCluster, script: &str| {
        let shell = Shell::new(folder.path()).env("PGHOST", cluster.folder()).env("PGUSER", "postgres");
        shell.env("DATABASE_URL", url(cluster, "boxoffice")).script(script)
    };

    let copy = texts("docs/operating.md", "### From SQLite to PostgreSQL", "sh").concat();
    let copy = shell(&cluster, MACHINE).script("env -u DATABASE_URL boxoffice migrate\n").script(&copy);
    let copy = copy.replace("/var/lib/boxoffice/", "data/");
    copy.replace(&documented("boxoffice"), &url(&cluster, "boxoffice")).run();
    let query =
        |cluster: &PgCluster, sql: &str| shell(cluster, &format!("psql -Atc \"{sql}\" boxoffice")).run().trim().to_owned();
    assert!(folder.path().join("data/sqlite/boxoffice.db").is_file() && !folder.path().join("data/boxoffice.db").exists());
    query(&cluster, &texts("docs/operating.md", "### Change of a password", "sql")[0]);
    let second = url(&cluster, "boxoffice").replace("boxoffice@", "boxoffice_b@");
    shell(
        &cluster,
        &format!("boxoffice migrate --database '{second}'\nboxoffice key create --role public --database '{second}'"),
    )
    .run();
    let [dump, base_copy] = &texts("docs/operating.md", "### PostgreSQL", "sh")[..] else { panic!("two blocks of commands") };
    let restored = url(&cluster, "boxoffice_new");
    shell(&cluster, MACHINE).script(dump).replace(&documented("boxoffice_new"), &restored).run();

    let mut copying = Command::new("bash");
    copying.arg("-euc").arg(in_backup(base_copy)).uid(owner.uid()).gid(owner.gid()).current_dir(backup.path());
    let copied = copying.env_clear().env("PATH", "/usr/bin:/bin").env("PGHOST", cluster.folder()).run();
    assert!(copied.succeeded(), "{}", copied.stderr);
    let create = |name: &str| {
        let password = "--password 'a long password'";
        shell(&cluster, &format!("boxoffice account create --username {name} --email {name}@example.com {password}")).run();
    };
    create("before");
    let moment = query(&cluster, "select clock_timestamp()");
    create("after");
    let log = query(&cluster, "select pg_walfile_name(pg_switch_wal())");
    let is_archived = || query(&cluster, "select last_archived_wal from pg_stat_archiver") == log;
    assert!((0..600).any(|_| is_archived() || pause()), "{log} is not archived");
    cluster.kill();

    let base = fs::read_dir(backup.path()).unwrap().map(|entry| entry.unwrap().path());
    let base = base.into_iter().find(|path| path.file_name().unwrap().to_str().unwrap().starts_with("base-")).unwrap();
    let documented = restore.lines().find_map(|line| line.strip_prefix("recovery_target_time = ")).unwrap();
    fs::write(at("restore.conf"), in_backup(restore).replace(documented, &format!("'{moment}'"))).unwrap();
    let cluster = PgCluster::restore(&base, &at("restore.conf"));

    assert_eq!(query(&cluster, "select username from accounts"), "before");
    shell(&cluster, "boxoffice check").run();
}
