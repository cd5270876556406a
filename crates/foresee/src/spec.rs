//! Specifications.

use std::convert::Infallible;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use foresee_predict::session::{BadSpec, Specification};

/// What must hold of every run, in the specification language: past- and future-time logic, regular
/// expressions, patterns and automata.
///
/// ```
/// use foresee::Spec;
///
/// let spec: Spec = "init x = 0\nproperty small: x < 3\npattern pair: write(x) .. write(x)".parse()?;
/// assert_eq!(spec.properties().collect::<Vec<_>>(), ["small", "pair"]);
/// # Ok::<(), foresee::SpecError>(())
/// ```
///
/// An error shows the line, underlines the mistake and says what was expected:
///
/// ```
/// let error = foresee::Spec::parse("property small: x <").expect_err("something is missing");
/// assert!(error.to_string().contains("property small: x <"), "{error}");
/// ```
#[derive(Clone)]
pub struct Spec(pub(crate) Specification);

/// Why a specification cannot be used.
///
/// ```
/// use foresee::{Spec, SpecError};
///
/// let error = Spec::open("no/such/file").expect_err("there is no such file");
/// assert!(matches!(error, SpecError::Read { .. }));
/// assert!(matches!(Spec::parse("property"), Err(SpecError::Bad(_))));
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SpecError {
    /// The file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It has mistakes, which the message shows in the text.
    #[error(transparent)]
    Bad(#[from] BadSpec),
}

impl From<Infallible> for SpecError {
    fn from(never: Infallible) -> SpecError {
        match never {}
    }
}

impl Spec {
    /// Reads a specification from its text.
    ///
    /// ```
    /// let spec = foresee::Spec::parse("property p: x == 0")?;
    /// assert_eq!(spec.text(), "property p: x == 0");
    /// # Ok::<(), foresee::SpecError>(())
    /// ```
    pub fn parse(text: &str) -> Result<Spec, SpecError> {
        Ok(Spec(Specification::new("specification", text)?))
    }

    /// Reads a specification from a file.
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("landing.spec");
    /// # std::fs::write(&path, "property safe: landing -> approved")?;
    /// let spec = foresee::Spec::open(&path)?;
    /// assert_eq!(spec.properties().next(), Some("safe"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn open(path: impl AsRef<Path>) -> Result<Spec, SpecError> {
        let path = path.as_ref();
        let text = std::fs::read_to_string(path)
            .map_err(|source| SpecError::Read { path: path.to_owned(), source })?;
        Ok(Spec(Specification::new(&path.display().to_string(), &text)?))
    }

    /// The names of its properties, in their order.
    ///
    /// ```
    /// let spec = foresee::Spec::parse("property a: x == 0\nproperty b: y == 0")?;
    /// assert_eq!(spec.properties().count(), 2);
    /// # Ok::<(), foresee::SpecError>(())
    /// ```
    pub fn properties(&self) -> impl Iterator<Item = &str> {
        self.0.spec.properties.iter().map(|property| property.name.name.as_str())
    }

    /// It as it was written.
    ///
    /// ```
    /// assert!(foresee::Spec::parse("property p: x == 0")?.text().starts_with("property"));
    /// # Ok::<(), foresee::SpecError>(())
    /// ```
    pub fn text(&self) -> &str {
        &self.0.text
    }

    /// What should be known of it although it can be used, such as a property that always holds.
    ///
    /// ```
    /// assert!(foresee::Spec::parse("property p: x == 0")?.warnings().is_empty());
    /// assert!(!foresee::Spec::parse("property p: x == 0 || true")?.warnings().is_empty());
    /// # Ok::<(), foresee::SpecError>(())
    /// ```
    pub fn warnings(&self) -> Vec<String> {
        let Specification { name, text, warnings, .. } = &self.0;
        let render = |group: &Vec<_>| foresee_spec::render(group, name, text, false);
        warnings.iter().map(render).collect()
    }
}

impl fmt::Debug for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Spec").field(&self.0.text).finish()
    }
}

impl FromStr for Spec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Spec, SpecError> {
        Spec::parse(text)
    }
}

impl TryFrom<&str> for Spec {
    type Error = SpecError;

    fn try_from(text: &str) -> Result<Spec, SpecError> {
        Spec::parse(text)
    }
}

impl TryFrom<&String> for Spec {
    type Error = SpecError;

    fn try_from(text: &String) -> Result<Spec, SpecError> {
        Spec::parse(text)
    }
}

impl From<&Spec> for Spec {
    fn from(spec: &Spec) -> Spec {
        spec.clone()
    }
}
