//! The command line, as it is documented: `--help`, completions and manual pages all come from here.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use foresee_causality::judge::Reads;
use foresee_predict::Reorder;

/// Predicts concurrency failures from a run that passed.
#[derive(Parser)]
#[command(name = "foresee", version, max_term_width = 100)]
#[command(after_help = "Exit status:\n  \
    0  nothing found, and the answer is complete\n  \
    1  something found, observed or predicted\n  \
    2  the request could not be carried out\n  \
    3  nothing found, but the answer is not complete")]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Run a program that was built with `foresee cc` or `foresee c++`, and analyse what it did.
    Run(Box<RunArgs>),
    /// Compile and link C for capture: a drop-in for gcc and clang, as in `make CC="foresee cc"`.
    ///
    /// Takes the compiler's own arguments. The compiler is `cc`; `foresee cc -- clang-19 ARGS...`
    /// picks another, and the environment variable FORESEE_CC goes before both. A link to foresee
    /// named `foresee-cc` does the same, where a single word is wanted (CMAKE_C_COMPILER).
    #[command(disable_help_flag = true)]
    Cc {
        /// What the compiler is to do.
        #[arg(value_name = "ARGS", trailing_var_arg = true, allow_hyphen_values = true)]
        _arguments: Vec<std::ffi::OsString>,
    },
    /// Compile and link C++ for capture, as `foresee cc` does C.
    ///
    /// The compiler is `c++`; FORESEE_CXX names another, and so does `foresee c++ -- clang++-19`.
    #[command(name = "c++", disable_help_flag = true)]
    Cxx {
        /// What the compiler is to do.
        #[arg(value_name = "ARGS", trailing_var_arg = true, allow_hyphen_values = true)]
        _arguments: Vec<std::ffi::OsString>,
    },
    /// Analyse a trace.
    Check(Box<CheckArgs>),
    /// Watch running programs, which tell over sockets what they do.
    Observe(Box<ObserveArgs>),
    /// Send a trace to an observer, as the running program would have done.
    Send(Box<SendArgs>),
    /// Make an index of a trace, from which patterns are answered without reading it again.
    Index(IndexArgs),
    /// Look at traces, convert and make them.
    Trace(TraceArgs),
    /// Look at specifications.
    Spec(SpecArgs),
    /// Print the completion script of a shell.
    Completions {
        /// Which shell.
        shell: Shell,
    },
    /// Print the manual page, or write one page for each command.
    Man {
        /// Write the pages into this folder.
        #[arg(long, value_name = "DIR")]
        out: Option<PathBuf>,
    },
}

/// How a trace is read.
#[derive(Args)]
pub(crate) struct InputArgs {
    /// The trace; `-` is standard input. Its format is recognised, `.gz` and `.zst` are unpacked.
    #[arg(value_name = "TRACE")]
    pub(crate) trace: PathBuf,
    /// Read it as this format, whatever it looks like.
    #[arg(long, value_name = "FORMAT")]
    pub(crate) input_format: Option<String>,
    /// Change what no execution could have produced, and say what was changed.
    #[arg(long)]
    pub(crate) repair: bool,
}

#[derive(Args)]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,
    #[command(flatten)]
    pub(crate) analysis: AnalysisArgs,
    /// The trace's index. Without this, `TRACE.fsi` is used if it is there and fits the trace.
    #[arg(long, value_name = "FILE")]
    pub(crate) index: Option<PathBuf>,
}

#[derive(Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) analysis: AnalysisArgs,
    /// Store the trace here, in the native format.
    #[arg(long, value_name = "PATH")]
    pub(crate) keep: Option<PathBuf>,
    /// Whether threads take turns, so that the order of what they do is known, or run freely.
    #[arg(long, value_enum, default_value_t = CaptureMode::Sync)]
    pub(crate) mode: CaptureMode,
    /// Record every access, also to memory that only one thread ever touches.
    #[arg(long)]
    pub(crate) all: bool,
    /// End the program after so many seconds.
    #[arg(long, value_name = "SECONDS")]
    pub(crate) timeout: Option<u64>,
    /// End the recording after so many mebibytes.
    #[arg(long, value_name = "MIB")]
    pub(crate) log_limit: Option<u64>,
    /// A library that was not built for capture, but does not touch what threads share.
    #[arg(long, value_name = "LIBRARY")]
    pub(crate) trust: Vec<String>,
    /// The program and its arguments, after `--`.
    #[arg(value_name = "COMMAND", required = true, last = true)]
    pub(crate) command: Vec<std::ffi::OsString>,
}

#[derive(Clone, Copy, ValueEnum, PartialEq, Eq)]
pub(crate) enum CaptureMode {
    /// One thread at a time: values and order are exact.
    Sync,
    /// All at once: faster on many cores, but the order is only that of the notes.
    Async,
}

/// What to look for in a trace.
#[derive(Args)]
pub(crate) struct AnalysisArgs {
    /// A specification the run has to keep; may be given several times.
    #[arg(long, value_name = "FILE")]
    pub(crate) spec: Vec<PathBuf>,
    /// What to look for: `spec` (the default with --spec), `race`, `deadlock`, `atomicity`, `order`,
    /// `monitorability` (does the verdict depend on the schedule?), `causality`, `nondeterminism`.
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub(crate) check: Vec<String>,
    /// Events that must not occur in this order in any run: `event(add)@t2 .. event(clear)@t1`; may
    /// be given several times. Answered from the trace's index if it has one.
    #[arg(long, value_name = "PATTERN")]
    pub(crate) pattern: Vec<String>,
    /// A file of patterns, one a line, or a specification; may be given several times.
    #[arg(long, value_name = "FILE")]
    pub(crate) patterns: Vec<PathBuf>,
    /// Follow at most so many cuts of each level of the lattice, those nearest to the observed run;
    /// 1 checks the observed run alone. Without it, every run is covered.
    #[arg(long, value_name = "W", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) window: Option<u32>,
    /// How to predict patterns or races.
    #[arg(long, value_enum, value_name = "NAME", default_value_t = AlgorithmArg::Auto)]
    pub(crate) algorithm: AlgorithmArg,
    /// With --window: how many relevant events may wait until it is known what else can happen
    /// before them. More of them and the level is left as it is, which the result says.
    #[arg(long, value_name = "L", requires = "window", default_value_t = 65_536)]
    pub(crate) lookahead: usize,
    /// Which reorderings of the run to look at.
    #[arg(long, value_enum, value_name = "SPACE", default_value_t = ReorderArg::Auto)]
    pub(crate) reorder: ReorderArg,
    /// What the last read of a thread may see where critical sections swap.
    #[arg(long, value_enum, value_name = "WHAT", default_value_t = ReadsArg::Terminal)]
    pub(crate) reads: ReadsArg,
    /// Give up after so many cuts of a lattice.
    #[arg(long, value_name = "N")]
    pub(crate) max_states: Option<u64>,
    /// Give up on a search that needs more memory than so many megabytes.
    #[arg(long, value_name = "MB", default_value_t = 1024)]
    pub(crate) max_memory: usize,
    /// How many cores to use; 0 for all.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) jobs: usize,
    /// Give up on a lattice, on nondeterminism or on checks after so many seconds.
    #[arg(long, value_name = "SECONDS")]
    pub(crate) time_limit: Option<u64>,
    /// Draw the lattice of each property, if it is small, with the observed and the violating run.
    /// With several pictures the names of the properties are put before the ending.
    #[arg(long, value_name = "FILE.svg", requires = "spec")]
    pub(crate) lattice: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) nondeterminism: NondeterminismArgs,
    #[command(flatten)]
    pub(crate) checks: ChecksArgs,
    /// How to print the result.
    #[arg(long, value_enum, default_value_t = ReportFormat::Text)]
    pub(crate) format: ReportFormat,
    /// The trace is still being made, so searches keep less of what has passed.
    #[arg(skip)]
    pub(crate) is_live: bool,
}

/// What `--check nondeterminism` looks for.
#[derive(Args)]
pub(crate) struct NondeterminismArgs {
    /// Nondeterminism: another write of the same value does not count.
    #[arg(long)]
    pub(crate) same_value: bool,
    /// Nondeterminism: only reads of this variable; may be given several times.
    #[arg(long, value_name = "NAME")]
    pub(crate) variable: Vec<String>,
    /// Nondeterminism: only reads of this thread; may be given several times.
    #[arg(long, value_name = "NAME")]
    pub(crate) thread: Vec<String>,
    /// Nondeterminism: stop at the first read that could see another write.
    #[arg(long)]
    pub(crate) first: bool,
    /// Nondeterminism: draw the first witness.
    #[arg(long, value_name = "FILE.svg")]
    pub(crate) witness_svg: Option<PathBuf>,
}

impl NondeterminismArgs {
    /// The first flag that was given, if any was.
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
pub(crate) struct ObserveArgs {
    /// Where to listen: HOST:PORT, or unix:PATH; may be given several times. Addresses that other
    /// machines can reach need --token.
    #[arg(long, value_name = "ADDR", required = true)]
    pub(crate) listen: Vec<foresee_observe::Address>,
    #[command(flatten)]
    pub(crate) analysis: AnalysisArgs,
    /// What senders have to know. Better in the environment, where other users cannot see it.
    #[arg(long, value_name = "TEXT", env = "FORESEE_TOKEN", hide_env_values = true)]
    pub(crate) token: Option<String>,
    /// Store each trace in this folder. An observer that is started again with the same folder goes
    /// on with what was not finished.
    #[arg(long, value_name = "DIR")]
    pub(crate) keep: Option<PathBuf>,
    /// Rather drop events than let a program wait. The verdict then speaks of what came before.
    #[arg(long)]
    pub(crate) lossy: bool,
    /// Stop after so many programs.
    #[arg(long, value_name = "N")]
    pub(crate) programs: Option<u64>,
    /// How many megabytes of one program may wait to be looked at.
    #[arg(long, value_name = "MB", default_value_t = 64)]
    pub(crate) memory: usize,
    /// How many megabytes of one program's trace are put aside on disk without --keep.
    #[arg(long, value_name = "MB", default_value_t = 4096)]
    pub(crate) disk: u64,
    /// How many connections there may be at once.
    #[arg(long, value_name = "N", default_value_t = 256)]
    pub(crate) max_connections: usize,
    /// How many threads one program may have.
    #[arg(long, value_name = "N", default_value_t = 65_536)]
    pub(crate) max_threads: u32,
    /// The longest frame, in kilobytes.
    #[arg(long, value_name = "KB", default_value_t = 16_384)]
    pub(crate) max_frame: u32,
    /// End a connection that says nothing for so many seconds; 0 waits for ever.
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    pub(crate) idle: u64,
    /// End a connection that takes longer than so many seconds for one frame.
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    pub(crate) stall: u64,
    /// How many seconds a program without a connection may take to come back.
    #[arg(long, value_name = "SECONDS", default_value_t = 5)]
    pub(crate) linger: u64,
}

#[derive(Args)]
pub(crate) struct SendArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,
    /// Where the observer listens: HOST:PORT, or unix:PATH.
    #[arg(long, value_name = "ADDR")]
    pub(crate) to: foresee_observe::Address,
    /// Send so many events a second, instead of as many as the observer takes.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) rate: Option<u64>,
    /// Put frames out of order; equal seeds do so in equal ways.
    #[arg(long, value_name = "SEED")]
    pub(crate) shuffle: Option<u64>,
    /// Over how many connections.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) connections: u16,
    /// How many events make a frame.
    #[arg(long, value_name = "N", default_value_t = 8192, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub(crate) frame: u32,
    /// What the observer calls the program, instead of the name of the file.
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// What lets one in.
    #[arg(long, value_name = "TEXT", env = "FORESEE_TOKEN", hide_env_values = true)]
    pub(crate) token: Option<String>,
    /// Keep calling for so many seconds if there is no observer, and go on where it stopped.
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    pub(crate) retry: u64,
}

#[derive(Args)]
pub(crate) struct IndexArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,
    /// Where to write it, instead of `TRACE.fsi`.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// How far the checks go that need no specification.
#[derive(Args)]
pub(crate) struct ChecksArgs {
    /// Checks: how many events before a candidate may come in another order.
    #[arg(long, value_name = "EVENTS", default_value_t = 200)]
    pub(crate) look_back: u32,
    /// Races: whether relaxed atomics order anything.
    #[arg(long, value_enum, value_name = "MODEL", default_value_t = MemoryModelArg::C11)]
    pub(crate) memory_model: MemoryModelArg,
    /// Checks: how many events to try for each pair or circle of threads and places: the nearest, and
    /// others from the first to the last.
    #[arg(long, value_name = "N", default_value_t = 16)]
    pub(crate) tries: usize,
    /// Checks: how many to try for each pair or circle of places, whatever the threads.
    #[arg(long, value_name = "N", default_value_t = 64)]
    pub(crate) tries_per_place: usize,
    /// Atomicity: calls of this method are atomic regions, too; `*` stands for any text. May be given
    /// several times, or as `regions` in `foresee.toml`.
    #[arg(long, value_name = "METHOD")]
    pub(crate) region: Vec<String>,
    /// Atomicity: guess regions, too: a value that is read in one section of a lock and written in the
    /// next one of the same call. Such findings are called likely.
    #[arg(long)]
    pub(crate) infer_regions: bool,
    /// Atomicity: how many threads a cycle of conflicts may have.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u8).range(2..=3))]
    pub(crate) cycle: u8,
    /// Checks: a file of findings that are not wanted, as for ThreadSanitizer (`race:stats.c`); may be
    /// given several times, or as `suppressions` in `foresee.toml`.
    #[arg(long, value_name = "FILE")]
    pub(crate) suppressions: Vec<PathBuf>,
    /// Checks: settings, instead of those in `foresee.toml` in this folder or the nearest above it.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum, PartialEq, Eq)]
pub(crate) enum ToolArg {
    /// RAPID: numbers for names and locations, and everything that orders events as critical
    /// sections.
    Rapid,
}

#[derive(Clone, Copy, ValueEnum, PartialEq, Eq)]
pub(crate) enum MemoryModelArg {
    /// They do not, as C11 and C++11 say: accesses that nothing else orders race.
    C11,
    /// They do, as if every atomic were sequentially consistent.
    Sc,
}

#[derive(Clone, Copy, ValueEnum, PartialEq, Eq)]
pub(crate) enum AlgorithmArg {
    /// The search that suits the pattern in one pass; for races, `sliced`.
    Auto,
    /// Patterns: all cuts of the pattern's events, as for other properties; slow, to cross-check.
    Ideals,
    /// Races: what happens-before leaves unordered, if a search then confirms it.
    Hb,
    /// Races: what schedulable happens-before leaves unordered; fastest.
    Shb,
    /// Races: all that show while critical sections keep their observed order.
    Syncp,
    /// Races: also those for which critical sections must swap.
    Sliced,
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum ReorderArg {
    /// First those of `maz`, then the stronger ones that fit the property.
    Auto,
    /// Only those that keep the order of conflicting accesses and of each lock's operations.
    Maz,
    /// For patterns also those in which critical sections swap and events are left out.
    Sliced,
    /// For other properties also every correct reordering.
    Correct,
}

impl From<ReorderArg> for Reorder {
    fn from(arg: ReorderArg) -> Reorder {
        match arg {
            ReorderArg::Auto => Reorder::Auto,
            ReorderArg::Maz => Reorder::Maz,
            ReorderArg::Sliced => Reorder::Sliced,
            ReorderArg::Correct => Reorder::Correct,
        }
    }
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum ReadsArg {
    /// Any value: nothing is claimed of the thread after it.
    Terminal,
    /// The value it saw, as all other reads.
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
    /// For people.
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
    /// Tell what is in a trace.
    Info {
        #[command(flatten)]
        input: InputArgs,
        /// How to print it.
        #[arg(long, value_enum, default_value_t = ReportFormat::Text)]
        format: ReportFormat,
        /// How many of the hottest variables, locks and threads to list.
        #[arg(long, value_name = "N", default_value_t = 10)]
        top: usize,
    },
    /// Tell whether an execution could have produced a trace.
    Validate {
        #[command(flatten)]
        input: InputArgs,
    },
    /// Write a trace in another format.
    Convert {
        #[command(flatten)]
        input: InputArgs,
        /// Where to write; `-` is standard output. Endings `.gz` and `.zst` pack.
        #[arg(short, long, value_name = "FILE", default_value = "-")]
        output: PathBuf,
        /// The format to write.
        #[arg(long, value_name = "FORMAT")]
        to: String,
        /// With --to std: write only what this tool's reader takes.
        #[arg(long = "for", value_enum, value_name = "TOOL")]
        reader: Option<ToolArg>,
    },
    /// Make a trace up, for trying things out and for measurements.
    Generate(GenerateArgs),
    /// Draw a trace with a column for each thread and arrows from causes to effects.
    Show {
        #[command(flatten)]
        input: InputArgs,
        /// The event in the middle of what is drawn; without it, drawing starts at the beginning.
        #[arg(long, value_name = "EVENT")]
        around: Option<u64>,
        /// How many events to draw at most.
        #[arg(long, value_name = "N", default_value_t = 60)]
        rows: u64,
        /// Write a picture instead.
        #[arg(long, value_name = "FILE")]
        svg: Option<PathBuf>,
        /// Whose arrows to draw.
        #[arg(long, value_enum, default_value_t = OrderArg::Mazurkiewicz)]
        order: OrderArg,
    },
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum OrderArg {
    /// What every reordering must keep.
    Mazurkiewicz,
    /// Writes before the reads that saw them, releases before acquires.
    ReadsFrom,
    /// Forks, joins and wake-ups alone.
    SyncOnly,
}

#[derive(Args)]
pub(crate) struct SpecArgs {
    #[command(subcommand)]
    pub(crate) command: SpecCommand,
}

#[derive(Subcommand)]
pub(crate) enum SpecCommand {
    /// Tell whether specifications are well written.
    Check {
        /// The specifications; `-` is standard input.
        #[arg(value_name = "FILE", required = true)]
        files: Vec<PathBuf>,
        /// Print them neatly formatted instead.
        #[arg(long)]
        fmt: bool,
    },
    /// Tell in plain words what a specification says, with examples.
    Explain {
        /// The specification; `-` is standard input.
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// Only this property.
        #[arg(long, value_name = "NAME")]
        property: Option<String>,
        /// Draw the property's automaton instead.
        #[arg(long, value_enum, value_name = "FORM")]
        automaton: Option<Drawing>,
        /// Where to write the drawing; `-` is standard output.
        #[arg(short, long, value_name = "FILE", default_value = "-", requires = "automaton")]
        output: PathBuf,
    },
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Drawing {
    /// Graphviz.
    Dot,
    /// For Markdown pages.
    Mermaid,
    /// A picture.
    Svg,
}

#[derive(Args)]
pub(crate) struct GenerateArgs {
    /// Where to write; `-` is standard output. Endings `.gz` and `.zst` pack.
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    pub(crate) output: PathBuf,
    /// The format to write.
    #[arg(long, value_name = "FORMAT", default_value = "std")]
    pub(crate) to: String,
    /// How many events.
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub(crate) events: u64,
    /// How many threads.
    #[arg(long, value_name = "N", default_value_t = 4)]
    pub(crate) threads: u32,
    /// How many shared variables.
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub(crate) variables: u32,
    /// How many locks.
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(crate) locks: u32,
    /// The share of events inside critical sections, from 0 to 1.
    #[arg(long, value_name = "SHARE", default_value_t = 0.3)]
    pub(crate) locked: f64,
    /// Give reads and writes values, of which there are so many different ones; 0 for none.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) values: u32,
    /// Equal seeds make equal traces.
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    pub(crate) seed: u64,
}
