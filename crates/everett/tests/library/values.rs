//! Impossible values of specs: every operation refuses them with an error that names the field.

use everett::{Error, ExecSpec, HostSpec, NativeSpec, NoWatcher, RunSpec, Session, Silent};
use libtest_mimic::Failed;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Returns the field that an error names.
fn field<T>(result: everett::Result<T>) -> Result<&'static str, Failed> {
    match result {
        Ok(_) => Err("the value is accepted".into()),
        Err(Error::InvalidValue { field, message }) if !message.contains("--") => Ok(field),
        Err(error) => Err(format!("{error:?}").into()),
    }
}

type Change = fn(&mut RunSpec);
type HostChange = fn(&mut HostSpec);

/// Impossible values of fields that are not options of hosts.
const OF_RUNS: &[(&str, Change)] = &[
    ("version", |spec| spec.version = Some(1)),
    ("version", |spec| spec.version = Some(everett::VERSION + 1)),
    ("panics", |spec| spec.panics = "some".to_owned()),
    ("mapping", |spec| spec.mapping = Some("none".to_owned())),
    ("mapping", |spec| spec.mapping = Some(String::new())),
    ("batch", |spec| spec.batch = Some(0)),
    ("workers", |spec| spec.workers = Some(0)),
    ("search", |spec| {
        spec.search = vec!["bfs".to_owned(), "best".to_owned()]
    }),
    ("max_time", |spec| spec.max_time = Some(Duration::MAX)),
    ("checkpoint", |spec| spec.checkpoint = Some(Duration::MAX)),
    ("max_virtual_time", |spec| {
        spec.max_virtual_time = Some(Duration::MAX)
    }),
    ("solver_time", |spec| spec.solver_time = Some(Duration::MAX)),
    ("command", |spec| {
        spec.command.push(OsString::from_vec(vec![b'a', 0]))
    }),
];

/// Impossible values of options of hosts.
const OF_HOSTS: &[(&str, HostChange)] = &[
    ("env", |host| host.env = vec!["=value".to_owned()]),
    ("env", |host| host.env = vec!["NAME=a\0b".to_owned()]),
    ("scheduler", |host| host.scheduler = Some("fair".to_owned())),
    ("preempt", |host| host.preempt = Some("often".to_owned())),
    ("fault", |host| {
        (host.faults, host.fault) = (1, vec!["raed".to_owned()])
    }),
    // These have no effect without a number of failures.
    ("fault", |host| host.fault = vec!["read".to_owned()]),
    ("fault_regions", |host| host.fault_regions = true),
    ("fault_program", |host| {
        host.fault_program = vec!["a".to_owned()]
    }),
    ("max_calls", |host| host.max_calls = Some(0)),
    ("uptime", |host| host.uptime = Some(Duration::MAX)),
    ("cwd", |host| host.cwd = Some(PathBuf::new())),
    ("ro", |host| {
        host.ro = vec![everett::Mount::new(Path::new("/etc"), Path::new(""))]
    }),
    ("program", |host| {
        host.program = vec![everett::GuestProgram {
            path: String::new(),
            file: PathBuf::from("a"),
        }];
    }),
];

/// No program is needed: values are checked first.
pub fn refused() -> Result<(), Failed> {
    let session = Session::new();
    let spec = || RunSpec::new(["/nothing"]);
    let explore = |spec: &RunSpec| everett::explore(spec, &session, &mut Silent);
    for (name, change) in OF_RUNS {
        let mut spec = spec();
        change(&mut spec);
        assert_eq!(field(spec.check())?, *name);
        assert_eq!(field(explore(&spec))?, *name);
        assert_eq!(field(everett::prepare(&spec, &session))?, *name);
        spec.command[0] = "/nothing.toml".into();
        assert_eq!(field(explore(&spec))?, *name);
    }
    for (name, change) in OF_HOSTS {
        let mut host = HostSpec::default();
        change(&mut host);
        let run = RunSpec {
            host: host.clone(),
            ..spec()
        };
        assert_eq!(field(explore(&run))?, *name);
        let exec = ExecSpec {
            host: host.clone(),
            command: run.command.clone(),
            ..ExecSpec::default()
        };
        assert_eq!(field(everett::exec(&exec, &session, &mut Deaf))?, *name);
        let native = NativeSpec {
            host,
            command: run.command,
            ..NativeSpec::default()
        };
        assert_eq!(
            field(everett::native(&native, &session, &mut NoWatcher))?,
            *name
        );
    }
    Ok(())
}

/// Fields that do not apply to this kind of run.
pub fn not_applicable() -> Result<(), Failed> {
    let session = Session::new();
    let mut run = RunSpec::new(["/nothing.toml"]);
    run.host.faults = 2;
    let of_program = everett::explore(&run, &session, &mut Silent).map(|_| ());
    let native = NativeSpec {
        settings: vec![("host.a.count".to_owned(), "3".to_owned())],
        command: vec!["/nothing".into()],
        ..NativeSpec::default()
    };
    let of_scenario = everett::native(&native, &session, &mut NoWatcher).map(|_| ());
    for (result, name) in [(of_program, "faults"), (of_scenario, "settings")] {
        let Err(error) = result else {
            return Err(name.into());
        };
        assert!(
            error.to_string().starts_with(&format!("`{name}` is for")),
            "{error}"
        );
        assert!(matches!(error, Error::NotApplicable { field, .. } if field == name));
    }
    Ok(())
}

/// Messages of the library name fields of specs; only front ends know flags.
pub fn no_flags() -> Result<(), Failed> {
    const FRONT_ENDS: [&str; 4] = ["cli", "bench", "fuzz", "toolchain"];
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut folders = vec![];
    for entry in fs::read_dir(crates)?.flatten() {
        if !FRONT_ENDS.iter().any(|name| entry.file_name() == *name) {
            folders.push(entry.path().join("src"));
        }
    }
    let flags: Vec<String> = everett::OPTIONS
        .iter()
        .map(|option| format!("--{}", option.name))
        .collect();
    let mut seen = 0;
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)?.flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path)?;
                let code = text.lines().filter(|line| !line.trim().starts_with("//"));
                for line in code {
                    let named = |flag: &&String| line.contains(flag.as_str());
                    let flag = flags.iter().find(named);
                    assert!(flag.is_none(), "{}: {line}", path.display());
                    seen += 1;
                }
            }
        }
    }
    assert!(seen > 10_000, "{seen} lines");
    Ok(())
}

/// Values that the table accepts as text are accepted as values of specs, and vice versa.
pub fn as_text() -> Result<(), Failed> {
    let usual = RunSpec::new(["/nothing"]);
    usual.check()?;
    for option in everett::OPTIONS {
        if let Some(default) = option.default {
            let mut spec = usual.clone();
            option.set(&mut spec, default.as_ref())?;
            spec.check()?;
        }
    }
    let refused = [
        ("batch", "0"),
        ("workers", "0"),
        ("max-calls", "0"),
        ("panics", ""),
        ("panics", "some"),
        ("mapping", "none"),
        ("search", "best"),
        ("scheduler", "fair"),
        ("preempt", "often"),
        ("fault", "raed"),
        ("env", "=value"),
        ("uptime", "5000000h"),
    ];
    for (name, value) in refused {
        let option = everett::option(name).ok_or(name)?;
        let mut spec = usual.clone();
        assert!(
            option.set(&mut spec, value.as_ref()).is_err(),
            "{name} {value}"
        );
    }
    Ok(())
}

/// A console without input that ignores output.
struct Deaf;

impl everett::Console for Deaf {
    fn read(&mut self, _buffer: &mut [u8]) -> std::io::Result<usize> {
        Ok(0)
    }

    fn write(&mut self, _: everett::OutputStream, _: &[u8]) -> std::io::Result<()> {
        Ok(())
    }
}
