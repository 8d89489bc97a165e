//! `everett trojans`.

use anyhow::{Result, bail};
use everett::{Contains, RunSpec, TrojanEntry, TrojansSpec, TrojansSummary, parse_setting};
use std::path::PathBuf;

use crate::commands::{Subcommand, exit_code};
use crate::display::{Display, Mode, print};
use crate::session::{session, stoppable_session};
use crate::{EXIT_CLEAN, EXIT_ERROR, EXIT_FINDINGS, EXIT_INTERRUPTED};

/// The exit code of `--contains` for what the analysis does not tell.
const EXIT_UNDECIDED: u8 = 4;

/// Arguments of `everett trojans`.
#[derive(clap::Args)]
pub struct TrojansArgs {
    /// A scenario with [trojans]; with --contains, the folder of results.
    path: PathBuf,
    /// Folder for the results; default: the next number below everett-out/.
    #[arg(long, value_name = "DIR", conflicts_with = "contains")]
    out: Option<PathBuf>,
    /// Say whether this message (hexadecimal digits) is a Trojan message: yes, no or undecided.
    #[arg(long, value_name = "HEX", value_parser = parse_hex)]
    contains: Option<Message>,
    /// Override a key of the scenario, e.g. trojans.length=4.
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = parse_setting)]
    settings: Vec<(String, String)>,
    /// Also say what the server would have to check, for each class.
    #[arg(long)]
    fix_hint: bool,
    /// Do not send the messages to the native server.
    #[arg(long)]
    no_confirm: bool,
    /// Also explore paths of the server on which no Trojan message is possible.
    #[arg(long)]
    no_prune: bool,
    /// Compare each path of the server with all client messages, also those that an earlier prefix of the path
    /// excludes.
    #[arg(long)]
    no_drop: bool,
    /// Do not exclude client messages by comparing single fields.
    #[arg(long)]
    no_fields: bool,
}

/// A message.
#[derive(Clone)]
struct Message(Vec<u8>);

fn parse_hex(text: &str) -> Result<Message, String> {
    let digits: Vec<u8> = text.bytes().filter(|byte| !b" :_".contains(byte)).collect();
    let wrong = || format!("{text:?} is not hexadecimal digits, two for each byte");
    if !digits.len().is_multiple_of(2) {
        return Err(wrong());
    }
    let byte = |pair: &[u8]| {
        let text = std::str::from_utf8(pair).ok()?;
        u8::from_str_radix(text, 16).ok()
    };
    let bytes: Option<Vec<u8>> = digits.chunks(2).map(byte).collect();
    bytes.map(Message).ok_or_else(wrong)
}

/// `everett trojans`.
impl Subcommand for TrojansArgs {
    fn run(&self) -> Result<u8> {
        match &self.contains {
            Some(message) => self.contains(&message.0),
            None => self.analyse(),
        }
    }
}

impl TrojansArgs {
    fn contains(&self, message: &[u8]) -> Result<u8> {
        if !self.path.is_dir() {
            bail!(
                "{} is not the folder of `everett trojans`",
                self.path.display()
            );
        }
        session()?;
        let (word, code) = match everett::contains(&self.path, message)? {
            Contains::Yes => ("yes", EXIT_CLEAN),
            Contains::No => ("no", EXIT_FINDINGS),
            Contains::Undecided => ("undecided", EXIT_UNDECIDED),
        };
        print(word);
        Ok(code)
    }

    fn analyse(&self) -> Result<u8> {
        let mut run = RunSpec::new([&self.path]);
        run.out = self.out.clone();
        run.settings = self.settings.clone();
        let mut spec = TrojansSpec::new(run);
        spec.no_confirm = self.no_confirm;
        spec.search.prune = !self.no_prune;
        spec.search.drop = !self.no_drop;
        spec.search.by_fields = !self.no_fields;
        let session = stoppable_session()?;
        let result = everett::trojans(&spec, &session, &mut Display::new(Mode::Text))?;
        self.show(&result.summary);
        print(&format!("results in {}", result.folder.display()));
        if session.stop.load(std::sync::atomic::Ordering::SeqCst) {
            return Ok(EXIT_INTERRUPTED);
        }
        Ok(match result.summary.trojans.is_empty() {
            // Nothing is known about them.
            true if !result.summary.undecided.is_empty() => EXIT_ERROR,
            is_clean => exit_code(is_clean),
        })
    }

    fn show(&self, summary: &TrojansSummary) {
        for client in &summary.clients {
            let end = match &client.cut_off {
                None => "explored to the end".to_owned(),
                Some(why) => format!("cut off ({why})"),
            };
            let (name, predicates) = (&client.name, client.predicates);
            print(&format!(
                "client {name}: {predicates} kinds of messages, {end}"
            ));
            if !client.depends_on.is_empty() {
                let values = client.depends_on.join(", ");
                print(&format!(
                    "client {name}: its messages depend on its {values}, which were concrete: mask the field"
                ));
            }
        }
        for length in &summary.lengths {
            if let Some(why) = &length.cut_off {
                let (bytes, sender) = (length.length, &length.sender);
                print(&format!(
                    "server, {bytes} bytes from {sender}: cut off ({why})"
                ));
            }
        }
        for entry in &summary.trojans {
            show_entry(entry, self.fix_hint);
        }
        for group in &summary.groups {
            print(&format!("group {}: {} classes", group.name, group.classes));
        }
        for undecided in &summary.undecided {
            print(&format!("undecided: {undecided}"));
        }
        let count = match summary.trojans.len() {
            0 => "no Trojan messages".to_owned(),
            1 => "1 class of Trojan messages".to_owned(),
            count => format!("{count} classes of Trojan messages"),
        };
        let complete = match summary.complete {
            true => "complete: there are no others",
            false => "not complete",
        };
        print(&format!("{count}; {complete}"));
    }
}

fn show_entry(entry: &TrojanEntry, with_hint: bool) {
    let place = match entry.line {
        0 => format!("{}, {}", entry.file, entry.function),
        line => format!("{}:{line}", entry.file),
    };
    let certain = match entry.certain {
        true => "no client sends it",
        false => "not sent by any path explored",
    };
    print(&format!(
        "{}: {} from {} accepted at {place} ({}); {certain} ({}); {}",
        entry.number,
        short(&entry.example),
        entry.senders.join(" or "),
        entry.why,
        entry.how,
        entry.confirmed
    ));
    for field in &entry.fields {
        let value = field
            .value
            .map_or(String::new(), |value| format!(" = {value}"));
        let mask = if field.masked { " (masked)" } else { "" };
        print(&format!(
            "    {}: {}{value}{mask}",
            field.name,
            short(&field.bytes)
        ));
    }
    if let Some(nearest) = &entry.nearest {
        let differs = nearest.differs.join(", ");
        print(&format!(
            "    nearest message of {}: {}, which differs in {differs}",
            nearest.client,
            short(&nearest.message)
        ));
    }
    if with_hint {
        print(&format!("    hint: {}", entry.fix_hint));
    }
}

/// Hexadecimal digits for a line; the summary has all of them.
fn short(digits: &str) -> String {
    const MOST: usize = 64;
    match digits.get(..MOST) {
        Some(first) if digits.len() > MOST => format!("{first}... ({} bytes)", digits.len() / 2),
        _ => digits.to_owned(),
    }
}
