//! The types inside errors, events and results can be named through the library
//! alone, without the crates below it.

use everett::Error;
use libtest_mimic::Failed;
use std::fs;

/// Returns the kind of an error, as a caller would distinguish them: each payload has the type that
/// is named here.
fn kind(error: &Error) -> &'static str {
    fn is<T>(_payload: &T, kind: &'static str) -> &'static str {
        kind
    }
    match error {
        Error::Scenario { problems } => is::<everett::Problems>(problems, "scenario"),
        Error::Explorer(error) => match error {
            everett::ExplorerError::Mapping(error) => {
                is::<everett::UnknownMapping>(error, "mapping")
            }
            everett::ExplorerError::Searcher(error) => {
                is::<everett::UnknownSearcher>(error, "searcher")
            }
            everett::ExplorerError::Solver(error) => is::<everett::SolverError>(error, "solver"),
            everett::ExplorerError::Saved(error) => is::<everett::SavedError>(error, "saved"),
            error => is::<everett::ExplorerError>(error, "explorer"),
        },
        Error::Native(error) => is::<everett::NativeError>(error, "native"),
        Error::Toolchain(error) => is::<everett::ToolchainError>(error, "toolchain"),
        Error::Bitcode(everett::FileError::Read { source, .. }) => {
            is::<everett::ReadError>(source, "bitcode")
        }
        Error::Bitcode(error) => is::<everett::FileError>(error, "file"),
        Error::Lower(error) => is::<everett::LowerError>(error, "lower"),
        Error::Image(error) => is::<everett::ImageError>(error, "image"),
        Error::Path(error) => is::<everett::PathError>(error, "path"),
        Error::Folder(error) => is::<everett::WriteError>(error, "folder"),
        _ => "other",
    }
}

/// The types inside traces, findings and ends of paths. That this compiles is the test.
#[expect(dead_code, reason = "the compiler checks the types")]
pub struct Named<'r> {
    /// The values of a finding.
    pub values: &'r [everett::ShownValue],
    /// The changed files of a finding.
    pub files: &'r [(everett::ChangedFile, Vec<u8>)],
    /// The ending of a path.
    pub ending: &'r everett::PathEnding,
    /// The answers of a trace.
    pub answers: &'r everett::SharedList<everett::TraceAnswer>,
    /// The site of a choice of a trace.
    pub site: &'r everett::ChoiceSite,
    /// The solver lines of a summary.
    pub lines: &'r [everett::SolverLine],
    /// The events of a native run.
    pub events: &'r [everett::NativeEvent],
}

#[expect(dead_code, reason = "the compiler checks the types")]
impl<'r> Named<'r> {
    /// Collects these parts from results of several operations.
    pub fn of(
        (finding, end): (&'r everett::Finding, &'r everett::PathEnd),
        (trace, choice): (&'r everett::Trace, &'r everett::TraceChoice),
        (summary, run): (&'r everett::Summary, &'r everett::NativeRun),
    ) -> Named<'r> {
        Named {
            values: &finding.values,
            files: &finding.files,
            ending: &end.ending,
            answers: &trace.answers,
            site: &choice.site,
            lines: &summary.solver_lines,
            events: &run.events,
        }
    }
}

/// The result of [`everett::prepare`], which an explorer takes.
pub type Prepared = (everett::engine::ExplorerConfig, Vec<everett::Image>);

pub fn payloads() -> Result<(), Failed> {
    let folder = crate::folder("names");
    let file = folder.join("wrong.toml");
    fs::write(&file, "[host.a]\n")?;
    let spec = everett::RunSpec::new([&file]);
    let (session, mut observer) = (everett::Session::new(), everett::Silent);
    let Err(error) = everett::explore(&spec, &session, &mut observer) else {
        return Err("the scenario has an error".into());
    };
    assert_eq!(kind(error.root()), "scenario");
    let Error::Scenario { problems } = error.root() else {
        return Err(format!("{error:?}").into());
    };
    let problem: &everett::Problem = problems.list.first().ok_or("there is a problem")?;
    assert_eq!(problem.line, 1);
    let program = folder.join("program.bc");
    fs::write(&program, "this is no bitcode")?;
    let prepared: everett::Result<Prepared> =
        everett::prepare(&everett::RunSpec::new([program]), &session);
    let Err(error) = prepared else {
        return Err("the program is damaged".into());
    };
    assert_eq!(kind(error.root()), "bitcode");
    Ok(())
}
