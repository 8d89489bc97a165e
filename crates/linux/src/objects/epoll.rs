//! Epoll instances: watched descriptors and the ready list.
//!
//! An object announces new events with [`HostState::announce`], which appends its watches to the
//! ready list of each epoll instance, in the order of events. The ready list implements edge
//! triggering and determines the order of results. `epoll_wait` always reports the events that hold
//! when it is called.

use smallvec::SmallVec;
use std::collections::{BTreeMap, VecDeque};
use triomphe::Arc;

use super::{Object, OpenObject, Operations, event};
use crate::errno::Errno;
use crate::files::Target;
use crate::host::HostState;
use crate::ids::{DescriptionId, ObjectId};
use crate::outcome::Stream;
use crate::wait::{ALWAYS, WakeSource};

/// `EPOLLET`: report each new event once, not as long as the condition holds.
pub const EDGE: u32 = 1 << 31;
/// `EPOLLONESHOT`: report once, then disable.
pub const ONE_SHOT: u32 = 1 << 30;
/// `EPOLLWAKEUP`: prevent suspend; no effect here.
pub const WAKE_UP: u32 = 1 << 29;
/// `EPOLLEXCLUSIVE`: wake only one of several waiters.
pub const EXCLUSIVE: u32 = 1 << 28;
/// All bits that are not events.
const FLAGS: u32 = EDGE | ONE_SHOT | WAKE_UP | EXCLUSIVE;

/// Maximum nesting depth of epoll instances.
const MAX_NESTING: u32 = 4;

/// Key of a watch: the open file description and descriptor that it was added with.
pub type WatchKey = (DescriptionId, i32);

/// A watched descriptor (`struct epitem`).
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct EpollWatch {
    /// The object that announces the events of the descriptor.
    pub source: ObjectId,
    /// Requested events and flags.
    pub events: u32,
    /// User data that is reported with the events.
    pub data: u64,
    /// Sequence number in its set: among several watches of the same object, the latest is notified
    /// first.
    number: u64,
    /// The watch is in the ready list.
    listed: bool,
}

impl EpollWatch {
    /// Requested events; empty while the watch is disabled.
    fn interest(&self) -> u16 {
        match self.events & !FLAGS {
            0 => 0,
            events => events as u16 | ALWAYS,
        }
    }

    fn is_level(&self) -> bool {
        self.events & EDGE == 0
    }
}

/// An epoll instance.
#[derive(Clone, Debug, Default)]
pub struct Epoll {
    watches: BTreeMap<WatchKey, EpollWatch>,
    /// The ready list: watches that may have events to report, in the order of events.
    ready: VecDeque<WatchKey>,
    /// Number of watches ever added.
    added: u64,
}

impl Epoll {
    /// All watches.
    pub fn watches(&self) -> impl Iterator<Item = (&WatchKey, &EpollWatch)> {
        self.watches.iter()
    }

    /// The watch with this key.
    pub fn watch(&self, key: WatchKey) -> Option<&EpollWatch> {
        self.watches.get(&key)
    }

    fn list(&mut self, key: WatchKey) -> bool {
        match self.watches.get_mut(&key) {
            Some(watch) if !watch.listed => {
                watch.listed = true;
                self.ready.push_back(key);
                true
            }
            _ => false,
        }
    }

    fn unlist(&mut self, key: WatchKey) {
        if let Some(watch) = self.watches.get_mut(&key)
            && std::mem::take(&mut watch.listed)
        {
            self.ready.retain(|listed| *listed != key);
        }
    }
}

/// The epoll instances that watch an object, each once. Cloning is O(1).
#[derive(Clone, Debug, Default)]
pub struct Watchers {
    of: Arc<BTreeMap<ObjectId, Vec<ObjectId>>>,
}

impl Watchers {
    /// Whether nothing is watched.
    pub fn is_empty(&self) -> bool {
        self.of.is_empty()
    }
}

/// A reported event (`struct epoll_event`).
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct EpollEvent {
    /// The watch.
    pub key: WatchKey,
    /// Its events.
    pub events: u16,
    /// User data of the watch.
    pub data: u64,
}

/// Operations of an epoll instance.
pub const OPERATIONS: Operations = Operations {
    readiness,
    wake_source,
    close,
    seeks: true,
    ..Operations::CLOSED
};

/// The epoll instance with this id, if it is one.
pub fn epoll(host: &HostState, id: ObjectId) -> Option<&Epoll> {
    match host.objects.get(id.0)? {
        Object::Epoll(epoll) => Some(epoll),
        _ => None,
    }
}

fn epoll_mut(host: &mut HostState, id: ObjectId) -> Option<&mut Epoll> {
    match host.objects.get_mut(id.0)? {
        Object::Epoll(epoll) => Some(epoll),
        _ => None,
    }
}

fn readiness(host: &HostState, open: OpenObject<'_>) -> u16 {
    let Some(epoll) = epoll(host, open.object) else {
        return event::INVALID;
    };
    let tells = |(key, watch): (&WatchKey, &EpollWatch)| {
        (watch.listed || watch.is_level())
            && host.readiness_for(open.caller, key.0) & watch.interest() != 0
    };
    if epoll.watches.iter().any(tells) {
        event::IN | event::READ_NORMAL
    } else {
        0
    }
}

fn wake_source(host: &HostState, open: OpenObject<'_>, _: u16) -> WakeSource {
    let watches = epoll(host, open.object)
        .into_iter()
        .flat_map(|epoll| &epoll.watches);
    let sources = watches.map(|(key, watch)| host.wake_source_of(key.0, watch.interest()));
    sources.max().unwrap_or(WakeSource::None)
}

fn close(host: &mut HostState, open: OpenObject<'_>) {
    let sources: Vec<ObjectId> = epoll(host, open.object)
        .into_iter()
        .flat_map(|epoll| epoll.watches.values().map(|watch| watch.source))
        .collect();
    for source in sources {
        host.remove_watcher(source, open.object);
    }
    host.objects.remove(open.object.0);
}

impl HostState {
    /// The object that announces the events of an open file; `None` if it cannot be watched.
    pub fn watchable(&self, target: Target) -> Option<ObjectId> {
        match target {
            Target::Inode(id) => self.files.tree.get(id).polled.and(source(target)),
            _ => source(target),
        }
    }
}

/// The object that announces the events of an open file.
pub fn source(target: Target) -> Option<ObjectId> {
    match target {
        Target::Object(object) => Some(object),
        Target::Stdin(_) => Some(ObjectId::STDIN),
        Target::Output(Stream::Stdout) => Some(ObjectId(u32::MAX - 1)),
        Target::Output(Stream::Stderr) => Some(ObjectId(u32::MAX - 2)),
        // No file announces events: those that hold, hold from the start.
        Target::Inode(_) => Some(ObjectId(u32::MAX - 3)),
    }
}

impl HostState {
    /// Announces that an object has or may have new events, which triggers its watches.
    pub fn announce(&mut self, source: ObjectId, events: u16) {
        if !self.asynchronous.is_empty() {
            self.signal_owners(source, events);
        }
        let Some(epolls) = self.watchers.of.get(&source) else {
            return;
        };
        for id in epolls.clone().into_iter().rev() {
            if self.list_watches_of(id, source, events) {
                self.announce(id, event::IN | event::READ_NORMAL);
            }
        }
    }

    /// Appends the watches of a source to the ready list of an epoll instance. Returns whether
    /// there is one: those who wait for the instance learn of each event, also of one that the
    /// ready list has already.
    fn list_watches_of(&mut self, id: ObjectId, source: ObjectId, events: u16) -> bool {
        let Some(watcher) = epoll(self, id) else {
            return false;
        };
        let concerned = |(key, watch): &(&WatchKey, &EpollWatch)| {
            let Some(description) = self.files.description(key.0) else {
                return false;
            };
            let flags = description.flags;
            // Both ends of a pipe are one object: an event at one end does not concern the other.
            let here = events & event::READING != 0 && flags.readable()
                || events & event::WRITING != 0 && flags.writable()
                || events & !(event::READING | event::WRITING) != 0;
            watch.source == source && here && events & watch.interest() != 0
        };
        let watches = watcher.watches.iter().filter(concerned);
        let mut keys: SmallVec<[(u64, WatchKey); 4]> =
            watches.map(|(key, watch)| (watch.number, *key)).collect();
        keys.sort_unstable_by(|a, b| b.cmp(a));
        let Some(watcher) = epoll_mut(self, id) else {
            return false;
        };
        for (_, key) in &keys {
            watcher.list(*key);
        }
        !keys.is_empty()
    }

    /// Adds or changes a watch.
    pub fn watch(&mut self, id: ObjectId, key: WatchKey, source: ObjectId, events: u32, data: u64) {
        let Some(watcher) = epoll_mut(self, id) else {
            return;
        };
        watcher.added += 1;
        let number = watcher.added;
        let old = watcher.watches.get(&key);
        let watch = EpollWatch {
            source,
            events,
            data,
            number: old.map_or(number, |old| old.number),
            listed: old.is_some_and(|old| old.listed),
        };
        watcher.watches.insert(key, watch);
        let watchers = Arc::make_mut(&mut self.watchers.of)
            .entry(source)
            .or_default();
        if !watchers.contains(&id) {
            watchers.push(id);
        }
        if self.readiness(key.0) & watch.interest() != 0
            && epoll_mut(self, id).is_some_and(|watcher| watcher.list(key))
        {
            self.announce(id, event::IN | event::READ_NORMAL);
        }
    }

    /// Removes a watch.
    pub fn unwatch(&mut self, id: ObjectId, key: WatchKey) {
        let Some(watcher) = epoll_mut(self, id) else {
            return;
        };
        watcher.unlist(key);
        let Some(watch) = watcher.watches.remove(&key) else {
            return;
        };
        let others = watcher.watches.values();
        if !others.into_iter().any(|other| other.source == watch.source) {
            self.remove_watcher(watch.source, id);
        }
    }

    fn remove_watcher(&mut self, source: ObjectId, id: ObjectId) {
        let of = Arc::make_mut(&mut self.watchers.of);
        if let Some(watchers) = of.get_mut(&source) {
            watchers.retain(|watcher| *watcher != id);
            if watchers.is_empty() {
                of.remove(&source);
            }
        }
    }

    /// Removes all watches of an open file that was closed.
    pub(super) fn unwatch_closed(&mut self, closed: DescriptionId, target: Target) {
        let Some(source) = source(target) else {
            return;
        };
        for id in self.watchers.of.get(&source).cloned().unwrap_or_default() {
            let watches = epoll(self, id)
                .into_iter()
                .flat_map(|epoll| epoll.watches.keys());
            let keys: Vec<WatchKey> = watches.filter(|key| key.0 == closed).copied().collect();
            for key in keys {
                self.unwatch(id, key);
            }
        }
    }

    /// The events to report, at most `most`, in the order of events.
    pub fn ready_events(&self, id: ObjectId, most: usize) -> Vec<EpollEvent> {
        let Some(watcher) = epoll(self, id) else {
            return Vec::new();
        };
        let listed = watcher.ready.iter();
        let listed = listed.filter_map(|key| Some((key, watcher.watches.get(key)?)));
        // Adds watches whose events were never announced.
        let rest = watcher.watches.iter();
        let rest = rest.filter(|(_, watch)| !watch.listed && watch.is_level());
        let reported = listed.chain(rest).filter_map(|(key, watch)| {
            let events = self.readiness(key.0) & watch.interest();
            (events != 0).then_some(EpollEvent {
                key: *key,
                events,
                data: watch.data,
            })
        });
        reported.take(most).collect()
    }

    /// Records that events were reported: level-triggered watches go to the end of
    /// the ready list, others leave it.
    pub fn mark_reported(&mut self, id: ObjectId, reported: &[EpollEvent], most: usize) {
        let Some(watcher) = epoll(self, id) else {
            return;
        };
        // Watches that were checked and have no events leave the list too.
        let last = reported.last().filter(|_| reported.len() == most);
        let listed = watcher.ready.iter();
        let seen = match last.and_then(|last| listed.clone().position(|key| *key == last.key)) {
            Some(at) => at + 1,
            None => listed.len(),
        };
        let Some(watcher) = epoll_mut(self, id) else {
            return;
        };
        for key in watcher.ready.drain(..seen) {
            if let Some(watch) = watcher.watches.get_mut(&key) {
                watch.listed = false;
            }
        }
        for reported in reported {
            let Some(watch) = watcher.watches.get_mut(&reported.key) else {
                continue;
            };
            if watch.events & ONE_SHOT != 0 {
                watch.events &= FLAGS;
            } else if watch.is_level() && !watch.listed {
                watch.listed = true;
                watcher.ready.push_back(reported.key);
            }
        }
    }

    /// Whether an epoll instance may be added to another one: this must not
    /// create a cycle or nest too deeply.
    pub fn can_nest(&self, outer: ObjectId, inner: ObjectId) -> Result<(), Errno> {
        let depth = self.nesting(inner, outer, 0)?;
        let above = self.nesting_above(outer, 0)?;
        if depth + above + 1 > MAX_NESTING {
            return Err(Errno::ELOOP);
        }
        Ok(())
    }

    /// Nesting depth from this instance down.
    fn nesting(&self, id: ObjectId, forbidden: ObjectId, level: u32) -> Result<u32, Errno> {
        if id == forbidden || level > MAX_NESTING {
            return Err(Errno::ELOOP);
        }
        let mut depth = 0;
        for watch in epoll(self, id).into_iter().flat_map(|e| e.watches.values()) {
            if epoll(self, watch.source).is_some() {
                depth = depth.max(1 + self.nesting(watch.source, forbidden, level + 1)?);
            }
        }
        Ok(depth)
    }

    /// Nesting depth from this instance up.
    fn nesting_above(&self, id: ObjectId, level: u32) -> Result<u32, Errno> {
        if level > MAX_NESTING {
            return Err(Errno::ELOOP);
        }
        let mut depth = 0;
        for outer in self.watchers.of.get(&id).into_iter().flatten() {
            depth = depth.max(1 + self.nesting_above(*outer, level + 1)?);
        }
        Ok(depth)
    }
}
