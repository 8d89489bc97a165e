//! Describes classes of Trojan messages for people: fields, the nearest client message, groups,
//! hints.

use everett_engine::{SourceFrame, principal};
use everett_expr::ExprId;
use everett_report::counted;
use everett_trojans::{
    Accepted, Answer, Count, Field, How, Layout, Missing, Placed, Search, Why, unmasked_parts,
};
use std::cmp::Ordering;

use super::summary::{Nearest, TrojanEntry, TrojanField, TrojansSummary};
use super::{Analysis, Class};

/// Describes a new class, and adds it to the summary. Returns whether it has Trojan messages.
pub(super) fn describe(
    analysis: &Analysis<'_>,
    search: &mut Search,
    class: &Class,
    summary: &mut TrojansSummary,
) -> bool {
    match &class.accepted.answer {
        Answer::Trojan(found) => {
            let number = summary.trojans.len() + 1;
            let certain = summary.is_certain() && found.how != How::ByValues;
            summary.phases.found.push(class.found_after);
            let entry = entry(analysis, search, class, &found.message);
            summary.trojans.push(TrojanEntry {
                number,
                dir: format!("trojans/{number:04}"),
                how: found.how.name().to_owned(),
                certain,
                ..entry
            });
            true
        }
        Answer::Undecided(reason) => {
            summary.complete = false;
            let place = place(&class.accepted.stack);
            let place = place.map_or(String::new(), |at| format!("{}:{}: ", at.file, at.line));
            summary.undecided.push(format!("{place}{reason}"));
            false
        }
        Answer::None => false,
    }
}

/// Notes the senders of all classes: classes get more of them while others are explored.
pub(super) fn note_senders(
    analysis: &Analysis<'_>,
    classes: &[Class],
    summary: &mut TrojansSummary,
) {
    let is_trojan = |class: &&Class| matches!(class.accepted.answer, Answer::Trojan(_));
    let classes = classes.iter().filter(is_trojan);
    for (class, entry) in classes.zip(&mut summary.trojans) {
        entry.senders = names(analysis, class);
    }
}

fn names(analysis: &Analysis<'_>, class: &Class) -> Vec<String> {
    let senders = class.senders.iter();
    senders.map(|one| analysis.name(*one)).collect()
}

/// Returns the place where the user's own code accepts: the innermost frame outside of the C
/// library and of Everett's headers. Calls that the compiler has merged have no line.
pub(super) fn place(stack: &[SourceFrame]) -> Option<&SourceFrame> {
    const NOT_OWN: [&str; 2] = ["/musl/", "/everett.h"];
    let is_own = |frame: &&SourceFrame| {
        let is_header = NOT_OWN.iter().any(|part| frame.file.contains(part));
        !frame.is_library() && !is_header
    };
    let own = || stack.iter().filter(is_own);
    let with_line = own().find(|frame| frame.line != 0);
    with_line.or(own().next()).or(principal(stack))
}

/// Adds a class, unless another one accepts the same messages for the same reason at the same
/// place. Returns whether it is new.
pub(super) fn merge(search: &mut Search, classes: &mut Vec<Class>, class: Class) -> bool {
    let terms = |search: &mut Search, class: &Class| {
        let mut terms = search.stored(&class.accepted.path).unwrap_or_default();
        terms.sort();
        terms
    };
    let own = terms(search, &class);
    let text = search.text(&own);
    let same = classes.iter_mut().find(|other| {
        let (one, two) = (&other.accepted, &class.accepted);
        let is_alike = other.length == class.length
            && one.why == two.why
            && place(&one.stack) == place(&two.stack);
        if !is_alike {
            return false;
        }
        let theirs = terms(search, other);
        let is_other_world = (&other.senders, other.sent_at) != (&class.senders, class.sent_at);
        theirs == own
            || (one.answer == two.answer && search.text(&theirs) == text)
            || differ_in_others(search, (one, &theirs), (two, &own))
            // Terms of another exploration may have another form.
            || (is_other_world && search.take_the_same(&theirs, &own))
    });
    let Some(same) = same else {
        classes.push(class);
        return true;
    };
    for sender in class.senders {
        if !same.senders.contains(&sender) {
            same.senders.push(sender);
        }
    }
    if same.accepted.path != class.accepted.path && !same.also.contains(&class.accepted.path) {
        same.also.push(class.accepted.path);
    }
    false
}

/// Returns whether two paths have the same conditions on the message and differ only in conditions
/// on other inputs, such as arguments of the server: then they accept the same messages.
fn differ_in_others(
    search: &mut Search,
    (one, ones): (&Accepted, &[ExprId]),
    (two, twos): (&Accepted, &[ExprId]),
) -> bool {
    let is_trojan = |accepted: &Accepted| matches!(accepted.answer, Answer::Trojan(_));
    let ones = search.message_conditions(ones);
    is_trojan(one) == is_trojan(two) && ones.is_some() && ones == search.message_conditions(twos)
}

/// Returns bytes as hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn entry(
    analysis: &Analysis<'_>,
    search: &mut Search,
    class: &Class,
    message: &[u8],
) -> TrojanEntry {
    let layout = &analysis.layout;
    let accepted = &class.accepted;
    let path = search.stored(&accepted.path).unwrap_or_default();
    let (nearest, alone) = nearest(search, layout, message);
    let place = place(&accepted.stack);
    let constraint = constraint(search, layout, &path, message.len());
    TrojanEntry {
        number: 0,
        dir: String::new(),
        length: class.length,
        senders: names(analysis, class),
        state_ns: class.sent_at.time_ns(),
        example: hex(message),
        constraint,
        fields: fields(layout, message),
        how: String::new(),
        certain: false,
        confirmed: "not tried".to_owned(),
        why: match &accepted.why {
            Why::Reply => "reply".to_owned(),
            Why::Call(name) => format!("call {name}"),
            Why::Mark => "mark".to_owned(),
            Why::Crash(what) => what.clone(),
        },
        file: place.map_or(String::new(), |at| at.file.clone()),
        line: place.map_or(0, |at| at.line),
        function: place.map_or(String::new(), |at| at.function.clone()),
        group: group(layout, message, nearest.as_ref(), &alone),
        nearest,
        fix_hint: hint(search, layout, &path, message.len()),
    }
}

/// Returns the fields of a message.
fn fields(layout: &Layout, message: &[u8]) -> Vec<TrojanField> {
    let placed = layout.place(message).into_iter();
    let named = placed.map(|field| TrojanField {
        value: field.number(message),
        offset: field.range.start,
        bytes: hex(&message[field.range]),
        masked: field.masked,
        name: field.name,
    });
    named.collect()
}

/// Replaces bytes by names of fields: `message[5]` becomes `address[1]`, or `cmd` for a field of
/// one byte. Only for fields with a fixed place: others are not the same bytes in all messages.
fn by_fields(text: &str, layout: &Layout, length: usize) -> String {
    let fixed = layout.fixed(length as u32);
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("message[") {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        let digits = &from["message[".len()..];
        let Some(end) = digits.find(']') else {
            break;
        };
        let index: usize = digits[..end].parse().unwrap_or(usize::MAX);
        let mut fields = fixed.iter();
        let field = fields.find(|field| field.range.contains(&index));
        match field {
            Some(field) if field.field.size == Count::Fixed(1) => out.push_str(&field.name),
            Some(field) => {
                let within = index - field.range.start;
                out.push_str(&format!("{}[{within}]", field.name));
            }
            None => out.push_str(&format!("byte[{index}]")),
        }
        rest = &digits[end + 1..];
    }
    out.push_str(rest);
    out
}

/// Returns the constraint of a class: the path condition, and the negation of the client
/// predicates.
fn constraint(search: &mut Search, layout: &Layout, path: &[ExprId], length: usize) -> String {
    let mut parts = search.text(path);
    for sent in search.sent_text(path) {
        parts.push(format!("not ({sent})"));
    }
    let parts: Vec<String> = parts
        .iter()
        .map(|part| by_fields(part, layout, length))
        .collect();
    parts.join(" and ")
}

/// Returns what the server would have to check.
fn hint(search: &mut Search, layout: &Layout, path: &[ExprId], length: usize) -> String {
    let cases = search.missing(path);
    if cases.is_empty() {
        return "reject: no client sends anything like it".to_owned();
    }
    let is_open = cases.iter().any(|case| case.is_open);
    let case = |case: &Missing| match case.facts.is_empty() {
        true => "a client's inputs give these bytes".to_owned(),
        false => by_fields(&case.facts.join(" and "), layout, length),
    };
    let cases: Vec<String> = cases.iter().map(case).collect();
    let hint = format!("accept only if {}", cases.join(", or "));
    match is_open {
        true => format!(
            "{hint} (necessary, not sufficient: bytes depend on a client's inputs in other ways)"
        ),
        false => hint,
    }
}

/// Returns the nearest client message: it differs in one field, in two, or in more. Also returns
/// all fields that a client message can differ in alone.
fn nearest(search: &mut Search, layout: &Layout, message: &[u8]) -> (Option<Nearest>, Vec<String>) {
    let fields = unmasked_parts(&layout.place(message), message.len() as u32);
    let (mut first, mut alone) = (None, Vec::new());
    for at in 0..fields.len() {
        if let Some(found) = without(search, &fields, &[at], message) {
            alone.push(fields[at].0.clone());
            first.get_or_insert(found);
        }
    }
    if first.is_some() {
        return (first, alone);
    }
    let mut others = Vec::new();
    if fields.len() <= MOST_PAIRED {
        for one in 0..fields.len() {
            others.extend((0..one).map(|other| vec![other, one]));
        }
    }
    let mut others = others.iter();
    let found = others.find_map(|left_out| without(search, &fields, left_out, message));
    (found.or_else(|| fewest(search, &fields, message)), alone)
}

/// Returns a client message whose set of differing fields is minimal.
fn fewest(search: &mut Search, fields: &[Range], message: &[u8]) -> Option<Nearest> {
    let mut left_out: Vec<usize> = (0..fields.len()).collect();
    let mut found = without(search, fields, &left_out, message)?;
    for at in 0..fields.len() {
        let fewer: Vec<usize> = left_out.iter().copied().filter(|one| *one != at).collect();
        if !found.differs.contains(&fields[at].0) {
            left_out = fewer;
        } else if let Some(nearer) = without(search, fields, &fewer, message) {
            (found, left_out) = (nearer, fewer);
        }
    }
    Some(found)
}

/// Maximum number of fields for which pairs are tried.
const MOST_PAIRED: usize = 16;

/// A field and its bytes.
type Range = (String, std::ops::Range<usize>);

/// Returns a client message that agrees with another message except in these fields.
fn without(
    search: &mut Search,
    fields: &[Range],
    left_out: &[usize],
    message: &[u8],
) -> Option<Nearest> {
    let is_kept = |place: &usize| {
        let mut left_out = left_out.iter();
        !left_out.any(|field| fields[*field].1.contains(place))
    };
    let places: Vec<usize> = search
        .unmasked(message)
        .into_iter()
        .filter(is_kept)
        .collect();
    let sent = search.produced(message, &places).ok()??;
    let differs = |(_, range): &&Range| sent.message[range.clone()] != message[range.clone()];
    let differs = fields.iter().filter(differs);
    Some(Nearest {
        differs: differs.map(|(name, _)| name.clone()).collect(),
        client: sent.client,
        message: hex(&sent.message),
    })
}

/// Returns the group of a message: a length that does not fit its string as in client messages, or
/// the fields in which the message differs from the nearest one.
fn group(layout: &Layout, message: &[u8], nearest: Option<&Nearest>, alone: &[String]) -> String {
    let usual = nearest.map(|nearest| unhex(&nearest.message));
    for of in layout.fields.iter().filter(|of| of.repeat.is_none()) {
        let Some((field, excess)) = excess(layout, of, message) else {
            continue;
        };
        let usual = usual
            .as_ref()
            .and_then(|usual| self::excess(layout, of, usual));
        // A length may also count the NUL or a header.
        let usual = usual.map_or(excess.min(0), |(_, usual)| usual);
        match excess.cmp(&usual) {
            Ordering::Greater => return format!("{field} > length of {}", of.name),
            Ordering::Less if excess < 0 => return format!("{field} < length of {}", of.name),
            _ => {}
        }
    }
    match nearest {
        Some(_) if !alone.is_empty() => parts(layout, alone).join(" or "),
        Some(nearest) => parts(layout, &nearest.differs).join(", "),
        None => format!("no client sends {}", counted(message.len(), "byte")),
    }
}

/// Returns the field that contains the length of another one, and by how much it exceeds the real
/// length.
fn excess(layout: &Layout, of: &Field, message: &[u8]) -> Option<(String, i128)> {
    let placed = layout.place(message);
    let says = |field: &&Placed<'_>| {
        field.field.length_of.as_ref() == Some(&of.name)
            || (of.size == Count::Said(field.name.clone()) && of.fields.is_empty())
    };
    let field = placed.iter().find(says)?;
    // A field without bytes has no place.
    let range = placed.iter().find(|placed| placed.name == of.name);
    let string = range.map_or(&[][..], |of| &message[of.range.clone()]);
    let end = string.iter().position(|byte| *byte == 0);
    let real = end.filter(|_| of.is_string).unwrap_or(string.len());
    let said = field.number(message)?;
    Some((field.name.clone(), i128::from(said) - real as i128))
}

/// Returns the bytes of hexadecimal digits.
fn unhex(digits: &str) -> Vec<u8> {
    let pairs = digits.as_bytes().chunks(2);
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    pairs.filter_map(byte).collect()
}

/// Returns the parts of a message for the name of a group. All bytes outside of fields are one
/// part, and so are all occurrences of a repeated field.
fn parts(layout: &Layout, names: &[String]) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for name in names {
        let name = match name.strip_prefix("byte ") {
            Some(_) if !layout.fields.is_empty() => "bytes of no field".to_owned(),
            _ => without_numbers(name),
        };
        if !all.contains(&name) {
            all.push(name);
        }
    }
    all
}

/// Returns the name of a repeated field without indices: `option.kind` for `option[1].kind`.
fn without_numbers(name: &str) -> String {
    let mut plain = String::new();
    for part in name.split('[') {
        let number = part.split_once(']');
        let number = number.filter(|(number, _)| number.parse::<u32>().is_ok());
        match number {
            Some((_, rest)) if !plain.is_empty() => plain.push_str(rest),
            _ => plain.push_str(part),
        }
    }
    plain
}
