//! A reader for the parts of LLVM's textual form that hardened builds must understand: heads of
//! functions, calls, labels, branches. Each line is one instruction.

/// The head of a function, `define` or `declare`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Head<'t> {
    /// The function's name, without `@` and quotes.
    pub name: &'t str,
    /// Position of the name, including `@`.
    pub at: usize,
    /// Start and end of the parameters, including parentheses.
    pub parameters: (usize, usize),
}

/// Reads the head of a function.
pub fn head(line: &str) -> Option<Head<'_>> {
    if !line.starts_with("define ") && !line.starts_with("declare ") {
        return None;
    }
    let at = line.find(" @")? + 1;
    let (name, open) = symbol(line, at)?;
    let close = close_of(line, open)?;
    Some(Head {
        name,
        at,
        parameters: (open, close),
    })
}

/// Returns the name of a global that begins at `@`, and the position after it.
pub fn symbol(line: &str, at: usize) -> Option<(&str, usize)> {
    let rest = line.get(at..)?.strip_prefix('@')?;
    if let Some(quoted) = rest.strip_prefix('"') {
        let length = quoted.find('"')?;
        return Some((&quoted[..length], at + length + 3));
    }
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"-$._".contains(&byte);
    let length = rest.bytes().take_while(|byte| is_part(*byte)).count();
    (length > 0).then(|| (&rest[..length], at + 1 + length))
}

/// Returns the position of the parenthesis that closes the one at `open`.
pub fn close_of(line: &str, open: usize) -> Option<usize> {
    let (mut depth, mut quoted) = (0_usize, false);
    for (at, byte) in line.bytes().enumerate().skip(open) {
        match byte {
            b'"' => quoted = !quoted,
            _ if quoted => {}
            b'(' => depth += 1,
            b')' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(at);
                }
            }
            _ => {}
        }
    }
    None
}

/// A direct call.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Call<'t> {
    /// The callee.
    pub callee: &'t str,
    /// Position of the name, including `@`.
    pub at: usize,
    /// Position of the opening parenthesis of the arguments.
    pub open: usize,
    /// The name of the result, including `%`.
    pub result: Option<&'t str>,
}

/// Reads a direct call; an `invoke` does not count.
pub fn call(line: &str) -> Option<Call<'_>> {
    let instruction = line.strip_prefix("  ")?;
    let (result, operation) = match instruction.split_once(" = ") {
        Some((result, operation)) if result.starts_with('%') => (Some(result), operation),
        _ => (None, instruction),
    };
    let is_call = ["call ", "tail call ", "notail call "]
        .iter()
        .any(|word| operation.starts_with(word));
    if !is_call {
        return None;
    }
    let mut from = line.len() - operation.len();
    loop {
        let at = from + line[from..].find('@')?;
        if line[from..at].contains(" asm ") || line[from..at].contains('%') {
            return None;
        }
        let (callee, open) = symbol(line, at)?;
        if line[open..].starts_with('(') {
            return Some(Call {
                callee,
                at,
                open,
                result,
            });
        }
        from = open;
    }
}

/// Returns the label that a line defines.
pub fn label(line: &str) -> Option<&str> {
    if line.starts_with([' ', '}', '!', '@', ';']) {
        return None;
    }
    let (name, _) = line.split_once(':')?;
    Some(name.trim_matches('"'))
}

/// A conditional branch: the range of the condition in the line, and both labels.
#[derive(Clone, Debug, PartialEq)]
pub struct Branch<'t> {
    /// Start and end of the condition.
    pub condition: (usize, usize),
    /// The target if the condition holds, and the target otherwise.
    pub targets: [&'t str; 2],
}

/// Reads a conditional branch.
pub fn branch(line: &str) -> Option<Branch<'_>> {
    const START: &str = "  br i1 ";
    let rest = line.strip_prefix(START)?;
    let (condition, rest) = rest.split_once(", label %")?;
    let (first, rest) = rest.split_once(", label %")?;
    let end = rest.find(", !").unwrap_or(rest.len());
    Some(Branch {
        condition: (START.len(), START.len() + condition.len()),
        targets: [first, &rest[..end]].map(|target| target.trim_matches('"')),
    })
}

/// Returns the target labels of a terminator.
pub fn targets(line: &str) -> impl Iterator<Item = &str> {
    line.split("label %").skip(1).map(|rest| {
        let quoted = rest.strip_prefix('"');
        match quoted {
            Some(rest) => rest.split('"').next().unwrap_or_default(),
            None => rest.split([',', ' ', ']']).next().unwrap_or_default(),
        }
    })
}

/// Returns the number of the metadata node of a line under a name, such as `!dbg`.
pub fn metadata(line: &str, name: &str) -> Option<u32> {
    let at = line.rfind(&format!("{name} !"))?;
    let digits = &line[at + name.len() + 2..];
    let length = digits.bytes().take_while(u8::is_ascii_digit).count();
    digits[..length].parse().ok()
}

/// Returns the text of a line's `!dbg` with the comma before it, or nothing.
pub fn debug_suffix(line: &str) -> String {
    match metadata(line, "!dbg") {
        Some(number) => format!(", !dbg !{number}"),
        None => String::new(),
    }
}

/// Returns whether a name with `%` or `@` occurs in a line as a whole word.
pub fn mentions(line: &str, name: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"-$._".contains(&byte);
    line.match_indices(name).any(|(at, _)| {
        let next = line.as_bytes().get(at + name.len());
        next.is_none_or(|byte| !is_part(*byte))
    })
}

/// Formats a string as the content of a byte constant, with a terminating zero.
pub fn constant(text: &str) -> String {
    let mut bytes = String::new();
    for byte in text.bytes().chain([0]) {
        match byte {
            b'"' | b'\\' | 0..=31 | 127.. => bytes.push_str(&format!("\\{byte:02X}")),
            _ => bytes.push(char::from(byte)),
        }
    }
    format!("[{} x i8] c\"{bytes}\"", text.len() + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_of_functions_are_read() {
        let line = "define internal ptr @\"a b\"(ptr align 16 captures(none) %0, ...) #3 !dbg !4 {";
        let found = head(line).unwrap();
        assert_eq!(found.name, "a b");
        let (open, close) = found.parameters;
        assert_eq!(&line[open..=close], "(ptr align 16 captures(none) %0, ...)");
        assert_eq!(head("declare void @f()").unwrap().name, "f");
        assert_eq!(head("  call void @f()"), None);
    }

    #[test]
    fn calls_are_read_if_they_are_direct() {
        let found = call("  %8 = tail call i64 @strlen(ptr %7) #30, !dbg !3845").unwrap();
        assert_eq!((found.callee, found.result), ("strlen", Some("%8")));
        let varied = "  %2 = call i32 (ptr, ...) @printf(ptr @.str, ptr @main)";
        assert_eq!(call(varied).unwrap().callee, "printf");
        assert_eq!(call("  call void %3(ptr @f)"), None);
        assert_eq!(
            call("  call void asm sideeffect \"call @f(\", \"\"()"),
            None
        );
        assert_eq!(call("  invoke void @f() to label %1 unwind label %2"), None);
        assert_eq!(call("  store ptr @f, ptr %1, align 8"), None);
    }

    #[test]
    fn branches_and_labels_are_read() {
        let line = "  br i1 %10, label %12, label %11, !dbg !3849";
        let found = branch(line).unwrap();
        assert_eq!(&line[found.condition.0..found.condition.1], "%10");
        assert_eq!(found.targets, ["12", "11"]);
        assert_eq!(branch("  br label %3"), None);
        assert_eq!(label("11:        ; preds = %2"), Some("11"));
        assert_eq!(label("\"a b\":"), Some("a b"));
        assert_eq!(label("  ret void"), None);
        let switch = "  switch i32 %1, label %2 [ i32 0, label %3 i32 1, label %\"4\" ]";
        assert_eq!(targets(switch).collect::<Vec<_>>(), ["2", "3", "4"]);
        assert_eq!(metadata(line, "!dbg"), Some(3849));
        assert!(mentions("  %2 = add i32 %1, %10", "%1"));
        assert!(!mentions("  %2 = add i32 %12, %10", "%1"));
    }

    #[test]
    fn constants_are_escaped() {
        assert_eq!(constant("a\"\\"), "[4 x i8] c\"a\\22\\5C\\00\"");
    }
}
