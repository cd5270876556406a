//! Generated small correct programs with threads, in which nothing may be found.
//!
//! A number determines a program: what its threads share, how they guard it and how they are run,
//! or one of the patterns that people write, each with its own sizes. All are correct by
//! construction and check their own result. The programs of a [`Group`] are compiled together,
//! because headers cost more than programs, and run one by one: `group NUMBER`.

mod c;
mod cpp;
mod openmp;

use fastrand::Rng;

/// The language of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// C with pthread.
    C,
    /// C++17 with its library.
    Cpp,
    /// C with OpenMP.
    OpenMp,
}

/// Several programs in one source file.
#[derive(Clone, Debug)]
pub struct Group {
    /// Their language.
    pub language: Language,
    /// Their numbers, each with a description.
    pub programs: Vec<(u64, String)>,
    /// The source.
    pub source: String,
}

/// The number of programs that are compiled together.
const TOGETHER: usize = 10;

/// The first `count` programs, in groups: of ten, six are in C++, three in C and one with OpenMP.
pub fn groups(count: u64) -> Vec<Group> {
    let language = |number: u64| match number % 10 {
        0 | 3 | 6 => Language::C,
        9 => Language::OpenMp,
        _ => Language::Cpp,
    };
    let mut out = Vec::new();
    for of in [Language::Cpp, Language::C, Language::OpenMp] {
        let numbers: Vec<u64> = (0..count).filter(|&n| language(n) == of).collect();
        out.extend(numbers.chunks(TOGETHER).map(|numbers| group(of, numbers)));
    }
    out
}

/// Writes a program; returns its description and its source.
type Writer = fn(&mut Rng) -> (String, String);

fn group(language: Language, numbers: &[u64]) -> Group {
    let (head, write): (&str, Writer) = match language {
        Language::C => (c::HEAD, c::program),
        Language::Cpp => (cpp::HEAD, cpp::program),
        Language::OpenMp => (openmp::HEAD, openmp::program),
    };
    let mut source = format!(
        "{head}\n#define CHECK(CONDITION) do {{ if (!(CONDITION)) {{ \
         fprintf(stderr, \"line %d: %s\\n\", __LINE__, #CONDITION); exit(9); }} }} while (0)\n\n"
    );
    let mut cases = String::new();
    let mut programs = Vec::new();
    for &number in numbers {
        let mut rng = Rng::with_seed(number);
        let (about, text) = write(&mut rng);
        // Everything that a program defines includes its number, so that programs do not clash.
        source.push_str(&format!(
            "// {number}: {about}\n{}\n",
            text.replace('@', &number.to_string())
        ));
        cases.push_str(&format!("    case {number}: return run_{number}();\n"));
        programs.push((number, about));
    }
    source.push_str(&format!(
        "int main(int argc, char **argv) {{\n    switch (argc > 1 ? atoi(argv[1]) : -1) {{\n{cases}    }}\n    return 8;\n}}\n"
    ));
    Group { language, programs, source }
}

/// A text with its `$NAME`s replaced.
fn fill(text: &str, with: &[(&str, &str)]) -> String {
    let mut out = text.to_owned();
    // Longer names first, because one may be a prefix of another.
    let mut with = with.to_vec();
    with.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
    for (name, value) in with {
        out = out.replace(&format!("${name}"), value);
    }
    out
}

/// A random element.
fn pick<'a, T>(rng: &mut Rng, from: &'a [T]) -> &'a T {
    &from[rng.usize(..from.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_decide_programs_and_each_is_there_once() {
        let groups = groups(200);
        let mut numbers: Vec<u64> = groups.iter().flat_map(|g| &g.programs).map(|p| p.0).collect();
        numbers.sort_unstable();
        assert_eq!(numbers, (0..200).collect::<Vec<_>>());
        let again = super::groups(200);
        assert!(groups.iter().zip(&again).all(|(a, b)| a.source == b.source));
        for group in &groups {
            assert!(!group.source.contains(['@', '$']), "{}", group.source);
        }
    }

    #[test]
    fn few_programs_are_alike() {
        let groups = groups(200);
        let mut kinds: Vec<&str> =
            groups.iter().flat_map(|g| &g.programs).map(|p| p.1.as_str()).collect();
        kinds.sort_unstable();
        kinds.dedup();
        assert!(kinds.len() > 100, "{kinds:?}");
    }
}
