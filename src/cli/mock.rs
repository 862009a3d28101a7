//! The command `mock`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use boxoffice_http::error::one_line;
use boxoffice_http::log::LevelControl;
use boxoffice_http::{Listener, ServerHandle};
use boxoffice_mock::{CallbackTargets, DelayRange, FaultRule, FileWatcher, MockConfigFile, MockSettings};
use boxoffice_openapi::Contract;
use clap::Args;
use slog::{Logger, info, warn};

use super::print;
use super::signals::{StopSignals, handle_other_signals};
use crate::config::{InvalidSettings, ListenAddress, Setting, TlsOptions, boolean, setting};
use crate::contract;

/// The default address.
const LISTEN: &str = "127.0.0.1:8081";

/// Help on the `Prefer` header.
pub const HELP: &str = "\
The mock validates each request against the document and rejects an invalid one as the platform does.
The header `Prefer` selects the response:
  Prefer: code=409            the response with this status
  Prefer: example=sold-out    the example with this name
  Prefer: dynamic=true        data generated from the schema, even if there is an example
  Prefer: delay=250           sent after this many milliseconds, at most 60000
  Prefer: scope=customer      as for a key with this scope: public, customer, administrator, redeemer, or none for an unknown key
Separate several preferences with commas. The response header `Preference-Applied` lists those that were applied.";

#[derive(Debug, Args)]
pub struct MockOptions {
    /// Address to listen on [default: 127.0.0.1:8081]
    #[arg(long, env = "BOXOFFICE_LISTEN", value_name = "ADDRESS", value_parser = setting(str::parse::<ListenAddress>))]
    listen: Option<Setting<ListenAddress>>,
    #[command(flatten)]
    tls: TlsOptions,
    /// OpenAPI 3 document to serve, YAML or JSON, or the folder with it [default: the built-in contract]
    #[arg(long, env = "BOXOFFICE_SPEC", value_name = "FILE")]
    spec: Option<PathBuf>,
    /// Seed for generated data: the same request and seed give the same data [default: 0]
    #[arg(long, env = "BOXOFFICE_SEED", value_name = "NUMBER")]
    seed: Option<u64>,
    /// The only accepted API key; other keys get 403 [default: any key]
    #[arg(long, env = "BOXOFFICE_KEY", hide_env_values = true)]
    key: Option<String>,
    /// Store what is posted to a collection, so that it can be read, listed, changed and deleted until the mock stops
    #[arg(long, env = "BOXOFFICE_STATEFUL", value_name = "BOOL", num_args = 0..=1, require_equals = true,
        default_missing_value = "true", value_parser = boolean)]
    stateful: Option<bool>,
    /// Load the document again when one of its files changes; stored resources are lost
    #[arg(long, env = "BOXOFFICE_WATCH", value_name = "BOOL", num_args = 0..=1, require_equals = true,
        default_missing_value = "true", value_parser = boolean)]
    watch: Option<bool>,
    /// Delay of every response in milliseconds: a number, or a range such as 20..200
    #[arg(long, env = "BOXOFFICE_DELAY", value_name = "DELAY", value_parser = str::parse::<DelayRange>)]
    delay: Option<DelayRange>,
    /// Let some valid requests fail: a percentage and a status, for all operations or for one: "5% 503", "50% 409 POST /orders". Separate
    /// several rules by semicolons
    #[arg(long, env = "BOXOFFICE_FAULT", value_name = "RULE", value_delimiter = ';', value_parser = str::parse::<FaultRule>)]
    fault: Vec<FaultRule>,
    /// Send the document's callbacks to servers on this machine, or to these hosts too, separated by commas; `any` for all hosts
    #[arg(long, env = "BOXOFFICE_CALLBACKS", value_name = "HOSTS", num_args = 0..=1, require_equals = true,
        default_missing_value = "loopback", value_parser = str::parse::<CallbackTargets>)]
    callbacks: Option<CallbackTargets>,
    /// Configuration file with these options, as YAML; options of the command line take precedence
    #[arg(long, env = "BOXOFFICE_MOCK_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
}

/// The documents and settings of a mock, from the command line and the configuration file.
struct MockConfig {
    listener: Listener,
    /// The document; `None` for the built-in contract.
    spec: Option<PathBuf>,
    watch: bool,
    settings: MockSettings,
}

impl MockOptions {
    /// Merges the options with those of the configuration file.
    ///
    /// # Errors
    /// Returns an error that names everything that is wrong.
    fn merge(self) -> anyhow::Result<MockConfig> {
        let file = self.config.as_deref().map(MockConfigFile::read).transpose();
        let file = file.map_err(|error| InvalidSettings::from_cause(&error))?.unwrap_or_default();
        InvalidSettings::reject([self.listen.as_ref().and_then(Setting::problem), self.tls.problem()])?;
        let address = match &self.listen {
            Some(address) => address.get()?.clone(),
            None => file.listen.as_deref().unwrap_or(LISTEN).parse().context("listen in the configuration file")?,
        };
        let settings = MockSettings {
            seed: self.seed.or(file.seed).unwrap_or_default(),
            key: self.key.or(file.key),
            is_stateful: self.stateful.unwrap_or(file.stateful),
            delay: self.delay.or(file.delay),
            callbacks: self.callbacks.or(file.callbacks),
            faults: if self.fault.is_empty() { file.faults } else { self.fault },
        };
        let listener = self.tls.listener(&address)?;
        Ok(MockConfig { listener, spec: self.spec.or(file.spec), watch: self.watch.unwrap_or(file.watch), settings })
    }
}

/// Serves a document until a stop signal, and loads it again when it changes.
pub async fn serve(options: MockOptions, log: &Logger, level: &LevelControl) -> anyhow::Result<()> {
    let MockConfig { mut listener, spec, watch, settings } = options.merge()?;
    let mut watcher = None;
    let contract = load(spec.as_deref(), watch, &mut watcher, log)?;
    let scheme = if listener.certificate.is_some() { "https" } else { "http" };
    handle_other_signals(listener.certificate.clone(), log, level)?;
    let mut stop = StopSignals::listen()?;
    let mut mock = start(&contract, &settings, &listener, log)?;
    listener.address = mock.address();
    print(format!(
        "Mock server for {} at {scheme}://{} (operations: {})",
        title(&contract),
        mock.address(),
        contract.operations().count()
    ))?;
    print("The header `Prefer` selects another response, for example `Prefer: code=404`. See `boxoffice mock --help`.")?;
    loop {
        tokio::select! {
            () = stop.recv() => return mock.stop().await,
            () = changed(watcher.as_mut()) => {}
        }
        // The previous document is served until the new one can be loaded and has the operations that the faults name.
        let loaded =
            load(spec.as_deref(), watch, &mut watcher, log).and_then(|contract| settings.validate(&contract).map(|()| contract));
        match loaded {
            Ok(contract) => {
                mock.stop().await?;
                mock = start(&contract, &settings, &listener, log)?;
            }
            Err(error) => warn!(log, "document not reloaded; the previous one stays in use"; "cause" => one_line(&error)),
        }
    }
}

/// Loads the document, and logs its parts that are left out. With `watch`, its files are watched before they are read, so that no
/// change is missed. Which files these are is known only after the first time, so it is read again if they are others than before.
fn load(spec: Option<&Path>, watch: bool, watcher: &mut Option<FileWatcher>, log: &Logger) -> anyhow::Result<Arc<Contract>> {
    let mut files = watcher.as_ref().map_or_else(Vec::new, |watcher| watcher.files.clone());
    let contract = loop {
        if watch {
            *watcher = Some(FileWatcher::new(&files)?);
        }
        let contract = spec.map_or_else(contract::load, |file| Contract::read(file).map(Arc::new))?;
        if !watch || contract.files == files {
            break contract;
        }
        files.clone_from(&contract.files);
    };
    for warning in &contract.warnings {
        warn!(log, "{}", warning);
    }
    Ok(contract)
}

fn start(contract: &Arc<Contract>, settings: &MockSettings, listener: &Listener, log: &Logger) -> anyhow::Result<ServerHandle> {
    let mock = boxoffice_mock::start(Arc::clone(contract), settings.clone(), listener.clone(), log)?;
    let (address, operations) = (mock.address(), contract.operations().count());
    info!(log, "mock server started"; "address" => address, "document" => title(contract), "operations" => operations);
    Ok(mock)
}

fn title(contract: &Contract) -> &str {
    contract.document["info"]["title"].as_str().unwrap_or("the document")
}

/// Waits for a change of the document's files; endlessly without a watcher.
async fn changed(watcher: Option<&mut FileWatcher>) {
    match watcher {
        Some(watcher) => watcher.changed().await,
        None => std::future::pending().await,
    }
}
