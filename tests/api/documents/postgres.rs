//! Runs the commands for PostgreSQL on servers of their own.

use std::fs;
use std::os::unix::fs::{MetadataExt, chown, symlink};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

use regex::Regex;

use super::runs::{Shell, free_port};
use super::{path, read, texts};
use crate::support::server_process::Run;
use crate::support::{PgBinaries, PgCluster};

/// Starts the server in the background, as systemd does, and sends the request to it instead of to nginx.
const SERVICE: &str = r#"
trap 'kill $(jobs -p)' EXIT
unset BOXOFFICE_DATA_DIR
started() {
  [[ $1 == boxoffice.service ]] || return 0
  boxoffice serve --config "$ROOT/etc/boxoffice/boxoffice.toml" 2>"$ROOT/log" &
  while ! grep -q '"msg":"serving"' "$ROOT/log"; do kill -0 $! || { cat "$ROOT/log" >&2; return 1; }; sleep 0.1; done
}
curl() { local url=${!#}; command curl --silent --fail "http://$LISTEN/${url#https://$DOMAIN/}"; }
"#;

/// Runs the command as the user of the test.
const RUNUSER: &str = "runuser() { shift 3; \"$@\"; }\n";

/// Puts the examples of the Debian package to their places below a folder.
fn install_examples(root: &Path) {
    let manifest = read("Cargo.toml");
    for asset in Regex::new(r#"\["(packaging/\S+)/\*", "(usr/share/doc/\S+)""#).unwrap().captures_iter(&manifest) {
        let target = root.join(&asset[2]);
        fs::create_dir_all(&target).unwrap();
        for example in fs::read_dir(path(&asset[1])).unwrap().map(|entry| entry.unwrap().path()) {
            fs::copy(&example, target.join(example.file_name().unwrap())).unwrap();
        }
    }
}

/// The commands of `First production set-up`, on one machine with a server, but without nginx and systemd.
#[test]
fn first_production_set_up_works() {
    let Some(cluster) = PgCluster::create() else { return };
    let socket = cluster.folder().to_str().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("root");
    symlink(path("packaging"), folder.path().join("packaging")).unwrap();
    install_examples(&root);
    for directory in ["etc/boxoffice", "etc/nginx/conf.d", "etc/cron.d", "var/lib", "var/backups"] {
        fs::create_dir_all(root.join(directory)).unwrap();
    }
    let listen = format!("127.0.0.1:{}", free_port());
    let shell = || Shell::new(folder.path()).env("PGHOST", socket).env("PGUSER", "postgres").env("LISTEN", &listen);

    let commands = texts("docs/operating.md", "## First production set-up", "sh").concat();
    let set_up = shell().script(SERVICE).script(&commands).replace("/var/run/postgresql", socket);
    let set_up = set_up.replace("listen = \"127.0.0.1:8081\"", &format!("listen = \"{listen}\""));
    let printed = set_up.replace("127.0.0.1:9180", "127.0.0.1:0").on_machine(&root).run();
    assert!(printed.contains("administrator's key") && printed.contains("ready"), "{printed}");

    let nginx = fs::read_to_string(root.join("etc/nginx/conf.d/boxoffice.conf")).unwrap();
    assert!(!nginx.contains("8082") && nginx.contains("/etc/nginx/certificate.pem"), "{nginx}");
    let table = fs::read_to_string(root.join("etc/cron.d/boxoffice")).unwrap();
    for line in table.lines() {
        // Five fields for the time, and the user.
        let command = line.splitn(7, ' ').nth(6).unwrap().replace("\\%", "%");
        shell().script(&command).on_machine(&root).run();
    }
    let backups = root.join("var/backups/boxoffice");
    assert_eq!(fs::metadata(&backups).unwrap().mode() & 0o777, 0o700);
    assert_eq!(fs::read_dir(&backups).unwrap().count(), table.lines().count());
    shell().script(&format!("pg_restore --list {}/database-*.dump", backups.display())).run();
    let files = shell().script(&format!("tar -tzf {}/files-*.tar.gz", backups.display())).run();
    assert!(files.contains("boxoffice/media/"), "{files}");
    for secret in ["boxoffice/mail", ".key", "first-start"] {
        assert!(!files.contains(secret), "{files}");
    }

    let keys = ["mail.key", "ticket.key"].map(|key| root.join("var/lib/boxoffice").join(key));
    keys.iter().for_each(|key| fs::rename(key, folder.path().join(key.file_name().unwrap())).unwrap());
    fs::remove_dir_all(root.join("var/lib/boxoffice")).unwrap();
    let restore = texts("docs/operating.md", "### Restore of the nightly backups", "sh").concat();
    shell().script(SERVICE).script(&restore).replace("/var/run/postgresql", socket).on_machine(&root).run();
    assert!(keys.iter().all(|key| key.is_file()) && root.join("var/lib/boxoffice/media").is_dir());
    let settings = fs::read_to_string(root.join("etc/boxoffice/boxoffice.toml")).unwrap();
    assert!(settings.contains("/boxoffice_restored?host="), "{settings}");
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

    let copy = &texts("docs/operating.md", "### From SQLite to PostgreSQL", "sh")[0];
    let copy =
        shell(&cluster, "systemctl() { test $1 = stop; }\nenv -u DATABASE_URL boxoffice migrate\n").script(RUNUSER).script(copy);
    let copy = copy.replace("/var/lib/boxoffice/", "data/");
    copy.replace(&documented("boxoffice"), &url(&cluster, "boxoffice")).run();
    let query =
        |cluster: &PgCluster, sql: &str| shell(cluster, &format!("psql -Atc \"{sql}\" boxoffice")).run().trim().to_owned();
    query(&cluster, &texts("docs/operating.md", "### Change of a password", "sql")[0]);
    let second = url(&cluster, "boxoffice").replace("boxoffice@", "boxoffice_b@");
    shell(
        &cluster,
        &format!("boxoffice migrate --database '{second}'\nboxoffice key create --role public --database '{second}'"),
    )
    .run();
    let [dump, base_copy] = &texts("docs/operating.md", "### PostgreSQL", "sh")[..] else { panic!("two blocks of commands") };
    let restored = url(&cluster, "boxoffice_restored");
    shell(&cluster, RUNUSER).script(dump).replace(&documented("boxoffice_restored"), &restored).run();

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
