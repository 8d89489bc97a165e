//! Whether a native server has accepted the message of a sender (`everett trojans`): by an answer, a
//! system call, or a mark.

use everett_expr::Arena;
use everett_native::{Deed, NativeHost, WorldRun};
use everett_scenario::Accept;
use everett_trojans::{ACCEPT, Pattern, REJECT};

use crate::spec::{AcceptedBy, RunSpec};
use crate::trace::WorldTrace;
use crate::verdict::Verdict;

/// The rule of a run, with the host that sends the message.
pub(crate) struct Acceptance {
    sender: String,
    by: AcceptedBy,
}

impl Acceptance {
    /// The rule of a run, if it has one.
    pub(crate) fn of(spec: &RunSpec) -> Option<Acceptance> {
        let sender = spec.sender.as_ref()?;
        Some(Acceptance {
            sender: sender.host.clone(),
            by: sender.accepted.clone()?,
        })
    }

    /// The native server must say what it does.
    pub(crate) fn watch(&self, hosts: &mut [NativeHost]) {
        let is_watched = matches!(self.by.rule, Accept::Calls(_));
        for host in hosts {
            if host.name == self.by.server {
                host.config.host.options.stops_at_calls = is_watched;
            }
        }
    }

    /// Whether the server has accepted the message in a run.
    fn is_accepted(&self, seen: &WorldRun) -> bool {
        let AcceptedBy { server, port, rule } = &self.by;
        let messages = || seen.messages.iter();
        let mut sent = messages().filter(|message| {
            let packet = message.packet.as_ref();
            let is_it = packet
                .is_some_and(|packet| packet.from.port() == *port && packet.payload().is_some());
            is_it && message.from == self.sender && message.to == *server
        });
        let Some(arrived_ns) = sent.find_map(|message| message.arrived_ns.first()) else {
            return false;
        };
        let deeds = seen.deeds.iter();
        let deeds = deeds.filter(|(host, at_ns, _)| host == server && at_ns >= arrived_ns);
        // What comes behind a mark that rejects does not count.
        let mut rejected_ns = u64::MAX;
        let mut before: Vec<&Deed> = Vec::new();
        for (_, at_ns, deed) in deeds {
            if *deed == Deed::Mark(REJECT) {
                rejected_ns = *at_ns;
                break;
            }
            before.push(deed);
        }
        let (pattern, wanted) = match rule {
            Accept::Calls(calls) => {
                let is_call = |deed: &&Deed| {
                    let is_it = |name: &str| calls.iter().any(|call| call == name);
                    matches!(deed, Deed::Call(name) if is_it(name))
                };
                return before.iter().any(is_call);
            }
            Accept::Marks => return before.contains(&&Deed::Mark(ACCEPT)),
            Accept::Reply => (None, true),
            Accept::ReplyMatches(pattern) => (Some(pattern), true),
            Accept::ReplyOther(pattern) => (Some(pattern), false),
        };
        let mut answers = messages().filter(|message| {
            let is_answer = message.from == *server && message.to == self.sender;
            is_answer && (*arrived_ns..rejected_ns).contains(&message.sent_ns)
        });
        let answer = answers.find_map(|message| {
            let packet = message.packet.as_ref();
            let packet = packet.filter(|packet| packet.to.port() == *port)?;
            packet.payload()
        });
        let (answer, pattern) = match (answer, pattern.map(|text| Pattern::parse(text))) {
            (Some(answer), Some(Ok(pattern))) => (answer, pattern),
            (answer, None) => return answer.is_some(),
            _ => return false,
        };
        let mut arena = Arena::new();
        let bytes = answer.bytes().iter();
        let bytes: Vec<_> = bytes
            .map(|byte| arena.constant(8, u64::from(*byte)))
            .collect();
        let matches = pattern.matches(&mut arena, &bytes);
        arena.is_true(matches) == wanted
    }

    /// What a verdict on a replay is, with the rule: where the finding is not one of the server
    /// itself, the server must have accepted the message.
    pub(crate) fn judge(&self, trace: &WorldTrace, seen: &WorldRun, verdict: Verdict) -> Verdict {
        let wrong = trace.finding.as_ref();
        let is_crash = wrong.is_some_and(|wrong| wrong.host == self.by.server);
        match !is_crash && verdict == Verdict::Confirmed && !self.is_accepted(seen) {
            true => Verdict::NotReproduced(REJECTED.to_owned()),
            false => verdict,
        }
    }
}

/// What is said of a message that is not accepted.
pub(crate) const REJECTED: &str = "the server does not accept the message";
