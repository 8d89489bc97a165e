//! Tests of inline assembly from real programs.

use everett_ir::code::{FloatKind, ValueType};

use crate::bug::BugKind;
use crate::testing::{Argument, Harness, bits, int, number, pointer};
use crate::value::Value;
use crate::vm::Interrupt;

const CLOBBERS: &str = "~{dirflag},~{fpsr},~{flags}";
const INT: ValueType = ValueType::Int(32);
const LONG: ValueType = ValueType::Int(64);

fn pair(registers: u16) -> ValueType {
    ValueType::Aggregate { registers }
}

/// Runs assembly on a block with these words; returns the results and the words afterwards.
fn run(
    template: &str,
    constraints: &str,
    words: &[u64],
    args: impl Fn(u64) -> Vec<Argument>,
    result: ValueType,
) -> (Vec<u64>, Vec<u64>) {
    let mut harness = Harness::new();
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let start = harness.block(&bytes);
    let constraints = match constraints {
        "" => CLOBBERS.to_owned(),
        operands => format!("{operands},{CLOBBERS}"),
    };
    let results = harness
        .assembly(template, &constraints, &args(start), result)
        .unwrap_or_else(|interrupt| panic!("{template}: {interrupt:?}"));
    let after = (0..words.len() as u64)
        .map(|at| {
            let word = harness.memory.load(&mut harness.arena, start + 8 * at, 8);
            word.expect("in the block").bits
        })
        .collect();
    (bits(&results), after)
}

fn plain(template: &str, constraints: &str, args: &[Argument], result: ValueType) -> Vec<u64> {
    run(template, constraints, &[], |_| args.to_vec(), result).0
}

#[test]
fn atomics_of_the_libc() {
    let args = |at| vec![pointer(at), int(32, 5), int(32, 9)];
    let cas = "={ax},=*m,{ax},r";
    let template = "lock ; cmpxchg $3, $1";
    assert_eq!(run(template, cas, &[5], args, INT), (vec![5], vec![9]));
    assert_eq!(run(template, cas, &[6], args, INT), (vec![6], vec![6]));
    let args = |at| vec![pointer(at), int(32, 7)];
    assert_eq!(
        run("xchg $0, $1", "=r,=*m,0", &[3], args, INT),
        (vec![3], vec![7])
    );
    assert_eq!(
        run("lock ; xadd $0, $1", "=r,=*m,0", &[3], args, INT),
        (vec![3], vec![10])
    );
    let or = run("lock ; or $1, $0", "=*m,r", &[8], args, ValueType::Void);
    assert_eq!(or, (vec![], vec![15]));
    let and = run("lock ; and $1, $0", "=*m,r", &[12], args, ValueType::Void);
    assert_eq!(and, (vec![], vec![4]));
    let template = "mov $1, $0 ; lock ; orl $$0,(%rsp)";
    assert_eq!(
        run(template, "=*m,r", &[1], args, ValueType::Void),
        (vec![], vec![7])
    );
    let args = |at| vec![pointer(at), pointer(at)];
    let inc = run(
        "lock ; incl $0",
        "=*m,*m",
        &[u64::MAX],
        args,
        ValueType::Void,
    );
    assert_eq!(inc, (vec![], vec![0xffff_ffff_0000_0000]));
    let dec = run("lock ; decl $0", "=*m,*m", &[1], args, ValueType::Void);
    assert_eq!(dec, (vec![], vec![0]));
    // The same in another notation.
    let args = |at| vec![pointer(at), int(32, 9), int(32, 5), pointer(at)];
    let other = run("lock; cmpxchgl $2,$1", "={ax},=*m,r,0,*m", &[5], args, INT);
    assert_eq!(other, (vec![5], vec![9]));
}

#[test]
fn wide_compare_and_exchange() {
    let template = "lock; cmpxchg16b $0; setz $1";
    let constraints = "=*m,=q,={ax},={dx},{bx},{cx},*m,2,3";
    let args = |at| {
        let words = [10u128, 11, 1, 2].map(|word| int(64, word));
        let [new_low, new_high, low, high] = words;
        vec![pointer(at), new_low, new_high, pointer(at), low, high]
    };
    let equal = run(template, constraints, &[1, 2], args, pair(3));
    assert_eq!(equal, (vec![1, 1, 2], vec![10, 11]));
    let other = run(template, constraints, &[1, 3], args, pair(3));
    assert_eq!(other, (vec![0, 1, 3], vec![1, 3]));
}

#[test]
fn arithmetic_of_two_words() {
    let all = int(64, u128::from(u64::MAX));
    let product = plain(
        "mulq $3",
        "={ax},={dx},%0,rm",
        &[all.clone(), all.clone()],
        pair(2),
    );
    assert_eq!(
        number(&product),
        u128::from(u64::MAX) * u128::from(u64::MAX)
    );
    let template = "addq $5,$1\n\tadcq $3,$0";
    let constraints = "=r,=&r,0,rme,%1,rme";
    let args = [int(64, 1), int(64, 2), all.clone(), int(64, 1)];
    // High words 1 and 2, low words all ones and 1: the low words carry.
    assert_eq!(plain(template, constraints, &args, pair(2)), [4, 0]);
    let template = "subq $5,${1:q}\n\tsbbq $3,${0:q}";
    let constraints = "=r,=&r,0,rme,1,rme";
    let args = [int(64, 5), int(64, 2), int(64, 0), int(64, 1)];
    assert_eq!(plain(template, constraints, &args, pair(2)), [2, u64::MAX]);
    let args = [int(64, 7), int(64, 100), int(64, 0)];
    let quotient = plain("divq $2", "={ax},={dx},r,0,1", &args, pair(2));
    assert_eq!(quotient, [14, 2]);
}

#[test]
fn bits_are_moved_and_found() {
    let rotated = plain(
        "roll $1,$0",
        "=r,I,0",
        &[int(32, 5), int(32, 0x8000_0001)],
        INT,
    );
    assert_eq!(rotated, [u64::from(0x8000_0001u32.rotate_left(5))]);
    let rotated = plain(
        "rorq ${1:b},$0",
        "=r,{cx},0",
        &[int(64, 3), int(64, 9)],
        LONG,
    );
    assert_eq!(rotated, [9u64.rotate_right(3)]);
    let swapped = plain("bswap $0", "=r,0", &[int(64, 0x0102_0304_0506_0708)], LONG);
    assert_eq!(swapped, [0x0807_0605_0403_0201]);
    assert_eq!(plain("bsf $1,$0", "=r,r", &[int(64, 0x50)], LONG), [4]);
    assert_eq!(
        plain("bsr $1,$0 ; xor $$63,$0", "=r,r", &[int(64, 0x50)], LONG),
        [57]
    );
    assert_eq!(plain("popcntq $1,$0", "=r,rm", &[int(64, 0x57)], LONG), [5]);
    let args = |at| vec![pointer(at), int(32, 33), pointer(at)];
    let template = "btsl $2,$1; setc $0";
    let set = run(template, "=q,=*m,Ir,*m", &[0], args, ValueType::Int(8));
    assert_eq!(set, (vec![0], vec![2 << 32]));
    let args = |at| vec![pointer(at), int(64, 2), pointer(at)];
    let template = "lock btrq $2,$1\n\tsbbq $0,$0";
    let cleared = run(template, "=r,=*m,r,*m", &[7], args, LONG);
    assert_eq!(cleared, (vec![u64::MAX], vec![3]));
}

#[test]
fn conditions_are_outputs() {
    let args = |at| vec![pointer(at), int(32, 3), pointer(at)];
    for (name, before, expected) in [
        ("bts", 0, (vec![0], vec![8])),
        ("bts", 8, (vec![1], vec![8])),
        ("btr", 9, (vec![1], vec![1])),
        ("btc", 1, (vec![0], vec![9])),
    ] {
        let template = format!("lock {name}l $2, $0\n");
        let constraints = "=*m,={@ccc},Ir,*m";
        let found = run(&template, constraints, &[before], args, ValueType::Int(8));
        assert_eq!(found, expected, "{template} of {before}");
    }
    let is_less = plain("cmpq $2, $1", "={@ccl},r,r", &[int(64, 3), int(64, 5)], INT);
    assert_eq!(is_less, [1]);
}

#[test]
fn what_the_processor_says_of_itself() {
    let known = plain(
        "cpuid",
        "={ax},={bx},={cx},={dx},0,2",
        &[int(32, 1), int(32, 0)],
        pair(4),
    );
    assert_eq!(known[3] >> 26 & 1, 1, "has SSE2");
    assert_eq!(known[2] >> 28 & 1, 0, "has no AVX");
    let through_rbx = "  xchg$(q$|$)  $(%$|$)rbx,${1:q}\n  cpuid\n  xchg$(q$|$)  $(%$|$)rbx,${1:q}";
    let vendor = plain(
        through_rbx,
        "={ax},=r,={cx},={dx},0",
        &[int(32, 0)],
        pair(4),
    );
    let name: Vec<u8> = [vendor[1], vendor[3], vendor[2]]
        .iter()
        .flat_map(|word| (*word as u32).to_le_bytes())
        .collect();
    assert_eq!(name, b"GenuineIntel");
    let other_dialect = ".intel_syntax noprefix\nmov ${0:q}, rbx\ncpuid\nxchg ${0:q}, rbx";
    let args = [int(32, 0), int(32, 0)];
    let vendor = plain(other_dialect, "=&r,={ax},={cx},={dx},1,2", &args, pair(4));
    assert_eq!(vendor[0], 0x756e_6547);
    assert_eq!(
        plain("xgetbv", "={ax},={dx},{cx}", &[int(32, 0)], pair(2)),
        [3, 0]
    );
}

#[test]
fn barriers_do_nothing() {
    let none = ValueType::Void;
    for template in ["", "pause", "mfence", "rep; nop", "rep nop"] {
        assert_eq!(plain(template, "", &[], none), []);
    }
    assert_eq!(plain("", "rm", &[int(64, 3)], none), []);
    assert_eq!(plain("", "=r,0", &[int(64, 3)], LONG), [3]);
    assert_eq!(
        plain("", "=r,=r,0,1", &[int(64, 3), int(64, 4)], pair(2)),
        [3, 4]
    );
    let memory = run(
        "",
        "=*m,*m",
        &[5],
        |at| vec![pointer(at), pointer(at)],
        none,
    );
    assert_eq!(memory, (vec![], vec![5]));
}

#[test]
fn traps_are_findings() {
    for (template, signal) in [("hlt", 11), ("ud2", 4), ("int3", 5)] {
        let result = Harness::new().assembly(template, "~{memory}", &[], ValueType::Void);
        let Err(Interrupt::Bug(bug)) = result else {
            panic!("{template} is no trap: {result:?}");
        };
        assert_eq!(bug.kind, BugKind::Trap);
        assert_eq!(bug.signal, Some(signal), "{template}");
    }
}

#[test]
fn system_calls_are_bound_by_register() {
    let constraints = "={rax},{rax},{rdi},{rsi},{rdx},~{memory},~{rcx},~{r11}";
    let args = [int(64, 1), int(64, 2), int(64, 3), int(64, 4)];
    let result = Harness::new().assembly("syscall", constraints, &args, LONG);
    let Err(Interrupt::SystemCall(call)) = result else {
        panic!("no system call: {result:?}");
    };
    assert_eq!(call.number, Value::concrete(1));
    assert_eq!(call.args[..3], [2, 3, 4].map(Value::concrete));
}

fn extended(x: f64) -> Argument {
    use everett_expr::{FloatFormat, float};
    let bits = float::convert(FloatFormat::Double, FloatFormat::X87, x.to_bits().into());
    let values = [bits as u64, (bits >> 64) as u64].map(Value::concrete);
    (ValueType::Float(FloatKind::X87), values.to_vec())
}

fn double(registers: &[u64]) -> f64 {
    use everett_expr::{FloatFormat, float};
    let bits = float::convert(FloatFormat::X87, FloatFormat::Double, number(registers));
    f64::from_bits(bits as u64)
}

#[test]
fn the_x87_computes() {
    let kind = ValueType::Float(FloatKind::X87);
    assert_eq!(
        double(&plain("fsqrt", "={st},0", &[extended(2.25)], kind)),
        1.5
    );
    assert_eq!(
        double(&plain("frndint", "={st},0", &[extended(2.5)], kind)),
        2.0
    );
    let template = "fprem1; fnstsw %ax";
    let remainder = |x: f64, y: f64| {
        let args = [extended(y), extended(x)];
        let result = plain(template, "={st},={ax},{st(1)},0", &args, pair(3));
        let quotient = result[2] >> 9 & 1 | result[2] >> 13 & 2 | result[2] >> 6 & 4;
        assert_eq!(result[2] & 0x400, 0, "it is complete");
        (double(&result[..2]), quotient)
    };
    assert_eq!(remainder(7.0, 2.0), (-1.0, 4));
    assert_eq!(remainder(5.0, 2.0), (1.0, 2));
    assert_eq!(remainder(-7.5, 2.0), (0.5, 4));
    assert_eq!(remainder(1e30, 3.0).0, (1e30 as u128 % 3) as f64);
    let args = |at| vec![pointer(at), extended(-2.5)];
    let stored = run("fistpll $0", "=*m,{st},~{st}", &[0], args, ValueType::Void);
    assert_eq!(stored.1, [-2i64 as u64]);
    let float = (
        ValueType::Float(FloatKind::Double),
        vec![Value::concrete(2.5f64.to_bits())],
    );
    assert_eq!(plain("cvtsd2si $1, $0", "=r,x", &[float], LONG), [2]);
}

#[test]
fn the_control_word_sets_the_rounding() {
    // The control word at $1 is loaded, the one at $2 is the default.
    let round = |template: &str, control: u16| {
        let mut harness = Harness::new();
        let words = [control, 0x037f].map(u16::to_le_bytes);
        let start = harness.block(words.as_flattened());
        let args = [pointer(start), pointer(start + 2), extended(2.75)];
        let kind = ValueType::Float(FloatKind::X87);
        match harness.assembly(template, "={st},*m,*m,0", &args, kind) {
            Ok(result) => Some(double(&bits(&result))),
            Err(Interrupt::Bug(bug)) if bug.kind == BugKind::Unsupported => None,
            Err(other) => panic!("{other:?}"),
        }
    };
    let set_back = "fldcw $1; frndint; fldcw $2";
    assert_eq!(round(set_back, 0x037f), Some(3.0));
    assert_eq!(round(set_back, 0x0f7f), Some(2.0));
    // Unmasked exceptions; a mode that stays; another precision.
    assert_eq!(round(set_back, 0x0340), None);
    assert_eq!(round("fldcw $1; frndint", 0x037f), Some(3.0));
    assert_eq!(round("fldcw $1; frndint", 0x0f7f), Some(2.0));
    assert_eq!(round("fldcw $1; frndint", 0x027f), None);
    assert_eq!(round("fldcw $1; fsqrt; fldcw $2", 0x0c7f), None);
}

#[test]
fn unknown_assembly_names_what_is_unknown() {
    let message = |template: &str, constraints: &str| {
        let args = [int(32, 1), int(32, 2), int(32, 3)];
        let mut harness = Harness::new();
        let result = harness.assembly(template, constraints, &args, ValueType::Void);
        match result {
            Err(Interrupt::Bug(bug)) if bug.kind == BugKind::Unsupported => bug.message,
            other => panic!("{template}: {other:?}"),
        }
    };
    assert!(message("nop; vaddps $0, $1, $2", "x,x,x").contains("the instruction vaddps"));
    assert!(message("rep addl $0, $1", "r,r,r").contains("the instruction addl"));
    assert!(message("mov %ymm0, $0", "r,r,r").contains("mov %ymm0, %0"));
    assert!(message("jmp 1b", "r,r,r").contains("the label 1b"));
    assert!(message("nop", "{zmm0},r,r").contains("these constraints"));
    assert!(message("1: jmp 1b", "r,r,r").contains("so many repetitions"));
}

#[test]
fn loops_and_repetitions_see_what_they_have_written() {
    let template = "1: movb $0, ($1); incq $1; incb $0; cmpb $$4, $0; jne 1b; movq (${2:q}), $0";
    let args = |at| vec![pointer(at), pointer(at), int(64, 0)];
    let (results, words) = run(template, "=&r,=r,r,1,0", &[u64::MAX], args, pair(2));
    assert_eq!(results[0], 0xffff_ffff_0302_0100);
    assert_eq!(words, [0xffff_ffff_0302_0100]);
    // Each byte is the one before it.
    let template = "incq %rdi; rep movsb";
    let args = |at| vec![pointer(at), pointer(at), int(64, 7)];
    let copied = run(
        template,
        "={di},={si},={cx},0,1,2",
        &[0x1122_3344_5566_7788],
        args,
        pair(3),
    );
    assert_eq!(copied.1, [0x8888_8888_8888_8888]);
    assert_eq!(copied.0[2], 0);
}

#[test]
fn repetitions_on_symbolic_bytes_stop_where_they_differ() {
    let mut harness = Harness::new();
    let text = harness.block(b"some text\0");
    harness.make_symbolic(text + 4);
    let left = int(64, u128::from(u64::MAX));
    let found = harness.assembly(
        "repne scasb",
        "={di},={cx},{ax},0,1",
        &[int(32, u128::from(b' ')), pointer(text), left],
        pair(2),
    );
    let found = bits(&found.expect("a space"));
    assert_eq!(found, [text + 5, u64::MAX - 5]);
    assert!(harness.world.questions > 0);
}

#[test]
fn writes_at_symbolic_addresses_are_seen() {
    let mut harness = Harness::new();
    let start = harness.block(&[0; 16]);
    let offset = harness.symbolic(3, 8);
    let args = [pointer(start), (LONG, vec![offset])];
    let template = "movb $$7, ($1,$2); movb $$9, 3($1); movzbl ($1,$2), ${0:k}";
    let found = harness.assembly(template, "=&r,r,r", &args, LONG);
    assert_eq!(bits(&found.expect("in the block")), [9]);
}
