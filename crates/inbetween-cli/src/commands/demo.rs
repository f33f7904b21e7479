//! `demo`: the whole way on embedded clips, by the commands a user would type.
//!
//! Writes the clips this project makes itself, then runs the real commands on the files and says
//! each before it runs. Nothing is opened and nothing is fetched.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::{Args, Parser as _};
use inbetween_formats::demo;

use crate::input::ReadArgs;
use crate::output::{Failure, Outcome, heard, print, write_file, write_import};
use crate::picture::figure::{self, Strip};
use crate::picture::page::page;
use crate::picture::svg::{Svg, escape};

const EXAMPLES: &str = "\
Examples:
  inbetween demo
  inbetween demo --out /tmp/demo";

/// What a pose of the figure is described by when motions are matched.
const SCHEMA: &str = "\
# What a pose is described by: where the feet are and how they move, where the path leads.
interval = \"1/30\"
root = \"Root\"
loops = [\"idle\", \"walk\", \"run\"]

[[channel]]
type = \"joint_position\"
joint = \"LeftFoot\"

[[channel]]
type = \"joint_position\"
joint = \"RightFoot\"

[[channel]]
type = \"joint_velocity\"
joint = \"LeftFoot\"
weight = 0.3

[[channel]]
type = \"joint_velocity\"
joint = \"RightFoot\"
weight = 0.3

[[channel]]
type = \"trajectory_position\"
offsets_s = [0.2, 0.4, 0.6]
weight = 2.0

[[channel]]
type = \"trajectory_facing\"
offsets_s = [0.2, 0.4, 0.6]
";

/// Where the figure is sent.
const SCRIPT: &str = "\
# Stand, walk, turn left, run, turn right, stop.
duration_s = 16

[[step]]

[[step]]
at_s = 1.5
speed_m_s = 1.3
heading_deg = 0

[[step]]
at_s = 5
speed_m_s = 1.3
heading_deg = 90

[[step]]
at_s = 9
speed_m_s = 2.8
heading_deg = 90

[[step]]
at_s = 11.5
speed_m_s = 2.8
heading_deg = 0

[[step]]
at_s = 14
";

/// Width of the pictures on the page, pixels.
const WIDTH: f64 = 900.0;

/// Go the whole way on embedded clips: reduce, compare, compress, camera, match
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Demo {
    /// Folder for everything it makes
    #[arg(long, value_name = "DIR", default_value = "inbetween-demo")]
    out: PathBuf,
}

impl Demo {
    /// Writes the clips, runs the commands, lists what was made, and makes a page of it all.
    pub fn run(self) -> Outcome {
        let reduced = self.out.join("reduced");
        std::fs::create_dir_all(&reduced)
            .map_err(|e| Failure::wrong(format!("{}: cannot be made: {e}", reduced.display())))?;
        let mut files = Vec::new();
        for (name, mut import) in demo::all() {
            // A game's file knows points only as nodes.
            import.skeleton = import.skeleton.with_end_nodes();
            // The lamp's switch and colour have no place in plain glTF; the project's text has.
            let extension = if name == "lamp" { "inb" } else { "glb" };
            let path = self.out.join(format!("{name}.{extension}"));
            let bytes = write_import(&path, &import, &[])?;
            print(&format!("wrote {} ({} clips, {bytes} bytes)\n", path.display(), import.clips.len()))?;
            files.push(path);
        }
        let at = |name: &str| self.out.join(name).display().to_string();
        write_file(&self.out.join("figure.toml"), SCHEMA.as_bytes(), &[])?;
        write_file(&self.out.join("path.toml"), SCRIPT.as_bytes(), &[])?;
        let mut story = Story::default();

        let mut reduce = vec!["reduce".to_owned()];
        reduce.extend(files.iter().map(|f| f.display().to_string()));
        reduce.extend(["-o".to_owned(), format!("{}/", reduced.display())]);
        reduce.extend(["--max-error", "1mm", "--report"].map(str::to_owned));
        reduce.push(at("report.html"));
        let (figure, thin) = (at("figure.glb"), at("reduced/figure.glb"));
        story.step("Take out keys; no point of any node moves more than 1 mm", &reduce)?;
        story.picture(&poses(Path::new(&thin), &["walk", "run turn left"])?);
        story.link("report.html", "every clip before and after, with the error beneath");
        story.step(
            "Check the result as a build would",
            &words(&["check", &figure, &thin, "--max-error", "1mm"]),
        )?;
        let plot =
            ["plot", &figure, "--clip", "walk", "--against", &thin, "--most", "6", "-o", &at("walk.png")];
        story.step("Draw what changed most in the walk", &words(&plot))?;
        story.link("walk.png", "the picture");
        story.step(
            "Compress for a game",
            &words(&["compress", &figure, "-o", &at("figure.ibc"), "--max-error", "1mm"]),
        )?;
        let camera = at("camera.glb");
        let fly = |out: &str, report: &str| {
            words(&["camera", "smooth", &camera, "-o", &at(out), "--report", &at(report)])
        };
        story.step("Fly the camera without surges", &fly("camera-smooth.json", "camera.html"))?;
        story.link("camera.html", "the path from above and the side, speed and acceleration");
        let ibm = at("figure.ibm");
        let bake = ["match", "bake", &figure, "--schema", &at("figure.toml"), "-o", &ibm];
        story.step("Bake poses to match", &words(&bake))?;
        let query = ["match", "query", &ibm, "--from", &figure, "--clip", "walk", "--at", "0.5", "-k", "3"];
        story.step("Find the poses most like the walk at 0.5 s", &words(&query))?;
        let run = [
            "match",
            "run",
            &ibm,
            "--script",
            &at("path.toml"),
            "-o",
            &at("match.glb"),
            "--page",
            &at("match.html"),
        ];
        story.step("Send the figure along a path it was never animated on", &words(&run))?;
        story.picture(&poses(Path::new(&at("match.glb")), &[])?);
        story.link("match.html", "where it went, what it cost, and every jump");

        write_file(&self.out.join("index.html"), story.page().as_bytes(), &[])?;
        print("\nMade:\n")?;
        for path in listed(&self.out)? {
            print(&format!("  {}\n", path.display()))?;
        }
        print(&format!("\nOpen {} in a browser to see what was done.\n", at("index.html")))
    }
}

fn words(list: &[&str]) -> Vec<String> {
    list.iter().map(|w| (*w).to_owned()).collect()
}

/// What was done, as the body of a page.
#[derive(Default)]
struct Story {
    body: String,
}

impl Story {
    /// Says a command and runs it as if it had been typed; what it says becomes part of the page.
    fn step(&mut self, what: &str, words: &[String]) -> Outcome {
        let shown: Vec<String> =
            words.iter().map(|w| if w.contains(' ') { format!("'{w}'") } else { w.clone() }).collect();
        let line = format!("$ inbetween {}", shown.join(" "));
        print(&format!("\n# {what}\n{line}\n"))?;
        let typed = std::iter::once("inbetween").chain(words.iter().map(String::as_str));
        let cli = crate::Cli::try_parse_from(typed).map_err(|e| Failure::wrong(e.to_string()))?;
        let (done, said) = heard(|| cli.run());
        let _ = write!(
            self.body,
            "<h2>{}</h2><pre><b>{}</b>\n{}</pre>",
            escape(what),
            escape(&line),
            escape(said.trim_end())
        );
        done
    }

    fn picture(&mut self, svg: &str) {
        self.body.push_str(svg);
    }

    fn link(&mut self, file: &str, what: &str) {
        let _ = write!(self.body, "<p><a href=\"{0}\">{0}</a>: {1}</p>", escape(file), escape(what));
    }

    fn page(&self) -> String {
        let head = "<p class=\"quiet\">From clips made by code to a pose a game plays, by the commands anyone \
                    would type. All the files lie beside this page.</p>";
        page("What the demo did", &format!("{head}{}", self.body))
    }
}

/// Poses of some clips of a file (all, if none is named), a strip each.
fn poses(file: &Path, clips: &[&str]) -> Result<String, Failure> {
    let import = ReadArgs::default().read(file)?;
    let mut out = String::new();
    for clip in import.clips.iter().filter(|c| clips.is_empty() || clips.contains(&c.name.as_str())) {
        let strip = Strip { poses: 13, height: 190.0, ..Strip::default() };
        if let Some(layout) = figure::lay_out(&import.skeleton, clip, &strip, WIDTH) {
            let mut svg = Svg::new(WIDTH, layout.height);
            figure::draw(&mut svg, &layout, 0.0);
            out.push_str(&svg.element(&format!("poses of {}", clip.name)));
        }
    }
    Ok(out)
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
