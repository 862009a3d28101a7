//! The command `key`.

use anyhow::{Context, ensure};
use clap::{Args, Subcommand};
use slog::Logger;

use super::{MissingKeys, not_blank, open_existing, print};
use crate::config::PlatformOptions;
use crate::features::identity::accounts::Role;
use crate::kernel::types::clock::{Clock, Timestamp};
use crate::provisioning;

#[derive(Debug, Subcommand)]
pub enum KeyCommand {
    /// Create an API key for a client program and print only the key
    Create(Box<KeyOptions>),
}

#[derive(Debug, Args)]
pub struct KeyOptions {
    #[command(flatten)]
    platform: PlatformOptions,
    /// Scope of the key
    #[arg(long, env = "BOXOFFICE_KEY_ROLE")]
    role: Role,
    /// Number of the account that the key acts for; a public key acts for none
    #[arg(long, env = "BOXOFFICE_ACCOUNT", value_name = "NUMBER")]
    account: Option<String>,
    /// Name of the key, for its purpose
    #[arg(long, env = "BOXOFFICE_NAME", default_value = "command line", value_parser = not_blank)]
    name: String,
    /// End of the key: a day, or a time, in UTC such as `2027-01-31T18:00` [default: none, it is valid until it is ended]
    #[arg(long, env = "BOXOFFICE_EXPIRES", value_name = "TIME", value_parser = expiry)]
    expires: Option<Timestamp>,
}

/// Creates an API key and prints it.
pub async fn create(options: &KeyOptions, log: &Logger) -> anyhow::Result<()> {
    let app = open_existing(&options.platform, MissingKeys::Create, log).await?;
    let KeyOptions { role, account, name, expires, .. } = options;
    print(provisioning::create_key(&app, name, (*role).into(), account.as_deref(), *expires).await?)
}

/// Parses the end of a key, which must be in the future. A day alone is its beginning.
pub fn expiry(text: &str) -> anyhow::Result<Timestamp> {
    let time = Timestamp::parse(text).or_else(|| Timestamp::parse(&format!("{text}T00:00")));
    let time = time.context("it is no day such as 2027-01-31, and no time such as 2027-01-31T18:00")?;
    ensure!(time > Clock::default().now(), "it has passed; give a later time");
    Ok(time)
}
