//! One of several batches that share the jobs.

use std::fmt;
use std::str::FromStr;

/// One of several batches that share the jobs, such as those of the machines of a build.
///
/// ```
/// use foresee_batch::Shard;
///
/// let second: Shard = "2/3".parse()?;
/// let its = (0..7).filter(|&job| second.has(job)).collect::<Vec<_>>();
/// assert_eq!(its, [1, 4]);
/// # Ok::<(), foresee_batch::BadShard>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    number: u32,
    of: u32,
}

/// A text that names no shard.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a shard is K/N with K from 1 to N, such as 2/5")]
pub struct BadShard;

impl Shard {
    /// All jobs.
    pub const ALL: Shard = Shard { number: 1, of: 1 };

    /// Whether it has a job, by the job's number. Jobs are dealt out like cards, so that neighbours, which are often alike, go
    /// to different shards.
    pub fn has(self, job: usize) -> bool {
        job % self.of as usize == self.number as usize - 1
    }
}

impl FromStr for Shard {
    type Err = BadShard;

    fn from_str(text: &str) -> Result<Shard, BadShard> {
        let (number, of) = text.split_once('/').ok_or(BadShard)?;
        let number = number.parse().map_err(|_| BadShard)?;
        let of = of.parse().map_err(|_| BadShard)?;
        let is_one = 1 <= number && number <= of;
        is_one.then_some(Shard { number, of }).ok_or(BadShard)
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_job_is_in_exactly_one_shard() {
        for of in 1..8 {
            let shards: Vec<Shard> = (1..=of).map(|number| Shard { number, of }).collect();
            for job in 0..50 {
                assert_eq!(shards.iter().filter(|shard| shard.has(job)).count(), 1);
            }
        }
    }

    #[test]
    fn nonsense_is_refused() {
        for text in ["", "1", "0/2", "3/2", "1/0", "-1/2", "1/2/3", "a/b", "1/99999999999"] {
            assert_eq!(text.parse::<Shard>(), Err(BadShard), "{text}");
        }
        assert_eq!("2/5".parse::<Shard>().unwrap().to_string(), "2/5");
    }
}
