//! Debug information of a module in textual form: the source locations of instructions.

use std::collections::HashMap;

/// A node of debug information, reduced to the fields that give a location.
#[derive(Clone, Debug, Default)]
struct DebugNode {
    file: Option<u32>,
    scope: Option<u32>,
    variable: Option<u32>,
    line: u32,
    name: Option<String>,
    path: Option<String>,
    is_function: bool,
}

/// A source location.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DebugLocation {
    /// The file, with its folder.
    pub file: String,
    /// The line.
    pub line: u32,
    /// The function as written in the source; an inlined function keeps its own name.
    pub function: String,
}

/// The debug information of a module.
#[derive(Default)]
pub struct Debug {
    nodes: HashMap<u32, DebugNode>,
}

const KINDS: [&str; 7] = [
    "!DILocation(",
    "!DISubprogram(",
    "!DILexicalBlock(",
    "!DILexicalBlockFile(",
    "!DIFile(",
    "!DIGlobalVariableExpression(",
    "!DIGlobalVariable(",
];

impl Debug {
    /// Reads the debug information of a module.
    pub fn read(text: &str) -> Debug {
        let mut debug = Debug::default();
        for line in text.lines().filter(|line| line.starts_with('!')) {
            let Some((number, node)) = line[1..].split_once(" = ") else {
                continue;
            };
            let node = node.strip_prefix("distinct ").unwrap_or(node);
            let kind = KINDS.iter().find(|kind| node.starts_with(**kind));
            if let (Ok(number), Some(kind)) = (number.parse(), kind) {
                debug.nodes.insert(number, parse(kind, node));
            }
        }
        debug
    }

    /// Returns the source location of a `!DILocation`.
    pub fn place(&self, location: u32) -> Option<DebugLocation> {
        let node = self.nodes.get(&location)?;
        let scope = node.scope?;
        let mut place = DebugLocation {
            file: self.file(scope)?,
            line: node.line,
            function: String::new(),
        };
        let mut at = Some(scope);
        // Scopes nest like the blocks of the source.
        for _ in 0..1000 {
            let Some(node) = at.and_then(|at| self.nodes.get(&at)) else {
                break;
            };
            if node.is_function {
                place.function = node.name.clone().unwrap_or_default();
                break;
            }
            at = node.scope;
        }
        Some(place)
    }

    /// Returns the source location of a function or variable.
    pub fn definition(&self, number: u32) -> Option<DebugLocation> {
        let mut node = self.nodes.get(&number)?;
        if let Some(variable) = node.variable {
            node = self.nodes.get(&variable)?;
        }
        Some(DebugLocation {
            file: self.path(node.file?)?,
            line: node.line,
            function: node.name.clone().unwrap_or_default(),
        })
    }

    fn file(&self, scope: u32) -> Option<String> {
        self.path(self.nodes.get(&scope)?.file?)
    }

    fn path(&self, file: u32) -> Option<String> {
        self.nodes.get(&file)?.path.clone()
    }
}

fn parse(kind: &str, node: &str) -> DebugNode {
    let path = (kind == "!DIFile(").then(|| {
        let name = quoted(node, "filename").unwrap_or_default();
        match quoted(node, "directory") {
            Some(folder) if !folder.is_empty() && !name.starts_with('/') => {
                format!("{folder}/{name}")
            }
            _ => name,
        }
    });
    DebugNode {
        file: reference(node, "file"),
        scope: reference(node, "scope"),
        variable: reference(node, "var"),
        line: number(field(node, "line").unwrap_or_default()).unwrap_or(0),
        name: quoted(node, "name"),
        path,
        is_function: kind == "!DISubprogram(",
    }
}

/// Returns the value of a field.
fn field<'n>(node: &'n str, name: &str) -> Option<&'n str> {
    let first = format!("({name}: ");
    let other = format!(", {name}: ");
    let at = node
        .find(&first)
        .map(|at| at + first.len())
        .or_else(|| node.find(&other).map(|at| at + other.len()))?;
    Some(&node[at..])
}

fn number(text: &str) -> Option<u32> {
    let length = text.bytes().take_while(u8::is_ascii_digit).count();
    text[..length].parse().ok()
}

fn reference(node: &str, name: &str) -> Option<u32> {
    number(field(node, name)?.strip_prefix('!')?)
}

fn quoted(node: &str, name: &str) -> Option<String> {
    let text = field(node, name)?.strip_prefix('"')?;
    Some(text[..text.find('"')?].to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_found_through_scopes() {
        let debug = Debug::read(
            "!1 = !DIFile(filename: \"a.c\", directory: \"/src\")\n\
             !2 = distinct !DISubprogram(name: \"f\", linkageName: \"_Z1f\", scope: !1, file: !1, line: 3)\n\
             !3 = distinct !DILexicalBlock(scope: !2, file: !1, line: 4, column: 2)\n\
             !4 = !DILocation(line: 7, column: 9, scope: !3)\n\
             !5 = !DIGlobalVariableExpression(var: !6, expr: !DIExpression())\n\
             !6 = distinct !DIGlobalVariable(name: \"g\", scope: !7, file: !1, line: 1, isLocal: true)\n",
        );
        let place = debug.place(4).unwrap();
        assert_eq!(
            (place.file.as_str(), place.line, place.function.as_str()),
            ("/src/a.c", 7, "f")
        );
        assert_eq!(debug.definition(2).unwrap().line, 3);
        assert_eq!(debug.definition(5).unwrap().function, "g");
        assert_eq!(debug.place(99), None);
    }
}
