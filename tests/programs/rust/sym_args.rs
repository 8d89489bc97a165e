// Symbolic arguments: options are recognised, and one pair of them conflicts.
// run:
// args: --sym-args 0 2 2
// finding: panic 14
pub fn main() {
    let (mut verbose, mut quiet) = (false, false);
    for arg in std::env::args_os().skip(1) {
        match arg.as_encoded_bytes() {
            b"-v" => verbose = true,
            b"-q" => quiet = true,
            _ => std::process::exit(2),
        }
    }
    assert!(!(verbose && quiet));
}
