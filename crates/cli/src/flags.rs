//! Translates messages of the library into the words of the command line.

use everett::OPTIONS;

/// Replaces the fields of specs in a message of the library, which are in backticks, by flags.
pub fn with_flags(text: &str) -> String {
    /// Flags that are not options of runs.
    const OTHERS: [(&str, &str); 1] = [("live", "live")];
    let options = OPTIONS.iter().map(|option| (option.field, option.name));
    let mut text = text.to_owned();
    for (field, flag) in options.chain(OTHERS) {
        text = text.replace(&format!("`{field}`"), &format!("--{flag}"));
    }
    text
}
