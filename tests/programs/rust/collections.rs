// Strings, vectors, maps and iterators of the standard library.
// build:
// build: -O
// exec:
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap, HashSet, VecDeque};

pub fn main() {
    let text = "the quick brown fox jumps over the lazy dog the end";
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for word in text.split_whitespace() {
        *counts.entry(word).or_default() += 1;
    }
    println!("{counts:?} {:?}", counts.range("f".."m").collect::<Vec<_>>());
    let mut squares = HashMap::new();
    for n in 0..200u64 {
        squares.insert(n * n, n);
    }
    squares.remove(&49);
    let mut keys: Vec<_> = squares.keys().copied().filter(|k| k % 7 == 0).collect();
    keys.sort_unstable_by(|a, b| b.cmp(a));
    println!("{} {:?} {keys:?}", squares.len(), squares.get(&144));
    let unique: HashSet<char> = text.chars().collect();
    let mut letters: Vec<char> = unique.into_iter().collect();
    letters.sort();
    println!("{}", letters.iter().collect::<String>());
    let mut queue: VecDeque<i32> = (0..10).collect();
    queue.rotate_left(3);
    queue.push_front(-1);
    println!("{queue:?} {:?}", queue.iter().rev().step_by(2).collect::<Vec<_>>());
    let mut heap = BinaryHeap::from(vec![3, 1, 4, 1, 5, 9, 2, 6]);
    print!("{:?}", heap.pop());
    println!(" {:?}", heap.into_sorted_vec());
    let mut numbers: Vec<i32> = (0..50).map(|n| n * 37 % 53 - 20).collect();
    numbers.sort();
    numbers.dedup();
    numbers.retain(|n| n % 2 == 0);
    println!("{numbers:?} {:?} {:?}", numbers.binary_search(&4), numbers.binary_search(&5));
    println!("{:?}", numbers.chunks(7).map(|c| c.iter().sum::<i32>()).collect::<Vec<_>>());
    println!("{:?}", numbers.windows(2).all(|pair| pair[0] < pair[1]));
    let (even, odd): (Vec<i32>, Vec<i32>) = (1..10).partition(|n| n % 2 == 0);
    println!("{even:?} {odd:?} {:?}", even.iter().zip(&odd).map(|(a, b)| a * b).fold(0, |a, b| a + b));
    let set: BTreeSet<u8> = text.bytes().collect();
    println!("{:?} {:?}", set.first(), set.len());
    let owned = format!("{}-{}", "ünïcode".to_uppercase(), "ß→x".len());
    println!("{owned} {:?} {:?}", owned.char_indices().nth(2), owned.find('C'));
    println!("{:?}", "a,b,,c".split(',').rev().collect::<Vec<_>>().join("|"));
    println!("{:?} {:?}", String::from_utf8(vec![0xff, 0x41]).is_err(), String::from_utf8_lossy(b"a\xffb"));
    println!("{}", "abc".repeat(3).replace("ca", "-").trim_matches('a'));
}
