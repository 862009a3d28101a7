//! The command `account`.

use clap::{Args, Subcommand};
use slog::Logger;

use super::{MissingKeys, open_existing, print};
use crate::config::{InvalidSettings, PlatformOptions, SecretFile, Setting, setting, warn_of_readable_files};
use crate::features::identity::accounts::{AccountRole, Role};
use crate::kernel::settings::Secret;
use crate::provisioning;

#[derive(Debug, Subcommand)]
pub enum AccountCommand {
    /// Create an account and print its number
    Create(Box<AccountOptions>),
}

#[derive(Debug, Args)]
pub struct AccountOptions {
    #[command(flatten)]
    platform: PlatformOptions,
    /// Username: 3 to 32 letters, digits, `.`, `_` or `-`
    #[arg(long, env = "BOXOFFICE_USERNAME")]
    username: String,
    /// E-mail address
    #[arg(long, env = "BOXOFFICE_EMAIL")]
    email: String,
    /// Password: 8 to 128 characters
    #[arg(long, env = "BOXOFFICE_PASSWORD", hide_env_values = true)]
    password: Option<Secret>,
    /// File with the password
    #[arg(long, env = "BOXOFFICE_PASSWORD_FILE", value_name = "FILE", conflicts_with = "password", value_parser = setting(SecretFile::read))]
    password_file: Option<Setting<SecretFile>>,
    /// Role of the account
    #[arg(long, env = "BOXOFFICE_ACCOUNT_ROLE", default_value = "customer")]
    role: AccountRole,
}

/// Creates an account and prints its number.
pub async fn create(options: &AccountOptions, log: &Logger) -> anyhow::Result<()> {
    warn_of_readable_files(&options.password_file, log)?;
    let file = options.password_file.as_ref().map(Setting::get).transpose()?;
    let password = options.password.as_ref().or(file.map(|file| &file.secret));
    let Some(Secret(password)) = password else {
        let needed = "--password-file or --password is needed: a file with the password, or the password itself";
        return Err(InvalidSettings::new(vec![needed.to_owned()]).into());
    };
    let app = open_existing(&options.platform, MissingKeys::Create, log).await?;
    let AccountOptions { username, email, role, .. } = options;
    print(provisioning::create_account(&app, username, email, password, Role::from(*role).into()).await?)
}
