//! Variants of `print!` and its relatives that do not panic if nobody reads: a command whose output
//! goes to `head`, or to a full disk, still finishes its work and writes its results. They shadow
//! those of the standard library in the whole crate.

/// Prints to standard output and ignores errors.
macro_rules! print {
    ($($arg:tt)*) => {{
        use std::io::Write as _;
        let _ = write!(std::io::stdout(), $($arg)*);
    }};
}

/// Prints a line to standard output and ignores errors.
macro_rules! println {
    ($($arg:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stdout(), $($arg)*);
    }};
}

/// Prints to standard error and ignores errors.
macro_rules! eprint {
    ($($arg:tt)*) => {{
        use std::io::Write as _;
        let _ = write!(std::io::stderr(), $($arg)*);
    }};
}

/// Prints a line to standard error and ignores errors.
macro_rules! eprintln {
    ($($arg:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), $($arg)*);
    }};
}
