//! Every run that the causality of a trace allows, level by level.
//!
//! The nodes of the lattice are *consistent cuts*: how many relevant events of each thread have
//! happened. A level holds the cuts with equally many events; each cut carries the states in which
//! the monitor can be there, so all runs are followed at once, and two runs that meet are followed
//! as one. After Sen, Roşu and Agha, *Runtime Safety Analysis of Multithreaded Programs*, ESEC/FSE
//! 2003, and *Online Efficient Predictive Safety Analysis of Multithreaded Programs*, STTT 2006; cuts
//! are the ideals of Bertoni, Mauri and Sabadini, *Membership Problems for Regular and Context-Free
//! Trace Languages*, 1989.
//!
//! | file | what it does |
//! |---|---|
//! | `predict` | the analysis: a search for each property and binding, as the trace is read |
//! | `online` | one search, for events that arrive in any order |
//! | `events` | the relevant events that have arrived, with their causal order |
//! | `cut` | cuts packed into a few words |
//! | `tables` | program states and sets of monitor states by number |
//! | `level` | the cuts with equally many events; levels kept for a witness |
//! | `expand` | from a level to the next, on all cores |
//! | `window` | the cuts nearest to the observed run |
//! | `explore` | when a level can be left, and the limits |
//! | `witness` | back from a violation to a run that shows it |
//! | `closest` | the violating run with the fewest swaps |
//! | `picture` | a small lattice as data to be drawn |
//! | `tally` | the result, in numbers and in words |

mod closest;
mod cut;
mod events;
mod expand;
mod explore;
mod level;
mod online;
mod picture;
mod predict;
mod tables;
mod tally;
mod window;
mod witness;

pub use explore::Limits;
pub use level::Count;
pub use online::{Coverage, Message, Notice, Online, Stamper};
pub use picture::{Beyond, Edge, NoPicture, Node, Picture};
pub(crate) use predict::beginning;
pub use predict::{Lattice, Prediction, ViolatingRuns};
pub(crate) use tally::LatticeVerdict;
