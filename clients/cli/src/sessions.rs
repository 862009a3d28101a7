//! Log in and log out.

use boxoffice_client::{Client, ClientBuilder};
use clap::Args;

use crate::arguments::{read_secret, read_secret_file};
use crate::commands::GlobalOptions;
use crate::failure::Failure;
use crate::profiles::{Profile, Profiles, SavedSession};

/// The arguments of `login`. Without `--user`, the profile uses the key itself.
#[derive(Debug, Args)]
pub struct Login {
    /// Username or e-mail address of the account
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// File with the key of an application, an integration or an admission token; otherwise the variable BOXOFFICE_KEY, the
    /// profile's key, or a prompt
    #[arg(long, value_name = "FILE")]
    key_file: Option<String>,
    /// File with the password; otherwise the variable BOXOFFICE_PASSWORD, or a prompt
    #[arg(long, value_name = "FILE", requires = "user")]
    password_file: Option<String>,
}

/// Opens a session if there is a user, and saves the keys in the profile. Without a user, it sends no request.
///
/// # Errors
/// Returns an error if the server rejects the key or the password, or the profile can't be saved.
pub async fn log_in(options: &GlobalOptions, login: &Login) -> Result<(), Failure> {
    let saved = Profiles::load()?.remove(&options.profile);
    let saved_server = saved.as_ref().map(|profile| profile.server.clone());
    let Some(server) = options.server.clone().or(saved_server) else {
        return Err(Failure::message("the profile is new: it needs a --server"));
    };
    // The key of another server is not sent to this one.
    let saved_key = saved.filter(|profile| profile.server == server).map(|profile| profile.key);
    let key = secret("Key", "BOXOFFICE_KEY", login.key_file.as_deref(), saved_key)?;
    // Also finds a key that can't be sent.
    let application = connect(&server, &key)?;
    let session = match &login.user {
        Some(user) => {
            let password = secret("Password", "BOXOFFICE_PASSWORD", login.password_file.as_deref(), None)?;
            let session = application.session_create().body_map(|body| body.identification(user).password(password));
            let session = session.send().await?.into_inner();
            Some(SavedSession { username: session.account.username, key: session.key })
        }
        // No operation is open to every key: one of an admission token reaches its own event alone.
        None => None,
    };
    Profiles::change(|profiles| profiles.insert(&options.profile, Profile { server, key, session }))
}

/// Ends the session of the profile.
///
/// # Errors
/// Returns an error if there is none, or the server can't be reached. A session that has ended already is no error.
pub async fn log_out(options: &GlobalOptions) -> Result<(), Failure> {
    let profile = Profiles::load()?.remove(&options.profile);
    let Some((server, session)) = profile.and_then(|profile| Some((profile.server, profile.session?))) else {
        return Err(Failure::message(&format!("profile {}: not logged in", options.profile)));
    };
    let ended = connect(&server, &session.key)?.session_active_delete().send().await;
    match ended.map_err(Failure::from) {
        Ok(_) => {}
        Err(failure) if failure.is_rejected_key() => {}
        Err(failure) => return Err(failure),
    }
    Profiles::change(|profiles| {
        // A log-in at the same time may have saved another session.
        let profile = profiles.get_mut(&options.profile);
        if let Some(profile) = profile.filter(|profile| profile.session.as_ref().is_some_and(|saved| saved.key == session.key)) {
            profile.session = None;
        }
    })
}

fn connect(server: &str, key: &str) -> Result<Client, Failure> {
    ClientBuilder::new(server, key).build().map_err(|error| Failure::other(&error))
}

/// Returns a secret from a file, from the environment, from the profile or from a prompt.
fn secret(name: &str, variable: &str, file: Option<&str>, saved: Option<String>) -> Result<String, Failure> {
    let set = std::env::var(variable).ok().filter(|value| !value.is_empty());
    let secret = match (file, set.or(saved)) {
        (Some(file), _) => read_secret_file(file).map_err(|error| Failure::other(&error))?,
        (None, Some(secret)) => secret,
        (None, None) => read_secret(name).map_err(|error| Failure::message(&format!("{name}: {error}")))?,
    };
    if secret.is_empty() { Err(Failure::message(&format!("{name}: it is empty"))) } else { Ok(secret) }
}
