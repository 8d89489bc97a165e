//! Modules of a crate are layered: no module uses, directly or indirectly, a module that uses it.
//! So a newcomer can read the lowest layer first.
//!
//! A module is a file. It uses what its `use` lines and its paths name, wherever that is defined:
//! re-exports are followed. What the root of a folder uses of its own files does not count, because
//! it combines them. Tests do not count.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Known cycles: the crate, the modules, and the reason.
const LEFT: &[(&str, &[&str], &str)] = &[
    (
        "cluster",
        &["connect", "nats", "postgres", "tls"],
        "brokers take the secrets and the lease of a connection, which is made to one of them",
    ),
    (
        "cluster",
        &["grant", "status"],
        "what jobs still need is read off the status of a run, which shows what was granted",
    ),
    (
        "engine",
        &[
            "explorer",
            "team::member",
            "world",
            "world::jobs",
            "world::transfer",
        ],
        "worlds on their way are data of a team, and what an explorer does with them is in the same file",
    ),
    (
        "ir",
        &["debug", "module"],
        "a module has debug information, which names globals and locations of the module",
    ),
    (
        "linux",
        &[
            "host",
            "kernel",
            "objects",
            "objects::epoll",
            "objects::inotify",
            "objects::socket",
            "objects::socket::network",
        ],
        "an object is a part of the host's tables, and its operations take the kernel, which borrows the host",
    ),
    (
        "native",
        &["gate", "shadow", "tracee"],
        "the gate is made in a tracee, and no memory that a tracee checks lies over the gate",
    ),
    (
        "solver",
        &["smt::floats", "smt::print"],
        "terms of floats and of bits are operands of each other",
    ),
    (
        "vm",
        &["image", "vm"],
        "an image has the handlers of its operations resolved, which take the vm that runs it",
    ),
];

/// The path of a module in its crate; empty for the root.
type ModulePath = Vec<String>;

/// The modules of a crate, with the paths that each names and its scope.
#[derive(Default)]
struct Modules {
    /// Paths that the module names.
    named: BTreeMap<ModulePath, BTreeSet<ModulePath>>,
    /// Names in the scope of a module, and where they come from.
    scope: BTreeMap<(ModulePath, String), ModulePath>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Token {
    Word(String),
    /// `::`
    Separator,
    Sign(char),
}

/// Returns the words and signs of a source, without comments, strings and characters.
fn tokens(source: &str) -> Vec<Token> {
    let chars: Vec<char> = source.chars().collect();
    let at = |index: usize| chars.get(index).copied().unwrap_or('\0');
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut tokens = Vec::new();
    let mut i = 0;
    while i < chars.len() {
        match (at(i), at(i + 1)) {
            ('/', '/') => {
                while i < chars.len() && at(i) != '\n' {
                    i += 1;
                }
            }
            ('/', '*') => {
                while i < chars.len() && (at(i), at(i + 1)) != ('*', '/') {
                    i += 1;
                }
                i += 2;
            }
            ('r', '"' | '#') if !(i > 0 && is_word(at(i - 1))) => {
                let hashes = chars[i + 1..].iter().take_while(|c| **c == '#').count();
                i += 1 + hashes;
                if at(i) != '"' {
                    continue;
                }
                let is_end = |i: usize| at(i) == '"' && (1..=hashes).all(|n| at(i + n) == '#');
                i += 1;
                while i < chars.len() && !is_end(i) {
                    i += 1;
                }
                i += 1 + hashes;
            }
            ('"', _) => {
                i += 1;
                while i < chars.len() && at(i) != '"' {
                    i += if at(i) == '\\' { 2 } else { 1 };
                }
                i += 1;
            }
            // A character literal; a lifetime has no second quote.
            ('\'', '\\') => {
                i += 3;
                while i < chars.len() && at(i) != '\'' {
                    i += 1;
                }
                i += 1;
            }
            ('\'', _) if at(i + 2) == '\'' => i += 3,
            (':', ':') => {
                tokens.push(Token::Separator);
                i += 2;
            }
            (c, _) if is_word(c) => {
                let start = i;
                while is_word(at(i)) {
                    i += 1;
                }
                tokens.push(Token::Word(chars[start..i].iter().collect()));
            }
            (c, _) => {
                if !c.is_whitespace() {
                    tokens.push(Token::Sign(c));
                }
                i += 1;
            }
        }
    }
    tokens
}

/// Reads the paths of a `use` tree that begins at a token, each with its local name. Returns the
/// next token.
fn use_tree(
    tokens: &[Token],
    mut i: usize,
    prefix: &[String],
    found: &mut Vec<(ModulePath, String)>,
) -> usize {
    let mut path = prefix.to_vec();
    loop {
        match tokens.get(i) {
            Some(Token::Word(word)) if word == "as" => {
                if let (Some(Token::Word(name)), Some(last)) = (tokens.get(i + 1), found.last_mut())
                {
                    last.1 = name.clone();
                }
                return i + 2;
            }
            Some(Token::Word(word)) => {
                path.push(word.clone());
                i += 1;
                if tokens.get(i) != Some(&Token::Separator) {
                    if word == "self" {
                        path.pop();
                    }
                    found.push((path.clone(), path.last().cloned().unwrap_or_default()));
                    if tokens.get(i) != Some(&Token::Word("as".to_owned())) {
                        return i;
                    }
                }
            }
            Some(Token::Separator) => i += 1,
            Some(Token::Sign('*')) => {
                found.push((path, "*".to_owned()));
                return i + 1;
            }
            Some(Token::Sign('{')) => {
                i += 1;
                while !matches!(tokens.get(i), Some(Token::Sign('}')) | None) {
                    match tokens[i] {
                        Token::Sign(',') => i += 1,
                        _ => i = use_tree(tokens, i, &path, found),
                    }
                }
                return i + 1;
            }
            _ => return i + 1,
        }
    }
}

impl Modules {
    /// Reads the modules below a folder of sources.
    fn read(sources: &Path) -> Modules {
        let mut files = Vec::new();
        collect(sources, &mut files);
        let mut modules = Modules::default();
        let mut texts = Vec::new();
        for file in files {
            let path = file.strip_prefix(sources).unwrap().with_extension("");
            let mut module: ModulePath = path
                .iter()
                .map(|part| part.to_str().unwrap().to_owned())
                .collect();
            if module
                .iter()
                .any(|part| part == "tests" || part.ends_with("_tests"))
            {
                continue;
            }
            if matches!(
                module.last().map(String::as_str),
                Some("mod" | "lib" | "main")
            ) {
                module.pop();
            }
            modules.named.insert(module.clone(), BTreeSet::new());
            texts.push((module, fs::read_to_string(&file).unwrap()));
        }
        for (module, text) in texts {
            let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
            modules.add(&module, &tokens(text));
        }
        modules
    }

    fn add(&mut self, file: &ModulePath, tokens: &[Token]) {
        // The module at a token, and the depths at which inline modules begin.
        let (mut module, mut depth, mut begun) = (file.clone(), 0, Vec::new());
        let mut i = 0;
        while i < tokens.len() {
            match (&tokens[i], tokens.get(i + 1), tokens.get(i + 2)) {
                (Token::Sign('{'), ..) => depth += 1,
                (Token::Sign('}'), ..) => {
                    depth -= 1;
                    if begun.last() == Some(&depth) {
                        begun.pop();
                        module.pop();
                    }
                }
                (Token::Word(word), Some(Token::Word(name)), Some(Token::Sign('{')))
                    if word == "mod" =>
                {
                    module.push(name.clone());
                    begun.push(depth);
                }
                (Token::Word(word), ..) if word == "use" => {
                    let mut found = Vec::new();
                    i = use_tree(tokens, i + 1, &[], &mut found);
                    for (path, name) in found {
                        self.note_use(file, &module, &path, name);
                    }
                    continue;
                }
                (Token::Word(word), Some(Token::Separator), _)
                    if word == "crate" || word == "super" =>
                {
                    let mut path = vec![word.clone()];
                    i += 1;
                    while let (Token::Separator, Some(Token::Word(word))) =
                        (&tokens[i], tokens.get(i + 1))
                    {
                        path.push(word.clone());
                        i += 2;
                    }
                    self.note_path(file, &module, &path);
                    continue;
                }
                _ => {}
            }
            i += 1;
        }
    }

    /// Returns the path from the crate's root; `None` if it leads to another crate.
    fn absolute(&self, module: &ModulePath, path: &[String]) -> Option<ModulePath> {
        let mut base = module.clone();
        let mut rest = path;
        match rest.first()?.as_str() {
            "crate" => {
                base.clear();
                rest = &rest[1..];
            }
            "self" => rest = &rest[1..],
            "super" => {
                while rest.first().is_some_and(|part| part == "super") {
                    base.pop();
                    rest = &rest[1..];
                }
            }
            first => {
                base.push(first.to_owned());
                self.named.contains_key(&base).then_some(())?;
                rest = &rest[1..];
            }
        }
        base.extend_from_slice(rest);
        Some(base)
    }

    fn note_path(&mut self, file: &ModulePath, module: &ModulePath, path: &[String]) {
        if let Some(path) = self.absolute(module, path) {
            self.named.entry(file.clone()).or_default().insert(path);
        }
    }

    fn note_use(&mut self, file: &ModulePath, module: &ModulePath, path: &[String], name: String) {
        let Some(path) = self.absolute(module, path) else {
            return;
        };
        self.named
            .entry(file.clone())
            .or_default()
            .insert(path.clone());
        if file == module {
            self.scope.insert((file.clone(), name), path);
        }
    }

    /// Returns the module that defines a path's item.
    fn defining(&self, path: &ModulePath, steps: u32) -> ModulePath {
        let mut module = path.clone();
        while !self.named.contains_key(&module) {
            module.pop();
        }
        let name = path.get(module.len());
        let source = name.and_then(|name| self.scope.get(&(module.clone(), name.clone())));
        match source {
            Some(source) if steps > 0 && source != path => self.defining(source, steps - 1),
            _ => module,
        }
    }

    /// Returns which modules each module uses.
    fn edges(&self) -> BTreeMap<ModulePath, BTreeSet<ModulePath>> {
        let edges = self.named.iter().map(|(module, paths)| {
            let used = paths.iter().map(|path| self.defining(path, 8));
            // A re-export is not a use; naming it is.
            let used = used.filter(|used| used != module && !used.starts_with(module));
            (module.clone(), used.collect())
        });
        edges.collect()
    }
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

/// Returns the strongly connected components with more than one module.
fn circles(edges: &BTreeMap<ModulePath, BTreeSet<ModulePath>>) -> Vec<BTreeSet<ModulePath>> {
    let reached = |from: &ModulePath| {
        let mut seen = BTreeSet::new();
        let mut open: Vec<&ModulePath> = edges[from].iter().collect();
        while let Some(next) = open.pop() {
            if seen.insert(next.clone()) {
                open.extend(&edges[next]);
            }
        }
        seen
    };
    let reach: BTreeMap<&ModulePath, BTreeSet<ModulePath>> =
        edges.keys().map(|from| (from, reached(from))).collect();
    let mut all: Vec<BTreeSet<ModulePath>> = Vec::new();
    for (module, reached) in &reach {
        if !reached.contains(*module) || all.iter().any(|circle| circle.contains(*module)) {
            continue;
        }
        let both = reached
            .iter()
            .filter(|other| reach[other].contains(*module));
        all.push(both.cloned().collect());
    }
    all
}

fn name(module: &ModulePath) -> String {
    match module.is_empty() {
        true => "lib".to_owned(),
        false => module.join("::"),
    }
}

/// Returns the edges of a cycle, one line each.
fn shown(
    circle: &BTreeSet<ModulePath>,
    edges: &BTreeMap<ModulePath, BTreeSet<ModulePath>>,
) -> String {
    let lines = circle.iter().map(|module| {
        let used: Vec<String> = edges[module].intersection(circle).map(name).collect();
        format!("    {} uses {}\n", name(module), used.join(", "))
    });
    lines.collect()
}

#[test]
fn modules_use_each_other_in_layers() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let (mut wrong, mut seen) = (String::new(), BTreeSet::new());
    for entry in fs::read_dir(crates).unwrap() {
        let folder = entry.unwrap().path();
        let sources = folder.join("src");
        if !sources.is_dir() {
            continue;
        }
        let krate = folder.file_name().unwrap().to_str().unwrap();
        let edges = Modules::read(&sources).edges();
        for circle in circles(&edges) {
            let names: BTreeSet<String> = circle.iter().map(name).collect();
            let left = LEFT.iter().position(|(of, modules, _)| {
                *of == krate && names.iter().all(|name| modules.contains(&name.as_str()))
            });
            match left {
                Some(left) => _ = seen.insert(left),
                None => {
                    wrong += &format!(
                        "{krate}: a circle of {}\n{}",
                        names.len(),
                        shown(&circle, &edges)
                    )
                }
            }
        }
    }
    for (number, (krate, modules, _)) in LEFT.iter().enumerate() {
        if !seen.contains(&number) {
            wrong += &format!("{krate}: {} are no circle any more\n", modules.join(", "));
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

/// The most lines of the command line's sources: what other front ends would need is in libraries.
const MOST_LINES_OF_CLI: usize = 3500;

#[test]
fn the_command_line_stays_small() {
    let mut files = Vec::new();
    collect(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("src"),
        &mut files,
    );
    assert!(files.len() > 10, "the sources are missing: {files:?}");
    let lines = |file: &PathBuf| fs::read_to_string(file).unwrap().lines().count();
    let lines: usize = files.iter().map(lines).sum();
    assert!(
        lines <= MOST_LINES_OF_CLI,
        "crates/cli/src has {lines} lines; the limit is {MOST_LINES_OF_CLI}"
    );
}

/// Examples in comments are not compiled (`doctest = false`), so they would become wrong; those of the library are in
/// `crates/everett/examples`.
#[test]
fn comments_have_no_examples_in_rust() {
    let mut files = Vec::new();
    collect(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join(".."),
        &mut files,
    );
    assert!(files.len() > 300, "the sources are missing");
    for file in files
        .iter()
        .filter(|file| file.to_string_lossy().contains("/src/"))
    {
        let source = fs::read_to_string(file).unwrap();
        let comments = source.lines().map(str::trim_start);
        let mut fences = comments.filter_map(|line| {
            line.strip_prefix("//! ```")
                .or(line.strip_prefix("/// ```"))
        });
        while let Some(language) = fences.next() {
            assert_eq!(
                language,
                "text",
                "{}: an example that nobody compiles",
                file.display()
            );
            fences.next();
        }
    }
}

#[test]
fn circles_are_found_through_exports_and_paths() {
    let mut modules = Modules::default();
    let sources = [
        (vec![], "mod a; mod b; mod c; pub use c::deep::Deep;"),
        (
            vec!["a"],
            "use crate::{b::{self, B as C}, Deep}; // use crate::d;",
        ),
        (
            vec!["b"],
            "fn f() { let text = \"crate::a\"; 'x'; r#\"crate::a\"#; }",
        ),
        (vec!["c"], "mod deep; use deep::Deep; use std::fmt;"),
        (
            vec!["c", "deep"],
            "mod inner { fn f() -> super::super::super::a::A {} }",
        ),
    ];
    let path = |parts: &[&str]| {
        parts
            .iter()
            .map(|part| (*part).to_owned())
            .collect::<ModulePath>()
    };
    for (module, _) in &sources {
        modules.named.insert(path(module), BTreeSet::new());
    }
    for (module, source) in &sources {
        modules.add(&path(module), &tokens(source));
    }
    let edges = modules.edges();
    let of = |parts: &[&str]| edges[&path(parts)].iter().map(name).collect::<Vec<_>>();
    assert_eq!(of(&["a"]), ["b", "c::deep"]);
    assert!(of(&["b"]).is_empty() && of(&["c"]).is_empty());
    let found = circles(&edges);
    assert_eq!(
        found,
        [BTreeSet::from([path(&["a"]), path(&["c", "deep"])])]
    );
    assert_eq!(
        shown(&found[0], &edges),
        "    a uses c::deep\n    c::deep uses a\n"
    );
}
