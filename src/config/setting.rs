//! Values of settings that are validated after all options were parsed, so that one message names everything that is wrong.

use std::ffi::OsStr;
use std::fmt;
use std::io;

use boxoffice_http::error::one_line;
use clap::builder::TypedValueParser;
use clap::{Arg, Command};

/// The value of an option or of its environment variable, or a message that names it and says what is wrong.
#[derive(Debug, Clone)]
pub struct Setting<T>(Result<T, String>);

impl<T> Setting<T> {
    /// Returns the value.
    ///
    /// # Errors
    /// Returns an error if the text was invalid.
    pub fn get(&self) -> anyhow::Result<&T> {
        self.0.as_ref().map_err(|problem| InvalidSettings::new(vec![problem.clone()]).into())
    }

    /// Returns what is wrong with it.
    pub fn problem(&self) -> Option<String> {
        self.0.as_ref().err().cloned()
    }
}

/// Returns the parser of a setting. It accepts any text, and keeps the error of `parse`, which says what is expected and gives an
/// example.
pub fn setting<T>(parse: fn(&str) -> anyhow::Result<T>) -> SettingParser<T> {
    SettingParser(parse)
}

/// See [`setting`].
#[derive(Debug)]
pub struct SettingParser<T>(fn(&str) -> anyhow::Result<T>);

impl<T> Clone for SettingParser<T> {
    fn clone(&self) -> Self {
        Self(self.0)
    }
}

impl<T: Clone + Send + Sync + 'static> TypedValueParser for SettingParser<T> {
    type Value = Setting<T>;

    fn parse_ref(&self, _: &Command, option: Option<&Arg>, value: &OsStr) -> Result<Setting<T>, clap::Error> {
        let parsed = value.to_str().ok_or_else(|| anyhow::anyhow!("the value is not valid UTF-8")).and_then(self.0);
        Ok(Setting(parsed.map_err(|error| format!("{}: {}", name(option), one_line(&error)))))
    }
}

/// Returns the names of an option, such as `--listen (BOXOFFICE_LISTEN)`.
fn name(option: Option<&Arg>) -> String {
    let long = option.and_then(Arg::get_long).map(|long| format!("--{long}"));
    let variable = option.and_then(Arg::get_env).map(|variable| format!("({})", variable.to_string_lossy()));
    long.into_iter().chain(variable).collect::<Vec<_>>().join(" ")
}

/// Parses a whole number within these limits.
pub fn whole_number<const MINIMUM: u32, const MAXIMUM: u32>(text: &str) -> anyhow::Result<u32> {
    let number = text.trim().parse().ok().filter(|number| (MINIMUM..=MAXIMUM).contains(number));
    number.ok_or_else(|| anyhow::anyhow!("`{text}` is not a whole number from {MINIMUM} to {MAXIMUM}"))
}

/// Parses a switch that is on or off. A variable that is empty is off.
pub fn boolean(text: &str) -> anyhow::Result<bool> {
    match text.trim().to_lowercase().as_str() {
        "true" | "yes" | "on" | "t" | "y" | "1" => Ok(true),
        "false" | "no" | "off" | "f" | "n" | "0" | "" => Ok(false),
        _ => Err(anyhow::anyhow!("`{text}` is neither true nor false")),
    }
}

/// Invalid settings. The program has not started, and nothing was changed.
#[derive(Debug)]
pub struct InvalidSettings {
    problems: Vec<String>,
    /// True if a later start with the same settings may succeed.
    may_pass: bool,
}

impl InvalidSettings {
    /// Creates an error with a text for each problem.
    pub fn new(problems: Vec<String>) -> Self {
        Self { problems, may_pass: false }
    }

    /// Returns the text of each problem.
    pub fn into_problems(self) -> Vec<String> {
        self.problems
    }

    /// Returns the error with another text for each problem.
    pub fn map(self, text: impl Fn(String) -> String) -> Self {
        Self { problems: self.problems.into_iter().map(text).collect(), ..self }
    }

    /// Creates an error about one setting, whose option the cause names.
    pub fn from_cause(cause: &anyhow::Error) -> Self {
        Self::new(vec![one_line(cause)])
    }

    /// Creates an error about the host or the file that a setting names. If the operating system can't find or read it, a later start
    /// may succeed: at a boot, the resolver or a disk may not be ready yet.
    pub fn from_use(cause: &anyhow::Error) -> Self {
        Self { may_pass: cause.chain().any(|cause| cause.is::<io::Error>()), ..Self::from_cause(cause) }
    }

    /// Sets whether a later start with the same settings may succeed.
    pub fn with_may_pass(self, may_pass: bool) -> Self {
        Self { may_pass, ..self }
    }

    /// Returns whether a later start with the same settings may succeed.
    pub fn may_pass(&self) -> bool {
        self.may_pass
    }

    /// Returns an error that names all problems, if there are any.
    ///
    /// # Errors
    /// Returns an error if there is at least one problem.
    pub fn reject(problems: impl IntoIterator<Item = Option<String>>) -> anyhow::Result<()> {
        let problems: Vec<String> = problems.into_iter().flatten().collect();
        if problems.is_empty() { Ok(()) } else { Err(Self::new(problems).into()) }
    }
}

impl fmt::Display for InvalidSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.problems.as_slice() {
            [problem] => write!(f, "{problem}"),
            problems => write!(f, "{} settings are invalid\n  {}", problems.len(), problems.join("\n  ")),
        }
    }
}

impl std::error::Error for InvalidSettings {}
