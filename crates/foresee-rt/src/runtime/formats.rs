//! Formats of the `printf` and `scanf` families: their conversions, and the positions of the
//! arguments.
//!
//! Arguments come in the order of the conversions, or each conversion gives a number (`%2$s`,
//! `%1$*3$d`).

use core::ffi::c_int;

use super::calls::List;
use super::sys;

/// The length modifier of a conversion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Length {
    Char,
    Short,
    Int,
    Long,
    LongDouble,
}

/// A width or a precision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Count {
    None,
    Fixed(usize),
    /// It is an argument: the next one, or the one with this number.
    Argument(Option<usize>),
}

/// One conversion of a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Conversion {
    /// The number of its argument, if the format gives one.
    pub(super) number: Option<usize>,
    pub(super) width: Count,
    pub(super) precision: Count,
    pub(super) length: Length,
    pub(super) letter: u8,
}

/// How an argument is passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    Word,
    Double,
    LongDouble,
}

impl Conversion {
    /// How the argument of a `printf` conversion is passed; `None` if it has no argument. `Err` is
    /// a conversion that the program has registered with libc, which is unknown here.
    pub(super) fn class(&self) -> Result<Option<Class>, ()> {
        match self.letter {
            b'd' | b'i' | b'o' | b'u' | b'x' | b'X' | b'c' | b'C' | b'p' | b'b' | b'B' | b's'
            | b'S' | b'n' => Ok(Some(Class::Word)),
            b'e' | b'f' | b'g' | b'a' | b'E' | b'F' | b'G' | b'A' => {
                let is_long = self.length == Length::LongDouble;
                Ok(Some(if is_long { Class::LongDouble } else { Class::Double }))
            }
            b'm' | b'%' => Ok(None),
            _ => Err(()),
        }
    }
}

/// The modifiers of a conversion, and their length in the format.
pub(super) fn length(rest: &[u8]) -> (Length, usize) {
    match rest {
        [b'h', b'h', ..] => (Length::Char, 2),
        [b'h', ..] => (Length::Short, 1),
        [b'l', b'l', ..] => (Length::LongDouble, 2),
        [b'l' | b'j' | b'z' | b't' | b'Z', ..] => (Length::Long, 1),
        [b'q' | b'L', ..] => (Length::LongDouble, 1),
        _ => (Length::Int, 0),
    }
}

/// A number in a format, and its number of digits.
pub(super) fn number(rest: &[u8]) -> (usize, usize) {
    let digits = rest.iter().take_while(|b| b.is_ascii_digit()).count();
    let value = rest[..digits]
        .iter()
        .fold(0usize, |n, b| n.saturating_mul(10).saturating_add(usize::from(b - b'0')));
    (value, digits)
}

/// Removes the number of an argument, as in `2$`, from the format; libc has an upper limit for it.
pub(super) fn numbered(rest: &mut &[u8]) -> Option<usize> {
    let (value, digits) = number(rest);
    if digits == 0 || rest.get(digits) != Some(&b'$') || !(1..=4096).contains(&value) {
        return None;
    }
    *rest = &rest[digits + 1..];
    Some(value)
}

/// The conversions of a format of the `printf` family.
#[derive(Clone, Copy)]
pub(super) struct Conversions<'a> {
    rest: &'a [u8],
}

impl Conversions<'static> {
    /// # Safety
    /// `format` is a text that outlives the use made of it.
    pub(super) unsafe fn of(format: usize) -> Conversions<'static> {
        // SAFETY: by the caller's promise.
        Conversions { rest: unsafe { sys::bytes(format as *const _) } }
    }
}

impl Conversions<'_> {
    fn count(&mut self) -> Count {
        if let [b'*', behind @ ..] = self.rest {
            self.rest = behind;
            return Count::Argument(numbered(&mut self.rest));
        }
        let (n, digits) = number(self.rest);
        self.rest = &self.rest[digits..];
        if digits > 0 { Count::Fixed(n) } else { Count::None }
    }
}

impl Iterator for Conversions<'_> {
    type Item = Conversion;

    fn next(&mut self) -> Option<Conversion> {
        let at = self.rest.iter().position(|&b| b == b'%')?;
        self.rest = &self.rest[at + 1..];
        let number = numbered(&mut self.rest);
        let flags = self.rest.iter().take_while(|b| b"-+ #0'I".contains(b)).count();
        self.rest = &self.rest[flags..];
        let width = self.count();
        let mut precision = Count::None;
        if let [b'.', behind @ ..] = self.rest {
            self.rest = behind;
            precision = match self.count() {
                // A point alone is a precision of zero.
                Count::None => Count::Fixed(0),
                count => count,
            };
        }
        let (length, taken) = length(self.rest);
        self.rest = &self.rest[taken..];
        let (&letter, behind) = self.rest.split_first()?;
        self.rest = behind;
        Some(Conversion { number, width, precision, length, letter })
    }
}

/// The arguments of a format, taken in order or by number.
pub(super) struct Arguments<'a> {
    all: Conversions<'a>,
    first: List,
    next: List,
}

impl<'a> Arguments<'a> {
    pub(super) fn new(all: Conversions<'a>, list: List) -> Arguments<'a> {
        Arguments { all, first: list, next: list }
    }

    /// The argument with a number, or the next one, if it is an integer or a pointer; otherwise it is skipped.
    ///
    /// # Safety
    /// The list holds what the format says.
    pub(super) unsafe fn take(&mut self, number: Option<usize>, class: Class) -> usize {
        // SAFETY: by the caller's promise.
        unsafe {
            let Some(number) = number else { return pass(&mut self.next, class) };
            let mut list = self.first;
            for earlier in 1..number {
                pass(&mut list, self.class_of(earlier));
            }
            pass(&mut list, class)
        }
    }

    /// How the argument with this number is passed: its conversion says so. An argument without a conversion is assumed to
    /// be an integer, as libc does.
    fn class_of(&self, number: usize) -> Class {
        let find = |c: Conversion| {
            if c.number == Some(number) {
                return c.class().ok().flatten();
            }
            let this = Count::Argument(Some(number));
            (c.width == this || c.precision == this).then_some(Class::Word)
        };
        self.all.clone().find_map(find).unwrap_or(Class::Word)
    }

    /// The value of a width or a precision; `None` also if it is negative, which means the same.
    ///
    /// # Safety
    /// As [`Arguments::take`].
    pub(super) unsafe fn count(&mut self, count: Count) -> Option<usize> {
        match count {
            Count::None => None,
            Count::Fixed(n) => Some(n),
            Count::Argument(number) => {
                // SAFETY: by the caller's promise.
                usize::try_from(unsafe { self.take(number, Class::Word) } as c_int).ok()
            }
        }
    }
}

unsafe fn pass(list: &mut List, class: Class) -> usize {
    match class {
        // SAFETY: by the caller's promise.
        Class::Word => return unsafe { list.word() },
        Class::Double => list.skip_double(),
        Class::LongDouble => list.skip_long_double(),
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn conversions(text: &[u8]) -> Vec<Conversion> {
        Conversions { rest: text }.collect()
    }

    #[test]
    fn conversions_in_order_and_by_number() {
        let plain = conversions(b"%d %-8.3s%% %*.*Lf %hhn");
        assert_eq!(plain.len(), 5);
        assert_eq!((plain[1].letter, plain[1].precision), (b's', Count::Fixed(3)));
        assert_eq!(plain[2].letter, b'%');
        assert_eq!(
            (plain[3].width, plain[3].class()),
            (Count::Argument(None), Ok(Some(Class::LongDouble)))
        );
        assert_eq!(plain[4].length, Length::Char);
        let numbered = conversions(b"%2$s %1$*3$.*4$ld %%");
        assert_eq!(numbered[0].number, Some(2));
        assert_eq!(
            numbered[1],
            Conversion {
                number: Some(1),
                width: Count::Argument(Some(3)),
                precision: Count::Argument(Some(4)),
                length: Length::Long,
                letter: b'd'
            }
        );
        assert_eq!(numbered[2].number, None);
        assert_eq!(conversions(b"%5d")[0].width, Count::Fixed(5));
        assert_eq!(conversions(b"%.s")[0].precision, Count::Fixed(0));
    }
}
