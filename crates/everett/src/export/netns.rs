//! `export` of a world: a shell script that builds the world's network with Linux network
//! namespaces and runs its programs there, without Everett. Time is that of the real machine.

use everett_engine::{Trace, TraceChoice};
use everett_linux::PacketKind;
use everett_native::NativeHost;
use everett_net::{Interface, StaticRoute, Topology};
use everett_sim::{Expects, Message, first_expects};
use everett_toolchain::Checks;
use everett_vm::ChoiceSite;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::error::{Context, Result, bail};
use crate::export::programs::{build_with, further_process, place};
use crate::export::{EXIT_CODES, HostStart, Sign, confirmed_by, word, write_contents};
use crate::native_world::{NativeWorld, Replayed};
use crate::session::Session;
use crate::spec::{BuildSpec, RunSpec};
use crate::trace::WorldTrace;

/// The time for which the script waits for the host of the finding, in seconds.
const WAITS: u32 = 10;

/// Returns the script for a world.
pub(crate) fn script(run: &RunSpec, session: &Session, path: &Path) -> Result<String> {
    let trace = WorldTrace::read(path, false)?;
    let world = NativeWorld::of(run, &BuildSpec::default(), session)?;
    // The replay shows which packets are lost.
    let replayed = world.replay(&trace)?;
    let messages = replayed
        .seen
        .as_ref()
        .map_or(&[][..], |seen| &seen.messages);
    let Some(around) = &world.context else {
        bail!(NotExportable, "a program has no network");
    };
    let topology = &around.scenario.topology;
    let (losses, beyond) = what_went_wrong(&trace, messages);
    let mut text = head(&trace, &losses, &beyond, &replayed);
    network(topology, &mut text);
    for loss in &losses {
        loss.write(topology, &mut text);
    }
    for (number, host) in world.hosts.iter().enumerate() {
        let given = trace.hosts.get(&host.name).cloned().unwrap_or_default();
        let is_its = trace
            .finding
            .as_ref()
            .is_some_and(|wrong| wrong.host == host.name);
        let checks = is_its.then(|| replayed.confirming_checks()).flatten();
        start(number, (host, checks), topology, &given, &mut text)
            .with_context(|| format!("host {}", host.name))?;
    }
    finish(&world, &trace, replayed.confirming_checks(), &mut text);
    Ok(text)
}

/// A datagram to drop, identified by sender, receiver, port and ordinal.
struct Loss {
    from: String,
    to: String,
    port: u16,
    number: usize,
}

impl Loss {
    fn write(&self, topology: &Topology, text: &mut String) {
        let hosts = topology.hosts().iter();
        let mut places = hosts.zip(0..).filter(|(host, _)| host.name == self.to);
        let sender = topology.host_by_name(&self.from);
        let addresses = sender.map(|sender| topology.addresses(sender).collect::<Vec<_>>());
        let source = addresses.and_then(|all| all.into_iter().find(|address| address.is_ipv4()));
        let (Some((_, at)), Some(source)) = (places.next(), source) else {
            return;
        };
        let _ = writeln!(
            text,
            "ip netns exec $p-h{at} iptables -A INPUT -p udp -s {source} --dport {} -m statistic --mode nth \
             --every 1000000 --packet {} -j DROP ||\n    echo \"a packet from {} to {} is not lost: iptables cannot be used\"",
            self.port, self.number, self.from, self.to
        );
    }
}

/// Returns the losses that a script can reproduce, and descriptions of the faults that it cannot.
fn what_went_wrong(trace: &WorldTrace, messages: &[Message]) -> (Vec<Loss>, Vec<String>) {
    let (mut losses, mut beyond) = (Vec::new(), Vec::new());
    let mut counts: BTreeMap<(&str, &str, u16), usize> = BTreeMap::new();
    for message in messages {
        let Some(packet) = &message.packet else {
            beyond.push(format!("host {} {}", message.from, message.what));
            continue;
        };
        let (from, to, port) = (message.from.as_str(), message.to.as_str(), packet.to.port());
        let is_datagram = matches!(packet.kind, PacketKind::Datagram(_));
        let number = counts.entry((from, to, port)).or_default();
        *number += usize::from(is_datagram);
        let (from, to) = (from.to_owned(), to.to_owned());
        match message.note() {
            None => {}
            Some(_) if message.is_lost && is_datagram && packet.to.is_ipv4() => losses.push(Loss {
                from,
                to,
                port,
                number: *number - 1,
            }),
            Some(note) => beyond.push(format!("{from} → {to}: {}: {note}", message.what)),
        }
    }
    for (name, trace) in &trace.hosts {
        let others = trace.choices.iter().filter(|choice| deviates(choice));
        beyond.extend(others.map(|choice| format!("host {name}: {}", choice.describe())));
    }
    (losses, beyond)
}

/// Returns whether a choice is not the default and concerns neither inputs nor packets, which
/// messages cover.
fn deviates(choice: &TraceChoice) -> bool {
    let site = &choice.site;
    let is_told = site.is_about_inputs() || matches!(site, ChoiceSite::PacketFault { .. });
    choice.picked > 0 && !is_told
}

fn head(trace: &WorldTrace, losses: &[Loss], beyond: &[String], replayed: &Replayed) -> String {
    let mut text = String::from("#!/bin/sh\n");
    let _ = match &trace.finding {
        Some(wrong) => writeln!(
            text,
            "# host {}: {}: {}",
            wrong.host, wrong.kind, wrong.message
        ),
        None => writeln!(text, "# a world that ends well"),
    };
    text.push_str(
        "# Written by `everett export netns`; needs nothing of it, but root (or `unshare -rnm`) and iproute2. It builds the network with\n\
         # namespaces of its own and removes them at the end. Programs run in real time, so what needs exact times may go otherwise.\n",
    );
    let _ = writeln!(text, "# {EXIT_CODES}\n# {}", confirmed_by(replayed));
    for loss in losses {
        let _ = writeln!(
            text,
            "# Datagram {} from {} to port {} of {} is dropped by iptables.",
            loss.number + 1,
            loss.from,
            loss.port,
            loss.to
        );
    }
    if !beyond.is_empty() {
        text.push_str("# NOT reproduced:\n");
    }
    for what in beyond {
        let _ = writeln!(text, "#   {}", what.replace('\n', " "));
    }
    text.push_str(
        "LC_ALL=C\nexport LC_ALL\n\
         ip netns list > /dev/null || { echo 'ip (iproute2) is needed'; exit 2; }\n\
         folder=$(mktemp -d) || exit 2\n\
         p=everett$$\n\
         cleanup() {\n    for job in $jobs; do kill -9 $job 2> /dev/null; done\n    \
         for ns in $made; do ip netns pids $ns | xargs -r kill -9 2> /dev/null; ip netns del $ns; rm -rf /etc/netns/$ns; done\n    \
         rm -rf \"$folder\"\n}\n\
         trap cleanup EXIT\ntrap 'exit 3' INT TERM\n\
         made= jobs=\n\
         namespace() {\n    ip netns add $1 || { echo 'namespaces of the network cannot be made here'; exit 2; }\n    \
         made=\"$made $1\"\n    ip -n $1 link set lo up\n}\n",
    );
    text
}

/// Writes the commands that create namespaces for hosts and routers, bridges for networks, and veth
/// pairs between them.
fn network(topology: &Topology, text: &mut String) {
    text.push_str("namespace $p-net\n");
    for (at, network) in topology.networks().iter().enumerate() {
        let name = network.name.replace('\n', " ");
        let _ = writeln!(
            text,
            "# network {name}\nip -n $p-net link add br{at} type bridge && ip -n $p-net link set br{at} up || exit 2"
        );
    }
    let mut ports = 0;
    for (at, router) in topology.routers().iter().enumerate() {
        let _ = writeln!(text, "# router {}\nnamespace $p-r{at}", router.name);
        let _ = writeln!(
            text,
            "ip netns exec $p-r{at} sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1"
        );
        let node = format!("$p-r{at}");
        connect(
            topology,
            &node,
            &router.interfaces,
            &router.routes,
            &mut ports,
            text,
        );
    }
    for (at, host) in topology.hosts().iter().enumerate() {
        let _ = writeln!(text, "# host {}\nnamespace $p-h{at}", host.name);
        let node = format!("$p-h{at}");
        connect(
            topology,
            &node,
            &host.interfaces,
            &host.routes,
            &mut ports,
            text,
        );
    }
}

fn connect(
    topology: &Topology,
    node: &str,
    interfaces: &[Interface],
    routes: &[StaticRoute],
    ports: &mut usize,
    text: &mut String,
) {
    for (at, interface) in interfaces.iter().enumerate() {
        let (network, port) = (topology.network(interface.network), *ports);
        *ports += 1;
        let (bridge, mtu) = (
            interface.network.index(),
            interface.mtu.unwrap_or(network.mtu),
        );
        let _ = writeln!(
            text,
            "ip -n $p-net link add v{port} type veth peer name eth{at} netns {node} || exit 2\n\
             ip -n $p-net link set v{port} master br{bridge} up\n\
             ip -n {node} link set eth{at} mtu {mtu} up"
        );
        for address in &interface.addresses {
            let nodad = if address.address().is_ipv6() {
                " nodad"
            } else {
                ""
            };
            let _ = writeln!(
                text,
                "ip -n {node} addr add {}/{} dev eth{at}{nodad}",
                address.address(),
                address.length()
            );
        }
        let _ = writeln!(
            text,
            "tc -n {node} qdisc add dev eth{at} root netem delay {}us 2> /dev/null || late=\"the latency of networks\"",
            network.latency_ns.div_ceil(1000)
        );
    }
    for route in routes {
        let _ = writeln!(
            text,
            "ip -n {node} route add {}/{} via {}",
            route.to.address(),
            route.to.length(),
            route.via
        );
    }
}

/// Writes the commands that start the programs of a host in the background once the earlier ones
/// wait.
fn start(
    number: usize,
    (host, checks): (&NativeHost, Option<Checks>),
    topology: &Topology,
    trace: &Trace,
    text: &mut String,
) -> Result<()> {
    let config = &host.config.host;
    let natives = &host.config.programs;
    let program = build_with(&natives[0], checks)?;
    let _ = writeln!(
        text,
        "# {} starts\nmkdir -p \"$folder/h{number}/cwd\" /etc/netns/$p-h{number} && cd \"$folder/h{number}/cwd\" || exit 2",
        host.name
    );
    let hosts = topology.hosts_file().into_bytes();
    write_contents(text, &hosts, &format!("/etc/netns/$p-h{number}/hosts"));
    place(config, natives, checks, text)?;
    let files = config.files.iter();
    let start = HostStart {
        host: config,
        trace,
        folder: &format!("$folder/h{number}"),
        program: &word(program.as_os_str().as_bytes()),
        words: vec![host.name.clone()],
    };
    let others = start.write(files.filter(|spec| spec.path != b"/etc/hosts"), text)?;
    let run = |job: &str, stdin: &str, text: &mut String| {
        let _ = writeln!(
            text,
            "ip netns exec $p-h{number} \"$@\" < \"$folder/h{number}/{stdin}\" >> \"$folder/h{number}/out\" 2>&1 &\n\
             {job}=$!\njobs=\"$jobs $!\""
        );
    };
    run(&format!("job{number}"), "stdin", text);
    for ((at, other), start) in config.others.iter().enumerate().zip(&others) {
        let Some(native) = natives.get(usize::from(other.image.0)) else {
            bail!(NotExportable, "a process has no native program");
        };
        let program = build_with(native, checks)?;
        let stdin = format!("stdin-{at}");
        let cwd = format!("$folder/h{number}/cwd");
        let places = (cwd.as_str(), &*format!("$folder/h{number}/{stdin}"));
        further_process((config, other), &program, start, places, text)?;
        run(&format!("job{number}_{at}"), &stdin, text);
    }
    text.push_str("sleep 0.3\n");
    Ok(())
}

/// Writes the commands that wait for the host of the finding, or for all hosts, and report how they
/// ended.
fn finish(world: &NativeWorld, trace: &WorldTrace, checks: Option<Checks>, text: &mut String) {
    let _ = writeln!(
        text,
        "[ -z \"$late\" ] || echo \"not reproduced: $late (tc cannot be used)\"\n\
         # How a host ended: its exit status, or 124 if it goes on.\n\
         ended() {{\n    tries=0\n    while kill -0 $1 2> /dev/null && [ $tries -lt {} ]; do sleep 0.1; tries=$((tries + 1)); done\n    \
         if kill -0 $1 2> /dev/null; then status=124; else wait $1 2> /dev/null; status=$?; fi\n}}",
        WAITS * 10
    );
    let found = trace.finding.as_ref();
    let at = found.and_then(|wrong| world.hosts.iter().position(|host| host.name == wrong.host));
    if let Some(at) = at {
        let _ = writeln!(text, "ended $job{at}\nwrong=$status");
        // The signal may have ended another process of the host.
        for other in 0..world.hosts[at].config.host.others.len() {
            let _ = writeln!(
                text,
                "if [ $wrong -lt 128 ]; then ended $job{at}_{other}; [ $status -lt 128 ] || wrong=$status; fi"
            );
        }
    }
    for (number, host) in world.hosts.iter().enumerate() {
        if at.is_none() {
            let _ = writeln!(text, "ended $job{number}");
        }
        let _ = writeln!(
            text,
            "sed 's/^/{}: /' \"$folder/h{number}/out\"",
            host.name.replace('/', "_")
        );
    }
    let (Some(at), Some(wrong)) = (at, found) else {
        text.push_str("exit 0\n");
        return;
    };
    let end = trace
        .hosts
        .get(&wrong.host)
        .and_then(|trace| trace.end.as_ref());
    let name = &world.hosts[at].name;
    let sign = match wrong.kind.as_str() {
        "expectation" => {
            if let Some(Expects::Exit(Some(wanted))) = first_expects(&world.hosts[at].expects) {
                let _ = writeln!(
                    text,
                    "if [ $wrong -ne {wanted} ]; then echo \"it happened: {name}: exit status $wrong\"; exit 1; fi\n\
                     echo \"it did not happen: {name}: exit status $wrong\"\nexit 0"
                );
                return;
            }
            Sign::of(None, None)
        }
        _ => Sign::of(end, checks),
    };
    if sign.is_unseen() {
        let _ = writeln!(
            text,
            "# How the host ends says nothing, or not all, about it.\n\
             echo \"{name}: exit status $wrong, which does not say whether it happened\"\nexit 2"
        );
        return;
    }
    text.push_str("status=$wrong\n");
    sign.write(&format!("{name}: "), &format!("$folder/h{at}/out"), text);
}
