//! The table of what reduction does to a folder of real files: keys of the source, of a plain split of the
//! bound by depth, of linear and of cubic keys under the shared budget, and how far off each ends up.
//!
//! ```text
//! cargo run --release -p inbetween-formats --example reduction_survey -- [FILE OR FOLDER]…
//! ```
//!
//! Without arguments it walks the data folder (`INBETWEEN_DATA`, else `../shared/data`). The bound is 1 mm, the
//! shell 3 cm. Lengths of a unit that no file states, chosen so that a figure is about 1.8 m tall, are in a list
//! below. The errors are those of the written file: each file is written as GLB (as text
//! where nodes do not take over their parents' scale, which glTF cannot say) with all its clips reduced, read again, and compared with its source at every key time and midpoint. The rows of a file are printed as soon as it
//! is done, so in no fixed order; the clips of a file are shared out over the cores. Files that do not load are
//! named and skipped. Clips whose bound does not hold are named and counted at the end, and the exit code is 3 if
//! there are any.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use inbetween::metric::Shell;
use inbetween::reduce::{Keys, Options, Reduction, Sharing, reduce_one_of, steps};
use inbetween::{Clip, ScaleInherit, compare, edit};
use inbetween_formats::{Import, Input, ReadOptions, export, import, import_path};

const BOUND_M: f64 = 0.001;

/// Metres in a unit of these files, by the start of their names.
const UNITS: [(&str, f64); 16] = [
    ("01_01", 0.056444),
    ("131_", 0.056444),
    ("cmu_12_01", 0.056444),
    ("bvh_test1", 0.0254),
    ("AV_8Walk", 0.0254),
    ("Fox", 0.01),
    ("Husky", 0.2),
    ("Velociraptor", 0.2),
    ("Mech_BarbaraTheBee", 0.3),
    ("player", 0.3),
    ("RobotExpressive", 0.4),
    ("robot", 0.05),
    ("maya_kenney_character", 0.5),
    ("huesitos", 0.33),
    ("maya_game_sausage", 0.5),
    ("RecursiveSkeletons", 0.015),
];

fn files(path: &Path, out: &mut Vec<PathBuf>) {
    if path.is_dir() {
        let mut entries: Vec<PathBuf> =
            std::fs::read_dir(path).into_iter().flatten().filter_map(|e| e.ok().map(|e| e.path())).collect();
        entries.sort();
        for entry in entries {
            if entry.file_name().is_none_or(|n| n != "reference") {
                files(&entry, out);
            }
        }
    } else if path.extension().is_some_and(|e| ["glb", "gltf", "fbx", "bvh"].iter().any(|x| e == *x)) {
        out.push(path.to_owned());
    }
}

/// The three ways each clip is reduced.
const WAYS: [&str; 3] = ["split", "linear", "cubic"];

fn options(way: usize) -> Options {
    // Files are written as GLB, which has no curves of single angles.
    let world = Options { keep_components: false, ..Options::world(BOUND_M) };
    match way {
        0 => Options { sharing: Sharing::ByDepth, ..world },
        1 => world,
        _ => Options { keys: Keys::Cubic, ..world },
    }
}

/// What came of a clip by the split, with straight and with cubic keys, and how far each was off.
type ThreeWays = [Option<(Reduction, f64)>; 3];

/// A file with its clips as they are reduced.
struct File {
    path: PathBuf,
    import: Import,
    /// By clip and way, the reduction and its seconds.
    done: Mutex<Vec<ThreeWays>>,
    /// Reductions that are not there yet.
    left: AtomicUsize,
}

#[derive(Default, Clone)]
struct Row {
    name: String,
    source: usize,
    keys: [usize; 3],
    /// From motion capture: a clip of more than 200 key times.
    captured: bool,
    /// The largest error of the written file, metres, by way.
    worst: [f64; 3],
    seconds: [f64; 3],
    /// Written clips that do not hold the bound.
    broken: usize,
    /// Clips whose file could not be written or read again.
    unwritten: usize,
}

fn read(path: &Path) -> Result<File, String> {
    let name = path.file_stem().and_then(|n| n.to_str()).unwrap_or_default();
    let unit = UNITS.iter().find(|(start, _)| name.starts_with(start)).map(|(_, unit)| *unit);
    let import =
        import_path(path, &ReadOptions { unit, ..ReadOptions::default() }).map_err(|e| e.to_string())?;
    let clips = import.clips.len();
    Ok(File {
        path: path.to_owned(),
        import,
        done: Mutex::new((0..clips).map(|_| [None, None, None]).collect()),
        left: AtomicUsize::new(3 * clips),
    })
}

/// The largest error of each clip after `clips` were written to a file and read again.
fn written_errors(import: &Import, clips: Vec<Clip>) -> Result<Vec<f64>, String> {
    let mut changed = import.clone();
    changed.clips = clips;
    // glTF knows no node that takes over no scale; the project's own text does.
    let special = import.skeleton.joints().iter().any(|j| j.inherit != ScaleInherit::Full);
    let name = if special { "out.inb" } else { "out.glb" };
    let (bytes, _) = export(&changed, name).map_err(|e| e.to_string())?;
    // A result in the source's own format is in the source's own units.
    let unit = (import.format.starts_with("gl")).then_some(import.convention.metres_per_unit);
    let options = ReadOptions { unit, ..ReadOptions::default() };
    let back = self::import(&Input::alone(&bytes, name), &options).map_err(|e| e.to_string())?;
    if back.clips.len() != import.clips.len() {
        return Err(format!("{} clips came back of {}", back.clips.len(), import.clips.len()));
    }
    let errors = import.clips.iter().zip(&back.clips).map(|(clip, played)| {
        let reference = steps::restore(clip).0;
        // glTF knows no time before 0: a clip that begins there is moved to begin at 0.
        let moved = clip.start() < 0.0 && played.start() != clip.start();
        let reference = if moved { edit::rebase_to_zero(&reference) } else { reference };
        let times = compare::judged_times(&[&reference]);
        let found = compare::compare_at(
            (&reference, &import.skeleton),
            (played, &back.skeleton),
            Shell::default(),
            &times,
        );
        found.worst_node().map_or(0.0, |n| n.distance)
    });
    Ok(errors.collect())
}

/// The rows of a file whose reductions are all there.
fn rows(file: &File) -> Vec<Row> {
    let done = std::mem::take(&mut *file.done.lock().expect("no thread panics with it"));
    let stem = file.path.file_stem().and_then(|n| n.to_str()).unwrap_or_default();
    let mut rows: Vec<Row> = file
        .import
        .clips
        .iter()
        .zip(&done)
        .map(|(clip, ways)| {
            let mut row = Row { name: format!("{stem} {}", clip.name), ..Row::default() };
            row.captured = clip.key_times().len() > 200;
            for (way, reduction) in ways.iter().enumerate() {
                let (reduction, seconds) = reduction.as_ref().expect("all reductions are there");
                row.source = reduction.report.source_keys;
                row.keys[way] = reduction.report.keys;
                row.seconds[way] = *seconds;
            }
            row
        })
        .collect();
    for way in 0..3 {
        let clips = done.iter().map(|ways| ways[way].as_ref().expect("it is there").0.clip.clone());
        match written_errors(&file.import, clips.collect()) {
            Ok(errors) => {
                for (row, error) in rows.iter_mut().zip(errors) {
                    row.worst[way] = error;
                    if error > BOUND_M {
                        println!("{}: {} keys are {} mm off", row.name, WAYS[way], error * 1e3);
                        // The split promises nothing: it counts a joint once that moves and turns.
                        row.broken += usize::from(way > 0);
                    }
                }
            }
            Err(error) => {
                println!("{} with {} keys cannot be written: {error}", file.path.display(), WAYS[way]);
                rows.iter_mut().for_each(|row| row.unwritten += 1);
            }
        }
    }
    rows.retain(|row| row.source > 0);
    rows
}

fn line(row: &Row) {
    let ratio = |a: usize, b: usize| if b == 0 { 1.0 } else { a as f64 / b as f64 };
    println!(
        "{:<44.44} {:>8} {:>8} {:>8} {:>8} {:>6.3} {:>6.3} {:>7.4} {:>7.4} {:>7.2} {:>7.2}",
        row.name,
        row.source,
        row.keys[0],
        row.keys[1],
        row.keys[2],
        ratio(row.keys[1], row.keys[0]),
        ratio(row.keys[2], row.keys[1]),
        row.worst[1] * 1e3,
        row.worst[2] * 1e3,
        row.seconds[1],
        row.seconds[2],
    );
}

fn main() -> ExitCode {
    let data = std::env::var("INBETWEEN_DATA").unwrap_or_else(|_| "../shared/data".to_owned());
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.is_empty() {
        arguments.push(data);
    }
    let mut paths = Vec::new();
    arguments.iter().for_each(|a| files(Path::new(a), &mut paths));
    let mut read_files = Vec::new();
    for path in &paths {
        match read(path) {
            Ok(file) if file.import.clips.is_empty() => {}
            Ok(file) => read_files.push(file),
            Err(error) => println!("{} does not load: {error}", path.display()),
        }
    }
    let jobs: Vec<(usize, usize, usize)> = (0..read_files.len())
        .flat_map(|f| (0..read_files[f].import.clips.len()).flat_map(move |c| (0..3).map(move |w| (f, c, w))))
        .collect();
    println!(
        "{:<44} {:>8} {:>8} {:>8} {:>8} {:>6} {:>6} {:>7} {:>7} {:>7} {:>7}",
        "clip",
        "source",
        "split",
        "linear",
        "cubic",
        "lin/sp",
        "cub/li",
        "lin mm",
        "cub mm",
        "lin s",
        "cub s"
    );
    let next = AtomicUsize::new(0);
    let total = Mutex::new(Row { name: "all".into(), ..Row::default() });
    let captured = Mutex::new(Row { name: "of more than 200 key times".into(), ..Row::default() });
    let failed = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some(&(f, c, way)) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let file = &read_files[f];
                    let clock = Instant::now();
                    let result = reduce_one_of(&file.import.clips, c, &file.import.skeleton, &options(way));
                    let seconds = clock.elapsed().as_secs_f64();
                    match result {
                        Ok(reduction) => {
                            file.done.lock().expect("no thread panics with it")[c][way] =
                                Some((reduction, seconds));
                        }
                        Err(error) => {
                            println!("{} clip {c} cannot be reduced: {error}", file.path.display());
                            failed.fetch_add(1, Ordering::Relaxed);
                            continue;
                        }
                    }
                    if file.left.fetch_sub(1, Ordering::AcqRel) > 1 {
                        continue;
                    }
                    let rows = rows(file);
                    let mut total = total.lock().expect("no thread panics with it");
                    let mut captured = captured.lock().expect("no thread panics with it");
                    for row in &rows {
                        line(row);
                        add(&mut total, row);
                        if row.captured {
                            add(&mut captured, row);
                        }
                    }
                }
            });
        }
    });
    let total = total.into_inner().expect("all threads are done");
    line(&captured.into_inner().expect("all threads are done"));
    line(&total);
    let failed = failed.into_inner();
    println!(
        "bounds that do not hold: {}; not written: {}; not reduced: {failed}",
        total.broken, total.unwritten
    );
    if total.broken + total.unwritten + failed > 0 { ExitCode::from(3) } else { ExitCode::SUCCESS }
}

fn add(sum: &mut Row, row: &Row) {
    sum.source += row.source;
    sum.broken += row.broken;
    sum.unwritten += row.unwritten;
    for way in 0..3 {
        sum.keys[way] += row.keys[way];
        sum.seconds[way] += row.seconds[way];
        sum.worst[way] = sum.worst[way].max(row.worst[way]);
    }
}
