//! Questions to live peers, which are outside of the model. Like all other questions they go
//! through the [`Oracle`], so the answers are on traces.
//!
//! [`Oracle`]: crate::Oracle

use std::sync::Arc;

/// A question to a live peer: what it does next.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct OutsideQuestion<'q> {
    /// Who is asked.
    pub peer: &'q str,
    /// The question: a digest of all that happened between the peer and the hosts.
    pub id: u128,
    /// Where the peer stood after its last answer: a digest of all that happened
    /// before `events`; 0 at the start.
    pub after: u128,
    /// What the hosts did since, encoded.
    pub events: &'q [u8],
}

/// The encoded answer, or why there is none.
pub type OutsideAnswer = Result<Arc<[u8]>, String>;

/// Answers for what is outside. The same question always has the same answer.
pub trait Outside: std::any::Any + Send + Sync {
    /// The answer to a question.
    fn answer(&self, question: &OutsideQuestion<'_>) -> OutsideAnswer;

    /// A trace had this answer to a question: later questions may build on it.
    fn learn(&self, question: &OutsideQuestion<'_>, answer: &Arc<[u8]>);
}
