//! Rewriting rules by example: which terms become equal, constant, or simpler.

use everett_expr::{Arena, ArrayId, BinaryOp, EvalScratch, ExprId, Node};

/// An arena with some bytes and words.
struct Setup {
    arena: Arena,
    bytes: Vec<ExprId>,
}

impl Setup {
    fn new() -> Setup {
        let mut arena = Arena::new();
        let array = arena.array(0, "in", 64);
        let bytes = (0..64).map(|index| arena.read(array, index)).collect();
        Setup { arena, bytes }
    }

    /// Returns a 32-bit word of four bytes.
    fn word(&mut self, number: usize) -> ExprId {
        let bytes = self.bytes[4 * number..4 * number + 4].to_vec();
        self.arena.concat_bytes(&bytes)
    }
}

fn assert_true(arena: &Arena, e: ExprId) {
    assert!(arena.is_true(e), "not true: {}", arena.display(e));
}

fn assert_false(arena: &Arena, e: ExprId) {
    assert!(arena.is_false(e), "not false: {}", arena.display(e));
}

#[test]
fn sums_are_linear_combinations() {
    let mut setup = Setup::new();
    let (x, y) = (setup.word(0), setup.word(1));
    let a = &mut setup.arena;
    let three = a.constant(32, 3);
    let four = a.constant(32, 4);
    let triple = a.mul(x, three);
    let sum = a.add(triple, x);
    let quadruple = a.mul(x, four);
    assert_eq!(sum, quadruple);
    let sum = a.add(x, y);
    assert_eq!(a.sub(sum, y), x);
    assert_eq!(a.sub(sum, x), y);
    let (xy, yx) = (a.add(x, three), a.add(y, four));
    let (left, right) = (a.add(xy, yx), a.add(sum, three));
    let right = a.add(right, four);
    assert_eq!(left, right);
    let negated = a.neg(x);
    assert_eq!(a.neg(negated), x);
    let complement = a.not(x);
    let one = a.constant(32, 1);
    assert_eq!(a.add(complement, one), negated);
    let shifted = a.shl(x, three);
    let plus = a.add(shifted, three);
    let plus = a.add(plus, four);
    let seven = a.constant(32, 7);
    assert_eq!(plus, a.add(shifted, seven));
}

#[test]
fn products_are_settled_by_rewriting() {
    let mut setup = Setup::new();
    let (x, y, z) = (setup.word(0), setup.word(1), setup.word(2));
    let a = &mut setup.arena;
    assert_eq!(a.mul(x, y), a.mul(y, x));
    let (xy, yz) = (a.mul(x, y), a.mul(y, z));
    assert_eq!(a.mul(xy, z), a.mul(x, yz));
    // Distributivity.
    let sum = a.add(y, z);
    let left = a.mul(x, sum);
    let xz = a.mul(x, z);
    let right = a.add(xy, xz);
    let equal = a.eq(left, right);
    assert_true(a, equal);
    // (x + y)² = x² + 2xy + y², and one more is never equal.
    let sum = a.add(x, y);
    let square = a.mul(sum, sum);
    let (xx, yy) = (a.mul(x, x), a.mul(y, y));
    let two = a.constant(32, 2);
    let twice = a.mul(xy, two);
    let expanded = a.add(xx, twice);
    let expanded = a.add(expanded, yy);
    let equal = a.eq(square, expanded);
    assert_true(a, equal);
    let one = a.constant(32, 1);
    let more = a.add(expanded, one);
    let equal = a.eq(square, more);
    assert_false(a, equal);
    // A product with a factor of twice the weight of the sign bit is zero.
    let high = a.constant(32, 1 << 31);
    let product = a.mul(x, high);
    assert_eq!(a.mul(product, two), a.zero(32));
}

#[test]
fn words_are_assembled_from_bytes() {
    let mut setup = Setup::new();
    let whole = setup.word(0);
    let bytes = setup.bytes.clone();
    let a = &mut setup.arena;
    for combine in [Arena::or, Arena::add, Arena::xor] {
        let mut word = a.zext(bytes[0], 32);
        for (i, &byte) in bytes[1..4].iter().enumerate() {
            let wide = a.zext(byte, 32);
            let amount = a.constant(32, 8 * (i as u64 + 1));
            let shifted = a.shl(wide, amount);
            word = combine(a, word, shifted);
        }
        assert_eq!(word, whole, "{}", a.display(word));
    }
    // And decomposed again.
    for (i, &byte) in bytes[..4].iter().enumerate() {
        assert_eq!(a.extract(whole, 8 * i as u32, 8), byte);
        let amount = a.constant(32, 8 * i as u64);
        let shifted = a.lshr(whole, amount);
        let low = a.constant(32, 0xff);
        let masked = a.and(shifted, low);
        assert_eq!(masked, a.zext(byte, 32));
    }
    // A word equals a constant if the bytes do.
    let constant = a.constant(32, 0x0403_0201);
    let equal = a.eq(whole, constant);
    let mut parts = a.bool_constant(true);
    for (i, &byte) in bytes[..4].iter().enumerate() {
        let value = a.constant(8, i as u64 + 1);
        let part = a.eq(byte, value);
        parts = a.and(parts, part);
    }
    assert_eq!(a.width(equal), 1);
    let mut scratch = EvalScratch::new();
    for value in [1u8, 2, 3] {
        let input = |_: ArrayId, i: u32| i as u8 + value;
        assert_eq!(
            a.eval(equal, &input, &mut scratch),
            a.eval(parts, &input, &mut scratch)
        );
    }
    assert!(
        !matches!(a.node(equal), Node::Compare { .. }),
        "split: {}",
        a.display(equal)
    );
}

#[test]
fn promoted_bytes_are_computed_as_bytes() {
    let mut setup = Setup::new();
    let (x, y) = (setup.bytes[0], setup.bytes[1]);
    let a = &mut setup.arena;
    let (wide_x, wide_y) = (a.zext(x, 32), a.sext(y, 32));
    for op in [
        Arena::add,
        Arena::sub,
        Arena::mul,
        Arena::and,
        Arena::or,
        Arena::xor,
    ] {
        let wide = op(a, wide_x, wide_y);
        let low = a.extract(wide, 0, 8);
        assert_eq!(low, op(a, x, y));
    }
}

#[test]
fn comparisons_are_decided_or_narrowed() {
    let mut setup = Setup::new();
    let (x, y) = (setup.bytes[0], setup.bytes[1]);
    let a = &mut setup.arena;
    let wide = a.zext(x, 32);
    let constant = |a: &mut Arena, value: i64| a.constant(32, value as u64);
    let c = constant(a, 300);
    let never = a.eq(wide, c);
    assert_false(a, never);
    let always = a.ult(wide, c);
    assert_true(a, always);
    let always = a.slt(wide, c);
    assert_true(a, always);
    let minus = constant(a, -1);
    let always = a.slt(minus, wide);
    assert_true(a, always);
    // Narrowed to the byte.
    let (c, narrow) = (constant(a, 65), a.constant(8, 65));
    assert_eq!(a.eq(wide, c), a.eq(x, narrow));
    assert_eq!(a.ult(wide, c), a.ult(x, narrow));
    assert_eq!(a.slt(wide, c), a.ult(x, narrow));
    let wide_y = a.zext(y, 32);
    assert_eq!(a.ule(wide, wide_y), a.ule(x, y));
    // Sums compared with constants, also under a zero extension.
    let (five, three) = (a.constant(8, 5), a.constant(8, 3));
    let sum = a.add(x, five);
    let two = a.constant(8, 2);
    let minus_two = a.neg(two);
    assert_eq!(a.eq(sum, three), a.eq(x, minus_two));
    // Negation moves inside.
    let less = a.ult(x, y);
    assert_eq!(a.not(less), a.ule(y, x));
    let less = a.ult(x, five);
    assert_eq!(a.not(less), a.ule(five, x));
    // A range of characters, tested on the zero-extended character.
    let (nine, digits) = (constant(a, 10), constant(a, -48));
    let (narrow_nine, narrow_digits) = (a.constant(8, 10), a.constant(8, 208));
    let moved = a.add(x, narrow_digits);
    let expected = a.ult(moved, narrow_nine);
    let signed = a.sext(x, 32);
    for promoted in [wide, signed] {
        let moved = a.add(promoted, digits);
        assert_eq!(a.ult(moved, nine), expected);
    }
    let plus = constant(a, 5);
    let sum = a.add(wide, plus);
    let (limit, narrow_limit) = (constant(a, 70), a.constant(8, 65));
    assert_eq!(a.ult(sum, limit), a.ult(x, narrow_limit));
    // The sign is a bit.
    let zero = a.constant(8, 0);
    let negative = a.slt(x, zero);
    assert_eq!(negative, a.extract(x, 7, 1));
    let difference = a.sub(x, y);
    assert_eq!(a.eq(difference, zero), a.eq(x, y));
}

#[test]
fn choices_become_conditions() {
    let mut setup = Setup::new();
    let (x, y) = (setup.bytes[0], setup.bytes[1]);
    let a = &mut setup.arena;
    let c = a.ult(x, y);
    let (five, three) = (a.constant(32, 5), a.constant(32, 3));
    let choice = a.ite(c, five, three);
    assert_eq!(a.eq(choice, five), c);
    assert_eq!(a.eq(choice, three), a.not(c));
    assert_eq!(a.ult(choice, five), a.not(c));
    assert_eq!(a.ite(c, x, x), x);
    let (one, zero) = (a.constant(32, 1), a.constant(32, 0));
    let flag = a.ite(c, one, zero);
    assert_eq!(flag, a.zext(c, 32));
    assert_eq!(a.ne(flag, zero), c);
    let (truth, lie) = (a.bool_constant(true), a.bool_constant(false));
    assert_eq!(a.ite(c, truth, lie), c);
    assert_eq!(a.ite(c, lie, truth), a.not(c));
    let not_c = a.not(c);
    assert_eq!(a.ite(not_c, x, y), a.ite(c, y, x));
    let both = a.and(c, not_c);
    assert_false(a, both);
}

#[test]
fn extracts_meet_again() {
    let mut setup = Setup::new();
    let (x, y) = (setup.word(0), setup.word(1));
    let a = &mut setup.arena;
    let product = a.mul(x, y);
    let bytes: Vec<ExprId> = (0..4).map(|i| a.extract(product, 8 * i, 8)).collect();
    let again = a.concat_bytes(&bytes);
    assert_eq!(again, product, "{}", a.display(again));
    let c = a.ult(x, y);
    let choice = a.ite(c, x, y);
    let bytes: Vec<ExprId> = (0..4).map(|i| a.extract(choice, 8 * i, 8)).collect();
    let again = a.concat_bytes(&bytes);
    assert_eq!(again, choice, "{}", a.display(again));
}

#[test]
fn division_by_powers_of_two_is_bits() {
    let mut setup = Setup::new();
    let x = setup.word(0);
    let a = &mut setup.arena;
    let eight = a.constant(32, 8);
    let three = a.constant(32, 3);
    assert_eq!(a.udiv(x, eight), a.lshr(x, three));
    let seven = a.constant(32, 7);
    assert_eq!(a.urem(x, eight), a.and(x, seven));
}

#[test]
fn deep_terms_do_not_overflow_the_stack() {
    let mut setup = Setup::new();
    let (x, y) = (setup.word(0), setup.word(1));
    let a = &mut setup.arena;
    let mut e = x;
    let five = a.constant(32, 5);
    for i in 0..100_000u64 {
        let c = a.constant(32, i.wrapping_mul(0x9e37_79b9) | 1);
        e = match i % 6 {
            0 => a.mul(e, c),
            1 => a.xor(e, c),
            2 => a.add(e, y),
            3 => a.udiv(e, five),
            4 => a.or(e, y),
            _ => a.sub(e, c),
        };
    }
    let mut scratch = EvalScratch::new();
    a.eval(e, &|_: ArrayId, i: u32| i as u8, &mut scratch);
    let low = a.extract(e, 0, 8);
    let zero = a.constant(8, 0);
    let condition = a.eq(low, zero);
    a.eval(condition, &|_: ArrayId, i: u32| i as u8, &mut scratch);
    assert_eq!(a.support(e).len(), 8);
    assert!(a.display(e).to_string().len() < 100_000);
    let bytes = everett_expr::codec::encode(a, &[condition]);
    let mut other = Arena::new();
    assert_eq!(
        everett_expr::codec::decode(&mut other, &bytes)
            .unwrap()
            .len(),
        1
    );
    assert!(a.sweep([x].into_iter()) > 100_000);
}

#[test]
fn a_table_of_constants_is_cheap_to_compare() {
    let mut setup = Setup::new();
    let x = setup.bytes[0];
    let a = &mut setup.arena;
    let mut table = a.constant(32, 0);
    for i in 0..256u64 {
        let (index, value) = (a.constant(8, i), a.constant(32, i * i));
        let hit = a.eq(x, index);
        table = a.ite(hit, value, table);
    }
    let mut scratch = EvalScratch::new();
    let input = |_: ArrayId, _: u32| 12;
    assert_eq!(a.eval(table, &input, &mut scratch), 144);
    let constant = a.constant(32, 144);
    let equal = a.eq(table, constant);
    assert_eq!(a.eval(equal, &input, &mut scratch), 1);
    assert_eq!(
        a.single_byte_support(equal).map(|(_, index)| index),
        Some(0)
    );
}

#[test]
fn tables_take_up_what_is_done_with_their_entries() {
    let mut setup = Setup::new();
    let x = setup.bytes[0];
    let a = &mut setup.arena;
    let code: Vec<u64> = (0..256).map(|at| at * 167 % 256).collect();
    let mut back = vec![0; 256];
    (0..256).for_each(|at| back[code[at] as usize] = at as u64);
    let coded = a.select(8, &code, x);
    assert!(matches!(a.node(coded), Node::Select { .. }));
    assert_eq!(a.select(8, &back, coded), x, "a table and its inverse");
    let wide = a.zext(coded, 64);
    assert_eq!(a.select(8, &back, wide), x);
    // One entry, none, and all from an index on.
    let value = a.constant(8, 167 * 9 % 256);
    let equal = a.eq(coded, value);
    let nine = a.constant(8, 9);
    assert_eq!(equal, a.eq(x, nine));
    let squares: Vec<u64> = (0..256).map(|at| at * at).collect();
    let square = a.select(16, &squares, x);
    let (no_square, hundred) = (a.constant(16, 150), a.constant(16, 100));
    let never = a.eq(square, no_square);
    assert_false(a, never);
    let (above, ten) = (a.ult(hundred, square), a.constant(8, 10));
    assert_eq!(above, a.ult(ten, x));
    let past = a.constant(32, 300);
    let last = a.select(16, &squares, past);
    assert_eq!(a.as_const(last), Some(255 * 255));
}

#[test]
fn tables_are_dropped_with_their_terms() {
    let mut setup = Setup::new();
    let x = setup.bytes[0];
    let a = &mut setup.arena;
    let entries: Vec<u64> = (0..4096).map(|at| at * at % 1009).collect();
    let before = a.memory_bytes();
    let (wide, seven) = (a.zext(x, 16), a.constant(16, 7));
    let index = a.mul(wide, seven);
    let entry = a.select(16, &entries, index);
    assert!(a.memory_bytes() > before + 8 * 1785);
    a.sweep([entry].into_iter());
    let at_two = |_: ArrayId, _: u32| 2;
    assert_eq!(a.eval(entry, &at_two, &mut EvalScratch::new()), 196);
    a.sweep([x].into_iter());
    assert!(a.memory_bytes() < before + 8 * 1785);
}

#[test]
fn quotients_and_remainders_meet_again() {
    let mut setup = Setup::new();
    let (x, y) = (setup.word(0), setup.word(1));
    let a = &mut setup.arena;
    let ten = a.constant(a.width(x), 10);
    for divisor in [y, ten] {
        for (divide, rest) in [
            (BinaryOp::UDiv, BinaryOp::URem),
            (BinaryOp::SDiv, BinaryOp::SRem),
        ] {
            let quotient = a.binary(divide, x, divisor);
            let remainder = a.binary(rest, x, divisor);
            let product = a.mul(quotient, divisor);
            assert_eq!(a.add(product, remainder), x);
            assert_eq!(a.sub(x, product), remainder);
        }
    }
}

#[test]
fn sums_that_cannot_overflow_are_computed_in_a_word() {
    let mut setup = Setup::new();
    let (x, y) = (setup.bytes[0], setup.bytes[1]);
    let a = &mut setup.arena;
    for signed in [false, true] {
        for op in [BinaryOp::Add, BinaryOp::Mul] {
            let extend = |a: &mut Arena, e, width| match signed {
                true => a.sext(e, width),
                false => a.zext(e, width),
            };
            let (p, q) = (extend(a, x, 128), extend(a, y, 128));
            let exact = a.binary(op, p, q);
            let low = a.extract(exact, 0, 64);
            let back = extend(a, low, 128);
            let same = a.eq(exact, back);
            assert_true(a, same);
        }
    }
    // A number with a minus sign, one digit more.
    let digits = [x, y].map(|digit| a.zext(digit, 64));
    let (zero, ten) = (a.zero(64), a.constant(64, 10));
    let number = digits.into_iter().fold(zero, |number, digit| {
        let scaled = a.mul(number, ten);
        a.sub(scaled, digit)
    });
    let (exact, digit) = (a.sext(number, 65), a.zext(x, 65));
    let exact = a.sub(exact, digit);
    let low = a.extract(exact, 0, 64);
    let back = a.sext(low, 65);
    let same = a.eq(exact, back);
    assert_true(a, same);
}

#[test]
fn terms_are_written_like_c_and_cut_short() {
    let mut setup = Setup::new();
    let (x, y) = (setup.bytes[0], setup.bytes[1]);
    let word = setup.word(1);
    let a = &mut setup.arena;
    let constant = a.constant(8, 65);
    let sum = a.add(x, constant);
    let less = a.ult(sum, y);
    assert_eq!(a.display(less).to_string(), "((in[0] + 0x41) < in[1])");
    let different = a.ne(x, y);
    assert_eq!(a.display(different).to_string(), "!(in[0] == in[1])");
    let choice = a.ite(less, x, y);
    let wide = a.sext(choice, 16);
    let expected = "i16((((in[0] + 0x41) < in[1]) ? in[0] : in[1]))";
    assert_eq!(a.display(wide).to_string(), expected);
    let mut big = word;
    for _ in 0..50 {
        big = a.mul(big, big);
        big = a.udiv(big, word);
    }
    let text = a.display(big).to_string();
    assert!(text.contains('…') && text.len() < 10_000, "{text}");
}

#[test]
fn parts_are_replaced() {
    let mut setup = Setup::new();
    let (x, y) = (setup.bytes[0], setup.bytes[1]);
    let a = &mut setup.arena;
    let sum = a.add(x, y);
    let less = a.ult(sum, y);
    let (five, three) = (a.constant(8, 5), a.constant(8, 3));
    let map = [(x, five), (y, three)].into_iter().collect();
    let value = a.substitute(less, &map);
    assert_false(a, value);
    let same = a.substitute_with(less, |_| None);
    assert_eq!(same, less);
    let swapped = a.substitute_with(less, |e| if e == x { Some(y) } else { None });
    let twice = a.add(y, y);
    assert_eq!(swapped, a.ult(twice, y));
}

#[test]
fn large_supports_are_found() {
    let mut setup = Setup::new();
    let bytes = setup.bytes.clone();
    let a = &mut setup.arena;
    let mut sum = a.constant(32, 0);
    for &byte in &bytes {
        let wide = a.zext(byte, 32);
        sum = a.add(sum, wide);
    }
    let support = a.support(sum);
    assert_eq!(support.len(), 64);
    assert!(!a.supports_disjoint(sum, bytes[63]));
    assert!(a.supports_disjoint(bytes[0], bytes[1]));
    assert_eq!(a.single_byte_support(sum), None);
}

/// The index of an element, computed from its address, is the index that the address was computed
/// from.
#[test]
fn the_index_of_an_element_is_found_again() {
    let mut setup = Setup::new();
    let byte = setup.bytes[0];
    let a = &mut setup.arena;
    let nibble = a.extract(byte, 0, 4);
    let (index, one) = (a.zext(nibble, 32), a.constant(32, 1));
    let next = a.add(index, one);
    let wide = a.zext(next, 64);
    let (two, back) = (a.constant(64, 2), a.constant(64, 4u64.wrapping_neg()));
    let scaled = a.binary(BinaryOp::Shl, wide, two);
    let address = a.add(scaled, back);
    let found = a.extract(address, 2, 62);
    let five = a.constant(62, 5);
    let is_five = a.eq(found, five);
    let five = a.constant(4, 5);
    assert_eq!(is_five, a.eq(nibble, five));
}
