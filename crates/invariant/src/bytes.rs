//! Operations on strings and data, and on the world: its nodes and the data they expose.

use crate::code::Operation;
use crate::evaluate::{Evaluator, Stop};
use crate::source::Span;
use crate::terms::{Byte, Int, Truth, number};
use crate::value::{Bytes, Element, Value};
use std::collections::BTreeSet;

const TOO_SHORT: &str = "the data is too short for what is read from it";
const TOO_LARGE: &str = "the number does not fit in 64 bits with a sign";
const NO_NODE: &str = "there is no node of this name";

impl Evaluator<'_> {
    pub fn operation(
        &mut self,
        operation: Operation,
        operands: &[Value],
        span: Span,
    ) -> Result<Value, Stop> {
        use Operation::*;
        match operation {
            Nodes => {
                let names = self.nodes.iter().map(|name| present(Value::text(name)));
                Ok(Value::array(names.collect()))
            }
            NodeIndex => {
                let nodes = self.find_nodes(&operands[0], span)?;
                let numbers = nodes.into_iter();
                let numbers = numbers.map(|(c, node)| (c, Value::Int(Int::Known(node as i64))));
                self.select(numbers.collect(), span, NO_NODE)
            }
            States => self.states(&operands[0], span),
            Keys => self.keys(&operands[0], &operands[1], span),
            Has | Data => {
                let found = self.lookup([&operands[0], &operands[1], &operands[2]], span)?;
                if operation == Data {
                    let found = found.into_iter().map(|(c, data)| (c, Value::Bytes(data)));
                    let none = "the node shows no data for this state and key (`sys.has` asks)";
                    return self.select(found.collect(), span, none);
                }
                let any = found
                    .into_iter()
                    .fold(Truth::Known(false), |any, (condition, _)| {
                        any.or(condition, self.arena)
                    });
                Ok(Value::Bool(any))
            }
            ArraySize | Element | Join | EqualElements | DistinctElements | ArrayContains | Sum
            | Min | Max => self.array_operation(operation, operands, span),
            BytesSize
            | ByteAt
            | Concat
            | Slice
            | StartsWith
            | EndsWith
            | BytesContain
            | Same
            | CString
            | Decode { .. }
            | DecodeAll { .. } => self.bytes_operation(operation, operands, span),
        }
    }

    fn bytes_operation(
        &mut self,
        operation: Operation,
        operands: &[Value],
        span: Span,
    ) -> Result<Value, Stop> {
        let object = self.bytes(&operands[0]);
        self.charge(operands[0].size(), span)?;
        match operation {
            Operation::BytesSize => Ok(Value::Int(object.length)),
            Operation::ByteAt => {
                let decode = Operation::Decode {
                    size: 1,
                    signed: false,
                    big_endian: false,
                };
                self.bytes_operation(decode, operands, span)
            }
            Operation::Concat => self.concat(object, self.bytes(&operands[1]), span),
            Operation::Slice => {
                let (from, to) = (self.int(&operands[1]), self.int(&operands[2]));
                let message = "the slice does not lie in the bytes";
                self.by_cases(from, object.bytes.len(), span, message, |e, from| {
                    e.slice(object, from, to, span)
                })
            }
            Operation::StartsWith => {
                let other = self.bytes(&operands[1]);
                Ok(Value::Bool(object.has_at(0, other, self.arena)))
            }
            Operation::EndsWith | Operation::BytesContain => {
                let other = self.bytes(&operands[1]);
                let at_end = operation == Operation::EndsWith;
                self.search(object, other, at_end, span).map(Value::Bool)
            }
            Operation::CString => Ok(Value::Bytes(self.c_string(object))),
            Operation::Decode {
                size,
                signed,
                big_endian,
            } => {
                let offset = self.int(&operands[1]);
                let Some(last) = object.bytes.len().checked_sub(size) else {
                    return Err(Stop::undefined(span, TOO_SHORT));
                };
                self.by_cases(offset, last, span, TOO_SHORT, |e, offset| {
                    let end = Int::Known((offset + size) as i64);
                    let short = object.length.less(end, e.arena);
                    e.fail_if(short, span, TOO_SHORT)?;
                    let mut bytes = object.bytes[offset..offset + size].to_vec();
                    if big_endian {
                        bytes.reverse();
                    }
                    e.decode(&bytes, signed, span)
                })
            }
            Operation::DecodeAll { signed } => {
                let most = object.bytes.len().min(8);
                let message = "a number is read from 1 to 8 bytes";
                self.by_cases(
                    object.length,
                    most,
                    span,
                    message,
                    |e, length| match length {
                        0 => Err(Stop::undefined(span, message)),
                        _ => e.decode(&object.bytes[..length], signed, span),
                    },
                )
            }
            _ => Ok(operands[0].clone()),
        }
    }

    fn decode(&mut self, bytes: &[Byte], signed: bool, span: Span) -> Result<Value, Stop> {
        let value = number(bytes, signed, self.arena);
        if !signed {
            let too_large = value.less(Int::Known(0), self.arena);
            self.fail_if(too_large, span, TOO_LARGE)?;
        }
        Ok(Value::Int(value))
    }

    fn concat(&mut self, first: &Bytes, second: &Bytes, span: Span) -> Result<Value, Stop> {
        // The second starts where the first ends, which may be at several positions.
        self.by_cases(
            first.length,
            first.bytes.len(),
            span,
            TOO_SHORT,
            |e, length| {
                e.charge((length + second.bytes.len()) as u64, span)?;
                let both = first.bytes[..length].iter().chain(second.bytes.iter());
                let both = both.copied().collect();
                let (total, _) = second.length.add(Int::Known(length as i64), e.arena);
                Ok(Value::Bytes(Bytes::with_length(both, total)))
            },
        )
    }

    /// Returns the bytes from an index up to another.
    fn slice(&mut self, object: &Bytes, from: usize, to: Int, span: Span) -> Result<Value, Stop> {
        self.charge((object.bytes.len() - from) as u64, span)?;
        let before = to.less(Int::Known(from as i64), self.arena);
        let beyond = object.length.less(to, self.arena);
        let outside = before.or(beyond, self.arena);
        self.fail_if(outside, span, "the slice does not lie in the bytes")?;
        let (length, _) = to.subtract(Int::Known(from as i64), self.arena);
        let mut bytes = Vec::new();
        for (i, byte) in object.bytes[from..].iter().enumerate() {
            let inside = Int::Known(i as i64).less(length, self.arena);
            bytes.push(byte.merge(inside, Byte::Known(0), self.arena));
        }
        Ok(Value::Bytes(Bytes::with_length(bytes, length)))
    }

    /// Returns whether bytes occur somewhere in others, or at their end.
    fn search(
        &mut self,
        object: &Bytes,
        other: &Bytes,
        at_end: bool,
        span: Span,
    ) -> Result<Truth, Stop> {
        let mut found = Truth::Known(false);
        for index in 0..=object.bytes.len() {
            self.charge(1 + other.bytes.len() as u64, span)?;
            let mut here = object.has_at(index, other, self.arena);
            if at_end {
                let (end, _) = other.length.add(Int::Known(index as i64), self.arena);
                let last = end.equals(object.length, self.arena);
                here = here.and(last, self.arena);
            }
            found = found.or(here, self.arena);
        }
        Ok(found)
    }

    /// Returns the bytes before the first zero.
    fn c_string(&mut self, object: &Bytes) -> Bytes {
        let mut inside = Truth::Known(true);
        let mut length = Int::Known(0);
        let mut bytes = Vec::with_capacity(object.bytes.len());
        for (i, byte) in object.bytes.iter().enumerate() {
            let exists = Int::Known(i as i64).less(object.length, self.arena);
            let zero = byte.equals(Byte::Known(0), self.arena);
            let goes_on = zero.not(self.arena).and(exists, self.arena);
            inside = inside.and(goes_on, self.arena);
            if inside == Truth::Known(false) {
                break;
            }
            bytes.push(byte.merge(inside, Byte::Known(0), self.arena));
            let one = inside.widen(self.arena);
            length = length.add(one, self.arena).0;
        }
        Bytes::with_length(bytes, length)
    }

    /// Returns the nodes that a name can denote, each with its condition. Fails if there is none.
    fn find_nodes(&mut self, name: &Value, span: Span) -> Result<Vec<(Truth, usize)>, Stop> {
        let name = self.bytes(name);
        if let Some(known) = name.known() {
            let node = self.nodes.iter().position(|node| *node == known);
            let missing = || Stop::undefined(span, format!("there is no node `{known}`"));
            return Ok(vec![(Truth::Known(true), node.ok_or_else(missing)?)]);
        }
        let mut found = Vec::new();
        let mut any = Truth::Known(false);
        for (number, node) in self.nodes.iter().enumerate() {
            let same = name.equals(&Bytes::text(node.as_bytes()), self.arena);
            if same != Truth::Known(false) {
                found.push((same, number));
                any = any.or(same, self.arena);
            }
        }
        let none = any.not(self.arena);
        self.fail_if(none, span, NO_NODE)?;
        Ok(found)
    }

    fn states(&mut self, node: &Value, span: Span) -> Result<Value, Stop> {
        let mut elements = Vec::new();
        for (condition, node) in self.find_nodes(node, span)? {
            let exposed = self.view.exposed(node);
            let states: BTreeSet<String> = exposed.into_iter().map(|(state, _)| state).collect();
            elements.extend(states.iter().map(|state| crate::value::Element {
                present: condition,
                value: Value::text(state),
            }));
        }
        self.charge(elements.len() as u64, span)?;
        Ok(Value::array(elements))
    }

    fn keys(&mut self, node: &Value, state: &Value, span: Span) -> Result<Value, Stop> {
        let mut elements = Vec::new();
        for (condition, node) in self.find_nodes(node, span)? {
            for (name, key) in self.view.exposed(node) {
                self.charge(1, span)?;
                let same = self.is_state(state, &name);
                let present = condition.and(same, self.arena);
                if present != Truth::Known(false) {
                    let value = Value::text(&key);
                    elements.push(crate::value::Element { present, value });
                }
            }
        }
        Ok(Value::array(elements))
    }

    /// Returns whether a state, given by number or name, has this name.
    fn is_state(&mut self, state: &Value, name: &str) -> Truth {
        match state {
            Value::Int(number) => match name.parse::<i64>() {
                Ok(value) if value.to_string() == name => {
                    number.equals(Int::Known(value), self.arena)
                }
                _ => Truth::Known(false),
            },
            other => {
                let text = Bytes::text(name.as_bytes());
                self.bytes(other).equals(&text, self.arena)
            }
        }
    }

    /// Returns the data exposed for a node, state and key. There may be several, depending on
    /// symbolic bytes.
    pub fn lookup(
        &mut self,
        [node, state, key]: [&Value; 3],
        span: Span,
    ) -> Result<Vec<(Truth, Bytes)>, Stop> {
        let view = self.view;
        let known_state = match state {
            Value::Int(Int::Known(number)) => Some(number.to_string()),
            Value::Int(Int::Term(_)) => None,
            other => self.bytes(other).known(),
        };
        let known_key = self.bytes(key).known();
        let mut found = Vec::new();
        for (condition, node) in self.find_nodes(node, span)? {
            if let (Some(state), Some(key)) = (&known_state, &known_key) {
                if let Some(data) = view.data(node, state, key) {
                    found.push((condition, self.shown(&data, span)?));
                }
                continue;
            }
            for (state_name, key_name) in view.exposed(node) {
                self.charge(1, span)?;
                let text = Bytes::text(key_name.as_bytes());
                let same_key = self.bytes(key).equals(&text, self.arena);
                let same_state = self.is_state(state, &state_name);
                let condition = condition
                    .and(same_state, self.arena)
                    .and(same_key, self.arena);
                if condition == Truth::Known(false) {
                    continue;
                }
                if let Some(data) = view.data(node, &state_name, &key_name) {
                    found.push((condition, self.shown(&data, span)?));
                }
            }
        }
        Ok(found)
    }

    /// Converts data of the view; constant terms become known bytes.
    fn shown(&mut self, data: &[Byte], span: Span) -> Result<Bytes, Stop> {
        self.charge(data.len() as u64, span)?;
        let bytes = data.iter().map(|byte| match byte {
            Byte::Known(value) => Byte::Known(*value),
            Byte::Term(term) => Byte::of(self.arena, *term),
        });
        Ok(Bytes::new(bytes.collect::<Vec<_>>()))
    }
}

fn present(value: Value) -> Element {
    Element {
        present: Truth::Known(true),
        value,
    }
}
