//! Settings that need not be repeated on the command line: `foresee.toml` and `FORESEE_OPTIONS`.
//!
//! A setting is the long name of a flag. Settings become arguments that stand before those of the
//! user, so that what is typed comes last and counts: command line, environment, file.
//!
//! ```toml
//! check = ["race", "deadlock"]      # --check race --check deadlock
//! suppressions = "foresee.supp"     # files are relative to this one
//!
//! [profile.ci]                      # --profile ci
//! time-limit = 300
//! format = "junit"
//! ```

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use anyhow::{anyhow, bail, ensure};
use clap::{Arg, ArgAction, Command, CommandFactory as _};
use foresee_support::nearest::nearest;
use toml::{Table, Value};

use crate::args::Cli;
use crate::whole_file;

/// The name of the file.
const NAME: &str = "foresee.toml";

/// The environment variable.
pub(crate) const VARIABLE: &str = "FORESEE_OPTIONS";

/// What stands in the file besides flags.
const PROFILES: &str = "profile";
const ATOMICITY: &str = "atomicity";

/// The flags that say which settings there are; these are not settings themselves.
const CHOOSING: &[&str] = &["config", "profile", "help", "version"];

/// Where a setting comes from, and its words for each flag.
type Settings = BTreeMap<String, (String, Vec<OsString>)>;

/// The arguments of the command with those of the settings, and what was added, for messages.
pub(crate) fn arguments(typed: Vec<OsString>) -> anyhow::Result<(Vec<OsString>, Vec<String>)> {
    let all = Cli::command();
    let Some(name) = typed.get(1).and_then(|name| name.to_str()) else {
        return Ok((typed, Vec::new()));
    };
    let Some(command) = all.find_subcommand(name).filter(|it| has(it, "config")) else {
        return Ok((typed, Vec::new()));
    };
    let chosen = Chosen::of(&all, name, &typed);
    let environment = match std::env::var(VARIABLE) {
        Ok(text) => split(&text)?,
        Err(std::env::VarError::NotPresent) => Vec::new(),
        Err(error) => bail!("{VARIABLE}: {error}"),
    };
    let of_environment = |key: &str| -> Option<String> {
        environment.iter().rev().find(|(known, _)| known == key)?.1.clone()
    };
    let config = chosen.config.or_else(|| of_environment("config").map(PathBuf::from));
    let profile = chosen.profile.or_else(|| of_environment("profile"));
    let mut settings = Settings::new();
    match config.or_else(nearest_file) {
        Some(path) => read(&all, &path, profile.as_deref(), &mut settings)?,
        None => ensure!(
            profile.is_none(),
            "there is no profile `{}`: there is no {NAME} here or in a folder above",
            profile.unwrap_or_default()
        ),
    }
    for (key, value) in environment {
        if CHOOSING.contains(&key.as_str()) {
            continue;
        }
        let arg = flag(&all, &key).map_err(|mistake| anyhow!("{VARIABLE}: {mistake}"))?;
        let words = match (arg.get_action(), value.as_deref()) {
            (ArgAction::SetTrue, None | Some("1" | "true" | "yes")) => vec![dashed(&key)],
            (ArgAction::SetTrue, Some("0" | "false" | "no")) => Vec::new(),
            (ArgAction::SetTrue, Some(other)) => {
                bail!("{VARIABLE}: `{key}` is on or off: write {key}=1 or {key}=0, not `{other}`")
            }
            (_, None) => bail!("{VARIABLE}: `{key}` needs a value: {key}=VALUE"),
            (_, Some(value)) => vec![joined(&key, value)],
        };
        settings.insert(key, (VARIABLE.to_owned(), words));
    }
    let mut arguments = typed;
    let mut added = Vec::new();
    let mut at = 2;
    for (key, (origin, words)) in settings {
        // A setting for another command is not one for this.
        if !has(command, &key) {
            continue;
        }
        for word in words {
            added.push(format!("{} ({origin})", word.to_string_lossy()));
            arguments.insert(at, word);
            at += 1;
        }
    }
    Ok((arguments, added))
}

/// What the user typed about settings.
#[derive(Default)]
struct Chosen {
    config: Option<PathBuf>,
    profile: Option<String>,
}

impl Chosen {
    /// Something required may only stand in the file, so mistakes are left to the second reading.
    fn of(all: &Command, name: &str, typed: &[OsString]) -> Chosen {
        let lenient = all.clone().ignore_errors(true);
        let Ok(matches) = lenient.try_get_matches_from(typed) else { return Chosen::default() };
        let Some(matches) = matches.subcommand_matches(name) else { return Chosen::default() };
        Chosen {
            config: matches.try_get_one("config").ok().flatten().cloned(),
            profile: matches.try_get_one("profile").ok().flatten().cloned(),
        }
    }
}

/// The file of the settings that are used if nothing else is said.
pub(crate) fn nearest_file() -> Option<PathBuf> {
    let here = std::env::current_dir().ok()?;
    let found = here.ancestors().map(|folder| folder.join(NAME)).find(|path| path.is_file())?;
    // In this folder, its name alone is used.
    Some(found.strip_prefix(&here).map(Path::to_owned).unwrap_or(found))
}

/// The file, with its atomic regions taken out.
pub(crate) fn table(path: &Path) -> anyhow::Result<(Table, Vec<String>)> {
    let name = path.display();
    let text = whole_file::read(path, whole_file::SETTINGS)?;
    let mut table: Table = toml::from_str(&text)
        .map_err(|mistake| anyhow!("{name}: {}", mistake.to_string().trim_end()))?;
    let regions = match table.remove(ATOMICITY) {
        None => Vec::new(),
        Some(Value::Table(mut inner)) => {
            let regions = inner.remove("regions").map_or(Ok(Vec::new()), |value| match value {
                Value::Array(all) if all.iter().all(Value::is_str) => {
                    Ok(all.iter().filter_map(Value::as_str).map(str::to_owned).collect())
                }
                _ => Err(anyhow!("{name}: `{ATOMICITY}.regions` should be a list of names")),
            })?;
            if let Some(key) = inner.keys().next() {
                bail!("{name}: there is no setting `{ATOMICITY}.{key}`: the only one is `regions`");
            }
            regions
        }
        Some(_) => bail!("{name}: `{ATOMICITY}` should be a table with `regions`"),
    };
    Ok((table, regions))
}

/// The value of a setting that is a file, for commands that take no other settings.
pub(crate) fn file_setting(key: &str) -> anyhow::Result<Option<PathBuf>> {
    let Some(path) = nearest_file() else { return Ok(None) };
    let (table, _) = table(&path)?;
    let value = table.get(key).and_then(Value::as_str);
    Ok(value.map(|value| folder(&path).join(value)))
}

/// Whether the settings of a file, and all its profiles, can be understood.
pub(crate) fn check(path: &Path) -> anyhow::Result<()> {
    read(&Cli::command(), path, None, &mut Settings::new())
}

fn folder(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new(""))
}

/// Reads the settings of a file, and of a profile in it, which come before the others.
fn read(
    all: &Command,
    path: &Path,
    profile: Option<&str>,
    settings: &mut Settings,
) -> anyhow::Result<()> {
    let (mut table, _) = table(path)?;
    let name = path.display().to_string();
    let profiles = match table.remove(PROFILES) {
        None => Table::new(),
        Some(Value::Table(profiles)) => profiles,
        Some(_) => bail!("{name}: `{PROFILES}` should be a table of profiles: [profile.ci]"),
    };
    add(all, path, &name, &table, settings)?;
    // A misspelt flag shows in every run, not only in that of its profile.
    for (title, inner) in &profiles {
        let origin = format!("{name}, profile {title}");
        let Value::Table(inner) = inner else {
            bail!("{name}: `{PROFILES}.{title}` should be a table of settings")
        };
        let mut of_profile = Settings::new();
        add(all, path, &origin, inner, &mut of_profile)?;
        if profile == Some(title) {
            settings.extend(of_profile);
        }
    }
    if let Some(wanted) = profile.filter(|wanted| !profiles.contains_key(*wanted)) {
        let names = || profiles.keys().map(String::as_str);
        let help = match nearest(wanted, names()) {
            Some(near) => format!("did you mean `{near}`?"),
            None if profiles.is_empty() => "the file has none".to_owned(),
            None => format!("the file has {}", names().collect::<Vec<_>>().join(", ")),
        };
        bail!("{name}: there is no profile `{wanted}`: {help}");
    }
    Ok(())
}

fn add(
    all: &Command,
    path: &Path,
    origin: &str,
    table: &Table,
    settings: &mut Settings,
) -> anyhow::Result<()> {
    for (key, value) in table {
        ensure!(
            !CHOOSING.contains(&key.as_str()),
            "{origin}: `{key}` chooses the settings, so it is not one of them"
        );
        let arg = flag(all, key).map_err(|mistake| anyhow!("{origin}: {mistake}"))?;
        let is_file = arg.get_value_parser().type_id() == std::any::TypeId::of::<PathBuf>();
        let text = |value: &Value| -> anyhow::Result<OsString> {
            Ok(match value {
                Value::String(text) if is_file && text != "-" => {
                    joined_os(key, folder(path).join(text).as_os_str())
                }
                Value::String(text) => joined(key, text),
                Value::Integer(number) => joined(key, &number.to_string()),
                Value::Float(number) => joined(key, &number.to_string()),
                _ => bail!("{origin}: `{key}` should be a text or a number"),
            })
        };
        let takes_many = matches!(arg.get_action(), ArgAction::Append);
        let words = match (arg.get_action(), value) {
            (ArgAction::SetTrue, Value::Boolean(true)) => vec![dashed(key)],
            (ArgAction::SetTrue, Value::Boolean(false)) => Vec::new(),
            (ArgAction::SetTrue, _) => bail!("{origin}: `{key}` should be true or false"),
            (_, Value::Array(values)) if takes_many => {
                values.iter().map(text).collect::<Result<_, _>>()?
            }
            (_, Value::Array(_)) => bail!("{origin}: `{key}` takes one value, not a list"),
            (_, value) => vec![text(value)?],
        };
        settings.insert(key.clone(), (origin.to_owned(), words));
    }
    Ok(())
}

fn dashed(key: &str) -> OsString {
    format!("--{key}").into()
}

fn joined(key: &str, value: &str) -> OsString {
    joined_os(key, OsStr::new(value))
}

fn joined_os(key: &str, value: &OsStr) -> OsString {
    let mut word: OsString = format!("--{key}=").into();
    word.push(value);
    word
}

fn has(command: &Command, key: &str) -> bool {
    command.get_arguments().any(|arg| arg.get_long() == Some(key))
}

/// The flag that a setting is named after, of any command that takes settings.
fn flag<'c>(all: &'c Command, key: &str) -> Result<&'c Arg, String> {
    let args = || {
        let commands = all.get_subcommands().filter(|command| has(command, "config"));
        commands.flat_map(Command::get_arguments).filter(|arg| arg.get_long().is_some())
    };
    let names = || args().filter_map(Arg::get_long).filter(|name| !CHOOSING.contains(name));
    args().find(|arg| arg.get_long() == Some(key)).ok_or_else(|| {
        let help = match nearest(key, names()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "settings are named like the flags of `foresee run` and `foresee check`".into(),
        };
        format!("there is no setting `{key}`: {help}")
    })
}

/// Splits `a=1:b="x y" c` into settings. Underscores in names stand for hyphens, as in the options of
/// sanitizers.
fn split(text: &str) -> anyhow::Result<Vec<(String, Option<String>)>> {
    let mut settings = Vec::new();
    let mut chars = text.chars().peekable();
    loop {
        while chars.next_if(|&c| c == ':' || c.is_whitespace()).is_some() {}
        if chars.peek().is_none() {
            return Ok(settings);
        }
        let mut key = String::new();
        while let Some(c) = chars.next_if(|&c| c != '=' && c != ':' && !c.is_whitespace()) {
            key.push(if c == '_' { '-' } else { c });
        }
        if chars.next_if_eq(&'=').is_none() {
            settings.push((key, None));
            continue;
        }
        let mut value = String::new();
        match chars.next_if(|&c| c == '"' || c == '\'') {
            Some(quote) => loop {
                match chars.next() {
                    Some(c) if c == quote => break,
                    Some(c) => value.push(c),
                    None => bail!("{VARIABLE}: the quotation of `{key}` does not end"),
                }
            },
            None => {
                while let Some(c) = chars.next_if(|&c| c != ':' && !c.is_whitespace()) {
                    value.push(c);
                }
            }
        }
        settings.push((key, Some(value)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_split_as_those_of_sanitizers() {
        let some = |key: &str, value: &str| (key.to_owned(), Some(value.to_owned()));
        let found = split("time_limit=60: suppressions='C:\\a b'  wide:x=").expect("it is right");
        let wide = ("wide".to_owned(), None);
        assert_eq!(
            found,
            [some("time-limit", "60"), some("suppressions", "C:\\a b"), wide, some("x", "")]
        );
        assert!(split("a=\"b").is_err());
        assert!(split(" : ").expect("it is empty").is_empty());
    }
}
