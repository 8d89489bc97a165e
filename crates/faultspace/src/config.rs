//! Reads the file that describes a search (`SEARCH.toml`), and owns all defaults. Errors have line
//! and column.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;
use toml::de::{DeTable, DeValue};

use crate::error::{Error, Result};
use crate::settings::{Command, Explore, Guided, Impact, Limits, Proxy, SearchConfig, Stop};
use crate::space::Space;
use crate::{injector, search};

/// A parsed search file.
pub struct SearchFile {
    /// The settings of the search.
    pub config: SearchConfig,
    /// The fault space.
    pub space: Space,
}

impl SearchFile {
    /// Reads a file.
    pub fn read(path: &Path) -> Result<SearchFile> {
        let text = everett_report::read_text(path).map_err(Error::reading(path))?;
        let folder = match path.parent() {
            Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
            Some(parent) => parent,
            None => Path::new("."),
        };
        let folder = folder.canonicalize().map_err(Error::reading(folder))?;
        SearchFile::parse(&text, &path.display().to_string(), folder)
    }

    /// Parses the text of a file.
    pub fn parse(text: &str, file: &str, folder: PathBuf) -> Result<SearchFile> {
        let reader = Reader { text, file };
        let table = match DeTable::parse(text) {
            Ok(table) => table,
            Err(error) => {
                let span = error.span().unwrap_or(0..0);
                return Err(reader.fail(span, error.message().to_owned()));
            }
        };
        let mut config = SearchConfig {
            search: "guided".to_owned(),
            window: 8,
            repetitions: 3,
            folder,
            ..SearchConfig::default()
        };
        for (key, value) in table.get_ref().iter() {
            reader.top(&mut config, key.get_ref(), key.span(), value)?;
        }
        if config.space.is_empty() {
            return Err(reader.fail(
                0..0,
                "`space` is missing: a file, or a description".to_owned(),
            ));
        }
        if config.injector.is_empty() {
            let names = injector::names();
            return Err(reader.fail(0..0, format!("`injector` is missing; there are: {names}")));
        }
        reader.expect_system(&config, &table)?;
        let space = reader.space(&mut config, &table)?;
        Ok(SearchFile { config, space })
    }
}

struct Reader<'t> {
    text: &'t str,
    file: &'t str,
}

type Spanned<'t> = toml::Spanned<DeValue<'t>>;

impl Reader<'_> {
    fn fail(&self, span: Range<usize>, message: String) -> Error {
        let before = &self.text[..span.start.min(self.text.len())];
        Error::Config {
            file: self.file.to_owned(),
            line: before.matches('\n').count() + 1,
            column: before.chars().rev().take_while(|c| *c != '\n').count() + 1,
            message,
        }
    }

    fn top(
        &self,
        config: &mut SearchConfig,
        key: &str,
        span: Range<usize>,
        value: &Spanned<'_>,
    ) -> Result<()> {
        match key {
            "space" => config.space = self.string(value)?,
            "injector" => {
                config.injector = self.one_of(value, "injector", injector::names().split(", "))?;
            }
            "scenario" => config.scenario = self.string(value)?.into(),
            "proxy" => config.proxy = Some(self.proxy(value)?),
            "network" => {
                let names = ["own", "machine"].into_iter();
                config.shares_network = self.one_of(value, "network", names)? == "machine";
            }
            "program" | "programs" => config.programs = self.strings(value)?,
            "start" => config.start = Some(self.command(value)?),
            "test" => config.test = Some(self.command(value)?),
            "cleanup" => config.cleanup = Some(self.command(value)?),
            "writable" => {
                let folder = config.folder.clone();
                config.writable = self
                    .strings(value)?
                    .iter()
                    .map(|one| folder.join(one))
                    .collect();
            }
            "search" => {
                let names = search::SEARCHES.iter().map(|row| row.name);
                config.search = self.one_of(value, "search", names)?;
            }
            "seed" => config.seed = self.number(value, 0)? as u64,
            "window" => config.window = self.number(value, 1)? as usize,
            "repetitions" => config.repetitions = self.number(value, 1)? as u32,
            "env" => {
                for (key, value) in self.table(value)?.iter() {
                    config
                        .env
                        .push((key.get_ref().to_string(), self.string(value)?));
                }
            }
            "impact" => self.impact(&mut config.impact, value)?,
            "stop" => self.stop(&mut config.stop, value)?,
            "guided" => self.guided(&mut config.guided, value, &config.folder)?,
            "explore" => self.explore(&mut config.explore, value)?,
            "limits" => self.limits(&mut config.limits, value)?,
            "relevance" => config.relevance = self.relevance(value, &config.folder)?,
            other => {
                let keys = "space, injector, scenario, program, start, test, cleanup, env, writable, network, \
                            search, seed, window, repetitions, [impact], [stop], [guided], [explore], [limits], [relevance], [proxy]";
                return Err(self.fail(
                    span,
                    format!("there is no key `{other}`; there are: {keys}"),
                ));
            }
        }
        Ok(())
    }

    /// Checks that a world has a scenario, and that all other systems have commands.
    fn expect_system(
        &self,
        config: &SearchConfig,
        table: &toml::Spanned<DeTable<'_>>,
    ) -> Result<()> {
        let place = |key: &str| table.get_ref().get(key).map(|value| value.span());
        if let Some(span) = place("proxy").filter(|_| config.injector != "corrupt") {
            let message = "`[proxy]` is for injector corrupt";
            return Err(self.fail(span, message.to_owned()));
        }
        if config.injector == "corrupt" && config.proxy.is_none() {
            let message = "`[proxy]` is missing: where it listens, and where it goes to";
            return Err(self.fail(0..0, message.to_owned()));
        }
        if config.injector != "model" {
            if let Some(span) = place("scenario") {
                let message = "`scenario` is for injector model";
                return Err(self.fail(span, message.to_owned()));
            }
            return match config.test.is_some() {
                true => Ok(()),
                false => {
                    let message = "`test` is missing: the command that is run";
                    Err(self.fail(0..0, message.to_owned()))
                }
            };
        }
        if place("scenario").is_none() {
            let message = "`scenario` is missing: the world of injector model";
            return Err(self.fail(0..0, message.to_owned()));
        }
        for key in [
            "test", "start", "cleanup", "program", "programs", "env", "writable", "network",
        ] {
            if let Some(span) = place(key) {
                let message = format!("`{key}` is not for injector model: its scenario says all");
                return Err(self.fail(span, message));
            }
        }
        if config.impact.script.is_some() {
            let message = "an impact by a script is not for injector model";
            let span = place("impact").unwrap_or(0..0);
            return Err(self.fail(span, message.to_owned()));
        }
        Ok(())
    }

    fn space(
        &self,
        config: &mut SearchConfig,
        table: &toml::Spanned<DeTable<'_>>,
    ) -> Result<Space> {
        let is_inline = config.space.contains(':');
        if !is_inline {
            let path = config.folder.join(&config.space);
            config.space_file = config.space.clone();
            config.space = everett_report::read_text(&path).map_err(Error::reading(&path))?;
        }
        Space::parse(&config.space).map_err(|mut error| match is_inline {
            false => Error::Space {
                file: config.space_file.clone(),
                error,
            },
            true => {
                // The position in this file: the text begins after its quotes.
                let value = table.get_ref().get("space").map(|value| value.span());
                let begin = value.map_or(0, |span| span.start);
                let rest = &self.text[begin..];
                let quotes = rest.len() - rest.trim_start_matches(['"', '\'']).len();
                let newline = usize::from(quotes >= 3 && rest[quotes..].starts_with('\n'));
                let text = &self.text[..begin + quotes + newline];
                if error.line == 1 {
                    error.column += text.chars().rev().take_while(|c| *c != '\n').count();
                }
                error.line += text.matches('\n').count();
                Error::Space {
                    file: self.file.to_owned(),
                    error,
                }
            }
        })
    }

    fn impact(&self, impact: &mut Impact, value: &Spanned<'_>) -> Result<()> {
        for (key, value) in self.table(value)?.iter() {
            match key.get_ref().as_ref() {
                "exit" => impact.exit = self.real(value)?,
                "signal" => impact.signal = self.real(value)?,
                "hang" => impact.hang = self.real(value)?,
                "coverage" => impact.coverage = self.real(value)?,
                "output" => impact.output = self.real(value)?,
                "files" => impact.files = self.real(value)?,
                "latency" => impact.latency = self.real(value)?,
                "log" => impact.log = self.real(value)?,
                "invariant" => impact.invariant = self.real(value)?,
                "failure" => impact.failure = Some(self.real(value)?),
                "log_pattern" => impact.log_pattern = Some(self.pattern(value)?),
                "script" => impact.script = Some(self.command(value)?),
                "ignore" => impact.ignore = self.strings(value)?,
                other => {
                    let keys = "exit, signal, hang, coverage, output, files, latency, log, invariant, failure, \
                                log_pattern, script, ignore";
                    return Err(self.fail(
                        key.span(),
                        format!("[impact] has no key `{other}`; it has: {keys}"),
                    ));
                }
            }
        }
        Ok(())
    }

    fn stop(&self, stop: &mut Stop, value: &Spanned<'_>) -> Result<()> {
        for (key, value) in self.table(value)?.iter() {
            match key.get_ref().as_ref() {
                "runs" => stop.runs = Some(self.number(value, 1)? as u64),
                "failures" => stop.failures = Some(self.number(value, 1)? as u64),
                "crashes" => stop.crashes = Some(self.number(value, 1)? as u64),
                "hangs" => stop.hangs = Some(self.number(value, 1)? as u64),
                "clusters" => stop.clusters = Some(self.number(value, 1)? as u64),
                "impact" => stop.impact = Some(self.real(value)?),
                "time" => stop.time = Some(self.time(value)?),
                other => {
                    let keys = "runs, failures, crashes, hangs, clusters, impact, time";
                    return Err(self.fail(
                        key.span(),
                        format!("[stop] has no key `{other}`; it has: {keys}"),
                    ));
                }
            }
        }
        Ok(())
    }

    fn explore(&self, explore: &mut Explore, value: &Spanned<'_>) -> Result<()> {
        for (key, value) in self.table(value)?.iter() {
            match key.get_ref().as_ref() {
                "scenarios" => explore.scenarios = self.number(value, 0)? as usize,
                "paths" => explore.paths = self.number(value, 1)? as u64,
                "forks" => explore.forks = self.number(value, 1)? as u64,
                "instructions" => explore.instructions = self.number(value, 1)? as u64,
                other => {
                    let keys = "scenarios, paths, forks, instructions";
                    return Err(self.fail(
                        key.span(),
                        format!("[explore] has no key `{other}`; it has: {keys}"),
                    ));
                }
            }
        }
        Ok(())
    }

    fn guided(&self, guided: &mut Guided, value: &Spanned<'_>, folder: &Path) -> Result<()> {
        for (key, value) in self.table(value)?.iter() {
            match key.get_ref().as_ref() {
                "initial" => guided.initial = self.number(value, 0)? as u64,
                "queue" => guided.queue = self.number(value, 1)? as usize,
                "history" => guided.history = self.number(value, 1)? as usize,
                "least_share" => guided.least_share = self.share(value)?,
                "sigma" => guided.sigma = self.real(value)?,
                "ageing" => guided.ageing = self.share(value)?,
                "retire" => guided.retire = self.share(value)?,
                "feedback" => guided.feedback = self.flag(value)?,
                "cluster" => guided.cluster = self.share(value)?,
                "unchecked" => {
                    for name in self.strings(value)? {
                        let read = guided.unchecked.read(&folder.join(name));
                        read.map_err(|error| self.fail(value.span(), error.to_string()))?;
                    }
                }
                other => {
                    let keys = "initial, queue, history, least_share, sigma, ageing, retire, feedback, cluster, \
                                unchecked";
                    return Err(self.fail(
                        key.span(),
                        format!("[guided] has no key `{other}`; it has: {keys}"),
                    ));
                }
            }
        }
        Ok(())
    }

    fn limits(&self, limits: &mut Limits, value: &Spanned<'_>) -> Result<()> {
        for (key, value) in self.table(value)?.iter() {
            match key.get_ref().as_ref() {
                "timeout" => limits.timeout = self.time(value)?,
                "setup_timeout" => limits.setup_timeout = self.time(value)?,
                "output" => limits.output = self.size(value)?,
                "disk" => limits.disk = self.size(value)?,
                "processes" => limits.processes = self.number(value, 1)? as u64,
                "memory" => limits.memory = self.size(value)?,
                "cores" => limits.cores = self.size(value)?,
                other => {
                    let keys = "timeout, setup_timeout, output, disk, processes, memory, cores";
                    return Err(self.fail(
                        key.span(),
                        format!("[limits] has no key `{other}`; it has: {keys}"),
                    ));
                }
            }
        }
        Ok(())
    }

    fn proxy(&self, value: &Spanned<'_>) -> Result<Proxy> {
        let (mut listen, mut to, mut is_udp) = (None, None, false);
        for (key, value) in self.table(value)?.iter() {
            match key.get_ref().as_ref() {
                "listen" => listen = Some(self.address(value)?),
                "to" => to = Some(self.address(value)?),
                "protocol" => {
                    let names = ["tcp", "udp"].into_iter();
                    is_udp = self.one_of(value, "protocol", names)? == "udp";
                }
                other => {
                    return Err(self.fail(
                        key.span(),
                        format!("[proxy] has no key `{other}`; it has: listen, to, protocol"),
                    ));
                }
            }
        }
        let missing = |key: &str| self.fail(value.span(), format!("[proxy] needs `{key}`"));
        Ok(Proxy {
            listen: listen.ok_or_else(|| missing("listen"))?,
            to: to.ok_or_else(|| missing("to"))?,
            is_udp,
        })
    }

    fn address(&self, value: &Spanned<'_>) -> Result<SocketAddr> {
        match self.string(value)?.parse() {
            Ok(address) => Ok(address),
            Err(_) => self.wrong(value, "an address and a port, such as \"127.0.0.1:8080\""),
        }
    }

    /// Reads a table, or a file that contains it: `"malloc" = 0.4` or `"errno EIO" = 0.1`.
    fn relevance(&self, value: &Spanned<'_>, folder: &Path) -> Result<BTreeMap<String, f64>> {
        if let DeValue::String(file) = value.get_ref() {
            let path = folder.join(file.as_ref());
            let text = everett_report::read_text(&path).map_err(Error::reading(&path))?;
            let file = path.display().to_string();
            let reader = Reader {
                text: &text,
                file: &file,
            };
            let table = DeTable::parse(&text).map_err(|error| {
                reader.fail(error.span().unwrap_or(0..0), error.message().to_owned())
            })?;
            return reader.probabilities(table.get_ref());
        }
        self.probabilities(self.table(value)?)
    }

    fn probabilities(&self, table: &DeTable<'_>) -> Result<BTreeMap<String, f64>> {
        let pairs = table.iter();
        pairs
            .map(|(key, value)| Ok((key.get_ref().to_string(), self.share(value)?)))
            .collect()
    }

    fn wrong<T>(&self, value: &Spanned<'_>, expected: &str) -> Result<T> {
        Err(self.fail(value.span(), format!("expected {expected}")))
    }

    fn table<'v>(&self, value: &'v Spanned<'_>) -> Result<&'v DeTable<'v>> {
        match value.get_ref() {
            DeValue::Table(table) => Ok(table),
            _ => self.wrong(value, "a table"),
        }
    }

    fn string(&self, value: &Spanned<'_>) -> Result<String> {
        match value.get_ref() {
            DeValue::String(text) => Ok(text.to_string()),
            _ => self.wrong(value, "a text in quotes"),
        }
    }

    fn strings(&self, value: &Spanned<'_>) -> Result<Vec<String>> {
        match value.get_ref() {
            DeValue::Array(list) => list.iter().map(|one| self.string(one)).collect(),
            _ => Ok(vec![self.string(value)?]),
        }
    }

    fn command(&self, value: &Spanned<'_>) -> Result<Command> {
        Ok(match value.get_ref() {
            DeValue::Array(_) => match self.strings(value)? {
                words if words.is_empty() => {
                    return self.wrong(value, "a program and its arguments");
                }
                words => Command::Words(words),
            },
            _ => Command::Shell(self.string(value)?),
        })
    }

    fn one_of<'n>(
        &self,
        value: &Spanned<'_>,
        what: &str,
        names: impl Iterator<Item = &'n str>,
    ) -> Result<String> {
        let text = self.string(value)?;
        let names: Vec<&str> = names.collect();
        match names.contains(&text.as_str()) {
            true => Ok(text),
            false => {
                let there = names.join(", ");
                Err(self.fail(
                    value.span(),
                    format!("there is no {what} {text:?}; there are: {there}"),
                ))
            }
        }
    }

    fn number(&self, value: &Spanned<'_>, least: i64) -> Result<i64> {
        let expected = format!("a whole number from {least} on");
        match value.get_ref() {
            DeValue::Integer(number) => {
                match i64::from_str_radix(&number.as_str().replace('_', ""), number.radix()) {
                    Ok(number) if number >= least => Ok(number),
                    _ => self.wrong(value, &expected),
                }
            }
            _ => self.wrong(value, &expected),
        }
    }

    fn real(&self, value: &Spanned<'_>) -> Result<f64> {
        let number = match value.get_ref() {
            DeValue::Integer(number) => number.as_str().replace('_', "").parse::<f64>().ok(),
            DeValue::Float(number) => number.as_str().replace('_', "").parse().ok(),
            _ => None,
        };
        match number.filter(|number| number.is_finite() && *number >= 0.0) {
            Some(number) => Ok(number),
            None => self.wrong(value, "a number from 0 on"),
        }
    }

    fn share(&self, value: &Spanned<'_>) -> Result<f64> {
        match self.real(value)? {
            share if share <= 1.0 => Ok(share),
            _ => self.wrong(value, "a number from 0 to 1"),
        }
    }

    fn flag(&self, value: &Spanned<'_>) -> Result<bool> {
        match value.get_ref() {
            DeValue::Boolean(flag) => Ok(*flag),
            _ => self.wrong(value, "true or false"),
        }
    }

    fn time(&self, value: &Spanned<'_>) -> Result<Duration> {
        let text = match value.get_ref() {
            DeValue::String(text) => text.to_string(),
            _ => self.real(value)?.to_string(),
        };
        match everett::parse_time(&text) {
            Ok(time) => Ok(time),
            Err(why) => self.wrong(value, &format!("a time such as \"10s\": {why}")),
        }
    }

    fn size(&self, value: &Spanned<'_>) -> Result<u64> {
        let DeValue::String(text) = value.get_ref() else {
            return Ok(self.number(value, 1)? as u64);
        };
        let (digits, unit) = match text.char_indices().last() {
            Some((at, 'K')) => (&text[..at], 1 << 10),
            Some((at, 'M')) => (&text[..at], 1 << 20),
            Some((at, 'G')) => (&text[..at], 1 << 30),
            _ => (text.as_ref(), 1u64),
        };
        match digits
            .parse::<u64>()
            .ok()
            .and_then(|number| number.checked_mul(unit))
        {
            Some(size) if size > 0 => Ok(size),
            _ => self.wrong(value, "a size such as \"64M\""),
        }
    }

    fn pattern(&self, value: &Spanned<'_>) -> Result<String> {
        let text = self.string(value)?;
        match crate::impact::Pattern::parse(&text) {
            Ok(_) => Ok(text),
            Err(why) => Err(self.fail(value.span(), format!("the pattern is wrong: {why}"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        let read = SearchFile::parse(text, "s.toml", PathBuf::from("/"));
        read.err()
            .map(|error| error.to_string())
            .unwrap_or_default()
    }

    const GOOD: &str = "space = \"a : [1,3];\"\ninjector = \"script\"\ntest = \"true\"\n";

    #[test]
    fn a_file_is_read_with_defaults() {
        let text =
            format!("{GOOD}[impact]\nsignal = 20\nlog_pattern = 'a.*b'\n[stop]\ntime = \"2m\"\n");
        let file = SearchFile::parse(&text, "s.toml", PathBuf::from("/")).unwrap();
        assert_eq!(file.space.size(), 3);
        assert_eq!(file.config.search, "guided");
        assert_eq!(file.config.impact.signal, 20.0);
        assert_eq!(file.config.stop.time, Some(Duration::from_secs(120)));
        assert_eq!(file.config.guided, Guided::default());
    }

    #[test]
    fn mistakes_are_told_with_their_places() {
        for (text, message) in [
            ("space = 1", "s.toml:1:9: expected a text in quotes"),
            ("spaces = 1", "s.toml:1:1: there is no key `spaces`"),
            (
                "injector = \"x\"",
                "s.toml:1:12: there is no injector \"x\"; there are: ",
            ),
            ("injector =", "s.toml:1:11: "),
            (
                "[guided]\nsigmas = 1",
                "s.toml:2:1: [guided] has no key `sigmas`",
            ),
            (
                "[guided]\nageing = 2",
                "s.toml:2:10: expected a number from 0 to 1",
            ),
            ("[limits]\ndisk = \"1X\"", "s.toml:2:8: expected a size"),
            (
                "[impact]\nlog_pattern = '('",
                "s.toml:2:15: the pattern is wrong: ",
            ),
            (
                "space = \"a : [1,3];\"",
                "s.toml:1:1: `injector` is missing",
            ),
            (
                "space = \"a : [1,3];\"\ninjector = \"script\"",
                "s.toml:1:1: `test` is missing",
            ),
        ] {
            assert!(error(text).starts_with(message), "{text}: {}", error(text));
        }
        let inline = GOOD.replace("[1,3]", "[3,1]");
        assert_eq!(
            error(&inline),
            "s.toml:1:14: there is no number from 3 to 1"
        );
        let lines = GOOD.replace("\"a : [1,3];\"", "\"\"\"\na : [1,3]\n  b : {}\"\"\"");
        assert_eq!(
            error(&lines),
            "s.toml:3:8: expected a value of the set, not `}`"
        );
    }
}
