//! Names as people write them.

/// The name in the source behind a linker's name: of C++ and Rust without parameters and hashes,
/// of anything else as it is.
pub(super) fn demangle(name: &str) -> String {
    // Rust's older names are those of C++ but for a hash at the end.
    let is_rust = name.starts_with("_R")
        || name.get(..name.len().saturating_sub(17)).is_some_and(|n| n.ends_with("17h"));
    if is_rust && let Ok(rust) = rustc_demangle::try_demangle(name) {
        return format!("{rust:#}");
    }
    if name.starts_with("_Z") {
        let options = cpp_demangle::DemangleOptions::new().no_params().no_return_type();
        if let Ok(symbol) = cpp_demangle::Symbol::new(name)
            && let Ok(text) = symbol.demangle_with_options(&options)
        {
            // The debugging information calls it by no name either.
            return text.replace("(anonymous namespace)::", "");
        }
    }
    name.to_owned()
}

#[cfg(test)]
mod tests {
    use super::demangle;

    #[test]
    fn linker_names_become_source_names() {
        assert_eq!(demangle("landing"), "landing");
        assert_eq!(demangle("_ZN4bank7Account5countE"), "bank::Account::count");
        assert_eq!(demangle("_ZN4bank8transferERNS_7AccountEi"), "bank::transfer");
        assert_eq!(
            demangle("_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE"),
            "core::fmt::Write::write_fmt"
        );
        assert_eq!(demangle("_ZN4bank12_GLOBAL__N_16hiddenE"), "bank::hidden");
        assert_eq!(demangle("_Znonsense"), "_Znonsense");
    }
}
