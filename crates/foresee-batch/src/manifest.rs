//! A file that says which traces are to be checked against what; see `docs/formats/batch.md`.

use std::path::{Path, PathBuf};

use serde::Deserialize;

/// A manifest: traces, each group with its own questions.
///
/// ```
/// use foresee_batch::Manifest;
///
/// let text = "[[batch]]\ntraces = [\"runs/*.std\"]\nchecks = [\"race\"]\n";
/// let manifest = Manifest::parse(text)?;
/// assert_eq!(manifest.batch[0].checks, ["race"]);
/// # Ok::<(), foresee_batch::BadManifest>(())
/// ```
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// The groups.
    pub batch: Vec<Product>,
}

/// Traces, and what is asked of each of them.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Product {
    /// Files, folders and patterns of files.
    pub traces: Vec<PathBuf>,
    /// Specifications: files, folders and patterns of files.
    #[serde(default)]
    pub specs: Vec<PathBuf>,
    /// Checks, by name.
    #[serde(default)]
    pub checks: Vec<String>,
    /// The format of the traces, unless it is recognised by the content.
    #[serde(default)]
    pub input_format: Option<String>,
    /// Whether to repair what no execution could have produced.
    #[serde(default)]
    pub repair: bool,
}

/// A manifest that cannot be used.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub struct BadManifest(String);

impl Manifest {
    /// Reads the text of a manifest.
    pub fn parse(text: &str) -> Result<Manifest, BadManifest> {
        let bad = |error: toml::de::Error| BadManifest(error.to_string().trim_end().to_owned());
        toml::from_str(text).map_err(bad)
    }

    /// The groups, with all files relative to the folder of the manifest.
    pub fn products(self, folder: &Path) -> Vec<Product> {
        let place = |paths: Vec<PathBuf>| paths.iter().map(|path| folder.join(path)).collect();
        let groups = self.batch.into_iter();
        let placed = groups.map(|group| Product {
            traces: place(group.traces),
            specs: place(group.specs),
            ..group
        });
        placed.collect()
    }
}
