//! The parsed command line, and the configuration file that it names.

use std::path::PathBuf;

use boxoffice_http::error::one_line;
use clap::{Arg, ArgMatches, FromArgMatches};
use slog::Logger;

use super::{Cli, Command, parser};
use crate::config::{CONFIG_FILE, ConfigFile, InvalidSettings};

/// The origin of the settings of a command: its command line, the environment and the configuration file.
pub struct Invocation {
    /// The options of the command.
    pub matches: ArgMatches,
    /// The configuration file, if the command reads one.
    pub file: Option<ConfigFile>,
}

impl Invocation {
    /// Parses the command line. Exits if it is not valid, or if it asks for help.
    ///
    /// # Errors
    /// Returns [`InvalidSettings`] if the configuration file can't be read.
    pub fn parse() -> anyhow::Result<(Cli, Self)> {
        let matches = parser().get_matches();
        let path = innermost(&matches).try_get_one::<PathBuf>(CONFIG_FILE).ok().flatten();
        let file = path.map(|path| ConfigFile::read(path, &setting_options())).transpose()?;
        let matches = match &file {
            Some(file) => file.set_defaults(parser()).get_matches(),
            None => matches,
        };
        let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
        Ok((cli, Self { matches: innermost(&matches).clone(), file }))
    }

    /// Rejects a configuration file with unknown keys or values of a wrong type, but not for the command `config`, which prints its
    /// problems itself.
    ///
    /// # Errors
    /// Returns [`InvalidSettings`] with all problems of the file, and of the settings of `serve`.
    pub fn reject_invalid_file(&self, command: &Command) -> anyhow::Result<()> {
        if self.file.as_ref().is_none_or(|file| file.problems.is_empty()) {
            return Ok(());
        }
        let of_settings = match command {
            Command::Config(_) => return Ok(()),
            Command::Serve(options) => options.validate().err(),
            _ => None,
        };
        Err(InvalidSettings::new(self.all_problems(of_settings)).into())
    }

    /// Returns the problems of the configuration file, and those of the settings.
    pub fn all_problems(&self, of_settings: Option<anyhow::Error>) -> Vec<String> {
        let of_file = self.file.iter().flat_map(|file| file.problems.iter().cloned());
        let of_settings = of_settings.map(|error| match error.downcast::<InvalidSettings>() {
            Ok(invalid) => self.locate(invalid).into_problems(),
            Err(error) => vec![one_line(&error)],
        });
        of_file.chain(of_settings.into_iter().flatten()).collect()
    }

    /// Names the configuration file, the line and the key in the problem of each setting that is from the file.
    pub fn locate(&self, invalid: InvalidSettings) -> InvalidSettings {
        let Some(file) = &self.file else { return invalid };
        invalid.map(|problem| file.locate(&problem, &self.matches))
    }

    /// Logs a warning if all users of the machine may read secrets in the configuration file.
    pub fn warn_of_readable_secrets(&self, log: &Logger) {
        if let Some(file) = &self.file {
            file.warn_if_readable_by_all(log);
        }
    }
}

/// Returns the options of the command itself, without those of the commands that contain it.
fn innermost(matches: &ArgMatches) -> &ArgMatches {
    matches.subcommand().map_or(matches, |(_, inner)| innermost(inner))
}

/// Returns the option of each setting that the configuration file may have.
pub fn setting_options() -> Vec<Arg> {
    let mut options = all_options();
    options.retain(|option| option.get_id() != CONFIG_FILE);
    options
}

/// Returns the options of `serve`, and those of all commands.
pub fn all_options() -> Vec<Arg> {
    let command = parser();
    let serve = command.find_subcommand("serve").into_iter().flat_map(clap::Command::get_arguments);
    serve.chain(command.get_arguments().filter(|option| option.is_global_set())).cloned().collect()
}
