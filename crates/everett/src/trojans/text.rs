//! The summary of an analysis as text for people.

use super::summary::{TrojanEntry, TrojanFinding, TrojansSummary};
use everett_report::counted;
use std::time::Duration;

impl TrojansSummary {
    /// Returns the summary as text for people; with hints what the server should check, if
    /// requested.
    pub fn text(&self, with_hints: bool) -> String {
        let mut lines = Vec::new();
        for client in &self.clients {
            let end = match &client.cut_off {
                None => "explored to the end".to_owned(),
                Some(why) => format!("cut off ({why})"),
            };
            let (name, predicates) = (&client.name, client.predicates);
            let paths = counted(client.paths, "path");
            let raised = client.raised.map_or(String::new(), |factor| {
                format!(" with {factor} times its limits, to refute classes")
            });
            lines.push(format!(
                "client {name}: {predicates} kinds of messages on {paths}, {end}{raised}"
            ));
            if !client.depends_on.is_empty() {
                let values = client.depends_on.join(", ");
                lines.push(format!(
                    "client {name}: its messages depend on its {values}, which were concrete: mask the field"
                ));
            }
        }
        for length in &self.lengths {
            if let Some(why) = &length.cut_off {
                let (bytes, sender) = (counted(length.length, "byte"), &length.sender);
                let at = at(length.state_ns);
                lines.push(format!(
                    "server, {bytes} from {sender}{at}: cut off ({why})"
                ));
            }
        }
        for entry in &self.trojans {
            lines.extend(entry_lines(entry, with_hints));
        }
        for group in &self.groups {
            lines.push(format!(
                "group {}: {}",
                group.name,
                counted(group.classes, "class")
            ));
        }
        lines.extend(self.native_lines());
        for finding in &self.findings {
            lines.push(finding_line(finding));
        }
        for why in &self.afterwards_cut_off {
            lines.push(format!("server, after it has accepted: cut off ({why})"));
        }
        for undecided in &self.undecided {
            lines.push(format!("undecided: {undecided}"));
        }
        let count = match self.trojans.len() {
            0 => "no Trojan messages".to_owned(),
            count => format!("{} of Trojan messages", counted(count, "class")),
        };
        let complete = match self.complete {
            true => "complete: there are no others",
            false => "not complete",
        };
        lines.push(format!("{count}; {complete}"));
        lines.join("\n")
    }
}

impl TrojansSummary {
    /// Returns lines about the random runs of the native clients.
    fn native_lines(&self) -> Vec<String> {
        let native = &self.native_runs;
        let mut lines = Vec::new();
        if let Some(problem) = &native.problem {
            lines.push(format!("native clients were not all run: {problem}"));
        }
        for contradiction in &native.contradictions {
            let numbers: Vec<String> = contradiction.trojans.iter().map(usize::to_string).collect();
            let of = match numbers.is_empty() {
                true => String::new(),
                false => format!(", of class {}", numbers.join(", ")),
            };
            lines.push(format!(
                "contradiction: the native {} sends {}{of}",
                contradiction.client,
                short(&contradiction.message)
            ));
        }
        if native.runs > 0 && native.contradictions.is_empty() {
            let (runs, different) = (counted(native.runs, "random run"), native.different);
            lines.push(format!(
                "{runs} of the native clients: none of {} is one of them",
                counted(different, "message")
            ));
        }
        lines
    }
}

fn finding_line(finding: &TrojanFinding) -> String {
    let when = match finding.afterwards {
        true => "after it is accepted, ",
        false => "",
    };
    let only = match finding.only {
        Some(true) => "no message of a client leads to it",
        Some(false) => "messages of clients lead to it, too",
        None => "it is not known whether messages of clients lead to it",
    };
    let numbers: Vec<String> = finding.trojans.iter().map(usize::to_string).collect();
    format!(
        "finding {}: {when}{} leads to {} at {}:{} (class {}); {only}; {}",
        finding.number,
        short(&finding.example),
        finding.what,
        finding.file,
        finding.line,
        numbers.join(", "),
        finding.confirmed
    )
}

impl TrojanEntry {
    /// Returns the place in the server at which the message is accepted.
    fn place(&self) -> String {
        match self.line {
            0 => format!("{}, {}", self.file, self.function),
            line => format!("{}:{line}", self.file),
        }
    }

    /// Returns a line about a class that has just been found.
    pub(crate) fn found_text(&self) -> String {
        format!(
            "found {}: {} from {}{} accepted at {} ({})",
            self.number,
            short(&self.example),
            self.senders.join(" or "),
            at(self.state_ns),
            self.place(),
            self.why
        )
    }
}

fn entry_lines(entry: &TrojanEntry, with_hint: bool) -> Vec<String> {
    let mut lines = Vec::new();
    let place = entry.place();
    let certain = match entry.certain {
        true => "no client sends it",
        false => "not sent by any path explored",
    };
    lines.push(format!(
        "{}: {} from {}{} accepted at {place} ({}); {certain} ({}); {}",
        entry.number,
        short(&entry.example),
        entry.senders.join(" or "),
        at(entry.state_ns),
        entry.why,
        entry.how,
        entry.confirmed
    ));
    for field in &entry.fields {
        let value = field
            .value
            .map_or(String::new(), |value| format!(" = {value}"));
        let mask = if field.masked { " (masked)" } else { "" };
        lines.push(format!(
            "    {}: {}{value}{mask}",
            field.name,
            short(&field.bytes)
        ));
    }
    if let Some(nearest) = &entry.nearest {
        let differs = nearest.differs.join(", ");
        lines.push(format!(
            "    nearest message of {}: {}, which differs in {differs}",
            nearest.client,
            short(&nearest.message)
        ));
    }
    if with_hint {
        lines.push(format!("    hint: {}", entry.fix_hint));
    }
    lines
}

/// Returns the time at which a message is sent, as the end of a phrase.
fn at(state_ns: Option<u64>) -> String {
    state_ns.map_or(String::new(), |at_ns| {
        format!(" at {:?}", Duration::from_nanos(at_ns))
    })
}

/// Shortens hexadecimal digits for a line; the summary has all of them.
fn short(digits: &str) -> String {
    const MOST: usize = 64;
    match digits.get(..MOST) {
        Some(first) if digits.len() > MOST => format!("{first}... ({} bytes)", digits.len() / 2),
        _ => digits.to_owned(),
    }
}
