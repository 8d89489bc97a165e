use super::*;
use proptest::prelude::*;

fn make(name: &str, space: &Space, seed: u64) -> Box<dyn Search> {
    (named(name).unwrap().new)(space, &Guided::default(), Numbers::new(seed))
}

/// Runs a search with a window of scenarios in flight; returns positions in the order of issue.
fn course(
    name: &str,
    space: &Space,
    seed: u64,
    runs: usize,
    impact: impl Fn(&Point) -> f64,
) -> Vec<u64> {
    let mut search = make(name, space, seed);
    let mut issued: Vec<Point> = Vec::new();
    let mut learned = 0;
    loop {
        while issued.len() - learned < 8 && issued.len() < runs {
            match search.next(space) {
                Some(point) => issued.push(point),
                None => break,
            }
        }
        if learned == issued.len() {
            return issued.iter().map(|point| space.position(point)).collect();
        }
        let point = issued[learned].clone();
        search.learn(space, &point, impact(&point));
        learned += 1;
    }
}

/// Returns the mean number of scenarios with impact that a search finds, over seeds.
fn found(name: &str, space: &Space, runs: usize, impact: impl Fn(&Point) -> f64 + Copy) -> f64 {
    let seeds = 20;
    let total: usize = (0..seeds)
        .map(|seed| course(name, space, seed, runs, impact))
        .map(|course| {
            course
                .iter()
                .filter(|position| impact(&space.point(**position)) > 0.0)
                .count()
        })
        .sum();
    total as f64 / seeds as f64
}

const SPACES: [&str; 3] = [
    "a : [1,7] b : {x, y, z} c : <1,3>;",
    "a : [1,20] without (a : [3,8]); a : [5,30] b : [1,3] without (b : {2}); a : [15,25];",
    "m : [0,63] gray n : {1};",
];

#[test]
fn every_search_proposes_every_scenario_once() {
    for text in SPACES {
        let space = Space::parse(text).unwrap();
        for row in SEARCHES {
            for seed in 0..3 {
                let mut all = course(row.name, &space, seed, usize::MAX, |point| {
                    (point.indices[0] % 3) as f64
                });
                assert!(
                    all.iter()
                        .all(|position| space.is_scenario(&space.point(*position)))
                );
                all.sort_unstable();
                all.dedup();
                assert_eq!(all.len() as u64, space.size(), "{} on {text}", row.name);
            }
        }
    }
}

#[test]
fn the_seed_determines_the_course() {
    let space = Space::parse("a : [1,30] b : [1,30];").unwrap();
    let impact = |point: &Point| f64::from(u8::from(point.indices[0] == 5));
    for row in SEARCHES {
        let one = course(row.name, &space, 7, 200, impact);
        assert_eq!(one, course(row.name, &space, 7, 200, impact));
        let is_drawn = row.name != "exhaustive";
        assert_eq!(one != course(row.name, &space, 8, 200, impact), is_drawn);
    }
}

/// A ridge in a space of three axes, like the failures of one function in all tests.
#[test]
fn searches_follow_ridges() {
    let space = Space::parse("test : [1,29] function : [1,19] call : [0,2];").unwrap();
    let impact = |point: &Point| match point.indices[..] {
        [_, function, call] if (4..7).contains(&function) && call > 0 => 5.0,
        [test, 12, 1] if test < 15 => 20.0,
        _ => 0.0,
    };
    let random = found("random", &space, 250, impact);
    for (name, factor) in [("guided", 2.3), ("adaptive", 3.0)] {
        let own = found(name, &space, 250, impact);
        assert!(own > factor * random, "{name}: {own} against {random}");
    }
}

#[test]
fn searches_equal_random_search_on_noise() {
    let space = Space::parse("a : [0,49] b : [0,49];").unwrap();
    let impact = |point: &Point| {
        let mut mixed = Numbers::new(point.indices[0] * 1000 + point.indices[1]);
        mixed.next_u64();
        f64::from(u8::from(mixed.unit() < 0.1))
    };
    let random = found("random", &space, 300, impact);
    for name in ["guided", "adaptive"] {
        let ratio = found(name, &space, 300, impact) / random;
        assert!((0.8..1.25).contains(&ratio), "{name}: {ratio}");
    }
}

/// Without an order in which neighbours are similar, learning values beats mutating them.
#[test]
fn the_adaptive_search_needs_no_order() {
    let space = Space::parse("a : [0,99] b : [0,19];").unwrap();
    let impact =
        |point: &Point| f64::from(u8::from([3, 20, 57, 81, 94].contains(&point.indices[0])));
    let random = found("random", &space, 250, impact);
    let adaptive = found("adaptive", &space, 250, impact);
    assert!(adaptive > 2.5 * random, "{adaptive} against {random}");
}

/// The MAC corruption of Fig. 3.9: most correct clients suffer if all MACs of a message are wrong.
#[test]
fn masks_in_gray_code_are_climbed() {
    let space =
        Space::parse("mask : [0,4095] gray clients : [10,250] step 10 malicious : [1,2];").unwrap();
    assert_eq!(space.size(), 204_800);
    let impact = |point: &Point| {
        let mask = space.axes(point)[0]
            .values
            .get(point.indices[0])
            .numbers()
            .unwrap_or_default()
            .0;
        f64::from(mask.count_ones().saturating_sub(7))
    };
    let best = |name: &str| -> f64 {
        let courses = (0..20).map(|seed| course(name, &space, seed, 125, impact));
        let mean = |course: Vec<u64>| {
            course
                .iter()
                .map(|position| impact(&space.point(*position)))
                .sum::<f64>()
                / course.len() as f64
        };
        courses.map(mean).sum::<f64>() / 20.0
    };
    let (guided, random) = (best("guided"), best("random"));
    assert!(guided > 1.5 * random, "{guided} against {random}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(30))]
    #[test]
    fn no_scenario_is_proposed_twice(
        sizes in prop::collection::vec(1u64..6, 1..4),
        hole in 0u64..6,
        seed in any::<u64>(),
        name in prop::sample::select(vec!["guided", "adaptive", "random", "exhaustive"]),
    ) {
        let mut text = String::new();
        for (at, size) in sizes.iter().enumerate() {
            text.push_str(&format!("a{at} : [0,{size}] "));
        }
        text.push_str(&format!("without (a0 : {{{hole}}});"));
        let space = Space::parse(&text).unwrap();
        let mut all = course(name, &space, seed, usize::MAX, |point| point.indices[0] as f64);
        all.sort_unstable();
        all.dedup();
        prop_assert_eq!(all.len() as u64, space.size());
    }
}

/// The space of `examples/faults-pbft`, and what its model prints: no correct client is ever served
/// if no retransmission of the malicious client (the high bits of the mask) is corrupted.
#[test]
fn the_single_timer_of_pbft_is_found_in_fewer_runs_than_at_random() {
    let axes = "mask : [0,4095] gray clients : [10,250] step 10 malicious : { client, primary };";
    let space = Space::parse(axes).unwrap();
    let impact = |point: &Point| {
        let scenario = space.scenario(point);
        let number = |name: &str| scenario.get(name).unwrap().numbers().unwrap().0;
        let (mask, clients) = (number("mask"), number("clients") as f64);
        if scenario.get("malicious").unwrap().to_string() == "client" {
            return 0.05;
        }
        let served = 16.5 * f64::from((mask >> 6).count_ones());
        let round = 10_000.0 + clients * 20_000.0 / (served + 1.0);
        let slower = round / 10_004.0 - 1.0;
        slower + (10.0 * round / 10_004.0 / clients - 1.0).max(0.0)
    };
    let most = 4000;
    let runs_until_found = |name: &str| {
        let first = (0..20).map(|seed| {
            let course = course(name, &space, seed, most, impact);
            let mut positions = course.into_iter();
            let is_worst = |position: u64| impact(&space.point(position)) >= 400.0;
            positions.position(is_worst).unwrap_or(most) + 1
        });
        first.sum::<usize>() / 20
    };
    let [guided, random] = ["guided", "random"].map(runs_until_found);
    assert!(guided * 2 < random, "guided {guided}, random {random}");
}

/// One function of forty fails, and only at some calls; the program checks all but four.
#[test]
fn the_adaptive_search_begins_with_unchecked_calls() {
    let names: Vec<String> = (0..40).map(|number| format!("f{number}")).collect();
    let text = format!(
        "function : {{ {} }} number : [1,50]; number : [1,100];",
        names.join(", ")
    );
    let space = Space::parse(&text).unwrap();
    let impact = |point: &Point| {
        let is_hit = point.subspace == 0 && point.indices[0] == 17 && point.indices[1] < 5;
        f64::from(u8::from(is_hit))
    };
    let runs_until_found = |settings: &Guided, seed: u64| {
        let mut search = (named("adaptive").unwrap().new)(&space, settings, Numbers::new(seed));
        let points = std::iter::from_fn(|| {
            let point = search.next(&space)?;
            search.learn(&space, &point, impact(&point));
            Some(point)
        });
        let all: Vec<Point> = points.collect();
        assert_eq!(all.len() as u64, space.size(), "each once");
        all.iter().position(|point| impact(point) > 0.0).unwrap()
    };
    let mut unchecked = Guided::default();
    let four = ["f3", "f17", "f20", "f39", "elsewhere"];
    unchecked.unchecked.functions = four.map(str::to_owned).into();
    let mean = |settings: &Guided| {
        let seeds = 0..20;
        seeds
            .map(|seed| runs_until_found(settings, seed))
            .sum::<usize>() as f64
            / 20.0
    };
    let (with, without) = (mean(&unchecked), mean(&Guided::default()));
    assert!(with * 5.0 < without, "{with} against {without}");
}
