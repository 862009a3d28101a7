//! `boxoffice config check`.

use std::collections::BTreeMap;
use std::fs;

use chrono::Datelike;
use serde_json::Value;

use super::{Configured, occupied_address};
use crate::support::postgres;
use crate::support::server_process::{CommandOutput, Run, ServerProcess};

/// Returns the state and the text of each check.
fn checks(output: &CommandOutput) -> BTreeMap<String, (String, String)> {
    let report: Value = serde_json::from_str(&output.stdout).unwrap_or_else(|_| panic!("{}", output.stderr));
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let checks = report["checks"].as_array().unwrap().iter();
    checks.map(|check| (text(&check["name"]), (text(&check["state"]), text(&check["text"])))).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn check_reports_state_of_database_without_changing_it() {
    let database = postgres::new_database().await;
    for url in
        [None, database.as_ref().map(|database| database.url.as_str())].into_iter().take(1 + usize::from(database.is_some()))
    {
        let configured = Configured::new("listen = \"127.0.0.1:0\"\n");
        let with_database = |arguments: &[&str]| {
            let mut command = configured.command(arguments);
            command.envs(url.map(|url| ("DATABASE_URL", url)));
            command
        };
        let check = || with_database(&["config", "check", "--json"]).run();
        let files = || fs::read_dir(configured.folder.path()).unwrap().count();

        let before = check();
        assert_eq!((before.code, files()), (Some(0), 1), "{}", before.stderr);
        assert!(checks(&before)["database"].1.contains("has no tables yet"), "{:?}", checks(&before));
        ServerProcess::start(with_database(&["serve"])).stop();
        let (stored, after) = (files(), check());
        assert_eq!((after.code, files()), (Some(0), stored), "{}", after.stderr);
        assert!(checks(&after)["database"].1.contains("has all tables of this version"), "{:?}", checks(&after));
        let server = ServerProcess::start(with_database(&["serve"]));
        assert_eq!(check().code, Some(0), "while a server runs");
        server.stop();
        let other = with_database(&["config", "check", "--json", "--currency", "EUR"]).run();
        assert_eq!((other.code, checks(&other)["currency"].0.as_str()), (Some(1), "failed"));
        let text = with_database(&["config", "check"]).run();
        assert!(text.stdout.contains("ok     database"), "{}", text.stdout);
    }
}

#[test]
fn check_reports_every_unusable_dependency() {
    let (_occupied, address) = occupied_address();
    let configured = Configured::new("database = \"postgres://me:hidden@127.0.0.1:1/boxoffice\"\nsmtp = \"127.0.0.1:1\"\n");
    let media = configured.write("media", "a file", 0o600);
    let key = configured.write("mail.key", "no key", 0o600);
    // No machine has the address of the other listener (RFC 5737).
    let settings = format!(
        "listen = \"{address}\"\nadmin-listen = \"192.0.2.1:9090\"\nmail-key-file = \"{}\"\nkeep-audit-days = 730\n\
         audit-archive = \"{}/archive\"\notlp-endpoint = \"http://me:hidden@127.0.0.1:1/traces?token=hidden\"\n",
        key.display(),
        configured.file.display()
    );
    fs::write(&configured.file, fs::read_to_string(&configured.file).unwrap() + &settings).unwrap();

    let failed = configured.command(&["config", "check", "--json"]).env("BOXOFFICE_CURENCY", "EUR").run();
    let found = checks(&failed);
    let invalid = configured.run(&["config", "check", "--json", "--media", media.to_str().unwrap(), "--currency", "GSH"]);
    let report: Value = serde_json::from_str(&invalid.stdout).unwrap();

    assert_eq!(failed.code, Some(1), "{found:?}");
    for (name, state, text) in [
        ("database", "failed", "no server accepts connections there"),
        ("mail", "failed", "cannot connect to the mail server 127.0.0.1:1: "),
        ("mail-key-file", "failed", "mail.key contains no key: it must have 32 bytes in base64"),
        ("listen", "warning", "in use"),
        ("admin-listen", "failed", "cannot listen on 192.0.2.1:9090"),
        ("audit-archive", "failed", "boxoffice.toml is not a folder"),
        ("media", "failed", "media is not a folder"),
        ("otlp-endpoint", "failed", "the collector can't be reached"),
        ("data-dir", "ok", "can be written"),
        ("disk-space", &found["disk-space"].0, "B free"),
        ("environment", "warning", "did you mean `BOXOFFICE_CURRENCY`?"),
    ] {
        assert_eq!(found[name].0, state, "{name}: {found:?}");
        assert!(found[name].1.contains(text) && !found[name].1.contains("hidden"), "{name}: {found:?}");
    }
    assert_eq!((invalid.code, report["problems"].as_array().unwrap().len()), (Some(2), 2), "{report}");
}

#[test]
fn check_names_folders_that_will_be_created() {
    let configured = Configured::new("listen = \"127.0.0.1:0\"\nkeep-audit-days = 730\naudit-archive = \"SELF/new/archive\"\n");
    let text = fs::read_to_string(&configured.file).unwrap();
    fs::write(&configured.file, text.replace("SELF", &configured.folder.path().display().to_string())).unwrap();

    let checked = configured.run(&["config", "check", "--json"]);

    let found = checks(&checked);
    assert_eq!(checked.code, Some(0), "{found:?}");
    assert!(["media", "audit-archive"].iter().all(|name| found[*name].1.ends_with("will be created")), "{found:?}");
}

#[test]
fn check_reports_validity_of_the_certificate() {
    for (days, state, code) in [(90, "ok", 0), (5, "warning", 0), (-5, "failed", 1)] {
        let configured = Configured::new("listen = \"127.0.0.1:0\"\n");
        let mut parameters = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        let day = chrono::Utc::now() + chrono::TimeDelta::days(days);
        parameters.not_before = rcgen::date_time_ymd(2020, 1, 1);
        parameters.not_after =
            rcgen::date_time_ymd(day.year(), u8::try_from(day.month()).unwrap(), u8::try_from(day.day()).unwrap());
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate = configured.write("certificate.pem", &parameters.self_signed(&key).unwrap().pem(), 0o600);
        let key = configured.write("key.pem", &key.serialize_pem(), if days == 90 { 0o644 } else { 0o600 });
        let files = ["--tls-certificate", certificate.to_str().unwrap(), "--tls-key", key.to_str().unwrap()];

        let checked = configured.run(&[&["config", "check", "--json"], &files[..]].concat());

        let (found, text) = &checks(&checked)["tls-certificate"];
        assert_eq!((checked.code, found.as_str()), (Some(code), state), "{text}");
        assert!(text.contains(&day.date_naive().to_string()), "{text}");
        assert_eq!(checked.stderr.contains("may read a file with a secret"), days == 90, "{}", checked.stderr);
    }
}
