//! Brings libraries of other languages into `target/benchmarks/peers`, with the tools of their languages.

use std::{
    collections::BTreeMap,
    env, fs, io,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

use crate::Failure;

/// The harnesses, a folder for each library. Their description is `README.md` there.
const HARNESSES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/peers");
/// Prints what is installed of the packages in its arguments, as a line of `requirements.txt` each.
const LIST: &str =
    "import importlib.metadata as m, sys\nfor n in sys.argv[1:]: print(f'{n}=={m.version(n)}')";

/// What runs a harness.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Language {
    Node,
    Python,
}

/// A harness that can be run.
#[derive(Clone, Debug)]
pub(crate) struct Harness {
    pub(crate) program: PathBuf,
    /// What the program is given first, if it is an interpreter.
    pub(crate) script: Option<PathBuf>,
    /// The packages that its folder names, and the interpreter.
    pub(crate) versions: BTreeMap<String, String>,
}

/// Installs what the harness in `folder` needs, unless it is there in the wanted version.
///
/// # Errors
///
/// The interpreter or its installer cannot be run, or does not bring all that is wanted.
pub(crate) fn harness(language: Language, folder: &str) -> Result<Harness, Failure> {
    let interpreter = match language {
        Language::Node => "node",
        Language::Python => "python3",
    };
    let version = output(Command::new(interpreter).arg("--version"))?;
    let all = directory();
    let place = all.join(folder);
    copy_files(Path::new(HARNESSES), &all)?;
    copy_files(&Path::new(HARNESSES).join(folder), &place)?;
    let wanted = language.wanted(&place)?;
    if language.found(&place, &wanted) != wanted {
        let named: Vec<String> = wanted.iter().map(|(name, version)| format!("{name} {version}")).collect();
        eprintln!("installing {} into {}", named.join(", "), place.display());
        language.install(&place)?;
        let found = language.found(&place, &wanted);
        if found != wanted {
            return Err(format!("wanted {wanted:?}, and {found:?} was installed").into());
        }
    }
    let mut versions = wanted;
    let number = version.trim().trim_start_matches("Python ").trim_start_matches('v');
    versions.insert(interpreter.trim_end_matches('3').to_owned(), number.to_owned());
    let (program, script) = match language {
        Language::Node => (interpreter.into(), place.join("queue.mjs")),
        Language::Python => (python(&place), place.join("worker.py")),
    };
    Ok(Harness { program, script: Some(script), versions })
}

/// Has cargo build the harness in `folder`, a package of its own, unless it is built.
///
/// # Errors
///
/// Cargo cannot be run, or cannot build it.
#[allow(dead_code, reason = "only stored tasks have such a harness")]
pub(crate) fn built(folder: &str) -> Result<Harness, Failure> {
    let (manifest, place) = (Path::new(HARNESSES).join(folder).join("Cargo.toml"), directory().join(folder));
    let program = place.join("release/worker");
    let versions = exact(&fs::read_to_string(&manifest)?);
    if !program.exists() {
        eprintln!("building {} in {}", manifest.display(), place.display());
    }
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["build", "--quiet", "--release", "--locked", "--manifest-path"]).arg(manifest);
    output(cargo.arg("--target-dir").arg(place))?;
    Ok(Harness { program, script: None, versions })
}

impl Language {
    /// The packages that a folder asks for.
    fn wanted(self, place: &Path) -> Result<BTreeMap<String, String>, Failure> {
        match self {
            Self::Node => {
                let package = json(&place.join("package.json"))?;
                let wanted = package["dependencies"].as_object().ok_or("package.json has no dependencies")?;
                let texts =
                    wanted.iter().map(|(name, version)| Some((name.clone(), version.as_str()?.to_owned())));
                texts
                    .collect::<Option<_>>()
                    .ok_or_else(|| "package.json has a version that is no text".into())
            }
            Self::Python => Ok(requirements(&fs::read_to_string(place.join("requirements.txt"))?)),
        }
    }

    /// Which of them are there.
    fn found(self, place: &Path, wanted: &BTreeMap<String, String>) -> BTreeMap<String, String> {
        match self {
            Self::Node => {
                let version = |name: &String| {
                    let package = json(&place.join("node_modules").join(name).join("package.json")).ok()?;
                    Some((name.clone(), package["version"].as_str()?.to_owned()))
                };
                wanted.keys().filter_map(version).collect()
            }
            Self::Python => {
                let listed = output(Command::new(python(place)).args(["-c", LIST]).args(wanted.keys()));
                requirements(&listed.unwrap_or_default())
            }
        }
    }

    fn install(self, place: &Path) -> Result<(), Failure> {
        match self {
            Self::Node => {
                // No lock file: what is named is named exactly. No scripts: none of the packages needs one.
                let options =
                    ["--no-package-lock", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];
                let patience = ["--fetch-retries=1", "--fetch-timeout=60000"];
                output(
                    Command::new("npm")
                        .arg("install")
                        .args(options)
                        .args(patience)
                        .arg("--prefix")
                        .arg(place),
                )?;
            }
            Self::Python => {
                let environment = place.join("venv");
                output(Command::new("python3").args(["-m", "venv", "--clear"]).arg(environment))?;
                let options = ["--quiet", "--disable-pip-version-check", "--retries", "1", "--timeout", "60"];
                let pip = ["-m", "pip", "install"];
                let mut command = Command::new(python(place));
                command.args(pip).args(options).arg("--requirement").arg(place.join("requirements.txt"));
                output(&mut command)?;
            }
        }
        Ok(())
    }
}

/// Where everything is installed.
fn directory() -> PathBuf {
    // Cargo's folder for temporary files is one of the target directory's.
    Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("benchmarks").join("peers")
}

fn python(place: &Path) -> PathBuf {
    place.join("venv/bin/python")
}

/// The lines `name==version` of a text.
fn requirements(text: &str) -> BTreeMap<String, String> {
    let lines = text.lines().filter_map(|line| line.split_once("=="));
    lines.map(|(name, version)| (name.trim().to_owned(), version.trim().to_owned())).collect()
}

/// The lines `name = "=version"` of a manifest.
fn exact(manifest: &str) -> BTreeMap<String, String> {
    let lines = manifest.lines().filter_map(|line| line.strip_suffix('"')?.split_once(" = \"="));
    lines.map(|(name, version)| (name.to_owned(), version.to_owned())).collect()
}

fn json(path: &Path) -> Result<Value, Failure> {
    Ok(serde_json::from_str(&fs::read_to_string(path)?)?)
}

/// Copies the files of a folder, not its folders.
fn copy_files(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            fs::copy(entry.path(), to.join(entry.file_name()))?;
        }
    }
    Ok(())
}

/// What a command printed.
fn output(command: &mut Command) -> Result<String, Failure> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| format!("{program} cannot be run: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said =
        String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
    if said.contains("E404") {
        return Err("the package registry in use has no such version".into());
    }
    let line = said.lines().find(|line| line.to_lowercase().contains("error")).or(said.lines().next());
    Err(format!("{program} failed with {}: {}", output.status, line.unwrap_or("it said nothing").trim())
        .into())
}
