//! Generates the scenario text of a world that one program boots.

use everett_linux::{Argument, Contents, Machine, Route, Stdin, Subnet};
use everett_net::Prefix;
use everett_scenario::OptionKind;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::bootstrap::{SetUp, World, begin_file};
use crate::error::{Context, Error, Result, bail};
use crate::host::HostSpec;
use crate::input::host_config;
use crate::layers::Mount;
use crate::options::{OPTIONS, ScenarioKey};
use crate::spec::RunSpec;

/// Returns the text of the scenario.
pub(crate) fn world_text(args: &RunSpec, world: &World<'_>) -> Result<String> {
    let program = args.native_programs();
    let program = absolute(program.first().ok_or_else(no_program)?)?;
    let mut text = format!(
        "# The world that {} boots. Its hosts begin where the traces beside this file lead.\n",
        program.display()
    );
    if let Some(file) = &args.world {
        let file = absolute(file)?;
        let folder = file.parent().unwrap_or(Path::new("/"));
        let said = std::fs::read_to_string(&file)
            .with_context(|| format!("cannot read {}", file.display()))?;
        refuse_parts(&file, &said)?;
        writeln!(text, "folder = {}\n\n{said}", quoted_path(folder)?)?;
    }
    networks(world, &mut text)?;
    for router in &world.routers {
        writeln!(text, "\n[router.{}]", key(&router.name))?;
        place("router", router, &mut text)?;
    }
    let keys = [
        format!("program = {}", quoted_path(&program)?),
        words(args)?,
        host_keys(&args.host)?,
    ];
    let mut before = None;
    for host in &world.hosts {
        host_text(host, &keys, start(before, host), &mut text)?;
        before = Some(host);
    }
    Ok(text)
}

fn no_program() -> Error {
    Error::Program("there is no program".to_owned())
}

/// Refuses tables of hosts, networks and routers: the program declares these, and TOML allows each
/// table only once.
fn refuse_parts(file: &Path, said: &str) -> Result<()> {
    for (line, number) in said.lines().zip(1..) {
        let Some(name) = line.trim_start().strip_prefix('[') else {
            continue;
        };
        let part = name.split(['.', ']']).next().unwrap_or_default().trim();
        if matches!(part, "host" | "network" | "router") {
            bail!(
                Boot,
                "{}:{number}: hosts, networks and routers are the program's. What else there is to say of one goes to the command line \
                 (`settings` {part}.NAME.KEY=VALUE), what holds for all hosts to [defaults]",
                file.display()
            );
        }
    }
    Ok(())
}

/// Returns when a host starts: servers one after the other, each when the previous ones are
/// blocked, and after them all others together.
fn start(before: Option<&&SetUp>, host: &SetUp) -> &'static str {
    match before {
        None => "0ms",
        Some(before) if host.setup.is_server || before.setup.is_server => "blocked",
        Some(_) => "together",
    }
}

fn host_text(host: &SetUp, keys: &[String], start: &str, text: &mut String) -> Result<()> {
    writeln!(text, "\n[host.{}]", key(host.name()))?;
    for key in keys.iter().filter(|key| !key.is_empty()) {
        writeln!(text, "{}", key.trim_end())?;
    }
    writeln!(text, "begin = {}", quoted(&begin_file(host.name())))?;
    writeln!(text, "start = {}", quoted(start))?;
    place("host", &host.setup.own, text)
}

/// Returns the keys that give a host the options of a program.
fn host_keys(host: &HostSpec) -> Result<String> {
    let mut text = String::new();
    let mut key = |name: &str, value: String| {
        if value != "[]" {
            text.push_str(&format!("{name} = {value}\n"));
        }
    };
    for program in &host.program {
        let file = quoted_path(&absolute(&program.file)?)?;
        key(&format!("programs.{}", quoted(&program.path)), file);
    }
    let (mut mounts, mut folders) = (Vec::new(), Vec::new());
    for (from, to) in host.ro.iter().map(Mount::ends) {
        let (from, to) = (from.as_os_str(), to.as_os_str());
        let ends = [from, to].join(OsStr::new("="));
        mounts.push(quoted_path(Path::new(&ends))?);
    }
    for (from, _) in host.files.iter().map(Mount::ends) {
        folders.push(quoted_path(from)?);
    }
    key("ro", list(mounts));
    key("files", list(folders));
    for (from, to) in host.file.iter().map(Mount::ends) {
        key(&format!("file.{}", quoted_path(to)?), quoted_path(from)?);
    }
    if let Some(cwd) = &host.cwd {
        key("cwd", quoted_path(cwd)?);
    }
    let said = serde_json::to_value(host)?;
    let usual = serde_json::to_value(HostSpec::default())?;
    for option in OPTIONS {
        let said = said.get(option.field);
        if let Some(ScenarioKey {
            table: "host",
            name,
            kind: Some(kind),
        }) = option.scenario_key
            && said != usual.get(option.field)
            && let Some(value) = said
        {
            key(name, in_toml(kind, value)?);
        }
    }
    Ok(text)
}

/// Returns the value of an option in a scenario.
fn in_toml(kind: OptionKind, value: &serde_json::Value) -> Result<String> {
    Ok(match kind {
        OptionKind::Duration => {
            let time: Duration = serde_json::from_value(value.clone())?;
            quoted(&format!("{}ns", time.as_nanos()))
        }
        // JSON's texts, numbers, flags and arrays mean the same in TOML.
        _ => value.to_string(),
    })
}

/// Returns a quoted string. JSON's escapes mean the same in TOML.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Returns a key, quoted if necessary.
fn key(name: &str) -> String {
    let is_bare = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    match !name.is_empty() && name.bytes().all(is_bare) {
        true => name.to_owned(),
        false => quoted(name),
    }
}

/// Returns a quoted path.
fn quoted_path(path: &Path) -> Result<String> {
    match path.to_str() {
        Some(path) => Ok(quoted(path)),
        None => bail!(Boot, "{} is not valid UTF-8", path.display()),
    }
}

fn quoted_bytes(bytes: &[u8]) -> Result<String> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(quoted(text)),
        Err(_) => bail!(
            Boot,
            "{} is not valid UTF-8",
            String::from_utf8_lossy(bytes)
        ),
    }
}

/// Formats an array.
fn list(items: impl IntoIterator<Item = String>) -> String {
    let items: Vec<String> = items.into_iter().collect();
    format!("[{}]", items.join(", "))
}

fn subnet_of(subnet: &Subnet) -> Result<Prefix> {
    let prefix = Prefix::new(subnet.address, subnet.prefix_len);
    prefix.ok_or_else(|| Error::Boot("an address has a prefix that is too long".to_owned()))
}

/// Writes the networks with at least one machine, and the subnets of the addresses there.
fn networks(world: &World<'_>, text: &mut String) -> Result<()> {
    let hosts = world.hosts.iter().map(|host| &host.setup.own);
    let machines = hosts.chain(world.routers.iter().copied());
    let interfaces = machines.flat_map(|machine| &machine.interfaces);
    let mut subnets: BTreeMap<&str, Vec<Prefix>> = BTreeMap::new();
    for interface in interfaces {
        let known = subnets.entry(&interface.network).or_default();
        for address in &interface.addresses {
            let subnet = subnet_of(address)?.subnet();
            if !known.contains(&subnet) {
                known.push(subnet);
            }
        }
    }
    for (name, subnets) in subnets {
        if subnets.is_empty() {
            bail!(
                Boot,
                "nobody has an address on network {name}: give its interfaces some with klee_net_add_ipv4_address"
            );
        }
        let subnets = subnets.iter().map(|subnet| quoted(&subnet.to_string()));
        writeln!(
            text,
            "\n[network.{}]\nsubnets = {}",
            key(name),
            list(subnets)
        )?;
    }
    Ok(())
}

/// Writes the interfaces and routes of a host or router.
fn place(what: &str, machine: &Machine, text: &mut String) -> Result<()> {
    let name = key(&machine.name);
    let routes: Result<Vec<String>> = machine.routes.iter().map(route).collect();
    match routes?.as_slice() {
        [] => writeln!(text, "routes = {{}}")?,
        routes => writeln!(text, "routes = {{ {} }}", routes.join(", "))?,
    }
    for interface in &machine.interfaces {
        let addresses: Result<Vec<Prefix>> = interface.addresses.iter().map(subnet_of).collect();
        let addresses = addresses?.into_iter().map(|it| quoted(&it.to_string()));
        writeln!(
            text,
            "[{what}.{name}.interface.eth{}]\nnetwork = {}\naddresses = {}",
            interface.number,
            quoted(&interface.network),
            list(addresses)
        )?;
    }
    Ok(())
}

fn route(route: &Route) -> Result<String> {
    let to = quoted(&subnet_of(&route.to)?.subnet().to_string());
    Ok(format!("{to} = {}", quoted(&route.via.to_string())))
}

/// Returns the arguments of the program and its environment.
fn words(args: &RunSpec) -> Result<String> {
    let config = host_config(args.program(), args.arguments(), &args.host.env)?;
    let mut text = String::new();
    let words: Result<Vec<String>> = config.args.iter().skip(1).map(argument).collect();
    let (words, env) = (words?, config.env.iter().map(variable));
    if !words.is_empty() {
        writeln!(text, "args = {}", list(words))?;
    }
    for variable in env {
        writeln!(text, "env.{}", variable?)?;
    }
    if let Stdin::Symbolic { size } = config.stdin {
        writeln!(text, "stdin = {{ symbolic = {size} }}")?;
    }
    // Otherwise the options of the host say this.
    if args.host.faults == 0 && config.options.faults.most > 0 {
        writeln!(text, "faults = {}", config.options.faults.most)?;
        let named = config.options.faults.only.iter();
        let named: Vec<String> = named.map(|filter| quoted(&filter.to_string())).collect();
        if args.host.fault.is_empty() {
            writeln!(text, "fault_calls = {}", list(named))?;
        }
    }
    for file in &config.files {
        let path = quoted_bytes(&file.path)?;
        match file.contents {
            Contents::Symbolic { size } => writeln!(text, "file.{path} = {{ symbolic = {size} }}")?,
            Contents::SymbolicBetween { least, most } => writeln!(
                text,
                "file.{path} = {{ symbolic = {most}, least = {least} }}"
            )?,
            _ => {}
        }
    }
    Ok(text)
}

fn argument(argument: &Argument) -> Result<String> {
    Ok(match argument {
        Argument::Concrete(bytes) => quoted_bytes(bytes)?,
        Argument::Symbolic { max_len } => format!("{{ symbolic = {max_len} }}"),
        Argument::SymbolicMany { min, max, max_len } => {
            format!("{{ symbolic = {max_len}, least = {min}, most = {max} }}")
        }
        Argument::Prefixed { .. } => bail!(Boot, "an argument cannot be symbolic in part"),
    })
}

fn variable(variable: &Argument) -> Result<String> {
    let named = |name: &[u8], value: String| Ok(format!("{} = {value}", quoted_bytes(name)?));
    match variable {
        Argument::Concrete(bytes) => {
            let at = bytes.iter().position(|byte| *byte == b'=');
            let at = at.ok_or_else(|| Error::Boot("a variable has no name".to_owned()))?;
            named(&bytes[..at], quoted_bytes(&bytes[at + 1..])?)
        }
        Argument::Prefixed {
            prefix, max_len, ..
        } => {
            let name = prefix.strip_suffix(b"=").unwrap_or(prefix);
            named(name, format!("{{ symbolic = {max_len} }}"))
        }
        _ => bail!(Boot, "a variable has no name"),
    }
}

/// Returns the absolute form of a path.
pub(crate) fn absolute(path: &Path) -> Result<PathBuf> {
    std::path::absolute(path).with_context(|| format!("{} is not a path", path.display()))
}
