//! The assembler of `foresee cc` as a program of its own: what tests of this crate have in place of `foresee`.

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    match foresee_capture::assembler::run(&arguments) {
        Ok(status) => ExitCode::from(u8::try_from(status.code().unwrap_or(1)).unwrap_or(1)),
        Err(error) => {
            eprintln!("cannot run the assembler: {error}");
            ExitCode::FAILURE
        }
    }
}
