//! Descriptions of atomicity violations.

use foresee_trace::{Op, Role, Site, Subject, Verdict};

use super::graph::Link;
use super::regions::Regions;
use crate::checks::tries::Found;
use crate::checks::{Context, Description};
use crate::reorder::NONE;

/// The name of a region: `the region transfer of T1`.
fn name_of(context: &Context<'_>, regions: &Regions, region: u32) -> String {
    let it = regions.all()[region as usize];
    let thread = context.thread_of(it.begin);
    match it.name {
        Some(name) => format!("the region `{}` of {thread}", context.trace.names.syms.get(name)),
        None => format!("a region of {thread}"),
    }
}

/// A region as the subject of a finding, if it has a name.
fn subject(context: &Context<'_>, regions: &Regions, region: u32) -> Option<Subject> {
    let name = regions.all()[region as usize].name?;
    Some(Subject::Region(context.trace.names.syms.get(name).to_owned()))
}

/// The extent of a region.
fn extent_of(context: &Context<'_>, regions: &Regions, region: u32) -> (String, String) {
    let it = regions.all()[region as usize];
    let begin = format!("from event {}{}", it.begin, context.place_of(it.begin));
    let end = match it.end {
        NONE => "to the end of the trace".to_owned(),
        end => format!("to event {end}{}", context.place_of(end)),
    };
    ("region".to_owned(), format!("{}, {begin} {end}", name_of(context, regions, region)))
}

fn op(context: &Context<'_>, event: u32) -> Op {
    context.trace.events[event as usize].op()
}

fn variable<'c>(context: &'c Context<'_>, event: u32) -> &'c str {
    let event = &context.trace.events[event as usize];
    event.target_name(&context.trace.names).unwrap_or("?")
}

/// The effect of `b` between `a1` and `a2`, all on one variable. `can` is the word before the
/// verbs: the observed order did it, others can.
fn of_triple(
    context: &Context<'_>,
    region: &str,
    [a1, b, a2]: [u32; 3],
    can: bool,
) -> (Verdict, String) {
    let (own, other) = (context.thread_of(a1), context.thread_of(b));
    let x = variable(context, a1);
    let between = op(context, b);
    let (first, second) = (op(context, a1), op(context, a2));
    let can = |verb: &str, past: &str| if can { format!("can {verb}") } else { past.to_owned() };
    if between.writes() && first.reads() && second.writes() {
        let message = format!(
            "{region} is not atomic: {own} reads {x} and then writes it, and {other} {} it in \
             between, so that an update is lost",
            can("write", "wrote")
        );
        (Verdict::LostUpdate, message)
    } else if between.writes() && first.reads() {
        let message = format!(
            "{region} is not atomic: {own} reads {x} twice, and {other} {} it in between",
            can("write", "wrote")
        );
        (Verdict::InconsistentReads, message)
    } else if between.writes() {
        let message = format!(
            "{region} is not atomic: {own} writes {x} and reads it back, and {other} {} it in \
             between",
            can("write", "wrote")
        );
        (Verdict::Overwritten, message)
    } else {
        let message = format!(
            "{region} is not atomic: {own} writes {x} twice, and {other} {} it in between, when it \
             is not yet what it should be",
            can("read", "read")
        );
        (Verdict::IntermediateRead, message)
    }
}

/// The lock that would prevent it: one that all others hold, from the first access to the last.
fn remedy(context: &Context<'_>, first: u32, last: u32, others: &[u32]) -> (String, String) {
    let held = |event: u32| context.held_at(event);
    let mut common: Vec<&str> = match others.first() {
        Some(&one) => {
            held(one).iter().map(|h| context.trace.names.locks.get(h.hold.lock)).collect()
        }
        None => Vec::new(),
    };
    for &other in others {
        let theirs = held(other);
        common.retain(|&name| {
            theirs.iter().any(|h| context.trace.names.locks.get(h.hold.lock) == name)
        });
    }
    let threads: Vec<&str> = others.iter().map(|&other| context.thread_of(other)).collect();
    let lock = match common.first() {
        Some(lock) => format!("hold {lock}"),
        None => {
            let mut threads = threads;
            threads.dedup();
            format!("hold a lock, which {} must take, too,", threads.join(" and "))
        }
    };
    ("remedy".to_owned(), format!("{lock} all the way from event {first} to event {last}"))
}

/// The events of a violation with the locks held at them, listed under these labels.
fn list(
    context: &Context<'_>,
    labels: &[(&str, Role, u32)],
    details: &mut Vec<(String, String)>,
) -> Vec<Site> {
    let mut sites = Vec::new();
    for &(label, role, event) in labels {
        let site = context.site(role, event);
        details.push((label.to_owned(), site.to_string()));
        details.push((format!("locks held {label}"), site.told_locks()));
        sites.push(site);
    }
    sites
}

/// Describes a predicted violation.
pub(super) fn predicted(context: &Context<'_>, regions: &Regions, found: &Found) -> Description {
    let last = found.by.next[0];
    let thread = context.trace.events[last as usize].thread();
    let executed: Vec<u32> = found.by.executed.iter().map(|wanted| wanted.event).collect();
    let is_own = |&event: &u32| context.trace.events[event as usize].thread() == thread;
    let first = executed.iter().copied().find(is_own).unwrap_or(last);
    let others: Vec<u32> = executed.iter().copied().filter(|event| !is_own(event)).collect();
    let region = regions.at(thread.0, last);
    let name = region.map_or_else(String::new, |region| name_of(context, regions, region));
    let mut details: Vec<_> = region.map(|r| extent_of(context, regions, r)).into_iter().collect();
    let sites;
    let (verdict, message) = match others[..] {
        [b] => {
            let labels = [
                ("first", Role::First, first),
                ("in between", Role::Between, b),
                ("next", Role::Second, last),
            ];
            sites = list(context, &labels, &mut details);
            of_triple(context, &name, [first, b, last], true)
        }
        _ => {
            let steps = ["first", "second", "third", "fourth", "fifth"];
            let steps = steps.into_iter().zip(&executed);
            let mut labels: Vec<_> =
                steps.map(|(label, &event)| (label, Role::Conflict, event)).collect();
            labels.push(("next", Role::Conflict, last));
            sites = list(context, &labels, &mut details);
            let (x, y) = (variable(context, first), variable(context, last));
            let message = format!(
                "{name} is not atomic: it can come before what {} does to {x}, and yet after what {} \
                 does to {y}",
                context.thread_of(others[0]),
                context.thread_of(others[others.len() - 1]),
            );
            (Verdict::NotSerialisable, message)
        }
    };
    details.push(remedy(context, first, last, &others));
    let about = region.and_then(|region| subject(context, regions, region));
    Description { verdict, message, sites, about: about.into_iter().collect(), details }
}

/// Describes an access between two that look as if they belonged together.
pub(super) fn likely(context: &Context<'_>, [a1, b, a2]: [u32; 3], can: bool) -> Description {
    let what = format!("likely: what {} does in two sections", context.thread_of(a1));
    let (verdict, message) = of_triple(context, &what, [a1, b, a2], can);
    let certain = if can { "can come" } else { "came" };
    let guess = format!(
        "that {} {certain} in between is certain, but nobody has said that the two belong together: \
         if they do, declare a region, and if not, suppress this",
        context.thread_of(b)
    );
    let mut details = vec![("likely".to_owned(), guess)];
    let last = if can { "next" } else { "then" };
    let labels =
        [("first", Role::First, a1), ("in between", Role::AnyBetween, b), (last, Role::Second, a2)];
    let sites = list(context, &labels, &mut details);
    details.push(remedy(context, a1, a2, &[b]));
    Description { verdict, message, sites, about: Vec::new(), details }
}

/// Adds another event that comes between the same two.
pub(in crate::checks) fn also(details: &mut Vec<(String, String)>, event: String) {
    const ALSO: &str = "also in between";
    match details.iter_mut().find(|(role, _)| role == ALSO) {
        Some((_, events)) => *events += &format!("; {event}"),
        None => details.push((ALSO.to_owned(), event)),
    }
}

/// Describes a violation in the observed order.
pub(super) fn observed(
    context: &Context<'_>,
    regions: &Regions,
    region: u32,
    cycle: &[Link],
) -> Description {
    let name = name_of(context, regions, region);
    let mut details = vec![extent_of(context, regions, region)];
    let sites;
    let (verdict, message) = match *cycle {
        [Link { from: a1, to: b }, Link { from, to: a2 }] if b == from => {
            let labels = [
                ("first", Role::First, a1),
                ("in between", Role::Between, b),
                ("then", Role::Second, a2),
            ];
            sites = list(context, &labels, &mut details);
            details.push(remedy(context, a1, a2, &[b]));
            let is_one = variable(context, a1) == variable(context, a2);
            let is_seen = op(context, a1).reads() || op(context, a2).reads();
            match is_one && (is_seen || op(context, b).reads()) {
                true => of_triple(context, &name, [a1, b, a2], false),
                false => {
                    let message = format!(
                        "{name} was disturbed: what {} did came after one part of it and before \
                         another",
                        context.thread_of(b)
                    );
                    (Verdict::NotSerialisable, message)
                }
            }
        }
        _ => {
            let ends = cycle.iter().flat_map(|link| [link.from, link.to]);
            sites = ends.map(|event| context.site(Role::Conflict, event)).collect();
            for (i, ends) in sites.chunks(2).enumerate() {
                let how = format!("{}, and then {}", ends[0], ends[1]);
                details.push((format!("conflict {}", i + 1), how));
            }
            let message = format!(
                "{name} was disturbed: by way of {} conflicts one part of it comes before, and \
                 another after, what other threads did",
                cycle.len()
            );
            (Verdict::NotSerialisable, message)
        }
    };
    let about = subject(context, regions, region).into_iter().collect();
    Description { verdict, message, sites, about, details }
}
