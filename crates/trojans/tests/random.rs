//! Random clients and servers over messages of two bytes, compared with all 65,536 messages.

use everett_expr::{Arena, ArrayId, ArrayInfo, ExprId};
use everett_solver::SolverConfig;
use everett_trojans::{Answer, Count, Encoded, Field, How, Layout, Search, SearchOptions};
use proptest::prelude::*;

/// A term of 16 bits over two bytes.
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

/// A client's path: a message of two bytes from two bytes of input.
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

/// What is masked of a message of two bytes.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Mask {
    Nothing,
    Second,
    /// The byte behind a field of which the first byte says how long it is.
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

    /// Whether the second byte is masked where the first one is this.
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

/// The condition of a server's path in the arena of a search.
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

/// All messages that no client sends, as far as the mask tells them apart.
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
    // A path whose condition cannot hold does not exist.
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
    // The paper's negation of `m = 2x and x > 0` misses the odd ones.
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
