//! `foresee completions` and `foresee man`.

use std::fs;
use std::path::Path;

use anyhow::Context;
use clap::CommandFactory;
use clap_complete::Shell;

use crate::args::{Cli, OutputArgs};
use crate::output::{self, Sink};

pub(crate) fn completions(shell: Shell, output: &OutputArgs) -> anyhow::Result<u8> {
    let mut to = Sink::new(output)?;
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "foresee", &mut script);
    to.print(&String::from_utf8(script)?)?;
    to.finish()?;
    Ok(0)
}

/// Prints the help of a command that was called without arguments.
pub(crate) fn help(command: &str) -> anyhow::Result<u8> {
    let mut all = Cli::command();
    all.build();
    let page = all.find_subcommand_mut(command).map(|c| c.render_long_help().to_string());
    output::print(&page.unwrap_or_default())?;
    Ok(2)
}

pub(crate) fn man(folder: Option<&Path>) -> anyhow::Result<u8> {
    match folder {
        Some(directory) => {
            fs::create_dir_all(directory).with_context(|| directory.display().to_string())?;
            clap_mangen::generate_to(Cli::command(), directory)
                .with_context(|| directory.display().to_string())?;
        }
        None => {
            let mut page = Vec::new();
            clap_mangen::Man::new(Cli::command()).render(&mut page)?;
            output::print(&String::from_utf8(page)?)?;
        }
    }
    Ok(0)
}
