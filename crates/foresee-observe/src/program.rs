//! An observed program: passes its frames to the analyses.

use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use foresee_formats::Format;
use foresee_formats::native::{FrameHeader, HEADER, Kind, LOST, Native, encode_remarks};
use foresee_support::budget::{Budget, BudgetPart};
use foresee_trace::{Continued, EventSource, FileOrder, ReadError, Remarks};

use crate::limits::Limits;
use crate::reassemble::{Backlog, Reassembler, Taken};
use crate::spool::Spool;
use crate::wire::{EDITION, LOG, Numbered, ProgramId, is_same_token};

/// Makes events of an agent's log, for a program that sends that.
pub trait LogReader: Send {
    /// Takes the payload of a frame, and adds frames with names and events to `frames`.
    fn read(&mut self, payload: &[u8], frames: &mut Vec<u8>) -> io::Result<()>;

    /// Takes what has arrived as all that there is.
    fn finish(&mut self, frames: &mut Vec<u8>) -> io::Result<()>;

    /// What is known about the events so far.
    fn remarks(&self) -> Remarks;

    /// The number of events so far.
    fn events(&self) -> u64;

    /// Approximately how many bytes of memory it takes.
    fn memory(&self) -> usize;
}

/// An observed program.
pub struct Program {
    /// Its identifier.
    pub id: ProgramId,
    /// Its name for people. It comes from outside: escape it wherever it is shown.
    pub name: String,
    /// If the trace is kept: its path while it grows, and its final path.
    pub(crate) paths: Option<(PathBuf, PathBuf)>,
    pub(crate) frames: Reassembler,
    spool: Mutex<Spool>,
    order: FileOrder,
    limits: Limits,
    /// The number of events passed to the analyses.
    events: AtomicU64,
    /// The number of bytes of the names, and the memory that they take.
    names: Mutex<(usize, BudgetPart)>,
    /// What connections have to know in order to join it.
    secret: Vec<u8>,
    /// The memory that its analyses take.
    analyses: Mutex<BudgetPart>,
    /// What reads its log, if it sends that, and how many frames of it have been read.
    log: Option<Mutex<(Box<dyn LogReader>, u64)>>,
    /// Whether its trace may come in several editions, and whether another one is to follow that which is stored.
    has_editions: bool,
    is_continued: AtomicBool,
}

impl std::fmt::Debug for Program {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Program").field("id", &self.id).field("name", &self.name).finish()
    }
}

/// What is known of a program when it begins.
pub(crate) struct Opening {
    pub(crate) id: ProgramId,
    pub(crate) name: String,
    pub(crate) order: FileOrder,
    pub(crate) secret: Vec<u8>,
    pub(crate) spool: Spool,
    pub(crate) paths: Option<(PathBuf, PathBuf)>,
    pub(crate) is_resumed: bool,
    pub(crate) log: Option<Box<dyn LogReader>>,
    pub(crate) has_editions: bool,
}

/// The memory that a name takes besides its bytes.
const NAME: usize = 64;

impl Program {
    pub(crate) fn new(opening: Opening, limits: Limits, budget: &Arc<Budget>) -> Program {
        let Opening { id, name, order, secret, spool, paths, is_resumed, log, has_editions } =
            opening;
        Program {
            id,
            name,
            paths,
            frames: Reassembler::new(&limits, spool.frames(), is_resumed, Some(budget.part())),
            spool: Mutex::new(spool),
            order,
            limits,
            events: AtomicU64::new(0),
            names: Mutex::new((0, budget.part())),
            secret,
            analyses: Mutex::new(budget.part()),
            log: log.map(|log| Mutex::new((log, 0))),
            has_editions,
            is_continued: AtomicBool::new(false),
        }
    }

    /// Whether a connection with this secret belongs to the program.
    pub(crate) fn is_joined_by(&self, secret: &[u8]) -> bool {
        is_same_token(&self.secret, secret)
    }

    /// Whether its analyses may hold this many bytes of the memory that all programs share.
    pub fn allows(&self, bytes: usize) -> bool {
        self.analyses.lock().unwrap_or_else(PoisonError::into_inner).take(bytes)
    }

    /// The trace from its first event on: first what is stored, then what arrives. Only one such
    /// source may exist at a time; a new one starts from the beginning.
    pub fn follow(self: &Arc<Self>) -> Result<Box<dyn EventSource>, ReadError> {
        let feed = Feed {
            program: Arc::clone(self),
            at: 0,
            is_live: false,
            ended: false,
            bytes: Vec::new(),
            next: 0,
        };
        Native.read(Box::new(feed))
    }

    /// The trace as far as it has been passed on.
    pub fn stored(self: &Arc<Self>) -> Result<Box<dyn EventSource>, ReadError> {
        Native.read(Box::new(Stored { program: Arc::clone(self), at: 0 }))
    }

    /// Whether everything that was passed on is stored; `false` if the disk limit was reached.
    pub fn is_all_stored(&self) -> bool {
        !self.spool().is_full()
    }

    /// The number of events that have been received and put in order.
    pub fn events(&self) -> u64 {
        self.events.load(Ordering::Relaxed)
    }

    /// What waits to be analysed.
    pub fn backlog(&self) -> Backlog {
        self.frames.backlog()
    }

    /// The number of dropped events.
    pub fn dropped(&self) -> u64 {
        self.frames.dropped()
    }

    /// What the order of its events means, as far as is known.
    pub fn order(&self) -> FileOrder {
        match self.log() {
            Some(log) => log.0.remarks().order,
            None => self.order,
        }
    }

    fn log(&self) -> Option<MutexGuard<'_, (Box<dyn LogReader>, u64)>> {
        Some(self.log.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn spool(&self) -> MutexGuard<'_, Spool> {
        self.spool.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stores the next frame and passes it on; also returns whether it is the last.
    fn advance(&self) -> io::Result<(Vec<u8>, bool)> {
        let taken = self.frames.take();
        if let Some(mut log) = self.log() {
            return self.advance_log(taken, &mut log);
        }
        let mut spool = self.spool();
        let bytes = match taken {
            Taken::Frame(frame) if self.ends(&frame) => spool.finish()?,
            Taken::Frame(frame) => {
                self.check_names(&frame)?;
                self.events.fetch_add(frame.events(), Ordering::Relaxed);
                spool.append(&frame.bytes)?;
                frame.bytes
            }
            Taken::Lost(events) => {
                let lost = lost(self.events(), events, self.order)?.concat();
                self.close(&mut spool, lost)?
            }
            Taken::Ended(why) => {
                let remarks = Remarks { cut_short: Some(why), ..self.remarks() };
                self.close(&mut spool, remarks_frames(&remarks)?.concat())?
            }
            // The file stays unfinished, so that the program can continue when an observer is back.
            Taken::Stopped => {
                let why = "the observer was stopped before the program ended".to_owned();
                let remarks = Remarks { cut_short: Some(why), ..self.remarks() };
                let mut last = remarks_frames(&remarks)?.concat();
                last.extend(optional(Kind::End, &[0; 8])?);
                return Ok((last, true));
            }
        };
        let (frames, is_last) = (spool.frames(), spool.is_finished());
        drop(spool);
        self.frames.stored(frames);
        Ok((bytes, is_last))
    }

    /// Whether a frame ends the trace, or an edition of it.
    fn ends(&self, frame: &Numbered) -> bool {
        let is_edition = self.has_editions && frame.header.kind == EDITION;
        self.is_continued.store(is_edition, Ordering::Relaxed);
        is_edition || frame.header.kind == Kind::End
    }

    /// Whether another edition of the trace is to follow that which has ended.
    pub fn is_continued(&self) -> bool {
        self.is_continued.load(Ordering::Relaxed)
    }

    /// After the end of a trace: waits for the next edition of it, if one is to follow, and puts it in the place of the one
    /// before. One that is not whole replaces nothing.
    pub fn continues(&self) -> io::Result<Continued> {
        if !self.is_continued() {
            return Ok(Continued::Over);
        }
        let path = self.paths.as_ref().map(|(growing, _)| growing.as_path());
        let mut next = self.spool().next_edition(path, self.order)?;
        self.forget_names();
        let mut events = 0;
        loop {
            let cut_short = match self.frames.take() {
                Taken::Frame(frame) if self.ends(&frame) => {
                    next.finish()?;
                    next.replace(path)?;
                    let frames = next.frames();
                    *self.spool() = next;
                    self.events.store(events, Ordering::Relaxed);
                    self.frames.stored(frames);
                    return Ok(Continued::Anew);
                }
                Taken::Frame(frame) => {
                    self.check_names(&frame)?;
                    events += frame.events();
                    next.append(&frame.bytes)?;
                    self.frames.stored(next.frames());
                    continue;
                }
                Taken::Lost(_) => "the program was faster than the observer".to_owned(),
                Taken::Ended(why) => why,
                Taken::Stopped => "the observer was stopped before the program ended".to_owned(),
            };
            next.give_up(&mut self.spool());
            return Ok(Continued::CutShort(cut_short));
        }
    }

    /// The names of another edition are its own.
    fn forget_names(&self) {
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        names.0 = 0;
        let _ = names.1.take(0);
    }

    /// The same for a program that sends its agent's log. What is stored is its trace, so another observer could not
    /// continue with it.
    fn advance_log(
        &self,
        taken: Taken,
        (reader, read): &mut (Box<dyn LogReader>, u64),
    ) -> io::Result<(Vec<u8>, bool)> {
        let mut bytes = Vec::new();
        let end = match taken {
            Taken::Frame(frame) => {
                *read += 1;
                match frame.header.kind {
                    LOG => {
                        reader.read(&frame.bytes[HEADER..], &mut bytes)?;
                        None
                    }
                    Kind::End => Some(None),
                    _ => {
                        return Err(io::Error::other(
                            "the program announced a log, but sent other frames",
                        ));
                    }
                }
            }
            Taken::Lost(_) => Some(Some("a part of the log was lost".to_owned())),
            Taken::Ended(why) => Some(Some(why)),
            Taken::Stopped => {
                Some(Some("the observer was stopped before the program ended".to_owned()))
            }
        };
        if end.is_some() {
            reader.finish(&mut bytes)?;
        }
        self.events.store(reader.events(), Ordering::Relaxed);
        self.check_memory(reader.memory())?;
        let mut spool = self.spool();
        if let Some(cut_short) = end {
            let mut remarks = reader.remarks();
            // That the connection ended says more than that the log did.
            remarks.cut_short = cut_short.or(remarks.cut_short);
            bytes.extend(remarks_frames(&remarks)?.concat());
            bytes = self.close(&mut spool, bytes)?;
        } else if !bytes.is_empty() {
            spool.append(&bytes)?;
        }
        let is_last = spool.is_finished();
        drop(spool);
        self.frames.stored(*read);
        Ok((bytes, is_last))
    }

    /// What a log is made events with stays in memory as long as the program is observed.
    fn check_memory(&self, bytes: usize) -> io::Result<()> {
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        if bytes > self.limits.memory {
            return Err(io::Error::other(format!(
                "the threads, objects and variables of the program take more than {} bytes (--memory)",
                self.limits.memory
            )));
        }
        match names.1.take(bytes) {
            true => Ok(()),
            false => Err(io::Error::other(format!(
                "the threads, objects and variables of the program do not fit into what other programs \
                 leave of {} bytes (--total-memory)",
                names.1.limit()
            ))),
        }
    }

    fn remarks(&self) -> Remarks {
        Remarks { order: self.order, ..Remarks::default() }
    }

    /// Ends the trace on behalf of the program.
    fn close(&self, spool: &mut Spool, mut bytes: Vec<u8>) -> io::Result<Vec<u8>> {
        spool.append(&bytes)?;
        bytes.extend(spool.finish()?);
        Ok(bytes)
    }

    /// Names stay in memory as long as the program is observed.
    fn check_names(&self, frame: &Numbered) -> io::Result<()> {
        let most = u64::from(self.limits.threads);
        if let Some(threads) = frame.threads().filter(|&threads| threads > most) {
            return Err(io::Error::other(format!(
                "the program has {threads} threads; the limit is {most} (--max-threads)"
            )));
        }
        if frame.header.kind == Kind::Names {
            let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
            let (bytes, part) = &mut *names;
            *bytes += frame.bytes.len();
            if *bytes > self.limits.memory {
                return Err(io::Error::other(format!(
                    "the names of the program take more than {} bytes (--memory)",
                    self.limits.memory
                )));
            }
            // Each name is there twice: in a list, and where it is looked up.
            let taken = 2 * frame.bytes.len() + NAME * frame.header.count as usize;
            if !part.take(part.taken().saturating_add(taken)) {
                return Err(io::Error::other(format!(
                    "the names of the program do not fit into what other programs leave of {} \
                     bytes (--total-memory)",
                    part.limit()
                )));
            }
        }
        Ok(())
    }
}

pub(crate) fn optional(kind: Kind, payload: &[u8]) -> io::Result<Vec<u8>> {
    Ok([&FrameHeader::of(kind, 0, payload)?.encode()[..], payload].concat())
}

fn remarks_frames(remarks: &Remarks) -> io::Result<Vec<Vec<u8>>> {
    encode_remarks(remarks).iter().map(|payload| optional(Kind::Remarks, payload)).collect()
}

/// The frames that say that some events were dropped.
pub(crate) fn lost(after: u64, events: u64, order: FileOrder) -> io::Result<Vec<Vec<u8>>> {
    let why = format!(
        "after event {after} the program was faster than the observer, so events were dropped: nothing \
         after that was looked at"
    );
    let remarks = Remarks { partial: Some(why), order, ..Remarks::default() };
    let mut frames = vec![optional(LOST, &events.to_le_bytes())?];
    frames.extend(remarks_frames(&remarks)?);
    Ok(frames)
}

/// The bytes of a trace: first those stored, then those that arrive.
struct Feed {
    program: Arc<Program>,
    /// The offset of the next stored byte.
    at: u64,
    /// Everything stored has been read.
    is_live: bool,
    ended: bool,
    /// The latest bytes, and how many of them have been read.
    bytes: Vec<u8>,
    next: usize,
}

impl Read for Feed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if self.next < self.bytes.len() {
                let count = buffer.len().min(self.bytes.len() - self.next);
                buffer[..count].copy_from_slice(&self.bytes[self.next..self.next + count]);
                self.next += count;
                return Ok(count);
            }
            if self.ended {
                return Ok(0);
            }
            if !self.is_live {
                let spool = self.program.spool();
                let count = spool.read_at(buffer, self.at)?;
                self.at += count as u64;
                if count > 0 || buffer.is_empty() {
                    return Ok(count);
                }
                if spool.is_full() {
                    return Err(io::Error::other(
                        "the trace must be read again from its start, but it exceeds the limit for \
                         spooled traces: raise it with --disk, or keep the trace with --keep",
                    ));
                }
                self.ended = spool.is_finished();
                self.is_live = true;
                continue;
            }
            self.next = 0;
            // Nothing follows the end mark.
            (self.bytes, self.ended) = self.program.advance()?;
        }
    }
}

/// The bytes that are stored.
struct Stored {
    program: Arc<Program>,
    at: u64,
}

impl Read for Stored {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.program.spool().read_at(buffer, self.at)?;
        self.at += count as u64;
        Ok(count)
    }
}
