//! Follows the server after it has accepted Trojan messages: which findings they reach, and whether
//! client messages reach them too.

use everett_engine::{Explorer, ExplorerConfig, Start};
use everett_net::HostIndex;
use everett_trojans::{Afterwards, Answer, Followed, Reached, Search, Why};
use everett_vm::Image;
use std::collections::BTreeSet;

use super::classes::{hex, place};
use super::state_time::SentAt;
use super::summary::{TrojanFinding, TrojansSummary};
use super::{Analysis, Class, Origin, incomplete, quiet};
use crate::error::Result;

/// A finding that a message leads to.
pub(super) struct Found {
    pub(super) reached: Reached,
    pub(super) sender: HostIndex,
    pub(super) sent_at: SentAt,
    pub(super) length: u32,
    /// Whether no client message of this length leads to it; `None` if that is not known.
    only: Option<bool>,
    /// Whether the summary already contains it.
    is_noted: bool,
}

/// Returns senders from which the server accepts all classes of a length, with their times.
pub(super) fn senders(classes: &[Class], length: u32) -> BTreeSet<(HostIndex, SentAt)> {
    let classes = classes.iter().filter(|class| class.length == length);
    classes
        .filter_map(|class| Some((*class.senders.first()?, class.sent_at)))
        .collect()
}

/// Returns whether two findings are the same: they are if they are at the same place.
fn is_same(one: &Reached, two: &Reached) -> bool {
    one.what == two.what && place(&one.stack) == place(&two.stack)
}

impl Analysis<'_> {
    /// Follows the server with Trojan messages of one length from one client.
    pub(super) fn afterwards(
        &self,
        (config, images): (&ExplorerConfig, &[Image]),
        search: &mut Search,
        (length, origin): (u32, &Origin),
        summary: &mut TrojansSummary,
    ) -> Result<Vec<Found>> {
        let mut follow = |followed: Followed, search: &mut Search| -> Result<_> {
            let options = self.server_options(length, origin)?;
            let mut listener = Afterwards::new(options, search, followed);
            let mut config = quiet(config);
            let most = config.limits.max_forks.unwrap_or(u64::MAX);
            config.limits.max_forks = Some(most.min(self.spec.afterwards));
            let mut explorer = Explorer::new(images, config, Start::Beginning)?;
            let stopped = explorer.run(&self.session.stop, &mut listener);
            let cut_off = incomplete(&explorer, stopped);
            let cut_off = cut_off.or(listener.problems.first().cloned());
            let is_complete = cut_off.is_none();
            if let Some(why) = cut_off.filter(|why| !summary.afterwards_cut_off.contains(why)) {
                summary.afterwards_cut_off.push(why);
            }
            Ok((listener.reached, is_complete))
        };
        let (all, _) = follow(Followed::Trojans, search)?;
        let mut reached: Vec<Reached> = Vec::new();
        for one in all {
            if !reached.iter().any(|known| is_same(known, &one)) {
                reached.push(one);
            }
        }
        if reached.is_empty() {
            return Ok(Vec::new());
        }
        // Paths without Trojan messages may lead there too, so client messages are followed
        // separately.
        let (sent, is_complete) = follow(Followed::Sent, search)?;
        let found = reached.into_iter().map(|reached| {
            let only = match sent.iter().any(|sent| is_same(sent, &reached)) {
                true => Some(false),
                false => is_complete.then_some(true),
            };
            Found {
                reached,
                only,
                length,
                sender: origin.client,
                sent_at: origin.sent_at,
                is_noted: false,
            }
        });
        Ok(found.collect())
    }
}

/// Adds findings of one length to the summary, except known ones.
pub(super) fn note(
    analysis: &Analysis<'_>,
    search: &mut Search,
    found: &mut Vec<Found>,
    classes: &[Class],
    summary: &mut TrojansSummary,
) {
    let mut known: Vec<Found> = Vec::new();
    for mut one in std::mem::take(found) {
        let same = known
            .iter()
            .position(|known| is_same(&known.reached, &one.reached));
        if let Some(at) = same {
            let noted = &mut summary.findings[at].only;
            *noted = match (*noted, one.only) {
                (Some(false), _) | (_, Some(false)) => Some(false),
                (Some(true), Some(true)) => Some(true),
                _ => None,
            };
            continue;
        }
        if !one.is_noted {
            one.is_noted = true;
            let entry = entry(analysis, search, &one, classes, summary);
            summary.findings.push(entry);
        }
        known.push(one);
    }
    *found = known;
}

fn entry(
    analysis: &Analysis<'_>,
    search: &mut Search,
    found: &Found,
    classes: &[Class],
    summary: &TrojansSummary,
) -> TrojanFinding {
    let reached = &found.reached;
    let message = reached.found.as_ref().map(|found| found.message.clone());
    let message = message.unwrap_or_default();
    let is_trojan = |class: &&Class| matches!(class.accepted.answer, Answer::Trojan(_));
    let (mut trojans, mut crash) = (Vec::new(), None);
    for (number, class) in (1..).zip(classes.iter().filter(is_trojan)) {
        let mut paths = class.also.iter().chain([&class.accepted.path]);
        let is_in = class.length == found.length
            && paths.any(|path| {
                let terms = search.stored(path).unwrap_or_default();
                search.takes(&terms, &message) == Ok(true)
            });
        if is_in {
            trojans.push(number);
            if class.accepted.why == Why::Crash(reached.what.clone()) {
                crash = Some(number);
            }
        }
    }
    let place = place(&reached.stack);
    let number = summary.findings.len() + 1;
    TrojanFinding {
        number,
        dir: match crash {
            // The server accepts the message because of the finding.
            Some(class) => format!("trojans/{class:04}"),
            None => format!("findings/{number:04}"),
        },
        what: reached.what.clone(),
        file: place.map_or(String::new(), |at| at.file.clone()),
        line: place.map_or(0, |at| at.line),
        function: place.map_or(String::new(), |at| at.function.clone()),
        example: hex(&message),
        sender: analysis.name(found.sender),
        trojans,
        afterwards: crash.is_none(),
        only: found.only,
        confirmed: "not tried".to_owned(),
    }
}
