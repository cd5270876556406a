#![no_main]
//! Any text: it is read as a schedule, and what is accepted comes back the same.

use foresee_capture::replay::Schedule;

libfuzzer_sys::fuzz_target!(|text: &str| {
    let Ok(schedule) = text.parse::<Schedule>() else { return };
    assert_eq!(schedule.to_string().parse(), Ok(schedule));
});
