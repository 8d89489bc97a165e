//! Operations on arrays. The presence of an element may depend on symbolic data.

use crate::code::{Application, Applied, Operation};
use crate::evaluate::{Evaluator, Stop};
use crate::source::Span;
use crate::terms::{Int, Truth};
use crate::value::{Bytes, Element, Value};
use std::rc::Rc;

const NOT_IN_RANGE: &str = "the index is out of range";

// Types were checked before: a value has the type as which it is used.
impl Evaluator<'_> {
    pub fn truth(&self, value: Value) -> Truth {
        match value {
            Value::Bool(truth) => truth,
            _ => unreachable!("checked to be bool"),
        }
    }

    pub fn int(&self, value: &Value) -> Int {
        match value {
            Value::Int(int) => *int,
            _ => unreachable!("checked to be int"),
        }
    }

    pub fn bytes<'v>(&self, value: &'v Value) -> &'v Bytes {
        match value {
            Value::Bytes(bytes) => bytes,
            _ => unreachable!("checked to be string or data"),
        }
    }

    pub fn elements(&self, value: Value) -> Rc<Vec<Element>> {
        match value {
            Value::Array(elements) => elements,
            _ => unreachable!("checked to be an array"),
        }
    }

    /// Applies a function to each element.
    pub fn apply(
        &mut self,
        frame: &mut Vec<Option<Value>>,
        application: Application,
        elements: &[Element],
        applied: &Applied,
        span: Span,
    ) -> Result<Value, Stop> {
        let mut results = Vec::with_capacity(elements.len());
        for element in elements {
            self.charge(1, span)?;
            let result = self.under(element.present, |evaluator| match applied {
                Applied::Function(function) => {
                    evaluator.call(*function, vec![element.value.clone()], span)
                }
                Applied::Lambda { slot, body } => {
                    frame[*slot] = Some(element.value.clone());
                    evaluator.expr(frame, body)
                }
            })?;
            // An element for which the function fails is dropped; the failure is recorded.
            if let Some(result) = result {
                results.push((element, result));
            }
        }
        let arena = &mut *self.arena;
        if application == Application::Map {
            let mapped = results.into_iter().map(|(element, value)| Element {
                present: element.present,
                value,
            });
            return Ok(Value::array(mapped.collect()));
        }
        let mut truths = Vec::with_capacity(results.len());
        for (element, result) in results {
            if let Value::Bool(truth) = result {
                truths.push((element, truth));
            }
        }
        Ok(match application {
            Application::All => {
                let all = truths
                    .iter()
                    .fold(Truth::Known(true), |all, (element, truth)| {
                        let fine = element.present.implies(*truth, arena);
                        all.and(fine, arena)
                    });
                Value::Bool(all)
            }
            Application::Any => {
                let any = truths
                    .iter()
                    .fold(Truth::Known(false), |any, (element, truth)| {
                        let found = element.present.and(*truth, arena);
                        any.or(found, arena)
                    });
                Value::Bool(any)
            }
            Application::Count | Application::Filter | Application::Map => {
                let kept = truths.into_iter().map(|(element, truth)| Element {
                    present: element.present.and(truth, arena),
                    value: element.value.clone(),
                });
                let mut kept: Vec<Element> = kept.collect();
                kept.retain(|element| element.present != Truth::Known(false));
                match application {
                    Application::Count => Value::Int(self.size(&kept)),
                    _ => Value::array(kept),
                }
            }
        })
    }

    /// Returns the number of present elements.
    fn size(&mut self, elements: &[Element]) -> Int {
        let arena = &mut *self.arena;
        elements.iter().fold(Int::Known(0), |size, element| {
            let one = element.present.widen(arena);
            size.add(one, arena).0
        })
    }

    /// Evaluates an operation on an array.
    pub fn array_operation(
        &mut self,
        operation: Operation,
        operands: &[Value],
        span: Span,
    ) -> Result<Value, Stop> {
        let elements = self.elements(operands[0].clone());
        self.charge(operands[0].size(), span)?;
        match operation {
            Operation::ArraySize => Ok(Value::Int(self.size(&elements))),
            Operation::Element => {
                let index = self.int(&operands[1]);
                self.element(&elements, index, span)
            }
            Operation::Join => {
                let others = self.elements(operands[1].clone());
                self.charge(operands[1].size(), span)?;
                let both = elements.iter().chain(others.iter()).cloned();
                Ok(Value::array(both.collect()))
            }
            Operation::EqualElements => self.pairs(&elements, true, span),
            Operation::DistinctElements => self.pairs(&elements, false, span),
            Operation::ArrayContains => {
                let mut found = Truth::Known(false);
                for element in elements.iter() {
                    let equal = self.equal(&element.value, &operands[1], span)?;
                    let here = element.present.and(equal, self.arena);
                    found = found.or(here, self.arena);
                }
                Ok(Value::Bool(found))
            }
            Operation::Sum => self.sum(&elements, span),
            Operation::Min => self.extreme(&elements, true, span),
            _ => self.extreme(&elements, false, span),
        }
    }

    /// Returns whether all elements are equal, or all are distinct.
    fn pairs(&mut self, elements: &[Element], equal: bool, span: Span) -> Result<Value, Stop> {
        let mut all = Truth::Known(true);
        for (i, a) in elements.iter().enumerate() {
            for b in &elements[i + 1..] {
                let same = self.equal(&a.value, &b.value, span)?;
                let fine = same.equals(Truth::Known(equal), self.arena);
                let both = a.present.and(b.present, self.arena);
                let fine = both.implies(fine, self.arena);
                all = all.and(fine, self.arena);
            }
            // If the first element is certainly present, comparing with it suffices.
            if all == Truth::Known(false) || (equal && a.present == Truth::Known(true)) {
                break;
            }
        }
        Ok(Value::Bool(all))
    }

    fn sum(&mut self, elements: &[Element], span: Span) -> Result<Value, Stop> {
        let mut sum = Int::Known(0);
        for element in elements {
            let value = self.int(&element.value);
            let value = value.merge(element.present, Int::Known(0), self.arena);
            let (next, overflow) = sum.add(value, self.arena);
            self.fail_if(
                overflow,
                span,
                "the sum does not fit in 64 bits with a sign",
            )?;
            sum = next;
        }
        Ok(Value::Int(sum))
    }

    fn extreme(&mut self, elements: &[Element], least: bool, span: Span) -> Result<Value, Stop> {
        let mut found = Truth::Known(false);
        let mut extreme = Int::Known(0);
        for element in elements {
            let value = self.int(&element.value);
            let better = match least {
                true => value.less(extreme, self.arena),
                false => extreme.less(value, self.arena),
            };
            let first = found.not(self.arena);
            let better = first.or(better, self.arena);
            let taken = element.present.and(better, self.arena);
            extreme = value.merge(taken, extreme, self.arena);
            found = found.or(element.present, self.arena);
        }
        let empty = found.not(self.arena);
        let message = match least {
            true => "the least of an array without elements",
            false => "the greatest of an array without elements",
        };
        self.fail_if(empty, span, message)?;
        Ok(Value::Int(extreme))
    }

    /// Returns the element at an index among the present ones.
    fn element(&mut self, elements: &[Element], index: Int, span: Span) -> Result<Value, Stop> {
        let plain = elements
            .iter()
            .all(|element| element.present == Truth::Known(true));
        if let (true, Int::Known(index)) = (plain, index) {
            let element = usize::try_from(index)
                .ok()
                .and_then(|index| elements.get(index));
            let element = element.ok_or_else(|| Stop::undefined(span, NOT_IN_RANGE))?;
            return Ok(element.value.clone());
        }
        let mut before = Int::Known(0);
        let mut candidates = Vec::new();
        for element in elements {
            let here = before.equals(index, self.arena);
            candidates.push((element.present.and(here, self.arena), element.value.clone()));
            let one = element.present.widen(self.arena);
            before = before.add(one, self.arena).0;
        }
        self.select(candidates, span, NOT_IN_RANGE)
    }

    /// Returns the value whose condition holds; at most one does. Fails if none does.
    pub fn select(
        &mut self,
        mut candidates: Vec<(Truth, Value)>,
        span: Span,
        none: &str,
    ) -> Result<Value, Stop> {
        candidates.retain(|(condition, _)| *condition != Truth::Known(false));
        let mut any = Truth::Known(false);
        for (condition, _) in &candidates {
            any = any.or(*condition, self.arena);
        }
        let missing = any.not(self.arena);
        self.fail_if(missing, span, none)?;
        let Some((_, mut value)) = candidates.pop() else {
            return Err(Stop::undefined(span, none));
        };
        while let Some((condition, other)) = candidates.pop() {
            value = self.merge(condition, &other, &value, span)?;
        }
        Ok(value)
    }

    /// Evaluates something for each value of a number from 0 to `most`. Fails for other values.
    pub fn by_cases(
        &mut self,
        number: Int,
        most: usize,
        span: Span,
        out_of_range: &str,
        mut evaluate: impl FnMut(&mut Self, usize) -> Result<Value, Stop>,
    ) -> Result<Value, Stop> {
        if let Int::Known(known) = number {
            let case = usize::try_from(known).ok().filter(|case| *case <= most);
            let case = case.ok_or_else(|| Stop::undefined(span, out_of_range))?;
            return evaluate(self, case);
        }
        let below = number.less(Int::Known(0), self.arena);
        let above = Int::Known(most as i64).less(number, self.arena);
        let outside = below.or(above, self.arena);
        self.fail_if(outside, span, out_of_range)?;
        let mut result: Option<Value> = None;
        for case in 0..=most {
            self.charge(1, span)?;
            let condition = number.equals(Int::Known(case as i64), self.arena);
            let Some(value) = self.under(condition, |e| evaluate(e, case))? else {
                continue;
            };
            result = Some(match result {
                Some(other) => self.merge(condition, &value, &other, span)?,
                None => value,
            });
        }
        match result {
            Some(value) => Ok(value),
            None => self.nothing(span),
        }
    }

    /// Returns whether two values of the same type are equal.
    pub fn equal(&mut self, a: &Value, b: &Value, span: Span) -> Result<Truth, Stop> {
        self.charge(a.size().min(b.size()), span)?;
        match (a, b) {
            (Value::Bool(a), Value::Bool(b)) => Ok(a.equals(*b, self.arena)),
            (Value::Int(a), Value::Int(b)) => Ok(a.equals(*b, self.arena)),
            (Value::Bytes(a), Value::Bytes(b)) => Ok(a.equals(b, self.arena)),
            (Value::Array(a), Value::Array(b)) => self.equal_arrays(a, b, span),
            _ => unreachable!("checked to be of one type"),
        }
    }

    fn equal_arrays(&mut self, a: &[Element], b: &[Element], span: Span) -> Result<Truth, Stop> {
        let (size_a, size_b) = (self.size(a), self.size(b));
        let mut equal = size_a.equals(size_b, self.arena);
        // Elements are compared by their index among the present ones.
        let (places_a, places_b) = (self.places(a), self.places(b));
        for (x, at_x) in a.iter().zip(&places_a) {
            for (y, at_y) in b.iter().zip(&places_b) {
                if equal == Truth::Known(false) {
                    return Ok(equal);
                }
                self.charge(1, span)?;
                let together = at_x.equals(*at_y, self.arena);
                let together = together
                    .and(x.present, self.arena)
                    .and(y.present, self.arena);
                if together == Truth::Known(false) {
                    continue;
                }
                let same = self.equal(&x.value, &y.value, span)?;
                let fine = together.implies(same, self.arena);
                equal = equal.and(fine, self.arena);
            }
        }
        Ok(equal)
    }

    /// Returns the number of present elements before each element.
    fn places(&mut self, elements: &[Element]) -> Vec<Int> {
        let mut before = Int::Known(0);
        let mut places = Vec::with_capacity(elements.len());
        for element in elements {
            places.push(before);
            let one = element.present.widen(self.arena);
            before = before.add(one, self.arena).0;
        }
        places
    }
}
