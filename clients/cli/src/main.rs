//! `boxoffice-api`: a command line for the boxoffice ticketing API, generated from its OpenAPI document.

mod arguments;
mod commands;
mod failure;
mod output;
mod profiles;
mod sessions;

use std::process::ExitCode;

use boxoffice_client::ClientBuilder;
use clap::{ArgMatches, FromArgMatches};
use clap_complete::Shell;

use crate::commands::{GlobalOptions, operation_of};
use crate::failure::Failure;
use crate::output::Responses;
use crate::profiles::Profiles;

#[expect(dead_code, unused_imports, unused_variables, clippy::all, clippy::unwrap_used, reason = "generated")]
mod generated {
    /// The generated code asks for a JSON schema of each response. Nothing here uses one.
    mod schemars {
        pub trait JsonSchema {}
        impl<T> JsonSchema for T {}
    }
    include!(concat!(env!("OUT_DIR"), "/generated.rs"));
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let matches = commands::command(None).get_matches();
    match Box::pin(run(&matches)).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(matches.get_flag("json")),
    }
}

async fn run(matches: &ArgMatches) -> Result<(), Failure> {
    let options = GlobalOptions::from_arg_matches(matches).map_err(Failure::usage)?;
    match matches.subcommand() {
        Some(("login", login)) => {
            sessions::log_in(&options, &sessions::Login::from_arg_matches(login).map_err(Failure::usage)?).await
        }
        Some(("logout", _)) => sessions::log_out(&options).await,
        Some(("profiles", _)) => {
            let rows = Profiles::load()?.describe();
            output::print(&rows, &options.format())
        }
        Some(("completion", completion)) => {
            if let Some(shell) = completion.get_one::<Shell>("shell") {
                let mut script = Vec::new();
                clap_complete::generate(*shell, &mut commands::command(None), commands::PROGRAM, &mut script);
                output::write_text(&script)?;
            }
            Ok(())
        }
        Some((noun, verbs)) => match verbs.subcommand() {
            Some((verb, arguments)) => request(&options, noun, verb, arguments).await,
            None => unreachable!("clap requires a verb"),
        },
        None => unreachable!("clap requires a command"),
    }
}

/// Sends the requests of an operation and prints the response.
async fn request(options: &GlobalOptions, noun: &str, verb: &str, arguments: &ArgMatches) -> Result<(), Failure> {
    let Some(operation) = operation_of(noun, verb) else { unreachable!("each command is an operation") };
    let (server, key) = options.server_and_key()?;
    let client = ClientBuilder::new(&server, &key).build().map_err(|error| Failure::other(&error))?;
    let responses = Responses::new(options.verbose);
    let cli = generated::Cli::new(client, responses.clone());
    let format = options.format();
    if !arguments.try_get_one::<bool>("all").is_ok_and(|all| all == Some(&true)) {
        cli.execute(operation, arguments).await?;
        return responses.take().map_or(Ok(()), |response| output::print(&response, &format));
    }
    let mut entries = Vec::new();
    for page in 1.. {
        // The page is an argument of the generated command, so the arguments are parsed again with another default.
        let matches = commands::command(Some(page)).get_matches();
        let arguments = matches.subcommand_matches(noun).and_then(|verbs| verbs.subcommand_matches(verb));
        let Some(arguments) = arguments else { unreachable!("the arguments are the same") };
        match cli.execute(operation, arguments).await.map_err(Failure::from) {
            Ok(()) => {}
            // The list has become shorter.
            Err(failure) if page > 1 && failure.is_past_end() => break,
            Err(failure) => return Err(failure),
        }
        let Some(mut response) = responses.take() else { break };
        let total = response["total"].as_u64().unwrap_or_default();
        let serde_json::Value::Array(received) = response["entries"].take() else { break };
        let is_empty = received.is_empty();
        entries.extend(received);
        if is_empty || entries.len() as u64 >= total {
            break;
        }
    }
    output::print(&serde_json::Value::Array(entries), &format)
}
