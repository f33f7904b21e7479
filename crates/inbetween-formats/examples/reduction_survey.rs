//! The table of what reduction does to a folder of real files: keys of the source, of a plain split of the
//! bound by depth, of linear and of cubic keys under the shared budget, and how far off each ends up.
//!
//! ```text
//! cargo run --release -p inbetween-formats --example reduction_survey -- [FILE OR FOLDER]…
//! ```
//!
//! Without arguments it walks the data folder (`INBETWEEN_DATA`, else `../shared/data`). The bound is 1 mm, the
//! shell 3 cm. Lengths of a unit that no file states, chosen so that a figure is about 1.8 m tall, are in a list
//! below. Files that do not load are named and skipped; clips whose bound does not hold are counted at the end,
//! and the exit code is 3 if there are any.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use inbetween::metric::{Shell, measure};
use inbetween::reduce::{Keys, Options, Sharing, reduce};
use inbetween_formats::{ReadOptions, import_path};

const BOUND_M: f64 = 0.001;

/// Metres in a unit of these files, by the start of their names.
const UNITS: [(&str, f64); 14] = [
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
];

#[derive(Default, Clone)]
struct Row {
    name: String,
    source: usize,
    split: usize,
    linear: usize,
    cubic: usize,
    /// Keys that move nodes and were captured, one a frame: a clip of more than 200 of them.
    captured: bool,
    worst_linear: f64,
    worst_cubic: f64,
    seconds: f64,
    broken: usize,
}

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

fn survey(path: &Path) -> Result<Vec<Row>, String> {
    let name = path.file_stem().and_then(|n| n.to_str()).unwrap_or_default();
    let unit = UNITS.iter().find(|(start, _)| name.starts_with(start)).map(|(_, unit)| *unit);
    let import =
        import_path(path, &ReadOptions { unit, ..ReadOptions::default() }).map_err(|e| e.to_string())?;
    let mut rows = Vec::new();
    for clip in &import.clips {
        if clip.key_count() == 0 {
            continue;
        }
        let world = Options::world(BOUND_M);
        let run = |options: &Options| {
            let clock = Instant::now();
            let result = reduce(clip, &import.skeleton, options).map_err(|e| e.to_string())?;
            let seconds = clock.elapsed().as_secs_f64();
            let found = measure(clip, &result.clip, &import.skeleton, Shell::default(), true);
            Ok::<_, String>((result.report.keys, found.world_error(), seconds, result.report.source_keys))
        };
        let (split, ..) = run(&Options { sharing: Sharing::ByDepth, ..world.clone() })?;
        let (linear, worst_linear, seconds, source) = run(&world)?;
        let (cubic, worst_cubic, ..) = run(&Options { keys: Keys::Cubic, ..world.clone() })?;
        let broken = usize::from(worst_linear > BOUND_M) + usize::from(worst_cubic > BOUND_M);
        let captured = clip.key_times().len() > 200;
        let name = format!("{name} {}", clip.name);
        rows.push(Row {
            name,
            source,
            split,
            linear,
            cubic,
            captured,
            worst_linear,
            worst_cubic,
            seconds,
            broken,
        });
    }
    Ok(rows)
}

fn line(row: &Row) {
    let ratio = |a: usize, b: usize| if b == 0 { 1.0 } else { a as f64 / b as f64 };
    println!(
        "{:<44.44} {:>8} {:>8} {:>8} {:>8} {:>6.3} {:>6.3} {:>8.4} {:>8.4} {:>7.2}",
        row.name,
        row.source,
        row.split,
        row.linear,
        row.cubic,
        ratio(row.linear, row.split),
        ratio(row.cubic, row.linear),
        row.worst_linear * 1e3,
        row.worst_cubic * 1e3,
        row.seconds
    );
}

/// The rows of a file, or why it has none.
type Surveyed = Result<Vec<Row>, String>;

fn main() -> ExitCode {
    let data = std::env::var("INBETWEEN_DATA").unwrap_or_else(|_| "../shared/data".to_owned());
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.is_empty() {
        arguments.push(data);
    }
    let mut paths = Vec::new();
    arguments.iter().for_each(|a| files(Path::new(a), &mut paths));
    println!(
        "{:<44} {:>8} {:>8} {:>8} {:>8} {:>6} {:>6} {:>8} {:>8} {:>7}",
        "clip", "source", "split", "linear", "cubic", "lin/sp", "cub/li", "lin mm", "cub mm", "lin s"
    );
    // Files in any order over the cores, the table in the order of the files.
    let next = AtomicUsize::new(0);
    let results: Mutex<Vec<(usize, Surveyed)>> = Mutex::default();
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    let k = next.fetch_add(1, Ordering::Relaxed);
                    let Some(path) = paths.get(k) else { break };
                    let result = survey(path);
                    results.lock().expect("no thread panics with it").push((k, result));
                }
            });
        }
    });
    let mut results = results.into_inner().expect("all threads are done");
    results.sort_by_key(|(k, _)| *k);
    let mut total = Row { name: "all".into(), ..Row::default() };
    let mut captured = Row { name: "of more than 200 key times".into(), ..Row::default() };
    for (k, result) in &results {
        match result {
            Ok(rows) => {
                for row in rows {
                    line(row);
                    for sum in [Some(&mut total), row.captured.then_some(&mut captured)].into_iter().flatten()
                    {
                        sum.source += row.source;
                        sum.split += row.split;
                        sum.linear += row.linear;
                        sum.cubic += row.cubic;
                        sum.seconds += row.seconds;
                        sum.broken += row.broken;
                        sum.worst_linear = sum.worst_linear.max(row.worst_linear);
                        sum.worst_cubic = sum.worst_cubic.max(row.worst_cubic);
                    }
                }
            }
            Err(error) => println!("{} did not load: {error}", paths[*k].display()),
        }
    }
    line(&captured);
    line(&total);
    println!("bounds that do not hold: {}", total.broken);
    if total.broken > 0 { ExitCode::from(3) } else { ExitCode::SUCCESS }
}
