//! Reading the std format the way one would at first: line by line, split, and look names up in a
//! map of strings.

use std::collections::HashMap;
use std::io::BufRead;

/// The events of a std file as numbers.
#[derive(Default)]
pub(crate) struct Lines {
    threads: HashMap<String, u32>,
    targets: HashMap<String, u32>,
    locations: HashMap<String, u32>,
}

fn number(names: &mut HashMap<String, u32>, name: &str) -> u32 {
    match names.get(name) {
        Some(&n) => n,
        None => {
            let n = names.len() as u32;
            names.insert(name.to_owned(), n);
            n
        }
    }
}

impl Lines {
    /// Reads everything; how many events there are, and a sum that depends on all of them.
    pub(crate) fn read(&mut self, input: impl BufRead) -> anyhow::Result<(u64, u64)> {
        let (mut events, mut sum) = (0, 0u64);
        for line in input.lines() {
            let line = line?;
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let mut fields = line.split('|');
            let (thread, operation) = (fields.next().unwrap_or(""), fields.next().unwrap_or(""));
            let location = fields.next().unwrap_or("");
            let (op, rest) = operation.split_once('(').unwrap_or((operation, ")"));
            let target = rest.split_once(')').map_or(rest, |(target, _)| target);
            sum += u64::from(number(&mut self.threads, thread))
                + op.len() as u64
                + u64::from(number(&mut self.targets, target))
                + u64::from(number(&mut self.locations, location));
            events += 1;
        }
        Ok((events, sum))
    }
}
