//! What the settings say of the checks: atomic regions, suppressions and the baseline.

use std::path::PathBuf;

use anyhow::anyhow;
use foresee_predict::checks::{Day, Glob, Suppressions};

use crate::args::ChecksArgs;
use crate::{settings, whole_file};

/// The settings of a command: those of the file, and those of the command line.
#[derive(Default)]
pub(crate) struct Config {
    /// The methods whose calls are atomic regions.
    pub(crate) regions: Vec<Glob>,
    suppressions: Vec<PathBuf>,
    baseline: Option<PathBuf>,
}

impl Config {
    /// Finds the file, if there is one, and reads it.
    pub(crate) fn new(args: &ChecksArgs) -> anyhow::Result<Config> {
        let path = args.config.clone().or_else(settings::nearest_file);
        // Regions of the file are for whatever looks for them; those of the command line ask for it.
        let regions = match &path {
            Some(path) => settings::table(path)?.1,
            None => Vec::new(),
        };
        Ok(Config {
            regions: regions.iter().chain(&args.region).map(|method| Glob::new(method)).collect(),
            suppressions: args.suppressions.clone(),
            baseline: args.baseline.clone(),
        })
    }

    /// The suppressed findings, and those that are known.
    pub(crate) fn suppressions(&self) -> anyhow::Result<Suppressions> {
        let (mut suppressions, today) = (Suppressions::default(), Day::today());
        for path in &self.suppressions {
            let name = path.display().to_string();
            let text = whole_file::read(path, whole_file::SUPPRESSIONS)?;
            suppressions.read(&name, &text, today).map_err(|mistake| anyhow!(mistake))?;
        }
        if let Some(path) = &self.baseline {
            let name = path.display().to_string();
            let text = whole_file::read(path, whole_file::BASELINE).map_err(|error| {
                anyhow!("{error:#}; `foresee baseline update` writes a baseline")
            })?;
            suppressions.read_baseline(&name, &text, today).map_err(|mistake| anyhow!(mistake))?;
        }
        Ok(suppressions)
    }
}
