//! Loop nesting depth of the blocks of a function: the static estimate of how often they run.

use std::collections::HashMap;

/// Computes the depth of each block from the successors. The first block is the entry.
pub fn depths(successors: &[Vec<usize>]) -> Vec<u32> {
    let mut predecessors = vec![Vec::new(); successors.len()];
    for (block, next) in successors.iter().enumerate() {
        for &next in next {
            predecessors[next].push(block);
        }
    }
    // Loops with the same head are one.
    let mut bodies: HashMap<usize, Vec<bool>> = HashMap::new();
    for (from, head) in back_edges(successors) {
        let body = bodies
            .entry(head)
            .or_insert_with(|| vec![false; successors.len()]);
        body[head] = true;
        let mut pending = vec![from];
        while let Some(block) = pending.pop() {
            if !std::mem::replace(&mut body[block], true) {
                pending.extend(&predecessors[block]);
            }
        }
    }
    let mut depths = vec![0; successors.len()];
    for body in bodies.values() {
        for (depth, is_inside) in depths.iter_mut().zip(body) {
            *depth += u32::from(*is_inside);
        }
    }
    depths
}

/// Returns the edges to a block that is still on the stack of a depth-first search.
fn back_edges(successors: &[Vec<usize>]) -> Vec<(usize, usize)> {
    #[derive(Clone, Copy, PartialEq)]
    enum Mark {
        New,
        Open,
        Done,
    }
    let mut marks = vec![Mark::New; successors.len()];
    let mut edges = Vec::new();
    let mut walk = Vec::new();
    if !successors.is_empty() {
        marks[0] = Mark::Open;
        walk.push((0, 0));
    }
    while let Some((block, at)) = walk.last_mut() {
        let Some(&next) = successors[*block].get(*at) else {
            marks[*block] = Mark::Done;
            walk.pop();
            continue;
        };
        *at += 1;
        match marks[next] {
            Mark::Open => edges.push((*block, next)),
            Mark::New => {
                marks[next] = Mark::Open;
                walk.push((next, 0));
            }
            Mark::Done => {}
        }
    }
    edges
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nested_loops_count() {
        // 0 -> 1 -> 2 -> 2, 2 -> 1, 1 -> 3.
        let successors = [vec![1], vec![2, 3], vec![2, 1], vec![]];
        assert_eq!(depths(&successors), [0, 1, 2, 0]);
        assert_eq!(depths(&[]), Vec::<u32>::new());
        assert_eq!(depths(&[vec![1], vec![1]]), [0, 1]);
    }
}
