//! Sets of descriptors that are watched for events (`epoll`).
//!
//! An object says with [`HostState::announce`] that events came to it. Whoever watches it is put on the list of
//! those that may have something to tell, in the order of what happened: that is the edge of edge-triggered
//! watches, and the order of all. What is told is always what holds when it is asked for.

use std::collections::{BTreeMap, VecDeque};

use smallvec::SmallVec;
use triomphe::Arc;

use super::{Object, ObjectId, Open, Operations, event};
use crate::errno::Errno;
use crate::files::{DescriptionId, Target};
use crate::host::{HostState, Stream};
use crate::wait::{ALWAYS, Hope};

/// Told once for each time that events come, not as long as they last.
pub const EDGE: u32 = 1 << 31;
/// Told once, then not before it is asked for again.
pub const ONE_SHOT: u32 = 1 << 30;
/// Keeps the machine awake.
pub const WAKE_UP: u32 = 1 << 29;
/// Not all who wait need to be woken.
pub const EXCLUSIVE: u32 = 1 << 28;
/// All that are no events.
const FLAGS: u32 = EDGE | ONE_SHOT | WAKE_UP | EXCLUSIVE;

/// Sets within sets within sets end here.
const MOST_NESTED: u32 = 4;

/// A watch is named by the open file and the descriptor through which it was added.
pub type Key = (DescriptionId, i32);

/// A descriptor that is watched.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Watch {
    /// What announces its events.
    pub source: ObjectId,
    /// Events that are asked for, and flags.
    pub events: u32,
    /// What the program wants to be told with them.
    pub data: u64,
    /// The how-manieth of its set it is: of several that watch the same, the latest hears first.
    number: u64,
    /// It is in the list of those that may have something to tell.
    listed: bool,
}

impl Watch {
    /// Events that are told; none while it is switched off.
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

/// A set of descriptors that are watched.
#[derive(Clone, Debug, Default)]
pub struct Epoll {
    watches: BTreeMap<Key, Watch>,
    /// Those that may have something to tell, in the order in which it happened.
    ready: VecDeque<Key>,
    /// Watches that were ever added.
    added: u64,
}

impl Epoll {
    /// A watch.
    pub fn watch(&self, key: Key) -> Option<&Watch> {
        self.watches.get(&key)
    }

    fn list(&mut self, key: Key) -> bool {
        match self.watches.get_mut(&key) {
            Some(watch) if !watch.listed => {
                watch.listed = true;
                self.ready.push_back(key);
                true
            }
            _ => false,
        }
    }

    fn unlist(&mut self, key: Key) {
        if let Some(watch) = self.watches.get_mut(&key)
            && std::mem::take(&mut watch.listed)
        {
            self.ready.retain(|listed| *listed != key);
        }
    }
}

/// Who watches what: the sets in which an object is, each once. Cloning is O(1).
#[derive(Clone, Debug, Default)]
pub struct Watchers {
    of: Arc<BTreeMap<ObjectId, Vec<ObjectId>>>,
}

impl Watchers {
    /// Nobody watches anything.
    pub fn is_empty(&self) -> bool {
        self.of.is_empty()
    }
}

/// What is told of a watch.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Told {
    /// Which.
    pub key: Key,
    /// Its events.
    pub events: u16,
    /// What the program wanted to be told with them.
    pub data: u64,
}

/// What can be done with a set.
pub const OPERATIONS: Operations = Operations {
    readiness,
    hope,
    close,
    seeks: true,
    ..Operations::CLOSED
};

/// A set, if it is one.
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

fn readiness(host: &HostState, open: Open<'_>) -> u16 {
    let Some(epoll) = epoll(host, open.object) else {
        return event::INVALID;
    };
    let tells = |(key, watch): (&Key, &Watch)| {
        (watch.listed || watch.is_level())
            && host.readiness_for(open.asker, key.0) & watch.interest() != 0
    };
    if epoll.watches.iter().any(tells) {
        event::IN | event::READ_NORMAL
    } else {
        0
    }
}

fn hope(host: &HostState, open: Open<'_>, _: u16) -> Hope {
    let watches = epoll(host, open.object)
        .into_iter()
        .flat_map(|epoll| &epoll.watches);
    let hopes = watches.map(|(key, watch)| host.hope_of(key.0, watch.interest()));
    hopes.max().unwrap_or(Hope::None)
}

fn close(host: &mut HostState, open: Open<'_>) {
    let sources: Vec<ObjectId> = epoll(host, open.object)
        .into_iter()
        .flat_map(|epoll| epoll.watches.values().map(|watch| watch.source))
        .collect();
    for source in sources {
        host.forget_watcher(source, open.object);
    }
    host.objects.remove(open.object.0);
}

/// What announces the events of an open file; `None` if it cannot be watched.
pub fn source(target: Target) -> Option<ObjectId> {
    match target {
        Target::Object(object) => Some(object),
        Target::Stdin(_) => Some(ObjectId::STDIN),
        Target::Output(Stream::Stdout) => Some(ObjectId(u32::MAX - 1)),
        Target::Output(Stream::Stderr) => Some(ObjectId(u32::MAX - 2)),
        Target::Inode(_) => None,
    }
}

impl HostState {
    /// Events came to an object, or may have: edge-triggered watches tell of them.
    pub fn announce(&mut self, source: ObjectId, events: u16) {
        let Some(epolls) = self.watchers.of.get(&source) else {
            return;
        };
        for id in epolls.clone().into_iter().rev() {
            if self.list_watches_of(id, source, events) {
                self.announce(id, event::IN | event::READ_NORMAL);
            }
        }
    }

    /// Puts the watches of a source on the list of a set. Says whether one was not there yet.
    fn list_watches_of(&mut self, id: ObjectId, source: ObjectId, events: u16) -> bool {
        let Some(watcher) = epoll(self, id) else {
            return false;
        };
        let concerned = |(key, watch): &(&Key, &Watch)| {
            let Some(description) = self.files.description(key.0) else {
                return false;
            };
            let flags = description.flags;
            // The ends of a pipe are one object: what comes to one is no news at the other.
            let here = events & event::READING != 0 && flags.readable()
                || events & event::WRITING != 0 && flags.writable()
                || events & !(event::READING | event::WRITING) != 0;
            watch.source == source && here && events & watch.interest() != 0
        };
        let watches = watcher.watches.iter().filter(concerned);
        let mut keys: SmallVec<[(u64, Key); 4]> =
            watches.map(|(key, watch)| (watch.number, *key)).collect();
        keys.sort_unstable_by(|a, b| b.cmp(a));
        let Some(watcher) = epoll_mut(self, id) else {
            return false;
        };
        keys.into_iter()
            .fold(false, |new, (_, key)| watcher.list(key) | new)
    }

    /// Adds a watch, or changes it.
    pub fn watch(&mut self, id: ObjectId, key: Key, source: ObjectId, events: u32, data: u64) {
        let Some(watcher) = epoll_mut(self, id) else {
            return;
        };
        watcher.added += 1;
        let number = watcher.added;
        let old = watcher.watches.get(&key);
        let watch = Watch {
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

    /// Takes a watch away.
    pub fn unwatch(&mut self, id: ObjectId, key: Key) {
        let Some(watcher) = epoll_mut(self, id) else {
            return;
        };
        watcher.unlist(key);
        let Some(watch) = watcher.watches.remove(&key) else {
            return;
        };
        let others = watcher.watches.values();
        if !others.into_iter().any(|other| other.source == watch.source) {
            self.forget_watcher(watch.source, id);
        }
    }

    fn forget_watcher(&mut self, source: ObjectId, id: ObjectId) {
        let of = Arc::make_mut(&mut self.watchers.of);
        if let Some(watchers) = of.get_mut(&source) {
            watchers.retain(|watcher| *watcher != id);
            if watchers.is_empty() {
                of.remove(&source);
            }
        }
    }

    /// An open file was closed: no set watches it any more.
    pub(super) fn unwatch_closed(&mut self, closed: DescriptionId, target: Target) {
        let Some(source) = source(target) else {
            return;
        };
        for id in self.watchers.of.get(&source).cloned().unwrap_or_default() {
            let watches = epoll(self, id)
                .into_iter()
                .flat_map(|epoll| epoll.watches.keys());
            let keys: Vec<Key> = watches.filter(|key| key.0 == closed).copied().collect();
            for key in keys {
                self.unwatch(id, key);
            }
        }
    }

    /// What a set has to tell, at most so much, in the order in which it happened.
    pub fn harvest(&self, id: ObjectId, most: usize) -> Vec<Told> {
        let Some(watcher) = epoll(self, id) else {
            return Vec::new();
        };
        let listed = watcher.ready.iter();
        let listed = listed.filter_map(|key| Some((key, watcher.watches.get(key)?)));
        // What was never announced is found all the same.
        let rest = watcher.watches.iter();
        let rest = rest.filter(|(_, watch)| !watch.listed && watch.is_level());
        let told = listed.chain(rest).filter_map(|(key, watch)| {
            let events = self.readiness(key.0) & watch.interest();
            (events != 0).then_some(Told {
                key: *key,
                events,
                data: watch.data,
            })
        });
        told.take(most).collect()
    }

    /// This was told: level-triggered watches go to the end of the list, others wait for new events.
    pub fn harvested(&mut self, id: ObjectId, told: &[Told], most: usize) {
        let Some(watcher) = epoll(self, id) else {
            return;
        };
        // Those that were looked at and had nothing to tell leave the list too.
        let last = told.last().filter(|_| told.len() == most);
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
        for told in told {
            let Some(watch) = watcher.watches.get_mut(&told.key) else {
                continue;
            };
            if watch.events & ONE_SHOT != 0 {
                watch.events &= FLAGS;
            } else if watch.is_level() && !watch.listed {
                watch.listed = true;
                watcher.ready.push_back(told.key);
            }
        }
    }

    /// A set can be put into another one: there would be no circle, and not too many within each other.
    pub fn can_nest(&self, outer: ObjectId, inner: ObjectId) -> Result<(), Errno> {
        let depth = self.nesting(inner, outer, 0)?;
        let above = self.nesting_above(outer, 0)?;
        if depth + above + 1 > MOST_NESTED {
            return Err(Errno::ELOOP);
        }
        Ok(())
    }

    /// How many sets are within each other from this one down.
    fn nesting(&self, id: ObjectId, forbidden: ObjectId, level: u32) -> Result<u32, Errno> {
        if id == forbidden || level > MOST_NESTED {
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

    /// The same upwards.
    fn nesting_above(&self, id: ObjectId, level: u32) -> Result<u32, Errno> {
        if level > MOST_NESTED {
            return Err(Errno::ELOOP);
        }
        let mut depth = 0;
        for outer in self.watchers.of.get(&id).into_iter().flatten() {
            depth = depth.max(1 + self.nesting_above(*outer, level + 1)?);
        }
        Ok(depth)
    }
}
