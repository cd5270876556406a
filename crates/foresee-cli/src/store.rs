//! The findings of the last report made in each folder, for `foresee explain` and `foresee
//! baseline`: small files in the user's own cache, which nobody else can read.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context, bail};
use foresee_capture::compiler::own_cache;
use foresee_report::Report;
use foresee_report::text::{self, Level, Options, Style};
use serde::{Deserialize, Serialize};

/// How many findings are kept, and how many bytes of text for all of them.
const MOST_FINDINGS: usize = 5_000;
const MOST_TEXT: usize = 2 << 20;

/// How long the text of one finding and its message may be.
const LONGEST_TEXT: usize = 256 << 10;
const LONGEST_MESSAGE: usize = 300;

/// For how many folders reports are kept.
const MOST_FOLDERS: usize = 32;

/// The findings of a report.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct Stored {
    /// Which version wrote it.
    foresee: String,
    /// What the findings are of.
    pub(crate) name: String,
    /// What was found.
    pub(crate) findings: Vec<StoredFinding>,
    /// Fingerprints of what was found and is in the baseline.
    pub(crate) known: Vec<String>,
}

/// A finding.
#[derive(Serialize, Deserialize)]
pub(crate) struct StoredFinding {
    pub(crate) fingerprint: String,
    pub(crate) kind: String,
    pub(crate) rule: String,
    pub(crate) message: String,
    /// The finding in full, unless there were too many.
    pub(crate) text: Option<String>,
}

impl Stored {
    /// Adds the findings of a report.
    pub(crate) fn add(&mut self, report: &Report, options: &Options) {
        self.foresee = env!("CARGO_PKG_VERSION").to_owned();
        if self.name.is_empty() {
            self.name.clone_from(&report.name);
        }
        let wide = Options {
            style: Style::Plain,
            level: Level::Verbose,
            is_wide: true,
            ..options.clone()
        };
        let mut room =
            MOST_TEXT.saturating_sub(self.findings.iter().map(StoredFinding::size).sum());
        for (i, finding) in report.findings.iter().enumerate() {
            let Some(fingerprint) = finding.fingerprint else { continue };
            if self.findings.len() == MOST_FINDINGS {
                break;
            }
            let mut text = None;
            if room > 0 {
                let whole = text::finding(report, i, &wide);
                let short =
                    || text::finding(report, i, &Options { is_wide: false, ..wide.clone() });
                let told = if whole.len() > LONGEST_TEXT { short() } else { whole };
                room = room.saturating_sub(told.len());
                text = Some(told).filter(|told| told.len() <= LONGEST_TEXT);
            }
            self.findings.push(StoredFinding {
                fingerprint: fingerprint.to_string(),
                kind: finding.kind.word().to_owned(),
                rule: finding.rule(),
                message: finding.message.chars().take(LONGEST_MESSAGE).collect(),
                text,
            });
        }
        let is_known =
            |one: &&foresee_predict::checks::Suppression| one.is_baseline && one.used > 0;
        let known = report.suppressions.all.iter().filter(is_known);
        self.known.extend(known.filter_map(|one| one.fingerprint().map(str::to_owned)));
    }

    /// Keeps it as the last report of this folder.
    pub(crate) fn save(&self) -> anyhow::Result<()> {
        let folder = own_cache(FOLDER)?;
        let path = folder.join(file_name()?);
        // A temporary file is readable for its owner alone.
        let mut file = tempfile::NamedTempFile::new_in(&folder)?;
        file.write_all(serde_json::to_string(self)?.as_bytes())?;
        file.persist(&path)?;
        forget_old(&folder);
        Ok(())
    }

    /// The last report of this folder.
    pub(crate) fn load() -> anyhow::Result<Stored> {
        let path = own_cache(FOLDER)?.join(file_name()?);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => bail!(
                "no report was made in this folder yet: `foresee check` and `foresee run` make one"
            ),
            Err(error) => {
                return Err(error).with_context(|| format!("cannot read {}", path.display()));
            }
        };
        serde_json::from_str(&text)
            .with_context(|| format!("{} is damaged: make a report again", path.display()))
    }
}

impl StoredFinding {
    fn size(&self) -> usize {
        self.text.as_ref().map_or(0, String::len)
    }
}

/// The folder in the user's cache.
const FOLDER: &str = "reports";

/// One file for each folder in which reports are made.
fn file_name() -> anyhow::Result<String> {
    let here: PathBuf = std::env::current_dir().context("cannot find the current folder")?;
    // FNV-1a: the name must be the same in every version.
    let hash =
        here.as_os_str().as_encoded_bytes().iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3_u64)
        });
    Ok(format!("{hash:016x}.json"))
}

/// Deletes the reports of the folders that were used longest ago.
fn forget_old(folder: &Path) {
    let Ok(files) = fs::read_dir(folder) else { return };
    let mut files: Vec<(SystemTime, PathBuf)> = files
        .filter_map(|file| {
            let file = file.ok()?;
            Some((file.metadata().ok()?.modified().ok()?, file.path()))
        })
        .collect();
    files.sort();
    let old = files.len().saturating_sub(MOST_FOLDERS);
    // What cannot be deleted now is tried again the next time.
    files[..old].iter().for_each(|(_, path)| _ = fs::remove_file(path));
}
