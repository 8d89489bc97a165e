//! Explores clients. The exploration of a client that a limit has cut off can continue.

use everett_engine::{Explorer, ExplorerConfig, Limits, Start};
use everett_net::{HostIndex, StartTime};
use everett_trojans::{ClientOptions, Clients, Encoded, Pin};
use everett_vm::Image;
use std::collections::BTreeSet;

use super::environment::Environment;
use super::summary::ClientFigures;
use super::{Analysis, Origin, incomplete, quiet};
use crate::error::{Result, bail};

/// How often a client may send the same message before it is cut off.
const MOST_REPEATS: usize = 16;

/// The search strategy if a limit may end the exploration.
const ORDER: &str = "random-path";

/// The messages of all clients.
pub(super) struct Sent {
    pub(super) predicates: Vec<Encoded>,
    pub(super) figures: Vec<ClientFigures>,
    /// The possible senders of the unconstrained message: one for each client.
    pub(super) origins: Vec<Origin>,
    /// Whether a limit that can be raised has cut a client off.
    pub(super) is_limited: bool,
}

/// A client, and how far it was explored.
pub(super) struct Client<'i> {
    host: HostIndex,
    explorer: Explorer<'i>,
    heard: Clients,
    /// Further messages, found in states that were explored for a class.
    pinned: BTreeSet<Encoded>,
    /// The factor by which limits were raised.
    factor: u64,
    /// Why the exploration is incomplete, if it is.
    cut_off: Option<String>,
    depends_on: Vec<String>,
}

impl Client<'_> {
    /// Returns whether a limit that can be raised has cut it off.
    pub(super) fn is_limited(&self) -> bool {
        let names = ["max-paths", "max-forks", "max-depth"];
        let cut_off = self.cut_off.as_deref().unwrap_or_default();
        names.iter().any(|name| cut_off.ends_with(name))
    }

    /// Returns whether states were dropped that a continuation would need.
    fn has_lost_states(&self) -> bool {
        self.explorer.limits_hit().contains(&"max-depth")
    }

    /// Returns all messages that the client sends.
    pub(super) fn sent(&self) -> BTreeSet<Encoded> {
        self.heard.sent.union(&self.pinned).cloned().collect()
    }

    fn figures(&self, name: String) -> ClientFigures {
        let pinned = self.pinned.difference(&self.heard.sent).count();
        ClientFigures {
            name,
            raised: (self.factor > 1).then_some(self.factor),
            paths: self.explorer.statistics().forks + 1,
            messages: self.heard.messages,
            predicates: self.heard.sent.len() + pinned,
            pinned: (pinned > 0).then_some(pinned),
            explored: self.cut_off.is_none(),
            cut_off: self.cut_off.clone(),
            depends_on: self.depends_on.clone(),
        }
    }
}

/// The configuration of client explorations, and the images of all programs.
pub(super) type Prepared<'i> = (ExplorerConfig, &'i [Image]);

impl Analysis<'_> {
    /// Creates the listener of a client.
    fn listener(&self, client: HostIndex) -> Clients {
        Clients::new(ClientOptions {
            client,
            name: self.name(client),
            server: self.setup.server,
            port: self.setup.port,
            is_stream: self.setup.is_stream,
            number: self.setup.number,
            // In a later state of the server, clients have already heard from it.
            ever: self.setup.ever || self.setup.has_state(),
            is_alone: self.scenario.hosts.len() == self.setup.clients.len() + 1,
            most_repeats: MOST_REPEATS,
        })
    }

    /// Creates the exploration of one client, with the server but without the other clients.
    fn explorer<'i>(
        &self,
        client: HostIndex,
        environment: Environment,
        config: &ExplorerConfig,
        images: &'i [Image],
    ) -> Result<Explorer<'i>> {
        let mut config = quiet(config);
        for other in self.setup.clients.iter().filter(|other| **other != client) {
            // The other client never starts.
            config.hosts[other.index()].start = StartTime::At(u64::MAX);
        }
        // Random draws, scheduling times and uninitialised memory are not the analyst's choice: a
        // client message counts with any of their values.
        let host = &mut config.hosts[client.index()].config;
        host.options.symbolic_draws = true;
        environment.apply(host);
        config.vm.symbolic_memory = !config.vm.check_uninitialised;
        let is_limited = config.limits.max_forks.is_some() || config.limits.max_paths.is_some();
        if is_limited && config.search.is_empty() {
            // Ordered by their clocks, all paths advance together, and perhaps none gets far enough
            // to send.
            config.search = vec![ORDER.to_owned()];
        }
        Ok(Explorer::new(images, config, Start::Beginning)?)
    }

    /// Explores until nothing is left or a limit is reached. Returns why the exploration is
    /// incomplete, if it is.
    fn heard(&self, explorer: &mut Explorer<'_>, listener: &mut Clients) -> Option<String> {
        let stopped = explorer.run(&self.session.stop, listener);
        let cut_off = incomplete(explorer, stopped);
        let repeats = || format!("it sends the same message more than {MOST_REPEATS} times");
        cut_off.or_else(|| listener.is_cut.then(repeats))
    }

    /// Explores one client with these values of its environment. Also returns why the exploration
    /// is incomplete, if it is.
    pub(super) fn client(
        &self,
        client: HostIndex,
        environment: Environment,
        config: &ExplorerConfig,
        images: &[Image],
    ) -> Result<(Clients, Option<String>)> {
        let mut listener = self.listener(client);
        let mut explorer = self.explorer(client, environment, config, images)?;
        let cut_off = self.heard(&mut explorer, &mut listener);
        Ok((listener, cut_off))
    }

    /// Explores each client.
    pub(super) fn clients<'i>(&self, world: &Prepared<'i>) -> Result<Vec<Client<'i>>> {
        let mut all = Vec::new();
        for host in &self.setup.clients {
            let explorer = self.explorer(*host, Environment::default(), &world.0, world.1)?;
            let mut client = Client {
                host: *host,
                explorer,
                heard: self.listener(*host),
                pinned: BTreeSet::new(),
                factor: 1,
                cut_off: None,
                depends_on: Vec::new(),
            };
            self.explore(&mut client, world)?;
            all.push(client);
        }
        Ok(all)
    }

    fn explore(&self, client: &mut Client<'_>, world: &Prepared<'_>) -> Result<()> {
        client.cut_off = self.heard(&mut client.explorer, &mut client.heard);
        client.depends_on.clear();
        // If the client was cut off, the result is uncertain anyway.
        if client.cut_off.is_none() {
            match self.depends_on(client.host, &client.heard.sent, &world.0, world.1)? {
                Ok(names) => client.depends_on = names,
                Err(why) => client.cut_off = Some(format!("with another environment: {why}")),
            }
        }
        Ok(())
    }

    /// Continues the exploration of a client that was cut off, with the scenario's limits times a
    /// factor. Starts from the beginning if states were dropped.
    pub(super) fn explore_further<'i>(
        &self,
        client: &mut Client<'i>,
        world: &Prepared<'i>,
        factor: u64,
    ) -> Result<()> {
        let world = raised(world, factor);
        match client.has_lost_states() {
            true => {
                let usual = Environment::default();
                client.explorer = self.explorer(client.host, usual, &world.0, world.1)?;
                client.heard = self.listener(client.host);
            }
            false => client.explorer.set_limits(world.0.limits.clone()),
        }
        client.factor = factor;
        self.explore(client, &world)
    }

    /// Explores the states of a client in which one of the pins is possible. Messages found there
    /// count. The absence of a message there proves nothing, because other states may send it.
    pub(super) fn explore_pinned<'i>(
        &self,
        client: &mut Client<'i>,
        pins: Vec<Pin>,
        world: &Prepared<'i>,
        factor: u64,
    ) -> Result<()> {
        let world = raised(world, factor);
        let usual = Environment::default();
        let mut explorer = self.explorer(client.host, usual, &world.0, world.1)?;
        let mut listener = self.listener(client.host).pinned_to(pins);
        self.heard(&mut explorer, &mut listener);
        client.pinned.extend(listener.sent);
        Ok(())
    }

    /// Returns what all clients send.
    pub(super) fn sent(&self, clients: &[Client<'_>]) -> Sent {
        let all = || clients.iter();
        Sent {
            predicates: all().flat_map(Client::sent).collect(),
            figures: all().map(|one| one.figures(self.name(one.host))).collect(),
            origins: all().map(|one| Origin::of(one.host, &one.heard)).collect(),
            is_limited: all().any(Client::is_limited),
        }
    }

    /// Returns whether a client has sent nothing so far. In the last round, that is an error.
    pub(super) fn is_silent(&self, sent: &Sent, is_last: bool) -> Result<bool> {
        let mut silent = sent.figures.iter();
        let silent = silent.find(|figures| figures.messages == 0);
        if let Some(silent) = silent.filter(|_| is_last) {
            bail!(
                Usage,
                "client {} never sends a message to port {} of {}: is its input symbolic, are protocol and port right?",
                silent.name,
                self.setup.port,
                self.name(self.setup.server)
            );
        }
        Ok(silent.is_some())
    }
}

/// Returns the configuration with the limits on the work of the search multiplied.
fn raised<'i>((config, images): &Prepared<'i>, factor: u64) -> Prepared<'i> {
    let mut config = config.clone();
    raise(&mut config.limits, factor);
    (config, images)
}

fn raise(limits: &mut Limits, factor: u64) {
    let counts = [&mut limits.max_paths, &mut limits.max_forks];
    for count in counts.into_iter().flatten() {
        *count = count.saturating_mul(factor);
    }
    if let Some(depth) = &mut limits.max_depth {
        *depth = depth.saturating_mul(u32::try_from(factor).unwrap_or(u32::MAX));
    }
}
