//! The command line. Help, shell completions and manual pages are all generated from it.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use foresee_capture::launch::LOG_LIMIT;
use foresee_causality::judge::Reads;
use foresee_observe::Limits;
use foresee_predict::info;
use foresee_predict::session::Limits as SearchLimits;
use foresee_trace::Space;

/// The headings under which `--help` groups the flags.
mod heading {
    pub(super) const INPUT: &str = "Input";
    pub(super) const CAPTURE: &str = "Capture";
    pub(super) const BATCH: &str = "Batch";
    pub(super) const QUEUE: &str = "Queue";
    pub(super) const NETWORK: &str = "Network";
    pub(super) const REPLAY: &str = "Replay";
    pub(super) const SPECS: &str = "Specifications";
    pub(super) const CHECKS: &str = "Checks";
    pub(super) const ATOMICITY: &str = "Atomicity";
    pub(super) const NONDETERMINISM: &str = "Nondeterminism";
    pub(super) const SEARCH: &str = "Search space";
    pub(super) const LIMITS: &str = "Search limits";
    pub(super) const OBSERVER_LIMITS: &str = "Observer limits";
    pub(super) const OUTPUT: &str = "Output";
}

/// Predicts concurrency failures from a run that passed.
#[derive(Parser)]
#[command(name = "foresee", version, max_term_width = 100)]
#[command(after_help = "Exit status:\n  \
    0  nothing found, and the answer is complete\n  \
    1  something found, observed or predicted\n  \
    2  bad usage, unreadable input or a faulty specification\n  \
    3  nothing found, but the answer is incomplete")]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Run a C, C++, Java or Rust program once, and analyse the run.
    ///
    /// C and C++ programs are built with `foresee cc` or `foresee c++`, Java programs run as they
    /// are, and Rust programs record themselves with the crate `foresee`. The command may also
    /// start such programs, like `make check` or `mvn test`.
    ///
    /// Without --spec, --pattern or --check, the default checks run.
    Run(Box<RunArgs>),
    /// Make a program follow a schedule, and say whether it fails as predicted.
    ///
    /// Schedules are written by `foresee run --schedules DIR`. Exit status: 1 the failure happened; 0 the program
    /// followed the schedule and did not fail; 3 it could not be made to follow the schedule, which refutes
    /// nothing; 2 the schedule or the command is unusable.
    Replay(Box<ReplayArgs>),
    /// Run a program again and again, until every schedule was covered or one fails.
    ///
    /// For programs built with `foresee cc` and `foresee c++`. Each run shows what threads do after what they were told; what
    /// follows from that is searched without running anything, and the program is run again only where something is not known
    /// yet. Exit status: 0 every schedule was covered and nothing failed; 1 something failed; 3 not every schedule was
    /// covered; 2 the program cannot be explored.
    Explore(Box<ExploreArgs>),
    /// Compile and link C for capture: a drop-in for gcc and clang, as in `make CC="foresee cc"`.
    ///
    /// Accepts the compiler's own arguments. The compiler is `cc` unless `foresee cc -- clang-19
    /// ARGS...` selects another; the environment variable FORESEE_CC overrides both. Where a build
    /// system expects a single word (CMAKE_C_COMPILER), use a link to foresee named `foresee-cc`.
    #[command(disable_help_flag = true)]
    Cc {
        /// Arguments for the compiler.
        #[arg(value_name = "ARGS", trailing_var_arg = true, allow_hyphen_values = true)]
        _arguments: Vec<std::ffi::OsString>,
    },
    /// Compile and link C++ for capture, like `foresee cc`.
    ///
    /// The compiler is `c++` unless FORESEE_CXX or `foresee c++ -- clang++-19` selects another.
    #[command(name = "c++", disable_help_flag = true)]
    Cxx {
        /// Arguments for the compiler.
        #[arg(value_name = "ARGS", trailing_var_arg = true, allow_hyphen_values = true)]
        _arguments: Vec<std::ffi::OsString>,
    },
    /// Analyse a trace.
    ///
    /// Without --spec, --pattern or --check, the default checks of `foresee run` are performed.
    Check(Box<CheckArgs>),
    /// Analyse many traces at once, and merge what was found.
    ///
    /// Every trace is checked against every specification. Results are kept, and what has not changed is not computed again.
    /// Without specifications and --check, the default checks are performed. Exit status: 1 something was found; 3 nothing was
    /// found, but some answer is missing or incomplete; 2 bad input; 0 otherwise.
    Batch(Box<BatchArgs>),
    /// Do the jobs of batches that were started with `foresee batch --queue`.
    ///
    /// Works until it is told to stop (SIGINT, SIGTERM or SIGHUP); a job that was begun is finished. Any number of workers on any number
    /// of machines share a queue.
    Worker(Box<WorkerArgs>),
    /// Analyse running programs, which send their events over sockets.
    Observe(Box<ObserveArgs>),
    /// Send a trace to an observer, as a running program would.
    Send(Box<SendArgs>),
    /// Build an index of a trace, which answers patterns without reading the trace again.
    Index(IndexArgs),
    /// Show one finding of the last report in this directory in full.
    Explain(ExplainArgs),
    /// Keep a list of known findings, so that only new ones count.
    Baseline(BaselineArgs),
    /// Say what this machine has of what foresee can use: compilers, JDK, agent, permissions, limits.
    ///
    /// Exit status 0 if everything is there, 3 if something is missing, 1 if something is broken.
    Doctor,
    /// Make an HTML page of a report that was written with `--format json`.
    Report(ReportArgs),
    /// Inspect, validate, convert and generate traces.
    Trace(TraceArgs),
    /// Check and explain specifications.
    Spec(SpecArgs),
    /// Serve an editor that shows specifications, by the Language Server Protocol on standard input and output.
    ///
    /// It reports mistakes while one types, explains properties and operators, completes names, and formats.
    Lsp {
        /// Trace whose variables, locks, threads, methods and events may be named.
        #[arg(long, value_name = "TRACE")]
        trace: Option<PathBuf>,
        /// Program, with debugging information, whose variables and functions are completed.
        #[arg(long, value_name = "PROGRAM")]
        program: Option<PathBuf>,
    },
    /// Copy a Java program so that it records itself, without a flag: `java -jar OUT/run.jar`.
    ///
    /// The copy brings the agent and its settings along. Each process records into a folder `OUT/logs/PID.jvm`, which
    /// `foresee check` reads like a trace.
    InstrumentJvm(InstrumentJvmArgs),
    /// Build and run a small program with a planted race in each language, and fail unless it is reported.
    ///
    /// The one in Rust is inside foresee and needs no compiler. Exit status 1 if a race was missed, 3 if nothing could be
    /// built.
    SelfTest(SelfTestArgs),
    /// Print a shell completion script.
    Completions {
        /// The shell.
        shell: Shell,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Print the manual page, or write one page per command.
    Man {
        /// Write the pages to this directory.
        #[arg(short, long, alias = "out", value_name = "DIR")]
        output: Option<PathBuf>,
    },
}

/// A language of programs that can be captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Language {
    C,
    #[value(name = "c++")]
    Cxx,
    Java,
    Rust,
}

impl Language {
    /// Its name.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Language::C => "C",
            Language::Cxx => "C++",
            Language::Java => "Java",
            Language::Rust => "Rust",
        }
    }
}

#[derive(Args)]
pub(crate) struct InstrumentJvmArgs {
    /// Class files and jars of the program.
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// The new folder for the copy.
    #[arg(short, long, value_name = "OUT")]
    pub(crate) output: PathBuf,
    /// Specification whose fields and methods are recorded; repeatable.
    #[arg(long, value_name = "FILE")]
    pub(crate) spec: Vec<PathBuf>,
    /// The class with the main method [default: that of a jar, or of a class file that has one].
    #[arg(long, value_name = "CLASS", value_parser = package)]
    pub(crate) main: Option<String>,
    /// Record accesses in this package or class only; repeatable.
    #[arg(long, value_name = "PACKAGE", value_parser = package)]
    pub(crate) include: Vec<String>,
    /// Record no accesses in this package or class; repeatable.
    #[arg(long, value_name = "PACKAGE", value_parser = package)]
    pub(crate) exclude: Vec<String>,
}

#[derive(Args)]
pub(crate) struct SelfTestArgs {
    /// Try only these languages, and fail if one cannot be tried [default: all that the machine has a toolchain for].
    #[arg(value_name = "LANGUAGE")]
    pub(crate) languages: Vec<Language>,
    /// Be the program in Rust.
    #[arg(long, hide = true)]
    pub(crate) planted: bool,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// How much memory a command without searches may take.
#[derive(Args)]
pub(crate) struct MemoryArgs {
    /// Memory limit of the process, in MiB.
    ///
    /// If it is reached, the trace counts as cut short, and the result says so.
    #[arg(long, value_name = "MIB", default_value_t = SearchLimits::default().memory / MIB)]
    #[arg(help_heading = heading::INPUT)]
    pub(crate) max_memory: usize,
}

/// How a trace is read.
#[derive(Args)]
pub(crate) struct InputArgs {
    /// The trace, or `-` for standard input.
    ///
    /// The format is detected from the content; `.gz` and `.zst` files are decompressed.
    #[arg(value_name = "TRACE")]
    pub(crate) trace: PathBuf,
    /// Read the trace in this format instead of detecting it.
    #[arg(long, value_name = "FORMAT", help_heading = heading::INPUT)]
    pub(crate) input_format: Option<String>,
    /// Repair what no execution could have produced, and list the changes.
    #[arg(long, help_heading = heading::INPUT)]
    pub(crate) repair: bool,
}

#[derive(Args)]
#[command(args_override_self = true)]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,
    #[command(flatten)]
    pub(crate) analysis: AnalysisArgs,
    /// Index of the trace [default: TRACE.fsi, if it exists and matches the trace].
    #[arg(long, value_name = "FILE", help_heading = heading::INPUT)]
    pub(crate) index: Option<PathBuf>,
}

#[derive(Args)]
#[command(args_override_self = true)]
pub(crate) struct BatchArgs {
    /// Traces and specifications: files, folders, or patterns such as 'runs/*.std'.
    ///
    /// Files called *.spec are specifications. Folders are searched for these and for traces called *.std, *.rr, *.csv,
    /// *.jsonl and *.fse, also with .gz or .zst.
    #[arg(value_name = "FILE", required_unless_present = "manifest")]
    pub(crate) files: Vec<PathBuf>,
    /// Also take the traces and questions that this file lists; repeatable.
    #[arg(long, value_name = "FILE.toml", help_heading = heading::INPUT)]
    pub(crate) manifest: Vec<PathBuf>,
    /// Read the traces in this format instead of detecting it.
    #[arg(long, value_name = "FORMAT", help_heading = heading::INPUT)]
    pub(crate) input_format: Option<String>,
    /// Repair what no execution could have produced, and list the changes.
    #[arg(long, help_heading = heading::INPUT)]
    pub(crate) repair: bool,
    /// Do only the K-th of N parts of the jobs, as one of N machines does.
    #[arg(long, value_name = "K/N", help_heading = heading::BATCH)]
    pub(crate) shard: Option<foresee_batch::Shard>,
    /// Split each job into about N parts, with some of the properties, checks or candidates of a check each.
    ///
    /// The report is the same. Each part reads the trace, so this pays for few traces with long searches.
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = heading::BATCH)]
    #[arg(value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..))]
    pub(crate) parts: usize,
    /// Keep results in this folder [default: the user's cache].
    #[arg(long, value_name = "DIR", help_heading = heading::BATCH)]
    pub(crate) cache: Option<PathBuf>,
    /// Compute everything, and keep nothing.
    #[arg(long, conflicts_with = "cache", help_heading = heading::BATCH)]
    pub(crate) no_cache: bool,
    /// Space for results of other batches; the oldest are removed.
    #[arg(long, value_name = "MIB", default_value_t = 1024, help_heading = heading::BATCH)]
    pub(crate) cache_size: u64,
    /// Have the jobs done by the workers of a queue on this NATS server, as in nats://HOST:4222.
    #[arg(long, value_name = "URL", help_heading = heading::QUEUE)]
    pub(crate) queue: Option<String>,
    #[command(flatten)]
    pub(crate) server: QueueArgs,
    #[command(flatten)]
    pub(crate) analysis: AnalysisArgs,
}

#[derive(Args)]
pub(crate) struct WorkerArgs {
    /// The NATS server with the queue, as in nats://HOST:4222; several are separated by commas.
    #[arg(long, value_name = "URL", help_heading = heading::QUEUE)]
    pub(crate) queue: String,
    #[command(flatten)]
    pub(crate) server: QueueArgs,
    /// Number of jobs to do at once; 0 takes one for each core.
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = heading::BATCH)]
    pub(crate) jobs: usize,
    /// Keep fetched traces in this folder [default: the user's cache].
    #[arg(long, value_name = "DIR", help_heading = heading::BATCH)]
    pub(crate) cache: Option<PathBuf>,
    /// Space for fetched traces.
    #[arg(long, value_name = "MIB", default_value_t = 4096, help_heading = heading::BATCH)]
    pub(crate) cache_size: u64,
    /// End after TIME without work [default: never].
    #[arg(long, value_name = "TIME", value_parser = seconds, help_heading = heading::BATCH)]
    pub(crate) idle: Option<u64>,
    /// Also run this program for `foresee explore --queue`, with any arguments; repeatable.
    ///
    /// Without it, a worker runs no programs. It runs its own file, and only for those who have the same one.
    #[arg(long, value_name = "PROGRAM", help_heading = heading::BATCH)]
    pub(crate) allow_run: Vec<std::ffi::OsString>,
    /// Also for those who ask for this shell command before each run with --before, word for word; repeatable.
    #[arg(long, value_name = "CMD", requires = "allow_run", help_heading = heading::BATCH)]
    pub(crate) allow_before: Vec<String>,
}

/// How to use the server of a queue.
#[derive(Args)]
pub(crate) struct QueueArgs {
    /// Name of the queue: letters, digits, `-` and `_`.
    #[arg(long, value_name = "NAME", default_value = "foresee", help_heading = heading::QUEUE)]
    pub(crate) queue_name: String,
    /// How long to go on without the server.
    #[arg(long, value_name = "TIME", value_parser = seconds, default_value_t = 60, help_heading = heading::QUEUE)]
    pub(crate) patience: u64,
    /// How long a job may be without a sign of life from its worker, if the queue is new.
    #[arg(long, value_name = "TIME", default_value_t = 30, help_heading = heading::QUEUE)]
    #[arg(value_parser = some_seconds)]
    pub(crate) ack_wait: u64,
    /// How long traces and results stay on the server, if the queue is new.
    #[arg(long, value_name = "HOURS", default_value_t = 168, help_heading = heading::QUEUE)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) keep_hours: u64,
    /// User of the server.
    #[arg(long, value_name = "NAME", env = "FORESEE_NATS_USER", help_heading = heading::QUEUE)]
    #[arg(requires = "nats_password")]
    pub(crate) nats_user: Option<String>,
    /// The user's password. Prefer the environment variable, which other users cannot read.
    #[arg(long, value_name = "TEXT", env = "FORESEE_NATS_PASSWORD", hide_env_values = true)]
    #[arg(requires = "nats_user", help_heading = heading::QUEUE)]
    pub(crate) nats_password: Option<String>,
    /// Token for the server. Prefer the environment variable, which other users cannot read.
    #[arg(long, value_name = "TEXT", env = "FORESEE_NATS_TOKEN", hide_env_values = true)]
    #[arg(conflicts_with_all = ["nats_user", "nats_nkey", "nats_creds"], help_heading = heading::QUEUE)]
    pub(crate) nats_token: Option<String>,
    /// File with the seed of an nkey.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["nats_user", "nats_creds"])]
    #[arg(help_heading = heading::QUEUE)]
    pub(crate) nats_nkey: Option<PathBuf>,
    /// File with credentials: a JWT and a seed.
    #[arg(long, value_name = "FILE", conflicts_with = "nats_user", help_heading = heading::QUEUE)]
    pub(crate) nats_creds: Option<PathBuf>,
    /// File with certificates to trust, in PEM; the connection is then secure, or there is none.
    #[arg(long, value_name = "FILE", help_heading = heading::QUEUE)]
    pub(crate) nats_ca: Option<PathBuf>,
    /// File with the own certificate, in PEM.
    #[arg(long, value_name = "FILE", requires = "nats_key", help_heading = heading::QUEUE)]
    pub(crate) nats_cert: Option<PathBuf>,
    /// File with the key of the own certificate, in PEM.
    #[arg(long, value_name = "FILE", requires = "nats_cert", help_heading = heading::QUEUE)]
    pub(crate) nats_key: Option<PathBuf>,
}

#[derive(Args)]
#[command(args_override_self = true)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) analysis: AnalysisArgs,
    /// Store the trace in this file, in the native format.
    #[arg(long, value_name = "PATH", help_heading = heading::OUTPUT)]
    pub(crate) keep: Option<PathBuf>,
    /// Send the run to an observer, HOST:PORT or unix:PATH, or to a queue of observers on a NATS server, nats://HOST:4222,
    /// while the program runs, and leave the analysis to them.
    ///
    /// Give --spec, too, so that what observers are to judge is recorded. Exit status: 0 everything was sent; 1 the program
    /// failed; 3 something is missing.
    #[arg(long, value_name = "ADDR", help_heading = heading::QUEUE)]
    #[arg(conflicts_with_all = ["confirm", "schedules", "lattice"])]
    pub(crate) to: Option<Destination>,
    #[command(flatten)]
    pub(crate) publish: PublishArgs,
    /// How threads run while they are captured.
    #[arg(long, value_enum, default_value_t = CaptureMode::Sync, help_heading = heading::CAPTURE)]
    pub(crate) mode: CaptureMode,
    /// Seed of the schedule.
    ///
    /// The seed determines how long each thread runs before the next one takes over. Equal seeds
    /// repeat a schedule unless the operating system interferes.
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = heading::CAPTURE)]
    pub(crate) seed: u64,
    /// Run the program N times with consecutive seeds and merge the reports.
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = heading::CAPTURE)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) runs: u32,
    /// Record every access, including those to memory that only one thread uses.
    #[arg(long, help_heading = heading::CAPTURE)]
    pub(crate) all: bool,
    /// Kill the program after TIME. A deadlocked program is killed in any case.
    #[arg(long, value_name = "TIME", value_parser = seconds, help_heading = heading::CAPTURE)]
    pub(crate) timeout: Option<u64>,
    /// Write a schedule for each predicted finding, and for the observed order, to this directory.
    ///
    /// `foresee replay` makes the program follow one.
    #[arg(long, value_name = "DIR", help_heading = heading::REPLAY)]
    pub(crate) schedules: Option<PathBuf>,
    /// Run the program again for each predicted finding, and make it fail as predicted.
    #[arg(long, help_heading = heading::REPLAY)]
    pub(crate) confirm: bool,
    /// Time limit of --confirm for all findings together.
    #[arg(long, value_name = "TIME", value_parser = seconds, default_value_t = 60, help_heading = heading::REPLAY)]
    #[arg(requires = "confirm")]
    pub(crate) confirm_time: u64,
    /// Do not report a failure of the program itself as a finding.
    ///
    /// A program fails if it exits with a status other than 0, is killed by a signal, or hangs.
    #[arg(long, help_heading = heading::CAPTURE)]
    pub(crate) ignore_program_failure: bool,
    /// Stop recording after MIB mebibytes; 0 for no limit.
    ///
    /// The program goes on, and what was recorded is analysed. The answer is then incomplete.
    #[arg(long, value_name = "MIB", default_value_t = LOG_LIMIT >> 20, help_heading = heading::CAPTURE)]
    pub(crate) log_limit: u64,
    /// Whether call stacks are recorded.
    ///
    /// With them, reports name the calls that led to each step. Without them, the log is smaller, and programs that make many calls
    /// run faster.
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = Stacks::Auto, help_heading = heading::CAPTURE)]
    pub(crate) stacks: Stacks,
    /// Assume that this uninstrumented library does not access shared data; repeatable.
    #[arg(long, value_name = "LIBRARY", help_heading = heading::CAPTURE)]
    pub(crate) trust: Vec<String>,
    /// Java: record accesses in this package or class only; repeatable.
    ///
    /// What orders threads and what a specification names is recorded everywhere. The report says what was left out, and a
    /// run without findings is incomplete.
    #[arg(long, value_name = "PACKAGE", value_parser = package, help_heading = heading::CAPTURE)]
    pub(crate) include: Vec<String>,
    /// Java: record no accesses in this package or class; repeatable.
    ///
    /// This takes precedence over --include, and is reported in the same way.
    #[arg(long, value_name = "PACKAGE", value_parser = package, help_heading = heading::CAPTURE)]
    pub(crate) exclude: Vec<String>,
    /// The program and its arguments.
    ///
    /// Flags of foresee come before the program; `--` may separate the two.
    #[arg(value_name = "COMMAND", required = true, trailing_var_arg = true)]
    pub(crate) command: Vec<std::ffi::OsString>,
}

/// A time in seconds: `60`, `60s`, `5m`, `1h`.
fn seconds(text: &str) -> Result<u64, String> {
    let (digits, unit) = match text.strip_suffix(['s', 'm', 'h']) {
        Some(digits) if text.ends_with('m') => (digits, 60),
        Some(digits) if text.ends_with('h') => (digits, 3600),
        Some(digits) => (digits, 1),
        None => (text, 1),
    };
    let time = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(unit));
    time.ok_or_else(|| "not a time in seconds, or such as 60s, 5m or 1h".to_owned())
}

/// The same without zero.
fn some_seconds(text: &str) -> Result<u64, String> {
    match seconds(text)? {
        0 => Err("must be more than 0".to_owned()),
        time => Ok(time),
    }
}

/// A package or class of Java, which may end with `.*`.
fn package(text: &str) -> Result<String, String> {
    let name = text.strip_suffix(".*").unwrap_or(text);
    let is_word = |word: &str| {
        word.starts_with(|c: char| c.is_alphabetic() || c == '_' || c == '$')
            && word.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '$')
    };
    match name.split('.').all(is_word) {
        true => Ok(name.to_owned()),
        false => Err("not the name of a package or class, such as `org.example.cache`".to_owned()),
    }
}

#[derive(Args)]
#[command(args_override_self = true)]
pub(crate) struct ReplayArgs {
    /// The schedule.
    #[arg(value_name = "SCHEDULE")]
    pub(crate) schedule: PathBuf,
    /// Exit with status 0 if this is what happens.
    #[arg(long, value_enum, value_name = "WHAT", help_heading = heading::REPLAY)]
    pub(crate) expect: Option<Expect>,
    /// Print each step that was taken.
    #[arg(long, help_heading = heading::REPLAY)]
    pub(crate) trace: bool,
    /// Hold all threads at the violating step, and attach a debugger: gdb, or lldb if there is no gdb.
    ///
    /// Threads have the names of the report. The debugger stands in the thread of the step, which has not been taken yet;
    /// `continue` lets the program follow the rest of the schedule.
    #[arg(long, help_heading = heading::REPLAY)]
    pub(crate) debug: bool,
    /// With --debug, hold before step N of the schedule, counted from 1; with --trace alone, end the program there and say
    /// where its threads are.
    #[arg(long, value_name = "N", help_heading = heading::REPLAY)]
    pub(crate) step: Option<usize>,
    /// Command line of the debugger, as in `gdb -batch -ex "info threads"`.
    #[arg(long, value_name = "COMMAND", requires = "debug", help_heading = heading::REPLAY)]
    pub(crate) debugger: Option<String>,
    /// Kill the program after TIME; it may be run several times.
    #[arg(long, value_name = "TIME", value_parser = seconds, default_value_t = 20, help_heading = heading::REPLAY)]
    pub(crate) timeout: u64,
    #[command(flatten)]
    pub(crate) analysis: AnalysisArgs,
    /// The program and its arguments.
    ///
    /// Flags of foresee come before the program; `--` may separate the two.
    #[arg(value_name = "COMMAND", required = true, trailing_var_arg = true)]
    pub(crate) command: Vec<std::ffi::OsString>,
}

#[derive(Args)]
pub(crate) struct ExploreArgs {
    /// Stop after this time [default: unlimited].
    #[arg(long, value_name = "TIME", value_parser = seconds, help_heading = heading::LIMITS)]
    pub(crate) budget: Option<u64>,
    /// Stop after N runs [default: unlimited].
    #[arg(long, value_name = "N", help_heading = heading::LIMITS)]
    pub(crate) runs: Option<u32>,
    /// Memory for states, in MiB.
    #[arg(long, value_name = "MIB", default_value_t = SearchLimits::default().memory / MIB)]
    #[arg(help_heading = heading::LIMITS)]
    pub(crate) max_memory: usize,
    /// Kill a run after TIME.
    #[arg(long, value_name = "TIME", value_parser = seconds, default_value_t = 10, help_heading = heading::LIMITS)]
    pub(crate) timeout: u64,
    /// Cover only schedules with at most D detours from the default order of threads.
    #[arg(long, value_name = "D", help_heading = heading::SEARCH)]
    pub(crate) detours: Option<u32>,
    /// What to do about loops that wait: `collapse` them, or follow them for N rounds with `bound=N`.
    ///
    /// Collapsing assumes that a thread which did the same one to four operations twice, and was told the same, is where it
    /// was. The result says so.
    #[arg(long, value_name = "HOW", help_heading = heading::SEARCH)]
    pub(crate) spin: Option<String>,
    /// Specification that every schedule must satisfy; repeatable.
    #[arg(long, value_name = "FILE", help_heading = heading::SPECS)]
    pub(crate) spec: Vec<PathBuf>,
    /// Checks to perform on every run [default: race, atomicity and lifetime, unless there is a specification].
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', help_heading = heading::CHECKS)]
    pub(crate) check: Vec<String>,
    /// Perform no checks: only failures are found, in less time.
    #[arg(long, conflicts_with = "check", help_heading = heading::CHECKS)]
    pub(crate) no_checks: bool,
    /// Assume that this uninstrumented library does not access shared data; repeatable.
    #[arg(long, value_name = "LIBRARY", help_heading = heading::CAPTURE)]
    pub(crate) trust: Vec<String>,
    /// Go on after the first failure, and list all.
    #[arg(long, help_heading = heading::SEARCH)]
    pub(crate) all: bool,
    /// Run N programs at a time.
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = heading::SEARCH)]
    #[arg(value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=256))]
    pub(crate) jobs: usize,
    /// Have workers of a queue on this NATS server run the program, as in nats://HOST:4222; --jobs says how many at a time.
    #[arg(long, value_name = "URL", help_heading = heading::QUEUE)]
    pub(crate) queue: Option<String>,
    #[command(flatten)]
    pub(crate) server: QueueArgs,
    /// Run the program in an empty folder of its own, each time.
    ///
    /// Programs that write files need it with --jobs. The command of --before runs there, too.
    #[arg(long, help_heading = heading::INPUT)]
    pub(crate) private: bool,
    /// Keep what is learnt and the schedules of failures in this folder, and continue from what is there.
    #[arg(long, value_name = "DIR", help_heading = heading::OUTPUT)]
    pub(crate) keep: Option<PathBuf>,
    /// Run this shell command before each run.
    #[arg(long, value_name = "CMD", help_heading = heading::INPUT)]
    pub(crate) before: Option<std::ffi::OsString>,
    /// The program's standard input; empty without.
    #[arg(long, value_name = "FILE", help_heading = heading::INPUT)]
    pub(crate) input: Option<PathBuf>,
    /// Format of the result.
    #[arg(long, value_enum, default_value_t = SummaryFormat::Text, help_heading = heading::OUTPUT)]
    pub(crate) format: SummaryFormat,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    /// The program and its arguments.
    ///
    /// Flags of foresee come before the program; `--` may separate the two.
    #[arg(value_name = "COMMAND", required = true, trailing_var_arg = true)]
    pub(crate) command: Vec<std::ffi::OsString>,
}

/// What a replay is expected to show.
#[derive(Clone, Copy, ValueEnum, PartialEq, Eq)]
pub(crate) enum Expect {
    /// The failure happens: status 0 if it does, 1 if the program follows the schedule and does not fail, 3 if it cannot
    /// follow it.
    Confirmed,
    /// The failure does not happen: status 0 if the program follows the schedule and does not fail, 3 if it cannot follow it
    /// any more, 1 if it fails.
    Clean,
}

#[derive(Clone, Copy, ValueEnum, PartialEq, Eq)]
pub(crate) enum Stacks {
    /// Where they cost little: in C and C++ programs, not in Java programs.
    Auto,
    /// Each step of a report has the calls that led there.
    On,
    /// Each step of a report has its place only.
    Off,
}

#[derive(Clone, Copy, ValueEnum, PartialEq, Eq)]
pub(crate) enum CaptureMode {
    /// One thread at a time: values and order are exact.
    Sync,
    /// All threads in parallel: faster on many cores, but the recorded order is approximate.
    Async,
}

/// What to look for in a trace.
#[derive(Args)]
pub(crate) struct AnalysisArgs {
    /// Specification that the run must satisfy; repeatable.
    #[arg(long, value_name = "FILE", help_heading = heading::SPECS)]
    pub(crate) spec: Vec<PathBuf>,
    /// Events that must not occur in this order in any run; repeatable.
    ///
    /// For example `event(add)@t2 .. event(clear)@t1`. Answered from the trace's index if there is
    /// one.
    #[arg(long, value_name = "PATTERN", help_heading = heading::SPECS)]
    pub(crate) pattern: Vec<String>,
    /// File with one pattern per line, or a specification; repeatable.
    #[arg(long, value_name = "FILE", help_heading = heading::SPECS)]
    pub(crate) patterns: Vec<PathBuf>,
    // The help is made from the list of all analyses.
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', help_heading = heading::CHECKS)]
    #[arg(help = check_help())]
    pub(crate) check: Vec<String>,
    #[command(flatten)]
    pub(crate) checks: ChecksArgs,
    #[command(flatten)]
    pub(crate) nondeterminism: NondeterminismArgs,
    /// Algorithm that predicts patterns or races.
    #[arg(long, value_enum, value_name = "NAME", default_value_t = AlgorithmArg::Auto)]
    #[arg(help_heading = heading::SEARCH)]
    pub(crate) algorithm: AlgorithmArg,
    /// Which reorderings of the run to consider.
    #[arg(long, value_enum, value_name = "SPACE", default_value_t = ReorderArg::Auto)]
    #[arg(help_heading = heading::SEARCH)]
    pub(crate) reorder: ReorderArg,
    /// What the last read of a thread may see when critical sections are swapped.
    #[arg(long, value_enum, value_name = "WHAT", default_value_t = ReadsArg::Terminal)]
    #[arg(help_heading = heading::SEARCH)]
    pub(crate) reads: ReadsArg,
    /// Follow at most W cuts of each lattice level, those nearest to the observed run.
    ///
    /// 1 checks only the observed run. Without this flag, every run is covered.
    #[arg(long, value_name = "W", value_parser = clap::value_parser!(u32).range(1..))]
    #[arg(help_heading = heading::LIMITS)]
    pub(crate) window: Option<u32>,
    /// With --window: how many relevant events may be buffered.
    ///
    /// An event is buffered until everything that may happen before it is known. If the buffer is
    /// full, the search moves on to the next level, and the result says so.
    #[arg(long, value_name = "L", requires = "window", default_value_t = SearchLimits::default().lookahead)]
    #[arg(help_heading = heading::LIMITS)]
    pub(crate) lookahead: usize,
    /// Stop a lattice search after N cuts.
    #[arg(long, value_name = "N", help_heading = heading::LIMITS)]
    pub(crate) max_states: Option<u64>,
    /// Memory limit of the process, in MiB.
    ///
    /// If it is reached, what has been read so far is analysed, and the result says so. Buffers and the
    /// program itself take up to 48 MiB on top of it.
    #[arg(long, value_name = "MIB", default_value_t = SearchLimits::default().memory / MIB)]
    #[arg(help_heading = heading::LIMITS)]
    pub(crate) max_memory: usize,
    // The help shows the library's default.
    #[arg(long, value_name = "TIME", value_parser = seconds, help = time_limit_help(), help_heading = heading::LIMITS)]
    time_limit: Option<u64>,
    /// Number of cores to use; 0 uses all of them.
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = heading::LIMITS)]
    pub(crate) jobs: usize,
    /// Format of the report.
    #[arg(long, value_enum, default_value_t = ReportFormat::Text, help_heading = heading::OUTPUT)]
    pub(crate) format: ReportFormat,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    #[command(flatten)]
    pub(crate) text: TextArgs,
    /// Also write the report as one HTML page that plays each schedule step by step.
    ///
    /// If there are several reports, a number is added to each file name.
    #[arg(long, value_name = "FILE.html", help_heading = heading::OUTPUT)]
    pub(crate) html: Option<PathBuf>,
    /// Draw each property's lattice, if it is small, with the observed and the violating run.
    ///
    /// If there are several pictures, the name of the property is added to each file name.
    #[arg(long, value_name = "FILE.svg", requires = "spec", help_heading = heading::OUTPUT)]
    pub(crate) lattice: Option<PathBuf>,
    /// The trace is still growing, so searches retain less of its past.
    #[arg(skip)]
    pub(crate) is_live: bool,
}

/// How much a text report tells.
#[derive(Args)]
pub(crate) struct TextArgs {
    /// Print one line per finding; `replay` also drops the program's output.
    #[arg(short, long, overrides_with = "verbose", help_heading = heading::OUTPUT)]
    pub(crate) quiet: bool,
    /// Print the figures of each search, too.
    #[arg(short, long, overrides_with = "quiet", help_heading = heading::OUTPUT)]
    pub(crate) verbose: bool,
    /// Print names, places and schedules in full, however long they are.
    #[arg(long, help_heading = heading::OUTPUT)]
    pub(crate) wide: bool,
    /// Do not keep the findings for `foresee explain` and `foresee baseline update`.
    #[arg(long, help_heading = heading::OUTPUT)]
    pub(crate) forget: bool,
}

#[derive(Args)]
pub(crate) struct ExplainArgs {
    /// The fingerprint, or the beginning of it [default: list all findings].
    #[arg(value_name = "F-...")]
    pub(crate) fingerprint: Option<String>,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Args)]
pub(crate) struct BaselineArgs {
    #[command(subcommand)]
    pub(crate) command: BaselineCommand,
}

#[derive(Subcommand)]
pub(crate) enum BaselineCommand {
    /// Add the findings of the last report in this directory to the baseline.
    Update(BaselineUpdateArgs),
}

#[derive(Args)]
pub(crate) struct BaselineUpdateArgs {
    /// Take the findings of this report, written with `--format json`, instead of the last one.
    #[arg(value_name = "RESULT.json")]
    pub(crate) report: Option<PathBuf>,
    /// The file [default: `baseline` in foresee.toml, or foresee.baseline].
    #[arg(long, value_name = "FILE", help_heading = heading::OUTPUT)]
    pub(crate) baseline: Option<PathBuf>,
    /// Remove entries that the report did not find.
    ///
    /// A run may miss what depends on the schedule, so entries stay by default.
    #[arg(long, help_heading = heading::OUTPUT)]
    pub(crate) prune: bool,
}

/// Where a result goes.
#[derive(Args)]
pub(crate) struct OutputArgs {
    /// Write the result to this file, or `-` for standard output.
    ///
    /// A file is replaced once the result is complete; `observe` writes each line at once.
    #[arg(short, long, value_name = "FILE", default_value = "-", help_heading = heading::OUTPUT)]
    pub(crate) output: PathBuf,
}

#[derive(Args)]
pub(crate) struct ReportArgs {
    /// The report, or `-` for standard input.
    #[arg(value_name = "RESULT.json")]
    pub(crate) report: PathBuf,
    /// Write the page to this file, or `-` for standard output.
    ///
    /// The page holds everything that it shows, and lines of source where the files are at hand.
    #[arg(long, value_name = "FILE.html", required = true, help_heading = heading::OUTPUT)]
    pub(crate) html: PathBuf,
}

/// Bytes of a mebibyte, in which sizes are given.
pub(crate) const MIB: usize = 1 << 20;

/// How many events a frame has by default, whoever sends it.
pub(crate) const FRAME_EVENTS: u32 = 8192;

/// The help of `--check`: everything that can be requested.
fn check_help() -> String {
    let names: Vec<String> = info::selectable()
        .map(|name| match name {
            info::SPEC => format!("`{name}` (the default with --spec)"),
            _ => format!("`{name}`"),
        })
        .collect();
    format!("Checks to perform: {}", names.join(", "))
}

/// The help of `--time-limit`.
fn time_limit_help() -> String {
    let default = match SearchLimits::default().time {
        Some(time) => format!("{}, unlimited for `observe`", time.as_secs()),
        None => "unlimited".to_owned(),
    };
    format!(
        "Time limit for everything after the trace has been read: searches share three quarters of it, \
         the rest is for confirming what they find; 0 is unlimited [default: {default}]"
    )
}

impl AnalysisArgs {
    /// The time limit for everything after the trace has been read.
    pub(crate) fn time_limit(&self) -> Option<Duration> {
        match self.time_limit {
            Some(0) => None,
            // An observed program may run for days.
            None if self.is_live => None,
            None => SearchLimits::default().time,
            Some(seconds) => Some(Duration::from_secs(seconds)),
        }
    }
}

/// What `--check nondeterminism` looks for.
#[derive(Args)]
pub(crate) struct NondeterminismArgs {
    /// Ignore other writes that write the same value.
    #[arg(long, help_heading = heading::NONDETERMINISM)]
    pub(crate) same_value: bool,
    /// Consider only reads of this variable; repeatable.
    #[arg(long, value_name = "NAME", help_heading = heading::NONDETERMINISM)]
    pub(crate) variable: Vec<String>,
    /// Consider only reads by this thread; repeatable.
    #[arg(long, value_name = "NAME", help_heading = heading::NONDETERMINISM)]
    pub(crate) thread: Vec<String>,
    /// Stop at the first read that could see another write.
    #[arg(long, help_heading = heading::NONDETERMINISM)]
    pub(crate) first: bool,
    /// Draw the first witness of nondeterminism.
    #[arg(long, value_name = "FILE.svg", help_heading = heading::NONDETERMINISM)]
    pub(crate) witness_svg: Option<PathBuf>,
}

impl NondeterminismArgs {
    /// The first of these flags that was given, if any.
    pub(crate) fn given(&self) -> Option<&'static str> {
        let flags = [
            ("--same-value", self.same_value),
            ("--variable", !self.variable.is_empty()),
            ("--thread", !self.thread.is_empty()),
            ("--first", self.first),
            ("--witness-svg", self.witness_svg.is_some()),
        ];
        flags.into_iter().find(|(_, given)| *given).map(|(flag, _)| flag)
    }
}

/// How programs are observed.
#[derive(Args)]
#[command(args_override_self = true)]
pub(crate) struct ObserveArgs {
    /// Address to listen on, HOST:PORT or unix:PATH; repeatable.
    ///
    /// Addresses that other machines can reach require --token.
    #[arg(long, value_name = "ADDR", required_unless_present = "queue", help_heading = heading::NETWORK)]
    pub(crate) listen: Vec<foresee_observe::Address>,
    /// Also take runs from a queue on this NATS server, as in nats://HOST:4222, and share them with other observers.
    #[arg(long, value_name = "URL", help_heading = heading::QUEUE)]
    pub(crate) queue: Option<String>,
    /// Space for events of runs without a verdict, if the queue is new.
    #[arg(long, value_name = "MIB", default_value_t = 4096, help_heading = heading::QUEUE)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) events_size: u64,
    #[command(flatten)]
    pub(crate) server: QueueArgs,
    #[command(flatten)]
    pub(crate) analysis: AnalysisArgs,
    /// Shared secret that senders must present.
    ///
    /// Prefer the environment variable, which other users cannot read.
    #[arg(long, value_name = "TEXT", env = "FORESEE_TOKEN", hide_env_values = true)]
    #[arg(help_heading = heading::NETWORK)]
    pub(crate) token: Option<String>,
    /// Store each trace in this directory.
    ///
    /// An observer that is restarted with the same directory resumes unfinished traces.
    #[arg(long, value_name = "DIR", help_heading = heading::OUTPUT)]
    pub(crate) keep: Option<PathBuf>,
    /// Serve figures for Prometheus on this address, HOST:PORT, at /metrics.
    ///
    /// Whoever reaches the address can read them.
    #[arg(long, value_name = "ADDR", help_heading = heading::NETWORK)]
    pub(crate) metrics: Option<String>,
    /// Show programs, properties and findings on the whole terminal.
    ///
    /// Tab, the arrow keys and Enter move in it, q ends. What was found is printed when it ends. Needs
    /// a foresee that was built with `--features tui`.
    #[arg(long, help_heading = heading::OUTPUT)]
    pub(crate) tui: bool,
    /// Drop events instead of applying back-pressure.
    ///
    /// The verdict then covers only the events before the first one that was dropped.
    #[arg(long, help_heading = heading::OBSERVER_LIMITS)]
    pub(crate) lossy: bool,
    /// Exit after N programs.
    #[arg(long, value_name = "N", help_heading = heading::OBSERVER_LIMITS)]
    pub(crate) programs: Option<u64>,
    /// Memory for events of one program that wait to be analysed, in MiB.
    #[arg(long, value_name = "MIB", default_value_t = Limits::default().memory / MIB)]
    #[arg(help_heading = heading::OBSERVER_LIMITS)]
    pub(crate) memory: usize,
    /// Memory for all programs together, in MiB: frames, names and analyses.
    ///
    /// Half of it is divided equally among the programs that there may be (--max-connections); the
    /// rest goes to the programs that need it first.
    #[arg(long, value_name = "MIB", default_value_t = Limits::default().total_memory / MIB)]
    #[arg(help_heading = heading::OBSERVER_LIMITS)]
    pub(crate) total_memory: usize,
    /// Disk space for one program's trace without --keep, in MiB.
    #[arg(long, value_name = "MIB", default_value_t = Limits::default().disk / MIB as u64)]
    #[arg(help_heading = heading::OBSERVER_LIMITS)]
    pub(crate) disk: u64,
    /// Disk space for the traces of all programs without --keep, in MiB.
    #[arg(long, value_name = "MIB", default_value_t = Limits::default().total_disk / MIB as u64)]
    #[arg(help_heading = heading::OBSERVER_LIMITS)]
    pub(crate) total_disk: u64,
    /// Maximum number of simultaneous connections.
    #[arg(long, value_name = "N", default_value_t = Limits::default().connections)]
    #[arg(help_heading = heading::OBSERVER_LIMITS)]
    pub(crate) max_connections: usize,
    /// Maximum number of threads of one program.
    #[arg(long, value_name = "N", default_value_t = Limits::default().threads)]
    #[arg(help_heading = heading::OBSERVER_LIMITS)]
    pub(crate) max_threads: u32,
    /// Maximum size of a frame, in KiB.
    #[arg(long, value_name = "KIB", default_value_t = Limits::default().frame >> 10)]
    #[arg(help_heading = heading::OBSERVER_LIMITS)]
    pub(crate) max_frame: u32,
    /// Close a connection that is silent for TIME; 0 keeps it open.
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    #[arg(default_value_t = Limits::default().idle.map_or(0, |idle| idle.as_secs()))]
    #[arg(help_heading = heading::OBSERVER_LIMITS)]
    pub(crate) idle: u64,
    /// Close a connection that takes longer than TIME for one frame.
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    #[arg(default_value_t = Limits::default().stall.as_secs())]
    #[arg(help_heading = heading::OBSERVER_LIMITS)]
    pub(crate) stall: u64,
    /// How long to wait for a disconnected program to reconnect.
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    #[arg(default_value_t = Limits::default().linger.as_secs())]
    #[arg(help_heading = heading::OBSERVER_LIMITS)]
    pub(crate) linger: u64,
}

#[derive(Args)]
pub(crate) struct SendArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,
    /// Address of the observer, HOST:PORT or unix:PATH, or of a NATS server with a queue, nats://HOST:4222.
    #[arg(long, value_name = "ADDR", help_heading = heading::NETWORK)]
    pub(crate) to: Destination,
    #[command(flatten)]
    pub(crate) publish: PublishArgs,
    /// Send N events per second instead of as many as the observer accepts.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    #[arg(help_heading = heading::NETWORK)]
    pub(crate) rate: Option<u64>,
    /// Reorder frames; equal seeds reorder them in the same way.
    #[arg(long, value_name = "SEED", help_heading = heading::NETWORK)]
    pub(crate) shuffle: Option<u64>,
    /// Number of connections.
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = heading::NETWORK)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) connections: u16,
    /// Number of events per frame.
    #[arg(long, value_name = "N", default_value_t = FRAME_EVENTS, help_heading = heading::NETWORK)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub(crate) frame: u32,
    /// Name of the program in the observer's reports [default: the file name].
    #[arg(long, value_name = "NAME", help_heading = heading::NETWORK)]
    pub(crate) name: Option<String>,
    /// Retry for TIME if the observer is unreachable, then resume.
    #[arg(long, value_name = "TIME", value_parser = seconds, default_value_t = 0, help_heading = heading::NETWORK)]
    pub(crate) retry: u64,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// How runs are put into a queue of observers.
#[derive(Args)]
pub(crate) struct PublishArgs {
    /// Drop events if the queue is full, instead of waiting.
    ///
    /// The verdict then covers only the events before the first one that was dropped, and the exit status is 3.
    #[arg(long, requires = "to", help_heading = heading::QUEUE)]
    pub(crate) lossy: bool,
    /// Space for events of runs without a verdict, if the queue is new.
    #[arg(long, value_name = "MIB", default_value_t = 4096, help_heading = heading::QUEUE)]
    #[arg(requires = "to", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) events_size: u64,
    #[command(flatten)]
    pub(crate) server: QueueArgs,
    /// Shared secret that the observer expects.
    #[arg(long, value_name = "TEXT", env = "FORESEE_TOKEN", hide_env_values = true)]
    #[arg(help_heading = heading::NETWORK)]
    pub(crate) token: Option<String>,
}

/// Where a trace is sent.
#[derive(Clone, Debug)]
pub(crate) enum Destination {
    Observer(foresee_observe::Address),
    /// A NATS server.
    Queue(String),
}

impl std::str::FromStr for Destination {
    type Err = String;

    fn from_str(text: &str) -> Result<Destination, String> {
        match text.split_once("://") {
            Some(("nats" | "tls", _)) => Ok(Destination::Queue(text.to_owned())),
            Some(_) => {
                Err("write HOST:PORT, unix:PATH, nats://HOST:PORT or tls://HOST:PORT".to_owned())
            }
            None => text.parse().map(Destination::Observer),
        }
    }
}

#[derive(Args)]
pub(crate) struct IndexArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,
    #[command(flatten)]
    pub(crate) memory: MemoryArgs,
    /// Write the index to this file [default: TRACE.fsi].
    #[arg(short, long, value_name = "FILE", help_heading = heading::OUTPUT)]
    pub(crate) output: Option<PathBuf>,
}

/// How far the checks go that need no specification.
#[derive(Args)]
pub(crate) struct ChecksArgs {
    /// Maximum number of reordered events before a candidate.
    #[arg(long, value_name = "EVENTS", default_value_t = SearchLimits::default().look_back)]
    #[arg(help_heading = heading::LIMITS)]
    pub(crate) look_back: u32,
    /// How many events to try for each pair or cycle of threads and locations.
    ///
    /// The nearest ones are tried, and others spread over the whole trace.
    #[arg(long, value_name = "N", default_value_t = SearchLimits::default().tries)]
    #[arg(help_heading = heading::LIMITS)]
    pub(crate) tries: usize,
    /// How many events to try for each pair or cycle of locations, over all threads.
    #[arg(long, value_name = "N", default_value_t = SearchLimits::default().tries_per_place)]
    #[arg(help_heading = heading::LIMITS)]
    pub(crate) tries_per_place: usize,
    /// Whether relaxed atomics prevent races.
    #[arg(long, value_enum, value_name = "MODEL", default_value_t = MemoryModelArg::C11)]
    #[arg(help_heading = heading::CHECKS)]
    pub(crate) memory_model: MemoryModelArg,
    /// File of findings to suppress, in ThreadSanitizer's syntax (`race:stats.c`) or by fingerprint; repeatable.
    ///
    /// A comment behind an entry is its reason, and `until 2027-01-31` lets it expire.
    #[arg(long, value_name = "FILE", help_heading = heading::CHECKS)]
    pub(crate) suppressions: Vec<PathBuf>,
    /// File of findings that are known: only others count; `foresee baseline update` writes it.
    #[arg(long, value_name = "FILE", help_heading = heading::CHECKS)]
    pub(crate) baseline: Option<PathBuf>,
    /// Settings [default: foresee.toml in this directory or the nearest one above it].
    ///
    /// Flags and FORESEE_OPTIONS take precedence over it.
    #[arg(long, value_name = "FILE", help_heading = heading::CHECKS)]
    pub(crate) config: Option<PathBuf>,
    /// Also use this profile of the settings.
    #[arg(long, value_name = "NAME", help_heading = heading::CHECKS)]
    pub(crate) profile: Option<String>,
    /// Treat calls of this method as atomic regions; `*` matches any text; repeatable.
    ///
    /// Also `regions` in `foresee.toml`.
    #[arg(long, value_name = "METHOD", help_heading = heading::ATOMICITY)]
    pub(crate) region: Vec<String>,
    /// Also infer atomic regions from reads and writes under a lock.
    ///
    /// Such a region reads a value in one critical section of a lock and writes it in the next
    /// section of the same call. Its findings are reported as likely.
    #[arg(long, help_heading = heading::ATOMICITY)]
    pub(crate) infer_regions: bool,
    /// Maximum number of threads in a cycle of conflicts.
    #[arg(long, value_name = "N", default_value_t = 2, help_heading = heading::ATOMICITY)]
    #[arg(value_parser = clap::value_parser!(u8).range(2..=3))]
    pub(crate) cycle: u8,
}

#[derive(Clone, Copy, ValueEnum, PartialEq, Eq)]
pub(crate) enum ToolArg {
    /// RAPID: names and locations become numbers, and all synchronisation becomes critical
    /// sections.
    Rapid,
}

#[derive(Clone, Copy, ValueEnum, PartialEq, Eq)]
pub(crate) enum MemoryModelArg {
    /// They do not, as in C11 and C++11: accesses ordered only by relaxed atomics race.
    C11,
    /// They do: every atomic counts as sequentially consistent.
    Sc,
}

#[derive(Clone, Copy, ValueEnum, PartialEq, Eq)]
pub(crate) enum AlgorithmArg {
    /// Patterns: the one-pass search that fits the pattern. Races: `sliced`.
    Auto,
    /// Patterns: all cuts of the pattern's events; slow, for cross-checking.
    Ideals,
    /// Races: accesses unordered by happens-before, each confirmed by a search.
    Hb,
    /// Races: accesses unordered by schedulable happens-before; fastest.
    Shb,
    /// Races: all races that occur while critical sections keep their observed order.
    Syncp,
    /// Races: also races that require swapped critical sections.
    Sliced,
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum ReorderArg {
    /// First `maz`, then whichever of the others fits the property.
    Auto,
    /// Keep the observed order of conflicting accesses and of each lock's operations.
    Maz,
    /// For patterns, also swap critical sections and leave out events.
    Sliced,
    /// For other properties, also consider every correct reordering.
    Correct,
}

impl ReorderArg {
    /// The space to search besides the runs with the same causality; `None` lets each property
    /// choose.
    pub(crate) fn space(self) -> Option<Space> {
        match self {
            ReorderArg::Auto => None,
            ReorderArg::Maz => Some(Space::Maz),
            ReorderArg::Sliced => Some(Space::Sliced),
            ReorderArg::Correct => Some(Space::Correct),
        }
    }
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum ReadsArg {
    /// Any value: the thread takes no further steps in the witness.
    Terminal,
    /// The value it saw in the observed run, like all other reads.
    Strict,
}

impl From<ReadsArg> for Reads {
    fn from(arg: ReadsArg) -> Reads {
        match arg {
            ReadsArg::Terminal => Reads::Terminal,
            ReadsArg::Strict => Reads::Strict,
        }
    }
}

#[derive(Clone, Copy, ValueEnum, PartialEq, Eq)]
pub(crate) enum ReportFormat {
    /// Text for people.
    Text,
    /// One JSON object.
    Json,
    /// A SARIF 2.1.0 log, for code scanning and editors.
    Sarif,
    /// JUnit XML, for test reports.
    Junit,
    /// Workflow commands of GitHub Actions, which annotate the source.
    Github,
}

#[derive(Clone, Copy, ValueEnum, PartialEq, Eq)]
pub(crate) enum SummaryFormat {
    /// Text for people.
    Text,
    /// One JSON object.
    Json,
}

#[derive(Args)]
pub(crate) struct TraceArgs {
    #[command(subcommand)]
    pub(crate) command: TraceCommand,
}

#[derive(Subcommand)]
pub(crate) enum TraceCommand {
    /// Summarise a trace.
    Info {
        #[command(flatten)]
        input: InputArgs,
        #[command(flatten)]
        memory: MemoryArgs,
        /// Format of the summary.
        #[arg(long, value_enum, default_value_t = SummaryFormat::Text, help_heading = heading::OUTPUT)]
        format: SummaryFormat,
        /// List the N busiest variables, locks and threads.
        #[arg(long, value_name = "N", default_value_t = 10, help_heading = heading::OUTPUT)]
        top: usize,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Check whether an execution could have produced a trace.
    Validate {
        #[command(flatten)]
        input: InputArgs,
        #[command(flatten)]
        memory: MemoryArgs,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Write a trace in another format.
    Convert {
        #[command(flatten)]
        input: InputArgs,
        #[command(flatten)]
        memory: MemoryArgs,
        /// Write to this file, or `-` for standard output; `.gz` and `.zst` files are compressed.
        #[arg(short, long, value_name = "FILE", default_value = "-", help_heading = heading::OUTPUT)]
        output: PathBuf,
        /// Format to write: a trace format, or `perfetto` or `shiviz` for these viewers.
        #[arg(long, value_name = "FORMAT", help_heading = heading::OUTPUT)]
        to: String,
        /// Write the schedule of a finding in this report on the trace, made with `--format json`.
        #[arg(long, value_name = "RESULT.json", help_heading = heading::INPUT)]
        witness: Option<PathBuf>,
        /// With --witness: the fingerprint or number of the finding [default: the first that has a schedule].
        #[arg(long, value_name = "F-...", requires = "witness", help_heading = heading::INPUT)]
        finding: Option<String>,
        /// With --to std: write only what this tool can read.
        #[arg(long = "for", value_enum, value_name = "TOOL", help_heading = heading::OUTPUT)]
        reader: Option<ToolArg>,
    },
    /// Generate a random trace, for experiments and benchmarks.
    Generate(GenerateArgs),
    /// Draw a trace with one column per thread and arrows from causes to effects.
    Show {
        #[command(flatten)]
        input: InputArgs,
        #[command(flatten)]
        memory: MemoryArgs,
        /// Centre the drawing on this event instead of starting at the beginning.
        #[arg(long, value_name = "EVENT", help_heading = heading::OUTPUT)]
        around: Option<u64>,
        /// Maximum number of events to draw.
        #[arg(long, value_name = "N", default_value_t = 60, help_heading = heading::OUTPUT)]
        rows: u64,
        /// Write an SVG picture instead of text.
        #[arg(long, value_name = "FILE", conflicts_with = "output", help_heading = heading::OUTPUT)]
        svg: Option<PathBuf>,
        #[command(flatten)]
        output: OutputArgs,
        /// The order that the arrows show.
        #[arg(long, value_enum, default_value_t = OrderArg::Mazurkiewicz)]
        #[arg(help_heading = heading::OUTPUT)]
        order: OrderArg,
    },
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum OrderArg {
    /// The default causality, which every reordering preserves.
    Mazurkiewicz,
    /// Writes before the reads that saw them, releases before acquires.
    ReadsFrom,
    /// Only forks, joins and wake-ups.
    SyncOnly,
}

#[derive(Args)]
pub(crate) struct SpecArgs {
    #[command(subcommand)]
    pub(crate) command: SpecCommand,
}

#[derive(Subcommand)]
pub(crate) enum SpecCommand {
    /// Check specifications for mistakes.
    Check {
        /// Specifications, or `-` for standard input.
        #[arg(value_name = "FILE", required = true)]
        files: Vec<PathBuf>,
        /// Print them formatted instead.
        #[arg(long, help_heading = heading::OUTPUT)]
        fmt: bool,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Explain a specification in plain words, with examples.
    Explain {
        /// Specification, or `-` for standard input.
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// Explain only this property.
        #[arg(long, value_name = "NAME")]
        property: Option<String>,
        /// Draw the property's automaton instead.
        #[arg(long, value_enum, value_name = "FORM", help_heading = heading::OUTPUT)]
        automaton: Option<Drawing>,
        #[command(flatten)]
        output: OutputArgs,
    },
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Drawing {
    /// Graphviz.
    Dot,
    /// Mermaid, for Markdown pages.
    Mermaid,
    /// An SVG picture.
    Svg,
}

#[derive(Args)]
pub(crate) struct GenerateArgs {
    /// Write to this file, or `-` for standard output; `.gz` and `.zst` files are compressed.
    #[arg(short, long, value_name = "FILE", default_value = "-", help_heading = heading::OUTPUT)]
    pub(crate) output: PathBuf,
    /// Format to write.
    #[arg(long, value_name = "FORMAT", default_value = "std", help_heading = heading::OUTPUT)]
    pub(crate) to: String,
    /// Number of events.
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub(crate) events: u64,
    /// Number of threads.
    #[arg(long, value_name = "N", default_value_t = 4)]
    pub(crate) threads: u32,
    /// Number of shared variables.
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub(crate) variables: u32,
    /// Number of locks.
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(crate) locks: u32,
    /// Fraction of events inside critical sections, from 0 to 1.
    #[arg(long, value_name = "SHARE", default_value_t = 0.3)]
    pub(crate) locked: f64,
    /// Number of different values that reads and writes carry; 0 for no values.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) values: u32,
    /// Seed of the generator; equal seeds generate equal traces.
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    pub(crate) seed: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        for (text, time) in [("7", 7), ("60s", 60), ("5m", 300), ("1h", 3600), ("0", 0)] {
            assert_eq!(seconds(text), Ok(time), "{text}");
        }
        for text in ["", "s", "-1s", "1.5m", "5 m", "soon", "99999999999999999h"] {
            assert!(seconds(text).is_err(), "{text}");
        }
        assert_eq!((some_seconds("1s"), some_seconds("0m").is_err()), (Ok(1), true));
    }
}
