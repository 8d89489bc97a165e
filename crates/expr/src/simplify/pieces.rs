//! Words as sequences of pieces: concatenations, zero extensions and constants are decomposed, so
//! that operations on words assembled from bytes become operations on the bytes.

use crate::arena::Arena;
use crate::node::{BinaryOp, ExprId, Node};

/// Words with more pieces are not decomposed.
const MAX_PIECES: usize = 16;

/// A contiguous range of bits of a word.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
struct Piece {
    low: u32,
    width: u32,
    /// The term of which this is the low part; `None` for zeros.
    e: Option<ExprId>,
}

impl Piece {
    fn end(&self) -> u32 {
        self.low + self.width
    }
}

impl Arena {
    fn is_row(&self, e: ExprId) -> bool {
        match self.node(e) {
            Node::Concat { .. } | Node::ZeroExtend { .. } => true,
            _ => self.as_shifted(e).is_some(),
        }
    }

    /// Returns the pieces of a term from the lowest bit upwards; `None` if there are too many.
    fn pieces(&self, e: ExprId) -> Option<Vec<Piece>> {
        let mut pieces: Vec<Piece> = Vec::with_capacity(4);
        let mut low = 0;
        // Terms, and how many of their low bits are in the word; the next piece is on top.
        let mut stack = vec![(Some(e), self.width(e))];
        while let Some((e, width)) = stack.pop() {
            if pieces.len() + stack.len() >= MAX_PIECES {
                return None;
            }
            let mut push = |e, width| {
                if width > 0 {
                    stack.push((e, width));
                }
            };
            match e.map(|e| self.node(e)) {
                Some(Node::Concat { hi, lo }) => {
                    let cut = self.width(lo).min(width);
                    push(Some(hi), width - cut);
                    push(Some(lo), cut);
                }
                Some(Node::ZeroExtend { e: inner }) => {
                    let cut = self.width(inner).min(width);
                    push(None, width - cut);
                    push(Some(inner), cut);
                }
                _ => match e.and_then(|e| self.as_shifted(e)) {
                    Some((x, shift)) => {
                        let cut = shift.min(width);
                        push(Some(x), width - cut);
                        push(None, cut);
                    }
                    None => {
                        let e = e.filter(|&e| !self.is_zero(e));
                        pieces.push(Piece { low, width, e });
                        low += width;
                    }
                },
            }
        }
        Some(pieces)
    }

    /// Returns pairs of pieces that cover the same bits, with these bits.
    fn paired(&self, a: ExprId, b: ExprId) -> Option<Vec<(Piece, Piece, u32, u32)>> {
        let (a, b) = (self.pieces(a)?, self.pieces(b)?);
        let (mut i, mut j, mut low) = (0, 0, 0);
        let mut pairs = Vec::with_capacity(a.len() + b.len());
        while let (Some(x), Some(y)) = (a.get(i), b.get(j)) {
            let end = x.end().min(y.end());
            pairs.push((*x, *y, low, end - low));
            low = end;
            i += usize::from(x.end() == end);
            j += usize::from(y.end() == end);
        }
        Some(pairs)
    }

    fn is_const_piece(&self, piece: Piece) -> bool {
        piece.e.is_none_or(|e| self.is_const(e))
    }

    /// Returns bits of a piece; positions are those of the word.
    fn part_of(&mut self, piece: Piece, low: u32, width: u32) -> ExprId {
        match piece.e {
            Some(e) => self.extract(e, low - piece.low, width),
            None => self.zero(width),
        }
    }

    /// Applies a bitwise operation piece by piece, if no two symbolic pieces overlap partially.
    /// With `disjoint`, only if at most one of two overlapping pieces is non-zero.
    pub(super) fn join_pieces(
        &mut self,
        op: BinaryOp,
        a: ExprId,
        b: ExprId,
        disjoint: bool,
    ) -> Option<ExprId> {
        let rows = self.is_row(a) && (self.is_row(b) || self.is_const(b))
            || self.is_row(b) && self.is_const(a);
        if !rows {
            return None;
        }
        let pairs = self.paired(a, b)?;
        let fits = |&(x, y, _, width): &(Piece, Piece, u32, u32)| {
            let one_is_zero = x.e.is_none() || y.e.is_none();
            let same = x.width == width && y.width == width;
            let constant = self.is_const_piece(x) || self.is_const_piece(y);
            one_is_zero || (!disjoint && (same || constant))
        };
        if !pairs.iter().all(fits) {
            return None;
        }
        let mut result: Option<ExprId> = None;
        for (x, y, low, width) in pairs {
            let (x, y) = (self.part_of(x, low, width), self.part_of(y, low, width));
            let part = self.binary(op, x, y);
            result = Some(match result {
                Some(below) => self.concat(part, below),
                None => part,
            });
        }
        result
    }

    /// Simplifies the equality of two words piece by piece, if their pieces have the same bounds.
    pub(super) fn equal_pieces(&mut self, a: ExprId, b: ExprId) -> Option<ExprId> {
        if !self.is_row(a) || !self.is_row(b) {
            return None;
        }
        let pairs = self.paired(a, b)?;
        let aligned = pairs.iter().all(|&(x, y, _, width)| {
            x.width == width && y.width == width || self.is_const_piece(x) || self.is_const_piece(y)
        });
        if !aligned || pairs.len() < 2 {
            return None;
        }
        let mut all = self.bool_constant(true);
        for (x, y, low, width) in pairs {
            let (x, y) = (self.part_of(x, low, width), self.part_of(y, low, width));
            let equal = self.eq(x, y);
            all = self.and(equal, all);
            if self.is_false(all) {
                break;
            }
        }
        Some(all)
    }
}
