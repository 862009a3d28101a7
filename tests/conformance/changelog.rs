//! `.ci/changelog`: the change log against the contract of the last release's tag.

use std::fs;
use std::path::Path;
use std::process::Command;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// Runs a command in a folder. Returns whether it has succeeded, and its output.
fn run(folder: &Path, command: &str) -> (bool, String) {
    let output = Command::new("bash")
        .args(["-c", command])
        .current_dir(folder)
        .env("BOXOFFICE", env!("CARGO_BIN_EXE_boxoffice"))
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env_remove("GIT_DIR")
        .output()
        .unwrap();
    (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn change_log_has_changes_since_last_release() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("spec")).unwrap();
    let contract = fs::read_to_string(format!("{ROOT}/spec/openapi.yaml")).unwrap();
    fs::write(at("spec/openapi.yaml"), &contract).unwrap();
    fs::write(at("CHANGELOG.md"), "# Change log\n\n## Unreleased\n\nThe first release.\n\n## 3.0.0\n\nOlder.\n").unwrap();
    let changelog = |arguments: &str| run(folder.path(), &format!("{ROOT}/.ci/changelog {arguments}"));
    let commit = "git init -q && git add -A && git -c user.name=a -c user.email=a@example.com commit -qm one";
    assert!(run(folder.path(), commit).0);

    assert_eq!(changelog(""), (true, "no release yet: nothing to compare with\n".to_owned()));
    assert!(run(folder.path(), "git tag v3.0.0").0);
    let added = contract.replacen("    ServerTime:\n", "    ServerTime:\n      x-new: true\n", 1);
    let added = added.replacen("        utc:\n", "        leap:\n          type: integer\n        utc:\n", 1);
    assert_ne!(added, contract);
    fs::write(at("spec/openapi.yaml"), &added).unwrap();
    assert!(changelog("").1.contains("CHANGELOG.md is stale"));
    assert!(changelog("--write").0);
    assert!(changelog("").0);
    let expected = "# Change log\n\n## Unreleased\n\n### Compatible\n\n- `ServerTime.leap`: the property was added\n\n\
                    0 changes of descriptions or examples.\n\n## 3.0.0\n\nOlder.\n";
    assert_eq!(fs::read_to_string(at("CHANGELOG.md")).unwrap(), expected);

    fs::write(at("spec/openapi.yaml"), added.replacen("operationId: time_get", "operationId: clock_get", 1)).unwrap();
    let (succeeded, output) = changelog("--write");
    assert!(!succeeded && output.contains("breaking changes since v3.0.0"), "{output}");

    fs::write(at("CHANGELOG.md"), "# Change log\n\n## 3.1.0\n\nThe release before.\n").unwrap();
    for arguments in ["", "--write"] {
        let (succeeded, output) = changelog(arguments);
        assert!(!succeeded && output.contains("has no section"), "{output}");
    }
}
