//! Every run that the causality of a trace allows, level by level.
//!
//! The nodes of the lattice are *consistent cuts*: how many relevant events of each thread have
//! happened. A level holds the cuts with equally many events; each cut carries the states in which
//! the monitor can be there, so all runs are followed at once, and two runs that meet are followed
//! as one (Sen, Roşu and Agha, computation lattices; Bertoni et al., ideals).
//!
//! | file | what it does |
//! |---|---|
//! | `bindings` | the bindings of a property's parameters, each with its own slice |
//! | `slice` | the relevant events of one property, with their causal order |
//! | `cut` | cuts packed into a few words |
//! | `tables` | program states and sets of monitor states by number |
//! | `search` | the levels, the window, the limits, the counts |
//! | `witness` | back from a violation to a run that shows it |
//! | `closest` | the violating run with the fewest swaps |
//! | `picture` | a small lattice as data to be drawn |

mod bindings;
mod closest;
mod cut;
mod picture;
mod predict;
mod search;
mod slice;
mod tables;
mod witness;

pub use picture::{Edge, NoPicture, Node, Picture};
pub use predict::{LATTICE, Lattice, Prediction, Predictions};
pub use search::Limits;
