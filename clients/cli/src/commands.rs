//! The commands: one for each operation of the contract, and those of the program itself.

use std::any::TypeId;

use clap::builder::StyledStr;
use clap::{Arg, ArgAction, Args, Command, ValueHint, value_parser};
use clap_complete::Shell;

use crate::arguments;
use crate::failure::{EXIT_CODES, Failure};
use crate::generated::{Cli, CliCommand};
use crate::output::{Format, Responses};
use crate::profiles::Profiles;
use crate::sessions::Login;

/// The program's name.
pub const PROGRAM: &str = "boxoffice-api";

const LOGIN: &str = "Save a server and a key in a profile, and log in to an account.

Without --user, the profile uses the key itself, which is saved without a request. With it, the key opens a session, whose key is saved too.";

/// An operation of the contract.
struct Operation {
    id: &'static str,
    tag: &'static str,
    path_arguments: &'static [&'static str],
    images: &'static [&'static str],
    example: Option<&'static str>,
}

const OPERATIONS: &[Operation] = include!(concat!(env!("OUT_DIR"), "/operations.rs"));

/// Options of every command.
#[derive(Debug, Args)]
pub struct GlobalOptions {
    /// Profile with the server and the key
    #[arg(
        long,
        global = true,
        env = "BOXOFFICE_PROFILE",
        default_value = "default",
        value_name = "NAME",
        help_heading = "Global options"
    )]
    pub profile: String,
    /// Address of the server, in place of the profile's
    #[arg(
        long,
        global = true,
        env = "BOXOFFICE_SERVER",
        value_name = "URL",
        value_parser = arguments::parse_address,
        help_heading = "Global options"
    )]
    pub server: Option<String>,
    /// Print the response as JSON in place of a table
    #[arg(long, global = true, help_heading = "Global options")]
    json: bool,
    /// Print one property alone, of each entry of a list, such as `self` or `venue.name`
    #[arg(long, global = true, value_name = "PROPERTY", conflicts_with = "json", help_heading = "Global options")]
    field: Option<String>,
    /// Columns of the table, separated by commas
    #[arg(
        long,
        global = true,
        value_name = "PROPERTIES",
        value_delimiter = ',',
        conflicts_with_all = ["json", "field"],
        help_heading = "Global options"
    )]
    columns: Vec<String>,
    /// Print the status, the request's identifier and the entity tag to standard error
    #[arg(long, short, global = true, help_heading = "Global options")]
    pub verbose: bool,
}

impl GlobalOptions {
    /// Returns the format of the output.
    pub fn format(&self) -> Format {
        match &self.field {
            Some(field) => Format::Field(field.clone()),
            None if self.json => Format::Json,
            None => Format::Table { columns: self.columns.clone() },
        }
    }

    /// Returns the address of the server and the key: those of the environment, or else of the profile.
    ///
    /// # Errors
    /// Returns an error if one of them is missing, or if the profiles can't be read.
    pub fn server_and_key(&self) -> Result<(String, String), Failure> {
        let key = std::env::var("BOXOFFICE_KEY").ok().filter(|key| !key.is_empty());
        if let (Some(server), Some(key)) = (&self.server, &key) {
            return Ok((server.clone(), key.clone()));
        }
        let mut profiles = Profiles::load()?;
        let profile = profiles.remove(&self.profile);
        let has_other_server = |server: &String| profile.as_ref().is_some_and(|profile| profile.server != *server);
        if key.is_none() && self.server.as_ref().is_some_and(has_other_server) {
            // The key of a profile is for its own server.
            return Err(Failure::message(
                "--server is not the server of the profile: set BOXOFFICE_KEY, or use another --profile",
            ));
        }
        let saved_key = profile.as_ref().map(|profile| profile.active_key().to_owned());
        let saved_server = profile.map(|profile| profile.server);
        match (self.server.clone().or(saved_server), key.or(saved_key)) {
            (Some(server), Some(key)) => Ok((server, key)),
            _ => Err(Failure::message(&format!("profile {}: no server and key; run `{PROGRAM} login`", self.profile))),
        }
    }
}

/// Returns the program's command. `page` is the page of a list that is read with `--all`.
pub fn command(page: Option<u64>) -> Command {
    let root = Command::new(PROGRAM)
        .version(env!("CARGO_PKG_VERSION"))
        .after_help(EXIT_CODES)
        .subcommand_required(true)
        .arg_required_else_help(true)
        .max_term_width(120)
        .infer_long_args(true);
    let shell = Arg::new("shell").required(true).value_parser(value_parser!(Shell)).help("bash, elvish, fish, powershell or zsh");
    let login = Login::augment_args(Command::new("login"));
    // Otherwise the documentation of the Rust types would be the description.
    let root = GlobalOptions::augment_args(root)
        .about("Command line for the boxoffice ticketing API")
        .long_about(None)
        .subcommand(login.about("Save a server and a key in a profile, and log in to an account").long_about(LOGIN))
        .subcommand(Command::new("logout").about("End the profile's session; the application's key stays"))
        .subcommand(Command::new("profiles").about("List the profiles"))
        .subcommand(Command::new("completion").about("Print the completion script of a shell").arg(shell));
    let mut nouns: Vec<(String, &'static str, Vec<Command>)> = Vec::new();
    for operation in CliCommand::iter() {
        let (noun, verb) = noun_and_verb(operation);
        let Some(facts) = OPERATIONS.iter().find(|facts| facts.id == operation.operation_id()) else { continue };
        let command = operation_command(operation, facts, page).name(verb);
        match nouns.iter_mut().find(|(name, ..)| *name == noun) {
            Some((.., commands)) => commands.push(command),
            None => nouns.push((noun, facts.tag, vec![command])),
        }
    }
    nouns.into_iter().fold(root, |root, (noun, tag, commands)| {
        let verbs: Vec<_> = commands.iter().map(Command::get_name).collect();
        let about = format!("{tag}: {}", verbs.join(", "));
        root.subcommand(
            Command::new(noun).about(about).subcommand_required(true).arg_required_else_help(true).subcommands(commands),
        )
    })
}

/// Returns the operation of a command.
pub fn operation_of(noun: &str, verb: &str) -> Option<CliCommand> {
    CliCommand::iter().find(|operation| {
        let (its_noun, its_verb) = noun_and_verb(*operation);
        its_noun == noun && its_verb == verb
    })
}

/// Splits an operationId: `event_token_create` is the verb `create` of the noun `event-token`.
fn noun_and_verb(operation: CliCommand) -> (String, &'static str) {
    let (noun, verb) = operation.operation_id().rsplit_once('_').unwrap_or(("api", operation.operation_id()));
    (noun.replace('_', "-"), verb)
}

/// Completes the generated command of an operation.
fn operation_command(operation: CliCommand, facts: &Operation, page: Option<u64>) -> Command {
    let mut command = Cli::<Responses>::get_command(operation);
    // progenitor puts the summary before the description. Lists of commands show the first paragraph alone.
    if let Some(text) = command.get_about().map(StyledStr::to_string) {
        let summary = text.split("\n\n").next().unwrap_or_default().to_owned();
        command = command.about(summary).long_about(unwrap_lines(&text));
    }
    if let Some(example) = facts.example {
        command = command.after_long_help(format!("Example of a body:\n  {example}"));
    }
    // progenitor sorts the arguments by name; positional ones have the path's order.
    for (position, name) in facts.path_arguments.iter().enumerate() {
        // A positional argument: an identifier or the URI of the resource, or a value of a list, which keeps its own parser.
        command = command.mut_arg(*name, |argument| {
            let is_text = argument.get_value_parser().type_id() == TypeId::of::<String>();
            let argument = argument.long(None).index(position + 1);
            if is_text { argument.value_parser(arguments::parse_identifier) } else { argument }
        });
    }
    let has = |command: &Command, name: &str| command.get_arguments().any(|argument| argument.get_id() == name);
    if has(&command, "json-body") {
        command = command.mut_arg("json-body", |argument| {
            let help = "Body in JSON; @FILE reads it from a file, - from standard input. Other options add or replace properties";
            argument.long("body").value_name("JSON").value_hint(ValueHint::Other).help(help)
        });
    }
    if has(&command, "password") {
        command = command.mut_arg("password", |argument| {
            let help = "Password: - asks for it or reads a line from standard input, @FILE reads it from a file";
            argument.value_name("- | @FILE").value_parser(arguments::parse_password).help(help)
        });
    }
    for option in facts.images {
        command = command.mut_arg(*option, |argument| {
            let help = format!("{} @FILE reads it from a file.", argument.get_help().cloned().unwrap_or_default());
            argument.value_name("@FILE | BASE64").value_parser(arguments::parse_image).help(help)
        });
    }
    if has(&command, "page") {
        let all = Arg::new("all").long("all").action(ArgAction::SetTrue).conflicts_with("page").help("Read all pages");
        command = command.arg(all);
        if let Some(page) = page {
            command = command.mut_arg("page", |argument| argument.default_value(page.to_string()));
            command = command.mut_arg("records", |argument| argument.default_value("100"));
        }
    }
    command
}

/// Joins the lines of each paragraph and list item of the contract's prose, because clap wraps them for the terminal.
fn unwrap_lines(text: &str) -> String {
    let is_numbered = |line: &str| line.split_once(". ").is_some_and(|(number, _)| number.parse::<u8>().is_ok());
    text.lines().fold(String::new(), |mut joined, line| {
        let is_item = line.starts_with("- ") || is_numbered(line);
        let starts_block = line.is_empty() || is_item || line.starts_with('|') || joined.ends_with('\n');
        if !joined.is_empty() {
            joined.push(if starts_block { '\n' } else { ' ' });
        }
        joined + if starts_block { line } else { line.trim_start() }
    })
}

#[cfg(test)]
mod tests {
    use boxoffice_client::types::ImageKind;

    use super::*;

    #[test]
    fn lines_are_joined() {
        let text = "One\ntwo.\n\nErrors:\n\n- 400: a\n  b\n- 409\n\n1. Load it,\n   whole.\n2. Check it.";
        assert_eq!(unwrap_lines(text), "One two.\n\nErrors:\n\n- 400: a b\n- 409\n\n1. Load it, whole.\n2. Check it.");
    }

    #[test]
    fn commands_are_consistent() {
        command(None).debug_assert();
        command(Some(2)).debug_assert();
    }

    #[test]
    fn arguments_of_paths_keep_their_types() {
        let arguments = [PROGRAM, "media-image", "get", "banner", "/events/17637000000051"];
        let matches = command(None).try_get_matches_from(arguments).unwrap_or_else(|error| panic!("{error}"));
        let (_, image) = matches.subcommand().and_then(|(_, verbs)| verbs.subcommand()).unwrap_or_else(|| panic!("no verb"));
        assert_eq!(image.get_one::<ImageKind>("image"), Some(&ImageKind::Banner));
        assert_eq!(image.get_one::<String>("content").map(String::as_str), Some("17637000000051"));
    }

    #[test]
    fn each_operation_has_a_command() {
        let all = command(None);
        for operation in CliCommand::iter() {
            let (noun, verb) = noun_and_verb(operation);
            let found = all.find_subcommand(&noun).and_then(|verbs| verbs.find_subcommand(verb));
            assert!(found.is_some_and(|command| command.get_about().is_some()), "{noun} {verb}");
            assert_eq!(operation_of(&noun, verb).map(|found| found.operation_id()), Some(operation.operation_id()));
        }
        assert_eq!(CliCommand::iter().count(), OPERATIONS.len());
    }
}
