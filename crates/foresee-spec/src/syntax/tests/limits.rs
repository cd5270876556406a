//! Depth and size.

use super::super::{MAX_LENGTH, format, parse};
use super::survive;

fn codes(text: &str) -> Vec<&'static str> {
    parse(text).diagnostics.iter().map(|d| d.code).collect()
}

#[test]
fn depth_is_limited_everywhere() {
    let deep = |n: usize| {
        [
            format!("property p: {}x{}", "(".repeat(n), ")".repeat(n)),
            format!("property p: {}x", "!".repeat(n)),
            format!("property p: {}x", "always ".repeat(n)),
            format!("property p: {}x{}", "[".repeat(n), ", y)".repeat(n)),
            format!("property p: {}x", "x -> ".repeat(n)),
            format!("property p: {}x", "x since ".repeat(n)),
            format!("property p: {}x > 0", "- ".repeat(n)),
            format!("property p: {}x > 0", "x + ".repeat(n)),
            format!("property p: {}x{} > 0", "(x + ".repeat(n), ")".repeat(n)),
            format!("violation p: {}.{}", "(".repeat(n), ")".repeat(n)),
            format!("violation p: {}.", "~".repeat(n)),
            format!("violation p: .{}", "*".repeat(n)),
            format!("violation p: {{{}x}}", "!".repeat(n)),
            format!("pattern p: {}read(x){}", "(".repeat(n), ")".repeat(n)),
            format!("pattern p: read(x){}", "*".repeat(n)),
            format!("automaton p {{ initial a; a: {}x -> bad; }}", "!".repeat(n)),
            (1..n).fold("let a0 = x\n".to_owned(), |text, i| {
                text + &format!("let a{i} = !a{}\n", i - 1)
            }) + &format!("property p: a{}", n - 1),
        ]
    };
    for text in deep(100) {
        assert_eq!(codes(&text), [""; 0], "{text}");
        survive(&text);
    }
    for text in deep(10_000) {
        assert!(codes(&text).contains(&"too-deep"), "{}", &text[..50]);
    }
    for open in
        ["property p: (", "property p: [", "violation p: (", "pattern p: (", "violation p: {"]
    {
        let (head, sign) = open.split_at(open.len() - 1);
        survive(&format!("{head}{}", sign.repeat(10_000)));
    }
}

#[test]
fn the_deepest_text_is_read_on_a_small_stack() {
    let nested = |open: &str, inner: &str, close: &str| {
        format!("{}{inner}{}", open.repeat(120), close.repeat(120))
    };
    for text in [
        format!("property p: {}", nested("(", "x", ")")),
        format!("property p: {}", nested("[", "x", ", y)")),
        format!("property p: {}", nested("x -> ", "x", "")),
        format!("property p: {} > 0", nested("(x + ", "x", ")")),
        format!("violation p: {}", nested("(", ".", ")")),
    ] {
        let small = std::thread::Builder::new().stack_size(192 << 10);
        let reading = small.spawn(move || (codes(&text), text)).expect("a thread");
        let (codes, text) = reading.join().expect("the parser does not panic");
        assert_eq!(codes, [""; 0], "{text}");
    }
}

#[test]
fn left_spines_and_brackets_add_up() {
    let sum = " + x".repeat(200);
    let nested = format!("property p: {}x{}", "(".repeat(100), format!("{sum})").repeat(100));
    assert!(codes(&format!("{nested} > 0")).contains(&"too-deep"));
    let chain: String = vec!["(a -> b)"; 100_000].join(" || ");
    assert_eq!(codes(&format!("property p: {chain}")), [""; 0]);
}

#[test]
fn lets_that_double_are_stopped() {
    let mut text = "let a0 = x > 0\n".to_owned();
    for i in 1..60 {
        text += &format!("let a{i} = a{0} && a{0}\n", i - 1);
    }
    text += "property p: a59";
    assert!(codes(&text).contains(&"too-large"));
    let few = text.lines().take(15).collect::<Vec<_>>().join("\n");
    assert_eq!(codes(&few), [""; 0]);
}

#[test]
fn a_megabyte_is_fine() {
    let mut text = String::new();
    for i in 0.. {
        if text.len() > 1 << 20 {
            break;
        }
        text +=
            &format!("# number {i}\nproperty p{i}: start(x{i} == 1) -> [y > {i}, end(z == 0))\n");
    }
    assert_eq!(codes(&text), [""; 0]);
    assert_eq!(format(&text).as_deref(), Ok(text.as_str()));

    // One long line without anything correct in it.
    survive(&format!("property p: {}", "x > 0 && ".repeat(130_000)));
    survive(&"( ".repeat(1 << 19));
    survive(&") ".repeat(1 << 19));
    survive(&"^ ".repeat(1 << 19));
    survive(&"let p = q ".repeat(100_000));
    survive(&"property p(c): ".repeat(70_000));

    // Inputs that could take quadratic time.
    let list = |n: usize, make: fn(usize) -> String, between: &str| {
        (0..n).map(make).collect::<Vec<_>>().join(between)
    };
    survive(&list(15_000, |i| format!("let a{i} = a{}", i + 1), "\n"));
    survive(&list(15_000, |i| format!("init a{i} = 0\nproperty p{i}: b{i}"), "\n"));
    survive(&format!(
        "pattern p({}): event(e, {})",
        list(20_000, |i| format!("a{i}"), ", "),
        list(20_000, |i| format!("b{i}"), ", ")
    ));
    survive(&format!(
        "automaton a {{ initial s; {} }}",
        list(15_000, |i| format!("s{i}: event(e) -> t{i};"), "\n")
    ));
    survive(&format!(
        "let all = {}\n{}",
        list(1_000, |i| format!("event(e, n{i})"), " || "),
        list(5_000, |i| format!("property p{i}(c): event(x, c) && all"), "\n")
    ));
}

#[test]
fn too_long_is_refused() {
    let text = " ".repeat(MAX_LENGTH + 1);
    assert_eq!(codes(&text), ["too-long"]);
    assert!(format(&text).is_err());
}
