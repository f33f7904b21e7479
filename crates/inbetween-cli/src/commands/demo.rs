//! `demo`: the whole way on embedded clips, by the commands a user would type.
//!
//! Writes the clips this project makes itself, then runs the real commands on the files and says
//! each before it runs. Nothing is opened and nothing is fetched.

use std::path::{Path, PathBuf};

use clap::{Args, Parser as _};
use inbetween_formats::demo;

use crate::output::{Failure, Outcome, print, write_file, write_import};

const EXAMPLES: &str = "\
Examples:
  inbetween demo
  inbetween demo --out /tmp/demo";

/// What a pose of the figure is described by when motions are matched.
const SCHEMA: &str = "\
# What a pose is described by: where the feet are and how they move, where the path leads.
interval = \"1/30\"
root = \"Root\"

[[channel]]
type = \"joint_position\"
joint = \"LeftFoot\"

[[channel]]
type = \"joint_position\"
joint = \"RightFoot\"

[[channel]]
type = \"trajectory_position\"
offsets_s = [0.2, 0.4, 0.6]
";

/// Go the whole way on embedded clips: reduce, compare, compress, camera, match
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Demo {
    /// Folder for everything it makes
    #[arg(long, value_name = "DIR", default_value = "inbetween-demo")]
    out: PathBuf,
}

impl Demo {
    /// Writes the clips, runs the commands, lists what was made.
    pub fn run(self) -> Outcome {
        let reduced = self.out.join("reduced");
        std::fs::create_dir_all(&reduced)
            .map_err(|e| Failure::wrong(format!("{}: cannot be made: {e}", reduced.display())))?;
        let mut files = Vec::new();
        for (name, import) in demo::all() {
            // The lamp's switch and colour have no place in plain glTF; the project's text has.
            let extension = if name == "lamp" { "inb" } else { "glb" };
            let path = self.out.join(format!("{name}.{extension}"));
            let bytes = write_import(&path, &import, &[])?;
            print(&format!("wrote {} ({} clips, {bytes} bytes)\n", path.display(), import.clips.len()))?;
            files.push(path);
        }
        let at = |name: &str| self.out.join(name).display().to_string();
        let folder = format!("{}/", reduced.display());
        let mut reduce = vec!["reduce".to_owned()];
        reduce.extend(files.iter().map(|f| f.display().to_string()));
        reduce.extend(["-o".to_owned(), folder, "--max-error".to_owned(), "1mm".to_owned()]);
        reduce.extend(["--report".to_owned(), at("report.html")]);
        step("Take out keys; no point of any node moves more than 1 mm", &reduce)?;
        let (figure, thin) = (at("figure.glb"), at("reduced/figure.glb"));
        let words = |list: &[&str]| list.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>();
        step("Check the result as a build would", &words(&["check", &figure, &thin, "--max-error", "1mm"]))?;
        let plot =
            ["plot", &figure, "--clip", "walk", "--against", &thin, "--most", "6", "-o", &at("walk.png")];
        step("Draw what changed most in the walk", &words(&plot))?;
        step(
            "Compress for a game",
            &words(&["compress", &figure, "-o", &at("figure.ibc"), "--max-error", "1mm"]),
        )?;
        let smooth = [
            "camera",
            "smooth",
            &at("camera.glb"),
            "-o",
            &at("camera-smooth.json"),
            "--report",
            &at("camera.html"),
        ];
        step("Fly the camera without surges", &words(&smooth))?;
        let schema = self.out.join("figure.toml");
        write_file(&schema, SCHEMA.as_bytes(), &[])?;
        let ibm = at("figure.ibm");
        step(
            "Bake poses to match",
            &words(&["match", "bake", &figure, "--schema", &at("figure.toml"), "-o", &ibm]),
        )?;
        let query = ["match", "query", &ibm, "--from", &figure, "--clip", "walk", "--at", "0.5", "-k", "3"];
        step("Find the poses most like the walk at 0.5 s", &words(&query))?;
        print("\nMade:\n")?;
        for path in listed(&self.out)? {
            print(&format!("  {}\n", path.display()))?;
        }
        print(&format!("\nOpen {} in a browser to see what was done.\n", at("report.html")))
    }
}

/// Says a command and runs it as if it had been typed.
fn step(what: &str, words: &[String]) -> Outcome {
    let shown: Vec<String> =
        words.iter().map(|w| if w.contains(' ') { format!("'{w}'") } else { w.clone() }).collect();
    print(&format!("\n# {what}\n$ inbetween {}\n", shown.join(" ")))?;
    let typed = std::iter::once("inbetween").chain(words.iter().map(String::as_str));
    let cli = crate::Cli::try_parse_from(typed).map_err(|e| Failure::wrong(e.to_string()))?;
    cli.run()
}

/// Every file below a folder, by name.
fn listed(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        let entries = std::fs::read_dir(&folder)
            .map_err(|e| Failure::wrong(format!("{}: cannot be listed: {e}", folder.display())))?;
        for entry in entries.flatten() {
            let path = entry.path();
            if path.is_dir() {
                open.push(path);
            } else {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}
