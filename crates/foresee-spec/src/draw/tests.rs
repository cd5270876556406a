use super::*;
use crate::explain::tests::{CONTRACT, holds, random_property};
use crate::letter::Letter;
use crate::monitor::StateId;
use crate::testing::{after, property, spec};

fn drawing(text: &str) -> Drawing {
    Drawing::new(&mut Compiled::new(&property(text)).unwrap()).unwrap()
}

#[test]
fn every_step_takes_exactly_one_edge_and_leads_where_the_monitor_goes() {
    let mut rng = fastrand::Rng::with_seed(5);
    let mut edges = 0;
    for _ in 0..600 {
        let parsed = crate::parse(&random_property(&mut rng));
        if parsed.has_errors() {
            continue;
        }
        let mut compiled = Compiled::all(&parsed.spec).unwrap().remove(0);
        let drawing = Drawing::new(&mut compiled).unwrap();
        let letters = compiled.letters(4_096).unwrap();
        edges += drawing.edges.len();
        let next = |state: usize, letter: Letter| {
            if drawing.nodes[state].verdict == Verdict::Bad {
                return state;
            }
            let own = drawing.edges.iter().filter(|e| e.from == state);
            let taken: Vec<_> = own.filter(|e| e.guard.holds(letter)).collect();
            assert_eq!(taken.len(), 1, "{letter:?} in {state} of {:?}", parsed.spec);
            taken[0].to
        };
        for state in 0..drawing.nodes.len() {
            letters.iter().for_each(|l| assert!(next(state, *l) < drawing.nodes.len()));
        }
        for _ in 0..40 {
            let word: Vec<u64> =
                (0..rng.usize(1..8)).map(|_| rng.choice(&letters).unwrap().0).collect();
            let state = word.iter().fold(0, |s, l| next(s, Letter(*l)));
            let bad = after(&mut compiled.monitor, &word) == StateId::BAD;
            assert_eq!(drawing.nodes[state].verdict == Verdict::Bad, bad);
        }
    }
    assert!(edges > 3_000, "{edges}");
}

#[test]
fn guards_read_as_they_are_meant() {
    let mut rng = fastrand::Rng::with_seed(6);
    for _ in 0..60 {
        let parsed = crate::parse(&random_property(&mut rng));
        if parsed.has_errors() {
            continue;
        }
        let mut compiled = Compiled::all(&parsed.spec).unwrap().remove(0);
        let letters = compiled.letters(4_096).unwrap();
        for edge in Drawing::new(&mut compiled).unwrap().edges {
            let text = edge.guard.text(&compiled.alphabet);
            for letter in &letters {
                let meant = edge.guard.holds(*letter);
                assert_eq!(holds(&text, &compiled.alphabet, *letter), meant, "{text}");
            }
        }
    }
}

#[test]
fn the_documentations_automaton_in_all_languages() {
    let spec = spec(CONTRACT);
    let precedence = spec.properties.iter().find(|p| p.name.name == "precedence").unwrap();
    let drawing = Drawing::new(&mut Compiled::new(precedence).unwrap()).unwrap();
    assert_eq!(
        drawing.to_dot(),
        r##"digraph "precedence" {
  rankdir=LR;
  node [shape=box, style=rounded];
  start [shape=point];
  start -> s0;
  s0 [label="idle"];
  s1 [label="asked", color="#1a7f37", fontcolor="#1a7f37"];
  s2 [label="bad", color="#cf222e", fontcolor="#cf222e", peripheries=2];
  s0 -> s1 [label="event(request)"];
  s0 -> s2 [label="event(grant)"];
  s1 -> s1 [label="true"];
}
"##
    );
    assert_eq!(
        drawing.to_mermaid(),
        r##"flowchart LR
  start(( )) --> s0
  s0(["idle"])
  s1(["asked"]):::good
  s2(["bad"]):::bad
  s0 -->|"event#40;request#41;"| s1
  s0 -->|"event#40;grant#41;"| s2
  s1 -->|"true"| s1
  classDef bad stroke:#cf222e,color:#cf222e,stroke-width:3px
  classDef good stroke:#1a7f37,color:#1a7f37
  classDef legend fill:none,stroke:none,text-align:left
"##
    );
    let svg = drawing.to_svg();
    assert_eq!(svg.matches("class=\"edge").count(), 4, "{svg}");
    assert_eq!(svg.matches("class=\"state bad\"").count(), 1, "{svg}");
}

#[test]
fn names_are_text_and_nothing_else() {
    let drawing = drawing(r#"property `</text><script>"\n`: `a"]:::x\\` == "<b>&" && `c|d` > 1"#);
    let svg = drawing.to_svg();
    assert!(!svg.contains("<script") && !svg.contains("<b>"), "{svg}");
    assert!(svg.contains("&lt;/text&gt;&lt;script&gt;&quot;"), "{svg}");
    // DOT has no quotes outside strings, and every string is terminated.
    for line in drawing.to_dot().lines() {
        let bare = line.replace("\\\\", "").replace("\\\"", "");
        assert_eq!(bare.matches('"').count() % 2, 0, "{line}");
    }
    for line in drawing.to_mermaid().lines().filter(|l| l.contains("-->|")) {
        let (_, rest) = line.split_once("-->|\"").unwrap();
        let (label, _) = rest.split_once("\"| s").unwrap();
        assert!(!label.replace("<br/>", "").contains(['"', '|', '<', '>', ']', '\\']), "{line}");
    }
}

#[test]
fn long_conditions_go_to_the_legend() {
    let drawing = drawing(
        "property p: !(alpha_long_name == 1 && beta_long_name == 2 && gamma_long_name == 3 && \
         delta_long_name == 4)",
    );
    assert_eq!(drawing.legend.len(), 1);
    assert!(drawing.edges.iter().any(|e| e.label == ["(1)"]));
    assert!(drawing.edges.iter().any(|e| e.otherwise && e.label == ["otherwise"]));
    for picture in [drawing.to_svg(), drawing.to_dot(), drawing.to_mermaid()] {
        assert!(picture.contains("delta_long_name"), "{picture}");
    }
}

#[test]
fn what_is_too_large_is_not_drawn() {
    let events: Vec<String> = (0..MAX_STATES).map(|i| format!("event(e{i})")).collect();
    let mut compiled =
        Compiled::new(&property(&format!("pattern p: {}", events.join(" .. ")))).unwrap();
    let error = Drawing::new(&mut compiled).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the property's monitor needs more than 60 states, which are too many to draw"
    );
    let fits = format!("pattern p: {}", events[1..].join(" .. "));
    assert_eq!(drawing(&fits).nodes.len(), MAX_STATES);
}
