//! The decision of the load balancer: which worker gives how many states to which, from the numbers
//! of states that workers report. It is that of Cloud9 (EuroSys 2011, §3.3): workers whose number
//! is far from the mean are paired from both ends, and each pair evens out. Knows no broker and no
//! worker.

/// Number of standard deviations from the mean at which a worker is out of balance.
pub const DELTA: f64 = 1.0;

/// A number of states that one worker is asked to give to another. Workers are positions in the
/// list of numbers.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Pair {
    /// The worker with many states.
    pub from: usize,
    /// The worker with few states.
    pub to: usize,
    /// The number of states to move.
    pub states: u64,
}

/// Returns mean and standard deviation of numbers of states.
pub fn spread(lengths: &[u64]) -> (f64, f64) {
    let count = lengths.len().max(1) as f64;
    let mean = lengths.iter().map(|length| *length as f64).sum::<f64>() / count;
    let squares = lengths.iter().map(|length| (*length as f64 - mean).powi(2));
    (mean, (squares.sum::<f64>() / count).sqrt())
}

/// Pairs workers that have few states with workers that have many: the fewest with the most. A
/// worker has few states if it is more than `delta` deviations below the mean, many if as far above
/// it. A worker without states always has few, and is paired with the one that has the most: with
/// two workers, or with one that has all states, the deviation is as large as the mean, and by the
/// rule alone no worker would be out of balance.
pub fn pairs(lengths: &[u64], delta: f64) -> Vec<Pair> {
    let (mean, deviation) = spread(lengths);
    let (few, many) = (
        (mean - delta * deviation).max(0.0),
        mean + delta * deviation,
    );
    let mut order: Vec<usize> = (0..lengths.len()).collect();
    order.sort_by_key(|at| lengths[*at]);
    let mut pairs = Vec::new();
    for (to, from) in order.iter().zip(order.iter().rev()) {
        let (least, most) = (lengths[*to], lengths[*from]);
        let is_idle = least == 0;
        let has_few = is_idle || (least as f64) < few;
        let has_many = is_idle || most as f64 > many;
        let states = most.saturating_sub(least) / 2;
        // The next pair is closer to the mean on both sides.
        if !has_few || !has_many || states == 0 {
            break;
        }
        pairs.push(Pair {
            from: *from,
            to: *to,
            states,
        });
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moved(lengths: &[u64]) -> Vec<(usize, usize, u64)> {
        let pairs = pairs(lengths, DELTA).into_iter();
        pairs
            .map(|pair| (pair.from, pair.to, pair.states))
            .collect()
    }

    #[test]
    fn far_from_the_mean_is_out_of_balance() {
        // The mean is 50, the deviation 30.1.
        assert_eq!(moved(&[2, 50, 50, 98, 50, 50, 50, 50]), [(3, 0, 48)]);
        // No worker is more than a deviation below the mean, but one is above it.
        assert_eq!(moved(&[40, 40, 40, 80]), []);
        assert_eq!(moved(&[50; 9]), []);
        assert_eq!(moved(&[]), []);
    }

    #[test]
    fn the_fewest_are_paired_with_the_most() {
        let lengths = [60, 3, 50, 100, 50, 1, 104, 52];
        assert_eq!(moved(&lengths), [(6, 5, 51), (3, 1, 48)]);
    }

    #[test]
    fn who_has_nothing_is_always_given_something() {
        assert_eq!(moved(&[0, 9]), [(1, 0, 4)]);
        assert_eq!(moved(&[0, 0, 0, 100, 0]), [(3, 0, 50)]);
        // Several idle workers share the states of several others, though none has far more than
        // the mean.
        assert_eq!(moved(&[5, 0, 6, 0, 7]), [(4, 1, 3), (2, 3, 3)]);
        // The last state of a worker stays where it is.
        assert_eq!(moved(&[0, 1]), []);
        assert_eq!(moved(&[0, 0, 1, 2]), [(3, 0, 1)]);
    }

    /// One worker has all states. After enough rounds, each of which moves the states of its
    /// decision, no worker is idle, and none has more than a few times the mean.
    #[test]
    fn rounds_even_out() {
        for workers in [2, 3, 10, 100, 1000] {
            let mut lengths = vec![0; workers];
            lengths[workers / 2] = 50 * workers as u64;
            let mut rounds = 0;
            loop {
                let pairs = pairs(&lengths, DELTA);
                if pairs.is_empty() {
                    break;
                }
                for pair in pairs {
                    lengths[pair.from] -= pair.states;
                    lengths[pair.to] += pair.states;
                }
                rounds += 1;
                assert!(rounds < 100, "{lengths:?}");
            }
            assert_eq!(lengths.iter().sum::<u64>(), 50 * workers as u64);
            let (mean, deviation) = spread(&lengths);
            assert!(lengths.iter().all(|length| *length > 0), "{lengths:?}");
            assert!(deviation < mean, "{workers}: {deviation}");
        }
    }
}
