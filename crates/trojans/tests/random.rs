//! Random clients and servers over messages of two bytes. Compares the answers of the search with
//! an enumeration of all 65,536 messages and with z3's answers to the quantified question.

use everett_expr::{Arena, ArrayId, ArrayInfo, ExprId};
use everett_solver::SolverConfig;
use everett_trojans::{Answer, Count, Encoded, Field, How, Layout, Search, SearchOptions};
use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// A 16-bit term over two bytes.
#[derive(Clone, Debug)]
enum Term {
    Byte(u32),
    Both,
    Constant(u16),
    Add(Box<Term>, Box<Term>),
    Xor(Box<Term>, Box<Term>),
    And(Box<Term>, Box<Term>),
    Times(Box<Term>, u16),
}

/// A condition over two bytes.
#[derive(Clone, Debug)]
enum Condition {
    Less(Term, Term),
    Signed(Term, Term),
    Same(Term, Term),
    Not(Box<Condition>),
}

impl Term {
    fn value(&self, bytes: u16) -> u16 {
        match self {
            Term::Byte(at) => bytes >> (8 * at) & 0xff,
            Term::Both => bytes,
            Term::Constant(value) => *value,
            Term::Add(a, b) => a.value(bytes).wrapping_add(b.value(bytes)),
            Term::Xor(a, b) => a.value(bytes) ^ b.value(bytes),
            Term::And(a, b) => a.value(bytes) & b.value(bytes),
            Term::Times(a, factor) => a.value(bytes).wrapping_mul(*factor),
        }
    }

    fn term(&self, arena: &mut Arena, array: ArrayId) -> ExprId {
        match self {
            Term::Byte(at) => {
                let byte = arena.read(array, *at);
                arena.zext(byte, 16)
            }
            Term::Both => {
                let (low, high) = (arena.read(array, 0), arena.read(array, 1));
                arena.concat(high, low)
            }
            Term::Constant(value) => arena.constant(16, u64::from(*value)),
            Term::Add(a, b) => {
                let (a, b) = (a.term(arena, array), b.term(arena, array));
                arena.add(a, b)
            }
            Term::Xor(a, b) => {
                let (a, b) = (a.term(arena, array), b.term(arena, array));
                arena.xor(a, b)
            }
            Term::And(a, b) => {
                let (a, b) = (a.term(arena, array), b.term(arena, array));
                arena.and(a, b)
            }
            Term::Times(a, factor) => {
                let a = a.term(arena, array);
                let factor = arena.constant(16, u64::from(*factor));
                arena.mul(a, factor)
            }
        }
    }
}

impl Condition {
    fn holds(&self, bytes: u16) -> bool {
        match self {
            Condition::Less(a, b) => a.value(bytes) < b.value(bytes),
            Condition::Signed(a, b) => (a.value(bytes) as i16) < b.value(bytes) as i16,
            Condition::Same(a, b) => a.value(bytes) == b.value(bytes),
            Condition::Not(inner) => !inner.holds(bytes),
        }
    }

    fn term(&self, arena: &mut Arena, array: ArrayId) -> ExprId {
        match self {
            Condition::Less(a, b) => {
                let (a, b) = (a.term(arena, array), b.term(arena, array));
                arena.ult(a, b)
            }
            Condition::Signed(a, b) => {
                let (a, b) = (a.term(arena, array), b.term(arena, array));
                arena.slt(a, b)
            }
            Condition::Same(a, b) => {
                let (a, b) = (a.term(arena, array), b.term(arena, array));
                arena.eq(a, b)
            }
            Condition::Not(inner) => {
                let inner = inner.term(arena, array);
                arena.not(inner)
            }
        }
    }
}

/// A client path: a message of two bytes computed from two bytes of input.
#[derive(Clone, Debug)]
struct Client {
    message: Term,
    conditions: Vec<Condition>,
    big_endian: bool,
}

impl Client {
    fn message(&self, input: u16) -> Option<u16> {
        let is_path = self
            .conditions
            .iter()
            .all(|condition| condition.holds(input));
        let message = self.message.value(input);
        is_path.then_some(match self.big_endian {
            true => message.swap_bytes(),
            false => message,
        })
    }

    fn encoded(&self) -> Encoded {
        let mut arena = Arena::new();
        let array = arena.array(0, "input", 2);
        let number = self.message.term(&mut arena, array);
        let mut bytes = [arena.extract(number, 0, 8), arena.extract(number, 8, 8)];
        if self.big_endian {
            bytes.reverse();
        }
        let conditions = self.conditions.iter();
        let conditions: Vec<ExprId> = conditions
            .map(|condition| condition.term(&mut arena, array))
            .collect();
        Encoded::of(&arena, "client", &bytes, &conditions)
    }
}

fn term() -> impl Strategy<Value = Term> {
    let leaf = prop_oneof![
        (0..2u32).prop_map(Term::Byte),
        Just(Term::Both),
        prop_oneof![0..260u16, any::<u16>()].prop_map(Term::Constant),
    ];
    leaf.prop_recursive(2, 6, 2, |inner| {
        let pair = || {
            (
                inner.clone().prop_map(Box::new),
                inner.clone().prop_map(Box::new),
            )
        };
        prop_oneof![
            pair().prop_map(|(a, b)| Term::Add(a, b)),
            pair().prop_map(|(a, b)| Term::Xor(a, b)),
            pair().prop_map(|(a, b)| Term::And(a, b)),
            (inner.clone().prop_map(Box::new), 1..13u16).prop_map(|(a, b)| Term::Times(a, b)),
        ]
    })
}

fn condition() -> impl Strategy<Value = Condition> {
    let plain = prop_oneof![
        3 => (term(), term()).prop_map(|(a, b)| Condition::Less(a, b)),
        2 => (term(), term()).prop_map(|(a, b)| Condition::Signed(a, b)),
        1 => (term(), term()).prop_map(|(a, b)| Condition::Same(a, b)),
    ];
    (plain, any::<bool>()).prop_map(|(condition, is_negated)| match is_negated {
        true => Condition::Not(Box::new(condition)),
        false => condition,
    })
}

fn client() -> impl Strategy<Value = Client> {
    let message = prop_oneof![2 => Just(Term::Both), 3 => term()];
    let conditions = prop::collection::vec(condition(), 0..3);
    (message, conditions, any::<bool>()).prop_map(|(message, conditions, big_endian)| Client {
        message,
        conditions,
        big_endian,
    })
}

/// Which parts of a message of two bytes are masked.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Mask {
    Nothing,
    Second,
    /// The second byte, if it follows a field whose length is the first byte.
    Behind,
}

impl Mask {
    fn layout(self) -> Layout {
        let mut fields = vec![Field::new("a", Count::Fixed(1))];
        if self == Mask::Behind {
            fields.push(Field::new("b", Count::Said("a".to_owned())));
        }
        fields.push(Field {
            masked: self != Mask::Nothing,
            ..Field::new("c", Count::Fixed(1))
        });
        Layout { fields }
    }

    /// Returns whether the second byte is masked for this value of the first one.
    fn is_masked(self, first: usize) -> bool {
        match self {
            Mask::Nothing => false,
            Mask::Second => true,
            Mask::Behind => first == 0,
        }
    }
}

fn mask() -> impl Strategy<Value = Mask> {
    prop_oneof![Just(Mask::Nothing), Just(Mask::Second), Just(Mask::Behind)]
}

fn search(clients: &[Client], mask: Mask, options: SearchOptions) -> Search {
    let sent: Vec<Encoded> = clients.iter().map(Client::encoded).collect();
    let solver = SolverConfig::default();
    Search::new(2, &mask.layout(), &sent, solver, options).expect("a search")
}

/// Returns the condition of a server path in the arena of a search.
fn path(search: &mut Search, conditions: &[Condition]) -> Vec<ExprId> {
    let mut arena = Arena::new();
    let array = arena.array(3, "sender:message", 2);
    let info: ArrayInfo = arena.array_info(array).clone();
    let conditions: Vec<ExprId> = conditions
        .iter()
        .map(|condition| condition.term(&mut arena, array))
        .collect();
    search.path(&arena, &info, &conditions).expect("terms")
}

/// Returns which messages no client sends, compared in unmasked bytes.
fn unsent(clients: &[Client], mask: Mask) -> Vec<bool> {
    let mut unsent = vec![true; 1 << 16];
    for client in clients {
        for message in (0..=u16::MAX).filter_map(|input| client.message(input)) {
            unsent[usize::from(message)] = false;
        }
    }
    for low in (0..256).filter(|low| mask.is_masked(*low)) {
        let any = (0..256).any(|high| !unsent[high << 8 | low]);
        (0..256).for_each(|high| unsent[high << 8 | low] = !any);
    }
    unsent
}

fn bytes(message: usize) -> [u8; 2] {
    (message as u16).to_le_bytes()
}

fn all_options() -> Vec<SearchOptions> {
    let usual = SearchOptions::default();
    let drop = SearchOptions {
        drop: false,
        ..usual
    };
    let by_fields = SearchOptions {
        by_fields: false,
        ..usual
    };
    vec![usual, drop, by_fields]
}

fn compare(clients: &[Client], server: &[Condition], mask: Mask) -> Result<(), TestCaseError> {
    let clients: Vec<Client> = clients.to_vec();
    // A path with an unsatisfiable condition does not exist.
    let exists = |client: &Client| (0..=u16::MAX).any(|input| client.message(input).is_some());
    let clients: Vec<Client> = clients.into_iter().filter(exists).collect();
    let unsent = unsent(&clients, mask);
    let is_accepted = |message: usize| server.iter().all(|one| one.holds(message as u16));
    let trojans: Vec<usize> = (0..1 << 16)
        .filter(|message| unsent[*message] && is_accepted(*message))
        .collect();
    for options in all_options() {
        let mut search = search(&clients, mask, options);
        let path = path(&mut search, server);
        if !search.is_possible(&path) {
            prop_assert!(
                trojans.is_empty(),
                "pruned, but {:?} is one",
                trojans.first()
            );
        }
        match search.decide(&path) {
            Answer::Trojan(found) => {
                let message = usize::from(u16::from_le_bytes([found.message[0], found.message[1]]));
                prop_assert!(
                    trojans.contains(&message),
                    "{message:x} is none ({options:?})"
                );
                if search.open_predicates() == 0 {
                    prop_assert_eq!(found.how, How::Exact);
                }
            }
            Answer::None => prop_assert!(trojans.is_empty(), "{:?} is one", trojans.first()),
            Answer::Undecided(_) => prop_assert!(search.open_predicates() > 0),
        }
        for message in (0..1 << 16).step_by(3_001).chain(trojans.first().copied()) {
            let message_bytes = bytes(message);
            let places = search.unmasked(&message_bytes);
            let takes = search.takes(&path, &message_bytes).expect("decided");
            prop_assert_eq!(takes, is_accepted(message));
            let produced = search.produced(&message_bytes, &places).expect("decided");
            prop_assert_eq!(produced.is_none(), unsent[message]);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn trojans_are_what_no_client_sends(
        clients in prop::collection::vec(client(), 1..4),
        server in prop::collection::vec(condition(), 0..3),
        mask in mask(),
    ) {
        compare(&clients, &server, mask)?;
    }
}

#[test]
fn a_double_is_even() {
    // The paper's negation of `m = 2x and x > 0` misses the odd messages.
    let client = Client {
        message: Term::Times(Box::new(Term::Both), 2),
        conditions: vec![Condition::Signed(Term::Constant(0), Term::Both)],
        big_endian: false,
    };
    let is_odd = Condition::Same(
        Term::And(Box::new(Term::Both), Box::new(Term::Constant(1))),
        Term::Constant(1),
    );
    let is_positive = Condition::Signed(Term::Constant(0), Term::Both);
    compare(
        std::slice::from_ref(&client),
        &[is_odd.clone(), is_positive],
        Mask::Nothing,
    )
    .expect("odd ones");
    let mut search = search(&[client], Mask::Nothing, SearchOptions::default());
    let odd = path(&mut search, &[is_odd]);
    assert!(matches!(search.decide(&odd), Answer::Trojan(found) if found.how == How::Exact));
    let in_range = Condition::Less(Term::Constant(1), Term::Both);
    let even = Condition::Same(
        Term::And(Box::new(Term::Both), Box::new(Term::Constant(1))),
        Term::Constant(0),
    );
    assert_eq!(search.open_predicates(), 0);
    // x is at most 0x7fff, so its double is any even number but 0.
    let even = path(&mut search, &[even, in_range]);
    assert_eq!(search.decide(&even), Answer::None);
}

impl Term {
    /// Returns SMT-LIB text over the bytes of a variable.
    fn smt(&self, of: &str) -> String {
        let pair = |name: &str, a: &Term, b: &Term| format!("({name} {} {})", a.smt(of), b.smt(of));
        match self {
            Term::Byte(at) => {
                let (low, high) = (8 * at, 8 * at + 7);
                format!("((_ zero_extend 8) ((_ extract {high} {low}) {of}))")
            }
            Term::Both => of.to_owned(),
            Term::Constant(value) => format!("#x{value:04x}"),
            Term::Add(a, b) => pair("bvadd", a, b),
            Term::Xor(a, b) => pair("bvxor", a, b),
            Term::And(a, b) => pair("bvand", a, b),
            Term::Times(a, factor) => pair("bvmul", a, &Term::Constant(*factor)),
        }
    }
}

impl Condition {
    fn smt(&self, of: &str) -> String {
        let pair = |name: &str, a: &Term, b: &Term| format!("({name} {} {})", a.smt(of), b.smt(of));
        match self {
            Condition::Less(a, b) => pair("bvult", a, b),
            Condition::Signed(a, b) => pair("bvslt", a, b),
            Condition::Same(a, b) => pair("=", a, b),
            Condition::Not(inner) => format!("(not {})", inner.smt(of)),
        }
    }
}

impl Client {
    /// Returns SMT-LIB text that says that the client sends a message `m`, under a mask.
    fn smt(&self, mask: Mask) -> String {
        let swapped = |of: &str| format!("(concat ((_ extract 7 0) {of}) ((_ extract 15 8) {of}))");
        let sent = self.message.smt("x");
        let sent = if self.big_endian {
            swapped(&sent)
        } else {
            sent
        };
        let first = |of: &str| format!("((_ extract 7 0) {of})");
        let same = format!("(= m {sent})");
        let same_first = format!("(= {} {})", first("m"), first(&sent));
        let mut parts: Vec<String> = self.conditions.iter().map(|one| one.smt("x")).collect();
        parts.push(match mask {
            Mask::Nothing => same,
            Mask::Second => same_first,
            Mask::Behind => format!("(or {same} (and {same_first} (= {} #x00)))", first("m")),
        });
        format!("(and true {})", parts.join(" "))
    }
}

/// Asks z3, with a bound on its work, whether there is a Trojan message; with a message, whether it
/// is one.
fn asked(z3: &Path, question: (&[Client], &[Condition], Mask), message: Option<u16>) -> String {
    let (clients, server, mask) = question;
    let mut script = "(set-logic BV)\n(declare-const m (_ BitVec 16))\n".to_owned();
    let accepted = server.iter().map(|condition| condition.smt("m"));
    let unsent = clients.iter().map(|client| {
        let sent = client.smt(mask);
        format!("(forall ((x (_ BitVec 16))) (not {sent}))")
    });
    let given = message.map(|message| format!("(= m #x{message:04x})"));
    for condition in accepted.chain(unsent).chain(given) {
        script += &format!("(assert {condition})\n");
    }
    script += "(check-sat)\n";
    let mut child = Command::new(z3)
        .args(["rlimit=300000", "-in"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("z3 starts");
    let mut input = child.stdin.take().expect("an input");
    input.write_all(script.as_bytes()).expect("z3 reads");
    drop(input);
    let output = child.wait_with_output().expect("z3 answers");
    let answer = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    assert!(
        ["sat", "unsat", "unknown"].contains(&answer.as_str()),
        "{answer}\n{script}"
    );
    answer
}

/// Compares the answer about a server path with z3's. Returns whether z3 had one.
fn agrees(z3: &Path, clients: &[Client], server: &[Condition], mask: Mask) -> bool {
    let exists = |client: &&Client| (0..=u16::MAX).any(|input| client.message(input).is_some());
    let clients: Vec<Client> = clients.iter().filter(exists).cloned().collect();
    let question = (&clients[..], server, mask);
    let mut search = search(&clients, mask, SearchOptions::default());
    let path = path(&mut search, server);
    let answers = match search.decide(&path) {
        Answer::Trojan(found) => {
            let message = u16::from_le_bytes([found.message[0], found.message[1]]);
            let is_one = asked(z3, question, Some(message));
            assert_ne!(is_one, "unsat", "{message:x} is none: {question:?}");
            let any = asked(z3, question, None);
            assert_ne!(any, "unsat", "{message:x} is one: {question:?}");
            [is_one, any]
        }
        Answer::None => {
            let any = asked(z3, question, None);
            assert_ne!(any, "sat", "there is one: {question:?}");
            [any.clone(), any]
        }
        Answer::Undecided(_) => return false,
    };
    answers.iter().all(|answer| answer != "unknown")
}

#[test]
fn z3_with_quantifiers_agrees() {
    let z3 = everett_toolchain::ensure_z3(None, &|_| ()).expect("z3");
    // Cases that z3 decides, so that something is compared: a double, and a sum of two bytes.
    let double = Client {
        message: Term::Times(Box::new(Term::Both), 2),
        conditions: vec![Condition::Signed(Term::Constant(0), Term::Both)],
        big_endian: false,
    };
    let any = Condition::Less(Term::Constant(3), Term::Both);
    for mask in [Mask::Nothing, Mask::Second, Mask::Behind] {
        let server = std::slice::from_ref(&any);
        assert!(agrees(&z3, std::slice::from_ref(&double), server, mask));
    }
    let everything = Client {
        message: Term::Both,
        conditions: Vec::new(),
        big_endian: true,
    };
    assert!(agrees(&z3, &[everything, double], &[any], Mask::Nothing));
    let config = ProptestConfig {
        cases: 20,
        ..ProptestConfig::default()
    };
    let clients = prop::collection::vec(client(), 1..3);
    let server = prop::collection::vec(condition(), 0..3);
    // The cases are always the same: some take z3 long, whatever the bound on its work.
    let drawn = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(config, drawn);
    let decided = std::cell::Cell::new(0);
    let compared = runner.run(&(clients, server, mask()), |case| {
        let (clients, server, mask) = case;
        let is_decided = agrees(&z3, &clients, &server, mask);
        decided.set(decided.get() + u32::from(is_decided));
        Ok(())
    });
    compared.expect("the same answers");
    assert!(decided.get() > 10, "z3 decides only {}", decided.get());
}
