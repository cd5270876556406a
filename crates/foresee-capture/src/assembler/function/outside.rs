//! Where a function has not told the runtime yet that it begins, or has told it that it ends.
//!
//! Compilers move stores behind the hook at the end of their function, and functions without accesses or calls in the
//! compiler's intermediate language have no such hooks at all. What is recorded there would have the call stack of the
//! function's caller.

use std::collections::HashMap;

use super::is_for_debugging;

/// Ways in which a line can be reached.
type Ways = u8;
const INSIDE: Ways = 1;
const OUTSIDE: Ways = 2;

/// The lines that may be reached outside the hooks of the function.
pub(super) fn lines(lines: &[&str]) -> Vec<bool> {
    if !lines.iter().any(|line| line.contains("__tsan_func_entry")) {
        return vec![true; lines.len()];
    }
    let mut flow = Flow::default();
    while flow.pass(lines, 0) {}
    // Tables refer to what no jump leads to: the cases of switches and the places where exceptions are caught.
    while flow.pass(lines, INSIDE) {}
    flow.ways.iter().map(|ways| ways & OUTSIDE != 0).collect()
}

#[derive(Default)]
struct Flow<'a> {
    /// How jumps reach labels.
    labels: HashMap<&'a str, Ways>,
    ways: Vec<Ways>,
}

impl<'a> Flow<'a> {
    /// Goes through all lines once; labels that nothing is known to reach are reached in ways `unknown`. Says whether something
    /// has changed.
    fn pass(&mut self, lines: &[&'a str], unknown: Ways) -> bool {
        let before = std::mem::take(&mut self.ways);
        let mut now = OUTSIDE;
        let mut has_changed = false;
        for line in lines {
            let code = line.split_once('#').map_or(*line, |(code, _)| code).trim();
            if let Some(label) = code.strip_suffix(':') {
                if !is_for_debugging(label) {
                    now |= self.labels.get(label).copied().unwrap_or(0);
                    now = if now == 0 { unknown } else { now };
                }
                self.ways.push(now);
                continue;
            }
            self.ways.push(now);
            let (word, rest) = code.split_once([' ', '\t']).unwrap_or((code, ""));
            match word {
                "call" | "callq" if rest.contains("__tsan_func_entry") => now = now.min(1),
                "call" | "callq" if rest.contains("__tsan_func_exit") => now = now.min(1) * OUTSIDE,
                "ret" | "retq" | "ud2" => now = 0,
                _ if word.starts_with('j') => {
                    let known = self.labels.entry(rest.trim()).or_default();
                    has_changed |= *known | now != *known;
                    *known |= now;
                    if word.starts_with("jmp") {
                        now = 0;
                    }
                }
                _ => {}
            }
        }
        has_changed || before != self.ways
    }
}

/// Whether a line calls a function of libc that compilers call of their own accord, and that the runtime records.
pub(super) fn is_copy(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let is_call = matches!(words.next(), Some("call" | "callq"));
    let name = words.next().unwrap_or_default().trim_start_matches('*');
    let name = name.split('@').next().unwrap_or_default();
    is_call && matches!(name, "memcpy" | "memmove" | "memset" | "memcmp")
}

#[cfg(test)]
mod tests {
    /// The lines of the function that are outside, by number.
    fn outside(text: &str) -> Vec<usize> {
        let lines: Vec<&str> = text.lines().collect();
        let outside = super::lines(&lines);
        (0..lines.len()).filter(|&line| outside[line]).collect()
    }

    #[test]
    fn what_follows_the_end_on_any_path_is_outside() {
        let text = "f:\n\tcall __tsan_func_entry@PLT\n\ttestl %eax, %eax\n\tje .L2\n\tnop\n\tcall __tsan_func_exit@PLT\n\
                    \tjmp .L3\n.L2:\n\tnop\n\tcall __tsan_func_exit@PLT\n.L3:\n.LVL9:\n\tnop\n\tret\n\
                    .L9:\n\tnop\n\tcallq *__tsan_func_exit@GOTPCREL(%rip)\n\tjmp .L3\n";
        assert_eq!(outside(text), [0, 1, 6, 10, 11, 12, 13, 17]);
    }

    #[test]
    fn a_function_without_hooks_is_outside() {
        assert_eq!(outside("f:\n\tmovups %xmm0, g(%rip)\n\tret\n"), [0, 1, 2]);
    }

    #[test]
    fn copies_that_compilers_make_are_calls() {
        for line in ["\tcall\tmemcpy@PLT", "\tcallq\tmemset", "\tcall\t*memmove@GOTPCREL(%rip)"] {
            assert!(super::is_copy(line), "{line}");
        }
        assert!(!super::is_copy("\tcall\tmemcpy_fast") && !super::is_copy("\tjmp\tmemcpy"));
    }
}
