//! Sequentialises parallel moves, so that none overwrites a register that another still reads.

use crate::code::{Operand, Register};

/// Scratch memory that is reused.
#[derive(Default)]
pub(super) struct Moves {
    /// Number of pending moves that read a register; indexed by register.
    readers: Vec<u32>,
    /// The pending move that writes a register, plus one; indexed by register.
    writer: Vec<u32>,
    ready: Vec<u32>,
}

impl Moves {
    /// Calls `emit` with sequential moves that have the effect of all `moves` at once. The
    /// destinations are distinct. `temporary` allocates a register.
    pub fn sequence(
        &mut self,
        moves: &[(Register, Operand)],
        mut temporary: impl FnMut() -> Register,
        mut emit: impl FnMut(Register, Operand),
    ) {
        if let [(dst, src)] = moves {
            if src.as_register() != Some(*dst) {
                emit(*dst, *src);
            }
            return;
        }
        let highest = moves
            .iter()
            .map(|(dst, src)| (*dst).max(src.as_register().unwrap_or(0)))
            .max()
            .unwrap_or(0) as usize;
        if self.readers.len() <= highest {
            self.readers.resize(highest + 1, 0);
            self.writer.resize(highest + 1, 0);
        }
        let waits = |(dst, src): &(Register, Operand)| src.as_register() != Some(*dst);
        for (index, (dst, src)) in moves.iter().enumerate().filter(|(_, m)| waits(m)) {
            self.writer[*dst as usize] = index as u32 + 1;
            if let Some(register) = src.as_register() {
                self.readers[register as usize] += 1;
            }
        }
        self.ready.clear();
        for (index, (dst, _)) in moves.iter().enumerate().rev().filter(|(_, m)| waits(m)) {
            if self.readers[*dst as usize] == 0 {
                self.ready.push(index as u32);
            }
        }
        self.drain(moves, &mut emit);
        // Only cycles are left.
        for (dst, _) in moves {
            if self.writer[*dst as usize] == 0 {
                continue;
            }
            let saved = temporary();
            emit(saved, Operand::register(*dst));
            self.break_cycle(moves, *dst, saved, &mut emit);
        }
    }

    /// Emits moves whose destination is no longer read, and those that become ready thereby.
    fn drain(&mut self, moves: &[(Register, Operand)], emit: &mut impl FnMut(Register, Operand)) {
        while let Some(index) = self.ready.pop() {
            let (dst, src) = moves[index as usize];
            emit(dst, src);
            self.writer[dst as usize] = 0;
            let Some(read) = src.as_register() else {
                continue;
            };
            self.readers[read as usize] -= 1;
            if self.readers[read as usize] == 0 && self.writer[read as usize] != 0 {
                self.ready.push(self.writer[read as usize] - 1);
            }
        }
    }

    /// Follows the cycle that starts by writing `first`, whose old value is in `saved`.
    fn break_cycle(
        &mut self,
        moves: &[(Register, Operand)],
        first: Register,
        saved: Register,
        emit: &mut impl FnMut(Register, Operand),
    ) {
        let mut dst = first;
        loop {
            let index = self.writer[dst as usize] as usize - 1;
            self.writer[dst as usize] = 0;
            let src = moves[index].1;
            let read = src.as_register().unwrap_or(first);
            self.readers[read as usize] -= 1;
            if read == first {
                emit(dst, Operand::register(saved));
                return;
            }
            emit(dst, src);
            dst = read;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs the sequence on registers that hold their own numbers; returns their content
    /// afterwards.
    fn run(moves: &[(u32, u32)]) -> Vec<u32> {
        let moves: Vec<_> = moves
            .iter()
            .map(|(d, s)| (*d, Operand::register(*s)))
            .collect();
        let mut registers: Vec<u32> = (0..12).collect();
        let mut next = 8;
        let mut state = Moves::default();
        state.sequence(
            &moves,
            || {
                next += 1;
                next
            },
            |dst, src| registers[dst as usize] = registers[src.as_register().unwrap() as usize],
        );
        assert!(
            state
                .readers
                .iter()
                .chain(&state.writer)
                .all(|left| *left == 0)
        );
        registers.truncate(8);
        registers
    }

    /// All small sets of moves have the effect of parallel moves.
    #[test]
    fn sequences_equal_parallel_moves() {
        for code in 0..6u32.pow(5) {
            let sources: Vec<u32> = (0..5).map(|at| code / 6u32.pow(at) % 6).collect();
            let moves: Vec<_> = (0..5).map(|dst| (dst, sources[dst as usize])).collect();
            let mut expected: Vec<u32> = (0..8).collect();
            for (dst, src) in &moves {
                expected[*dst as usize] = *src;
            }
            assert_eq!(run(&moves), expected, "{moves:?}");
        }
    }

    #[test]
    fn two_cycles_and_a_constant() {
        assert_eq!(
            run(&[(0, 1), (1, 0), (2, 3), (3, 4), (4, 2), (5, 0)]),
            [1, 0, 3, 4, 2, 0, 6, 7]
        );
        let mut emitted = Vec::new();
        Moves::default().sequence(
            &[(1, Operand::register(0)), (0, Operand::constant(3))],
            || unreachable!(),
            |dst, src| emitted.push((dst, src)),
        );
        assert_eq!(
            emitted,
            [(1, Operand::register(0)), (0, Operand::constant(3))]
        );
    }
}
