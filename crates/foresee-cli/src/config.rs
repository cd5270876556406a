//! `foresee.toml`: settings of a program, so that they need not be repeated.
//!
//! ```toml
//! suppressions = "foresee.supp"          # a file, or a list of files, beside this one
//!
//! [atomicity]
//! regions = ["transfer", "Account::*"]   # calls of these methods are atomic regions
//! ```

use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use foresee_predict::checks::{Glob, Suppressions};
use serde::Deserialize;

use crate::args::ChecksArgs;

/// The name of the file.
const NAME: &str = "foresee.toml";

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    suppressions: Paths,
    #[serde(default)]
    atomicity: Atomicity,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Atomicity {
    #[serde(default)]
    regions: Vec<String>,
}

/// One file or several.
#[derive(Deserialize)]
#[serde(untagged, expecting = "expected the name of a file, or a list of them")]
enum Paths {
    One(PathBuf),
    Many(Vec<PathBuf>),
}

impl Default for Paths {
    fn default() -> Self {
        Paths::Many(Vec::new())
    }
}

/// The settings of a command: those of the file, and those of the command line.
#[derive(Default)]
pub(crate) struct Config {
    /// The methods whose calls are atomic regions.
    pub(crate) regions: Vec<Glob>,
    suppressions: Vec<PathBuf>,
}

impl Config {
    /// Finds the file, if there is one, and reads it.
    pub(crate) fn new(args: &ChecksArgs) -> anyhow::Result<Config> {
        let path = match &args.config {
            Some(path) => Some(path.clone()),
            None => nearest(),
        };
        let file = path.as_deref().map(read).transpose()?.unwrap_or_default();
        let folder = path.as_deref().and_then(Path::parent).unwrap_or(Path::new(""));
        let suppressions = match file.suppressions {
            Paths::One(path) => vec![path],
            Paths::Many(paths) => paths,
        };
        let suppressions = suppressions.iter().map(|path| folder.join(path));
        let regions = file.atomicity.regions.iter().chain(&args.region);
        Ok(Config {
            regions: regions.map(|method| Glob::new(method)).collect(),
            suppressions: suppressions.chain(args.suppressions.iter().cloned()).collect(),
        })
    }

    /// The suppressed findings.
    pub(crate) fn suppressions(&self) -> anyhow::Result<Suppressions> {
        let mut suppressions = Suppressions::default();
        for path in &self.suppressions {
            let name = path.display().to_string();
            let text = std::fs::read_to_string(path)
                .with_context(|| format!("cannot read the suppressions in {name}"))?;
            suppressions.read(&name, &text).map_err(|mistake| anyhow!(mistake))?;
        }
        Ok(suppressions)
    }
}

/// The file in this folder or the nearest above it.
fn nearest() -> Option<PathBuf> {
    let here = std::env::current_dir().ok()?;
    let found = here.ancestors().map(|folder| folder.join(NAME)).find(|path| path.is_file())?;
    // In this folder, its name alone is used.
    Some(found.strip_prefix(&here).map(Path::to_owned).unwrap_or(found))
}

fn read(path: &Path) -> anyhow::Result<File> {
    let name = path.display();
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {name}"))?;
    toml::from_str(&text).map_err(|mistake| anyhow!("{name}: {}", mistake.to_string().trim_end()))
}
