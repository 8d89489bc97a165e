//! The solver process: started when needed, killed and restarted if it hangs or dies.

use super::print::script;
use crate::config::{SmtConfig, SmtProgram};
use crate::interrupt::Interrupt;
use everett_expr::{Arena, ExprId, Variable};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

pub enum SmtAnswer {
    Sat(BTreeMap<Variable, u8>),
    Unsat,
    Unknown(String),
}

pub struct SmtProcess {
    config: SmtConfig,
    /// The path of the program, once located; a failed search is not repeated.
    program: Option<Result<PathBuf, String>>,
    running: Option<Running>,
}

struct Running {
    child: Child,
    input: ChildStdin,
    /// Lines of output, read by a thread so that waiting can time out.
    output: Receiver<String>,
}

/// Why there is no answer.
enum Failure {
    /// The process has ended.
    Ended(String),
    /// The process does not answer in time, answers something else, or is not there.
    Other(String),
}

/// The interval at which a wait for the solver checks whether it must end.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

impl SmtProcess {
    pub fn new(config: SmtConfig) -> SmtProcess {
        SmtProcess {
            config,
            program: None,
            running: None,
        }
    }

    /// Returns whether all terms can hold.
    #[cfg(test)]
    pub fn solve(&mut self, arena: &Arena, terms: &[ExprId]) -> SmtAnswer {
        self.solve_until(arena, terms, &Interrupt::default())
    }

    /// Decides whether all terms can hold; stops without an answer when an interrupt is due.
    pub fn solve_until(
        &mut self,
        arena: &Arena,
        terms: &[ExprId],
        interrupt: &Interrupt,
    ) -> SmtAnswer {
        let script = script(arena, terms);
        let was_running = self.running.is_some();
        let mut answer = self.ask(&script.text, &script.variables, interrupt);
        if was_running && matches!(answer, Err(Failure::Ended(_))) {
            // It may have ended for another reason than this query.
            self.running = None;
            answer = self.ask(&script.text, &script.variables, interrupt);
        }
        answer.unwrap_or_else(|failure| {
            // The state of the process is unknown: the next query gets a new one.
            self.running = None;
            let (Failure::Ended(reason) | Failure::Other(reason)) = failure;
            match &self.program {
                Some(Ok(program)) => SmtAnswer::Unknown(format!("{}: {reason}", program.display())),
                _ => SmtAnswer::Unknown(reason),
            }
        })
    }

    fn start(&mut self) -> Result<Running, Failure> {
        let program = self
            .program
            .get_or_insert_with(|| match &self.config.program {
                SmtProgram::Path(path) => Ok(path.clone()),
                SmtProgram::Lazy(program) => program.find(),
            });
        let program = program
            .as_ref()
            .map_err(|why| Failure::Other(why.clone()))?;
        Running::start(program, &self.config).map_err(Failure::Other)
    }

    fn ask(
        &mut self,
        text: &str,
        variables: &[(Variable, String)],
        interrupt: &Interrupt,
    ) -> Result<SmtAnswer, Failure> {
        let running = match self.running.take() {
            Some(running) => running,
            None => self.start()?,
        };
        let running = self.running.insert(running);
        running.send("(reset)\n(set-option :print-success false)\n")?;
        running.send("(set-option :produce-models true)\n")?;
        if let Some((option, work)) = self.config.work {
            running.send(&format!("(set-option {option} {work})\n"))?;
        }
        running.send(text)?;
        running.send("(check-sat)\n")?;
        match running.line(interrupt, self.config.timeout)?.as_str() {
            "sat" => running.values(variables, interrupt).map(SmtAnswer::Sat),
            "unsat" => Ok(SmtAnswer::Unsat),
            "unknown" => Ok(SmtAnswer::Unknown(match self.config.work {
                Some((_, work)) => format!("the SMT solver says unknown, within a work of {work}"),
                None => "the SMT solver says unknown".to_owned(),
            })),
            other => Err(Failure::Other(format!("unexpected answer `{other}`"))),
        }
    }
}

impl Running {
    fn start(program: &Path, config: &SmtConfig) -> Result<Running, String> {
        let started = Command::new(program)
            .args(&config.arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        let mut child = started.map_err(|error| format!("cannot be started: {error}"))?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("has no pipes".to_owned());
        };
        let (sender, receiver) = channel();
        thread::spawn(move || {
            for line in BufReader::new(output).lines() {
                let Ok(line) = line else { break };
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        Ok(Running {
            child,
            input,
            output: receiver,
        })
    }

    fn send(&mut self, text: &str) -> Result<(), Failure> {
        let written = self
            .input
            .write_all(text.as_bytes())
            .and_then(|()| self.input.flush());
        written.map_err(|error| Failure::Ended(format!("cannot be written to: {error}")))
    }

    fn line(
        &mut self,
        interrupt: &Interrupt,
        timeout: Option<Duration>,
    ) -> Result<String, Failure> {
        let mut waited = Duration::ZERO;
        loop {
            match self.output.recv_timeout(POLL_INTERVAL) {
                Ok(line) => return Ok(line.trim().to_owned()),
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Failure::Ended("ended unexpectedly".to_owned()));
                }
                Err(RecvTimeoutError::Timeout) => waited += POLL_INTERVAL,
            }
            if interrupt.is_due() {
                return Err(Failure::Other(
                    "its time is over before the answer".to_owned(),
                ));
            }
            if timeout.is_some_and(|timeout| waited >= timeout) {
                let waited = waited.as_millis();
                return Err(Failure::Other(format!("no answer within {waited} ms")));
            }
        }
    }

    fn values(
        &mut self,
        variables: &[(Variable, String)],
        interrupt: &Interrupt,
    ) -> Result<BTreeMap<Variable, u8>, Failure> {
        let questions: String = variables
            .iter()
            .map(|(_, name)| format!("(get-value ({name}))\n"))
            .collect();
        self.send(&questions)?;
        let mut values = BTreeMap::new();
        for &(variable, _) in variables {
            // A solver has the values at hand, so no time limit is needed.
            let line = self.line(interrupt, None)?;
            let value = parse_value(&line);
            let value =
                value.ok_or_else(|| Failure::Other(format!("unexpected value `{line}`")))?;
            values.insert(variable, value);
        }
        Ok(values)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // The process may have exited already; it must be reaped in both cases.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Parses the byte in `((name #x41))`, `((name #b01000001))` or `((name (_ bv65 8)))`.
fn parse_value(line: &str) -> Option<u8> {
    let (_, value) = line.trim_start_matches('(').split_once(' ')?;
    let value = value.trim().trim_end_matches(')');
    if let Some(digits) = value.strip_prefix("#x") {
        return u8::from_str_radix(digits, 16).ok();
    }
    if let Some(digits) = value.strip_prefix("#b") {
        return u8::from_str_radix(digits, 2).ok();
    }
    value.strip_prefix("(_ bv")?.split(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    #[test]
    fn values_in_all_notations() {
        assert_eq!(parse_value("((v0_3 #x41))"), Some(0x41));
        assert_eq!(parse_value("((v0_3 #b01000001))"), Some(0x41));
        assert_eq!(parse_value("((v0_3 (_ bv65 8)))"), Some(65));
        assert_eq!(parse_value("(error \"no model\")"), None);
    }

    fn run(program: &str, arguments: &[&str], timeout: Duration) -> SmtAnswer {
        let arguments = arguments
            .iter()
            .map(|&argument| argument.to_owned())
            .collect();
        let mut process = SmtProcess::new(SmtConfig {
            program: SmtProgram::Path(PathBuf::from(program)),
            arguments,
            work: Some((":rlimit", 12_345)),
            timeout: Some(timeout),
        });
        let mut arena = Arena::new();
        let truth = arena.bool_constant(true);
        process.solve(&arena, &[truth])
    }

    #[test]
    fn an_interrupt_ends_the_wait() {
        let mut process = SmtProcess::new(SmtConfig {
            program: SmtProgram::Path(PathBuf::from("sleep")),
            arguments: vec!["1000".to_owned()],
            work: None,
            timeout: None,
        });
        let mut arena = Arena::new();
        let truth = arena.bool_constant(true);
        let interrupt = Interrupt {
            stop: Some(Arc::new(AtomicBool::new(true))),
            ..Interrupt::default()
        };
        let answer = process.solve_until(&arena, &[truth], &interrupt);
        assert!(matches!(answer, SmtAnswer::Unknown(_)));
    }

    #[test]
    fn the_solver_is_told_how_much_it_may_work() {
        let told =
            "grep -m1 'set-option :rlimit 12345)' > /dev/null && echo unsat; cat > /dev/null";
        let answer = run("sh", &["-c", told], Duration::from_secs(600));
        assert!(matches!(answer, SmtAnswer::Unsat));
    }

    #[test]
    fn a_solver_that_hangs_dies_or_is_not_there_is_unknown() {
        let patience = Duration::from_millis(50);
        for (program, arguments) in [
            ("sleep", vec!["1000"]),
            ("true", vec![]),
            ("/no/such/solver", vec![]),
        ] {
            let answer = run(program, &arguments, patience);
            assert!(matches!(answer, SmtAnswer::Unknown(_)), "{program}");
        }
        let answer = run(
            "sh",
            &["-c", "echo nonsense; cat > /dev/null"],
            Duration::from_secs(5),
        );
        assert!(matches!(answer, SmtAnswer::Unknown(reason) if reason.contains("nonsense")));
    }

    /// A process that dies between two queries costs the second one nothing.
    #[test]
    fn a_solver_that_has_died_is_started_again() {
        let mut process = SmtProcess::new(SmtConfig {
            program: SmtProgram::Path(PathBuf::from("sh")),
            arguments: vec![
                "-c".to_owned(),
                "while read line; do test \"$line\" = '(check-sat)' && echo unsat && exit; done"
                    .to_owned(),
            ],
            work: None,
            timeout: None,
        });
        let mut arena = Arena::new();
        let truth = arena.bool_constant(true);
        for _ in 0..3 {
            let answer = process.solve(&arena, &[truth]);
            assert!(matches!(answer, SmtAnswer::Unsat));
        }
    }

    #[test]
    fn a_program_that_is_found_lazily_is_looked_for_once_and_only_when_needed() {
        static SEARCHES: AtomicUsize = AtomicUsize::new(0);
        let find = || {
            SEARCHES.fetch_add(1, Ordering::SeqCst);
            Err("it is nowhere".to_owned())
        };
        let config = SmtConfig::z3_found_by(find, 1, None);
        let mut process = SmtProcess::new(config);
        assert_eq!(SEARCHES.load(Ordering::SeqCst), 0);
        let mut arena = Arena::new();
        let truth = arena.bool_constant(true);
        for _ in 0..2 {
            let answer = process.solve(&arena, &[truth]);
            assert!(matches!(answer, SmtAnswer::Unknown(reason) if reason == "it is nowhere"));
        }
        assert_eq!(SEARCHES.load(Ordering::SeqCst), 1);
    }
}
