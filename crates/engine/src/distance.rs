//! Distances in the control-flow graph: how many steps each segment of a program is from code that
//! was never executed. The coverage searcher uses them.

use everett_ir::code::{Body, Callee, Code, FunctionId, Inst};
use everett_vm::{Image, ImageId};
use std::collections::VecDeque;

/// The control-flow graph of segments, and the distance of each to code that is not covered.
pub struct Distances {
    /// Segments from which each segment can be reached in one step.
    predecessors: Vec<Vec<u32>>,
    /// The distance of each segment; `u32::MAX` if no uncovered code can be reached.
    distances: Vec<u32>,
    /// The first pc and the number of each segment, by program and function.
    by_function: Vec<Vec<Vec<(u32, u32)>>>,
}

impl Distances {
    /// Creates the graph of all programs of a run.
    pub fn new(images: &[Image]) -> Distances {
        let count = images.iter().map(|image| image.program().segments.len());
        let count = count.sum();
        let mut distances = Distances {
            predecessors: vec![Vec::new(); count],
            distances: vec![0; count],
            by_function: images.iter().map(starts_by_function).collect(),
        };
        for image in images {
            for (index, function) in image.program().functions.iter().enumerate() {
                if let Body::Code(code) = &function.body {
                    distances.connect(image, FunctionId(index as u32), code);
                }
            }
        }
        distances
    }

    /// Returns the segment that an instruction belongs to.
    pub fn segment_at(&self, image: ImageId, function: FunctionId, pc: u32) -> Option<u32> {
        let functions = self.by_function.get(usize::from(image.0))?;
        let starts = functions.get(function.0 as usize)?;
        let after = starts.partition_point(|start| start.0 <= pc);
        Some(starts.get(after.checked_sub(1)?)?.1)
    }

    /// Adds the edges of a function.
    fn connect(&mut self, image: &Image, id: FunctionId, code: &Code) {
        let (first, number) = (image.first_segment(), image.number());
        let mut current = None;
        for (pc, inst) in code.instructions.iter().enumerate() {
            let targets: Vec<u32> = match inst {
                Inst::Segment { id, .. } => {
                    if let Some(from) = current {
                        self.edge(from, first + id.0);
                    }
                    current = Some(first + id.0);
                    continue;
                }
                Inst::Jump { target } => vec![*target],
                Inst::Branch { target, .. } | Inst::CompareBranch { target, .. } => {
                    let targets = code.branches[*target as usize];
                    vec![targets.then, targets.other]
                }
                Inst::Switch { table, .. } => {
                    let table = &code.switches[*table as usize];
                    let cases = table.cases.iter().map(|case| case.1);
                    cases.chain([table.default]).collect()
                }
                Inst::IndirectBranch { .. } => code.block_addresses.values().copied().collect(),
                Inst::Call { call } => {
                    let call = &code.calls[*call as usize];
                    if let (Some(from), Callee::Function(callee)) = (current, call.callee)
                        && let Some(entry) = self.segment_at(number, callee, 0)
                    {
                        self.edge(from, entry);
                    }
                    let pad = call
                        .unwind
                        .map(|pad| code.landing_pads[pad as usize].target);
                    if let (Some(from), Some(pad)) = (current, pad) {
                        self.edge_to(from, number, id, pad);
                    }
                    continue;
                }
                _ => continue,
            };
            if let Some(from) = current {
                targets
                    .into_iter()
                    .for_each(|target| self.edge_to(from, number, id, target));
            }
            // Edge stubs after a jump have no segment of their own: what follows belongs to the
            // code that jumps there.
            let falls = matches!(code.instructions.get(pc + 1), Some(Inst::Segment { .. }));
            if falls {
                current = None;
            }
        }
    }

    fn edge_to(&mut self, from: u32, image: ImageId, function: FunctionId, pc: u32) {
        if let Some(to) = self.segment_at(image, function, pc) {
            self.edge(from, to);
        }
    }

    fn edge(&mut self, from: u32, to: u32) {
        let predecessors = &mut self.predecessors[to as usize];
        if !predecessors.contains(&from) {
            predecessors.push(from);
        }
    }

    /// Computes all distances again.
    pub fn renew(&mut self, covered: &[u8]) {
        let mut queue = VecDeque::new();
        for (segment, distance) in self.distances.iter_mut().enumerate() {
            *distance = u32::MAX;
            if covered[segment] == 0 {
                *distance = 0;
                queue.push_back(segment as u32);
            }
        }
        while let Some(segment) = queue.pop_front() {
            let next = self.distances[segment as usize] + 1;
            for from in &self.predecessors[segment as usize] {
                let distance = &mut self.distances[*from as usize];
                if *distance == u32::MAX {
                    *distance = next;
                    queue.push_back(*from);
                }
            }
        }
    }

    /// Returns the least distance over the frames of a stack; returning to a caller costs a step.
    pub fn of_stack<'s>(
        &self,
        image: ImageId,
        frames: impl Iterator<Item = (FunctionId, u32)> + 's,
    ) -> u32 {
        let mut best = u32::MAX;
        for (cost, (function, pc)) in (0u32..).zip(frames) {
            if let Some(segment) = self.segment_at(image, function, pc) {
                best = best.min(self.distances[segment as usize].saturating_add(cost));
            }
            if best <= cost {
                break;
            }
        }
        best
    }
}

/// Returns the first pc and the number of each segment, for each function of a program.
fn starts_by_function(image: &Image) -> Vec<Vec<(u32, u32)>> {
    let program = image.program();
    let mut by_function: Vec<Vec<(u32, u32)>> = vec![Vec::new(); program.functions.len()];
    for (segment, (function, pc)) in (image.first_segment()..).zip(&program.segments) {
        by_function[function.0 as usize].push((*pc, segment));
    }
    by_function
        .iter_mut()
        .for_each(|starts| starts.sort_unstable());
    by_function
}
