//! Trojan messages of `examples/fsp`, beside the figures of Achilles for FSP: classes over time,
//! the results of the baselines, the results of random messages, and the decrease of the number of
//! client predicates along the paths of the server.

use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::net::UdpSocket;
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use crate::{Bench, Measured, succeed};

/// Number of classes of mismatched lengths in FSP, and the minutes that Achilles took to find the
/// first and the last of them on the server.
const PAPER_CLASSES: f64 = 80.0;
const PAPER_MINUTES: (f64, f64) = (20.0, 43.0);
/// Minutes of Achilles and of differencing a posteriori, all phases.
const PAPER_WHOLE: (f64, f64) = (63.0, 135.0);
/// Messages per minute that the server of the paper received.
const PAPER_FUZZED: f64 = 75_000.0;
/// The port of the server.
const PORT: u16 = 2100;
/// Number of messages between two that the server answers, when its throughput is measured.
const BURST: u32 = 100;

/// Search methods, with their options.
const WAYS: [(&str, &[&str]); 3] = [
    ("exact, incremental", &[]),
    ("negation of the paper, incremental", &["--negate-values"]),
    (
        "exact, a posteriori",
        &["--no-prune", "--no-drop", "--no-fields"],
    ),
];

impl Bench {
    pub fn trojans(&self, text: &mut String) -> Result<()> {
        let folder = self.work.join("fsp");
        std::fs::create_dir_all(&folder)?;
        for entry in std::fs::read_dir(self.root.join("examples/fsp"))? {
            let path = entry?.path();
            std::fs::copy(&path, folder.join(path.file_name().context("a name")?))?;
        }
        for program in ["server", "client"] {
            let mut build = Command::new(&self.everett);
            build.args(["cc", "-O1", "-o"]).arg(folder.join(program));
            succeed(build.arg(folder.join(program).with_extension("c")))?;
        }
        let ways = WAYS
            .iter()
            .map(|(_, options)| self.search(&folder, options));
        let ways = ways.collect::<Result<Vec<_>>>()?;
        let Some(exact) = ways.first() else {
            bail!("nothing was measured");
        };
        self.ways(&ways, text)?;
        classes_over_time(&exact.summary, text)?;
        classic(&ways, text)?;
        at_random(&folder, &exact.summary, text)?;
        dwindling(&exact.summary, text)
    }

    fn search(&self, folder: &Path, options: &[&str]) -> Result<Measured> {
        let out = self.work.join(format!("out-{}", self.number()));
        let mut command = Command::new(&self.everett);
        command.args(["trojans", "--no-confirm", "--afterwards", "0"]);
        command.args(options).arg("--out").arg(&out);
        command.arg(folder.join("scenario.toml"));
        self.measure(&mut command, &out)
    }

    /// Writes what each search method finds, and how long it takes.
    fn ways(&self, ways: &[Measured], text: &mut String) -> Result<()> {
        text.push_str(
            "`examples/fsp`: seconds without native confirmation, classes, and those whose ",
        );
        writeln!(
            text,
            "example a client sends (wrong):\n\n\
             | search | clients | server | classes | wrong | paper, FSP itself |\n|---|---|---|---|---|---|"
        )?;
        let (incremental, posteriori) = PAPER_WHOLE;
        let said = [
            String::new(),
            format!("{incremental} minutes, 80 classes, 0 wrong"),
            format!("{posteriori} minutes, with its negation"),
        ];
        let exact = &ways[0].out;
        for (((name, _), way), said) in WAYS.iter().zip(ways).zip(said) {
            let mut wrong = 0;
            for class in list(&way.summary, "trojans") {
                let example = class["example"].as_str().unwrap_or_default();
                wrong += u32::from(self.contains(exact, example)? == "no");
            }
            writeln!(
                text,
                "| {name} | {:.2} | {:.2} | {} | {wrong} | {said} |",
                number(&way.summary, "/phases/clients"),
                number(&way.summary, "/phases/server"),
                list(&way.summary, "trojans").len(),
            )?;
        }
        Ok(())
    }

    fn contains(&self, out: &Path, message: &str) -> Result<String> {
        let mut command = Command::new(&self.everett);
        let output = command
            .args(["trojans", "--contains", message])
            .arg(out)
            .output()?;
        Ok(String::from_utf8(output.stdout)?.trim().to_owned())
    }
}

/// Writes table 4.1: the remaining messages if clients are not taken into account.
fn classic(ways: &[Measured], text: &mut String) -> Result<()> {
    let [exact, _, posteriori] = ways else {
        bail!("not all was measured");
    };
    let senders = list(&exact.summary, "clients").len().max(1) as u64;
    let paths = |key: &str| {
        let lengths = list(&posteriori.summary, "lengths").iter();
        let all = lengths.filter_map(|length| length[key].as_u64());
        all.sum::<u64>() / senders
    };
    let (accepting, rejecting) = (paths("accepting"), paths("rejecting"));
    let trojans = list(&exact.summary, "trojans").len() as u64;
    let others = accepting.saturating_sub(trojans);
    let seconds = number(&posteriori.summary, "/phases/server") / senders as f64;
    let (of_messages, accepted, _) = counted_messages();
    let said = format!(
        "Classic symbolic execution of the server (Table 4.1) has {accepting} paths that accept and {rejecting} that \
         reject, from one sender, in at most {seconds:.2} s (with the questions of the search a posteriori). It does \
         not say which {trojans} of the paths have Trojan messages, nor which of their messages these are; a person \
         has to sift them: of messages of 17 bytes with right headers, {accepted:.2e} are accepted, and \
         {of_messages:.2e} of these are Trojan messages. The table counts paths, that of the paper messages:"
    );
    paragraph(&said, text);
    writeln!(
        text,
        "\n| | Everett | classic, accepting paths | Achilles | classic, paper |\n|---|---|---|---|---|\n\
         | with Trojan messages | {trojans} | {trojans} | 80 | 80 |\n\
         | others | 0 | {others} | 0 | 7520 |"
    )?;
    Ok(())
}

/// Writes a paragraph, in lines of at most 118 columns.
fn paragraph(words: &str, text: &mut String) {
    let mut columns = 0;
    text.push('\n');
    for word in words.split(' ') {
        let length = word.chars().count();
        match columns {
            0 => {}
            _ if columns + 1 + length > 118 => {
                text.push('\n');
                columns = 0;
            }
            _ => {
                text.push(' ');
                columns += 1;
            }
        }
        text.push_str(word);
        columns += length;
    }
    text.push('\n');
}

fn list<'s>(summary: &'s Value, key: &str) -> &'s [Value] {
    summary[key].as_array().map_or(&[], Vec::as_slice)
}

fn number(summary: &Value, pointer: &str) -> f64 {
    let value = summary.pointer(pointer).and_then(Value::as_f64);
    value.unwrap_or_default()
}

/// Writes figure 4.10: the share of all classes that are known after some time.
fn classes_over_time(summary: &Value, text: &mut String) -> Result<()> {
    let found = summary.pointer("/phases/found").and_then(Value::as_array);
    let found = found.into_iter().flatten().filter_map(Value::as_f64);
    let mut found: Vec<f64> = found.collect();
    found.sort_by(f64::total_cmp);
    let (first, last) = PAPER_MINUTES;
    let said = format!(
        "Classes over time on the server (Figure 4.10). Achilles has the first of its {PAPER_CLASSES} after {first} \
         minutes and all after {last}:"
    );
    paragraph(&said, text);
    writeln!(text, "\n| share of classes | seconds |\n|---|---|")?;
    let count = found.len();
    for (name, at) in [
        ("first", 0),
        ("25 %", count / 4),
        ("50 %", count / 2),
        ("75 %", 3 * count / 4),
        ("all", count.saturating_sub(1)),
    ] {
        let seconds = found.get(at).copied().unwrap_or_default();
        writeln!(text, "| {name} | {seconds:.3} |")?;
    }
    Ok(())
}

/// Writes figure 4.11: how many predicates paths keep.
fn dwindling(summary: &Value, text: &mut String) -> Result<()> {
    let said = "Predicates of clients that paths of the server had to be compared with (Figure 4.11; in the paper, \
                they dwindle along the paths as well, from thousands):";
    paragraph(said, text);
    writeln!(
        text,
        "\n| conditions of the path | paths | predicates, mean | most |\n|---|---|---|---|"
    )?;
    for kept in list(summary, "kept") {
        let (paths, all) = (number(kept, "/paths"), number(kept, "/predicates"));
        writeln!(
            text,
            "| {} | {paths} | {:.1} | {} |",
            kept["conditions"],
            all / paths.max(1.0),
            kept["most"]
        )?;
    }
    Ok(())
}

/// Writes what random messages would find in an hour.
fn at_random(folder: &Path, summary: &Value, text: &mut String) -> Result<()> {
    let rate = messages_a_second(folder, summary)?;
    let (trojans, _, all) = counted_messages();
    let expected = rate * 3600.0 * trojans / all;
    let (paper_trojans, paper_all) = (66e6, 256f64.powi(8));
    let paper = PAPER_FUZZED * 60.0 * paper_trojans / paper_all;
    let said = format!(
        "Random messages of 17 bytes, in the 8 that matter (command, length, path; the others right): the server takes \
         {:.0} a minute ({PAPER_FUZZED:.0} in the paper). {trojans:.2e} of {all:.2e} are Trojan messages, so an hour \
         finds {expected:.1e} (paper: {paper:.1e}).",
        rate * 60.0
    );
    paragraph(&said, text);
    Ok(())
}

/// Returns the number of Trojan messages, of accepted ones, and of all contents of command, length
/// and path (5 bytes) of messages of 17 bytes. The length has to be 4. A path of n < 4 printable
/// characters has a NUL behind them and anything up to the last byte; one of 4 has a `*` and is not
/// that of a new folder.
fn counted_messages() -> (f64, f64, f64) {
    let (commands, sources, printable) = (8.0, 7.0, 94f64);
    let mismatched: f64 = (0..4)
        .map(|length| printable.powi(length) * 256f64.powi(3 - length))
        .sum();
    let wildcards = printable.powi(4) - (printable - 1.0).powi(4);
    let trojans = commands * mismatched + sources * wildcards;
    let accepted = commands * (mismatched + printable.powi(4));
    (trojans, accepted, 256f64.powi(8))
}

/// Measures how many messages the native server takes per second: bursts of messages that it
/// rejects, each followed by one that it answers.
fn messages_a_second(folder: &Path, summary: &Value) -> Result<f64> {
    /// The command without side effects.
    const STAT: &str = "48";
    let nearest = list(summary, "trojans").iter();
    let nearest = nearest.filter_map(|class| class.pointer("/nearest/message")?.as_str());
    let valid: BTreeSet<&str> = nearest
        .filter(|message| message.starts_with(STAT))
        .collect();
    let valid = bytes(valid.first().context("a message of a client")?);
    let mut rejected = valid.clone();
    rejected[0] = 0;
    let mut server = Server(
        Command::new(folder.join("server"))
            .current_dir(folder)
            .spawn()?,
    );
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    socket.connect(("127.0.0.1", PORT))?;
    socket.set_read_timeout(Some(Duration::from_millis(200)))?;
    let mut answer = [0; 32];
    let mut tries = 0;
    while socket.send(&valid).is_err() || socket.recv(&mut answer).is_err() {
        tries += 1;
        if tries > 50 || server.0.try_wait()?.is_some() {
            bail!("the server does not answer at port {PORT}");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let (started, mut taken) = (Instant::now(), 0);
    while started.elapsed() < Duration::from_secs(2) {
        for _ in 0..BURST {
            socket.send(&rejected)?;
        }
        socket.send(&valid)?;
        socket.recv(&mut answer)?;
        taken += BURST + 1;
    }
    Ok(f64::from(taken) / started.elapsed().as_secs_f64())
}

/// A server that ends with the measurement.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn bytes(hex: &str) -> Vec<u8> {
    let pairs = (0..hex.len() / 2).filter_map(|at| hex.get(2 * at..2 * at + 2));
    pairs
        .filter_map(|pair| u8::from_str_radix(pair, 16).ok())
        .collect()
}
