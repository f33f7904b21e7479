//! The tree and the scan against the plain loop: the same rows with the same bits.
//!
//! The plain loop costs every row on its own and sorts; it shares no code with the others
//! but the rule. Queries are random in everything a query can say. A thousand or so run
//! by default; `INBETWEEN_THOROUGH=1` runs a hundred thousand (build it with `--release`).

use std::ops::Range;

use inbetween_match::{
    ChannelColumns, Continuing, DatabaseOptions, Extra, Family, Filter, Include, Method, MotionDatabase,
    Normalisation, Poses, Query, RowFormat, Run, Scratch, Weights,
};

/// xorshift64*: the same numbers on every machine.
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
    fn unit(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1u64 << 24) as f32
    }
    fn around(&mut self, size: f32) -> f32 {
        (self.unit() - 0.5) * 2.0 * size
    }
}

/// Rows that drift like motion does: neighbours in time are near, columns correlate.
fn poses(random: &mut Random, rows: usize, widths: &[usize], tagged: bool) -> Poses {
    let columns: usize = widths.iter().sum();
    let mut state = vec![0.0f32; columns];
    let mut values = Vec::new();
    let mut tags = Vec::new();
    let mut tag = 0;
    for row in 0..rows {
        let common = random.around(0.2);
        for (c, x) in state.iter_mut().enumerate() {
            *x = *x * 0.98 + common * (c % 3) as f32 + random.around(0.1);
        }
        if row % 7 == 6 {
            // Equal rows, so that ties are met.
            values.extend_from_within(values.len() - columns..);
        } else {
            values.extend_from_slice(&state);
        }
        if row % 50 == 0 {
            tag = 1u32 << random.below(6) | 1u32 << random.below(6);
        }
        tags.push(if random.below(20) == 0 { 0 } else { tag });
    }
    let half = rows as u32 / 2;
    let run = |first_row, rows| Run {
        clip: 0,
        mirrored: false,
        first_row,
        rows,
        first_pose: 0,
        start_s: 0.0,
        interval_s: 0.1,
    };
    Poses {
        channels: widths
            .iter()
            .enumerate()
            .map(|(i, width)| ChannelColumns {
                name: format!("channel {i}"),
                columns: (0..*width).map(|c| c.to_string()).collect(),
                weight: 0.5 + i as f32,
                family: if i % 2 == 0 { Family::Pose } else { Family::Path },
            })
            .collect(),
        values,
        tags: if tagged { tags } else { Vec::new() },
        runs: vec![run(0, half), run(half, rows as u32 - half)],
        ..Poses::default()
    }
}

fn check(database: &MotionDatabase, random: &mut Random, queries: usize, seed: u64) {
    let mut widest = Scratch::new();
    let mut narrowest = Scratch::baseline();
    let mut judge = Scratch::new();
    let columns = database.columns();
    let rows = database.len();
    let extras: Vec<f32> = (0..rows).map(|_| random.around(0.3)).collect();
    for number in 0..queries {
        let near = random.below(rows) as u32;
        let other = random.below(rows) as u32;
        let spread = [0.0, 0.01, 0.3, 10.0][random.below(4)];
        let features: Vec<f32> = (0..columns)
            .map(|c| {
                let from = if c % 2 == 0 { near } else { other };
                database.feature(from, c) + random.around(spread)
            })
            .collect();
        let kind = random.below(3);
        let weights: Vec<f32> = (0..if kind == 1 { database.channels().len() } else { columns })
            .map(|_| if random.below(3) == 0 { 0.0 } else { random.unit() * 4.0 + 1e-6 })
            .collect();
        let ignore: Vec<Range<u32>> = (0..random.below(3))
            .map(|_| {
                let from = random.below(rows) as u32;
                from..from + random.below(40) as u32
            })
            .collect();
        let by_tag = [(1 << random.below(6), random.around(0.5)), (3, random.around(0.5))];
        let query = Query {
            features: &features,
            weights: match kind {
                0 => Weights::Schema,
                1 => Weights::Channels(&weights),
                _ => Weights::Columns(&weights),
            },
            filter: if random.below(2) == 0 {
                Filter::default()
            } else {
                Filter {
                    include: random.next() as u32 & 63 & random.next() as u32,
                    mode: if random.below(2) == 0 { Include::Any } else { Include::All },
                    exclude: random.next() as u32 & random.next() as u32 & random.next() as u32 & 63,
                }
            },
            continuing: (random.below(2) == 0).then(|| Continuing {
                row: random.below(rows) as u32,
                bonus: if random.below(2) == 0 { 0.0 } else { random.unit() },
                ignore_rows: random.below(12) as u32,
                dwelt_s: 0.1,
                minimum_dwell_s: if random.below(8) == 0 { 0.2 } else { 0.0 },
            }),
            ignore: &ignore,
            extra: Extra {
                rows: if random.below(3) == 0 { &extras } else { &[] },
                tags: if random.below(3) == 0 { &by_tag } else { &[] },
            },
        };
        let k = [1, 1, 1, 2, 7, 40][random.below(6)];
        let expected = database.search_by(Method::Plain, &query, k, &mut judge).unwrap();
        for method in [Method::Tree, Method::Scan] {
            for scratch in [&mut widest, &mut narrowest] {
                let found = database.search_by(method, &query, k, scratch).unwrap();
                let same = found.len() == expected.len()
                    && found
                        .iter()
                        .zip(expected)
                        .all(|(a, b)| a.row == b.row && a.cost.to_bits() == b.cost.to_bits());
                assert!(
                    same,
                    "seed {seed}, query {number}, {method:?}, k {k}:\n{found:?}\ninstead of\n{expected:?}\n{query:?}"
                );
            }
        }
    }
}

#[test]
fn tree_and_scan_find_the_rows_of_the_plain_loop_with_the_same_bits() {
    let thorough = std::env::var_os("INBETWEEN_THOROUGH").is_some();
    let share = if thorough { 100_000 / 12 + 1 } else { 600 };
    // From 40 columns and 1024 rows on there are boxes along the columns; at 58 and more also
    // for every four blocks.
    let shapes: [(usize, &[usize], RowFormat, Normalisation, bool); 12] = [
        (1, &[1], RowFormat::F32, Normalisation::ChannelDeviation, false),
        (17, &[3, 2], RowFormat::F32, Normalisation::ColumnDeviation, true),
        (300, &[3, 3, 3], RowFormat::F16, Normalisation::Raw, true),
        (1500, &[6, 6, 3, 6, 6], RowFormat::F32, Normalisation::ChannelDeviation, false),
        (1500, &[6, 6, 3, 6, 6], RowFormat::F32, Normalisation::MinMax, true),
        (1500, &[6, 6, 3, 6, 6], RowFormat::F16, Normalisation::ChannelDeviation, true),
        (5000, &[2, 5], RowFormat::F32, Normalisation::ColumnDeviation, true),
        (1100, &[20, 20, 20], RowFormat::F32, Normalisation::Variance, true),
        (3000, &[3, 3, 3, 6, 6, 3, 6, 6, 9, 6, 6, 3], RowFormat::F32, Normalisation::ChannelDeviation, true),
        (2500, &[3, 3, 3, 6, 6, 3, 6, 6, 9, 6, 6, 3], RowFormat::F16, Normalisation::MinMax, false),
        (1500, &[5, 3, 3, 6, 6, 3, 6, 9], RowFormat::F32, Normalisation::Raw, true),
        (1024, &[6, 6, 3, 6, 6, 9, 6, 3, 4], RowFormat::F32, Normalisation::ColumnDeviation, false),
    ];
    for (index, (rows, widths, format, normalisation, tagged)) in shapes.into_iter().enumerate() {
        let seed = 0x9E37_79B9 + index as u64;
        let mut random = Random(seed);
        let poses = poses(&mut random, rows, widths, tagged);
        let options = DatabaseOptions { normalisation, format, ..DatabaseOptions::default() };
        let database = MotionDatabase::new(poses, options).unwrap();
        check(&database, &mut random, share, seed);
    }
}

#[test]
fn a_batch_answers_like_single_searches_on_any_number_of_threads() {
    let mut random = Random(77);
    let database =
        MotionDatabase::new(poses(&mut random, 3000, &[6, 6], true), DatabaseOptions::default()).unwrap();
    let features: Vec<Vec<f32>> = (0..101).map(|_| (0..12).map(|_| random.around(2.0)).collect()).collect();
    let queries: Vec<Query<'_>> =
        features.iter().map(|f| Query { features: f, ..Query::default() }).collect();
    let mut scratch = Scratch::new();
    let single: Vec<_> = queries.iter().map(|q| database.search(q, &mut scratch).unwrap()).collect();
    for threads in [0, 1, 2, 3, 16, 1000] {
        assert_eq!(database.search_batch(&queries, threads).unwrap(), single);
    }
    assert_eq!(database.search_batch(&[], 2).unwrap(), []);
    // The first error in the order of the queries, whatever order they are answered in.
    let (short, long) = (vec![0.0; 3], vec![0.0; 13]);
    let mut wrong = queries.clone();
    wrong[40] = Query { features: &short, ..Query::default() };
    wrong[70] = Query { features: &long, ..Query::default() };
    for threads in [1, 3] {
        let error = database.search_batch(&wrong, threads).unwrap_err().to_string();
        assert!(error.contains("holds 3 numbers"), "{error}");
    }
}
