//! Descriptions of atomicity violations.

use foresee_trace::{Detail, Fact, Op, Point, Region, Remedy, Role, Site, Subject, Verdict};

use super::graph::Link;
use super::regions::Regions;
use crate::checks::tries::Found;
use crate::checks::{Context, Description};
use crate::reorder::NONE;

/// A region as the subject of a finding, if it has a name.
fn subject(context: &Context<'_>, regions: &Regions, region: u32) -> Option<Subject> {
    let name = regions.all()[region as usize].name?;
    Some(Subject::Region(context.trace.names.syms.get(name).to_owned()))
}

/// A region with its name and its extent.
fn described(context: &Context<'_>, regions: &Regions, region: u32) -> Region {
    let it = regions.all()[region as usize];
    let point = |event: u32| Point { event: event.into(), location: context.location_of(event) };
    Region {
        name: it.name.map(|name| context.trace.names.syms.get(name).to_owned()),
        thread: context.thread_of(it.begin).to_owned(),
        begin: point(it.begin),
        end: (it.end != NONE).then(|| point(it.end)),
    }
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
fn remedy(context: &Context<'_>, first: u32, last: u32, others: &[u32]) -> Detail {
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
    let mut threads: Vec<String> =
        others.iter().map(|&other| context.thread_of(other).to_owned()).collect();
    threads.dedup();
    let lock = common.first().map(|&lock| lock.to_owned());
    let remedy = Remedy { lock, threads, from: first.into(), to: last.into() };
    Detail::new("remedy", Fact::Remedy(remedy))
}

/// The events of a violation with the locks held at them, listed under these labels.
fn list(
    context: &Context<'_>,
    labels: &[(&str, Role, u32)],
    details: &mut Vec<Detail>,
) -> Vec<Site> {
    let mut sites = Vec::new();
    for &(label, role, event) in labels {
        details.push(Detail::new(label, Fact::Sites(vec![sites.len()])));
        details.push(Detail::new(format!("locks held {label}"), Fact::LocksAt(sites.len())));
        sites.push(context.site(role, event));
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
    let extent = region.map(|region| described(context, regions, region));
    let name = extent.as_ref().map_or_else(String::new, Region::title);
    let mut details: Vec<_> =
        extent.map(|region| Detail::new("region", Fact::Region(region))).into_iter().collect();
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
        "that {} {certain} in between is certain, but no region says that the two belong together: \
         if they do, declare one, and if not, suppress this",
        context.thread_of(b)
    );
    let mut details = vec![Detail::new("likely", Fact::Text(guess))];
    let last = if can { "next" } else { "then" };
    let labels =
        [("first", Role::First, a1), ("in between", Role::AnyBetween, b), (last, Role::Second, a2)];
    let sites = list(context, &labels, &mut details);
    details.push(remedy(context, a1, a2, &[b]));
    Description { verdict, message, sites, about: Vec::new(), details }
}

/// Adds the site of another event that comes between the same two.
pub(in crate::checks) fn also(details: &mut Vec<Detail>, site: usize) {
    const ALSO: &str = "also in between";
    for detail in details.iter_mut().filter(|detail| detail.label == ALSO) {
        if let Fact::Sites(sites) = &mut detail.fact {
            sites.push(site);
            return;
        }
    }
    details.push(Detail::new(ALSO, Fact::Sites(vec![site])));
}

/// Describes a violation in the observed order.
pub(super) fn observed(
    context: &Context<'_>,
    regions: &Regions,
    region: u32,
    cycle: &[Link],
) -> Description {
    let extent = described(context, regions, region);
    let name = extent.title();
    let mut details = vec![Detail::new("region", Fact::Region(extent))];
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
            for i in 0..sites.len() / 2 {
                let conflict = Fact::Conflict([2 * i, 2 * i + 1]);
                details.push(Detail::new(format!("conflict {}", i + 1), conflict));
            }
            let message = format!(
                "{name} was disturbed: through {} conflicts, one part of it comes before what other \
                 threads did, and another part after it",
                cycle.len()
            );
            (Verdict::NotSerialisable, message)
        }
    };
    let about = subject(context, regions, region).into_iter().collect();
    Description { verdict, message, sites, about, details }
}
