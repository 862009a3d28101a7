//! Manual pages and completions of the command line, for packages.

use std::fs;
use std::io::stdout;
use std::path::PathBuf;

use anyhow::Context;
use clap::{Args, CommandFactory};
use clap_complete::Shell;

use super::Cli;

#[derive(Debug, Args)]
pub struct ManualOptions {
    /// Folder for the pages, which is created if it doesn't exist
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
}

#[derive(Debug, Args)]
pub struct CompletionsOptions {
    /// Shell that completes the commands
    shell: Shell,
}

/// Writes the manual pages into a folder: `boxoffice.1`, and a page for each command.
pub fn write_pages(options: &ManualOptions) -> anyhow::Result<()> {
    let write = || {
        fs::create_dir_all(&options.folder)?;
        clap_mangen::generate_to(Cli::command(), &options.folder)
    };
    write().with_context(|| format!("cannot write manual pages to {}", options.folder.display()))
}

/// Prints the completions for a shell.
pub fn print_completions(options: &CompletionsOptions) {
    clap_complete::generate(options.shell, &mut Cli::command(), "boxoffice", &mut stdout());
}
