//! The configuration file: settings as TOML, one `key = value` for each. The keys are the names of the options.
//!
//! Its values become defaults of the options. So clap gives options and environment variables precedence, and all values are
//! checked in one place.

use std::any::TypeId;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::ops::Range;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, ensure};
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command};
use slog::{Logger, warn};
use toml::de::{DeTable, DeValue};

use super::{InvalidSettings, Setting, suggest};
use crate::kernel::private_files;

/// The identifier of the option `--config` of every command that reads the file.
pub const CONFIG_FILE: &str = "config_file";
/// The largest configuration file, in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// The content of a configuration file.
#[derive(Debug)]
pub struct ConfigFile {
    path: PathBuf,
    values: BTreeMap<String, FileValue>,
    /// Unknown keys and values of a wrong type, with their lines.
    pub problems: Vec<String>,
    is_readable_by_all: bool,
}

/// The value of a setting in the file.
#[derive(Debug)]
struct FileValue {
    line: usize,
    /// The text that the option would have on the command line.
    text: String,
    is_secret: bool,
}

impl ConfigFile {
    /// Reads a file. `options` has the option of each setting.
    ///
    /// # Errors
    /// Returns [`InvalidSettings`] if the file can't be read.
    pub fn read(path: &Path, options: &[Arg]) -> anyhow::Result<Self> {
        let (text, is_readable_by_all) = read_text(path).map_err(|error| InvalidSettings::from_cause(&error))?;
        let (table, errors) = DeTable::parse_recoverable(&text);
        let mut file = Self { path: path.to_owned(), values: BTreeMap::new(), problems: Vec::new(), is_readable_by_all };
        for error in errors {
            let line = line(&text, error.span().unwrap_or_default());
            file.reject(line, &format!("it is not TOML: {}", error.message()));
        }
        for (key, value) in table.get_ref() {
            let (line, key) = (line(&text, key.span()), key.get_ref().as_ref());
            match find(options, key).and_then(|option| Ok((option, to_text(option, value.get_ref())?))) {
                Ok((option, text)) => {
                    let value = FileValue { line, text, is_secret: option.is_hide_env_values_set() };
                    file.values.insert(key.to_owned(), value);
                }
                Err(error) => file.reject(line, &format!("{key}: {error}")),
            }
        }
        Ok(file)
    }

    fn reject(&mut self, line: usize, problem: &str) {
        self.problems.push(format!("{}:{line}: {problem}", self.path.display()));
    }

    /// Makes the values the defaults of all commands that read the file, and of the options of all commands.
    pub fn set_defaults(&self, command: Command) -> Command {
        let reads_file = command.get_arguments().any(|option| option.get_id() == CONFIG_FILE);
        let set_default = |option: Arg| match option.get_long().and_then(|key| self.values.get(key)) {
            Some(value) if reads_file || option.is_global_set() => option.default_value(value.text.clone()),
            _ => option,
        };
        command.mut_args(set_default).mut_subcommands(|command| self.set_defaults(command))
    }

    /// Returns the file and the line of an option's value, if the value is from the file.
    pub fn location(&self, option: &str, matches: &ArgMatches) -> Option<String> {
        let value = self.values.get(option)?;
        let id = option.replace('-', "_");
        let is_known = matches.try_contains_id(&id).is_ok();
        let is_default = is_known && matches.value_source(&id) == Some(ValueSource::DefaultValue);
        is_default.then(|| format!("{}:{}", self.path.display(), value.line))
    }

    /// Names the file, the line and the key in a problem that names an option, if its value is from the file.
    pub fn locate(&self, problem: &str, matches: &ArgMatches) -> String {
        let located = problem.strip_prefix("--").and_then(|rest| {
            let (names, problem) = rest.split_once(": ")?;
            let key = names.split(' ').next()?;
            Some(format!("{}: {key}: {problem}", self.location(key, matches)?))
        });
        located.unwrap_or_else(|| problem.to_owned())
    }

    /// Logs a warning if all users of the machine may read secrets in the file.
    pub fn warn_if_readable_by_all(&self, log: &Logger) {
        if self.is_readable_by_all && self.values.values().any(|value| value.is_secret) {
            warn!(log, "all users of this machine may read a configuration file with a secret"; "path" => %self.path.display());
        }
    }
}

/// Returns the text of the file, and whether all users of the machine may read it.
fn read_text(path: &Path) -> anyhow::Result<(String, bool)> {
    let name = || format!("--config (BOXOFFICE_CONFIG): cannot read {}", path.display());
    let file = File::open(path).with_context(name)?;
    let metadata = file.metadata().with_context(name)?;
    ensure!(metadata.is_file(), "{}: it is not a file", name());
    let mut text = String::new();
    file.take(MAX_BYTES + 1).read_to_string(&mut text).with_context(name)?;
    ensure!(text.len() as u64 <= MAX_BYTES, "{}: it is larger than {} KiB", name(), MAX_BYTES / 1024);
    Ok((text, private_files::is_readable_by_all(&metadata)))
}

fn line(text: &str, span: Range<usize>) -> usize {
    text.bytes().take(span.start).filter(|byte| *byte == b'\n').count() + 1
}

/// Returns the option of a key.
fn find<'a>(options: &'a [Arg], key: &str) -> anyhow::Result<&'a Arg> {
    let option = options.iter().find(|option| option.get_long() == Some(key));
    option.ok_or_else(|| {
        let similar = key.to_lowercase().replace('_', "-");
        let similar = similar.strip_prefix("boxoffice-").unwrap_or(&similar);
        anyhow!("it is no setting{}", suggest(similar, options.iter().filter_map(Arg::get_long)))
    })
}

/// Returns the text that the option would have on the command line.
fn to_text(option: &Arg, value: &DeValue<'_>) -> anyhow::Result<String> {
    let example = option.get_default_values().first().map_or_else(String::new, |default| {
        format!(", such as {} = {}", option.get_long().unwrap_or_default(), default.to_string_lossy())
    });
    let is_list =
        option.get_value_names().is_some_and(|names| names.iter().any(|name| ["LIST", "STEPS"].contains(&name.as_str())));
    if !option.get_action().takes_values() {
        return Ok(value.as_bool().ok_or_else(|| wrong_type(value, "true or false"))?.to_string());
    }
    if option.get_value_parser().type_id() == TypeId::of::<Setting<u32>>() {
        let number = value.as_integer().and_then(|number| i64::from_str_radix(number.as_str(), number.radix()).ok());
        let number = number.ok_or_else(|| wrong_type(value, &format!("a whole number without quotation marks{example}")))?;
        return Ok(number.to_string());
    }
    let text = match value {
        DeValue::Array(items) if is_list => {
            let items = items.iter().map(|item| item.get_ref().as_str());
            items.collect::<Option<Vec<_>>>().map(|items| items.join(","))
        }
        value => value.as_str().map(str::to_owned),
    };
    let expected = if is_list { "a text or a list of texts in quotation marks" } else { "a text in quotation marks" };
    let text = text.ok_or_else(|| wrong_type(value, expected))?;
    let possible: Vec<String> = option.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect();
    ensure!(
        possible.is_empty() || possible.contains(&text),
        "`{text}` is none of {}{}",
        possible.join(", "),
        suggest(&text, possible.iter().map(String::as_str))
    );
    Ok(text)
}

fn wrong_type(value: &DeValue<'_>, expected: &str) -> anyhow::Error {
    let actual = match value {
        DeValue::String(_) => "a text",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a number with a decimal point",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => return anyhow!("settings have no sections; give {expected}"),
    };
    anyhow!("it is {actual}; give {expected}")
}
