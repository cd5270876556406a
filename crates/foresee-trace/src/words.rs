//! Enumerations that have a word for each case, in reports and on the command line.

/// Defines an enumeration with a word for each case, and the list of all of them.
macro_rules! words {
    (
        $(#[$about:meta])*
        pub enum $name:ident { $($(#[$doc:meta])* $case:ident = $word:literal,)* }
    ) => {
        $(#[$about])*
        pub enum $name { $($(#[$doc])* $case,)* }

        impl $name {
            /// Every case.
            pub const ALL: &[$name] = &[$($name::$case,)*];

            /// The word for it in reports.
            pub fn word(self) -> &'static str {
                match self { $($name::$case => $word,)* }
            }
        }
    };
}

pub(crate) use words;
