//! Files with secrets.

use std::fs;
use std::process::Command;

use boxoffice::config::SecretFile;

use super::Configured;
use crate::support::postgres;
use crate::support::server_process::{Run, ServerProcess};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reads_secrets_from_files() {
    let database = postgres::new_database().await;
    let configured = Configured::new("smtp = \"mail.example.com\"\nsmtp-user = \"boxoffice\"\nlisten = \"127.0.0.1:0\"\n");
    let password = configured.write("password", "a secret\n", 0o600);
    let sqlite = format!("sqlite:{}\n", configured.folder.path().join("other.db").display());
    let url = configured.write("url", database.as_ref().map_or(&sqlite, |database| &database.url), 0o644);
    let with_files = |command: &mut Command| {
        command.env("DATABASE_URL_FILE", &url).env("BOXOFFICE_SMTP_PASSWORD_FILE", &password);
    };

    let mut migrate = configured.command(&["migrate"]);
    with_files(&mut migrate);
    let migrated = migrate.run();
    let mut serve = configured.command(&["serve"]);
    with_files(&mut serve);
    ServerProcess::start(serve).stop();

    assert!(migrated.succeeded(), "{}", migrated.stderr);
    assert!(migrated.stderr.contains("all users of this machine may read a file with a secret"), "{}", migrated.stderr);
    assert!(!configured.folder.path().join("boxoffice.db").exists());
    assert_eq!(configured.folder.path().join("other.db").exists(), database.is_none());
    let account = ["account", "create", "--username", "esi", "--email", "esi@example.com"];
    let created = configured.command(&account).env("BOXOFFICE_PASSWORD_FILE", &password).run();
    assert_eq!(created.code, Some(2), "no setting has the password for the mail server");
    configured.command(&["migrate"]).env_remove("BOXOFFICE_CONFIG").run();
    let mut create = configured.command(&account);
    let created = create.env("BOXOFFICE_PASSWORD_FILE", &password).env_remove("BOXOFFICE_CONFIG").run();
    assert!(created.succeeded(), "{}", created.stderr);
    let without = configured.command(&account).run();
    assert_eq!(without.code, Some(2));
    assert!(without.stderr.contains("--password-file or --password is needed"), "{}", without.stderr);
}

#[test]
fn rejects_unusable_files_with_secrets() {
    let configured =
        Configured::new("smtp = \"mail.example.com\"\nsmtp-user = \"boxoffice\"\nsmtp-password-file = \"/no such file\"\n");
    let password = configured.write("password", "a secret\n", 0o600);
    let empty = configured.write("empty", "\n", 0o600);
    let (password, empty) = (password.to_str().unwrap(), empty.to_str().unwrap());

    for (arguments, problem) in [
        (["serve", "--smtp-password", "hidden"], "smtp-password-file: --smtp-password (BOXOFFICE_SMTP_PASSWORD) is set too"),
        (["serve", "--smtp-password-file", empty], "--smtp-password-file (BOXOFFICE_SMTP_PASSWORD_FILE): "),
        (["serve", "--database-url-file", password], "a database is sqlite:PATH or postgres://USER@HOST/NAME"),
        (["serve", "--read-database-url-file", password], "a database is sqlite:PATH or postgres://USER@HOST/NAME"),
        (["serve", "--read-database", "sqlite:x.db"], "a standby is postgres://USER@HOST/NAME"),
        (
            ["serve", "--read-database", "postgres://me:hidden@db/x"],
            "--read-database (BOXOFFICE_READ_DATABASE): SQLite has no standby",
        ),
        (["serve", "--aws-secret-access-key-file", password], "it has no effect without a bucket in --media"),
        (["serve", "--listen", "127.0.0.1:0"], "boxoffice.toml:3: smtp-password-file: cannot read /no such file"),
    ] {
        let rejected = configured.run(&arguments);
        let reported = rejected.stderr;
        assert_eq!(rejected.code, Some(2), "{reported}");
        assert!(
            reported.contains(problem) && !reported.contains("a secret") && !reported.contains("hidden"),
            "{problem}: {reported}"
        );
    }
    let url = configured.write("url", "sqlite:y.db\n", 0o600);
    let both =
        configured.command(&["migrate", "--database-url-file", url.to_str().unwrap()]).env("DATABASE_URL", "sqlite:x.db").run();
    let reported = both.stderr;
    assert!(reported.contains("--database-url-file (DATABASE_URL_FILE): --database (DATABASE_URL) is set too"), "{reported}");
}

fn read_secret(content: &[u8]) -> Result<String, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("secret");
    fs::write(&path, content).unwrap();
    SecretFile::read(path.to_str().unwrap()).map(|file| file.secret.0).map_err(|error| format!("{error:#}"))
}

#[test]
fn reads_one_line_without_its_end() {
    for content in ["a secret", "a secret\n", "a secret\r\n"] {
        assert_eq!(read_secret(content.as_bytes()).unwrap(), "a secret");
    }
}

#[test]
fn rejects_files_without_a_secret() {
    let large = "x".repeat(64 * 1024 + 1);
    for (content, problem) in [
        (b"".as_slice(), "is empty"),
        (b"\n", "is empty"),
        (b"one\ntwo\n", "has several lines"),
        (large.as_bytes(), "is larger than 64 KiB"),
        (b"\xff\xfe", "cannot read"),
    ] {
        let error = read_secret(content).unwrap_err();
        assert!(error.contains(problem), "{error}");
    }
    assert!(SecretFile::read("/dev/null").unwrap_err().to_string().contains("is not a file"));
    assert!(SecretFile::read("/no such file").unwrap_err().to_string().contains("cannot read /no such file"));
}
