//! The log of a program that is still running, which its agent sends piece by piece (`docs/formats/wire.md`).

use std::io;
use std::sync::Arc;

use foresee_formats::native::Frames;
use foresee_trace::{Batch, EventSource, Names, Remarks};

use super::events::JvmSource;
use super::record::Records;
use super::{HashMap, JvmError, dictionary};

/// The file of names; the others are those of threads.
const NAMES: u32 = 0;
/// The approximate sizes in bytes of what is kept of a variable, an object and a thread.
const VARIABLE: usize = 256;
const OBJECT: usize = 64;
const THREAD: usize = 2048;
/// How many threads may have records before they have names.
const NAMELESS: usize = 1024;

/// What is known of the records of one thread.
#[derive(Debug)]
struct Thread {
    /// Its place among the threads of the source, once it has a name.
    place: Option<usize>,
    /// What came before its name.
    early: Vec<u8>,
    /// Its records once more, for what they say about objects.
    records: Records,
    /// The object that it mentioned last.
    last: Option<u64>,
}

impl Default for Thread {
    fn default() -> Thread {
        let (place, early, last) = Default::default();
        Thread { place, early, records: Records::arriving(), last }
    }
}

/// A log that arrives.
#[derive(Debug)]
pub struct LiveLog {
    source: JvmSource,
    /// By the numbers of their files.
    threads: HashMap<u32, Thread>,
    /// The places of threads, by their objects.
    places: HashMap<u64, usize>,
    /// How much of the dictionary has been passed on.
    seen: Seen,
    /// How many bytes of names there were.
    bytes: usize,
    most_threads: usize,
    frames: Frames,
    batch: Batch,
}

/// How many entries of the lists of a dictionary have been passed on.
#[derive(Debug, Default)]
struct Seen {
    partial: usize,
    unordered: usize,
}

fn invalid(error: JvmError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

impl LiveLog {
    /// A log of which nothing has arrived; the program may have this many threads.
    pub fn new(most_threads: usize) -> LiveLog {
        LiveLog {
            source: JvmSource::growing(usize::MAX),
            most_threads,
            bytes: 0,
            threads: HashMap::default(),
            places: HashMap::default(),
            seen: Seen::default(),
            frames: Frames::default(),
            batch: Batch::default(),
        }
    }

    /// Takes what has arrived; adds the events that it makes known to `frames`, as frames of the native format.
    pub fn read(&mut self, payload: &[u8], frames: &mut Vec<u8>) -> io::Result<()> {
        let damaged = || invalid(JvmError::Sent("a piece is cut off"));
        let (&is_round, mut rest) = payload.split_first().ok_or_else(damaged)?;
        while !rest.is_empty() {
            let (&[a, b, c, d, e, f, g, h], after) =
                rest.split_first_chunk().ok_or_else(damaged)?;
            let (file, length) = (u32::from_le_bytes([a, b, c, d]), [e, f, g, h]);
            let length = u32::from_le_bytes(length) as usize;
            let (piece, after) = after.split_at_checked(length).ok_or_else(damaged)?;
            match file {
                NAMES => self.names(piece)?,
                number => self.records(number, piece).map_err(invalid)?,
            }
            rest = after;
        }
        match is_round {
            0 => Ok(()),
            _ => {
                self.source.merge.round().map_err(invalid)?;
                self.pass_on(frames)?;
                self.source.merge.settle();
                Ok(())
            }
        }
    }

    /// Nothing more will arrive.
    pub fn finish(&mut self, frames: &mut Vec<u8>) -> io::Result<()> {
        self.source.merge.finish();
        self.pass_on(frames)?;
        self.source.ended();
        Ok(())
    }

    /// What is known about the events so far.
    pub fn remarks(&self) -> &Remarks {
        self.source.remarks()
    }

    /// The number of events so far.
    pub fn events(&self) -> u64 {
        self.source.events
    }

    /// Approximately how many bytes of memory it takes.
    pub fn memory(&self) -> usize {
        let early: usize = self.threads.values().map(|thread| thread.early.len()).sum();
        let known = self.source.variables() * VARIABLE + self.source.objects.len() * OBJECT;
        let waiting = early + self.source.merge.waiting();
        known + waiting + self.places.len() * THREAD + 2 * self.bytes
    }

    fn names(&mut self, lines: &[u8]) -> io::Result<()> {
        let wrong = |why: String| io::Error::new(io::ErrorKind::InvalidData, why);
        self.bytes += lines.len();
        // Nobody else has it.
        let dictionary = Arc::make_mut(&mut self.source.dictionary);
        dictionary.extend(lines).map_err(wrong)?;
        let started = std::mem::take(&mut dictionary.started);
        let new = std::mem::take(&mut dictionary.new_threads);
        let partial = dictionary.partial[self.seen.partial..].to_vec();
        let unordered = dictionary.unordered[self.seen.unordered..].to_vec();
        self.seen.partial += partial.len();
        self.seen.unordered += unordered.len();
        self.source.remark(&partial, &unordered);
        for number in new {
            let Some(named) = self.source.dictionary.threads.get(&number).cloned() else {
                continue;
            };
            let place = self.place(&named)?;
            self.source.set_foreign(place, named.is_foreign);
            let thread = self.threads.entry(number).or_default();
            thread.place = Some(place);
            let early = std::mem::take(&mut thread.early);
            self.source.merge.arrive(place, &early);
        }
        // After those that have recorded something: the first thread of all is the main one.
        for (object, name) in started {
            self.place(&dictionary::Thread { object, name, is_foreign: false })?;
        }
        Ok(())
    }

    /// The place of a thread, which may be new.
    fn place(&mut self, thread: &dictionary::Thread) -> io::Result<usize> {
        if let Some(&place) = self.places.get(&thread.object) {
            return Ok(place);
        }
        let place = self.places.len();
        if place >= self.most_threads {
            let most = self.most_threads;
            let why = format!("the program has more than {most} threads (--max-threads)");
            return Err(io::Error::other(why));
        }
        self.source.add_thread(&thread.name, thread.is_foreign).map_err(io::Error::other)?;
        self.source.merge.begin(thread);
        self.places.insert(thread.object, place);
        Ok(place)
    }

    fn records(&mut self, number: u32, piece: &[u8]) -> Result<(), JvmError> {
        // The agent names a thread soon after its first record.
        if !self.threads.contains_key(&number) && self.threads.len() >= self.places.len() + NAMELESS
        {
            return Err(JvmError::Sent("too many threads have no names"));
        }
        let thread = self.threads.entry(number).or_default();
        match thread.place {
            Some(place) => self.source.merge.arrive(place, piece),
            None => thread.early.extend_from_slice(piece),
        }
        thread.records.arrive(piece);
        thread.records.admit(usize::MAX);
        let objects = Arc::make_mut(&mut self.source.objects);
        objects.see(&mut thread.records, &mut thread.last, &self.source.dictionary)
    }

    fn pass_on(&mut self, frames: &mut Vec<u8>) -> io::Result<()> {
        while self.source.next_batch(&mut self.batch).map_err(io::Error::other)? {
            let names: &Names = self.source.names();
            frames.extend(self.frames.encode(&self.batch, names)?);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn piece(file: u32, bytes: &[u8], is_round: bool) -> Vec<u8> {
        let length = (bytes.len() as u32).to_le_bytes();
        [&[u8::from(is_round)], &file.to_le_bytes()[..], &length, bytes].concat()
    }

    fn read(log: &mut LiveLog, payload: &[u8]) -> Result<usize, String> {
        let mut frames = Vec::new();
        log.read(payload, &mut frames).map_err(|error| error.to_string())?;
        Ok(frames.len())
    }

    const MAIN: &[u8] = b"V\t5\t17\nT\t1\t99 - main\n";

    #[test]
    fn records_become_events_a_round_later_and_may_come_before_the_name() {
        let mut log = LiveLog::new(8);
        // A write of 5 to element 0 of object 7, with the first ticket of stripe 2.
        let words: [u64; 3] = [2 | 2 << 7 | 2 << 10 | 1 << 28 | 1 << 32, 5 << 32, 7];
        let write: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        assert_eq!(read(&mut log, &piece(1, &write, false)), Ok(0));
        assert_eq!(read(&mut log, &piece(NAMES, MAIN, true)), Ok(0));
        assert_eq!(log.events(), 0);
        assert!(read(&mut log, &[1]).unwrap() > 0);
        assert_eq!(log.events(), 1);
        let mut frames = Vec::new();
        log.finish(&mut frames).unwrap();
        let why = log.remarks().cut_short.as_deref();
        assert_eq!(why, Some("the JVM ended without shutting down"));
    }

    #[test]
    fn what_is_damaged_is_refused() {
        for (bad, why) in [
            (vec![], "cut off"),
            (piece(1, &[1; 40], false)[..30].to_vec(), "cut off"),
            (vec![0, 1, 2, 3], "cut off"),
            (piece(NAMES, b"nonsense\n", false), "not a name"),
            (piece(NAMES, b"V\t2\t17\n", false), "another version"),
            (piece(3, &[0x7f; 16], false), "no record"),
        ] {
            let told = read(&mut LiveLog::new(8), &bad).unwrap_err();
            assert!(told.contains(why), "{bad:?}: {told}");
        }
        let mut log = LiveLog::new(8);
        let names: String = (0..9).map(|i| format!("T\t{i}\t{i} - t\n")).collect();
        let names = ["V\t5\t17\n", &names].concat();
        let told = read(&mut log, &piece(NAMES, names.as_bytes(), false)).unwrap_err();
        assert!(told.contains("more than 8 threads"), "{told}");
        let mut log = LiveLog::new(8);
        let many = (1..3000).map(|i| piece(i, &[], false)[1..].to_vec());
        let told = read(&mut log, &[vec![0], many.flatten().collect()].concat()).unwrap_err();
        assert!(told.contains("no names"), "{told}");
    }

    #[test]
    fn no_records_make_it_fail_in_another_way() {
        for seed in 0..300 {
            let mut chance = fastrand::Rng::with_seed(seed);
            let mut log = LiveLog::new(8);
            let names = b"F\t1\tspwA.x\nF\t2\tip-A.y\nK\t1\t1\nK\t2\t2\nC\t1\tA\nT\t2\t98 - two\n";
            read(&mut log, &piece(NAMES, &[MAIN, names].concat(), false)).unwrap();
            for _ in 0..20 {
                let mut bytes = Vec::new();
                for _ in 0..chance.usize(..20) {
                    let head = chance.u64(1..72) | chance.u64(..8) << 7 | chance.u64(..3) << 10;
                    let head = head | chance.u64(..4) << 22 | chance.u64(..4) << 28;
                    let site = chance.u64(..4) << 32;
                    bytes.extend((head | site).to_le_bytes());
                    let rest = [0, 1, 7, 98, 99, u64::MAX, u64::MAX - 1, 5 << 32];
                    for _ in 0..3 {
                        bytes.extend(chance.choice(rest).unwrap().to_le_bytes());
                    }
                }
                let file = chance.u32(1..3);
                if read(&mut log, &piece(file, &bytes, chance.bool())).is_err() {
                    break;
                }
            }
            let _ = log.finish(&mut Vec::new());
        }
    }
}
