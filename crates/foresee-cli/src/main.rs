//! The `foresee` command: flags, glue and exit codes. Everything else lives in the libraries.

mod args;
mod asked;
mod bug;
mod commands;
mod config;
mod console;
mod input;
mod metrics;
mod output;
mod progress;
mod replayer;
mod settings;
mod specs;
mod store;
mod whole_file;

use std::process::ExitCode;

use clap::Parser;

use crate::args::{Cli, Command};

fn main() -> ExitCode {
    if let Some((language, arguments)) = commands::cc::invocation() {
        return finish(commands::cc::run(language, &arguments));
    }
    if let Some(arguments) = commands::cc::assembler() {
        return finish(commands::cc::assemble(&arguments));
    }
    let (arguments, added) = match settings::arguments(std::env::args_os().collect()) {
        Ok(arguments) => arguments,
        Err(error) => return finish(Err(error)),
    };
    let cli = Cli::try_parse_from(arguments).unwrap_or_else(|error| {
        if error.use_stderr() && !added.is_empty() {
            output::note(&format!("the settings add {}", added.join(", ")));
        }
        // clap exits with 0 after help and version, and with 2 on bad usage.
        error.exit()
    });
    finish(match cli.command {
        Command::Check(args) => commands::check::run(&args),
        Command::Batch(args) => commands::batch::run(&args),
        Command::Worker(args) => commands::worker::run(&args),
        Command::Observe(args) => commands::observe::run(*args),
        Command::Send(args) => commands::send::run(&args),
        Command::Index(args) => commands::index::run(&args),
        Command::Explain(args) => commands::explain::run(&args),
        Command::Baseline(args) => commands::baseline::run(&args),
        Command::Doctor => commands::doctor::run(),
        Command::Report(args) => commands::report::run(&args),
        Command::Trace(args) => commands::trace::run(&args),
        Command::Spec(args) => commands::spec::run(&args),
        Command::Run(args) => commands::run::run(&args),
        Command::Lsp { trace, program } => commands::lsp::run(trace.as_deref(), program.as_deref()),
        Command::InstrumentJvm(args) => commands::instrument_jvm::run(&args),
        Command::SelfTest(args) => commands::self_test::run(&args),
        Command::Replay(args) => commands::replay::run(&args),
        Command::Explore(args) => commands::explore::run(&args),
        Command::Cc { .. } => commands::shell::help("cc"),
        Command::Cxx { .. } => commands::shell::help("c++"),
        Command::Completions { shell, output } => commands::shell::completions(shell, &output),
        Command::Man { output } => commands::shell::man(output.as_deref()),
    })
}

fn finish(result: anyhow::Result<u8>) -> ExitCode {
    match result {
        Ok(status) => ExitCode::from(status),
        Err(error) if output::is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            output::error(&error);
            ExitCode::from(2)
        }
    }
}
