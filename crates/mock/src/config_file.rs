//! Configuration file of the mock: the options of the command line, as YAML.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use boxoffice_openapi::to_plain_string;
use serde::Deserialize;
use serde_json::Value;

use crate::{CallbackTargets, DelayRange, FaultRule};

/// The options in a configuration file. Options of the command line take precedence.
#[derive(Debug, Default, PartialEq)]
pub struct MockConfigFile {
    /// The document, relative to the folder of the configuration file.
    pub spec: Option<PathBuf>,
    /// The address to listen on.
    pub listen: Option<String>,
    /// The seed for generated data.
    pub seed: Option<u64>,
    /// The only accepted key.
    pub key: Option<String>,
    /// True if created and changed resources are stored.
    pub stateful: bool,
    /// True if the document is loaded again when it changes.
    pub watch: bool,
    /// The delay of every response.
    pub delay: Option<DelayRange>,
    /// Rules for failing requests.
    pub faults: Vec<FaultRule>,
    /// The servers that callbacks may be sent to.
    pub callbacks: Option<CallbackTargets>,
}

/// The file as it is written. A delay is a number or a range.
#[derive(Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "options such as `seed: 7`")]
#[derive(Default)]
struct Written {
    spec: Option<PathBuf>,
    listen: Option<String>,
    seed: Option<u64>,
    key: Option<String>,
    stateful: bool,
    watch: bool,
    delay: Option<Value>,
    faults: Vec<String>,
    callbacks: Option<String>,
}

impl MockConfigFile {
    /// Reads a configuration file.
    ///
    /// # Errors
    /// Returns an error if the file can't be read, or has an unknown option or an invalid value.
    pub fn read(file: &Path) -> anyhow::Result<Self> {
        let text = fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
        let is_empty = text.lines().all(|line| line.trim().is_empty() || line.trim_start().starts_with('#'));
        let written = if is_empty { Ok(Written::default()) } else { serde_yaml_ng::from_str(&text) };
        let written: Written = written.with_context(|| format!("{} is no configuration of the mock", file.display()))?;
        let in_option = |option: &str| format!("{}: {option}", file.display());
        let delay = written.delay.map(|delay| to_plain_string(&delay).parse()).transpose().with_context(|| in_option("delay"))?;
        let callbacks = written.callbacks.map(|targets| targets.parse()).transpose().with_context(|| in_option("callbacks"))?;
        let faults = written.faults.iter().map(|fault| fault.parse()).collect::<anyhow::Result<_>>();
        let folder = file.parent().unwrap_or(Path::new(""));
        Ok(Self {
            spec: written.spec.map(|spec| folder.join(spec)),
            listen: written.listen,
            seed: written.seed,
            key: written.key,
            stateful: written.stateful,
            watch: written.watch,
            delay,
            faults: faults.with_context(|| in_option("faults"))?,
            callbacks,
        })
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;

    fn read(text: &str) -> anyhow::Result<MockConfigFile> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("mock.yaml");
        fs::write(&file, text).unwrap();
        MockConfigFile::read(&file)
            .map(|read| MockConfigFile { spec: read.spec.map(|spec| spec.file_name().unwrap().into()), ..read })
    }

    #[test]
    fn reads_every_option() {
        let text = "spec: api/openapi.yaml\nlisten: 127.0.0.1:9000\nseed: 7\nkey: k\nstateful: true\nwatch: true\ndelay: 20..200\n\
            faults:\n  - 5% 503\n  - 50% 409 POST /orders\ncallbacks: loopback\n";
        let expected = MockConfigFile {
            spec: Some("openapi.yaml".into()),
            listen: Some("127.0.0.1:9000".to_owned()),
            seed: Some(7),
            key: Some("k".to_owned()),
            stateful: true,
            watch: true,
            delay: Some("20..200".parse().unwrap()),
            faults: vec!["5% 503".parse().unwrap(), "50% 409 POST /orders".parse().unwrap()],
            callbacks: Some(CallbackTargets::Loopback),
        };
        assert_eq!(read(text).unwrap(), expected);
        assert_eq!(read("# nothing\n").unwrap(), MockConfigFile::default());
        assert_eq!(read("delay: 100").unwrap().delay, Some("100".parse().unwrap()));
    }

    #[test]
    fn rejects_unknown_options_and_invalid_values() {
        for (text, part) in [
            ("sped: a", "sped"),
            ("delay: fast", "delay"),
            ("faults: [often]", "faults"),
            ("seed: x", "seed"),
            ("callbacks: ''", "callbacks"),
        ] {
            let error = format!("{:#}", read(text).unwrap_err());
            assert!(error.contains(part), "{error}");
        }
    }
}
