#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| foresee_fuzz::read_and_write_again("jsonl", bytes));
