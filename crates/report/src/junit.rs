//! Test results in JUnit's format, which every continuous integration system reads.

use std::fmt::Write;

/// How a test ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// The test ended as expected.
    Passed,
    /// The test did not end as expected.
    Failed(String),
    /// The result could not be determined.
    Error(String),
    /// The test was not run, or was inconclusive.
    Skipped(String),
}

/// A test.
#[derive(Clone, PartialEq, Debug)]
pub struct TestCase {
    /// The name of the test.
    pub name: String,
    /// The class to which the test belongs.
    pub class: String,
    /// The duration of the test.
    pub seconds: f64,
    /// How the test ended.
    pub outcome: Outcome,
}

/// Returns the text of a JUnit file.
pub fn junit(suite: &str, cases: &[TestCase]) -> String {
    let count = |is: fn(&Outcome) -> bool| cases.iter().filter(|case| is(&case.outcome)).count();
    let seconds: f64 = cases.iter().map(|case| case.seconds).sum();
    let totals = format!(
        "tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\" time=\"{seconds:.3}\"",
        cases.len(),
        count(|outcome| matches!(outcome, Outcome::Failed(_))),
        count(|outcome| matches!(outcome, Outcome::Error(_))),
        count(|outcome| matches!(outcome, Outcome::Skipped(_))),
    );
    let name = escape(suite);
    let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let _ = writeln!(text, "<testsuites name=\"{name}\" {totals}>");
    let _ = writeln!(text, "  <testsuite name=\"{name}\" {totals}>");
    for case in cases {
        let _ = write!(
            text,
            "    <testcase name=\"{}\" classname=\"{}\" time=\"{:.3}\"",
            escape(&case.name),
            escape(&case.class),
            case.seconds
        );
        let (element, why) = match &case.outcome {
            Outcome::Passed => {
                text.push_str("/>\n");
                continue;
            }
            Outcome::Failed(why) => ("failure", why),
            Outcome::Error(why) => ("error", why),
            Outcome::Skipped(why) => ("skipped", why),
        };
        let why = escape(why);
        let _ = writeln!(
            text,
            ">\n      <{element} message=\"{why}\"/>\n    </testcase>"
        );
    }
    text.push_str("  </testsuite>\n</testsuites>\n");
    text
}

/// Escapes text for an attribute. Characters that XML does not allow are replaced.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' | '\t' | '\r' => {
                let _ = write!(escaped, "&#{};", u32::from(character));
            }
            '\0'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_are_counted_and_texts_escaped() {
        let case = |name: &str, outcome| TestCase {
            name: name.to_owned(),
            class: "run".to_owned(),
            seconds: 0.25,
            outcome,
        };
        let cases = [
            case("a", Outcome::Passed),
            case("b", Outcome::Failed("1 < 2 & \"x\"\u{1}\n".to_owned())),
            case("c", Outcome::Error("parts".to_owned())),
            case("d", Outcome::Skipped("why".to_owned())),
        ];
        let totals = "tests=\"4\" failures=\"1\" errors=\"1\" skipped=\"1\" time=\"1.000\"";
        let expected = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
             <testsuites name=\"s\" {totals}>\n  <testsuite name=\"s\" {totals}>\n\
             \x20   <testcase name=\"a\" classname=\"run\" time=\"0.250\"/>\n\
             \x20   <testcase name=\"b\" classname=\"run\" time=\"0.250\">\n\
             \x20     <failure message=\"1 &lt; 2 &amp; &quot;x&quot;\u{fffd}&#10;\"/>\n    </testcase>\n\
             \x20   <testcase name=\"c\" classname=\"run\" time=\"0.250\">\n\
             \x20     <error message=\"parts\"/>\n    </testcase>\n\
             \x20   <testcase name=\"d\" classname=\"run\" time=\"0.250\">\n\
             \x20     <skipped message=\"why\"/>\n    </testcase>\n  </testsuite>\n</testsuites>\n"
        );
        assert_eq!(junit("s", &cases), expected);
    }
}
