//! The assembler of `foresee cc` as a separate program, which the tests of this crate use in place
//! of `foresee`.

use std::process::ExitCode;

fn main() -> std::io::Result<ExitCode> {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    let status = foresee_capture::assembler::run(&arguments)?;
    Ok(ExitCode::from(u8::try_from(status.code().unwrap_or(1)).unwrap_or(1)))
}
