//! Text that is either one clause, or a heading with indented parts.

/// Where lines are broken.
const WIDTH: usize = 96;

/// An explanation in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Words {
    /// A clause without connectives, which may be part of any other.
    Leaf(String),
    /// Clauses joined by one connective, which may follow a comma or a colon.
    Joint(String),
    /// A clause that must stand alone.
    Alone(String),
    /// A heading and its parts.
    List(String, Vec<Words>),
    /// A heading and its parts, whose order matters.
    Sequence(String, Vec<Words>),
}

impl Words {
    /// The clause, if it may be used where clauses without connectives are required.
    pub(super) fn leaf(&self) -> Option<&str> {
        match self {
            Words::Leaf(text) => Some(text),
            _ => None,
        }
    }

    /// The clause, if it may follow a comma or a colon.
    pub(super) fn joint(&self) -> Option<&str> {
        match self {
            Words::Leaf(text) | Words::Joint(text) => Some(text),
            _ => None,
        }
    }

    /// A heading, which ends in a colon, and its content. A list continues on the same line.
    pub(super) fn under(head: String, words: Words) -> Words {
        match words {
            Words::List(inner, parts) => {
                Words::List(format!("{} {inner}", head.trim_end_matches(':')), parts)
            }
            other => Words::List(head, vec![other]),
        }
    }

    /// The text, if it is one clause of any kind.
    pub(super) fn clause(&self) -> Option<&str> {
        match self {
            Words::Leaf(text) | Words::Joint(text) | Words::Alone(text) => Some(text),
            Words::List(..) | Words::Sequence(..) => None,
        }
    }

    /// Writes the text with every line indented by `indent`; the first begins with `mark`.
    pub(super) fn write(&self, indent: usize, mark: &str, out: &mut String) {
        match self {
            Words::Leaf(text) | Words::Joint(text) | Words::Alone(text) => {
                wrap(text, indent, mark, out);
            }
            Words::List(head, parts) => {
                wrap(head, indent, mark, out);
                let mark_of_parts = if parts.len() > 1 { "- " } else { "" };
                parts.iter().for_each(|p| p.write(indent + mark.len() + 2, mark_of_parts, out));
            }
            Words::Sequence(head, parts) => {
                wrap(head, indent, mark, out);
                for (i, part) in parts.iter().enumerate() {
                    part.write(indent + mark.len() + 2, &format!("{}. ", i + 1), out);
                }
            }
        }
    }
}

/// Writes a text in lines of bounded width, broken at spaces. Continuation lines are aligned with
/// the text of the first line, not with its mark.
pub(super) fn wrap(text: &str, indent: usize, mark: &str, out: &mut String) {
    let hang = indent + mark.chars().count();
    out.extend(std::iter::repeat_n(' ', indent));
    out.push_str(mark);
    let mut column = hang;
    for (i, word) in text.split(' ').enumerate() {
        let width = word.chars().count();
        if i > 0 {
            // However deep the indentation, a line has room for a few words.
            if column + 1 + width > WIDTH.max(hang + 40) {
                out.push('\n');
                out.extend(std::iter::repeat_n(' ', hang));
                column = hang;
            } else {
                out.push(' ');
                column += 1;
            }
        }
        out.push_str(word);
        column += width;
    }
    out.push('\n');
}
