//! Evaluation of statements, calls and conditions. If a condition is symbolic, both branches are
//! evaluated and the results merged, so that one evaluation covers all values of the symbolic
//! bytes.

use crate::Invariant;
use crate::check::Collect;
use crate::code::{Arithmetic, Comparison, Expr, ExprKind, FunctionId, Program, Statement};
use crate::source::{SourceLocation, Span};
use crate::terms::{Int, Truth};
use crate::value::{Bytes, Element, Value};
use crate::view::View;
use everett_expr::{Arena, ExprId};
use std::fmt;

/// Maximum number of steps of one evaluation; each element, byte and operation counts.
const MAX_STEPS: u64 = 2_000_000;

/// Maximum nesting of expressions, blocks and calls. It bounds the stack, and recursion that does
/// not terminate.
const MAX_DEPTH: usize = 600;

/// The result of evaluating an invariant in a world.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// A term of width 1: whether the invariant holds, depending on the symbolic bytes; constant if
    /// everything is known. True where the evaluation fails.
    pub holds: ExprId,
    /// Failures of the evaluation for some, but not all values.
    pub failures: Vec<Failure>,
}

/// Values of the symbolic bytes for which an invariant cannot be evaluated.
#[derive(Clone, Debug)]
pub struct Failure {
    /// A term of width 1 that holds for these values.
    pub when: ExprId,
    /// The error.
    pub error: EvalError,
}

/// Why an invariant could not be evaluated.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{invariant}: {}:{}: {message}\n{place}", place.line, place.column)]
pub struct EvalError {
    /// The kind of error.
    pub kind: EvalErrorKind,
    /// The name of the invariant.
    pub invariant: String,
    /// The error message.
    pub message: String,
    /// The location in the text of the invariants.
    pub place: SourceLocation,
}

/// Kinds of evaluation errors.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum EvalErrorKind {
    /// An operation has no value: division by zero, an index out of range, data that is too short.
    Undefined,
    /// The evaluation exceeds the step or nesting limit.
    Limit,
}

impl fmt::Display for EvalErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            EvalErrorKind::Undefined => "undefined",
            EvalErrorKind::Limit => "limit",
        })
    }
}

/// Evaluates an invariant on the data of a view.
///
/// It fails as a whole only if it has no value for any values of the symbolic bytes, or at a limit.
/// Otherwise the verdict lists the values for which it fails.
pub fn evaluate(
    invariant: &Invariant,
    view: &dyn View,
    arena: &mut Arena,
) -> Result<Verdict, EvalError> {
    let program = &*invariant.program;
    let describe = |stop: Stop| EvalError {
        kind: stop.kind,
        invariant: invariant.name.clone(),
        message: stop.message,
        place: SourceLocation::of(&program.source, stop.span),
    };
    let mut evaluator = Evaluator {
        program,
        view,
        arena,
        nodes: view.nodes(),
        guard: Truth::Known(true),
        failures: Vec::new(),
        steps: 0,
        depth: 0,
    };
    let holds = evaluator.invariant(invariant).map_err(describe)?;
    let failures = std::mem::take(&mut evaluator.failures);
    let failed = failures.iter().fold(Truth::Known(false), |any, (when, _)| {
        any.or(Truth::Term(*when), evaluator.arena)
    });
    let holds = holds.or(failed, evaluator.arena);
    Ok(Verdict {
        holds: holds.term(evaluator.arena),
        failures: failures
            .into_iter()
            .map(|(when, stop)| Failure {
                when,
                error: describe(stop),
            })
            .collect(),
    })
}

/// Why an expression has no value.
#[derive(Clone, Debug)]
pub(crate) struct Stop {
    kind: EvalErrorKind,
    message: String,
    span: Span,
}

impl Stop {
    pub fn undefined(span: Span, message: impl Into<String>) -> Stop {
        Stop {
            kind: EvalErrorKind::Undefined,
            message: message.into(),
            span,
        }
    }
}

/// The variables of a call; unset ones have no value.
type Frame = Vec<Option<Value>>;

/// The condition under which a function has returned, and the value. `None` if it never returns.
type Flow = Option<(Truth, Value)>;

pub(crate) struct Evaluator<'a> {
    program: &'a Program,
    pub view: &'a dyn View,
    pub arena: &'a mut Arena,
    pub nodes: Vec<String>,
    /// The path condition of the current evaluation.
    guard: Truth,
    failures: Vec<(ExprId, Stop)>,
    steps: u64,
    depth: usize,
}

impl<'a> Evaluator<'a> {
    fn invariant(&mut self, invariant: &Invariant) -> Result<Truth, Stop> {
        let mut arguments = Vec::new();
        if let Some(collect) = &invariant.collect {
            arguments.push(self.collect(collect, invariant.span)?);
        }
        let holds = self.call(invariant.function, arguments, invariant.span)?;
        Ok(self.truth(holds))
    }

    /// Collects the data for all nodes, states and keys that the functions name. Combinations that
    /// no node exposes are skipped.
    fn collect(&mut self, collect: &Collect, span: Span) -> Result<Value, Stop> {
        let nodes = self.call(collect.nodes, Vec::new(), span)?;
        let mut found = Vec::new();
        for node in self.elements(nodes).iter() {
            let states = self.under(node.present, |evaluator| {
                let arguments = vec![node.value.clone()];
                evaluator.call(collect.states, arguments, span)
            })?;
            let states = states
                .map(|states| self.elements(states))
                .unwrap_or_default();
            for state in states.iter() {
                let present = node.present.and(state.present, self.arena);
                let keys = self.under(present, |evaluator| {
                    let arguments = vec![node.value.clone(), state.value.clone()];
                    evaluator.call(collect.keys, arguments, span)
                })?;
                let keys = keys.map(|keys| self.elements(keys)).unwrap_or_default();
                for key in keys.iter() {
                    let present = present.and(key.present, self.arena);
                    let data = self.under(present, |evaluator| {
                        let name = [&node.value, &state.value, &key.value];
                        evaluator.lookup(name, span)
                    })?;
                    for (condition, data) in data.unwrap_or_default() {
                        let present = present.and(condition, self.arena);
                        let value = Value::Bytes(data);
                        found.push(Element { present, value });
                    }
                }
            }
        }
        Ok(Value::array(found))
    }

    /// Counts steps.
    pub fn charge(&mut self, steps: u64, span: Span) -> Result<(), Stop> {
        self.steps = self.steps.saturating_add(steps);
        if self.steps > MAX_STEPS {
            return Err(limit(
                span,
                format!("the evaluation takes more than {MAX_STEPS} steps"),
            ));
        }
        Ok(())
    }

    fn deeper<T>(
        &mut self,
        span: Span,
        evaluate: impl FnOnce(&mut Self) -> Result<T, Stop>,
    ) -> Result<T, Stop> {
        if self.depth >= MAX_DEPTH {
            return Err(limit(
                span,
                "the evaluation is nested too deep; does a recursion not end?",
            ));
        }
        self.depth += 1;
        let result = evaluate(self);
        self.depth -= 1;
        result
    }

    /// Records a failure for the values for which the condition holds.
    pub fn fail_if(&mut self, condition: Truth, span: Span, message: &str) -> Result<(), Stop> {
        let when = match condition {
            Truth::Known(false) => return Ok(()),
            Truth::Known(true) => return Err(Stop::undefined(span, message)),
            Truth::Term(_) => self.guard.and(condition, self.arena),
        };
        match when {
            Truth::Known(false) => Ok(()),
            Truth::Known(true) => Err(Stop::undefined(span, message)),
            Truth::Term(when) => {
                self.failures.push((when, Stop::undefined(span, message)));
                Ok(())
            }
        }
    }

    /// Evaluates under an additional condition. `None` if that is infeasible, or if the evaluation
    /// always fails.
    pub fn under<T>(
        &mut self,
        condition: Truth,
        evaluate: impl FnOnce(&mut Self) -> Result<T, Stop>,
    ) -> Result<Option<T>, Stop> {
        let outside = self.guard;
        let inside = outside.and(condition, self.arena);
        match (condition, inside) {
            (Truth::Known(true), _) => return evaluate(self).map(Some),
            (_, Truth::Known(false)) => return Ok(None),
            _ => self.guard = inside,
        }
        let result = evaluate(self);
        self.guard = outside;
        match (result, inside) {
            (Ok(value), _) => Ok(Some(value)),
            (Err(stop), Truth::Term(when)) if stop.kind == EvalErrorKind::Undefined => {
                self.failures.push((when, stop));
                Ok(None)
            }
            (Err(stop), _) => Err(stop),
        }
    }

    /// Returns the error of an expression without a value, because all its branches failed.
    pub fn nothing<T>(&self, span: Span) -> Result<T, Stop> {
        let last = self.failures.last().map(|(_, stop)| stop.clone());
        Err(last.unwrap_or_else(|| Stop::undefined(span, "this has no value")))
    }

    pub fn merge(
        &mut self,
        condition: Truth,
        a: &Value,
        b: &Value,
        span: Span,
    ) -> Result<Value, Stop> {
        self.charge(a.size() + b.size(), span)?;
        Ok(a.merge(condition, b, self.arena))
    }

    pub fn call(
        &mut self,
        function: FunctionId,
        arguments: Vec<Value>,
        span: Span,
    ) -> Result<Value, Stop> {
        let function = &self.program.functions[function];
        let mut frame: Frame = arguments.into_iter().map(Some).collect();
        frame.resize(function.slots, None);
        let flow = self.deeper(span, |evaluator| {
            evaluator.block(&mut frame, &function.body, span)
        })?;
        match flow {
            Some((_, value)) => Ok(value),
            // This happens only if everything before failed: the checker ensures that all branches
            // return.
            None => self.nothing(span),
        }
    }

    /// Runs statements. Code after a `return` that may have been executed runs under the condition
    /// that it was not.
    fn block(&mut self, frame: &mut Frame, block: &[Statement], span: Span) -> Result<Flow, Stop> {
        let mut flow: Flow = None;
        for statement in block {
            self.charge(1, span)?;
            let Some((returned, _)) = &flow else {
                flow = self.statement(frame, statement)?;
                continue;
            };
            let returned = *returned;
            if returned == Truth::Known(true) {
                break;
            }
            let active = returned.not(self.arena);
            let next = self.under(active, |e| e.statement(frame, statement))?;
            match next {
                // No continuation is possible.
                None => flow = flow.map(|(_, value)| (Truth::Known(true), value)),
                Some(next) => flow = self.and_then(flow, next, span)?,
            }
        }
        Ok(flow)
    }

    /// Combines the return of one part with that of the next part, which runs where the first did
    /// not return.
    fn and_then(&mut self, first: Flow, next: Flow, span: Span) -> Result<Flow, Stop> {
        match (first, next) {
            (None, flow) | (flow, None) => Ok(flow),
            (Some((returned, value)), Some((later, other))) => {
                let value = self.merge(returned, &value, &other, span)?;
                Ok(Some((returned.or(later, self.arena), value)))
            }
        }
    }

    fn statement(&mut self, frame: &mut Frame, statement: &Statement) -> Result<Flow, Stop> {
        match statement {
            Statement::Return(value) => {
                let value = self.expr(frame, value)?;
                Ok(Some((Truth::Known(true), value)))
            }
            Statement::Set { slot, value } => {
                frame[*slot] = Some(self.expr(frame, value)?);
                Ok(None)
            }
            Statement::If { condition, yes, no } => {
                let span = condition.span;
                let condition = self.condition(frame, condition)?;
                self.deeper(span, |e| e.branch(frame, condition, [yes, no], span))
            }
            Statement::For { slot, array, body } => {
                let span = array.span;
                let elements = self.expr(frame, array)?;
                let elements = self.elements(elements);
                self.deeper(span, |e| e.repeat(frame, *slot, &elements, body, span))
            }
        }
    }

    fn branch(
        &mut self,
        frame: &mut Frame,
        condition: Truth,
        [yes, no]: [&[Statement]; 2],
        span: Span,
    ) -> Result<Flow, Stop> {
        let mut yes_frame = match condition {
            Truth::Known(true) => return self.block(frame, yes, span),
            Truth::Known(false) => return self.block(frame, no, span),
            Truth::Term(_) => frame.clone(),
        };
        let yes = self.under(condition, |e| e.block(&mut yes_frame, yes, span))?;
        let otherwise = condition.not(self.arena);
        let no = self.under(otherwise, |e| e.block(frame, no, span))?;
        match (yes, no) {
            (None, None) => self.nothing(span),
            (None, Some(flow)) => Ok(flow),
            (Some(flow), None) => {
                *frame = yes_frame;
                Ok(flow)
            }
            // After a return the variables do not matter.
            (Some(yes), Some(no @ Some((Truth::Known(true), _)))) => {
                *frame = yes_frame;
                self.merge_flows(condition, yes, no, span)
            }
            (Some(yes @ Some((Truth::Known(true), _))), Some(no)) => {
                self.merge_flows(condition, yes, no, span)
            }
            (Some(yes), Some(no)) => {
                self.merge_frames(condition, &yes_frame, frame, span)?;
                self.merge_flows(condition, yes, no, span)
            }
        }
    }

    fn merge_flows(
        &mut self,
        condition: Truth,
        yes: Flow,
        no: Flow,
        span: Span,
    ) -> Result<Flow, Stop> {
        let when = |flow: &Flow| flow.as_ref().map_or(Truth::Known(false), |f| f.0);
        let returned = when(&yes).merge(condition, when(&no), self.arena);
        let value = match (yes, no) {
            (None, None) => return Ok(None),
            (Some((_, value)), None) | (None, Some((_, value))) => value,
            (Some((_, a)), Some((_, b))) => self.merge(condition, &a, &b, span)?,
        };
        Ok(Some((returned, value)))
    }

    /// Replaces variables by those of another frame where a condition holds.
    fn merge_frames(
        &mut self,
        condition: Truth,
        from: &Frame,
        frame: &mut Frame,
        span: Span,
    ) -> Result<(), Stop> {
        for (from, to) in from.iter().zip(frame) {
            *to = match (from, to.as_ref()) {
                (Some(a), Some(b)) => Some(self.merge(condition, a, b, span)?),
                // This is a variable of a block that has ended.
                (a, b) => a.as_ref().or(b).cloned(),
            };
        }
        Ok(())
    }

    /// Runs a block for each element.
    fn repeat(
        &mut self,
        frame: &mut Frame,
        slot: usize,
        elements: &[Element],
        body: &[Statement],
        span: Span,
    ) -> Result<Flow, Stop> {
        let mut flow: Flow = None;
        for element in elements {
            self.charge(1, span)?;
            let returned = flow.as_ref().map_or(Truth::Known(false), |(when, _)| *when);
            if returned == Truth::Known(true) {
                break;
            }
            // If the element is absent, the variables are unchanged.
            let before = (element.present != Truth::Known(true)).then(|| frame.clone());
            frame[slot] = Some(element.value.clone());
            let active = returned.not(self.arena).and(element.present, self.arena);
            let next = self.under(active, |e| e.block(frame, body, span))?;
            if let Some(before) = before {
                let absent = match next {
                    Some(_) => element.present.not(self.arena),
                    None => Truth::Known(true),
                };
                self.merge_frames(absent, &before, frame, span)?;
            }
            let next = next.flatten();
            let next = next.map(|(when, value)| (when.and(element.present, self.arena), value));
            flow = self.and_then(flow, next, span)?;
        }
        Ok(flow)
    }

    pub fn expr(&mut self, frame: &mut Frame, expr: &Expr) -> Result<Value, Stop> {
        self.charge(1, expr.span)?;
        self.deeper(expr.span, |evaluator| evaluator.kind(frame, expr))
    }

    fn kind(&mut self, frame: &mut Frame, expr: &Expr) -> Result<Value, Stop> {
        let span = expr.span;
        match &expr.kind {
            ExprKind::Bool(value) => Ok(Value::Bool(Truth::Known(*value))),
            ExprKind::Int(value) => Ok(Value::Int(Int::Known(*value))),
            ExprKind::Text(bytes) => Ok(Value::Bytes(Bytes::text(bytes))),
            // The block of a variable without a value has failed.
            ExprKind::Local(slot) => frame[*slot].clone().map_or_else(|| self.nothing(span), Ok),
            ExprKind::Array(items) => self.array(frame, items),
            ExprKind::Not(a) => {
                let a = self.condition(frame, a)?;
                Ok(Value::Bool(a.not(self.arena)))
            }
            ExprKind::Negate(a) => {
                let a = self.number(frame, a)?;
                self.arithmetic(Arithmetic::Subtract, Int::Known(0), a, span)
            }
            ExprKind::And(a, b) => self.connective(frame, a, b, Truth::Known(true)),
            ExprKind::Or(a, b) => self.connective(frame, a, b, Truth::Known(false)),
            ExprKind::Implies(a, b) => {
                let a = self.condition(frame, a)?;
                let b = self.under(a, |e| e.condition(frame, b))?;
                let b = b.unwrap_or(Truth::Known(true));
                Ok(Value::Bool(a.implies(b, self.arena)))
            }
            ExprKind::Equal(a, b) => {
                let (a, b) = (self.expr(frame, a)?, self.expr(frame, b)?);
                self.equal(&a, &b, span).map(Value::Bool)
            }
            ExprKind::Compare(comparison, a, b) => {
                let (a, b) = (self.number(frame, a)?, self.number(frame, b)?);
                Ok(Value::Bool(match comparison {
                    Comparison::Less => a.less(b, self.arena),
                    Comparison::LessOrEqual => a.less_or_equal(b, self.arena),
                }))
            }
            ExprKind::Arithmetic(operation, a, b) => {
                let (a, b) = (self.number(frame, a)?, self.number(frame, b)?);
                self.arithmetic(*operation, a, b, span)
            }
            ExprKind::Choose(condition, yes, no) => {
                let condition = self.condition(frame, condition)?;
                self.choose(frame, condition, yes, no)
            }
            ExprKind::Call(function, arguments) => {
                let arguments = self.all(frame, arguments)?;
                self.call(*function, arguments, span)
            }
            ExprKind::Operation(operation, operands) => {
                let operands = self.all(frame, operands)?;
                self.operation(*operation, &operands, span)
            }
            ExprKind::Apply(application, array, applied) => {
                let array = self.expr(frame, array)?;
                let elements = self.elements(array);
                self.apply(frame, *application, &elements, applied, span)
            }
        }
    }

    fn all(&mut self, frame: &mut Frame, exprs: &[Expr]) -> Result<Vec<Value>, Stop> {
        exprs.iter().map(|expr| self.expr(frame, expr)).collect()
    }

    fn array(&mut self, frame: &mut Frame, items: &[Expr]) -> Result<Value, Stop> {
        let values = self.all(frame, items)?;
        let elements = values.into_iter().map(|value| Element {
            present: Truth::Known(true),
            value,
        });
        Ok(Value::array(elements.collect()))
    }

    /// Evaluates `&&` or `||`. The right side of `&&` is evaluated if the left is true, that of
    /// `||` if it is false.
    fn connective(
        &mut self,
        frame: &mut Frame,
        a: &Expr,
        b: &Expr,
        decided_by_right: Truth,
    ) -> Result<Value, Stop> {
        let a = self.condition(frame, a)?;
        let needed = a.equals(decided_by_right, self.arena);
        // If the right side has no value, the result does not matter.
        let b = self
            .under(needed, |e| e.condition(frame, b))?
            .unwrap_or(decided_by_right);
        Ok(Value::Bool(match decided_by_right {
            Truth::Known(true) => a.and(b, self.arena),
            _ => a.or(b, self.arena),
        }))
    }

    fn choose(
        &mut self,
        frame: &mut Frame,
        condition: Truth,
        yes: &Expr,
        no: &Expr,
    ) -> Result<Value, Stop> {
        let a = self.under(condition, |e| e.expr(frame, yes))?;
        let otherwise = condition.not(self.arena);
        let b = self.under(otherwise, |e| e.expr(frame, no))?;
        match (a, b) {
            (Some(a), Some(b)) => self.merge(condition, &a, &b, yes.span),
            (Some(value), None) | (None, Some(value)) => Ok(value),
            (None, None) => self.nothing(yes.span),
        }
    }

    fn condition(&mut self, frame: &mut Frame, expr: &Expr) -> Result<Truth, Stop> {
        let value = self.expr(frame, expr)?;
        Ok(self.truth(value))
    }

    fn number(&mut self, frame: &mut Frame, expr: &Expr) -> Result<Int, Stop> {
        let value = self.expr(frame, expr)?;
        Ok(self.int(&value))
    }

    fn arithmetic(
        &mut self,
        operation: Arithmetic,
        a: Int,
        b: Int,
        span: Span,
    ) -> Result<Value, Stop> {
        const OVERFLOW: &str = "the result does not fit in 64 bits with a sign";
        let checked = match operation {
            Arithmetic::Add => a.add(b, self.arena),
            Arithmetic::Subtract => a.subtract(b, self.arena),
            Arithmetic::Multiply => a.multiply(b, self.arena),
            Arithmetic::Divide | Arithmetic::Remainder => {
                let zero = b.equals(Int::Known(0), self.arena);
                self.fail_if(zero, span, "division by zero")?;
                let least = a.equals(Int::Known(i64::MIN), self.arena);
                let minus_one = b.equals(Int::Known(-1), self.arena);
                let overflow = least.and(minus_one, self.arena);
                let remainder = operation == Arithmetic::Remainder;
                (a.divide(b, remainder, self.arena), overflow)
            }
            Arithmetic::And => {
                let result = a.bitwise(b, self.arena, |a, b| a & b, Arena::and);
                return Ok(Value::Int(result));
            }
            Arithmetic::Or => {
                let result = a.bitwise(b, self.arena, |a, b| a | b, Arena::or);
                return Ok(Value::Int(result));
            }
            Arithmetic::Xor => {
                let result = a.bitwise(b, self.arena, |a, b| a ^ b, Arena::xor);
                return Ok(Value::Int(result));
            }
            Arithmetic::ShiftLeft | Arithmetic::ShiftRight => {
                return self.shift(operation == Arithmetic::ShiftLeft, a, b, span);
            }
        };
        self.fail_if(checked.1, span, OVERFLOW)?;
        Ok(Value::Int(checked.0))
    }

    fn shift(&mut self, left: bool, a: Int, amount: Int, span: Span) -> Result<Value, Stop> {
        let below = amount.less(Int::Known(0), self.arena);
        let above = Int::Known(63).less(amount, self.arena);
        let out_of_range = below.or(above, self.arena);
        self.fail_if(out_of_range, span, "a shift is by 0 to 63 bits")?;
        Ok(Value::Int(match left {
            true => a.bitwise(amount, self.arena, |a, b| a << (b & 63), Arena::shl),
            false => a.bitwise(amount, self.arena, |a, b| a >> (b & 63), Arena::ashr),
        }))
    }
}

fn limit(span: Span, message: impl Into<String>) -> Stop {
    Stop {
        kind: EvalErrorKind::Limit,
        message: message.into(),
        span,
    }
}
