//! Name resolution and type checking: converts syntax to code.

use crate::code::{
    Application, Applied, Arithmetic, Comparison, Expr, ExprKind, Function, FunctionId, Operation,
    Program, Statement,
};
use crate::operations::{self, Argument, Signature};
use crate::source::{SourceError, Span};
use crate::syntax::{self, File, Name, Type};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The functions that select the data that an invariant observes.
#[derive(Debug)]
pub(crate) struct Collect {
    pub nodes: FunctionId,
    pub states: FunctionId,
    pub keys: FunctionId,
}

/// The code of a file, and for each invariant its function and its data selection.
pub(crate) struct Checked {
    pub program: Program,
    pub invariants: Vec<(FunctionId, Option<Collect>)>,
}

/// Checks a file.
pub(crate) fn check(source: &str, file: &File) -> Result<Checked, SourceError> {
    let mut names = BTreeMap::new();
    let bodies = file.invariants.iter().map(|item| &item.function);
    for (id, function) in file.functions.iter().chain(bodies).enumerate() {
        if names.insert(function.name.text.as_str(), id).is_some() {
            let message = format!("there is already something called `{}`", function.name.text);
            return Err(SourceError::new(function.name.span, message));
        }
    }
    let scope = Scope { file, names };
    let mut functions = Vec::new();
    for function in &file.functions {
        functions.push(Body::function(&scope, function)?);
    }
    let mut invariants = Vec::new();
    for item in &file.invariants {
        let collect = scope.collect(item)?;
        invariants.push((functions.len(), collect));
        functions.push(Body::function(&scope, &item.function)?);
    }
    let program = Program {
        source: Arc::from(source),
        functions,
    };
    Ok(Checked {
        program,
        invariants,
    })
}

/// The callable functions.
struct Scope<'a> {
    file: &'a File,
    names: BTreeMap<&'a str, FunctionId>,
}

impl<'a> Scope<'a> {
    fn find(&self, name: &Name) -> Result<(FunctionId, &'a syntax::Function), SourceError> {
        let text = &name.text;
        let Some(&id) = self.names.get(text.as_str()) else {
            let message = format!("there is no function `{text}`");
            return Err(SourceError::new(name.span, message));
        };
        let Some(function) = self.file.functions.get(id) else {
            let message = format!("`{text}` is an invariant, not a function");
            return Err(SourceError::new(name.span, message));
        };
        Ok((id, function))
    }

    fn collect(&self, item: &syntax::InvariantItem) -> Result<Option<Collect>, SourceError> {
        let parameters: Vec<&Type> = item.function.parameters.iter().map(|p| &p.kind).collect();
        let Some([nodes, states, keys]) = &item.collect else {
            if parameters.is_empty() {
                return Ok(None);
            }
            let message = "an invariant with a parameter says where its data comes from: \
                `: nodes, states, keys` after the parameters";
            return Err(SourceError::new(item.function.name.span, message));
        };
        if parameters != [&Type::Data.array()] {
            let message =
                "an invariant with `: nodes, states, keys` has one parameter, of type `data[]`";
            return Err(SourceError::new(item.function.name.span, message));
        }
        let strings = Type::String.array();
        let (nodes, _) = self.with_type(nodes, &[], &[&strings])?;
        let numbers = Type::Int.array();
        let (states, kind) = self.with_type(states, &[&Type::String], &[&numbers, &strings])?;
        let state = match kind {
            Type::Array(element) => element,
            _ => &Type::String,
        };
        let (keys, _) = self.with_type(keys, &[&Type::String, state], &[&strings])?;
        Ok(Some(Collect {
            nodes,
            states,
            keys,
        }))
    }

    /// Finds a function with these parameters and one of these result types.
    fn with_type(
        &self,
        name: &Name,
        parameters: &[&Type],
        results: &[&Type],
    ) -> Result<(FunctionId, &'a Type), SourceError> {
        let (id, function) = self.find(name)?;
        let found: Vec<&Type> = function.parameters.iter().map(|p| &p.kind).collect();
        if found == parameters && results.contains(&&function.result) {
            return Ok((id, &function.result));
        }
        let list =
            |kinds: &[&Type]| -> Vec<String> { kinds.iter().map(|k| k.to_string()).collect() };
        let message = format!(
            "`{}` must take ({}) and give {}; it takes ({}) and gives {}",
            name.text,
            list(parameters).join(", "),
            list(results).join(" or "),
            list(&found).join(", "),
            function.result,
        );
        Err(SourceError::new(name.span, message))
    }
}

struct Variable {
    name: String,
    kind: Type,
    slot: usize,
}

/// The function being checked.
struct Body<'a> {
    scope: &'a Scope<'a>,
    result: &'a Type,
    visible: Vec<Variable>,
    slots: usize,
}

impl<'a> Body<'a> {
    fn function(
        scope: &'a Scope<'a>,
        function: &'a syntax::Function,
    ) -> Result<Function, SourceError> {
        let mut body = Body {
            scope,
            result: &function.result,
            visible: Vec::new(),
            slots: 0,
        };
        for parameter in &function.parameters {
            body.declare(&parameter.name, parameter.kind.clone())?;
        }
        let statements = body.block(&function.body)?;
        if !returns(&function.body) {
            let message = format!(
                "`{}` can come to its end without a `return`",
                function.name.text
            );
            return Err(SourceError::new(function.end, message));
        }
        Ok(Function {
            slots: body.slots,
            body: statements,
        })
    }

    fn declare(&mut self, name: &Name, kind: Type) -> Result<usize, SourceError> {
        if self.variable(&name.text).is_some() {
            let message = format!("there is already a variable `{}`", name.text);
            return Err(SourceError::new(name.span, message));
        }
        let slot = self.slots;
        self.slots += 1;
        self.visible.push(Variable {
            name: name.text.clone(),
            kind,
            slot,
        });
        Ok(slot)
    }

    fn variable(&self, name: &str) -> Option<&Variable> {
        self.visible.iter().find(|variable| variable.name == name)
    }

    fn block(&mut self, statements: &[syntax::Statement]) -> Result<Vec<Statement>, SourceError> {
        let outside = self.visible.len();
        let block = statements
            .iter()
            .map(|statement| self.statement(statement))
            .collect();
        self.visible.truncate(outside);
        block
    }

    fn statement(&mut self, statement: &syntax::Statement) -> Result<Statement, SourceError> {
        match statement {
            syntax::Statement::Return(value) => {
                let result = self.result;
                Ok(Statement::Return(self.expect(value, result)?))
            }
            syntax::Statement::Declare { kind, name, value } => {
                // The variable is not in scope in its own initialiser.
                let value = self.expect(value, kind)?;
                let slot = self.declare(name, kind.clone())?;
                Ok(Statement::Set { slot, value })
            }
            syntax::Statement::Assign { name, value } => {
                let Some(variable) = self.variable(&name.text) else {
                    let message = format!("there is no variable `{}`", name.text);
                    return Err(SourceError::new(name.span, message));
                };
                let (slot, kind) = (variable.slot, variable.kind.clone());
                let value = self.expect(value, &kind)?;
                Ok(Statement::Set { slot, value })
            }
            syntax::Statement::If { condition, yes, no } => Ok(Statement::If {
                condition: self.expect(condition, &Type::Bool)?,
                yes: self.block(yes)?,
                no: self.block(no)?,
            }),
            syntax::Statement::For {
                kind,
                name,
                array,
                body,
            } => {
                let array = self.expect(array, &kind.clone().array())?;
                let outside = self.visible.len();
                let slot = self.declare(name, kind.clone())?;
                let body = self.block(body)?;
                self.visible.truncate(outside);
                Ok(Statement::For { slot, array, body })
            }
        }
    }

    /// Checks an expression against a type.
    fn expect(&mut self, expr: &syntax::Expr, kind: &Type) -> Result<Expr, SourceError> {
        let (code, found) = self.expr(expr)?;
        if found == *kind {
            return Ok(code);
        }
        let hint = match (&found, kind) {
            (Type::Data, Type::Int) => "; `int()`, `u32()` and others read numbers from data",
            (Type::Data, Type::String) => "; `string()` reads a string from data",
            (Type::Int, Type::Bool) => "; compare the number with something",
            _ => "",
        };
        let message = format!("expected {kind}, found {found}{hint}");
        Err(SourceError::new(expr.span, message))
    }

    fn boxed(&mut self, expr: &syntax::Expr, kind: &Type) -> Result<Box<Expr>, SourceError> {
        self.expect(expr, kind).map(Box::new)
    }

    fn expr(&mut self, expr: &syntax::Expr) -> Result<(Expr, Type), SourceError> {
        let span = expr.span;
        let (kind, result) = match &expr.kind {
            syntax::ExprKind::Bool(value) => (ExprKind::Bool(*value), Type::Bool),
            syntax::ExprKind::Int(value) => (ExprKind::Int(*value), Type::Int),
            syntax::ExprKind::Text(bytes) => (ExprKind::Text(bytes.clone()), Type::String),
            syntax::ExprKind::Name(name) => self.name(name, span)?,
            syntax::ExprKind::Array { element, items } => {
                let items = items.iter().map(|item| self.expect(item, element));
                let items = items.collect::<Result<_, _>>()?;
                (ExprKind::Array(items), element.clone().array())
            }
            syntax::ExprKind::Not(a) => (ExprKind::Not(self.boxed(a, &Type::Bool)?), Type::Bool),
            syntax::ExprKind::Negate(a) => {
                (ExprKind::Negate(self.boxed(a, &Type::Int)?), Type::Int)
            }
            syntax::ExprKind::Binary(operator, a, b) => self.binary(operator, a, b)?,
            syntax::ExprKind::Choose(condition, yes, no) => {
                let condition = self.boxed(condition, &Type::Bool)?;
                let (yes, kind) = self.expr(yes)?;
                let no = self.boxed(no, &kind)?;
                (ExprKind::Choose(condition, Box::new(yes), no), kind)
            }
            syntax::ExprKind::Call { name, arguments } => self.call(name, arguments)?,
            syntax::ExprKind::Method {
                object,
                name,
                arguments,
            } => self.method(object, name, arguments)?,
            syntax::ExprKind::Index(object, index) => self.index(object, index)?,
            syntax::ExprKind::Lambda { .. } => {
                let message =
                    "a function can stand only as the argument of all, any, count, filter and map";
                return Err(SourceError::new(span, message));
            }
        };
        Ok((Expr { kind, span }, result))
    }

    fn name(&self, name: &str, span: Span) -> Result<(ExprKind, Type), SourceError> {
        if let Some(variable) = self.variable(name) {
            return Ok((ExprKind::Local(variable.slot), variable.kind.clone()));
        }
        let message = match name {
            "sys" => format!(
                "`sys` is not a value; it has the operations {}",
                operations::SYS
            ),
            _ if self.scope.names.contains_key(name) => {
                format!("`{name}` is a function: call it, `{name}(…)`")
            }
            _ => format!("there is no variable `{name}`"),
        };
        Err(SourceError::new(span, message))
    }

    fn index(
        &mut self,
        object: &syntax::Expr,
        index: &syntax::Expr,
    ) -> Result<(ExprKind, Type), SourceError> {
        let (array, kind) = self.expr(object)?;
        let (operation, result) = match kind {
            Type::Array(element) => (Operation::Element, *element),
            Type::Data | Type::String => (Operation::ByteAt, Type::Int),
            Type::Bool | Type::Int => {
                let message = format!("{kind} has no elements");
                return Err(SourceError::new(object.span, message));
            }
        };
        let index = self.expect(index, &Type::Int)?;
        Ok((ExprKind::Operation(operation, vec![array, index]), result))
    }

    fn binary(
        &mut self,
        operator: &str,
        a: &syntax::Expr,
        b: &syntax::Expr,
    ) -> Result<(ExprKind, Type), SourceError> {
        if matches!(operator, "==" | "!=" | "+") {
            return self.of_any_type(operator, a, b);
        }
        if matches!(operator, "&&" | "||" | "implies") {
            let (a, b) = (self.boxed(a, &Type::Bool)?, self.boxed(b, &Type::Bool)?);
            let kind = match operator {
                "&&" => ExprKind::And(a, b),
                "||" => ExprKind::Or(a, b),
                _ => ExprKind::Implies(a, b),
            };
            return Ok((kind, Type::Bool));
        }
        let (a, b) = (self.boxed(a, &Type::Int)?, self.boxed(b, &Type::Int)?);
        let compare = |comparison, a, b| Ok((ExprKind::Compare(comparison, a, b), Type::Bool));
        let operation = match operator {
            "<" => return compare(Comparison::Less, a, b),
            "<=" => return compare(Comparison::LessOrEqual, a, b),
            ">" => return greater(Comparison::LessOrEqual, a, b),
            ">=" => return greater(Comparison::Less, a, b),
            "-" => Arithmetic::Subtract,
            "*" => Arithmetic::Multiply,
            "/" => Arithmetic::Divide,
            "%" => Arithmetic::Remainder,
            "&" => Arithmetic::And,
            "|" => Arithmetic::Or,
            "^" => Arithmetic::Xor,
            "<<" => Arithmetic::ShiftLeft,
            _ => Arithmetic::ShiftRight,
        };
        Ok((ExprKind::Arithmetic(operation, a, b), Type::Int))
    }

    /// Checks equality and `+`, whose operands have the same type.
    fn of_any_type(
        &mut self,
        operator: &str,
        a: &syntax::Expr,
        b: &syntax::Expr,
    ) -> Result<(ExprKind, Type), SourceError> {
        let (left, kind) = self.expr(a)?;
        let right = self.expect(b, &kind)?;
        let span = left.span.to(right.span);
        if operator == "+" {
            let sum = match &kind {
                Type::Int => ExprKind::Arithmetic(Arithmetic::Add, Box::new(left), Box::new(right)),
                Type::Array(_) => ExprKind::Operation(Operation::Join, vec![left, right]),
                Type::String | Type::Data => {
                    ExprKind::Operation(Operation::Concat, vec![left, right])
                }
                Type::Bool => {
                    let message = "bool cannot be added; expected int, string, data or an array";
                    return Err(SourceError::new(a.span, message));
                }
            };
            return Ok((sum, kind));
        }
        let equal = ExprKind::Equal(Box::new(left), Box::new(right));
        let result = match operator {
            "==" => equal,
            _ => ExprKind::Not(Box::new(Expr { kind: equal, span })),
        };
        Ok((result, Type::Bool))
    }

    fn call(
        &mut self,
        name: &Name,
        arguments: &[syntax::Expr],
    ) -> Result<(ExprKind, Type), SourceError> {
        let (id, function) = self.scope.find(name)?;
        let (takes, given) = (function.parameters.len(), arguments.len());
        if takes != given {
            let message = format!("`{}` takes {takes} arguments, not {given}", name.text);
            return Err(SourceError::new(name.span, message));
        }
        let pairs = arguments.iter().zip(&function.parameters);
        let code = pairs.map(|(argument, parameter)| self.expect(argument, &parameter.kind));
        let code = code.collect::<Result<_, _>>()?;
        Ok((ExprKind::Call(id, code), function.result.clone()))
    }

    fn method(
        &mut self,
        object: &syntax::Expr,
        name: &Name,
        arguments: &[syntax::Expr],
    ) -> Result<(ExprKind, Type), SourceError> {
        let text = &name.text;
        if matches!(&object.kind, syntax::ExprKind::Name(sys) if sys == "sys") {
            let Some(signature) = operations::of_sys(text) else {
                let message = format!("`sys` has no `{text}`; it has {}", operations::SYS);
                return Err(SourceError::new(name.span, message));
            };
            return self.operation(Vec::new(), name, arguments, signature);
        }
        let (receiver, kind) = self.expr(object)?;
        if let (Type::Array(element), Some(application)) = (&kind, operations::application(text)) {
            return self.application(application, receiver, element, name, arguments);
        }
        let Some(signature) = operations::of_type(&kind, text) else {
            let there_are = operations::names_of(&kind);
            let message = format!("{kind} has no operation `{text}`; it has {there_are}");
            return Err(SourceError::new(name.span, message));
        };
        self.operation(vec![receiver], name, arguments, signature)
    }

    fn operation(
        &mut self,
        mut operands: Vec<Expr>,
        name: &Name,
        arguments: &[syntax::Expr],
        signature: Signature,
    ) -> Result<(ExprKind, Type), SourceError> {
        let most = signature.arguments.len();
        let optional = signature.arguments.iter();
        let optional = optional.filter(|a| matches!(a, Argument::Offset)).count();
        let given = arguments.len();
        if given > most || given + optional < most {
            let takes = match optional {
                0 => format!("{most}"),
                _ => format!("at most {most}"),
            };
            let message = format!("`{}` takes {takes} arguments, not {given}", name.text);
            return Err(SourceError::new(name.span, message));
        }
        for (position, expected) in signature.arguments.iter().enumerate() {
            operands.push(match (arguments.get(position), expected) {
                (Some(argument), Argument::Of(kind)) => self.expect(argument, kind)?,
                (Some(argument), Argument::Offset) => self.expect(argument, &Type::Int)?,
                (Some(argument), Argument::State) => self.state(argument)?,
                (None, _) => Expr {
                    kind: ExprKind::Int(0),
                    span: name.span,
                },
            });
        }
        Ok((
            ExprKind::Operation(signature.operation, operands),
            signature.result,
        ))
    }

    fn state(&mut self, argument: &syntax::Expr) -> Result<Expr, SourceError> {
        match self.expr(argument)? {
            (code, Type::Int | Type::String) => Ok(code),
            (_, kind) => {
                let message = format!("expected a state (int or string), found {kind}");
                Err(SourceError::new(argument.span, message))
            }
        }
    }

    fn application(
        &mut self,
        application: Application,
        array: Expr,
        element: &Type,
        name: &Name,
        arguments: &[syntax::Expr],
    ) -> Result<(ExprKind, Type), SourceError> {
        let [argument] = arguments else {
            let message = format!(
                "`{}` takes one function, as `x => x > 0` or the name of one",
                name.text
            );
            return Err(SourceError::new(name.span, message));
        };
        let (applied, given) = self.applied(argument, element)?;
        let result = match application {
            Application::Map => given.array(),
            _ if given != Type::Bool => {
                let message = format!(
                    "`{}` takes a function that gives bool, this one gives {given}",
                    name.text
                );
                return Err(SourceError::new(argument.span, message));
            }
            Application::All | Application::Any => Type::Bool,
            Application::Count => Type::Int,
            Application::Filter => element.clone().array(),
        };
        Ok((
            ExprKind::Apply(application, Box::new(array), applied),
            result,
        ))
    }

    /// Checks a function that is applied to elements. Returns it, and its result type.
    fn applied(
        &mut self,
        argument: &syntax::Expr,
        element: &Type,
    ) -> Result<(Applied, Type), SourceError> {
        match &argument.kind {
            syntax::ExprKind::Lambda { parameter, body } => {
                let outside = self.visible.len();
                let slot = self.declare(parameter, element.clone())?;
                let (body, kind) = self.expr(body)?;
                self.visible.truncate(outside);
                let body = Box::new(body);
                Ok((Applied::Lambda { slot, body }, kind))
            }
            syntax::ExprKind::Name(text) if self.variable(text).is_none() => {
                let name = Name {
                    text: text.clone(),
                    span: argument.span,
                };
                let (id, function) = self.scope.find(&name)?;
                if !matches!(function.parameters.as_slice(), [one] if one.kind == *element) {
                    let message = format!("`{text}` must take one argument, of type {element}");
                    return Err(SourceError::new(argument.span, message));
                }
                Ok((Applied::Function(id), function.result.clone()))
            }
            _ => {
                let message = "expected a function, as `x => x > 0` or the name of one";
                Err(SourceError::new(argument.span, message))
            }
        }
    }
}

/// Converts `a > b` to `!(a <= b)`, so that operands are evaluated from left to right.
fn greater(
    opposite: Comparison,
    a: Box<Expr>,
    b: Box<Expr>,
) -> Result<(ExprKind, Type), SourceError> {
    let span = a.span.to(b.span);
    let kind = ExprKind::Compare(opposite, a, b);
    Ok((ExprKind::Not(Box::new(Expr { kind, span })), Type::Bool))
}

/// Returns whether a block always returns.
fn returns(block: &[syntax::Statement]) -> bool {
    block.iter().any(|statement| match statement {
        syntax::Statement::Return(_) => true,
        syntax::Statement::If { yes, no, .. } => returns(yes) && returns(no),
        _ => false,
    })
}
