//! The command line.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use boxoffice_client::Client;
use serde_json::{Value, json};

use crate::support::server_process::{Run, ServerProcess, boxoffice, first_credentials, last_word};
use crate::support::{fetch_url, id_of, postgres};

#[test]
fn drift_reports_by_exit_status_and_json() {
    let folder = tempfile::tempdir().unwrap();
    let mut document = boxoffice::contract::load().unwrap().document.clone();
    document["paths"]["/time"]["get"]["tags"] = json!(["Time"]);
    let changed = folder.path().join("changed.yaml");
    std::fs::write(&changed, document.to_string()).unwrap();

    let none = boxoffice(folder.path(), &["drift"]).run();
    let some = boxoffice(folder.path(), &["drift", "--format", "json", "--spec", changed.to_str().unwrap()]).run();
    let failed = boxoffice(folder.path(), &["drift", "--spec", "no such file"]).run();

    assert_eq!((none.code, some.code, failed.code), (Some(0), Some(1), Some(2)));
    assert!(none.stdout.ends_with(" 0 differences\n"), "{}", none.stdout);
    let differences: Value = serde_json::from_str(&some.stdout).unwrap();
    assert_eq!(differences.as_array().unwrap().len(), 1);
    assert_eq!((&differences[0]["operation"], &differences[0]["what"]), (&json!("GET /time"), &json!("tags")));
    assert!(failed.stderr.contains("no such file"));
}

#[test]
fn reports_unreachable_database() {
    let folder = tempfile::tempdir().unwrap();

    for (url, code, message) in [
        ("mysql://localhost/boxoffice", 2, "--database (DATABASE_URL): a database is sqlite:PATH or postgres://USER@HOST/NAME"),
        ("sqlite:/dev/null/boxoffice.db", 1, "/dev/null/boxoffice.db: cannot make the folder /dev/null"),
    ] {
        let rejected = boxoffice(folder.path(), &["migrate", "--database", url]).run();
        assert_eq!(rejected.code, Some(code), "{url}");
        assert!(rejected.stderr.contains(message), "{}", rejected.stderr);
    }
}

#[test]
fn reports_invalid_mail_server_without_password() {
    let folder = tempfile::tempdir().unwrap();
    let password = "the post is slow";

    let arguments = ["serve", "--smtp", "mail.example.com", "--smtp-ca", "no such file"];
    let missing = boxoffice(folder.path(), &arguments).run();
    let help = boxoffice(folder.path(), &["serve", "--help"]).env("BOXOFFICE_SMTP_PASSWORD", password).run();
    let alone = boxoffice(folder.path(), &["serve"]).env("BOXOFFICE_SMTP_PASSWORD", password).run();

    assert!(missing.stderr.contains("cannot read no such file"), "{}", missing.stderr);
    assert!(help.stdout.contains("BOXOFFICE_SMTP_PASSWORD") && !help.stdout.contains(password));
    assert!(!alone.succeeded() && alone.stderr.contains("--smtp-user"), "{}", alone.stderr);
    assert!(!alone.stderr.contains(password));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn first_start_writes_credentials_to_private_file() {
    let folder = tempfile::tempdir().unwrap();

    let server = ServerProcess::start(boxoffice(folder.path(), &["serve"]));
    let address = server.address.clone();
    let answered = fetch_url(&format!("{address}/time")).await.status().as_u16();
    assert_eq!(server.stop(), "", "standard output may be a log");
    let file = folder.path().join("first-start.txt");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let printed = first_credentials(folder.path());
    std::fs::remove_file(&file).unwrap();
    let again = ServerProcess::start(boxoffice(folder.path(), &["serve"]));
    let staff = Client::connect(&again.address, &last_word(&printed, "administrator's key")).unwrap();
    let anyone = Client::connect(&again.address, &last_word(&printed, "public key")).unwrap();

    assert_eq!(answered, 412, "it had no version");
    assert_eq!(staff.account_list().send().await.unwrap().total, 1);
    let log_in = anyone
        .session_create()
        .body_map(|body| body.identification("administrator").password(last_word(&printed, "administrator's password")));
    assert_eq!(log_in.send().await.unwrap().account.role.to_string(), "administrator");
    assert_eq!(again.stop(), "");
    assert!(!file.exists(), "the second start made nothing");
    assert!(folder.path().join("boxoffice.db").exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn creates_keys_and_accounts_beside_running_server() {
    let folder = tempfile::tempdir().unwrap();
    let server = ServerProcess::start(boxoffice(folder.path(), &["serve"]));
    let account = ["account", "create", "--username", "esi", "--email", "esi@example.com", "--password", "correct horse"];

    let created = boxoffice(folder.path(), &account).run();
    let twice = boxoffice(folder.path(), &account).run();
    let number = created.stdout.trim().to_owned();
    let key = boxoffice(folder.path(), &["key", "create", "--role", "customer", "--account", &number]).run();
    let nobody = boxoffice(folder.path(), &["key", "create", "--role", "customer", "--account", "ZZ-00000000"]).run();
    let wrong =
        boxoffice(folder.path(), &["account", "create", "--username", "e", "--email", "esi", "--password", "short"]).run();

    let key = key.stdout;
    assert_eq!((key.len(), key.trim().len()), (33, 32), "the key and nothing else");
    let esi = Client::connect(&server.address, key.trim()).unwrap();
    assert_eq!(esi.account_get().number(number).send().await.unwrap().username, "esi");
    assert_eq!((twice.code, nobody.code, wrong.code), (Some(1), Some(1), Some(1)));
    assert!(nobody.stderr.contains("no account has the number ZZ-00000000"));
    let message = wrong.stderr;
    assert!(["username", "password", "email"].iter().all(|name| message.contains(name)), "{message}");
    server.stop();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn demo_fills_empty_database_only() {
    let folder = tempfile::tempdir().unwrap();

    let filled = boxoffice(folder.path(), &["demo"]).run();
    let again = boxoffice(folder.path(), &["demo"]).run();
    let server = ServerProcess::start(boxoffice(folder.path(), &["serve"]));
    let anyone = Client::connect(&server.address, &last_word(&filled.stdout, "public key")).unwrap();

    assert_eq!(anyone.published_event_list().send().await.unwrap().total, 3);
    let log_in = anyone.session_create().body_map(|body| body.identification("ama").password("a demo password"));
    let ama = log_in.send().await.unwrap();
    let ama_client = Client::connect(&server.address, &ama.key).unwrap();
    assert_eq!(ama_client.account_ticket_list().number(ama.account.number.as_str()).send().await.unwrap().total, 8);
    assert_eq!(ama_client.account_transfer_list().number(ama.account.number.as_str()).send().await.unwrap().total, 1);
    assert_eq!(anyone.zone_list().send().await.unwrap().total, 1);
    assert_eq!(again.code, Some(1));
    assert!(again.stderr.contains("not empty"));
    server.stop();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn database_url_selects_database() {
    let Some(database) = postgres::new_database().await else { return };
    let folder = tempfile::tempdir().unwrap();

    let migrated = boxoffice(folder.path(), &["migrate"]).env("DATABASE_URL", &database.url).run();
    let key = boxoffice(folder.path(), &["key", "create", "--role", "public", "--database", &database.url]).run();
    let mut serve = boxoffice(folder.path(), &["serve"]);
    serve.env("DATABASE_URL", &database.url);
    let server = ServerProcess::start(serve);
    let anyone = Client::connect(&server.address, key.stdout.trim()).unwrap();

    assert!(migrated.succeeded());
    assert_eq!(anyone.region_list().send().await.unwrap().total, 0);
    assert!(!folder.path().join("boxoffice.db").exists());
    server.stop();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mock_serves_any_document_until_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("greetings.yaml");
    let document = "{openapi: 3.0.3, info: {title: greetings, version: '1'}, paths: {/hello: {get: {responses: {'200': \
        {description: '', content: {text/plain: {example: Good morning}}}}}}}}";
    std::fs::write(&file, document).unwrap();

    let rejected = boxoffice(folder.path(), &["mock", "--spec", "no such file"]).run();
    let server = ServerProcess::start(boxoffice(folder.path(), &["mock", "--spec", file.to_str().unwrap()]));
    let greeting = fetch_url(&format!("{}/hello", server.address)).await.text().await.unwrap();
    let address = server.address.clone();
    let printed = server.stop();

    assert!(rejected.stderr.contains("no such file"), "{}", rejected.stderr);
    assert_eq!(greeting, "Good morning");
    assert!(printed.contains(&format!("Mock server for greetings at {address} (operations: 1)")), "{printed}");
    assert!(!folder.path().join("boxoffice.db").exists(), "it keeps nothing");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_are_private_to_the_user() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("new/data");
    // The usual umask: other users may read new files.
    let with_umask = |arguments: &[&str]| {
        let program = boxoffice(&data, arguments);
        let mut command = std::process::Command::new("sh");
        command.args(["-c", "umask 022; exec \"$0\" \"$@\""]).arg(program.get_program()).args(program.get_args()).env_clear();
        command.envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command
    };

    let filled = with_umask(&["demo"]).run();
    assert!(filled.succeeded(), "{}", filled.stderr);
    let key = with_umask(&["key", "create", "--role", "administrator"]).run().stdout.trim().to_owned();
    let server = ServerProcess::start(with_umask(&["serve"]));
    let staff = Client::connect(&server.address, &key).unwrap();
    let event = id_of(&staff.event_list().send().await.unwrap().entries[0].self_).to_owned();
    let banner = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR42mNoAAAAggCB2kUIOwAAAABJRU5ErkJggg==";
    staff.event_update().event(event).body_map(|body| body.banner(banner.to_owned())).send().await.unwrap();
    let account = staff.account_list().send().await.unwrap().entries[0].email.clone();
    staff.reset_create().body_map(|body| body.email(account)).send().await.unwrap();
    while !data.join("mail").exists() {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }

    let created = modes(&data);
    for name in
        ["boxoffice.db", "boxoffice.db-wal", "boxoffice.db-shm", "mail.key", "ticket.key", "media", "media/banner", "mail"]
    {
        assert!(created.iter().any(|(path, _)| path == name), "{name} is not in {created:?}");
    }
    assert!(created.iter().any(|(path, _)| path.starts_with("media/banner/")), "{created:?}");
    for (path, mode) in &created {
        assert_eq!(*mode, if data.join(path).is_dir() { 0o700 } else { 0o600 }, "{path}");
    }
    server.stop();

    // As an earlier version has left them.
    for (path, _) in &created {
        let path = data.join(path);
        if path.exists() {
            let wide = if path.is_dir() { 0o755 } else { 0o644 };
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(wide)).unwrap();
        }
    }
    std::fs::set_permissions(&data, std::fs::Permissions::from_mode(0o755)).unwrap();
    let migrated = with_umask(&["key", "create", "--role", "public"]).run();
    let logged = migrated.stderr;
    for (path, old) in
        [("boxoffice.db", "0644"), ("mail.key", "0644"), ("ticket.key", "0644"), ("media/banner", "0755"), ("", "0755")]
    {
        let path = data.join(path).display().to_string();
        let is_about_it = |entry: &Value| entry["path"] == *path.trim_end_matches('/') && entry["old_mode"] == old;
        let entries = logged.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        assert_eq!(entries.filter(is_about_it).count(), 1, "{path}: {logged}");
    }
    for (path, mode) in modes(&data) {
        assert_eq!(mode & 0o077, 0, "{path}");
    }
}

#[test]
fn folders_of_other_programs_keep_their_mode() {
    let folder = tempfile::tempdir().unwrap();
    let (data, media) = (folder.path().join("data"), folder.path().join("home"));
    for (path, content) in [("data/notes", "x"), ("home/banner/1", "x"), ("home/photo", "x")] {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
    let paths = [data.clone(), media.clone(), media.join("banner"), media.join("photo"), media.join("banner/1")];
    for path in &paths {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    boxoffice(&data, &["migrate"]).run();
    let created = boxoffice(&data, &["key", "create", "--role", "public", "--media", media.to_str().unwrap()]).run();

    let modes = paths.each_ref().map(|path| path.metadata().unwrap().permissions().mode() & 0o777);
    let logged = created.stderr;
    assert_eq!((created.code, modes), (Some(0), [0o755; 5]), "{logged}");
    for file in [data.join("notes"), media.join("photo")] {
        assert!(logged.contains(&format!("\"file\":\"{}\"", file.display())), "{logged}");
    }
}

/// Returns the path and the mode of everything in a folder.
fn modes(folder: &Path) -> Vec<(String, u32)> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(inner) = folders.pop() {
        for entry in std::fs::read_dir(inner).unwrap().map(Result::unwrap) {
            let path = entry.path();
            // A temporary file of a mail may be renamed meanwhile.
            let Ok(metadata) = entry.metadata() else { continue };
            found.push((path.strip_prefix(folder).unwrap().display().to_string(), metadata.permissions().mode() & 0o7777));
            if metadata.is_dir() {
                folders.push(path);
            }
        }
    }
    found
}

#[test]
fn accepts_common_passwords_by_option() {
    let folder = tempfile::tempdir().unwrap();
    let create = ["account", "create", "--username", "esi", "--email", "esi@example.com", "--password", "password1"];

    boxoffice(folder.path(), &["migrate"]).run();
    let rejected = boxoffice(folder.path(), &create).run();
    let accepted = boxoffice(folder.path(), &create).env("BOXOFFICE_ALLOW_COMMON_PASSWORDS", "true").run();

    assert!(rejected.stderr.contains("is among the most common passwords"), "{}", rejected.stderr);
    assert!(accepted.succeeded(), "{}", accepted.stderr);
}
