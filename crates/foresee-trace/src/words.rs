//! Words of foresee's own: enumerations that have a word for each case, in reports and on the command line, and names that
//! the program's text holds.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

/// Defines an enumeration with a word for each case, and the list of all of them.
macro_rules! words {
    (
        $(#[$about:meta])*
        pub enum $name:ident { $($(#[$doc:meta])* $case:ident = $word:literal,)* }
    ) => {
        $(#[$about])*
        #[derive(serde::Serialize, serde::Deserialize)]
        pub enum $name { $($(#[$doc])* $case,)* }

        impl $name {
            /// Every case.
            pub const ALL: &[$name] = &[$($name::$case,)*];

            /// The word for it in reports.
            pub fn word(self) -> &'static str {
                match self { $($name::$case => $word,)* }
            }
        }
    };
}

pub(crate) use words;

/// A name that the text of foresee holds, such as that of an analysis; never one of a trace.
pub type Word = &'static str;

/// How many different words may be read, and how long each may be. A report has some dozens; what is longer or more was not
/// written by foresee.
const MOST_WORDS: usize = 4096;
const LONGEST_WORD: usize = 128;

/// Reads a [`Word`] of a stored report. Each different word is kept for the rest of the process.
pub fn read_word<'de, D: Deserializer<'de>>(from: D) -> Result<Word, D::Error> {
    static READ: Mutex<BTreeSet<Word>> = Mutex::new(BTreeSet::new());
    let text = String::deserialize(from)?;
    let mut read = READ.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(word) = read.get(text.as_str()) {
        return Ok(word);
    }
    if read.len() >= MOST_WORDS || text.len() > LONGEST_WORD {
        return Err(D::Error::custom("this is not a word that foresee uses"));
    }
    let word: Word = String::leak(text);
    read.insert(word);
    Ok(word)
}
