//! Questions to live peers, which are real programs outside of the model. Like all other questions
//! they go through the [`Oracle`], so traces contain the answers.
//!
//! [`Oracle`]: crate::Oracle

use std::sync::Arc;

/// The question what a live peer does next.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct OutsideQuestion<'q> {
    /// The name of the peer.
    pub peer: &'q str,
    /// The identity of the question: a digest of all events between the peer and the hosts.
    pub id: u128,
    /// The position of the peer after its last answer: a digest of all events before `events`; 0 at
    /// the start.
    pub after: u128,
    /// The events of the hosts since then, encoded.
    pub events: &'q [u8],
}

/// The encoded answer, or the reason why there is none.
pub type OutsideAnswer = Result<Arc<[u8]>, String>;

/// Answers questions to live peers. The same question always has the same answer.
pub trait Outside: std::any::Any + Send + Sync {
    /// Returns the answer to a question.
    fn answer(&self, question: &OutsideQuestion<'_>) -> OutsideAnswer;

    /// Notes that a trace contains this answer to a question; later questions may build on it.
    fn learn(&self, question: &OutsideQuestion<'_>, answer: &Arc<[u8]>);
}
