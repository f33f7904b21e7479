//! Exact nearest-pose search against its peers: the plain loop, two-level boxes of 16 and
//! 64 rows in the order of time, nanoflann and kiddo, on real rows and perturbed copies.
//!
//! ```text
//! cargo bench -p inbetween-bench --bench match_search [-- quick|full|own] [-- COLUMNS]
//! ```
//!
//! `quick` leaves the million rows out, `full` puts peers before them too, `own` has no peers at
//! all; 27 or 60 measures those columns only.
//!
//! Rows are baked from the locomotion clips at 60 Hz, mirrored too; every twentieth second
//! is held out. "Held" queries are held-out rows, "mixed" ones take the pose of one and the
//! path of another: the player has just turned. Where more rows are wanted than there are,
//! copies of real rows are moved by 2 % of each column's deviation. Peers get the rows and
//! queries multiplied by the roots of the weights, so that all compare the same numbers;
//! the sums of their distances are checked against ours.
//!
//! Times are for one thread, in microseconds, the least of several passes for each query.
//! nanoflann is compiled here by `c++` where its header is installed (Debian:
//! libnanoflann-dev), and left out with a note where not.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

use inbetween_formats::{ReadOptions, import_path};
use inbetween_match::{
    BakeClip, DatabaseOptions, Family, Filter, Method, MotionDatabase, Poses, Query, RowFormat, Schema,
    Scratch, Weights, bake,
};
use kiddo::{ImmutableKdTree, SquaredEuclidean};

const HEAD: &str = "
interval = \"1/60\"
root = \"Root\"
mirror = [[\"Left\", \"Right\"]]
[[tag]]
set = [\"do-not-use\"]
to_s = \"1/60\"
";

/// 27 columns: feet, hips, the path ahead. 60: also hands, knees, head, path behind, contacts.
fn schema(wide: bool) -> Schema {
    let joint = |kind: &str, joint: &str| format!("[[channel]]\ntype = \"{kind}\"\njoint = \"{joint}\"\n");
    let mut text = HEAD.to_owned();
    for name in ["LeftFoot", "RightFoot"] {
        text += &joint("joint_position", name);
        text += &joint("joint_velocity", name);
    }
    text += &joint("joint_velocity", "Hips");
    text += "[[channel]]\ntype = \"trajectory_position\"\noffsets_s = [0.33, 0.66, 1.0]\nweight = 2\n";
    text += "[[channel]]\ntype = \"trajectory_facing\"\noffsets_s = [0.33, 0.66, 1.0]\nweight = 2\n";
    if wide {
        for name in ["LeftHand", "RightHand"] {
            text += &joint("joint_position", name);
            text += &joint("joint_velocity", name);
        }
        for name in ["LeftLowerLeg", "RightLowerLeg", "Head"] {
            text += &joint("joint_position", name);
        }
        text += "[[channel]]\nname = \"past\"\ntype = \"trajectory_position\"\noffsets_s = [-0.33, -0.66]\n";
        text +=
            "[[channel]]\nname = \"past facing\"\ntype = \"trajectory_facing\"\noffsets_s = [-0.33, -0.66]\n";
        text += &joint("contact", "LeftToes");
        text += &joint("contact", "RightToes");
        text += "[[channel]]\ntype = \"root_velocity\"\n";
    }
    Schema::read(&text).expect("the benchmark's schema is sound")
}

/// xorshift64*.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }
    fn below(&mut self, n: usize) -> usize {
        (self.next() >> 33) as usize % n
    }
    /// About normal, deviation 1.
    fn normal(&mut self) -> f32 {
        (0..12).map(|_| (self.next() >> 40) as f32 / (1u64 << 24) as f32).sum::<f32>() - 6.0
    }
}

/// Real rows and what they are made of.
struct Real {
    database: MotionDatabase,
    columns: usize,
    /// Row after row, in the units of the bake.
    rows: Vec<f32>,
    deviations: Vec<f32>,
    path: Vec<bool>,
    held: Vec<usize>,
    kept: Vec<usize>,
}

fn data_folder() -> PathBuf {
    std::env::var_os("INBETWEEN_DATA")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data"), PathBuf::from)
}

fn real(wide: bool) -> Option<Real> {
    let folder = data_folder().join("locomotion");
    let mut files: Vec<PathBuf> = std::fs::read_dir(&folder)
        .ok()?
        .flatten()
        .map(|e| e.path())
        .filter(|p| p.extension().is_some_and(|e| e == "glb"))
        .collect();
    files.sort();
    let mut clips = Vec::new();
    for file in &files {
        let import = import_path(file, &ReadOptions::default()).expect("the locomotion clips are read");
        let skeleton = Arc::new(import.skeleton);
        for clip in import.clips {
            clips.push(BakeClip { clip: Arc::new(clip), skeleton: skeleton.clone(), file: String::new() });
        }
    }
    let (database, _) = bake(&clips, &schema(wide), 2, &|| {}).expect("the locomotion clips are baked");
    let columns = database.columns();
    let rows: Vec<f32> = (0..database.len() as u32)
        .flat_map(|r| (0..columns).map(|c| database.feature(r, c)).collect::<Vec<_>>())
        .collect();
    let count = rows.len() / columns;
    let deviations = (0..columns)
        .map(|c| {
            let mean = (0..count).map(|r| f64::from(rows[r * columns + c])).sum::<f64>() / count as f64;
            let square = (0..count).map(|r| (f64::from(rows[r * columns + c]) - mean).powi(2)).sum::<f64>();
            (square / count as f64).sqrt() as f32
        })
        .collect();
    let path = database
        .channels()
        .iter()
        .flat_map(|c| std::iter::repeat_n(c.family == Family::Path, c.columns.len()))
        .collect();
    let held = (0..count).filter(|r| r / 60 % 20 == 7).collect();
    let kept = (0..count).filter(|r| r / 60 % 20 != 7).collect();
    Some(Real { database, columns, rows, deviations, path, held, kept })
}

impl Real {
    fn row(&self, row: usize) -> &[f32] {
        &self.rows[row * self.columns..][..self.columns]
    }

    /// `count` rows and, for each, the run it came from as a category.
    fn rows(&self, count: usize, random: &mut Random) -> (Vec<f32>, Vec<u32>) {
        let mut values = Vec::with_capacity(count * self.columns);
        let mut from = Vec::with_capacity(count);
        for k in 0..count {
            let real = self.kept.len();
            let row = match (count < real, k < real) {
                (true, _) => self.kept[k * real / count],
                (false, true) => self.kept[k],
                (false, false) => self.kept[random.below(real)],
            };
            let moved = if count >= real && k >= real { 0.02 } else { 0.0 };
            for (x, d) in self.row(row).iter().zip(&self.deviations) {
                values.push(if moved > 0.0 { x + moved * d * random.normal() } else { *x });
            }
            from.push(1u32 << (self.database.run_of(row as u32).clip % 18));
        }
        (values, from)
    }

    fn queries(&self, count: usize, mixed: bool, random: &mut Random) -> Vec<Vec<f32>> {
        (0..count)
            .map(|_| {
                let (a, b) =
                    (self.held[random.below(self.held.len())], self.held[random.below(self.held.len())]);
                let b = if mixed { b } else { a };
                (0..self.columns).map(|c| self.row(if self.path[c] { b } else { a })[c]).collect()
            })
            .collect()
    }
}

/// Times of each query, least first, and the sum of the distances.
struct Timed {
    sorted: Vec<f64>,
    first: f64,
    sum: f64,
}

fn timed<Q>(queries: &[Q], passes: usize, mut ask: impl FnMut(&Q) -> f32) -> Timed {
    let mut least = vec![f64::INFINITY; queries.len()];
    let mut first = 0.0;
    let mut sum = 0.0;
    for pass in 0..passes {
        sum = 0.0;
        for (query, least) in queries.iter().zip(&mut least) {
            let start = Instant::now();
            let distance = ask(query);
            *least = least.min(start.elapsed().as_secs_f64() * 1e6);
            sum += f64::from(distance);
        }
        if pass == 0 {
            first = median(&least);
        }
    }
    least.sort_by(f64::total_cmp);
    Timed { sorted: least, first, sum }
}

fn median(times: &[f64]) -> f64 {
    let mut sorted = times.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

fn report(name: &str, t: &Timed, note: &str) {
    let at = |share: f64| t.sorted[((t.sorted.len() - 1) as f64 * share) as usize];
    println!(
        "    {name:<34} median {:>9.1}  p99 {:>9.1}  first touch {:>9.1}  {note}",
        at(0.5),
        at(0.99),
        t.first
    );
}

/// Boxes of 16 and of 64 rows in the order of time, entered in order: the method of the
/// best-known public code (Holden's learned motion matching demo).
struct TwoLevels {
    columns: usize,
    rows: Vec<f32>,
    small: Vec<(Vec<f32>, Vec<f32>)>,
    large: Vec<(Vec<f32>, Vec<f32>)>,
}

impl TwoLevels {
    fn new(rows: Vec<f32>, columns: usize) -> Self {
        let boxes = |size: usize| {
            rows.chunks(size * columns)
                .map(|chunk| {
                    let mut low = vec![f32::INFINITY; columns];
                    let mut high = vec![f32::NEG_INFINITY; columns];
                    for row in chunk.chunks_exact(columns) {
                        for c in 0..columns {
                            low[c] = low[c].min(row[c]);
                            high[c] = high[c].max(row[c]);
                        }
                    }
                    (low, high)
                })
                .collect()
        };
        let (small, large) = (boxes(16), boxes(64));
        Self { columns, rows, small, large }
    }

    fn outside(query: &[f32], b: &(Vec<f32>, Vec<f32>), best: f32) -> bool {
        let mut sum = 0.0;
        for c in 0..query.len() {
            let d = query[c] - query[c].clamp(b.0[c], b.1[c]);
            sum += d * d;
            if sum >= best {
                return true;
            }
        }
        false
    }

    fn nearest(&self, query: &[f32]) -> f32 {
        let mut best = f32::INFINITY;
        let count = self.rows.len() / self.columns;
        for (l, large) in self.large.iter().enumerate() {
            if Self::outside(query, large, best) {
                continue;
            }
            for s in l * 4..(l * 4 + 4).min(self.small.len()) {
                if Self::outside(query, &self.small[s], best) {
                    continue;
                }
                for r in s * 16..(s * 16 + 16).min(count) {
                    let row = &self.rows[r * self.columns..][..self.columns];
                    let mut sum = 0.0;
                    for c in 0..self.columns {
                        let d = query[c] - row[c];
                        sum += d * d;
                        if sum >= best {
                            break;
                        }
                    }
                    best = best.min(sum);
                }
            }
        }
        best
    }
}

/// The plain loop over rows, leaving a row as soon as it is worse.
fn plain(rows: &[f32], query: &[f32]) -> f32 {
    let mut best = f32::INFINITY;
    for row in rows.chunks_exact(query.len()) {
        let mut sum = 0.0;
        for (a, b) in row.iter().zip(query) {
            sum += (a - b) * (a - b);
            if sum >= best {
                break;
            }
        }
        best = best.min(sum);
    }
    best
}

fn kiddo_times<const K: usize>(rows: &[f32], queries: &[Vec<f32>], passes: usize) -> (f64, Timed) {
    let points: Vec<[f32; K]> = rows.as_chunks::<K>().0.to_vec();
    let start = Instant::now();
    let tree: ImmutableKdTree<f32, K> =
        ImmutableKdTree::new_from_slice(&points).expect("the rows are finite");
    let build = start.elapsed().as_secs_f64();
    let queries: Vec<[f32; K]> =
        queries.iter().map(|q| q.as_slice().try_into().expect("K numbers a query")).collect();
    let times =
        timed(&queries, passes, |q| tree.query(q).nearest_one::<SquaredEuclidean<f32>>().execute().distance);
    (build, times)
}

struct Nanoflann {
    program: PathBuf,
    folder: PathBuf,
}

impl Nanoflann {
    fn compile() -> Option<Self> {
        let folder = std::env::temp_dir().join(format!("inbetween-nanoflann-{}", std::process::id()));
        std::fs::create_dir_all(&folder).ok()?;
        let program = folder.join("nanoflann");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers/nanoflann.cpp");
        let made =
            Command::new("c++").args(["-O3", "-march=native", "-o"]).arg(&program).arg(source).output();
        match made {
            Ok(output) if output.status.success() => Some(Self { program, folder }),
            _ => {
                println!("nanoflann is left out: no c++ or no nanoflann.hpp (Debian: libnanoflann-dev)");
                None
            }
        }
    }

    fn times(
        &self,
        rows: &[f32],
        queries: &[Vec<f32>],
        columns: usize,
        passes: usize,
    ) -> Option<(f64, u64, Timed)> {
        let bytes = |values: &[f32]| values.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>();
        let (r, q) = (self.folder.join("rows"), self.folder.join("queries"));
        std::fs::write(&r, bytes(rows)).ok()?;
        std::fs::write(&q, bytes(&queries.concat())).ok()?;
        let output = Command::new(&self.program)
            .arg(&r)
            .arg(&q)
            .args([columns.to_string(), passes.to_string()])
            .output()
            .ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        let mut lines = text.lines();
        let (build, memory) = lines.next()?.split_once(' ')?;
        let mut numbers: Vec<f64> = lines.map(|l| l.parse().ok()).collect::<Option<_>>()?;
        let sum = numbers.pop()?;
        numbers.sort_by(f64::total_cmp);
        Some((build.parse().ok()?, memory.parse().ok()?, Timed { first: f64::NAN, sorted: numbers, sum }))
    }
}

impl Drop for Nanoflann {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn agrees(name: &str, ours: &Timed, theirs: &Timed) {
    // All of them add in f32, in different orders.
    let off = (ours.sum - theirs.sum).abs() / ours.sum.max(1e-9);
    assert!(off < 1e-4, "{name} finds other distances: {} instead of {}", theirs.sum, ours.sum);
}

fn one(real: &Real, count: usize, peers: Option<usize>, nanoflann: Option<&Nanoflann>) {
    let mut random = Random(0x1234_5678_9ABC_DEF1);
    let columns = real.columns;
    let (values, tags) = real.rows(count, &mut random);
    let make = |tags: Vec<u32>, format| {
        let poses = Poses {
            channels: real.database.channels().to_vec(),
            values: values.clone(),
            tags,
            ..Poses::default()
        };
        let start = Instant::now();
        let options = DatabaseOptions { format, ..DatabaseOptions::default() };
        let database = MotionDatabase::new(poses, options).expect("the rows are sound");
        (database, start.elapsed().as_secs_f64())
    };
    let (database, build) = make(Vec::new(), RowFormat::F32);
    let (bytes, index) = database.memory();
    println!(
        "\n{count} rows of {columns} columns ({} real): built in {build:.3} s, rows {:.1} MB, index {:.2} % over them",
        real.kept.len().min(count),
        bytes as f64 / 1e6,
        100.0 * index as f64 / bytes as f64
    );
    // What peers are given: the same numbers, weights folded in.
    let weights = database.column_weights(&Weights::Schema).expect("the schema's weights are sound");
    let fold = |row: &[f32]| -> Vec<f32> {
        (0..columns)
            .map(|c| {
                let (offset, scale) = database.scale()[c];
                (((f64::from(row[c]) - offset) / scale) * f64::from(weights[c]).sqrt()) as f32
            })
            .collect()
    };
    let folded: Vec<f32> = values.chunks_exact(columns).flat_map(fold).collect();
    let (half, _) = make(Vec::new(), RowFormat::F16);
    let (tagged, _) = make(tags, RowFormat::F32);
    let mut scratch = Scratch::new();
    for mixed in [false, true] {
        println!("  {}", if mixed { "mixed" } else { "held" });
        let queries = real.queries(1000, mixed, &mut random);
        let mut ask = |database: &MotionDatabase,
                       method: Method,
                       weights: Weights<'_>,
                       filter: Filter,
                       queries: &[Vec<f32>],
                       passes: usize| {
            timed(queries, passes, |q| {
                let query = Query { features: q, weights, filter, ..Query::default() };
                let found = database.search_by(method, &query, 1, &mut scratch).expect("the query is sound");
                found.first().map_or(f32::NAN, |m| m.cost)
            })
        };
        let all = Filter::default();
        let tree = ask(&database, Method::Tree, Weights::Schema, all, &queries, 5);
        report("tree", &tree, "");
        let scan = ask(&database, Method::Scan, Weights::Schema, all, &queries[..200], 2);
        report("scan", &scan, "");
        let f16 = ask(&half, Method::Tree, Weights::Schema, all, &queries, 3);
        report("tree, f16 rows", &f16, "");
        let changed: Vec<f32> = database
            .channels()
            .iter()
            .map(|c| c.weight * if c.family == Family::Pose { 0.5 } else { 2.0 })
            .collect();
        let other = ask(&database, Method::Tree, Weights::Channels(&changed), all, &queries, 3);
        report("tree, pose × 0.5 and path × 2", &other, "");
        let uneven: Vec<f32> =
            database.channels().iter().enumerate().map(|(k, c)| c.weight * [1.0, 2.0, 0.5][k % 3]).collect();
        let other = ask(&database, Method::Tree, Weights::Channels(&uneven), all, &queries, 3);
        report("tree, channels × 1, 2, ½ in turn", &other, "");
        let without: Vec<f32> = database
            .channels()
            .iter()
            .enumerate()
            .map(|(k, c)| if k == 0 { 0.0 } else { c.weight })
            .collect();
        let other = ask(&database, Method::Tree, Weights::Channels(&without), all, &queries, 3);
        report("tree, the first channel × 0", &other, "");
        // Two clips of eighteen: a tenth or so.
        let some = Filter { include: 0b1_0000_0001, ..Filter::default() };
        let masked = ask(&tagged, Method::Tree, Weights::Schema, all, &queries, 3);
        report("tree with categories, all admitted", &masked, "");
        let masked = ask(&tagged, Method::Tree, Weights::Schema, some, &queries, 3);
        report("tree, a tenth admitted", &masked, "");
        let Some(number) = peers else { continue };
        let folded_queries: Vec<Vec<f32>> = queries.iter().take(number).map(|q| fold(q)).collect();
        let ours = ask(&database, Method::Tree, Weights::Schema, all, &queries[..folded_queries.len()], 2);
        let middle = ours.sorted[ours.sorted.len() / 2];
        let peer = |name: &str, theirs: &Timed, note: &str| {
            agrees(name, &ours, theirs);
            let times = theirs.sorted[theirs.sorted.len() / 2] / middle;
            report(name, theirs, &format!("{times:.1} × the tree  {note}"));
        };
        peer("plain loop", &timed(&folded_queries, 2, |q| plain(&folded, q)), "");
        let two = TwoLevels::new(folded.clone(), columns);
        peer("boxes of 16 and 64 rows", &timed(&folded_queries, 3, |q| two.nearest(q)), "");
        if let Some(n) = nanoflann
            && let Some((build, memory, times)) = n.times(&folded, &folded_queries, columns, 3)
        {
            peer("nanoflann", &times, &format!("built in {build:.3} s, {:.1} MB", memory as f64 / 1e6));
        }
        let (build, times) = match columns {
            27 => kiddo_times::<27>(&folded, &folded_queries, 3),
            _ => kiddo_times::<60>(&folded, &folded_queries, 3),
        };
        peer("kiddo", &times, &format!("built in {build:.3} s"));
    }
    let features = real.queries(20_000, true, &mut random);
    let batch: Vec<Query<'_>> = features.iter().map(|f| Query { features: f, ..Query::default() }).collect();
    for threads in [1, 2] {
        let start = Instant::now();
        let answers = database.search_batch(&batch, threads).expect("the queries are sound");
        let rate = answers.len() as f64 / start.elapsed().as_secs_f64();
        println!("  batch of {} mixed, {threads} threads: {rate:.0} queries a second", answers.len());
        let start = Instant::now();
        let mut scratch = Scratch::new();
        for query in &batch[..2000] {
            database.search(query, &mut scratch).expect("the queries are sound");
        }
        println!("  one by one: {:.0} queries a second", 2000.0 / start.elapsed().as_secs_f64());
    }
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    let asked = |word: &str| words.iter().any(|w| w == word);
    let nanoflann = if asked("own") { None } else { Nanoflann::compile() };
    for (wide, columns) in [(false, 27), (true, 60)] {
        if words.iter().any(|w| w.parse::<usize>().is_ok_and(|n| n != columns)) {
            continue;
        }
        let Some(real) = real(wide) else {
            println!("the locomotion clips are not in {}: nothing was measured", data_folder().display());
            return;
        };
        assert_eq!(real.columns, columns);
        for (count, peers) in
            [(50_000, Some(300)), (187_000, Some(200)), (1_000_000, asked("full").then_some(50))]
        {
            if asked("quick") && count > 187_000 {
                continue;
            }
            one(&real, count, peers.filter(|_| !asked("own")), nanoflann.as_ref());
        }
    }
}
