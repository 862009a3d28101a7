//! The command `config`: shows the settings of `serve`, checks them and prints their table for the documentation.

use std::process::ExitCode;

use clap::parser::ValueSource;
use clap::{Arg, Args, Subcommand};
use serde::Serialize;
use serde_json::json;
use slog::Logger;

use super::config_check::{Finding, State, check_dependencies};
use super::invocation::{Invocation, all_options};
use super::serve::ServeOptions;
use super::{block_on, print, print_error, table, unknown_variables};
use crate::config::{CONFIG_FILE, InvalidSettings};

/// A setting whose address may have a password.
const COLLECTOR: &str = "otlp-endpoint";

#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Print the settings with which `serve` would start, and the source of each; secrets are hidden
    Show(Box<ConfigOptions>),
    /// Check all settings and the dependencies that they name, without changing anything; exit code 0: usable, 1: a dependency is
    /// not usable, 2: a setting is invalid
    Check(Box<ConfigOptions>),
    /// Print the table of all settings, as in docs/operating.md
    Table,
}

#[derive(Debug, Args)]
pub struct ConfigOptions {
    #[command(flatten)]
    serve: ServeOptions,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

/// Executes the command.
///
/// # Errors
/// Returns an error if standard output can't be written.
pub fn run(command: &ConfigCommand, invocation: &Invocation, log: &Logger) -> anyhow::Result<ExitCode> {
    match command {
        ConfigCommand::Table => print(render_table()).map(|()| ExitCode::SUCCESS),
        ConfigCommand::Show(options) => show(options, invocation),
        ConfigCommand::Check(options) => check(options, invocation, log),
    }
}

/// The value of a setting.
#[derive(Debug, Serialize)]
struct EffectiveSetting {
    key: String,
    /// `None` if it is not set and has no default.
    value: Option<String>,
    /// `flag`, `environment`, `file` or `default`.
    source: &'static str,
    /// The environment variable, or the file with the line.
    #[serde(skip_serializing_if = "Option::is_none")]
    location: Option<String>,
}

/// Prints all settings, also if some are invalid.
fn show(options: &ConfigOptions, invocation: &Invocation) -> anyhow::Result<ExitCode> {
    let settings: Vec<EffectiveSetting> = all_options().iter().map(|option| effective(option, invocation)).collect();
    if options.json {
        print(serde_json::to_string_pretty(&settings)?)?;
    } else {
        let row = |setting: &EffectiveSetting| {
            let value = setting.value.clone().unwrap_or_else(|| "(not set)".to_owned());
            let location = setting.location.as_ref().map_or_else(String::new, |location| format!(" ({location})"));
            vec![setting.key.clone(), value, format!("{}{location}", setting.source)]
        };
        print(table::render(&["setting", "value", "source"], &settings.iter().map(row).collect::<Vec<_>>()))?;
    }
    let problems = invocation.all_problems(options.serve.validate().err());
    if problems.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    print_error(InvalidSettings::new(problems));
    Ok(ExitCode::from(2))
}

fn effective(option: &Arg, invocation: &Invocation) -> EffectiveSetting {
    let (id, key) = (option.get_id().as_str(), option.get_long().unwrap_or_default());
    let raw = invocation.matches.get_raw(id).and_then(|mut values| values.next());
    let value = raw.map(|value| value.to_string_lossy().into_owned()).filter(|value| !value.is_empty());
    let line = invocation.file.as_ref().and_then(|file| file.location(key, &invocation.matches));
    let (source, location) = match invocation.matches.value_source(id) {
        Some(ValueSource::CommandLine) => ("flag", None),
        Some(ValueSource::EnvVariable) => ("environment", option.get_env().map(|name| name.to_string_lossy().into_owned())),
        _ if line.is_some() => ("file", line),
        _ => ("default", None),
    };
    let value = match value {
        Some(value) if option.is_hide_env_values_set() => Some(hide_secret(key, &value)),
        Some(value) => Some(value),
        None => described_default(option).map(|default| resolve(&default, invocation)),
    };
    EffectiveSetting { key: key.to_owned(), value, source, location }
}

/// Replaces the names of other settings in a default by their values.
fn resolve(default: &str, invocation: &Invocation) -> String {
    let value = |id| {
        let value = invocation.matches.get_raw(id).and_then(|mut values| values.next());
        value.unwrap_or_default().to_string_lossy().into_owned()
    };
    default.replace("DATA_DIR", &value("data_dir")).replace("LISTEN", &value("listen"))
}

/// Returns the value of a secret setting as it may be printed. Of the URL of a database or a collector, only the password and the
/// parameters are hidden.
fn hide_secret(key: &str, value: &str) -> String {
    const HIDDEN: &str = "********";
    match value.split_once(':') {
        Some(("sqlite", _)) if key == "database" => value.to_owned(),
        Some(("postgres" | "postgresql", _)) if ["database", "read-database"].contains(&key) => hide_password(value, HIDDEN),
        Some(("http" | "https", _)) if key == COLLECTOR => hide_password(value, HIDDEN),
        _ => HIDDEN.to_owned(),
    }
}

/// Replaces the password and the parameters of a URL.
fn hide_password(url: &str, hidden: &str) -> String {
    let (url, parameters) = url.split_once('?').map_or((url, String::new()), |(url, _)| (url, format!("?{hidden}")));
    let Some((scheme, location)) = url.split_once("://") else { return hidden.to_owned() };
    match location.rsplit_once('@') {
        None => format!("{scheme}://{location}{parameters}"),
        Some((login, server)) => {
            let user = login.split(':').next().unwrap_or_default();
            format!("{scheme}://{user}:{hidden}@{server}{parameters}")
        }
    }
}

/// Checks the settings and the dependencies.
fn check(options: &ConfigOptions, invocation: &Invocation, log: &Logger) -> anyhow::Result<ExitCode> {
    let (settings, invalid) = match options.serve.validate() {
        Ok(settings) => (Some(settings), None),
        Err(invalid) => (None, Some(invalid)),
    };
    let invalid_settings = invalid.as_ref().and_then(|error| error.downcast_ref::<InvalidSettings>());
    let is_unusable = invalid_settings.is_some_and(InvalidSettings::may_pass) && invocation.all_problems(None).is_empty();
    let problems = invocation.all_problems(invalid);
    let Some(settings) = settings.filter(|_| problems.is_empty()) else {
        if options.json {
            print(serde_json::to_string_pretty(&json!({ "problems": problems, "checks": [] }))?)?;
        } else {
            print_error(InvalidSettings::new(problems));
        }
        return Ok(ExitCode::from(if is_unusable { 1 } else { 2 }));
    };
    let unknown = unknown_variables().into_iter().map(|(name, similar)| {
        Finding::new("environment", State::Warning, format!("{name} is no setting and has no effect{similar}"))
    });
    let findings: Vec<Finding> = unknown.chain(block_on(check_dependencies(&options.serve.platform, settings, log))?).collect();
    let is_usable = findings.iter().all(|finding| finding.state != State::Failed);
    if options.json {
        print(serde_json::to_string_pretty(&json!({ "problems": [], "checks": findings }))?)?;
    } else {
        let row = |finding: &Finding| vec![finding.state.to_string(), finding.name.to_owned(), finding.text.clone()];
        print(table::render(&["state", "check", "result"], &findings.iter().map(row).collect::<Vec<_>>()))?;
    }
    Ok(ExitCode::from(u8::from(!is_usable)))
}

/// Returns the table of all settings, in Markdown.
fn render_table() -> String {
    let rows = all_options().into_iter().map(|option| {
        let key = option.get_long().unwrap_or_default();
        let variable = option.get_env().map_or_else(String::new, |name| format!("`{}`", name.to_string_lossy()));
        let in_file = if option.get_id() == CONFIG_FILE { String::new() } else { format!("`{key}`") };
        let meaning = option.get_long_help().or_else(|| option.get_help()).map(ToString::to_string).unwrap_or_default();
        let meaning = meaning.split(" [default: ").next().unwrap_or_default().replace('\n', " ");
        let meaning = meaning.trim_end_matches('.');
        let section = option
            .get_help_heading()
            .map_or_else(String::new, |heading| format!(" See [{heading}](#{}).", heading.to_lowercase().replace(' ', "-")));
        format!("| `--{key}` | {variable} | {in_file} | {} | {meaning}.{section} |", default_cell(&option))
    });
    let header = ["| option | variable | key in the file | default | meaning |", "|---|---|---|---|---|"].map(str::to_owned);
    header.into_iter().chain(rows).collect::<Vec<_>>().join("\n")
}

fn default_cell(option: &Arg) -> String {
    let value = option.get_default_values().first().map(|value| value.to_string_lossy().into_owned());
    match value.filter(|value| !value.is_empty()) {
        _ if !option.get_action().takes_values() => "off".to_owned(),
        Some(value) => format!("`{value}`"),
        None => described_default(option).unwrap_or_else(|| "none".to_owned()),
    }
}

/// Returns the default that the help text describes, because it depends on other settings.
fn described_default(option: &Arg) -> Option<String> {
    let help = option.get_long_help().or_else(|| option.get_help())?.to_string();
    let (_, default) = help.split_once(" [default: ")?;
    Some(default.split_once(']')?.0.replace('\n', " "))
}
