//! Brings the agent into a command that runs Java.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// The file of the agent.
const JAR: &str = "foresee-jvm.jar";

/// The environment variable that names the agent.
const VARIABLE: &str = "FORESEE_JVM_AGENT";

/// The environment variable from which every JVM takes options, however it is started. It says so on the standard error.
const OPTIONS: &str = "JAVA_TOOL_OPTIONS";

/// What a JVM gets beside the agent. The agent adds to the bootstrap class path, and a JVM that uses shared archives warns of that
/// on its standard output. The helpers that the agent puts into classes are cheaper to compile if they stay separate. And code that
/// spends its time in them gains little from the optimising compiler, which takes longer for it than for the program's own code: it
/// comes at thirty times the usual counts, except for the agent's own code that every access goes through.
const BESIDE: [&str; 11] = [
    "-Xshare:off",
    "-XX:CompileCommand=quiet",
    "-XX:CompileCommand=dontinline,*::$fs$*",
    "-XX:Tier4InvocationThreshold=150000",
    "-XX:Tier4MinInvocationThreshold=18000",
    "-XX:Tier4CompileThreshold=450000",
    "-XX:Tier4BackEdgeThreshold=1200000",
    "-XX:CompileCommand=CompileThresholdScaling,foresee.jvm.Accesses::*,0.03",
    "-XX:CompileCommand=CompileThresholdScaling,foresee.jvm.ThreadLog::*,0.03",
    "-XX:CompileCommand=CompileThresholdScaling,foresee.jvm.Rt::*,0.03",
    "-XX:CompileCommand=CompileThresholdScaling,foresee.jvm.Ids::*,0.03",
];

/// There is no agent.
#[derive(Debug, thiserror::Error)]
#[error(
    "the agent for Java programs is missing ({JAR}): build it with `./scripts/jvm-agent`, or name it in {VARIABLE}"
)]
pub struct MissingAgent;

/// The agent, which is in a file.
#[derive(Clone, Debug)]
pub struct Agent(PathBuf);

/// How a command gets the agent.
#[derive(Debug, PartialEq, Eq)]
pub enum Injected {
    /// It is this command instead.
    Command(Vec<OsString>),
    /// It runs with this variable in its environment.
    Variable(&'static str, OsString),
}

/// Whether the command is the Java launcher itself.
pub fn is_java(command: &OsStr) -> bool {
    Path::new(command).file_name().is_some_and(|name| name == "java")
}

/// Whether the command is a build tool that starts Java programs.
fn is_build_tool(command: &OsStr) -> bool {
    let name = Path::new(command).file_name().and_then(OsStr::to_str).unwrap_or("");
    matches!(name, "mvn" | "mvnw" | "gradle" | "gradlew" | "sbt" | "kotlin" | "scala")
}

impl Agent {
    /// The agent for a command that runs Java, or may run it: beside this program, in its data folder, in the tree that it was
    /// built in, or where the environment says.
    pub fn find(command: &OsStr) -> Result<Option<Agent>, MissingAgent> {
        let needs_it = is_java(command) || is_build_tool(command);
        if let Some(named) = env::var_os(VARIABLE) {
            let path = PathBuf::from(named);
            return match path.is_file() {
                true => Ok(Some(Agent(path))),
                false if needs_it => Err(MissingAgent),
                false => Ok(None),
            };
        }
        let own = env::current_exe().and_then(fs::canonicalize).ok();
        let folders = own.as_deref().map(Path::ancestors).into_iter().flatten().skip(1);
        let places = folders.flat_map(|folder| {
            [
                folder.join(JAR),
                folder.join("share/foresee").join(JAR),
                folder.join("agents/jvm/target").join(JAR),
            ]
        });
        match places.into_iter().find(|place| place.is_file()) {
            Some(path) => Ok(Some(Agent(path))),
            None if needs_it => Err(MissingAgent),
            None => Ok(None),
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Writes the agent's configuration into a file, and makes the command read it.
    pub fn inject(
        &self,
        command: &[OsString],
        file: &Path,
        settings: &[(&str, String)],
    ) -> io::Result<Injected> {
        let lines: Vec<String> =
            settings.iter().map(|(name, value)| format!("{name} {value}\n")).collect();
        fs::write(file, lines.concat())?;
        let mut option = OsString::from("-javaagent:");
        option.push(&self.0);
        option.push("=");
        option.push(file);
        if let Some((program, arguments)) = command.split_first()
            && is_java(program)
        {
            let mut injected = vec![program.clone()];
            injected.extend(BESIDE.map(OsString::from));
            injected.push(option);
            injected.extend_from_slice(arguments);
            return Ok(Injected::Command(injected));
        }
        // Options are separated by spaces, and there is no other way to write one.
        if option.as_encoded_bytes().iter().any(u8::is_ascii_whitespace) {
            let text = "the agent or the temporary folder has a space in its path";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        let mut options = env::var_os(OPTIONS).unwrap_or_default();
        if !options.is_empty() {
            options.push(" ");
        }
        options.push(BESIDE.join(" "));
        options.push(" ");
        options.push(option);
        Ok(Injected::Variable(OPTIONS, options))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_launcher_gets_an_argument_and_others_a_variable() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("agent.conf");
        let agent = Agent("/opt/foresee-jvm.jar".into());
        let words = |words: &[&str]| words.iter().map(OsString::from).collect::<Vec<_>>();
        let settings = [("out", "/tmp/x".to_owned()), ("method", "Bank.pay".to_owned())];
        let java =
            agent.inject(&words(&["/usr/bin/java", "-cp", ".", "Main"]), &file, &settings).unwrap();
        let option = format!("-javaagent:/opt/foresee-jvm.jar={}", file.display());
        let expected = [&["/usr/bin/java"], &BESIDE[..], &[&option, "-cp", ".", "Main"]].concat();
        let expected = words(&expected);
        assert_eq!(java, Injected::Command(expected));
        assert_eq!(fs::read_to_string(&file).unwrap(), "out /tmp/x\nmethod Bank.pay\n");
        let maven = agent.inject(&words(&["mvn", "test"]), &file, &settings).unwrap();
        let Injected::Variable("JAVA_TOOL_OPTIONS", options) = maven else { panic!("{maven:?}") };
        assert!(options.to_str().unwrap().ends_with(&option));
    }
}
