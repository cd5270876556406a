//! The search for a reordering: take what is needed, emit it, repair what is wrong.
//!
//! First, everything that the goal needs is kept, as late as possible. Then conflicts are settled,
//! each by one of two lowerings, or a few more where a read may see several writes. Those that
//! leave no choice come first. When none of them is left, the search makes a choice, the likeliest
//! way first, and tries the next one if that fails, a bounded number of times. Each lowering
//! follows from the choices so far, so without the bound the search is exact for its number of
//! slices.

use foresee_causality::judge::Reads;

use super::emission::{Lowering, Walker, Way, Ways};
use super::goal::{Answer, Effort, Goal, Sight};
use super::landmarks::FAR;
use super::requirements::Requirements;
use super::slices::{Contradiction, LEFT_OUT, Slices};

/// How far requirements are followed if only writes other than those that were seen are possible.
const MOST_DOUBT: u64 = 500;

/// Answers goals for one trace.
#[derive(Debug)]
pub struct Search<'r> {
    requirements: &'r Requirements,
    slices: Slices,
    walker: Walker,
    choices: Vec<Choice>,
    /// For each choice, the objects still to be examined.
    saved: Vec<u32>,
    /// The objects with conflicts that leave a choice.
    undecided: Vec<u32>,
    blamed: u128,
    /// Whether anything depended on what happened before the anchor.
    is_anchored: bool,
}

/// A conflict that was settled in one of several ways.
#[derive(Debug)]
struct Choice {
    /// The length of the trail at the choice.
    mark: usize,
    /// The other ways.
    others: Ways,
    /// Where the objects still to be examined start in `saved`.
    saved: usize,
}

/// This choice has failed.
struct Failed;

impl<'r> Search<'r> {
    /// Prepares the search.
    pub fn new(requirements: &'r Requirements, reads: Reads) -> Search<'r> {
        Search {
            requirements,
            slices: Slices::new(requirements, reads),
            walker: Walker::default(),
            choices: Vec::new(),
            saved: Vec::new(),
            undecided: Vec::new(),
            blamed: 0,
            is_anchored: false,
        }
    }

    /// The number of steps since this was last called.
    pub fn take_work(&mut self) -> u64 {
        std::mem::take(&mut self.slices.work)
    }

    /// The number of steps so far.
    pub(crate) fn work(&self) -> u64 {
        self.slices.work
    }

    /// Looks for a reordering in which everything before `anchor` happens as observed. The anchor
    /// must not be after the first event of the goal.
    pub fn ask(&mut self, goal: &Goal<'_>, anchor: u32, effort: Effort) -> Answer {
        self.ask_seeing(Sight::Writers, goal, anchor, effort)
    }

    /// Whether it makes a difference which of several writes of one value reads see.
    pub fn has_free_reads(&self) -> bool {
        self.requirements.has_free_reads()
    }

    /// The same where reads must see no more than this.
    pub fn ask_seeing(
        &mut self,
        sight: Sight,
        goal: &Goal<'_>,
        anchor: u32,
        effort: Effort,
    ) -> Answer {
        self.slices.sight = sight;
        self.slices.anchor = anchor;
        self.blamed = 0;
        self.is_anchored = false;
        let until = self.slices.work.saturating_add(effort.work);
        for &event in goal.next {
            self.slices.limit(event, self.requirements);
        }
        // Requirements beyond the limit are not followed.
        self.slices.until = until;
        let answer = self.search(goal, effort, until);
        self.slices.until = u64::MAX;
        self.slices.undo(0, self.requirements);
        self.slices.set_dirty(&[]);
        self.choices.clear();
        self.saved.clear();
        self.undecided.clear();
        for &event in goal.next {
            self.slices.clear_limit(event, self.requirements);
        }
        answer
    }

    /// Whether a goal is conceivable: its hard requirements contain none of its next events and
    /// keep its executed ones in order. If not, no reordering reaches it.
    ///
    /// Requirements come earlier in the trace, so nothing before the goal's first event can need
    /// any event of the goal.
    pub fn is_conceivable(&mut self, goal: &Goal<'_>) -> bool {
        self.conceive(goal) != Some(false)
    }

    /// The same; `None` if only other writes of the same values are possible and deciding takes too
    /// long.
    pub fn conceive(&mut self, goal: &Goal<'_>) -> Option<bool> {
        let Some((first, last)) = goal.extent() else { return Some(true) };
        let mut is_doubtful = false;
        // Following distant requirements is slow.
        if last - first > FAR {
            let rule_out =
                |sight| self.requirements.landmarks(sight).rule_out(goal, self.requirements);
            if rule_out(Sight::Values) {
                return Some(false);
            }
            is_doubtful = self.has_free_reads() && rule_out(Sight::Writers);
        }
        if is_doubtful {
            self.slices.until = self.slices.work.saturating_add(MOST_DOUBT);
        }
        self.slices.anchor = first;
        self.slices.sight = Sight::Values;
        for &event in goal.next {
            self.slices.limit(event, self.requirements);
        }
        let kept = self.keep_what_is_needed(goal, 1);
        self.slices.undo(0, self.requirements);
        self.slices.set_dirty(&[]);
        for &event in goal.next {
            self.slices.clear_limit(event, self.requirements);
        }
        let is_cut = self.slices.work >= std::mem::replace(&mut self.slices.until, u64::MAX);
        match kept {
            _ if is_cut => None,
            Err(Failed) => Some(false),
            Ok(()) if is_doubtful => None,
            Ok(()) => Some(true),
        }
    }

    fn search(&mut self, goal: &Goal<'_>, effort: Effort, until: u64) -> Answer {
        let gave_up = |blamed| Answer::No { blamed, gave_up: true, is_final: false };
        let groups = goal.executed.len() + usize::from(!goal.next.is_empty());
        if groups * usize::from(effort.slices) >= usize::from(LEFT_OUT) {
            return gave_up(0);
        }
        let mut failures = 0;
        let mut result = self.keep_what_is_needed(goal, effort.slices);
        loop {
            if self.slices.work >= until {
                return gave_up(self.blamed);
            }
            if result.is_ok() {
                if let Some(object) = self.slices.take_dirty() {
                    result = self.examine(object, goal, false);
                } else if let Some(object) = self.undecided.pop() {
                    result = self.examine(object, goal, true);
                } else {
                    return self.answer();
                }
                continue;
            }
            let Some(choice) = self.choices.last_mut() else {
                let is_final = !self.is_anchored;
                return Answer::No { blamed: self.blamed, gave_up: false, is_final };
            };
            let Some(way) = choice.others.next() else {
                self.saved.truncate(choice.saved);
                self.choices.pop();
                continue;
            };
            failures += 1;
            if failures > effort.failures {
                return gave_up(self.blamed);
            }
            self.slices.undo(choice.mark, self.requirements);
            self.undecided.clear();
            self.slices.set_dirty(&self.saved[choice.saved..]);
            if choice.others.len() == 0 {
                self.saved.truncate(choice.saved);
                self.choices.pop();
            }
            result = apply(&mut self.slices, way, goal, self.requirements)
                .map_err(|blamed| self.blame(blamed));
        }
    }

    fn keep_what_is_needed(&mut self, goal: &Goal<'_>, slices_each: u8) -> Result<(), Failed> {
        let (slices, requirements) = (&mut self.slices, self.requirements);
        let mut last = 0;
        let mut keep = || -> Result<(), Contradiction> {
            for wanted in goal.executed {
                last += slices_each;
                if wanted.keeps_value {
                    slices.activate(wanted.event, requirements);
                }
                slices.lower(wanted.event, last, requirements)?;
            }
            for &event in goal.next {
                slices.bring_before(event, last + slices_each, requirements)?;
            }
            Ok(())
        };
        let kept = match keep() {
            Ok(()) => in_order(slices, goal),
            Err(contradiction) => Err(blame_limit(contradiction, goal)),
        };
        kept.map_err(|blamed| self.blame(blamed))
    }

    fn blame(&mut self, blamed: u128) -> Failed {
        self.blamed |= blamed;
        Failed
    }

    /// Settles the conflicts that are found in one walk over the events of an object: those that
    /// leave no choice, or, to decide, all of them.
    fn examine(&mut self, object: u32, goal: &Goal<'_>, decide: bool) -> Result<(), Failed> {
        let Search { requirements, slices, walker, choices, saved, undecided, blamed, is_anchored } =
            self;
        let mut is_undecided = false;
        walker.walk(object, slices, requirements, |slices, conflict| {
            let allows = |way: Lowering| match refused(slices, way, goal, requirements) {
                None => true,
                Some(more) => {
                    *blamed |= more;
                    false
                }
            };
            let Some(mut ways) = conflict.options(slices, requirements, allows) else {
                return Ok(());
            };
            *is_anchored |= conflict.is_anchored(slices, requirements);
            if ways.len() > 1 && !decide {
                is_undecided = true;
                return Ok(());
            }
            let Some(way) = ways.next() else { return Err(Failed) };
            if ways.len() > 0 {
                choices.push(Choice { mark: slices.mark(), others: ways, saved: saved.len() });
                saved.extend(slices.dirty());
                saved.extend_from_slice(undecided);
                saved.push(object);
            }
            apply(slices, way, goal, requirements).map_err(|more| {
                *blamed |= more;
                Failed
            })
        })?;
        // Its events may change before it is decided; then it is looked at again anyway.
        if is_undecided && !undecided.contains(&object) {
            undecided.push(object);
        }
        Ok(())
    }

    /// The order that has no conflicts left.
    fn answer(&self) -> Answer {
        let mut order: Vec<u32> = self.slices.kept().collect();
        order.sort_by_key(|&event| (self.slices.slice(event), event));
        Answer::Yes { observed: self.slices.anchor, order }
    }
}

/// The events to blame if an event cannot be lowered, as far as known without trying: its thread
/// must stop before it, or lowering it would make an event of the goal come too early.
fn refused(
    slices: &Slices,
    way: Lowering,
    goal: &Goal<'_>,
    requirements: &Requirements,
) -> Option<u128> {
    let thread = requirements.thread(way.event);
    if slices.is_future(way.event, requirements) {
        let limit = goal.next.iter().position(|&event| requirements.thread(event) == thread);
        return Some(limit.map_or(0, |at| 1 << (goal.executed.len() + at)));
    }
    let place = |event: u32| (slices.slice(event), event);
    for at in 1..goal.executed.len() {
        let event = goal.executed[at].event;
        let goes_along = event <= way.event && requirements.thread(event) == thread;
        if goes_along && (way.slice, event) <= place(goal.executed[at - 1].event) {
            return Some(1 << at);
        }
    }
    None
}

/// Lowers events, or returns the events to blame for the failure.
fn apply(
    slices: &mut Slices,
    way: Way,
    goal: &Goal<'_>,
    requirements: &Requirements,
) -> Result<(), u128> {
    for Lowering { event, slice } in [Some(way.first), way.second].into_iter().flatten() {
        let lowered = slices.lower(event, slice, requirements);
        lowered.map_err(|contradiction| blame_limit(contradiction, goal))?;
    }
    in_order(slices, goal)
}

/// Whether the events of the goal are emitted in their order, or which of them come too early.
fn in_order(slices: &Slices, goal: &Goal<'_>) -> Result<(), u128> {
    let place = |at: usize| {
        let event = goal.executed[at].event;
        (slices.slice(event), event)
    };
    let mut blamed = 0;
    for at in 1..goal.executed.len() {
        if place(at) <= place(at - 1) {
            blamed |= 1 << at;
        }
    }
    if blamed == 0 { Ok(()) } else { Err(blamed) }
}

fn blame_limit(contradiction: Contradiction, goal: &Goal<'_>) -> u128 {
    let at = goal.next.iter().position(|&event| event == contradiction.limit);
    at.map_or(0, |at| 1 << (goal.executed.len() + at))
}
