//! Commands and what they print, word for word: `tests/cmd/*.trycmd`, the README and
//! pages of `docs`.
//!
//! `TRYCMD=overwrite cargo test -p foresee-cli --test golden` writes what is printed now; read the
//! difference before committing it.

use std::path::Path;

#[test]
fn commands_print_what_is_written_down() {
    // Examples and test data are named as a user at the top of the project would name them.
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    std::env::set_current_dir(&root).unwrap();
    let cache = concat!(env!("CARGO_TARGET_TMPDIR"), "/foresee-cache");
    trycmd::TestCases::new()
        .env("FORESEE_CACHE", cache)
        .register_bin("foresee", trycmd::cargo::cargo_bin!("foresee"))
        .case("crates/foresee-cli/tests/cmd/*.trycmd")
        .case("README.md")
        .case("docs/analyses/*.md");
}
