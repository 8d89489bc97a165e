//! Sends the example message of each class to the native server, and writes the folder of the
//! class: trace, message, description.

use everett_engine::{Trace, TraceInput};
use everett_net::HostIndex;
use everett_report::{Folder, pcap};
use everett_solver::SolverConfig;
use everett_trojans::{Answer, StoredPath};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};

use super::afterwards::Found;
use super::state_time::SentAt;
use super::summary::{TrojanEntry, TrojansSummary};
use super::{Analysis, Class, LENGTH_ARGUMENT, Origin};
use crate::capture::capture;
use crate::error::Result;
use crate::explore::prepare;
use crate::follow::{Model, Seen};
use crate::native_world::NativeWorld;
use crate::spec::{BuildSpec, RunSpec};
use crate::trace::WorldTrace;
use crate::verdict::Verdict;

/// The name of the sender's input.
const MESSAGE: &str = "message";

/// Confirms all classes, and writes their folders.
pub(super) fn confirm(
    analysis: &Analysis<'_>,
    origins: &[Origin],
    classes: &[Class],
    folder: &Folder,
    summary: &mut TrojansSummary,
) -> Result<()> {
    let trojans = classes
        .iter()
        .filter_map(|class| match &class.accepted.answer {
            Answer::Trojan(found) => Some((class, found.message.clone())),
            _ => None,
        });
    let mut last: Option<(Key, Prepared)> = None;
    for ((class, message), entry) in trojans.zip(&mut summary.trojans) {
        let key = (class.senders.first().copied(), class.sent_at, class.length);
        let mut of_sender = origins.iter();
        let Some(origin) = of_sender.find(|origin| Some(origin.client) == key.0) else {
            continue;
        };
        let prepared = match last.take() {
            Some((before, prepared)) if before == key => prepared,
            _ => Prepared::of(analysis, &origin.at(class.sent_at), class.length)?,
        };
        one(analysis, &prepared, class, &message, folder, entry)?;
        last = Some((key, prepared));
    }
    Ok(())
}

/// The sender, the time and the length of messages.
type Key = (Option<HostIndex>, SentAt, u32);

/// A run with messages of one length from one sender, and its native programs.
struct Prepared {
    run: RunSpec,
    config: everett_engine::ExplorerConfig,
    images: Vec<everett_vm::Image>,
    native: NativeWorld,
}

impl Prepared {
    fn of(analysis: &Analysis<'_>, origin: &Origin, length: u32) -> Result<Prepared> {
        let mut run = analysis.with_sender(origin)?;
        if let Some(sender) = &mut run.sender {
            sender.args[LENGTH_ARGUMENT - 1] = length.to_string();
        }
        let (config, images) = prepare(&run, analysis.session)?;
        let native = NativeWorld::of(&run, &BuildSpec::default(), analysis.session)?;
        Ok(Prepared {
            run,
            config,
            images,
            native,
        })
    }

    /// Returns what the native programs do with a trace.
    fn confirmed(&self, trace: &WorldTrace) -> String {
        match self.native.confirm(trace) {
            (Verdict::Confirmed, Some(build)) => match build.name() {
                "plain" => format!("confirmed{}", self.replaced()),
                _ => format!("confirmed by {build}{}", self.replaced()),
            },
            (verdict, _) => verdict.reason().unwrap_or("not confirmed").to_owned(),
        }
    }

    /// Returns which functions are not executed natively, as the end of a sentence.
    fn replaced(&self) -> String {
        let hosts = self.native.hosts.iter();
        let functions = hosts.flat_map(|host| host.config.replaced.iter().flatten());
        let names: BTreeSet<&str> = functions.map(|function| &*function.name).collect();
        match names.is_empty() {
            true => String::new(),
            false => {
                let names: Vec<&str> = names.into_iter().collect();
                format!(" with {} replaced", names.join(", "))
            }
        }
    }
}

fn one(
    analysis: &Analysis<'_>,
    prepared: &Prepared,
    class: &Class,
    message: &[u8],
    folder: &Folder,
    entry: &mut TrojanEntry,
) -> Result<()> {
    let sender = class.senders.first().copied();
    let path = &class.accepted.path;
    let trace = trace(analysis, (sender, message), &class.accepted.trace, path)?;
    let model = Model::new(prepared.config.clone(), &prepared.images);
    let seen = model.follow(&trace)?;
    let complete = match (seen.findings.first(), seen.ends.last()) {
        (Some(found), _) => WorldTrace::of(found, false),
        (None, Some(ends)) => WorldTrace::of_hosts(ends.clone()),
        (None, None) => trace,
    };
    if !analysis.spec.no_confirm {
        entry.confirmed = prepared.confirmed(&complete);
    }
    let here = Folder::create(&folder.path().join(&entry.dir))?;
    here.write("trojan.json", &serde_json::to_vec_pretty(&entry)?)?;
    let confirmed = &entry.confirmed;
    let (trace, name) = (&complete, "trojan");
    write(
        analysis,
        prepared,
        &here,
        (seen, trace, name),
        (message, confirmed),
    )
}

/// Confirms findings that happen after the server has accepted a message, and writes their folders.
pub(super) fn findings(
    analysis: &Analysis<'_>,
    origins: &[Origin],
    found: &[Found],
    folder: &Folder,
    summary: &mut TrojansSummary,
) -> Result<()> {
    for (found, entry) in found.iter().zip(&mut summary.findings) {
        let mut classes = summary.trojans.iter();
        if let Some(class) = classes.find(|class| class.dir == entry.dir) {
            entry.confirmed.clone_from(&class.confirmed);
            continue;
        }
        let mut of_sender = origins.iter();
        let Some(origin) = of_sender.find(|origin| origin.client == found.sender) else {
            continue;
        };
        let prepared = Prepared::of(analysis, &origin.at(found.sent_at), found.length)?;
        let message = found.reached.found.as_ref().map(|found| &found.message[..]);
        let message = message.unwrap_or_default();
        let sent = (Some(found.sender), message);
        let path = &found.reached.path;
        let trace = trace(analysis, sent, &found.reached.trace, path)?;
        let model = Model::new(prepared.config.clone(), &prepared.images);
        let seen = model.follow(&trace)?;
        let server = analysis.name(analysis.setup.server);
        let of_server = seen.findings.iter().find(|found| found.host == server);
        let complete = of_server.map(|found| WorldTrace::of(found, false));
        if !analysis.spec.no_confirm {
            entry.confirmed = match &complete {
                Some(complete) => prepared.confirmed(complete),
                None => "another world was reached than the one explored".to_owned(),
            };
        }
        let here = Folder::create(&folder.path().join(&entry.dir))?;
        here.write("finding.json", &serde_json::to_vec_pretty(&entry)?)?;
        let complete = complete.unwrap_or(trace);
        let (trace, name) = (&complete, "finding");
        let confirmed = &entry.confirmed;
        write(
            analysis,
            &prepared,
            &here,
            (seen, trace, name),
            (message, confirmed),
        )?;
    }
    Ok(())
}

/// Writes the files of a message: the message, its trace, and the files of a run, so that `everett
/// test` works on the folder. The test passes once the finding or acceptance no longer happens.
fn write(
    analysis: &Analysis<'_>,
    prepared: &Prepared,
    here: &Folder,
    (seen, trace, name): (Seen, &WorldTrace, &str),
    (message, confirmed): (&[u8], &str),
) -> Result<()> {
    let kind = trace.kind().unwrap_or_default().to_owned();
    let (messages, _) = seen.on_the_way(trace);
    let packets = pcap(&capture(&analysis.name(analysis.setup.server), &messages));
    prepared.run.write(here)?;
    here.write(&trace.file(name), &trace.to_json())?;
    here.write("message.bin", message)?;
    here.write("message.pcap", &packets)?;
    let confirmed = confirmed.split(' ').next().unwrap_or_default();
    let finding = json!({ "dir": "", "kind": kind, "confirmed": confirmed });
    let summary = json!({ "findings": [finding] });
    here.write("summary.json", &serde_json::to_vec_pretty(&summary)?)?;
    Ok(())
}

/// Builds the trace of a message: the sender's input, the choices of the server, and the values of
/// other inputs that the server path requires.
fn trace(
    analysis: &Analysis<'_>,
    (sender, message): (Option<HostIndex>, &[u8]),
    server: &Trace,
    path: &StoredPath,
) -> Result<WorldTrace> {
    let length = message.len() as u32;
    let mut search = analysis.search(length, &[], &SolverConfig::default())?;
    let terms = search.stored(path).unwrap_or_default();
    let others = search.inputs_with(&terms, message);
    let name = |host: Option<_>| host.map_or(String::new(), |host| analysis.name(host));
    let (sender, server_name) = (name(sender), analysis.name(analysis.setup.server));
    let mut inputs: BTreeMap<String, Vec<TraceInput>> = BTreeMap::new();
    inputs.insert(server_name.clone(), server.inputs.iter().cloned().collect());
    for other in others {
        let of_host = inputs.entry(other.owner.clone()).or_default();
        let is_it = |input: &TraceInput| *input.name == *other.name;
        let known = of_host.get_mut(other.ordinal as usize);
        match known.filter(|input| is_it(input)) {
            Some(input) => other.set(&mut input.bytes),
            None => {
                let mut bytes = vec![0; other.size as usize];
                other.set(&mut bytes);
                let name = other.name.as_str().into();
                of_host.push(TraceInput { name, bytes });
            }
        }
    }
    if !message.is_empty() {
        inputs.entry(sender.clone()).or_default().push(TraceInput {
            name: MESSAGE.into(),
            bytes: message.to_vec(),
        });
    }
    inputs.entry(sender).or_default();
    let traces = inputs.into_iter().map(|(host, inputs)| {
        let base = match host == server_name {
            true => Trace {
                pending: None,
                ..server.clone()
            },
            false => Trace::default(),
        };
        let inputs = inputs.into_iter().collect();
        (host, Trace { inputs, ..base })
    });
    Ok(WorldTrace::of_hosts(traces.collect()))
}
