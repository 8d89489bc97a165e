//! `everett trojans`.

use anyhow::Result;
use everett::{Contains, Negation, RunSpec, TrojansSpec, parse_setting};
use std::path::PathBuf;

use crate::commands::{Subcommand, code_of};
use crate::display::{Display, Mode, print};
use crate::session::{session, stoppable_session};
use crate::{EXIT_CLEAN, EXIT_FINDINGS};

/// The exit code of `--contains` if the analysis does not decide the message.
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
    /// Follow the server for so many forks after it has accepted messages of a length; 0: do not.
    #[arg(long, value_name = "FORKS", default_value_t = everett::AFTERWARDS)]
    afterwards: u64,
    /// Explore clients that limits have cut off so often further, first with inputs that may give
    /// messages of a class, then with limits that are four times as high as the time before, as
    /// long as there are classes that they may refute.
    #[arg(long, value_name = "TIMES", default_value_t = everett::REFUTE)]
    refute: u32,
    /// Run the native clients so often with random inputs, all together: nothing that they send
    /// may be in a class. Not with --no-confirm.
    #[arg(long, value_name = "RUNS", default_value_t = everett::NATIVE_RUNS)]
    native_runs: u64,
    /// Also explore paths of the server on which no Trojan message is possible.
    #[arg(long)]
    no_prune: bool,
    /// Compare each path of the server with all client messages, also those that an
    /// earlier prefix of the path excludes.
    #[arg(long)]
    no_drop: bool,
    /// Do not exclude client messages by comparing single fields.
    #[arg(long)]
    no_fields: bool,
    /// Negate what clients send value by value, as the literature does. For comparisons: nothing is
    /// certain then.
    #[arg(long)]
    negate_values: bool,
}

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
        spec.afterwards = self.afterwards;
        spec.refute = self.refute;
        spec.search.prune = !self.no_prune;
        spec.search.drop = !self.no_drop;
        spec.search.by_fields = !self.no_fields;
        if self.negate_values {
            spec.search.negation = Negation::ByValues;
        }
        spec.native_runs = self.native_runs;
        let session = stoppable_session()?;
        let result = everett::trojans(&spec, &session, &mut Display::new(Mode::Text))?;
        print(&result.summary.text(self.fix_hint));
        print(&format!("results in {}", result.folder.display()));
        Ok(code_of(result.conclusion()))
    }
}
