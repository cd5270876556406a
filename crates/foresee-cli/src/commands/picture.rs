//! `foresee check --lattice`: the lattice of each property as a picture.

use std::path::{Path, PathBuf};

use anyhow::ensure;
use foresee_predict::lattice::Picture;
use foresee_predict::session::Drawing;

use crate::output;

/// Where the pictures go.
pub(crate) struct Pictures<'a> {
    file: &'a Path,
    /// Names already used, so that no picture overwrites another.
    used: Vec<PathBuf>,
}

impl<'a> Pictures<'a> {
    /// Pictures in `file`, or in files named after it.
    pub(crate) fn new(file: &'a Path) -> anyhow::Result<Self> {
        let named = file != Path::new("-") && file.file_name().is_some();
        ensure!(named, "--lattice needs the name of a file, not `{}`", file.display());
        Ok(Pictures { file, used: Vec::new() })
    }

    /// Draws a lattice. If that is impossible, prints a note and leaves no file.
    pub(crate) fn draw(&mut self, drawing: &Drawing) -> anyhow::Result<()> {
        let why = match drawing {
            Drawing::OrderUnknown => {
                "no lattice is drawn: the order of this trace is only that of its notes".to_owned()
            }
            Drawing::Nothing(name) => {
                format!("no lattice is drawn of `{name}`: no binding of its parameters is violated")
            }
            Drawing::Lattice { property, picture: Err(why), .. } => {
                format!("no lattice is drawn of `{property}`: {why}")
            }
            Drawing::Lattice { property, is_only, number, picture: Ok(picture) } => {
                let name = (!is_only || number.is_some()).then(|| property.clone());
                let number = number.map(|number| number.to_string());
                return self.write(picture, name.into_iter().chain(number).collect());
            }
        };
        output::note(&why);
        Ok(())
    }

    fn write(&mut self, picture: &Picture, mut parts: Vec<String>) -> anyhow::Result<()> {
        let mut file = inserted(self.file, &parts);
        // Properties of two specifications may have the same name.
        for n in 2.. {
            if !self.used.contains(&file) {
                break;
            }
            let again = n > 2;
            parts.truncate(parts.len() - usize::from(again));
            parts.push(n.to_string());
            file = inserted(self.file, &parts);
        }
        output::write_file(&file, &foresee_report::lattice_svg(picture))?;
        let binding: Vec<String> =
            picture.binding.iter().map(|(name, object)| format!("{name} = {object}")).collect();
        let of = match binding.is_empty() {
            true => String::new(),
            false => format!(" for {}", binding.join(", ")),
        };
        let name = &picture.property;
        output::note(&format!("the lattice of `{name}`{of} is drawn in {}", file.display()));
        self.used.push(file);
        Ok(())
    }
}

/// A lattice as it stands in an HTML page, with its property.
pub(crate) fn image(drawing: &Drawing) -> Option<(String, String)> {
    match drawing {
        Drawing::Lattice { property, picture: Ok(picture), .. } => {
            Some((property.clone(), foresee_report::lattice_svg(picture)))
        }
        _ => None,
    }
}

/// `lattice-level.svg` for `lattice.svg` and `level`.
fn inserted(file: &Path, parts: &[String]) -> PathBuf {
    let mut name = file.file_stem().unwrap_or_default().to_owned();
    for part in parts {
        name.push("-");
        name.push(part);
    }
    if let Some(ending) = file.extension() {
        name.push(".");
        name.push(ending);
    }
    file.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_go_before_the_ending() {
        let with = |file: &str, parts: &[&str]| {
            let parts: Vec<String> = parts.iter().map(|part| (*part).to_owned()).collect();
            inserted(Path::new(file), &parts).display().to_string()
        };
        assert_eq!(with("out/lattice.svg", &[]), "out/lattice.svg");
        assert_eq!(with("out/lattice.svg", &["level"]), "out/lattice-level.svg");
        assert_eq!(with("lattice", &["level", "2"]), "lattice-level-2");
    }
}
