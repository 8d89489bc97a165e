// A main function that returns an error exits with 1 and says why.
// exec: 12
// exec: twelve
// exec:
use std::fmt;

#[derive(Debug)]
enum Trouble {
    Missing,
    Number(std::num::ParseIntError),
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trouble::Missing => write!(f, "no argument"),
            Trouble::Number(error) => write!(f, "bad number: {error}"),
        }
    }
}

impl std::error::Error for Trouble {}

impl From<std::num::ParseIntError> for Trouble {
    fn from(error: std::num::ParseIntError) -> Self {
        Trouble::Number(error)
    }
}

fn number() -> Result<i32, Trouble> {
    let text = std::env::args().nth(1).ok_or(Trouble::Missing)?;
    Ok(text.parse::<i32>()?)
}

pub fn main() -> Result<(), Box<dyn std::error::Error>> {
    let number = number()?;
    println!("{number}");
    Ok(())
}
