//! For GitHub Actions: a workflow command for each finding, which the web page shows beside the line
//! of source.

use std::fmt::{self, Write as _};

use foresee_trace::{Finding, FindingKind, Visible};

use crate::report::{Report, missing};
use crate::sarif::headline;
use crate::text::short::{self, Shorter};

/// The report as lines of workflow commands.
pub fn report(report: &Report) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = write(report, &mut out);
    out
}

fn write(report: &Report, out: &mut String) -> fmt::Result {
    for finding in &report.findings {
        let command = match finding.kind {
            FindingKind::Observed | FindingKind::Predicted => "error",
            FindingKind::ScheduleDependent | FindingKind::Conditional => "warning",
        };
        let title = match finding.fingerprint {
            Some(fingerprint) => format!("{} {fingerprint}", finding.rule()),
            None => finding.rule(),
        };
        write!(out, "::{command} title={}", Property(&format!("foresee: {title}")))?;
        let mut sites = finding.sites.iter().filter(|site| site.role.identifies());
        // Only the program's own sources are shown beside what they say.
        if let Some(place) = sites.find_map(|site| site.location()).map(short::frame) {
            if let Some(file) = &place.file {
                write!(out, ",file={}", Property(file))?;
            }
            if let Some(line) = place.line {
                write!(out, ",line={line}")?;
            }
            if let Some(column) = place.column {
                write!(out, ",col={column}")?;
            }
        }
        writeln!(out, "::{}", Data(&told(finding)))?;
    }
    for why in missing(report) {
        let title = Property("foresee: not complete");
        writeln!(out, "::warning title={title}::{}", Data(&why))?;
    }
    Ok(())
}

/// The finding and its events, a line each, with long names shortened.
fn told(finding: &Finding) -> String {
    let mut text = headline(finding);
    for site in &finding.sites {
        text += &format!("\n{}: {site}", site.role.word());
    }
    Shorter::of(finding, "").apply(&text)
}

/// The message of a command, in which line ends and percent signs are escaped.
struct Data<'a>(&'a str);

impl fmt::Display for Data<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, line) in self.0.split('\n').enumerate() {
            if i > 0 {
                f.write_str("%0A")?;
            }
            f.write_str(&Visible(line).to_string().replace('%', "%25"))?;
        }
        Ok(())
    }
}

/// A property of a command, in which colons and commas are escaped as well.
struct Property<'a>(&'a str);

impl fmt::Display for Property<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = Data(self.0).to_string();
        f.write_str(&text.replace(':', "%3A").replace(',', "%2C"))
    }
}
