//! Scenarios: the faults at one point of a space, as text (in the format of AFEX), as JSON and as
//! environment variables.

use serde_json::{Map, json};
use std::fmt;

use super::values::Value;

/// A fault: its ordered attributes.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct Fault(pub Vec<(String, Value)>);

impl Fault {
    /// Returns the value of an attribute.
    pub fn get(&self, name: &str) -> Option<&Value> {
        let found = self.0.iter().find(|(own, _)| own == name);
        found.map(|(_, value)| value)
    }

    /// Returns the value of the first attribute with one of these names, ignoring case.
    pub fn any(&self, names: &[&str]) -> Option<&Value> {
        let is = |own: &str| names.iter().any(|name| name.eq_ignore_ascii_case(own));
        let found = self.0.iter().find(|(own, _)| is(own));
        found.map(|(_, value)| value)
    }
}

/// The faults of one run: one, or several at once.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct Scenario {
    /// Words that name a kind of fault.
    pub subtypes: Vec<String>,
    /// The faults.
    pub faults: Vec<Fault>,
}

/// Separates the faults of a scenario.
const AND: &str = "and";
/// Precedes a subtype in the text of a scenario.
const SUBTYPE: &str = "subtype";

impl Scenario {
    /// Parses the text of a scenario: names and values in turn.
    pub fn parse(text: &str) -> Result<Scenario, String> {
        let mut scenario = Scenario {
            faults: vec![Fault::default()],
            ..Scenario::default()
        };
        let mut words = split(text)?.into_iter();
        while let Some((name, is_quoted)) = words.next() {
            if name == AND && !is_quoted {
                scenario.faults.push(Fault::default());
                continue;
            }
            let Some((value, is_quoted)) = words.next() else {
                return Err(format!("{name:?} has no value"));
            };
            if name == SUBTYPE {
                scenario.subtypes.push(value);
                continue;
            }
            let value = match is_quoted {
                true => Value::Word(value),
                false => Value::of_word(&value),
            };
            if let Some(fault) = scenario.faults.last_mut() {
                if fault.get(&name).is_some() {
                    return Err(format!("{name:?} has two values"));
                }
                fault.0.push((name, value));
            }
        }
        Ok(scenario)
    }

    /// Returns the words of its text, for the arguments of a command.
    pub fn words(&self) -> Vec<String> {
        let mut words = Vec::new();
        for subtype in &self.subtypes {
            words.extend([SUBTYPE.to_owned(), subtype.clone()]);
        }
        for (number, fault) in self.faults.iter().enumerate() {
            if number > 0 {
                words.push(AND.to_owned());
            }
            let pairs = fault.0.iter();
            words.extend(pairs.flat_map(|(name, value)| [name.clone(), value.to_string()]));
        }
        words
    }

    /// Returns it as JSON: `subtype` if there are some, and an object for each fault.
    pub fn json(&self) -> serde_json::Value {
        let fault = |fault: &Fault| {
            let pairs = fault.0.iter();
            let pairs = pairs.map(|(name, value)| (name.clone(), json!(value)));
            serde_json::Value::Object(pairs.collect::<Map<_, _>>())
        };
        let faults: Vec<serde_json::Value> = self.faults.iter().map(fault).collect();
        json!({ "scenario": self.to_string(), "subtype": self.subtypes, "faults": faults })
    }

    /// Returns the attributes as environment variables: `EVERETT_FAULT_NAME`, and
    /// `EVERETT_FAULT2_NAME` for those of a second fault.
    pub fn variables(&self) -> Vec<(String, String)> {
        let mut variables = Vec::new();
        for (number, fault) in self.faults.iter().enumerate() {
            let prefix = match number {
                0 => "EVERETT_FAULT_".to_owned(),
                _ => format!("EVERETT_FAULT{}_", number + 1),
            };
            for (name, value) in &fault.0 {
                let name = name
                    .to_ascii_uppercase()
                    .replace(|c: char| !c.is_ascii_alphanumeric(), "_");
                variables.push((format!("{prefix}{name}"), value.to_string()));
            }
        }
        variables
    }

    /// Returns the value of an attribute of any of its faults.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.faults.iter().find_map(|fault| fault.get(name))
    }
}

impl fmt::Display for Scenario {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut before = "";
        for subtype in &self.subtypes {
            write!(to, "{before}{SUBTYPE} {}", quoted(subtype))?;
            before = " ";
        }
        for (number, fault) in self.faults.iter().enumerate() {
            if number > 0 {
                write!(to, "{before}{AND}")?;
                before = " ";
            }
            for (name, value) in &fault.0 {
                match value {
                    Value::Word(word) => write!(to, "{before}{name} {}", quoted(word))?,
                    number => write!(to, "{before}{name} {number}")?,
                }
                before = " ";
            }
        }
        Ok(())
    }
}

/// Returns a word, quoted if it could be mistaken for something else.
pub(super) fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./+:".contains(c);
    let is_word = !word.is_empty() && word != AND && word.chars().all(is_plain);
    match is_word && matches!(Value::of_word(word), Value::Word(_)) {
        true => word.to_owned(),
        false => format!("\"{}\"", word.replace('\\', "\\\\").replace('"', "\\\"")),
    }
}

/// Splits a text into words, each with whether it is quoted.
fn split(text: &str) -> Result<Vec<(String, bool)>, String> {
    let mut words = Vec::new();
    let mut rest = text.chars().peekable();
    while let Some(first) = rest.next() {
        if first.is_whitespace() {
            continue;
        }
        if first == '"' {
            let mut word = String::new();
            loop {
                match rest.next() {
                    Some('\\') => word.extend(rest.next()),
                    Some('"') => break,
                    Some(other) => word.push(other),
                    None => return Err("a quoted word has no end".to_owned()),
                }
            }
            words.push((word, true));
            continue;
        }
        let mut word = String::from(first);
        while let Some(next) = rest.next_if(|next| !next.is_whitespace()) {
            word.push(next);
        }
        words.push((word, false));
    }
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scenario_of_figure_3_5_parses_verbatim() {
        let text = "function malloc errno ENOMEM retval 0 callNumber 23";
        let scenario = Scenario::parse(text).unwrap();
        assert_eq!(scenario.to_string(), text);
        assert_eq!(scenario.words().join(" "), text);
        assert_eq!(scenario.get("callNumber"), Some(&Value::Number(23)));
        assert_eq!(
            scenario.faults[0].any(&["CALLNUMBER"]),
            Some(&Value::Number(23))
        );
        let variables = scenario.variables();
        assert!(variables.contains(&("EVERETT_FAULT_CALLNUMBER".to_owned(), "23".to_owned())));
        assert!(Scenario::parse("function").is_err());
        assert!(Scenario::parse("a 1 a 2").is_err());
        assert!(Scenario::parse("a \"b").is_err());
    }

    #[test]
    fn texts_of_scenarios_are_read_back() {
        for text in [
            "subtype disk calls <5,10> and function read number -1",
            "name \"a b\\\"c\" and name \"and\" and name \"12\"",
            "",
        ] {
            let scenario = Scenario::parse(text).unwrap();
            assert_eq!(scenario.to_string(), text);
            assert_eq!(Scenario::parse(&scenario.to_string()).unwrap(), scenario);
        }
        let json = Scenario::parse("n <5,10> f a").unwrap().json();
        assert_eq!(
            json["faults"],
            serde_json::json!([{ "n": [5, 10], "f": "a" }])
        );
    }
}
