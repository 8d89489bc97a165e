// A recursive evaluator of symbolic tokens, with errors as values, is free of panics.
// run:
unsafe extern "C" {
    fn everett_make_symbolic(place: *mut u8, size: usize, name: *const u8);
}

fn symbolic<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    // SAFETY: the array has that many bytes, and the name ends in a zero.
    unsafe { everett_make_symbolic(bytes.as_mut_ptr(), N, c"input".as_ptr().cast()) };
    bytes
}

#[derive(Debug, PartialEq)]
enum Fault {
    End,
    Token(u8),
    Overflow,
}

fn evaluate(tokens: &mut std::slice::Iter<'_, u8>) -> Result<i8, Fault> {
    match tokens.next().copied().ok_or(Fault::End)? {
        b'+' => {
            let left = evaluate(tokens)?;
            let right = evaluate(tokens)?;
            left.checked_add(right).ok_or(Fault::Overflow)
        }
        b'-' => evaluate(tokens)?.checked_neg().ok_or(Fault::Overflow),
        digit @ b'0'..=b'9' => Ok((digit - b'0') as i8),
        other => Err(Fault::Token(other)),
    }
}

pub fn main() {
    let bytes = symbolic::<3>();
    let code = match evaluate(&mut bytes.iter()) {
        Ok(value) if (-9..=18).contains(&value) => 0,
        Ok(value) => panic!("impossible: {value}"),
        Err(Fault::End) => 1,
        Err(Fault::Token(token)) if token.is_ascii_digit() => panic!("a digit"),
        Err(Fault::Token(_)) => 2,
        Err(Fault::Overflow) => panic!("no overflow"),
    };
    std::process::exit(code);
}
